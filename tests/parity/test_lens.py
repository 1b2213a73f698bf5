"""The lens of every family, against transformers' own model cut off after each layer, and against its full answer."""

import numpy as np
import pytest
import torch
from torch import nn

import attnviz
from attnviz.effects.lens import layer_similarities, lens
from attnviz.model.interventions import ScaledOutput
from attnviz.model.states import hidden_states
from attnviz.model.stream import record_stream
from tests import tiny

TEXT, SECOND_TEXT = "the cat sat when it opened", "a door"
LAYERS = tiny.ENCODER_LAYERS
RTOL = 1e-3  # float32 through three layers; products of up to 60 numbers of about 10


def cut_off(folder, name: str, n_layer: int):
    """transformers' own model with its head, which stops after so many layers."""
    theirs = tiny.WITH_HEAD[name].from_pretrained(folder, attn_implementation="eager").eval()
    theirs.config.num_hidden_layers = n_layer
    for module in theirs.modules():
        if getattr(getattr(module, "config", None), "num_hidden_layers", None) is not None:
            module.config.num_hidden_layers = n_layer
        for child, layers in list(module.named_children()):
            if isinstance(layers, nn.ModuleList) and len(layers) == LAYERS:
                setattr(module, child, layers[:n_layer])
    return theirs


def shares(theirs, inputs) -> np.ndarray:
    with torch.inference_mode():
        return theirs(**inputs).logits[0].double().softmax(dim=-1).numpy()


@pytest.mark.parametrize("name", tiny.WITH_HEAD)
def test_each_layer_as_the_model_that_stops_there(name, headed):
    model, folder = headed(name)
    trace = model.trace(TEXT, masked=() if model.mask_label is None else [3])
    predictions = lens(model, trace, top=4)
    n_token = len(trace.tokens)
    assert predictions.ids.shape == predictions.probabilities.shape == (LAYERS, n_token, 4)
    whole = shares(cut_off(folder, name, LAYERS), model.inputs(trace.tokens))
    final = whole.argmax(axis=-1)
    tokens = np.arange(n_token)
    for layer in range(LAYERS):
        expected = shares(cut_off(folder, name, layer + 1), model.inputs(trace.tokens))
        np.testing.assert_allclose(
            predictions.probabilities[layer], -np.sort(-expected)[:, :4], rtol=RTOL, atol=1e-6
        )
        np.testing.assert_allclose(
            np.take_along_axis(expected, predictions.ids[layer].astype(int), axis=1),
            predictions.probabilities[layer],
            rtol=RTOL,
            atol=1e-6,
        )
        np.testing.assert_allclose(
            predictions.answer_probabilities[layer], expected[tokens, final], rtol=RTOL, atol=1e-6
        )
        ranks = (expected > expected[tokens, final][:, None] * (1 + RTOL)).sum(axis=1)
        assert (ranks <= predictions.answer_ranks[layer]).all()
        assert (
            predictions.answer_ranks[layer]
            <= (expected > expected[tokens, final][:, None] * (1 - RTOL)).sum(axis=1)
        ).all()
    first, last = predictions.answer_probabilities[[0, -1]]
    assert np.abs(first / last - 1).max() > 0.1


@pytest.mark.parametrize("name", tiny.WITH_HEAD)
def test_the_last_layer_is_the_models_own_prediction(name, headed):
    model, _ = headed(name)
    trace = model.trace(TEXT)
    predictions = lens(model, trace, top=3)
    for position in range(len(trace.tokens)):
        expected = attnviz.predict(model, trace, position, top=3)
        assert predictions.labels[-1][position] == expected.labels
        np.testing.assert_allclose(predictions.probabilities[-1, position], expected.probabilities, rtol=1e-4)
        assert predictions.answers[position] == expected.labels[0]
    np.testing.assert_array_equal(predictions.answer_probabilities[-1], predictions.probabilities[-1, :, 0])
    assert (predictions.answer_ranks[-1] == 0).all()


@pytest.mark.parametrize("family", tiny.TEXT_FAMILIES.values(), ids=list(tiny.TEXT_FAMILIES))
def test_how_similar_layers_are_to_the_last_hidden_state(family, tiny_model):
    model = tiny_model(family.name)
    trace = model.trace(TEXT, SECOND_TEXT if family.is_encoder_decoder else None)
    similar = layer_similarities(model, trace)
    states = hidden_states(model, trace).layers
    kind = "decoder" if "decoder" in trace.kinds else "encoder"
    assert similar.kind == kind
    assert similar.similarities.shape == (trace.n_layers(kind), len(trace.last_hidden_state))
    np.testing.assert_allclose(similar.similarities[-1], 1, atol=1e-5)
    assert np.abs(similar.similarities[0] - 1).max() > 0.01
    if record_stream(model, trace, 0).final == ():  # without a final norm: written out
        first, last = states[kind, 0].astype(np.float64), trace.last_hidden_state.astype(np.float64)
        expected = (first * last).sum(1) / np.linalg.norm(first, axis=1) / np.linalg.norm(last, axis=1)
        np.testing.assert_allclose(similar.similarities[0], expected, atol=1e-5)


def test_a_text_of_one_token_has_similarities(tiny_model):
    model = tiny_model("gpt2")
    similar = layer_similarities(model, model.trace("a"))
    assert similar.similarities.shape == (tiny.ENCODER_LAYERS, 1)
    assert similar.similarities[-1, 0] == pytest.approx(1, abs=1e-5)


FINAL = {
    **dict.fromkeys(("bert", "roberta", "distilbert", "albert", "electra", "camembert", "nomic-bert"), ()),
    "gpt2": ("LayerNorm",),
    "llama": ("LlamaRMSNorm",),
    "modernbert": ("LayerNorm",),
    "gpt-neox": ("LayerNorm",),
    "opt": ("LayerNorm", "Linear"),
    "bart": (),
    "t5": ("T5LayerNorm",),
}


@pytest.mark.parametrize("name", FINAL)
def test_what_follows_the_last_layer(name, tiny_model):
    family = tiny.TEXT_FAMILIES[name]
    model = tiny_model(name)
    trace = model.trace(TEXT, SECOND_TEXT if family.is_encoder_decoder else None)
    stream = record_stream(model, trace, 1)
    assert tuple(type(step.module).__name__ for step in stream.final) == FINAL[name]


def test_settled(headed):
    model, _ = headed("bert")
    predictions = lens(model, model.trace(TEXT), top=1)
    assert predictions.ids.shape[-1] == 1
    for token, layer in enumerate(predictions.settled):
        ranks = predictions.answer_ranks[:, token]
        assert (ranks[layer:] == 0).all()
        assert layer == 0 or ranks[layer - 1] > 0


def test_as_a_table(headed):
    model, _ = headed("bert")
    predictions = lens(model, model.trace(TEXT))
    lines = predictions.csv().decode("utf-8-sig").splitlines()
    assert len(lines) == 1 + LAYERS * len(predictions.answers)
    assert lines[-1].startswith(f"2,7,7 [SEP],{predictions.labels[-1][7][0]},")


def test_a_model_without_a_language_head(tiny_model):
    bert = tiny_model("bert")
    with pytest.raises(
        attnviz.UnsupportedArchitectureError, match=r"The answer after each layer .*\(BertModel\)"
    ):
        lens(bert, bert.trace(TEXT))


def test_what_cannot_be_asked(headed):
    model, _ = headed("bert")
    with pytest.raises(attnviz.SelectionError, match="one or more"):
        lens(model, model.trace(TEXT), top=0)
    changed = model.trace(TEXT, interventions=[ScaledOutput(kind="encoder", layer=0, head=0, factor=0.0)])
    with pytest.raises(attnviz.SelectionError, match="without interventions"):
        lens(model, changed)


def test_a_stream_that_does_not_lead_to_the_last_state(headed, monkeypatch):
    from attnviz.model import stream

    monkeypatch.setattr(stream, "_chain", lambda *_: None)
    model, _ = headed("gpt2")
    with pytest.raises(attnviz.UnsupportedArchitectureError, match="in a way that attnviz does not know"):
        lens(model, model.trace(TEXT))


def test_nothing_is_left_on_the_model(headed):
    model, _ = headed("bert")
    hooks = [
        len(module._forward_hooks) + len(module._forward_pre_hooks) for module in model.network.modules()
    ]
    lens(model, model.trace(TEXT))
    assert hooks == [
        len(module._forward_hooks) + len(module._forward_pre_hooks) for module in model.network.modules()
    ]
