"""The reliability of a map, on maps whose figures can be worked out by hand."""

import numpy as np
import pytest
from scipy.stats import spearmanr

import attnviz
from attnviz.maps.reliability import rank_by_distance, reliability, trustworthiness
from attnviz.maths.ranks import rank_correlations
from attnviz.records import Reliability

SCORES = np.array([[3.0, 2.0, 1.0], [1.0, 3.0, 2.0]], dtype=np.float32)
KEYS = np.array([[0.0, 0.0], [1.0, 0.0], [3.0, 0.0]])
"""On a line at 0, 1 and 3."""
QUERIES = np.array([[-1.0, 0.0], [1.8, 0.0]])
"""Their distances to the keys are 1, 2, 4 and 1.8, 0.8, 1.2: in the order of SCORES, reversed."""


def figures(measured: Reliability) -> tuple[float, float, float]:
    return measured.order_correlation, measured.worst_correlation, measured.nearest_agreement


def test_a_perfect_map_is_believed_and_a_reversed_one_not() -> None:
    assert figures(reliability(QUERIES, KEYS, SCORES)) == pytest.approx((-1.0, -1.0, 1.0))
    assert figures(reliability(QUERIES, KEYS, -SCORES)) == pytest.approx((1.0, 1.0, 0.0))


def test_the_worst_query_is_named_beside_the_mean() -> None:
    # Row 0 in order; row 1 by rank 1 2 3 against distances of rank 3 1 2: 1 - 6 (4 + 1 + 1) / (3 * 8) = -0.5.
    scores = np.array([[3.0, 2.0, 1.0], [1.0, 2.0, 3.0]], dtype=np.float32)
    measured = reliability(QUERIES, KEYS, scores)
    assert figures(measured) == pytest.approx((-0.75, -0.5, 0.5))
    assert measured.worst_query == 1


def test_keys_that_a_query_may_not_see_do_not_count() -> None:
    queries = np.array([[-1.0, 0.0], [1.0, 0.0]])
    scores = np.array([[3.0, 2.0, -np.inf], [9.0, -np.inf, -np.inf]], dtype=np.float32)
    # The masked key is left out of the first row, and the second row has one key and so no order.
    assert figures(reliability(queries, KEYS, scores)) == pytest.approx((-1.0, -1.0, 1.0))
    assert reliability(queries[::-1], KEYS, scores[::-1]).worst_query == 1  # a position among all queries


def test_where_no_query_sees_two_keys_nothing_is_said() -> None:
    scores = np.array([[9.0, -np.inf, -np.inf], [-np.inf] * 3], dtype=np.float32)
    measured = reliability(QUERIES, KEYS, scores)
    assert np.isnan(figures(measured)).all()
    assert measured.worst_query is None


def test_scores_without_an_order_correlate_with_nothing() -> None:
    scores = np.array([[3.0, 2.0, 1.0], [2.0, 2.0, 2.0]], dtype=np.float32)
    measured = reliability(QUERIES, KEYS, scores)
    assert (measured.order_correlation, measured.worst_correlation) == pytest.approx((-0.5, 0.0))


def test_of_equally_near_keys_each_is_the_nearest_in_part() -> None:
    """The first query is as far from two keys, of which one is strongest; the second from all three."""
    queries, keys = np.array([[0.0], [9.0]]), np.array([[-1.0], [1.0], [4.0]])
    scores = np.array([[2.0, 1.0, 3.0], [1.0, 1.0, 5.0]], dtype=np.float32)
    assert reliability(queries, keys, scores).nearest_agreement == pytest.approx((0 + 1) / 2)
    scores = np.array([[5.0, 1.0, 3.0], [1.0, 1.0, 5.0]], dtype=np.float32)
    assert reliability(queries, keys, scores).nearest_agreement == pytest.approx((1 / 2 + 1) / 2)
    scores = np.array([[5.0, 5.0, 3.0], [1.0, 1.0, 5.0]], dtype=np.float32)
    assert reliability(queries, keys, scores).nearest_agreement == pytest.approx(1)


def test_the_figures_are_over_the_queries_that_see_two_keys() -> None:
    scores = np.array([[3.0, 2.0, -np.inf], [9.0, -np.inf, -np.inf]], dtype=np.float32)
    assert reliability(QUERIES, KEYS, scores).n_query == 1
    assert reliability(QUERIES, KEYS, SCORES).n_query == 2
    assert reliability(QUERIES, KEYS, np.full((2, 3), -np.inf, dtype=np.float32)).n_query == 0


def test_cosine_distance_looks_at_directions() -> None:
    queries, keys = np.array([[1.0, 0.0]]), np.array([[9.0, 0.0], [1.0, 1.0], [0.0, 1.0]])
    scores = np.array([[3.0, 2.0, 1.0]], dtype=np.float32)
    assert reliability(queries, keys, scores, metric="cosine").order_correlation == pytest.approx(-1.0)
    # In the plane they lie 8, 1 and 1.41 away.
    assert reliability(queries, keys, scores).order_correlation == pytest.approx(0.5)


def test_shuffled_points_say_nothing() -> None:
    random = np.random.default_rng(0)
    scores = random.normal(size=(200, 50)).astype(np.float32)
    measured = reliability(random.normal(size=(200, 2)), random.normal(size=(50, 2)), scores)
    assert measured.nearest_agreement < 0.1
    assert abs(measured.order_correlation) < 0.05
    assert measured.worst_correlation > 0.2


def test_rank_correlations_are_those_of_scipy_row_by_row() -> None:
    """With ties, and with different keys seen in each row."""
    random = np.random.default_rng(0)
    first, other = random.integers(-5, 5, (2, 41, 13)).astype(np.float32)
    seen = random.random((41, 13)) < 0.7
    expected = [spearmanr(a[s], b[s]).statistic for a, b, s in zip(first, other, seen, strict=True)]
    np.testing.assert_allclose(rank_correlations(first, other, seen), expected, atol=1e-12)
    assert np.ptp(expected) > 1


def test_four_points_are_enough_for_trustworthiness() -> None:
    """Equation 2 of Venna and Kaski for one neighbour: 1 - 2 / (4 * (8 - 3 - 1)) times by how much intruders' ranks exceed 1.

    With the points of two exchanged, the nearest of each had the ranks 2, 3, 3 and 2 among the vectors.
    """
    vectors = np.array([[0.0], [1.0], [10.0], [11.5]])
    assert trustworthiness(vectors, vectors, metric="euclidean") == 1.0
    exchanged = np.array([[0.0], [10.0], [1.0], [11.5]])
    assert trustworthiness(vectors, exchanged, metric="euclidean") == pytest.approx(1 - (1 + 2 + 2 + 1) / 8)
    assert np.isnan(trustworthiness(vectors[:3], vectors[:3], metric="euclidean"))


def test_the_rank_of_a_key_counts_the_nearer_ones(door_trace: attnviz.model.trace.Trace) -> None:
    projection = attnviz.project(door_trace, 3, 1, method="pca")
    points = {
        (role, int(at)): point
        for role, at, point in zip(projection.role, projection.position, projection.points, strict=True)
    }
    for query, key in ((7, 5), (3, 0), (0, 10)):
        far = {at: float(np.hypot(*(points["query", query] - points["key", at]))) for at in range(11)}
        assert rank_by_distance(projection, query, key) == sorted(far, key=far.__getitem__).index(key) + 1
