"""Attributions of an outcome to tokens, each against its definition written out."""

import numpy as np
import pytest
import torch

import attnviz
from attnviz.effects import input_attribution
from attnviz.effects.input_attribution import (
    METHODS,
    InputAttribution,
    attribute_inputs,
    available_methods,
)
from attnviz.effects.outcome import Similarity, TokenState, measured
from attnviz.effects.token_embeddings import EmbeddedText
from attnviz.maths.attention_flow import attention_flow

TEXT, OTHER, STATE = "the cat sat on a mat", Similarity(text="a door opened"), TokenState(position=3)
TOLERANCE = 2e-5  # float32, rows of a batch summed in another order than one alone


def by_method(model, trace, outcome, **given):
    return {one.method: one for one in attribute_inputs(model, trace, outcome, **given)}


@pytest.mark.parametrize("outcome", [OTHER, STATE])
def test_norms_rollout_and_flow_are_rows_of_their_matrices(tiny_model, outcome):
    bert = tiny_model("bert")
    trace = bert.trace(TEXT)
    found = by_method(bert, trace, outcome, methods=["norms", "rollout", "flow"])
    rows = [3] if outcome is STATE else range(len(trace.tokens))
    norms = sum(trace.pattern(layer, None, measure="norms").weights for layer in range(3))
    layers = [trace.layer_weights(layer).mean(axis=0) for layer in range(3)]
    expected = {
        "norms": np.mean([norms[row] for row in rows], axis=0),
        "rollout": np.mean([trace.rollout(2)[row] for row in rows], axis=0),
        "flow": np.mean([attention_flow(layers, row) for row in rows], axis=0),
    }
    for method, values in expected.items():
        np.testing.assert_allclose(found[method].values, values, rtol=1e-5)
        assert found[method].baseline is None and not found[method].has_sign
    assert found["rollout"].values.sum() == pytest.approx(1, abs=1e-5)


def test_norms_of_an_encoder_decoder_model_are_across(tiny_model):
    bart = tiny_model("bart")
    trace = bart.trace(TEXT, "it opened .")
    (found,) = attribute_inputs(bart, trace, TokenState(position=1), methods=["norms"])
    norms = [trace.pattern(layer, None, "cross", measure="norms").weights[1] for layer in range(4)]
    np.testing.assert_allclose(found.values, np.sum(norms, axis=0), rtol=1e-5)


def test_a_token_replaced_by_the_mask_token_is_a_masked_text(tiny_model):
    bert = tiny_model("bert")
    trace = bert.trace(TEXT)
    measure = measured(bert, trace, OTHER)
    (found,) = attribute_inputs(bert, trace, OTHER, methods=["token_replaced"], baseline="mask")
    assert found.baseline == "[MASK]"
    for position, number in enumerate(found.values):
        if trace.tokens.is_special[position]:
            assert number == 0
            continue
        masked = bert.trace(TEXT, masked=[position]).last_hidden_state
        expected = measure.value - float(measure(torch.tensor(masked)[None])[0])
        assert number == pytest.approx(expected, abs=TOLERANCE)


def test_the_gap_of_the_bundled_model(embedded, door_trace):
    outcomes = [Similarity(text="The door swung open while I looked on."), TokenState(position=7)]
    for outcome in outcomes:
        gaps = [
            attribute_inputs(embedded, door_trace, outcome, methods=["integrated_gradients"], steps=steps)[
                0
            ].gap
            for steps in (4, 16, 64)
        ]
        assert abs(gaps[0]) > abs(gaps[1]) > abs(gaps[2])
        assert abs(gaps[0]) > 1e-3 and abs(gaps[2]) < 2e-6


def test_integrated_gradients_find_the_door(embedded, door_trace):
    """What the reader sees on the bundled model: of all tokens, replacing "door" costs the similarity most."""
    outcome = Similarity(text="The door swung open while I looked on.")
    found = by_method(embedded, door_trace, outcome)
    assert tuple(found) == METHODS
    words = ~door_trace.tokens.is_special
    for method in ("integrated_gradients", "token_replaced", "keys_masked"):
        assert door_trace.tokens.labels[found[method].order(words)[0]] == "door"
    assert found["integrated_gradients"].baseline == found["token_replaced"].baseline == "[PAD]"
    assert [one.method for one in found.values() if one.gap is not None] == ["integrated_gradients"]


def test_an_order_begins_with_the_most_important():
    words = np.array([False, True, True, True, True])
    values = np.array([9, -2, 1, 1, 3], dtype=np.float32)
    signed = InputAttribution(method="integrated_gradients", values=values)
    assert signed.order(words).tolist() == [4, 2, 3, 1]
    assert signed.order(words, -1).tolist() == [1, 2, 3, 4]
    lengths = InputAttribution(method="norms", values=values)
    assert lengths.order(words, -1).tolist() == lengths.order(words).tolist() == [4, 2, 3, 1]


def test_progress_goes_through_all_methods(tiny_model):
    bert = tiny_model("bert")
    told = []
    attribute_inputs(bert, bert.trace(TEXT), OTHER, progress=told.append)
    assert told == sorted(told) and told[-1] == 1 and len(set(told)) > 7


@pytest.mark.parametrize(
    ("name", "outcome", "method", "said"),
    [
        ("bert", STATE, "gradient_times_input", "where its gradient is 0"),
        ("bart", OTHER, "rollout", "an encoder-decoder model reads two"),
        ("bart", OTHER, "flow", "an encoder-decoder model reads two"),
        ("bert", OTHER, "gradients", "no such method"),
        ("bert", TokenState(position=99), "rollout", "Token 99"),
    ],
)
@pytest.mark.usefixtures("types_unchecked")
def test_what_is_not_there(tiny_model, name, outcome, method, said):
    model = tiny_model(name)
    with pytest.raises(attnviz.SelectionError, match=said):
        attribute_inputs(model, model.trace(TEXT), outcome, methods=[method])


def test_flow_of_a_long_text_is_not_offered(embedded):
    trace = embedded.trace("door " * 150)
    assert "flow" not in available_methods(trace, OTHER)
    assert "flow" in available_methods(trace, STATE)
    with pytest.raises(attnviz.SelectionError, match="at most 128 tokens, and the text has 152"):
        attribute_inputs(embedded, trace, OTHER, methods=["flow"])


class TestCompleteness:
    def test_steps_are_added_until_the_integral_is_found(self, tiny_model, monkeypatch):
        monkeypatch.setattr(input_attribution, "STEPS", (2, 4, 64, 128))
        modernbert = tiny_model("modernbert")
        trace = modernbert.trace("the cat", "sat on it")
        (few,) = attribute_inputs(modernbert, trace, OTHER, methods=["integrated_gradients"], steps=2)
        (found,) = attribute_inputs(modernbert, trace, OTHER, methods=["integrated_gradients"])
        assert few.steps == 2 and not few.is_complete
        assert found.is_complete and found.steps == 64
        text, measure = EmbeddedText(modernbert, trace), measured(modernbert, trace, OTHER)
        with torch.inference_mode():
            whole, nothing = text.outcomes(measure, torch.stack([text.vectors, text.baseline])).tolist()
        assert found.difference == pytest.approx(whole - nothing, abs=1e-6)
        assert found.values.sum() == pytest.approx(whole - nothing, abs=0.01 * abs(whole - nothing) + 1e-6)

    @pytest.mark.parametrize(
        ("sum_of_values", "gap", "complete"),
        [(1.0, 0.009, True), (1.0, 0.02, False), (1.0, -0.02, False), (1e-7, 1e-7, True)],
    )
    def test_a_hundredth_of_the_difference_may_be_missing(self, sum_of_values, gap, complete):
        values = np.array([sum_of_values, 0], dtype=np.float32)
        found = InputAttribution(method="integrated_gradients", values=values, gap=gap)
        assert found.is_complete is complete


def test_rounding_is_left_out_unless_it_is_asked_for(tiny_model):
    """ModernBERT scales every token's vector to one length, so that no product with its gradient is left."""
    modernbert, bert = tiny_model("modernbert"), tiny_model("bert")
    assert "gradient_times_input" not in by_method(modernbert, modernbert.trace(TEXT), OTHER)
    asked = by_method(modernbert, modernbert.trace(TEXT), OTHER, methods=["gradient_times_input"])
    assert "gradient_times_input" in asked
    assert "gradient_times_input" in by_method(bert, bert.trace(TEXT), OTHER)
