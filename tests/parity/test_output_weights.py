"""Every model family: what the heads add to a token adds up to what the model's own output layer gives.

Norm-based weights are right if the vectors behind them are: the sum over heads h and keys j of
a_ij v_j W_O^h, and b_O, is what the layer's output projection puts out. The modules are named here by
hand, and asked with torch's hooks; attnviz finds W_O by running the model.
"""

import numpy as np
import pytest
import torch
from transformers import AutoModel

from tests import tiny
from tests.tiny import trace_of

# float32: sums of up to 30 x 8 products of values of about 10; a wrong head or axis is off by 1.
TOLERANCE = 1e-4


_BART = {
    "encoder": "encoder.layers.{}.self_attn.out_proj",
    "decoder": "decoder.layers.{}.self_attn.out_proj",
    "cross": "decoder.layers.{}.encoder_attn.out_proj",
}
_T5 = {
    "encoder": "encoder.block.{}.layer.0.SelfAttention.o",
    "decoder": "decoder.block.{}.layer.0.SelfAttention.o",
    "cross": "decoder.block.{}.layer.1.EncDecAttention.o",
}
_LLAMA_LIKE = (
    *("llama", "cohere", "deepseek-v3", "gemma", "gemma2", "gemma3", "glm4", "granite", "vaultgemma"),
    *("helium", "mistral", "mixtral"),
    *(
        "nemotron",
        "olmo",
        "olmo2",
        "phi3",
        "qwen2",
        "qwen3",
        "qwen3-moe",
        "smollm3",
        "stablelm",
        "starcoder2",
    ),
)
# The name of the output projection of each layer's attention, by kind.
PROJECTIONS = {
    **{name: {"decoder": "layers.{}.self_attn.o_proj"} for name in _LLAMA_LIKE},
    **{
        name: {"encoder": "layers.{}.self_attn.o_proj"}
        for name in ("eurobert", "gte", "jina-embeddings-v3", "nomic-bert")
    },
    **{name: _BART for name in ("bart", "blenderbot", "m2m-100", "marian", "mbart", "pegasus")},
    **{name: _T5 for name in ("t5", "mt5", "umt5")},
    "t5gemma": {
        kind: f"{side}.layers.{{}}.{module}.o_proj"
        for kind, side, module in (
            ("encoder", "encoder", "self_attn"),
            ("decoder", "decoder", "self_attn"),
            ("cross", "decoder", "cross_attn"),
        )
    },
    "biogpt": {"decoder": "layers.{}.self_attn.out_proj"},
    "camembert": {"encoder": "encoder.layer.{}.attention.output.dense"},
    **{
        name: {"encoder": "encoder.layer.{}.attention.output.dense"}
        for name in ("big_bird", "deberta", "deberta-v2")
    },
    "mpnet": {"encoder": "encoder.layer.{}.attention.attn.o"},
    "ernie": {"encoder": "encoder.layer.{}.attention.output.dense"},
    "esm": {"encoder": "encoder.layer.{}.attention.output.dense"},
    "gpt-bigcode": {"decoder": "h.{}.attn.c_proj"},
    "opt": {"decoder": "decoder.layers.{}.self_attn.out_proj"},
    "phi": {"decoder": "layers.{}.self_attn.dense"},
    "bert": {"encoder": "encoder.layer.{}.attention.output.dense"},
    "roberta": {"encoder": "encoder.layer.{}.attention.output.dense"},
    "xlm-roberta": {"encoder": "encoder.layer.{}.attention.output.dense"},
    "electra": {"encoder": "encoder.layer.{}.attention.output.dense"},
    "distilbert": {"encoder": "transformer.layer.{}.attention.out_lin"},
    "albert": {"encoder": "encoder.albert_layer_groups.0.albert_layers.0.attention.dense"},
    "modernbert": {"encoder": "layers.{}.attn.Wo"},
    "gpt2": {"decoder": "h.{}.attn.c_proj"},
    "gpt-neox": {"decoder": "layers.{}.attention.dense"},
}
# BitNet's projection is of the normalised outputs of the heads (SubLN), Laguna's of the outputs times a gate, so no sum over
# heads gives what it puts out.
FAMILIES = [family for family in tiny.TEXT_FAMILIES.values() if family.name not in ("bitnet", "laguna")]


@pytest.fixture(scope="module")
def theirs(checkpoint, tiny_model):
    """A trace, and by kind and layer what the model's own output projection gives, with its bias."""

    def run(family):
        network = AutoModel.from_pretrained(
            checkpoint(family.name), attn_implementation="eager", dtype=torch.float32
        ).eval()
        noted = {}
        handles = []
        for kind, name in PROJECTIONS[family.name].items():
            noted[kind] = []
            for path in dict.fromkeys(name.format(layer) for layer in range(family.n_layers[kind])):
                module = network.get_submodule(path)
                handles.append(
                    module.register_forward_hook(
                        lambda module, _, put_out, of=noted[kind]: of.append(
                            (put_out[0].double(), module.bias)
                        )
                    )
                )
        model = tiny_model(family.name)
        trace = trace_of(model, family)
        with torch.inference_mode():
            network(**model.inputs(trace.tokens, trace.target_tokens))
        for handle in handles:
            handle.remove()
        return trace, noted

    return run


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_heads_add_up_to_what_the_output_projection_gives(family, theirs):
    trace, noted = theirs(family)
    assert {kind: len(layers) for kind, layers in noted.items()} == family.n_layers
    for kind, layers in noted.items():
        for layer, (put_out, bias) in enumerate(layers):
            call = trace.attention(layer, kind)
            assert call.output_weight is not None
            n_head = family.heads_of(kind)[layer]
            assert call.output_weight.shape == (n_head, call.value.shape[2], put_out.shape[1])
            brought = np.zeros(put_out.shape)
            for head in range(n_head):
                weights = trace.weights(layer, head, kind).astype(np.float64)
                value = trace.value(layer, head, kind).astype(np.float64)
                for i in range(weights.shape[0]):
                    for j in range(weights.shape[1]):
                        brought[i] += weights[i, j] * (value[j] @ call.output_weight[head])
            if bias is not None:
                brought += bias.detach().double().numpy()
            np.testing.assert_allclose(
                brought, put_out.numpy(), atol=TOLERANCE, rtol=TOLERANCE, err_msg=f"{kind} layer {layer}"
            )


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_norm_based_weights_are_lengths_of_what_the_model_s_own_projection_makes(family, theirs, checkpoint):
    """Each vector a_ij v_j W_O^h is made by the module itself, from an input that is zero but for one head."""
    trace, _ = theirs(family)
    network = AutoModel.from_pretrained(checkpoint(family.name), dtype=torch.float64).eval()
    for kind, name in PROJECTIONS[family.name].items():
        layer = family.n_layers[kind] - 1
        project = network.get_submodule(name.format(layer))
        n_head, d_value = family.heads_of(kind)[layer], trace.attention(layer, kind).value.shape[2]
        together = None
        for head in range(n_head):
            weights = torch.tensor(trace.weights(layer, head, kind), dtype=torch.float64)
            value = torch.tensor(trace.value(layer, head, kind), dtype=torch.float64)
            parts = torch.zeros(*weights.shape, n_head * d_value, dtype=torch.float64)
            parts[..., head * d_value : (head + 1) * d_value] = weights[..., None] * value
            with torch.inference_mode():
                vectors = project(parts) - project(torch.zeros_like(parts))
            together = vectors if together is None else together + vectors
            np.testing.assert_allclose(
                trace.pattern(layer, head, kind, measure="norms").weights,
                vectors.norm(dim=-1).numpy(),
                atol=TOLERANCE,
                rtol=TOLERANCE,
                err_msg=f"{kind} head {head}",
            )
        np.testing.assert_allclose(
            trace.pattern(layer, None, kind, measure="norms").weights,
            together.norm(dim=-1).numpy(),
            # squares of up to 100 are summed before the root: 100 x 6e-8, and the root of it near 0
            atol=5e-3,
            rtol=TOLERANCE,
            err_msg=kind,
        )


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_w_o_is_the_model_s_own_memory_and_nobody_listens_afterwards(family, tiny_model):
    network = tiny_model(family.name).network
    parameters = [parameter.detach().numpy() for parameter in network.parameters()]
    for of_kind in tiny_model(family.name).output_maps.values():
        for output_map in of_kind:
            assert any(np.shares_memory(output_map.weight, parameter) for parameter in parameters)
    hooks = [hook for module in network.modules() for hook in module._forward_pre_hooks.values()]
    of_interventions = {"attnviz.model.states"}  # these stay
    assert {hook.__module__ for hook in hooks} == of_interventions
