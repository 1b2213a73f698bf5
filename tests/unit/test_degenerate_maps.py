"""Maps of vectors that leave a method nothing to place: every map is finite, of reasonable size, and says what is wrong with it."""

from dataclasses import replace

import numpy as np
import pytest

import attnviz
from attnviz.effects.masking import cosine_change
from attnviz.errors import ProjectionError
from attnviz.figures import draw_projection
from attnviz.maps import attention_map
from attnviz.maps.joint_map import joint_map
from attnviz.maps.layouts import lay_out
from attnviz.maps.projection import place
from attnviz.maps.spaces import distances
from attnviz.records import Placement

METHODS = ["attention", "tsne", "pca", "mds", pytest.param("umap", marks=pytest.mark.nightly)]
PARAMETERS = {"perplexity": 5.0, "iterations": 250, "neighbours": 15, "min_dist": 0.1, "seed": 0}
ZEROS, ONES = np.zeros((9, 4), np.float32), np.ones((9, 4), np.float32)
DRAWN = np.random.default_rng(3).normal(size=(9, 4)).astype(np.float32)

COINCIDE = {
    "zeros": (ZEROS, ZEROS),
    "equal": (ONES, ONES),
    "equal up to rounding": (ONES + 1e-7 * DRAWN, ONES - 1e-7 * DRAWN),
    "equal and tiny": (1e-30 * ONES, 1e-30 * ONES),
    "equal and huge": (1e30 * ONES, 1e30 * ONES),
    "one token": (ZEROS[:1], ZEROS[:1]),
}
FEW_PLACES = {
    "two places": (ONES, -ONES),
    "three places": (DRAWN[[0, 1, 2] * 3], DRAWN[[2, 0, 1] * 3]),
    "two places among two tokens": (DRAWN[:2], DRAWN[:2]),
}
PLACED = {
    "zero queries": (ZEROS, DRAWN),
    "some zero queries": (np.where(np.arange(9)[:, None] < 4, ZEROS, DRAWN), DRAWN),
    "on a line": (np.arange(1, 10)[:, None] * DRAWN[:1], np.arange(1, 10)[:, None] * DRAWN[1:2]),
    "duplicates": (DRAWN[[0, 1, 2, 3] * 2], DRAWN[[0, 4, 2, 5] * 2]),
    "huge": (1e30 * DRAWN, 1e30 * DRAWN[::-1]),
    "tiny": (1e-30 * DRAWN, 1e-30 * DRAWN[::-1]),
    "one query": (DRAWN[:1], DRAWN[:6]),
    "one key": (DRAWN[:6], DRAWN[:1]),
}


def placed(query: np.ndarray, key: np.ndarray, method: str, **changes: object) -> Placement:
    scores = (query.astype(np.float64) @ key.T.astype(np.float64)).clip(-1e30, 1e30)
    shifted = np.exp(scores - scores.max(axis=1, keepdims=True))
    weights = (shifted / shifted.sum(axis=1, keepdims=True)).astype(np.float32)
    given = {"space": "raw", "dimensions": 2, "metric": "cosine"} | PARAMETERS | changes
    query, key = query.astype(np.float32), key.astype(np.float32)
    return place(query, key, scores.astype(np.float32), weights, method=method, **given)


@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("case", COINCIDE)
def test_vectors_that_are_the_same_have_one_point(case: str, method: str, metric: str) -> None:
    query, key = COINCIDE[case]
    made = placed(query, key, method, metric=metric)
    assert np.ptp(made.points, axis=0).tolist() == [0, 0]
    assert "all points coincide" in made.remark
    assert np.isnan(made.trustworthiness)
    assert not made.in_map.order_correlation > 0  # no order at all: 0, or NaN for one key


@pytest.mark.parametrize("space", ["raw", "centred", "balanced", "lifted"])
@pytest.mark.parametrize("dimensions", [2, 3])
def test_a_head_without_weights_is_no_cloud_in_any_space(space: str, dimensions: int) -> None:
    """0.1 of each vector, as a bias leaves it: centring leaves its rounding, which no map may widen."""
    bias = np.full((9, 4), 0.1, np.float32)
    made = placed(bias, bias, "tsne", space=space, dimensions=dimensions)
    assert np.abs(made.points).max() < 10
    assert "coincide" in made.remark or "at 2 places are too few" in made.remark


@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
@pytest.mark.parametrize("case", FEW_PLACES)
def test_few_places_are_no_map_by_neighbours(case: str, metric: str) -> None:
    query, key = FEW_PLACES[case]
    made = placed(query, key, "tsne", metric=metric)
    assert made.method == "pca" and "places are too few for t-SNE" in made.remark
    vectors = np.concatenate([query, key])
    assert np.abs(made.points).max() <= np.linalg.norm(vectors - vectors.mean(axis=0), axis=1).max() * 1.001


@pytest.mark.parametrize("metric", ["cosine", pytest.param("euclidean", marks=pytest.mark.nightly)])
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("case", PLACED)
def test_what_can_be_placed_is_placed(case: str, method: str, metric: str) -> None:
    query, key = PLACED[case]
    made = placed(query, key, method, metric=metric)
    vectors = np.concatenate([query, key]).astype(np.float64)
    assert np.isfinite(made.points).all()
    widest = np.abs(vectors).max() if method in ("pca", "mds") else 0.0
    assert np.abs(made.points).max() <= max(2_000, 4 * widest)
    if made.in_space is not None and made.in_space.n_query:
        assert np.isfinite([made.in_space.order_correlation, made.in_space.nearest_agreement]).all()
    if method in ("tsne", "umap"):
        same = (vectors[:, None] == vectors[None]).all(axis=2)
        assert (made.points[:, None] == made.points[None]).all(axis=2)[same].all()


@pytest.mark.parametrize(("n_query", "n_key"), [(1, 1), (1, 2), (2, 1), (2, 2), (3, 3), (2, 5), (5, 2)])
@pytest.mark.parametrize("dimensions", [2, pytest.param(3, marks=pytest.mark.nightly)])
def test_the_attention_map_of_a_few_tokens_is_small(n_query: int, n_key: int, dimensions: int) -> None:
    for seed in range(2):
        weights = np.random.default_rng(seed).dirichlet(np.full(n_key, 0.5), n_query).astype(np.float32)
        allowed = np.ones_like(weights, dtype=bool)
        queries, keys = attention_map.fit(weights, allowed, dimensions=dimensions)
        assert max(np.abs(queries).max(), np.abs(keys).max()) < 30
        implied = attention_map.implied_weights(queries, keys, allowed)
        assert attention_map.divergence(weights, implied).mean() < 0.05


def test_t5_with_one_token_of_its_decoder(tiny_model) -> None:
    trace = tiny_model("t5").trace("cat")
    for kind in trace.kinds:
        made = attnviz.project(trace, 0, 0, kind=kind, method="attention")
        assert np.abs(made.points).max() < 30


@pytest.mark.parametrize("method", ["attention", "tsne", "pca", "mds"])
def test_a_zeroed_head_is_drawn_as_one_point_that_says_so(embedded, door_trace, method: str) -> None:
    call = door_trace.attention(2)
    zeroed = replace(call, query=np.zeros_like(call.query), key=np.zeros_like(call.key))
    trace = door_trace.with_layer(zeroed)
    made = attnviz.project(trace, 2, 3, method=method, space="lifted" if method == "mds" else "raw")
    assert "coincide" in made.remark
    figure = draw_projection(made)
    assert figure.to_dict()["data"]


@pytest.mark.parametrize("method", ["pca", "tsne"])
def test_the_joint_map_of_equal_vectors_says_so(method: str) -> None:
    made = joint_map(ONES, ONES, [np.zeros((9, 9), np.float32)], method=method)
    assert "18 points at 2 places" in made.remark or method == "pca"
    same = joint_map(ZEROS, ZEROS, [np.zeros((9, 9), np.float32)], method=method)
    assert np.ptp(same.points, axis=0).tolist() == [0, 0] and "coincide" in same.remark


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("method", ["attention", "tsne", "pca", "mds"])
def test_numbers_that_are_not_finite_are_refused(method: str, wrong: float) -> None:
    spoilt = DRAWN.copy()
    spoilt[2, 1] = wrong
    with pytest.raises(ProjectionError, match="not finite"):
        place(spoilt, DRAWN, DRAWN @ DRAWN.T, np.full((9, 9), 1 / 9, np.float32), method=method,
              space="raw", dimensions=2, metric="cosine", **PARAMETERS)  # fmt: skip
    if method != "attention":
        with pytest.raises(ProjectionError, match="not finite"):
            lay_out(spoilt, method, **(PARAMETERS if method == "tsne" else {}))


def test_distances_of_zero_vectors_are_those_of_turned_states() -> None:
    vectors = np.array([[0, 0], [3, 4], [-6, -8], [4, -3], [0, 0]], np.float32)
    apart = distances(vectors, vectors, "cosine")
    np.testing.assert_allclose(apart[0], [0, 1, 1, 1, 0])
    np.testing.assert_allclose(apart[1], [1, 0, 2, 1, 1], atol=1e-12)
    for row, vector in zip(apart, vectors, strict=True):
        np.testing.assert_allclose(cosine_change(np.tile(vector, (5, 1)), vectors), row, atol=1e-7)
