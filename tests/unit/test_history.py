"""The road to scaled dot products: every way against float64 numpy written from the papers' formulas."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from attnviz.figures.label_placement import written_numbers
from attnviz.lessons.history import departure, scale_effect, scoring_variants
from tests import hand_made, numpy_attention


def softmax(scores: np.ndarray) -> np.ndarray:
    return np.exp(scores - scores.max()) / np.exp(scores - scores.max()).sum()


def drawn(d_head: int, seed: int) -> list[np.ndarray]:
    """W, U and v in the order in which they are drawn."""
    generator = torch.Generator().manual_seed(seed)
    shapes = ((d_head, d_head), (d_head, d_head), (d_head,))
    return [torch.randn(*shape, generator=generator).double().numpy() / d_head**0.5 for shape in shapes]


def by_formula(query, key, seed):
    first, second, last = drawn(len(query), seed)
    return {
        "fixed": np.full(len(key), 1 / len(key)),
        "additive": softmax(np.array([np.tanh(query @ first + value @ second) @ last for value in key])),
        "general": softmax(np.array([query @ first @ value for value in key])),
        "dot": softmax(key @ query),
        "scaled": softmax(key @ query / len(query) ** 0.5),
    }


@pytest.mark.parametrize(("layer", "head", "query", "seed"), [(3, 1, 7, 0), (0, 11, 2, 5)])
def test_every_way_is_its_paper_s(door_trace, layer, head, query, seed):
    vectors = [
        of(layer, head).astype(np.float64) for of in (door_trace.query, door_trace.key, door_trace.value)
    ]
    variants = {
        variant.name: variant
        for variant in scoring_variants(door_trace, layer, head, query, other=4, seed=seed)
    }
    expected = by_formula(vectors[0][query], vectors[1], seed)
    others = by_formula(vectors[0][4], vectors[1], seed)
    assert list(variants) == ["fixed", "additive", "general", "dot", "scaled"]
    for name, variant in variants.items():
        np.testing.assert_allclose(
            variant.weights, expected[name], atol=2e-5, err_msg=name
        )  # scores of 40, float32
        np.testing.assert_allclose(variant.other_weights, others[name], atol=2e-5, err_msg=name)
        np.testing.assert_allclose(variant.context, expected[name] @ vectors[2], atol=1e-4, err_msg=name)
    np.testing.assert_allclose(variants["scaled"].weights, door_trace.weights(layer, head)[query], atol=1e-6)
    assert variants["fixed"].scores is None


def test_what_they_cost_on_paper(tiny_model):
    """Cross-attention of BART: 5 heads of 2 numbers, and other numbers of queries and keys."""
    trace = tiny_model("bart").trace("the old door was opened", "who")
    n_query, n_key, d = len(trace.query_tokens("cross")), len(trace.key_tokens("cross")), 2
    assert trace.query(0, 0, "cross").shape == (n_query, d)
    assert n_query != n_key
    variants = {variant.name: variant for variant in scoring_variants(trace, 0, 4, 1, "cross", other=0)}
    pairs = n_query * n_key
    assert {
        name: (variant.n_parameters, variant.n_multiplications) for name, variant in variants.items()
    } == {
        "fixed": (0, 0),
        "additive": (4 + 4 + 2, 4 * n_query + 4 * n_key + 2 * pairs),
        "general": (4, 4 * n_query + 2 * pairs),
        "dot": (0, 2 * pairs),
        "scaled": (0, 2 * n_query + 2 * pairs),
    }
    assert all(len(result.weights) == n_key for result in variants.values())


def test_a_mask_holds_for_all_but_the_fixed_vector(tiny_model):
    trace = tiny_model("gpt2").trace("the cat sat on the mat")
    n = len(trace.tokens)
    for variant in scoring_variants(trace, 1, 1, 2, other=3):
        if variant.name == "fixed":
            np.testing.assert_allclose(variant.weights, 1 / n, atol=1e-7)
            np.testing.assert_array_equal(variant.weights, variant.other_weights)
        else:
            assert (variant.weights[:3] > 0).all()
            assert variant.weights[3:].tolist() == [0.0] * (n - 3)
            assert variant.other_weights[3] > 0
        assert variant.weights.sum() == pytest.approx(1, abs=1e-6)


def test_heads_that_share_their_keys(tiny_model):
    trace = tiny_model("llama").trace("the cat sat")
    [*_, scaled] = scoring_variants(trace, 0, 5, 1, other=0)
    seen = np.tril(np.ones((len(trace.tokens),) * 2, dtype=bool))
    expected = numpy_attention.weights(trace.query(0, 5), trace.key(0, 5), 10**-0.5, allowed=seen)
    np.testing.assert_allclose(scaled.weights, expected[1], atol=1e-6)


def test_one_token(tiny_model):
    trace = tiny_model("gpt2").trace("a")
    assert len(trace.tokens) == 1
    for variant in scoring_variants(trace, 0, 0, 0, other=0):
        assert variant.weights.tolist() == [1.0]
        np.testing.assert_allclose(variant.context, trace.value(0, 0)[0], rtol=1e-6)


@pytest.mark.parametrize("changes", [{}, {"scale": 1 / 3}, {"softcap": 4.0}, {"bias": True}])
def test_how_far_a_model_departs_from_the_formula_of_2017(changes):
    """Four keys of nine dimensions that are unit vectors, so that products are the logarithms of the weights."""
    weights = np.array([[0.5, 0.25, 0.125, 0.125]] * 4)
    trace = hand_made.trace(weights[None, None], ["a", "b", "c", "d"])
    own = {"bias": np.full((1, 4, 4), [0, 0, 1, 0], dtype=np.float32)} if "bias" in changes else changes
    [call] = trace.layers["encoder"]
    wide = {name: np.pad(getattr(call, name), [(0, 0), (0, 0), (0, 5)]) for name in ("query", "key")}
    trace = replace(trace, layers={"encoder": (replace(call, **wide, **own),)})
    steps = {step.name: step for step in scoring_variants(trace, 0, 0, 2, other=0)}
    apart = departure(trace, 0, 0, 2, steps["scaled"])
    scale = changes.get("scale", 1.0)
    scores = [scale * math.log(weight) for weight in weights[2]]
    if "softcap" in changes:
        scores = [4 * math.tanh(score / 4) for score in scores]
    if "bias" in changes:
        scores[2] += 1
    total = math.fsum(map(math.exp, scores))
    roots = [math.cbrt(weight) / math.fsum(map(math.cbrt, weights[2])) for weight in weights[2]]
    largest = max(abs(math.exp(score) / total - root) for score, root in zip(scores, roots, strict=True))
    assert apart.difference == pytest.approx(largest, abs=1e-6)
    assert apart.scale == (None if scale == 1 / 3 else 1.0)  # 1 / sqrt(9) is the formula's
    assert (apart.softcap, apart.has_bias) == (changes.get("softcap"), "bias" in changes)
    effect = scale_effect(steps["scaled"], steps["dot"])
    assert (effect.scaled, effect.unscaled) == pytest.approx((max(roots), 0.5))
    assert effect.largest_change == pytest.approx(
        max(abs(root - weight) for root, weight in zip(roots, weights[2], strict=True))
    )


def test_numbers_of_a_row_stand_apart_and_the_tiny_are_left_out() -> None:
    row = np.array(
        [0.30, 0.29, 0.02, 0.02, 0.02, 0.02, 0.02, 0.01, 0.11, 0.10, 0.09]
    )  # 11 places: every second one at most
    assert written_numbers(row) == [0, 8, 10, 2, 4, 6]
    assert written_numbers(row, first=1) == [1, 8, 10, 3, 5]
    assert written_numbers(np.array([0.9, 0.06, 0.04])) == [0, 1]  # 0.04 is less than a twentieth of 0.9
