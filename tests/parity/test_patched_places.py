"""Every model family: the MLP of a layer is the module that is named here by hand, and what enters a layer and a head is what is put there."""

import numpy as np
import pytest
import torch

import attnviz
from attnviz.errors import SelectionError
from attnviz.model.interventions import ReplacedState, ReplacedVectors
from attnviz.model.states import hidden_states
from tests import tiny, tiny_tokenizers
from tests.parity.test_interventions import ALL, TOLERANCE, by_name, read_other
from tests.tiny import trace_of

_BERT = "encoder.layer.{}.output.dense"
_DOWN = "layers.{}.mlp.down_proj"
_NORMED = "layers.{}.post_feedforward_layernorm"
_SEQ2SEQ = {"encoder": "encoder.layers.{}.fc2", "decoder": "decoder.layers.{}.fc2"}
_T5 = {
    "encoder": "encoder.block.{}.layer.1.DenseReluDense",
    "decoder": "decoder.block.{}.layer.2.DenseReluDense",
}
MLPS = {
    **dict.fromkeys(
        ("bert", "roberta", "xlm-roberta", "electra", "camembert", "ernie", "esm", "mpnet", "big_bird"), _BERT
    ),
    **dict.fromkeys(("deberta", "deberta-v2"), _BERT),
    "distilbert": "transformer.layer.{}.ffn",
    "albert": "encoder.albert_layer_groups.0.albert_layers.0.ffn_output",
    "modernbert": "layers.{}.mlp",
    "gpt2": "h.{}.mlp",
    "gpt-bigcode": "h.{}.mlp",
    **dict.fromkeys(("llama", "eurobert", "gte", "nomic-bert", "cohere", "deepseek-v3", "gemma"), _DOWN),
    **dict.fromkeys(
        ("vaultgemma", "granite", "helium", "mistral", "nemotron", "olmo", "phi3", "qwen2"), _DOWN
    ),
    **dict.fromkeys(("qwen3", "smollm3", "stablelm"), _DOWN),
    "jina-embeddings-v3": "layers.{}.mlp",
    "gpt-neox": "layers.{}.mlp",
    "biogpt": "layers.{}.fc2",
    **dict.fromkeys(("gemma2", "gemma3", "olmo2"), _NORMED),
    "glm4": "layers.{}.post_mlp_layernorm",
    **dict.fromkeys(("mixtral", "qwen3-moe"), "layers.{}.mlp"),
    "opt": "decoder.layers.{}.fc2",
    "phi": "layers.{}.mlp",
    "starcoder2": "layers.{}.mlp",
    **dict.fromkeys(("bart", "marian", "blenderbot", "m2m-100", "mbart", "pegasus"), _SEQ2SEQ),
    **dict.fromkeys(("t5", "mt5", "umt5"), _T5),
    "t5gemma": {"encoder": f"encoder.{_NORMED}", "decoder": f"decoder.{_NORMED}"},
}
"""What each layer adds after its attention, in transformers 5.23.0."""
WITHOUT = {"bitnet", "laguna"}
"""Families whose W_O attnviz does not know either."""


def streams(family):
    """Kinds of attention whose layers have a residual stream."""
    return [kind for kind in family.n_layers if kind != "cross"]


def test_every_family_is_named():
    assert MLPS.keys() | WITHOUT == {family.name for family in ALL}


@pytest.mark.parametrize("family", ALL, ids=by_name)
def test_an_mlp_output_carried_over(family, tiny_model):
    """As a hook on the family's own module does it, at one position, in the last layer but one."""
    model = tiny_model(family.name)
    plain = trace_of(model, family)
    for kind in streams(family):
        layer = family.n_layers[kind] - 2
        n_token = len(plain.query_tokens(kind))
        if family.name in WITHOUT:
            states = np.zeros((n_token, model.network.config.hidden_size), dtype=np.float32)
            with pytest.raises(SelectionError, match="MLP output"):
                trace_of(
                    model,
                    family,
                    interventions=[ReplacedState(states=states, where="mlp", kind=kind, layer=layer)],
                )
            continue
        other = hidden_states(model, read_other(model, family)).of("mlp")[kind, layer]
        n_shared = min(n_token, len(other))
        states = np.zeros((n_token, other.shape[1]), dtype=np.float32)
        states[:n_shared] = other[:n_shared]
        replaced = ReplacedState(states=states, where="mlp", kind=kind, layer=layer, positions=(1,))
        ours = trace_of(model, family, interventions=[replaced]).last_hidden_state
        named = MLPS[family.name]
        path = (named if isinstance(named, str) else named[kind]).format(layer)
        n_call = []

        def put(_, __, output, states=states, n_call=n_call, layer=layer, family=family):
            n_call.append(0)
            if family.name == "albert" and len(n_call) != layer + 1:
                return None
            made = output[0] if isinstance(output, tuple) else output
            changed = made.clone()
            changed.reshape(-1, changed.shape[-1])[1] = torch.tensor(states[1])
            return (changed, *output[1:]) if isinstance(output, tuple) else changed

        handle = model.network.get_submodule(path).register_forward_hook(put)
        theirs = trace_of(model, family).last_hidden_state
        handle.remove()
        np.testing.assert_allclose(ours, theirs, atol=TOLERANCE, rtol=TOLERANCE)
        assert np.abs(ours - plain.last_hidden_state).max() > 1e-3


def test_an_mlp_that_adds_nothing_to_one_dimension_is_known(tmp_path):
    family = tiny.TEXT_FAMILIES["gpt2"]
    network = tiny.build(family)
    with torch.no_grad():
        for layer in network.h:
            layer.mlp.c_proj.weight[:, 0] = layer.mlp.c_proj.bias[0] = 0
    network.save_pretrained(tmp_path)
    tiny_tokenizers.tokenizer(family.tokenizer).save_pretrained(tmp_path)
    model = attnviz.load_model(str(tmp_path))
    added = hidden_states(model, trace_of(model, family)).of("mlp")["decoder", 1]
    assert not added[:, 0].any() and added[:, 1:].all()


@pytest.mark.parametrize("family", ALL, ids=by_name)
def test_what_enters_a_layer(family, tiny_model):
    """All states before layer 0 of the other text give the other text; a later layer's are the output of the one below."""
    model = tiny_model(family.name)
    plain, other = trace_of(model, family), read_other(model, family)
    states = hidden_states(model, other)
    first = [
        ReplacedState(states=states.of("before")[kind, 0], where="before", kind=kind, layer=0)
        for kind in streams(family)
    ]
    changed = trace_of(model, family, interventions=first).last_hidden_state
    np.testing.assert_allclose(changed, other.last_hidden_state, atol=TOLERANCE, rtol=TOLERANCE)
    for kind in streams(family):
        for layer in range(1, family.n_layers[kind]):
            before, after = states.of("before")[kind, layer], states.of("layer")[kind, layer - 1]
            np.testing.assert_array_equal(before, after)
            given = {"states": before, "kind": kind, "positions": (1,)}
            entering = ReplacedState(**given, where="before", layer=layer)
            leaving = ReplacedState(**given, layer=layer - 1)
            entered, left = (
                trace_of(model, family, interventions=[at]).last_hidden_state for at in (entering, leaving)
            )
            np.testing.assert_allclose(entered, left, atol=TOLERANCE, rtol=TOLERANCE)
            assert np.abs(entered - plain.last_hidden_state).max() > 1e-4


@pytest.mark.parametrize("family", ALL, ids=by_name)
def test_queries_keys_and_values_of_another_text_give_a_head_its_output(family, tiny_model):
    """All three of one head: it gives what it gives for the other text, and no other head of its layer changes."""
    model = tiny_model(family.name)
    plain, other = trace_of(model, family), read_other(model, family)
    for kind, n_layer in family.n_layers.items():
        layer = n_layer - 1
        head = family.heads_of(kind)[layer] - 1
        vectors = {"query": other.query, "key": other.key, "value": other.value}
        put = [
            ReplacedVectors(role=role, vectors=read(layer, head, kind), kind=kind, layer=layer, head=head)
            for role, read in vectors.items()
        ]
        changed = trace_of(model, family, interventions=put)
        for role in vectors:
            np.testing.assert_array_equal(
                getattr(changed, role)(layer, head, kind), vectors[role](layer, head, kind)
            )
        if family.name not in ("deberta", "deberta-v2"):  # whose scores have a bias of both, which stays
            np.testing.assert_allclose(
                changed.output(layer, head, kind), other.output(layer, head, kind), atol=TOLERANCE
            )
        for number in range(family.heads_of(kind)[layer] - 1):
            np.testing.assert_allclose(
                changed.output(layer, number, kind), plain.output(layer, number, kind), atol=1e-6
            )
        assert np.abs(changed.last_hidden_state - plain.last_hidden_state).max() > 1e-4
