"""Direct effects of every family: they sum to the model's own number, and each is what autograd gives with all else cut.

The truth is transformers' own model, in which the input of every linear map of the network is detached, so that only the
residual stream is left, and every norm is multiplied out with its scale detached. What is added to the output of W_O, of the
MLP or of the embedding then reaches the logit on the direct path alone.
"""

import numpy as np
import pytest
import torch
import transformers as tf
from torch import nn
from transformers.pytorch_utils import Conv1D

import attnviz
from attnviz.effects.logit_attribution import attribute_state, attribute_token
from attnviz.model.interventions import ScaledOutput
from attnviz.model.stream import record_stream
from tests import hand_made, tiny, tiny_tokenizers

TEXT = "the cat sat when it opened"
AT = 3
TOKEN, AGAINST = "a", "b"

_CROSS = {name for name, family in tiny.TEXT_FAMILIES.items() if family.is_encoder_decoder}
REFUSED = {"bitnet": "how layer 0", "laguna": "how layer 0", "olmo": "that attnviz does not know"}
"""BitNet normalises the heads' outputs before W_O; the norms of OLMo have no weights."""
STATES = [name for name in tiny.TEXT_FAMILIES if name not in _CROSS | REFUSED.keys()]
NOT_LINEAR = {
    "bert",
    "distilbert",
    "roberta",
    "albert",
    "electra",
    "modernbert",
    "camembert",
    "esm",
    "nomic-bert",
    *("mpnet", "big_bird", "deberta", "deberta-v2"),
    "gemma2",  # which softcaps its logits
}
TOKENS = [name for name in tiny.WITH_HEAD if name not in NOT_LINEAR and name not in REFUSED]

_LLAMA = ("layers.{}", "self_attn.o_proj", "mlp.down_proj")
PLACES = {
    "bert": ("encoder.layer.{}", "attention.output.dense", "output.dense"),
    "roberta": ("encoder.layer.{}", "attention.output.dense", "output.dense"),
    "electra": ("encoder.layer.{}", "attention.output.dense", "output.dense"),
    "distilbert": ("transformer.layer.{}", "attention.out_lin", "ffn.lin2"),
    "modernbert": ("layers.{}", "attn.Wo", "mlp.Wo"),
    "gpt2": ("h.{}", "attn.c_proj", "mlp.c_proj"),
    "gpt-neox": ("layers.{}", "attention.dense", "mlp.dense_4h_to_h"),
    "opt": ("decoder.layers.{}", "self_attn.out_proj", "fc2"),
    **dict.fromkeys(("llama", "gemma", "gemma3", "olmo2", "cohere", "qwen3", "granite"), _LLAMA),
}
"""The layer, W_O and the last linear map of the MLP, written down here."""


def frozen(module: nn.Module, args: tuple[torch.Tensor, ...], made: torch.Tensor) -> torch.Tensor:
    """A norm's own output, as a linear function of its input."""
    given = args[0]
    bias = getattr(module, "bias", None)
    bias = 0 if bias is None else bias
    is_layer_norm = "LayerNorm" in type(module).__name__ and "RMS" not in type(module).__name__
    centred = given - given.mean(dim=-1, keepdim=True) if is_layer_norm else given
    return centred * ((made - bias) / centred).detach() + bias


def cut(network: nn.Module, name: str) -> dict[str, torch.Tensor]:
    """Leaves no path but the direct one, and adds a zero to what each part adds; the zeros by the part's name."""
    for path, module in network.named_modules():
        if isinstance(module, nn.Linear | Conv1D) and "project_out" not in path:
            module.register_forward_pre_hook(lambda _, args: tuple(arg.detach() for arg in args))
        elif isinstance(weight := getattr(module, "weight", None), torch.Tensor) and weight.ndim == 1:
            module.register_forward_hook(frozen)
    layer, w_o, mlp = PLACES[name]
    zeros: dict[str, torch.Tensor] = {}

    def add_to(key: str):
        return lambda _, __, made: made + zeros[key]

    def start(_, args, named):
        return (args[0] + zeros["embedding"], *args[1:]), named

    width = network.config.hidden_size
    for number in range(tiny.ENCODER_LAYERS):
        for part, inner in (("attention", w_o), ("mlp", mlp)):
            zeros[f"{part} {number}"] = torch.zeros(width, requires_grad=True)
            network.get_submodule(f"{layer.format(number)}.{inner}").register_forward_hook(
                add_to(f"{part} {number}")
            )
    zeros["embedding"] = torch.zeros(width, requires_grad=True)
    network.get_submodule(layer.format(0)).register_forward_pre_hook(start, with_kwargs=True)
    return zeros


def directions(whole: nn.Module, network: nn.Module, name: str, inputs, number) -> dict[str, np.ndarray]:
    """The gradient of a number of the output with respect to what is added in each place, on the direct path."""
    zeros = cut(network, name)
    value = number(whole(**inputs))
    gradients = torch.autograd.grad(value, list(zeros.values()))
    return {key: gradient.double().numpy() for key, gradient in zip(zeros, gradients, strict=True)}


def assert_are_those(
    effects, expected: dict[str, np.ndarray], model: attnviz.Model, trace: attnviz.Trace
) -> None:
    kind = effects.kind
    states = record_stream(model, trace, AT)
    for layer in range(tiny.ENCODER_LAYERS):
        outputs = trace.outputs(layer, kind)[:, AT]
        weight = model.output_maps[kind][layer].weight
        heads = np.einsum("hv,hvd,d->h", outputs, weight, expected[f"attention {layer}"])
        np.testing.assert_allclose(effects.heads[layer], heads, atol=1e-4 * effects.size)
    start = states.start @ expected["embedding"]
    assert effects.embedding == pytest.approx(start, abs=1e-4 * effects.size)
    assert np.abs(effects.heads).max() > 0.01 * effects.size


@pytest.mark.parametrize("name", STATES)
def test_parts_of_the_last_hidden_state_sum_to_its_length(name, tiny_model):
    model = tiny_model(name)
    trace = model.trace(TEXT)
    for position in range(len(trace.tokens)):
        effects = attribute_state(model, trace, position)
        assert effects.total == pytest.approx(np.linalg.norm(trace.last_hidden_state[position]), rel=1e-6)
        assert abs(effects.gap) <= 1e-5 * effects.size
        assert effects.passed
        assert effects.heads.shape == (trace.n_layers(), trace.n_heads(0))


@pytest.mark.parametrize("n_token", [1, 2, 5])
def test_what_a_head_reads_at_each_token_sums_to_its_part(n_token, tiny_model):
    model = tiny_model("llama")
    trace = model.trace_tokens(hand_made.tokens(TEXT.split()[:n_token]))
    for position in range(n_token):
        found = attribute_state(model, trace, position)
        for heads, sources in zip(found.heads, found.sources, strict=True):
            assert sources.shape == (len(heads), n_token)
            np.testing.assert_allclose(sources.sum(axis=1), heads, atol=1e-5 * found.size)


@pytest.mark.parametrize("name", TOKENS)
def test_parts_of_a_logit_sum_to_it(name, headed):
    model, folder = headed(name)
    theirs = tiny.WITH_HEAD[name].from_pretrained(folder, attn_implementation="eager").eval()
    trace = model.trace(TEXT)
    with torch.inference_mode():
        logits = theirs(**model.inputs(trace.tokens)).logits[0]
    first, second = model.tokenizer.convert_tokens_to_ids([TOKEN, AGAINST])
    for position in range(len(trace.tokens)):
        effects = attribute_token(model, trace, position, TOKEN)
        assert effects.unit == "logit"
        assert effects.total == pytest.approx(float(logits[position, first]), abs=1e-4)
        assert effects.passed
        odds = attribute_token(model, trace, position, TOKEN, against=AGAINST)
        assert odds.unit == "difference of logits"
        assert odds.total == pytest.approx(
            float(logits[position, first] - logits[position, second]), abs=1e-4
        )
        assert odds.passed
    other = attribute_token(model, trace, position, AGAINST)
    np.testing.assert_allclose(odds.heads, effects.heads - other.heads, atol=1e-5 * odds.size)


@pytest.mark.parametrize("name", [place for place in PLACES if place in TOKENS])
def test_parts_of_a_logit_are_those_on_the_direct_path(name, headed):
    model, folder = headed(name)
    theirs = (
        tiny.WITH_HEAD[name].from_pretrained(folder, attn_implementation="eager").eval().requires_grad_(False)
    )
    trace = model.trace(TEXT)
    token = model.tokenizer.convert_tokens_to_ids(TOKEN)
    effects = attribute_token(model, trace, AT, TOKEN)
    expected = directions(
        theirs, theirs.base_model, name, model.inputs(trace.tokens), lambda made: made.logits[0, AT, token]
    )
    assert_are_those(effects, expected, model, trace)


@pytest.mark.parametrize("name", PLACES)
def test_parts_of_a_state_are_those_on_the_direct_path(name, tiny_model, checkpoint):
    model = tiny_model(name)
    theirs = (
        tf.AutoModel.from_pretrained(checkpoint(name), attn_implementation="eager")
        .eval()
        .requires_grad_(False)
    )
    trace = model.trace(TEXT)
    own = torch.tensor(trace.last_hidden_state[AT])
    effects = attribute_state(model, trace, AT)
    expected = directions(
        theirs,
        theirs,
        name,
        model.inputs(trace.tokens),
        lambda made: made.last_hidden_state[0, AT] @ (own / own.norm()),
    )
    assert_are_those(effects, expected, model, trace)
    outputs = {}
    layer, _, mlp = PLACES[name]
    plain = tf.AutoModel.from_pretrained(checkpoint(name), attn_implementation="eager").eval()
    for number in range(tiny.ENCODER_LAYERS):
        plain.get_submodule(f"{layer.format(number)}.{mlp}").register_forward_hook(
            lambda _, __, made, number=number: outputs.update({number: made.reshape(-1, made.shape[-1])[AT]})
        )
    with torch.inference_mode():
        plain(**model.inputs(trace.tokens))
    if name in ("gemma3", "olmo2"):  # whose MLP's output is normalised before it is added
        return
    for number, made in outputs.items():
        of_mlp = made.double().numpy() @ expected[f"mlp {number}"]
        assert effects.mlps[number] == pytest.approx(of_mlp, abs=1e-4 * effects.size)


@pytest.mark.parametrize("name", sorted(NOT_LINEAR))
def test_a_head_that_is_not_linear_is_refused(name, headed):
    model, _ = headed(name)
    trace = model.trace(TEXT)
    with pytest.raises(attnviz.UnsupportedArchitectureError, match="is not linear"):
        attribute_token(model, trace, AT, TOKEN)
    assert attribute_state(model, trace, AT).passed


def test_a_head_that_is_nearly_linear_is_refused_where_its_parts_would_not_sum(tmp_path):
    """Gemma 2's cap of 30 changes a logit of 1 by 4e-4: more than the sum of its parts may differ."""
    family = tiny.TEXT_FAMILIES["gemma2"]
    config = family.config()
    config.final_logit_softcapping = 30.0
    whole = tf.Gemma2ForCausalLM(config)
    torch.manual_seed(1)
    with torch.no_grad():
        for parameter in whole.parameters():
            if parameter.ndim > 1:
                parameter.normal_(std=family.weight_std)
    whole.save_pretrained(tmp_path)
    tiny_tokenizers.tokenizer(family.tokenizer).save_pretrained(tmp_path)
    model = attnviz.load_model(str(tmp_path))
    trace = model.trace(TEXT)
    with pytest.raises(attnviz.UnsupportedArchitectureError, match="is not linear"):
        attribute_token(model, trace, 0, TOKEN)


@pytest.mark.parametrize("name", REFUSED)
def test_a_family_that_cannot_be_taken_apart_is_refused(name, tiny_model):
    model = tiny_model(name)
    with pytest.raises(attnviz.UnsupportedArchitectureError, match=REFUSED[name]):
        attribute_state(model, model.trace(TEXT), AT)


def test_a_factor_on_what_is_added_is_refused(tmp_path):
    """Granite may multiply what each layer adds; the outputs of its heads are then not what reaches the stream."""
    config = tiny.TEXT_FAMILIES["granite"].config()
    config.residual_multiplier = 0.5
    family = tiny.Family("granite", lambda: config, tokenizer="bytes", weight_std=tiny.STEEP_STD)
    model = attnviz.load_model(str(tiny.save(family, tmp_path)))
    with pytest.raises(attnviz.UnsupportedArchitectureError, match="how layer 0"):
        attribute_state(model, model.trace(TEXT), AT)


def test_an_attention_across_is_refused(tiny_model):
    model = tiny_model("bart")
    with pytest.raises(attnviz.UnsupportedArchitectureError, match="from its decoder to its encoder"):
        attribute_state(model, model.trace("a door", "a mat"), 1)


def test_what_cannot_be_asked(headed, tiny_model, checkpoint):
    model, _ = headed("gpt2")
    trace = model.trace(TEXT)
    for call in (lambda: attribute_state(model, trace, 99), lambda: attribute_token(model, trace, 99, TOKEN)):
        with pytest.raises(attnviz.SelectionError, match="Token 99"):
            call()
    with pytest.raises(attnviz.SelectionError, match="always 0"):
        attribute_token(model, trace, AT, TOKEN, against=TOKEN)
    with pytest.raises(attnviz.UnsupportedArchitectureError, match="What adds to the answer “a”"):
        attribute_token(tiny_model("gpt2"), trace, AT, TOKEN)
    changed = model.trace(TEXT, interventions=[ScaledOutput(kind="decoder", layer=0, head=0, factor=0.0)])
    with pytest.raises(attnviz.SelectionError, match="without interventions"):
        attribute_state(model, changed, AT)
    half = attnviz.load_model(str(checkpoint("gpt2")), dtype="bfloat16")
    with pytest.raises(attnviz.SelectionError, match="bfloat16"):
        attribute_state(half, half.trace(TEXT), AT)


def test_of_a_trained_model(embedded, door_trace):
    """MiniLM: 6 layers, 12 heads, d_model 384."""
    for position in range(len(door_trace.tokens)):
        assert attribute_state(embedded, door_trace, position).passed


def test_ranked_and_as_a_table(headed):
    model, _ = headed("gpt2")
    effects = attribute_token(model, model.trace(TEXT), AT, TOKEN)
    ranked = effects.ranked()
    sizes = [abs(effects.heads[head]) for head in ranked]
    assert sizes == sorted(sizes, reverse=True)
    assert len(set(ranked)) == effects.heads.size
    lines = effects.csv().decode("utf-8-sig").splitlines()
    assert lines[0] == "layer,part,logit"
    parts = [float(line.split(",")[2]) for line in lines[1:-2]]
    assert sum(parts) == pytest.approx(float(lines[-1].split(",")[2]), abs=1e-4)
