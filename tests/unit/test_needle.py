"""A needle in a text: scores of attention made by hand, and of the real model against loops and against its own writing."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.stats import spearmanr

import attnviz
from attnviz.effects.needle import heads_off, needle_heads, needle_off, place_needle
from attnviz.errors import SelectionError, TextTooLongError
from attnviz.model.continuation import generate
from attnviz.model.interventions import ScaledOutput
from attnviz.records import Head

NEEDLE, QUESTION, ANSWER = (
    "The key to the cellar lies under the blue stone.",
    "The key to the cellar lies",
    "under the blue stone",
)
HAYSTACK = (
    "It rained all morning. The children sat by the window and counted the drops. Their mother baked bread, and the "
    "whole house smelled of it. At noon the sun came out. They ran into the garden, where the grass was still wet."
)
SHORT = {"needle": "a mat", "question": "a", "answer": "mat"}
TOLERANCE = 1e-5


def placed_in(model, **different):
    return place_needle(model, "the cat", **(SHORT | different), depth=1.0)


def test_a_head_that_copies_the_needle_has_the_score_1(headed):
    """Of the answer's three tokens the heads of layer 1 copy all, none, two, and none though all of its weight is on the needle."""
    model, _ = headed("llama")
    placed = placed_in(model)
    answer, ids = placed.answer_ids(), placed.tokens.ids.tolist()
    assert len(answer) == len(set(answer)) == 3
    right = [ids.index(number, placed.needle.start, placed.needle.stop) for number in answer]
    trace = model.trace_tokens(placed.tokens)
    call = trace.attention(1)
    weights = np.tile(np.eye(len(ids), dtype=np.float32), (len(call.query), 1, 1))
    weights[:, placed.asking.start : placed.asking.stop] = 0
    for step, row in enumerate(placed.asking):
        wrong = right[step - 1]
        weights[0, row, [right[step], wrong, 0]] = 0.5, 0.25, 0.25
        weights[1, row, [right[step], 0]] = 0.4, 0.6
        weights[2, row, [right[step] if step < 2 else wrong, 0]] = 0.75, 0.25
        weights[3:, row, [wrong, right[step]]] = 0.75, 0.25
    found = needle_heads(model, trace.with_layer(replace(call, weights=weights)), placed, **SHORT)
    np.testing.assert_allclose(found.copied[0, 1, :4], [1, 0, 2 / 3, 0], rtol=TOLERANCE)
    np.testing.assert_allclose(found.weights[0, 1, :4], [0.75, 0.4, 0.75, 1], atol=TOLERANCE)


def test_the_first_token_does_not_count_as_the_needle(headed):
    model, _ = headed("llama")
    placed = place_needle(model, "the cat", **SHORT, depth=0.0)
    assert placed.needle.start == 0
    trace = model.trace_tokens(placed.tokens)
    found = needle_heads(model, trace, placed, **SHORT)
    rows = trace.weights(1, 1)[placed.asking.start : placed.asking.stop]
    assert found.weights[0, 1, 1] == pytest.approx(
        rows[:, 1 : placed.needle.stop].sum(axis=1).mean(), rel=1e-4
    )


@pytest.fixture(scope="module")
def found(smollm2):
    return attnviz.needle(smollm2, HAYSTACK, NEEDLE, QUESTION, ANSWER, depths=[0.0, 0.5, 1.0])


@pytest.mark.slow
class TestSmolLM2:
    def text(self, depth):
        cut = {0.0: 0, 0.5: HAYSTACK.index("At noon"), 1.0: len(HAYSTACK)}[depth]
        spaces = ("", " ") if depth == 0 else (" ", "") if depth == 1 else ("", " ")
        return HAYSTACK[:cut] + spaces[0] + NEEDLE + spaces[1] + HAYSTACK[cut:] + f"\n\n{QUESTION}"

    @pytest.mark.parametrize("at", [0, 1, 2])
    def test_the_scores_are_those_of_wu_while_it_writes(self, smollm2, found, at):
        """Wu et al.'s own way: it writes greedily, and a head copies where its largest weight is on that token in the needle."""
        written = generate(smollm2, self.text((0.0, 0.5, 1.0)[at]), n_tokens=4)
        assert "".join(written.written) == "␣under␣the␣blue␣stone" and found.writes_answer
        assert found.answer_probabilities[at] == pytest.approx(written.probabilities.prod(), rel=1e-3)
        ids, trace = written.tokens.ids.tolist(), written.trace
        start, stop = next(
            (first, last)
            for last in range(written.n_read)
            for first in range(last - 1, -1, -1)
            if smollm2.decode(ids[first:last]).strip() == NEEDLE
        )
        assert found.places[at] == start
        assert found.depths[at] == pytest.approx((0, HAYSTACK.index("At noon") / len(HAYSTACK), 1)[at])
        for layer, head in [(18, 6), (20, 6), (23, 2), (14, 3), (0, 0), (29, 8)]:
            weights, copied, on = trace.weights(layer, head), 0, []
            for step in range(4):
                row = weights[written.n_read + step - 1]
                largest = int(row.argmax())
                copied += start <= largest < stop and ids[largest] == ids[written.n_read + step]
                on.append(row[max(start, 1) : stop].sum())
            assert found.copied[at, layer, head] == pytest.approx(copied / 4)
            assert found.weights[at, layer, head] == pytest.approx(np.mean(on), abs=1e-4)
        assert found.copied[at].max() >= 0.75

    def test_the_same_heads_find_it_wherever_it_is(self, found):
        for one, other in np.ndindex(3, 3):
            first, second = (found.weights[at].ravel() for at in (one, other))
            assert found.agreement[one, other] == pytest.approx(spearmanr(first, second).statistic, abs=1e-4)
            best = [set(np.argsort(-of, kind="stable")[:5].tolist()) for of in (first, second)]
            assert found.kept[one, other] == len(best[0] & best[1])
        assert found.agreement.min() > 0.5 and found.kept.min() >= 2
        assert found.ranked()[0] == Head(18, 6)

    def test_without_the_best_it_forgets_and_without_random_ones_it_does_not(self, smollm2, found):
        off = needle_off(
            smollm2, HAYSTACK, NEEDLE, QUESTION, ANSWER, found.ranked()[:5], depth=0.5, n_draws=3
        )
        assert off.base == pytest.approx(found.answer_probabilities[1], rel=1e-3)
        assert off.off < off.base / 2 and off.off < min(off.random)


def test_heads_off_are_those_of_a_trace_without_them(headed):
    model, _ = headed("llama")
    placed = placed_in(model)
    trace, heads = model.trace_tokens(placed.tokens), [Head(1, 0), Head(0, 1), Head(1, 1)]
    off = heads_off(model, trace, placed.probability(model), heads, n_draws=3, seed=1)
    assert len(off.random) == 3
    for drawn, number in [(heads, off.off), *zip(off.drawn, off.random, strict=True)]:
        assert [head.layer for head in sorted(drawn)] == [0, 1, 1]
        assert len(set(drawn)) == 3 and (drawn is heads or not set(drawn) & set(heads))
        interventions = [ScaledOutput(factor=0.0, layer=layer, head=head) for layer, head in drawn]
        changed = model.trace_tokens(placed.tokens, interventions=interventions)
        states = torch.tensor(changed.last_hidden_state)[placed.asking.start : placed.asking.stop]
        with torch.inference_mode():
            logits = model.language_head(inputs_embeds=states[None]).logits[0].double()
        wanted = logits.softmax(dim=-1)[range(len(placed.answer)), placed.answer_ids()].prod()
        assert number == pytest.approx(float(wanted), rel=1e-4)


def test_a_head_whose_output_weights_are_0_changes_nothing(headed):
    model, _ = headed("llama")
    placed, head = placed_in(model), Head(1, 2)
    weight = model.network.layers[1].self_attn.o_proj.weight
    d_head, before = weight.shape[1] // 6, weight.detach().clone()
    try:
        with torch.no_grad():
            weight[:, head.head * d_head : (head.head + 1) * d_head] = 0
        trace = model.trace_tokens(placed.tokens)
        off = heads_off(model, trace, placed.probability(model), [head], n_draws=4)
    finally:
        with torch.no_grad():
            weight.copy_(before)
    assert off.off == pytest.approx(off.base, rel=1e-6)
    assert np.abs(off.random - off.base).max() > 1e-5 * off.base


class TestPlacing:
    def test_it_stands_at_the_end_of_a_sentence(self, smollm2):
        for depth, before in [(0.0, ""), (0.1, "It rained all morning. "), (0.97, HAYSTACK)]:
            placed = place_needle(smollm2, HAYSTACK, NEEDLE, QUESTION, ANSWER, depth=depth)
            ids = placed.tokens.ids.tolist()
            assert smollm2.decode(ids[placed.needle.start : placed.needle.stop]).strip() == NEEDLE
            assert smollm2.decode(ids[: placed.needle.start]).strip() == before.strip()
            assert smollm2.decode(placed.answer_ids()) == f" {ANSWER}" and placed.answer.stop == len(ids)
            assert placed.asking == range(placed.answer.start - 1, placed.answer.stop - 1)

    def test_without_an_answer_the_question_asks(self, smollm2, embedded):
        placed = place_needle(smollm2, HAYSTACK, NEEDLE, QUESTION)
        ids = placed.tokens.ids.tolist()
        assert smollm2.decode(ids[placed.asking.start : placed.asking.stop]) == QUESTION and not placed.answer
        with pytest.raises(SelectionError, match="this needle was placed without one"):
            placed.probability(smollm2)
        of_encoder = place_needle(embedded, HAYSTACK, NEEDLE, QUESTION, ANSWER)
        labels = of_encoder.tokens.labels
        assert labels[of_encoder.asking.start : of_encoder.asking.stop] == (
            *("the", "key", "to", "the", "cellar", "lies"),
        )
        assert labels[-1] == "[SEP]" and labels[-2] == "lies"

    def test_the_text_is_cut_and_the_question_is_not(self, smollm2):
        with pytest.raises(TextTooLongError, match="at most 50"):
            place_needle(smollm2, HAYSTACK, NEEDLE, QUESTION, ANSWER, max_tokens=50)
        placed = place_needle(smollm2, HAYSTACK, NEEDLE, QUESTION, ANSWER, max_tokens=50, cut=True, depth=1.0)
        ids = placed.tokens.ids.tolist()
        assert 45 <= len(ids) <= 50 and smollm2.decode(ids).startswith("It rained all morning.")
        assert smollm2.decode(ids).endswith(f"{NEEDLE}\n\n{QUESTION} {ANSWER}")

    @pytest.mark.parametrize("most", [None, 30])
    @pytest.mark.parametrize("n_word", [700, 130_000 // 4])
    def test_of_a_text_far_too_long_is_read_what_the_model_reads(self, headed, n_word, most):
        """More than twice the tokens that the model reads, and more characters than attnviz takes."""
        model, _ = headed("llama")
        text = ("cat mat " * n_word)[: 4 * n_word]
        placed = place_needle(model, text, **SHORT, depth=1.0, cut=True, max_tokens=most)
        limit = most or model.max_tokens
        assert n_word > 2 * model.max_tokens and limit - 3 <= len(placed.tokens.ids) <= limit

    @pytest.mark.parametrize(
        ("different", "said"),
        [
            ({"depth": 1.5}, "depth 1.5"),
            ({"needle": " "}, "without a needle"),
            ({"question": ""}, "without a question"),
        ],
    )
    def test_says_what_it_takes(self, smollm2, different, said):
        given = {"needle": NEEDLE, "question": QUESTION, "depth": 0.5} | different
        with pytest.raises(SelectionError, match=said):
            place_needle(smollm2, HAYSTACK, **given)

    def test_a_model_of_two_texts_is_refused(self, tiny_model):
        with pytest.raises(SelectionError, match="has an encoder and a decoder"):
            place_needle(tiny_model("bart"), "the cat", "a mat", "a")


def test_progress_is_told_within_a_pass(headed):
    """Of two depths, the first pass is the half that each of its two layers takes a part of."""
    model, _ = headed("llama")
    told = []
    attnviz.needle(model, "the cat", **SHORT, depths=[0.0, 1.0], progress=told.append)
    assert told == sorted(told) and told[-1] == 1
    assert any(0 < share < 0.5 for share in told) and any(0.5 < share < 1 for share in told)
    told.clear()
    needle_off(model, "the cat", *SHORT.values(), [Head(0, 0)], n_draws=2, progress=told.append)
    assert told == sorted(told) and any(0 < share < 0.25 for share in told)


def test_places_that_are_the_same_are_read_once(headed):
    model, _ = headed("gpt2")
    found = attnviz.needle(model, "the cat", **SHORT, depths=[0.0, 0.1, 1.0, 0.9])
    assert found.depths == (0.0, 1.0) and found.weights.shape[0] == 2
    assert found.ranked(1)[0] == Head(*np.unravel_index(found.weights[1].argmax(), found.weights[1].shape))
