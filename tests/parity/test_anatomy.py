"""Every model family: what a layer's attention is made of gives, multiplied out, what passed through it."""

from dataclasses import replace

import numpy as np
import pytest
import torch

import attnviz
from attnviz.anatomy import anatomy
from tests import tiny

TEXT, SECOND_TEXT = "I was watching the door", "it opened ."
TOLERANCE = 1e-4  # float32: sums of up to 30 products of values of about 10; a wrong head or axis is off by 1

# Families whose queries and keys are the linear map's own, with what is added up for each token. The
# others turn them by their positions after the map (rotary).
PLAIN = {
    "bert": {"token", "position", "segment"},
    "electra": {"token", "position", "segment"},
    "albert": {"token", "position", "segment"},
    "roberta": {"token", "position", "segment"},
    "xlm-roberta": {"token", "position", "segment"},
    "distilbert": {"token", "position"},
    "gpt2": {"token", "position"},
    "bart": {"token", "position"},
    "marian": {"token", "position"},
    "t5": {"token"},
}


def trace_of(model, family):
    return model.trace(TEXT, SECOND_TEXT if family.is_encoder_decoder else None)


@pytest.mark.parametrize("family", tiny.TEXT_FAMILIES.values(), ids=list(tiny.TEXT_FAMILIES))
def test_a_layer_multiplied_out(tiny_model, family):
    model = tiny_model(family.name)
    trace = trace_of(model, family)
    for kind in trace.kinds:
        for layer in range(trace.n_layers(kind)):
            found = anatomy(model, trace, layer, kind)
            assert (found.kind, found.layer) == (kind, layer)
            missing = {"query", "key", "value"} - found.projections.keys()
            assert missing == (set() if family.name in PLAIN else {"query", "key"})
            given = {"query": found.hidden, "key": found.sources, "value": found.sources}
            for part, linear in found.projections.items():
                vectors = getattr(trace.attention(layer, kind), part)
                for head, expected in enumerate(vectors):
                    made = given[part] @ linear.weight[head]
                    made = made if linear.bias is None else made + linear.bias[head]
                    np.testing.assert_allclose(made, expected, atol=TOLERANCE)
            outputs = trace.outputs(layer, kind)
            summed = np.einsum("hqv,hvd->qd", outputs, found.output_weight)
            if found.output_bias is not None:
                summed = summed + found.output_bias
            np.testing.assert_allclose(summed, found.output, atol=TOLERANCE)


@pytest.mark.parametrize("family", tiny.TEXT_FAMILIES.values(), ids=list(tiny.TEXT_FAMILIES))
def test_what_a_token_is_looked_up_by(tiny_model, family):
    model = tiny_model(family.name)
    trace = trace_of(model, family)
    found = anatomy(model, trace, 0)
    expected = PLAIN.get(family.name, {"token"})
    assert found.ingredients.keys() >= {"token"}
    assert set(found.ingredients) == expected


@pytest.mark.parametrize("kind", ["encoder", "decoder"])
@pytest.mark.parametrize("name", ["bart", "marian", "t5"])
def test_two_texts_of_one_length_keep_their_own_vectors(tiny_model, name, kind):
    model = tiny_model(name)
    trace = model.trace("a door opened", "a mat opened")
    assert len(trace.tokens) == len(trace.target_tokens)
    found = anatomy(model, trace, 0, kind)
    assert set(found.ingredients) == PLAIN[name]
    summed = sum(found.ingredients.values())
    ids = (trace.tokens if kind == "encoder" else trace.target_tokens).ids
    own = model.network.get_input_embeddings().weight.detach().numpy()[ids]
    np.testing.assert_allclose(found.ingredients["token"], own, atol=TOLERANCE)
    if name == "marian":  # whose first layer reads the sum as it is
        np.testing.assert_allclose(summed, found.hidden, atol=TOLERANCE)


@pytest.mark.parametrize(("name", "expected"), [("gpt2", {"token", "position"}), ("t5", {"token"})])
def test_a_text_of_one_token(tiny_model, name, expected):
    model = tiny_model(name)
    trace = model.trace("a")
    found = anatomy(model, trace, 0, "decoder")
    assert len(trace.query_tokens("decoder")) == 1
    assert set(found.ingredients) == expected


def test_tokens_that_are_scaled_once_they_are_looked_up(tmp_path):
    """As the Marian models on the Hub do."""
    family = replace(tiny.TEXT_FAMILIES["marian"], config=lambda: _marian(scale_embedding=True))
    model = attnviz.load_model(str(tiny.save(family, tmp_path)))
    found = anatomy(model, model.trace(TEXT, SECOND_TEXT), 0, "encoder")
    np.testing.assert_allclose(sum(found.ingredients.values()), found.hidden, atol=TOLERANCE)


def _marian(**changed):
    config = tiny.TEXT_FAMILIES["marian"].config()
    config.update(changed)
    return config


NORMALISED = {  # the module that normalises the sum, by its name in transformers
    "bert": "embeddings.LayerNorm",
    "electra": "embeddings.LayerNorm",
    "albert": "embeddings.LayerNorm",
    "roberta": "embeddings.LayerNorm",
    "xlm-roberta": "embeddings.LayerNorm",
    "distilbert": "embeddings.LayerNorm",
    "modernbert": "embeddings.norm",
    "gpt2": "h.0.ln_1",
    "gpt-neox": "layers.0.input_layernorm",
    "bart": "encoder.layernorm_embedding",
}


@pytest.mark.parametrize("name", list(tiny.TEXT_FAMILIES))
def test_what_normalises_the_sum(tiny_model, name):
    model = tiny_model(name)
    found = anatomy(model, trace_of(model, tiny.TEXT_FAMILIES[name]), 1)
    assert (found.norm is not None) == (name in NORMALISED)
    if found.norm is not None:
        module = model.network.get_submodule(NORMALISED[name])
        np.testing.assert_array_equal(found.norm.weight, module.weight.detach().numpy())
        with torch.inference_mode():
            expected = module(torch.tensor(sum(found.ingredients.values()))).numpy()
        np.testing.assert_allclose(found.norm.made, expected, atol=TOLERANCE)


@pytest.mark.parametrize("name", ["bert", "roberta", "distilbert"])
def test_the_sum_of_the_ingredients_is_what_the_first_layer_reads(tiny_model, name):
    model = tiny_model(name)
    found = anatomy(model, model.trace(TEXT), 0)
    summed = sum(found.ingredients.values())
    centred = summed - summed.mean(axis=1, keepdims=True)
    norm = model.network.embeddings.LayerNorm
    expected = centred / np.sqrt((centred**2).mean(axis=1, keepdims=True) + norm.eps)
    expected = expected * norm.weight.detach().numpy() + norm.bias.detach().numpy()
    np.testing.assert_allclose(found.hidden, expected, atol=TOLERANCE)


def test_weights_are_the_models_own_memory(tiny_model):
    model = tiny_model("bert")
    found = anatomy(model, model.trace(TEXT), 1)
    own = model.network.encoder.layer[1].attention.self.query.weight.detach().numpy()
    assert np.shares_memory(found.projections["query"].weight, own)


def test_nothing_is_left_on_the_model(tiny_model):
    model = tiny_model("bert")
    anatomy(model, model.trace(TEXT), 1)
    assert not any(one._forward_hooks for one in model.network.modules())
