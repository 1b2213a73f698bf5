"""Attributions of an outcome to tokens, each against its definition written out."""

from functools import reduce
from typing import get_args

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM

import attnviz
from attnviz.effects.attribution_methods import METHODS, AttributionMethod
from attnviz.effects.input_attribution import InputAttribution, attribute_inputs, available_methods
from attnviz.effects.outcome import Similarity, TokenAnswer, TokenState, measured
from attnviz.maths.attention_flow import attention_flow
from attnviz.maths.gradients import MOST_POINTS, PathIntegral
from attnviz.model.answers import token_id
from tests.hand_made import tokens
from tests.tiers import first_gates

TEXT, OTHER, STATE = "the cat sat on a mat", Similarity(text="a door opened"), TokenState(position=3)
TOLERANCE = 2e-5  # float32, rows of a batch summed in another order than one alone


def by_method(model, trace, outcome, **given):
    return {
        attribute_input.method: attribute_input
        for attribute_input in attribute_inputs(model, trace, outcome, **given)
    }


@pytest.mark.parametrize("outcome", [OTHER, STATE])
def test_norms_rollout_and_flow_are_rows_of_their_matrices(tiny_model, outcome):
    bert = tiny_model("bert")
    trace = bert.trace(TEXT)
    attributions = by_method(bert, trace, outcome, methods=["norms", "rollout", "flow"])
    rows = [3] if outcome is STATE else range(len(trace.tokens))
    norms = sum(trace.pattern(layer, None, measure="norms").weights for layer in range(3))
    layers = [trace.layer_weights(layer).mean(axis=0) for layer in range(3)]
    expected = {
        "norms": np.mean([norms[row] for row in rows], axis=0),
        "rollout": np.mean([trace.rollout(2)[row] for row in rows], axis=0),
        "flow": np.mean([attention_flow(layers, row) for row in rows], axis=0),
    }
    for method, values in expected.items():
        np.testing.assert_allclose(attributions[method].values, values, rtol=1e-5)
        assert attributions[method].baseline is None and not attributions[method].has_sign
    assert attributions["rollout"].values.sum() == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize("outcome", [OTHER, STATE])
def test_context_mixing_is_rows_of_its_rollout(tiny_model, outcome):
    bert = tiny_model("bert")
    trace = bert.trace(TEXT)
    rows = [3] if outcome is STATE else range(len(trace.tokens))
    for method, function in (("alti", attnviz.alti), ("value_zeroing", attnviz.value_zeroing)):
        (attribution,) = attribute_inputs(bert, trace, outcome, methods=[method])
        expected = np.mean([function(bert, trace).rollout[row] for row in rows], axis=0)
        np.testing.assert_allclose(attribution.values, expected, rtol=1e-5)
        assert attribution.passed and attribution.converged and not attribution.has_sign
        assert attribution.values.sum() == pytest.approx(1, abs=1e-5)


def test_parts_that_do_not_give_the_model_s_numbers_say_so():
    values = np.zeros(1, dtype=np.float32)
    off = InputAttribution(method="alti", tokens=tokens(["a"]), values=values, passed=False)
    assert not off.converged and off.title == "ALTI (not converged)"


@pytest.mark.parametrize(("method", "n_told"), [("norms", 3), ("flow", 8)])
def test_of_attention_each_layer_or_key_is_told(tiny_model, method, n_told):
    """Of one token's state: norms come layer by layer, flow key by key, which takes 6 s for 256 of them."""
    bert, told = tiny_model("bert"), []
    trace = bert.trace(TEXT)
    assert len(trace.tokens) == 8
    attribute_inputs(bert, trace, STATE, methods=[method], progress=told.append)
    assert told == pytest.approx([*(np.arange(n_told) + 1) / n_told, 1.0])


def test_norms_of_an_encoder_decoder_model_are_across(tiny_model):
    bart = tiny_model("bart")
    trace = bart.trace(TEXT, "it opened .")
    (attribution,) = attribute_inputs(bart, trace, TokenState(position=1), methods=["norms"])
    norms = [trace.pattern(layer, None, "cross", measure="norms").weights[1] for layer in range(4)]
    np.testing.assert_allclose(attribution.values, np.sum(norms, axis=0), rtol=1e-5)


def test_a_token_replaced_by_the_mask_token_is_a_masked_text(tiny_model):
    bert = tiny_model("bert")
    trace = bert.trace(TEXT)
    measure = measured(bert, trace, OTHER)
    (attribution,) = attribute_inputs(bert, trace, OTHER, methods=["token_replaced"], baseline="mask")
    assert attribution.baseline == "[MASK]"
    for position, number in enumerate(attribution.values):
        if trace.tokens.is_special[position]:
            assert number == 0
            continue
        masked = bert.trace(TEXT, masked=[position]).last_hidden_state
        expected = measure.value - float(measure(torch.tensor(masked)[None])[0])
        assert number == pytest.approx(expected, abs=TOLERANCE)


@pytest.mark.parametrize(
    "outcome", [Similarity(text="The door swung open while I looked on."), TokenState(position=7)]
)
def test_of_the_bundled_model_few_points_are_enough(embedded, door_trace, outcome):
    """Its outcomes curve little along the path, so the sum is right before any panel is halved."""
    (attribution,) = attribute_inputs(embedded, door_trace, outcome, methods=["integrated_gradients"])
    assert attribution.integral.converged and attribution.integral.n_points == 40
    assert attribution.sum == pytest.approx(
        attribution.integral.difference, abs=2e-3 * abs(attribution.integral.difference)
    )


def test_integrated_gradients_find_the_door(embedded, door_trace):
    """What the reader sees on the bundled model: of all tokens, replacing "door" costs the similarity most."""
    outcome = Similarity(text="The door swung open while I looked on.")
    attributions = by_method(embedded, door_trace, outcome)
    assert tuple(attributions) == tuple(
        method for method in METHODS if method not in ("shapley", "alti_logit")
    )
    words = ~door_trace.tokens.is_special
    for method in ("integrated_gradients", "token_replaced", "keys_masked"):
        assert door_trace.tokens.labels[attributions[method].order(words)[0]] == "door"
    assert attributions["integrated_gradients"].baseline == attributions["token_replaced"].baseline == "[PAD]"
    assert [result.method for result in attributions.values() if result.integral is not None] == [
        "integrated_gradients"
    ]


def test_an_order_begins_with_the_most_important():
    words = np.array([False, True, True, True, True])
    values = np.array([9, -2, 1, 1, 3], dtype=np.float32)
    signed = InputAttribution(method="integrated_gradients", tokens=tokens(["a"]), values=values)
    assert signed.order(words).tolist() == [4, 2, 3, 1]
    assert signed.order(words, -1).tolist() == [1, 2, 3, 4]
    lengths = InputAttribution(method="norms", tokens=tokens(["a"]), values=values)
    assert lengths.order(words, -1).tolist() == lengths.order(words).tolist() == [4, 2, 3, 1]


def test_progress_goes_through_all_methods(tiny_model):
    bert = tiny_model("bert")
    told = []
    attribute_inputs(bert, bert.trace(TEXT), OTHER, progress=told.append)
    assert told == sorted(told) and told[-1] == 1 and len(set(told)) > 7


@pytest.mark.parametrize(
    ("name", "outcome", "method", "message"),
    [
        ("bert", STATE, "gradient_times_input", "where its gradient is 0"),
        ("bart", OTHER, "rollout", "an encoder-decoder model reads two"),
        ("bart", OTHER, "flow", "an encoder-decoder model reads two"),
        ("bart", OTHER, "alti", "an encoder-decoder model reads two"),
        ("bart", OTHER, "value_zeroing", "an encoder-decoder model reads two"),
        ("laguna", OTHER, "alti", "does not know how the layers of"),
        ("bert", OTHER, "alti_logit", "a logit, or a difference of two"),
        ("bert", OTHER, "gradients", "“gradients” as methods"),
        ("bert", TokenState(position=99), "rollout", "Token 99"),
    ],
)
@pytest.mark.usefixtures("types_unchecked")
def test_what_is_not_there(tiny_model, name, outcome, method, message):
    model = tiny_model(name)
    with pytest.raises(attnviz.SelectionError, match=message):
        attribute_inputs(model, model.trace(TEXT), outcome, methods=[method])


def test_flow_of_a_long_text_is_not_offered(embedded):
    trace = embedded.trace("door " * 150)
    assert "flow" not in available_methods(embedded, trace, OTHER)
    assert "flow" in available_methods(embedded, trace, STATE)
    with pytest.raises(attnviz.SelectionError, match="at most 128 tokens, and the text has 152"):
        attribute_inputs(embedded, trace, OTHER, methods=["flow"])


class TestIntegratedGradients:
    """Against transformers' own network in float64, differentiated by torch at 4,000 even points."""

    @staticmethod
    def in_float64(folder, ids, baseline, at, chosen):
        """For each token the midpoint rule of gradient x path, of one token's logit minus another's."""
        network = AutoModelForCausalLM.from_pretrained(folder).eval().double()
        text = network.get_input_embeddings()(torch.tensor(ids)).detach()
        nothing = network.get_input_embeddings()(torch.tensor([baseline])).detach()
        way, total = text - nothing, torch.zeros(len(ids), dtype=torch.float64)

        def number(vectors):
            logits = network(inputs_embeds=vectors, use_cache=False).logits[:, at]
            return logits[:, chosen[0]] - logits[:, chosen[1]]

        for share in ((torch.arange(4000, dtype=torch.float64) + 0.5) / 4000).split(500):
            vectors = (nothing + share[:, None, None] * way).requires_grad_()
            (gradients,) = torch.autograd.grad(number(vectors).sum(), vectors)
            total += (gradients * way).sum(dim=(0, 2)) / 4000
        ends = number(torch.stack([text, nothing.expand_as(text)])).tolist()
        return total.numpy(), ends[0] - ends[1]

    @pytest.mark.parametrize("parts", first_gates([(0, 2), (1, 2)], [(0, 1)]), ids=["in parts", "whole"])
    def test_of_a_difference_of_logits(self, headed, parts):
        llama, folder = headed("llama")
        trace = llama.trace(TEXT)
        at = len(trace.tokens) - 1
        outcome = TokenAnswer(position=at, token="t", against="a")
        attribution = reduce(
            InputAttribution.joined,
            [
                attribute_inputs(llama, trace, outcome, methods=["integrated_gradients"], part=part)[0]
                for part in parts
            ],
        )
        chosen = [token_id(llama, name) for name in ("t", "a")]
        expected, difference = self.in_float64(
            folder, trace.tokens.ids, llama.tokenizer.convert_tokens_to_ids(attribution.baseline), at, chosen
        )
        assert expected.sum() == pytest.approx(difference, abs=1e-3 * abs(difference))  # of 4,000 points
        assert attribution.integral.difference == pytest.approx(difference, rel=1e-4)
        assert attribution.integral.converged
        assert abs(attribution.sum - difference) <= attribution.integral.error + 1e-4 * abs(difference)
        np.testing.assert_allclose(
            attribution.values, expected, atol=0.02 * max(abs(difference), np.abs(expected).max())
        )

    @pytest.mark.nightly
    @pytest.mark.parametrize(
        ("text", "answers", "most_points"),
        [
            ("The capital of France is", (" Paris", " London"), 60),
            pytest.param(
                "When Mary and John went to the store, John gave a drink to",
                (" Mary", " John"),
                MOST_POINTS,
                marks=pytest.mark.nightly,
            ),
        ],
    )
    def test_of_a_trained_decoder_the_error_is_stated(self, smollm2, text, answers, most_points):
        """The difference is that of two runs of the family's own code, with the padding token's vector for every token in one."""
        trace, own = smollm2.trace(text), smollm2.tokenizer
        outcome = TokenAnswer(position=len(trace.tokens) - 1, token=answers[0], against=answers[1])
        (attribution,) = attribute_inputs(
            smollm2, trace, outcome, methods=["integrated_gradients"], most_points=most_points
        )
        assert attribution.baseline == own.pad_token
        chosen = [own.encode(answer)[0] for answer in answers]
        ids = [trace.tokens.ids.tolist(), [own.pad_token_id] * len(trace.tokens)]
        with torch.inference_mode():
            table = smollm2.reference.get_input_embeddings().weight  # which is the language head too
            last = smollm2.reference(inputs_embeds=table[torch.tensor(ids)]).last_hidden_state[:, -1]
            whole, nothing = (last @ (table[chosen[0]] - table[chosen[1]])).tolist()
        assert attribution.integral.difference == pytest.approx(
            whole - nothing, abs=1e-3
        )  # of logits up to 20
        assert abs(attribution.sum - (whole - nothing)) <= attribution.integral.error + 1e-3
        assert attribution.integral.n_points <= most_points
        if most_points == MOST_POINTS:
            assert attribution.integral.converged
            assert attribution.sum == pytest.approx(whole - nothing, rel=0.02)

    @pytest.mark.parametrize(
        ("values", "difference", "error", "converged"),
        [
            ([1.0, 0.0], 1.0, 0.0099, True),
            ([1.0, 0.0], 1.0, 0.0101, False),
            ([2.0, -1.99], 0.01, 0.0199, True),  # of the largest value, where the sum is small
            ([2.0, -1.99], 0.01, 0.0201, False),
            ([1e-7, 0.0], 0.0, 1e-6, True),  # rounding
            ([1.0, 0.0], float("nan"), float("nan"), False),
        ],
    )
    def test_a_hundredth_may_be_missing(self, values, difference, error, converged):
        integral = PathIntegral(values=np.array(values), difference=difference, error=error, n_points=1)
        attribution = InputAttribution(
            method="integrated_gradients",
            tokens=tokens(["a", "b"]),
            values=np.array(values, dtype=np.float32),
            integral=integral,
        )
        assert integral.converged is attribution.converged is converged
        titles = "Integrated gradients", "integrated_gradients"
        written = attribution.title, attribution.frame().columns[2]
        assert (
            written == titles
            if converged
            else written == tuple(f"{title} (not converged)" for title in titles)
        )


def test_rounding_is_left_out_unless_it_is_asked_for(tiny_model):
    """ModernBERT scales every token's vector to one length, so that no product with its gradient is left."""
    modernbert, bert = tiny_model("modernbert"), tiny_model("bert")
    assert "gradient_times_input" not in by_method(modernbert, modernbert.trace(TEXT), OTHER)
    asked = by_method(modernbert, modernbert.trace(TEXT), OTHER, methods=["gradient_times_input"])
    assert "gradient_times_input" in asked
    assert "gradient_times_input" in by_method(bert, bert.trace(TEXT), OTHER)


def test_each_method_is_described_once():
    assert tuple(METHODS) == get_args(AttributionMethod)
    assert len({method.title for method in METHODS.values()}) == len(METHODS)
