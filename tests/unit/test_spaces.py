"""What a map is fed with: what each space keeps of the attention, on random vectors and on the model's own."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from scipy.stats import spearmanr

import attnviz
from attnviz.maps.spaces import SPACES, Space, fed
from attnviz.model.trace import Trace


@pytest.fixture
def vectors() -> tuple[np.ndarray, np.ndarray]:
    """Seven queries and eleven keys of five dimensions, all keys far off the origin."""
    random = np.random.default_rng(0)
    queries, keys = random.normal(size=(7, 5)), random.normal(3.0, 2.0, size=(11, 5))
    return queries.astype(np.float32), keys.astype(np.float32)


def weights(queries: np.ndarray, keys: np.ndarray) -> np.ndarray:
    exponentials = np.exp(queries.astype(np.float64) @ keys.astype(np.float64).T)
    return exponentials / exponentials.sum(axis=1, keepdims=True)


def correlations(queries: np.ndarray, keys: np.ndarray, scores: np.ndarray) -> list[float]:
    """Spearman's correlation of score and distance, by scipy, of each query."""
    distances = cdist(queries.astype(np.float64), keys.astype(np.float64))
    return [spearmanr(*rows).statistic for rows in zip(scores, distances, strict=True)]


def test_raw_vectors_are_as_they_are(vectors) -> None:
    queries, keys = fed(*vectors, "raw")
    np.testing.assert_array_equal(queries, vectors[0])
    np.testing.assert_array_equal(keys, vectors[1])


@pytest.mark.parametrize("space", [space for space in SPACES if space != "lifted"])
def test_weights_are_what_they_were(vectors, space: Space) -> None:
    np.testing.assert_allclose(weights(*fed(*vectors, space)), weights(*vectors), rtol=1e-4)


def test_shifting_queries_would_change_the_weights(vectors) -> None:
    queries, keys = vectors
    assert not np.allclose(weights(queries - queries.mean(axis=0), keys), weights(*vectors), atol=0.05)


def test_centred_keys_have_their_mean_at_zero_and_queries_stay(vectors) -> None:
    queries, keys = fed(*vectors, "centred")
    np.testing.assert_allclose(keys.mean(axis=0), 0, atol=1e-6)
    np.testing.assert_array_equal(queries, vectors[0])


def test_balanced_vectors_are_of_one_length_and_keep_every_score_of_centred_ones(vectors) -> None:
    queries, keys = fed(vectors[0] * 50, vectors[1], "balanced")
    lengths = [float(np.median(np.linalg.norm(group, axis=1))) for group in (queries, keys)]
    assert lengths[0] == pytest.approx(lengths[1], rel=1e-5)
    centred = fed(vectors[0] * 50, vectors[1], "centred")
    np.testing.assert_allclose(queries @ keys.T, centred[0] @ centred[1].T, rtol=1e-4, atol=1e-3)


def test_lift_orders_keys_exactly_as_attention_does(vectors) -> None:
    scores = vectors[0].astype(np.float64) @ vectors[1].astype(np.float64).T
    assert correlations(*fed(*vectors, "lifted"), scores) == pytest.approx([-1.0] * 7)
    assert max(correlations(*vectors, scores)) > -0.9  # which the vectors as they are do not


def test_lift_orders_keys_of_the_model_exactly(door_trace: Trace) -> None:
    for layer in range(door_trace.n_layers()):
        for head in range(door_trace.n_heads(0)):
            queries, keys = door_trace.query(layer, head), door_trace.key(layer, head)
            scores = queries.astype(np.float64) @ keys.astype(np.float64).T
            rank_correlations = correlations(*fed(queries, keys, "lifted"), scores)
            assert rank_correlations == pytest.approx([-1.0] * len(rank_correlations)), (layer, head)


def test_lifted_distance_is_the_one_of_the_formula(vectors) -> None:
    queries, keys = vectors[0].astype(np.float64), vectors[1].astype(np.float64)
    centred = keys - keys.mean(axis=0)
    longest = np.linalg.norm(centred, axis=1).max()
    expected = (queries**2).sum(axis=1)[:, None] + longest**2 - 2 * queries @ centred.T
    np.testing.assert_allclose(cdist(*fed(*vectors, "lifted")) ** 2, expected, rtol=1e-5)


@pytest.mark.parametrize("space", SPACES)
def test_one_key_and_equal_keys_are_no_error(space: Space) -> None:
    for n_key in (1, 3):
        queries, keys = fed(np.zeros((2, 5), np.float32), np.ones((n_key, 5), np.float32), space)
        assert np.isfinite(queries).all()
        assert np.isfinite(keys).all()


@pytest.mark.usefixtures("types_unchecked")
def test_no_such_space(vectors) -> None:
    with pytest.raises(attnviz.ProjectionError, match="'curved' were asked for; a map takes raw, centred"):
        fed(*vectors, "curved")
