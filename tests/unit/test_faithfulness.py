"""How far a map can be believed, on maps whose figures can be worked out by hand."""

import itertools

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from scipy.stats import rankdata, spearmanr

import attnviz
from attnviz.maps.faithfulness import chance_correlation, faithfulness, rank_by_distance
from attnviz.maths.ranks import rank_correlations
from attnviz.model.loading import Model
from attnviz.records import Faithfulness

SCORES = np.array([[3.0, 2.0, 1.0], [1.0, 3.0, 2.0]], dtype=np.float32)
KEYS = np.array([[0.0, 0.0], [1.0, 0.0], [3.0, 0.0]])
"""On a line at 0, 1 and 3."""
QUERIES = np.array([[-1.0, 0.0], [1.8, 0.0]])
"""Their distances to the keys are 1, 2, 4 and 1.8, 0.8, 1.2: in the order of SCORES, reversed."""


def figures(found: Faithfulness) -> tuple[float, float, float]:
    return found.order_correlation, found.worst_correlation, found.nearest_agreement


def test_a_perfect_map_is_believed_and_a_reversed_one_not() -> None:
    assert figures(faithfulness(QUERIES, KEYS, SCORES)) == pytest.approx((-1.0, -1.0, 1.0))
    assert figures(faithfulness(QUERIES, KEYS, -SCORES)) == pytest.approx((1.0, 1.0, 0.0))


def test_the_worst_query_is_named_beside_the_mean() -> None:
    # Row 0 in order; row 1 by rank 1 2 3 against distances of rank 3 1 2: 1 - 6 (4 + 1 + 1) / (3 * 8) = -0.5.
    scores = np.array([[3.0, 2.0, 1.0], [1.0, 2.0, 3.0]], dtype=np.float32)
    found = faithfulness(QUERIES, KEYS, scores)
    assert figures(found) == pytest.approx((-0.75, -0.5, 0.5))
    assert found.worst_query == 1


def test_keys_that_a_query_may_not_see_do_not_count() -> None:
    queries = np.array([[-1.0, 0.0], [1.0, 0.0]])
    scores = np.array([[3.0, 2.0, -np.inf], [9.0, -np.inf, -np.inf]], dtype=np.float32)
    # The masked key is left out of the first row, and the second row has one key and so no order.
    assert figures(faithfulness(queries, KEYS, scores)) == pytest.approx((-1.0, -1.0, 1.0))
    assert faithfulness(queries[::-1], KEYS, scores[::-1]).worst_query == 1  # a position among all queries


def test_where_no_query_sees_two_keys_nothing_is_said() -> None:
    scores = np.array([[9.0, -np.inf, -np.inf], [-np.inf] * 3], dtype=np.float32)
    found = faithfulness(QUERIES, KEYS, scores)
    assert np.isnan(figures(found)).all()
    assert found.worst_query is None


def test_scores_without_an_order_correlate_with_nothing() -> None:
    scores = np.array([[3.0, 2.0, 1.0], [2.0, 2.0, 2.0]], dtype=np.float32)
    found = faithfulness(QUERIES, KEYS, scores)
    assert (found.order_correlation, found.worst_correlation) == pytest.approx((-0.5, 0.0))


def test_cosine_distance_looks_at_directions() -> None:
    queries, keys = np.array([[1.0, 0.0]]), np.array([[9.0, 0.0], [1.0, 1.0], [0.0, 1.0]])
    scores = np.array([[3.0, 2.0, 1.0]], dtype=np.float32)
    assert faithfulness(queries, keys, scores, metric="cosine").order_correlation == pytest.approx(-1.0)
    # In the plane they lie 8, 1 and 1.41 away.
    assert faithfulness(queries, keys, scores).order_correlation == pytest.approx(0.5)


def test_shuffled_points_say_nothing() -> None:
    random = np.random.default_rng(0)
    scores = random.normal(size=(200, 50)).astype(np.float32)
    found = faithfulness(random.normal(size=(200, 2)), random.normal(size=(50, 2)), scores)
    assert found.nearest_agreement < 0.1
    assert abs(found.order_correlation) < 0.05
    assert found.worst_correlation > 0.2


def test_rank_correlations_are_those_of_scipy_row_by_row() -> None:
    """With ties, and with other keys that are seen in each row."""
    random = np.random.default_rng(0)
    one, other = random.integers(-5, 5, (2, 41, 13)).astype(np.float32)
    seen = random.random((41, 13)) < 0.7
    expected = [spearmanr(a[s], b[s]).statistic for a, b, s in zip(one, other, seen, strict=True)]
    np.testing.assert_allclose(rank_correlations(one, other, seen), expected, atol=1e-12)
    assert np.ptp(expected) > 1


class TestChance:
    @pytest.mark.parametrize("n_key", range(3, 9))
    def test_of_all_orders_of_a_query_s_keys_at_most_one_in_twenty_falls_below_it(self, n_key: int) -> None:
        """One query is the worst case: queries that order the keys alike vary together."""
        orders = np.array(list(itertools.permutations(range(n_key))))
        squares = ((orders - np.arange(n_key)) ** 2).sum(axis=1)
        correlations = 1 - 6 * squares / (n_key**3 - n_key)
        limit = chance_correlation(np.zeros((1, n_key), dtype=np.float32))
        share = np.mean(correlations < limit)
        assert share <= 1 / 20
        assert share > 0.025 or limit < -1  # or it would be far too strict

    @pytest.mark.parametrize("n_key", [10, 11, 12, 20, 60])
    def test_nor_do_more_of_the_orders_of_many_keys(self, n_key: int) -> None:
        drawn = np.random.default_rng(0).random((100_000, n_key)).argsort(axis=1)
        correlations = 1 - 6 * ((drawn - np.arange(n_key)) ** 2).sum(axis=1) / (n_key**3 - n_key)
        limit = chance_correlation(np.zeros((1, n_key), dtype=np.float32))
        assert 0.035 < np.mean(correlations < limit) <= 1 / 20

    @pytest.mark.parametrize("text", ["it opened.", "I was watching the door when it opened."])
    @pytest.mark.parametrize("method", ["attention", "pca"])
    def test_maps_of_the_model_whose_keys_are_shuffled(self, text: str, method: str, embedded: Model) -> None:
        """By scipy alone: ranks of scores and distances, and Pearson's correlation of them."""
        trace, random = embedded.trace(text), np.random.default_rng(0)
        n, shares = len(trace.tokens), []
        for layer in range(6):
            scores = trace.scores(layer, 1)
            map_ = attnviz.project(trace, layer, 1, method=method)
            distances = cdist(map_.points[:n], map_.points[n:])
            ranks = [rankdata(one, axis=1) - (n + 1) / 2 for one in (scores, distances)]
            first, second = (one / np.linalg.norm(one, axis=1, keepdims=True) for one in ranks)
            means = [(first * second[:, random.permutation(n)]).sum(axis=1).mean() for _ in range(1000)]
            shares.append(np.mean(np.array(means) < chance_correlation(scores)))
        assert max(shares) <= 1 / 20

    def test_counts_the_keys_that_each_query_may_see(self) -> None:
        scores = np.where(np.tri(5, dtype=bool), np.float32(1.0), np.float32(-np.inf))
        # The first query has one key and so no order; the others have 2 to 5.
        expected = -1.73 * (1 + 1 / np.sqrt(2) + 1 / np.sqrt(3) + 1 / 2) / 4
        assert chance_correlation(scores) == pytest.approx(expected)

    def test_says_nothing_where_no_query_sees_two_keys(self) -> None:
        assert np.isnan(chance_correlation(np.full((2, 3), -np.inf, dtype=np.float32)))


def test_the_rank_of_a_key_counts_the_nearer_ones(door_trace: attnviz.model.trace.Trace) -> None:
    projection = attnviz.project(door_trace, 3, 1, method="pca")
    points = {
        (role, int(at)): point
        for role, at, point in zip(projection.role, projection.position, projection.points, strict=True)
    }
    for query, key in ((7, 5), (3, 0), (0, 10)):
        far = {at: float(np.hypot(*(points["query", query] - points["key", at]))) for at in range(11)}
        assert rank_by_distance(projection, query, key) == sorted(far, key=far.__getitem__).index(key) + 1
