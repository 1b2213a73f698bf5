"""The attention map: its objective against an independent computation, its gradient, its descent, masks."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from scipy.special import rel_entr, softmax

from attnviz.maps import attention_map
from attnviz.maps.attention_map import divergence, fit, implied_weights, objective
from attnviz.model.trace import Trace

pytestmark = pytest.mark.slow

N_QUERY, N_KEY = 5, 7


@pytest.fixture
def random() -> np.random.Generator:
    return np.random.default_rng(0)


def everything(n_query: int = N_QUERY, n_key: int = N_KEY) -> np.ndarray:
    return np.ones((n_query, n_key), dtype=bool)


def implied_by_hand(queries: np.ndarray, keys: np.ndarray, allowed: np.ndarray) -> np.ndarray:
    """Query by query, with scipy's softmax, over the keys it may see."""
    expected = np.zeros(allowed.shape)
    for row, (query, seen) in enumerate(zip(queries, allowed, strict=True)):
        if seen.any():
            expected[row, seen] = softmax([-float(np.sum((query - key) ** 2)) for key in keys[seen]])
    return expected


def some_mask(random: np.random.Generator) -> np.ndarray:
    allowed = random.random((N_QUERY, N_KEY)) < 0.6
    allowed[0], allowed[1] = False, np.arange(N_KEY) == 3  # no key, and one
    return allowed


class TestImpliedWeights:
    @pytest.mark.parametrize("n_axis", [2, 3])
    def test_are_the_softmax_of_negative_squared_distances(self, random, n_axis: int) -> None:
        queries, keys = random.normal(size=(N_QUERY, n_axis)), random.normal(size=(N_KEY, n_axis))
        for allowed in (everything(), some_mask(random)):
            implied = implied_weights(queries, keys, allowed)
            np.testing.assert_allclose(implied, implied_by_hand(queries, keys, allowed), rtol=1e-5, atol=1e-9)

    def test_of_points_far_away_are_finite(self) -> None:
        implied = implied_weights(
            np.array([[1e4, 0.0]]), np.array([[-1e4, 0.0], [1e4, 0.0]]), everything(1, 2)
        )
        assert implied.tolist() == [[0.0, 1.0]]


class TestDivergence:
    def test_is_the_relative_entropy_of_each_row(self, random) -> None:
        weights, other = random.dirichlet(np.ones(N_KEY), (2, N_QUERY)).astype(np.float32)
        np.testing.assert_allclose(
            divergence(weights, other), rel_entr(weights, other).sum(axis=1), atol=1e-5
        )

    def test_by_hand(self) -> None:
        weights = np.array([[0.5, 0.5], [1.0, 0.0], [0.0, 0.0]], dtype=np.float32)
        implied = np.array([[0.25, 0.75], [0.5, 0.5], [0.0, 0.0]], dtype=np.float32)
        expected = [0.5 * np.log(2) + 0.5 * np.log(2 / 3), np.log(2), 0.0]
        np.testing.assert_allclose(divergence(weights, implied), expected, rtol=1e-6)

    def test_of_a_weight_that_is_implied_to_be_nothing_is_large(self) -> None:
        loss = divergence(np.array([[0.5, 0.5]], np.float32), np.array([[1.0, 0.0]], np.float32))
        assert loss[0] > 10


class TestObjective:
    def test_differs_from_the_divergence_by_the_entropy_of_the_weights(self, random) -> None:
        weights = random.dirichlet(np.ones(N_KEY), N_QUERY)
        queries, keys = random.normal(size=(N_QUERY, 2)), random.normal(size=(N_KEY, 2))
        loss, _, _ = objective(queries, keys, weights, everything())
        entropy = -(weights * np.log(weights)).sum()
        implied = implied_by_hand(queries, keys, everything())
        assert loss - entropy == pytest.approx(rel_entr(weights, implied).sum())

    @pytest.mark.parametrize("n_axis", [2, 3])
    @pytest.mark.parametrize("is_masked", [False, True])
    def test_gradient_is_that_of_finite_differences(self, random, n_axis: int, is_masked: bool) -> None:
        allowed = some_mask(random) if is_masked else everything()
        weights = random.random((N_QUERY, N_KEY)) * allowed
        weights /= weights.sum(axis=1, keepdims=True).clip(min=1e-12)
        queries, keys = random.normal(size=(N_QUERY, n_axis)), random.normal(size=(N_KEY, n_axis))
        _, *gradients = objective(queries, keys, weights, allowed)
        step = 1e-6
        for points, gradient in zip((queries, keys), gradients, strict=True):
            for place in np.ndindex(points.shape):
                losses = []
                for sign in (1, -1):
                    points[place] += sign * step
                    losses.append(objective(queries, keys, weights, allowed)[0])
                    points[place] -= sign * step
                assert gradient[place] == pytest.approx((losses[0] - losses[1]) / (2 * step), abs=1e-6)


def lost(weights: np.ndarray, allowed: np.ndarray, **settings) -> float:
    queries, keys = fit(weights, allowed, **settings)
    return float(divergence(weights, implied_weights(queries, keys, allowed)).mean())


class TestFit:
    def test_finds_points_whose_distances_imply_the_weights_exactly(self, random) -> None:
        queries, keys = random.normal(size=(N_QUERY, 2)), random.normal(size=(N_KEY, 2))
        weights = implied_by_hand(queries, keys, everything()).astype(np.float32)
        assert lost(weights, everything()) < 1e-3

    def test_loses_less_with_more_steps_and_with_a_third_axis(self, door_trace: Trace) -> None:
        weights = door_trace.weights(3, 1)
        allowed = everything(*weights.shape)
        losses = [lost(weights, allowed, iterations=steps) for steps in (1, 10, 100, 500)]
        assert losses == sorted(losses, reverse=True)
        assert losses[-1] < 0.2 * losses[0]
        assert lost(weights, allowed, dimensions=3) < losses[-1]

    @pytest.mark.nightly
    def test_starts_where_random_points_do_not_get(self, door_trace: Trace, monkeypatch) -> None:
        """Mean over the heads of two layers; why the start is what it is."""
        heads = [door_trace.weights(layer, head) for layer in (0, 3) for head in range(door_trace.n_heads(0))]
        allowed = everything(*heads[0].shape)
        loss = np.mean([lost(weights, allowed) for weights in heads])
        monkeypatch.setattr("attnviz.maps.attention_map._START_NOISE", 10.0)
        assert loss < np.mean([lost(weights, allowed) for weights in heads])

    @pytest.mark.nightly
    def test_ends_when_steps_gain_nothing_any_more(self, door_trace: Trace, monkeypatch) -> None:
        heads = [door_trace.weights(layer, head) for layer in (0, 3) for head in range(0, 12, 4)]
        allowed = everything(*heads[0].shape)
        shares: list[float] = []  # that were told, of all heads
        losses = [lost(weights, allowed, iterations=2000, progress=shares.append) for weights in heads]
        assert 0 < len(shares) < len(heads) * 2000 / 25 / 2
        monkeypatch.setattr("attnviz.maps.attention_map._LEAST_FALL", -np.inf)
        to_the_end = [lost(weights, allowed, iterations=2000) for weights in heads]
        assert np.mean(losses) < 1.02 * np.mean(to_the_end)

    def test_is_adam_from_the_best_plane(self, random, monkeypatch) -> None:
        """Written out in float64, without the noise at the start; distances are compared, as a plane can be turned over."""
        monkeypatch.setattr(attention_map, "_START_NOISE", 0.0)
        weights = random.dirichlet(np.ones(N_KEY), N_QUERY)
        allowed = everything()
        allowed[1, 4:], allowed[3, 0] = False, False
        weights = np.where(allowed, weights, 0) / np.where(allowed, weights, 0).sum(axis=1, keepdims=True)
        logs = np.where(allowed, np.log(np.where(allowed, weights, 1)), 0)
        for axis in (1, 0):
            means = logs.sum(axis=axis, keepdims=True) / allowed.sum(axis=axis, keepdims=True)
            logs = np.where(allowed, logs - means, 0)
        left, singular, right = np.linalg.svd(logs)
        scaled = np.sqrt(singular[:2] / 2)
        points = np.concatenate([left[:, :2] * scaled, right[:2].T * scaled])
        mean, square = np.zeros_like(points), np.zeros_like(points)
        for step in range(1, 8):
            queries, keys = points[:N_QUERY], points[N_QUERY:]
            gap = weights - implied_by_hand(queries, keys, allowed)
            apart = queries[:, None] - keys[None]
            slope = 2 * gap[:, :, None] * apart
            gradient = np.concatenate([slope.sum(axis=1), -slope.sum(axis=0)]) + 2e-3 * points
            mean, square = 0.9 * mean + 0.1 * gradient, 0.999 * square + 0.001 * gradient**2
            points = points - 0.1 * (mean / (1 - 0.9**step)) / (np.sqrt(square / (1 - 0.999**step)) + 1e-8)
        queries, keys = fit(weights.astype(np.float32), allowed, iterations=7)
        expected = cdist(points[:N_QUERY], points[N_QUERY:])
        np.testing.assert_allclose(cdist(queries, keys), expected, atol=1e-4)
        np.testing.assert_allclose(np.concatenate([queries, keys]).mean(axis=0), 0, atol=1e-6)

    def test_is_the_same_for_the_same_seed_and_another_for_another(self, door_trace: Trace) -> None:
        weights = door_trace.weights(3, 1)
        points, again, other = (
            np.concatenate(fit(weights, everything(*weights.shape), seed=seed)) for seed in (7, 7, 8)
        )
        np.testing.assert_array_equal(points, again)
        assert not np.allclose(points, other)

    @pytest.mark.parametrize("steps", [500, 5000])
    def test_weights_of_exactly_one_send_no_point_to_infinity(self, steps: int) -> None:
        weights = np.eye(13, dtype=np.float32)
        queries, keys = fit(weights, everything(13, 13), iterations=steps)
        assert np.abs(np.concatenate([queries, keys])).max() < 20
        implied = implied_weights(queries, keys, everything(13, 13))
        assert implied.argmax(axis=1).tolist() == list(range(13))
        assert implied.diagonal().min() > 0.9

    def test_rows_that_do_not_quite_sum_to_one_are_as_if_they_did(self, random) -> None:
        weights = random.dirichlet(np.ones(N_KEY), N_QUERY).astype(np.float32)
        points, other = (
            np.concatenate(fit(rows, everything())) for rows in (weights, weights * np.float32(1.01))
        )
        np.testing.assert_allclose(points, other, atol=0.05)

    def test_keys_that_are_not_allowed_and_rows_without_keys_do_not_matter(self, random) -> None:
        queries, keys = random.normal(size=(N_QUERY, 2)), random.normal(size=(N_KEY, 2))
        allowed = some_mask(random)
        weights = implied_by_hand(queries, keys, allowed).astype(np.float32)
        assert lost(weights, allowed) < 1e-3

    @pytest.mark.parametrize(("n_query", "n_key"), [(1, 1), (2, 2), (1, 5), (5, 1)])
    def test_few_tokens(self, n_query: int, n_key: int) -> None:
        weights = np.random.default_rng(0).dirichlet(np.ones(n_key), n_query).astype(np.float32)
        for dimensions in (2, 3):
            queries, keys = fit(weights, everything(n_query, n_key), dimensions=dimensions)
            assert (queries.shape, keys.shape) == ((n_query, dimensions), (n_key, dimensions))
            assert np.isfinite(queries).all()
            assert lost(weights, everything(n_query, n_key), dimensions=dimensions) < 1e-3

    def test_equal_weights_are_one_point(self) -> None:
        weights = np.full((N_QUERY, N_KEY), 1 / N_KEY, dtype=np.float32)
        queries, keys = fit(weights, everything())
        np.testing.assert_allclose(np.concatenate([queries, keys]), 0, atol=1e-2)
