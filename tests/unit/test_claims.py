"""Common claims about attention, on matrices written by hand, and recomputed for the real model."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import spearmanr

import attnviz
from attnviz.heads import claims, facts
from tests import hand_made

LABELS = ("[CLS]", "a", "b", "[SEP]")
SYMMETRIC = np.array([[0.5, 0.3, 0.1, 0.1], [0.3, 0.5, 0.1, 0.1], [0.1, 0.1, 0.6, 0.2], [0.1, 0.1, 0.2, 0.6]])
LOOKS_BACK = np.array([[1.0, 0, 0, 0], [1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0]])
EVEN = np.full((4, 4), 0.25)


@pytest.fixture
def on_paper():
    weights = np.array([[SYMMETRIC, LOOKS_BACK, EVEN]], dtype=np.float32)
    return claims.measure(hand_made.trace(weights, LABELS))


def test_symmetry_on_paper(on_paper):
    # LOOKS_BACK: four weights of 1, one on the diagonal; the other three are never returned: 6 / 8.
    np.testing.assert_allclose(on_paper.weight_asymmetry, [[0, 0.75, 0]], atol=1e-6)
    # keys of hand_made are unit vectors, so K K^T is the identity and every head's would be symmetric
    np.testing.assert_allclose(on_paper.tied_asymmetry, 0, atol=1e-7)


def test_the_diagonal_on_paper(on_paper):
    np.testing.assert_allclose(on_paper.on_itself[0, :2], [1, 0.25])
    np.testing.assert_allclose(on_paper.on_special[0, :2], [0, 0.25])  # "a" to [CLS], which attends to itself
    np.testing.assert_allclose(
        on_paper.on_neighbour[0, :2], [0, 0.5]
    )  # [CLS] is special first, then a neighbour


@pytest.mark.parametrize(
    ("labels", "special", "first", "neighbour"), [("abcd", 0, 0.5, 0.25), (("[CLS]", *"bcd"), 0.5, 0, 0.25)]
)
def test_a_decoder_rests_on_its_first_token(labels, special, first, neighbour):
    """The query "a" is itself, "b" and "c" attend most to "a", which stands beside "b", and "d" to "c"."""
    weights = np.array([[1.0, 0, 0, 0], [0.9, 0.1, 0, 0], [0.8, 0.1, 0.1, 0], [0.2, 0.1, 0.6, 0.1]])
    allowed = np.tril(np.ones((4, 4), dtype=bool))
    measured = claims.measure(
        hand_made.trace(
            weights[None, None].astype(np.float32), tuple(labels), kind="decoder", allowed=allowed
        )
    )
    assert (measured.on_itself[0, 0], measured.on_special[0, 0]) == (0.25, special)
    assert (measured.on_first[0, 0], measured.on_neighbour[0, 0]) == (first, neighbour)


def test_an_encoder_has_no_resting_place_but_special_tokens():
    weights = np.array([[0.8, 0.1, 0.1], [0.8, 0.1, 0.1], [0.8, 0.1, 0.1]], dtype=np.float32)
    measured = claims.measure(hand_made.trace(weights[None, None], tuple("abc")))
    assert (measured.on_first[0, 0], measured.on_neighbour[0, 0]) == (0, pytest.approx(1 / 3))


def test_how_full_on_paper(on_paper):
    # Of 4.0, 3.6 are wanted: of SYMMETRIC .6 .6 .5 .5 .3 .3 .2 .2 (3.2) and four of the .1; of EVEN 15 of 16.
    np.testing.assert_allclose(on_paper.cells_for_most, [[12 / 16, 4 / 16, 15 / 16]])
    np.testing.assert_allclose(on_paper.positive[0, [0, 2]], 1)


def test_keys_that_may_not_be_seen_do_not_count():
    allowed = np.tril(np.ones((3, 3), dtype=bool))
    weights = np.array([[[1.0, 0, 0], [0.5, 0.5, 0], [0.2, 0.4, 0.4]]])[None].astype(np.float32)
    measured = claims.measure(hand_made.trace(weights, ("a", "b", "c"), kind="decoder", allowed=allowed))
    assert measured.positive[0, 0] == 1
    assert measured.cells_for_most[0, 0] == pytest.approx(5 / 6)  # 1 .5 .5 .4 and one more .4 reach 2.7
    assert measured.seen[0, 0] == pytest.approx(6 / 9)


@pytest.mark.parametrize(("family", "is_mutual"), [("gpt2", False), ("llama", False), ("bert", True)])
def test_scores_are_compared_where_two_tokens_see_each_other(family, is_mutual, tiny_model):
    measured = claims.measure(tiny_model(family).trace("the cat sat on a mat"))
    for asymmetry in (measured.score_asymmetry, measured.tied_asymmetry):
        assert np.isfinite(asymmetry).all() == is_mutual
        assert np.isnan(asymmetry).all() != is_mutual
    assert (
        measured.on_itself + measured.on_special + measured.on_first + measured.on_neighbour
    ).max() <= 1 + 1e-6
    assert is_mutual == (not measured.on_first.any())


def test_the_three_kinds_of_strongest_keys_are_disjoint(door_trace):
    """Counted one by one, in the order in which they are said to be counted."""
    measured, special = claims.measure(door_trace), door_trace.tokens.is_special
    for layer, head in np.ndindex(6, 12):
        counted = {"itself": 0, "special": 0, "neighbour": 0, "other": 0}
        for query, key in enumerate(door_trace.weights(layer, head).argmax(axis=1)):
            if key == query:
                counted["itself"] += 1
            elif special[key]:
                counted["special"] += 1
            elif abs(key - query) == 1:
                counted["neighbour"] += 1
            else:
                counted["other"] += 1
        assert measured.on_itself[layer, head] == pytest.approx(counted["itself"] / 11)
        assert measured.on_special[layer, head] == pytest.approx(counted["special"] / 11)
        assert measured.on_neighbour[layer, head] == pytest.approx(counted["neighbour"] / 11)


def test_the_real_model_by_another_way(door_trace):
    measured = claims.measure(door_trace)
    for layer, head in ((0, 3), (3, 1), (5, 11)):
        weights = door_trace.weights(layer, head).astype(np.float64)
        norms = door_trace.pattern(layer, head, measure="norms").weights
        scores = door_trace.scores(layer, head).astype(np.float64)
        at = layer, head
        pairs = [(i, j) for i in range(11) for j in range(11)]
        apart = sum(abs(weights[i, j] - weights[j, i]) for i, j in pairs)
        assert measured.weight_asymmetry[at] == pytest.approx(apart / (2 * weights.sum()), rel=1e-5)
        apart = sum(abs(scores[i, j] - scores[j, i]) for i, j in pairs)
        assert measured.score_asymmetry[at] == pytest.approx(apart / (2 * np.abs(scores).sum()), rel=1e-5)
        expected = np.mean([spearmanr(weights[i], norms[i]).statistic for i in range(11)])
        assert measured.rank_agreement[at] == pytest.approx(expected, rel=1e-5)
        other = np.mean([norms[i].argmax() != weights[i].argmax() for i in range(11)])
        assert measured.other_strongest[at] == pytest.approx(other)
    key = door_trace.key(3, 1).astype(np.float64)
    tied = np.exp(key @ key.T / np.sqrt(32))
    tied /= tied.sum(axis=1, keepdims=True)
    assert measured.tied_asymmetry[3, 1] == pytest.approx(np.abs(tied - tied.T).sum() / 22, rel=1e-5)


def test_cross_attention_has_no_diagonal(tiny_model):
    trace = tiny_model("bart").trace("the cat sat", "a door")
    with pytest.raises(attnviz.SelectionError, match="Select self-attention"):
        claims.measure(trace, "cross")
    assert claims.measure(trace, "decoder").on_itself.shape == (4, 5)


def test_the_first_token_of_a_decoder_need_not_add_what_its_weight_says():
    """It has the largest weight, 0.7, and a tenth of the norm-based weight of the last key over one half."""
    weights = np.array([[1, 0, 0], [0.8, 0.2, 0], [0.7, 0.1, 0.2]], dtype=np.float32)
    norms = np.array([[1, 0, 0], [0.1, 0.3, 0], [0.1, 0.3, 0.5]], dtype=np.float32)
    allowed = np.tril(np.ones((3, 3), dtype=bool))
    labels = ("a", "b", "c")
    for kind, expected in (("decoder", (0, 2, pytest.approx(0.2))), ("encoder", None)):
        pattern = hand_made.trace(weights[None, None], labels, kind=kind, allowed=allowed).pattern(0, 0)
        of_norms = replace(pattern, weights=norms, measure="norms", scores=None)
        addition = facts.small_addition(pattern, of_norms, 2, 2)
        assert (addition and (addition.special, addition.key, addition.share)) == expected
