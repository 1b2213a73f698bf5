"""t-SNE by every pair of points, beside scikit-learn's own functions and its maps."""

from types import ModuleType

import numpy as np
import pytest
from scipy.spatial.distance import squareform
from sklearn.datasets import make_blobs
from sklearn.manifold._t_sne import _joint_probabilities, _kl_divergence

import attnviz
from attnviz.errors import SelectionError
from attnviz.maps import layouts, tsne, tsne_arrays, tsne_compiled
from attnviz.maps.layouts import METRICS, lay_out
from attnviz.maps.spaces import distances
from attnviz.maps.tsne import exact_tsne, joint_probabilities

pytestmark = pytest.mark.slow

steps_of_both = pytest.mark.parametrize("steps", [tsne_compiled, tsne_arrays], ids=["compiled", "arrays"])


def groups(n_point: int, seed: int = 0) -> np.ndarray:
    return make_blobs(n_point, n_features=16, centers=4, cluster_std=2.0, random_state=seed)[0].astype(
        np.float32
    )


def loss(points: np.ndarray, wanted: np.ndarray) -> float:
    """Kullback-Leibler divergence, written out pair by pair."""
    like = {
        (i, j): 1 / (1 + ((points[i] - points[j]) ** 2).sum())
        for i in range(len(points))
        for j in range(len(points))
        if i != j
    }
    total = sum(like.values())
    return sum(
        wanted[pair] * np.log(wanted[pair] * total / near) for pair, near in like.items() if wanted[pair]
    )


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("perplexity", [1.5, 5.0, 7.0])
def test_probabilities_are_scikit_learns(metric: str, perplexity: float) -> None:
    vectors = groups(22)
    apart = distances(vectors, vectors, metric) ** 2
    expected = squareform(_joint_probabilities(apart.copy(), perplexity, 0))
    np.testing.assert_allclose(joint_probabilities(apart, perplexity), expected, atol=2e-6)


@pytest.mark.parametrize("size", [1e-30, 1.0, 1e30])
def test_probabilities_do_not_depend_on_the_unit_of_distances(size: float) -> None:
    apart = distances(groups(22), groups(22), "euclidean") ** 2
    np.testing.assert_allclose(
        joint_probabilities(apart * size, 5.0), joint_probabilities(apart, 5.0), rtol=1e-4
    )


def test_vectors_equally_far_from_each_other_are_equally_probable() -> None:
    """No width gives nine equal neighbours a perplexity of three."""
    joint = joint_probabilities(2.0 * (1 - np.eye(10)), 3.0)
    np.testing.assert_allclose(joint, (1 - np.eye(10)) / 90, rtol=1e-12)
    points = exact_tsne(2.0 * (1 - np.eye(10)), np.random.default_rng(0).normal(0, 1e-4, (10, 2)), 3.0, 1000)
    assert np.isfinite(points).all()


@steps_of_both
@pytest.mark.parametrize("exaggeration", [1, 12])
def test_gradient_is_that_of_the_loss(exaggeration: int, steps: ModuleType) -> None:
    """By finite differences, and by scikit-learn; with exaggeration alone by scikit-learn, as its loss is another's."""
    generator = np.random.default_rng(1)
    points, vectors = generator.normal(0, 2, (9, 2)), groups(9)
    wanted = joint_probabilities(distances(vectors, vectors, "euclidean") ** 2, 2.5) * exaggeration
    uphill = np.ones_like(points)
    steps.gradient(points, wanted, uphill)
    _, expected = _kl_divergence(points.ravel(), squareform(wanted, checks=False), 1, 9, 2)
    np.testing.assert_allclose(uphill.ravel(), expected, rtol=1e-9, atol=1e-12)
    if exaggeration > 1:
        return
    np.testing.assert_allclose(steps.divergence(points, wanted), loss(points, wanted), rtol=1e-9)
    for place in np.ndindex(points.shape):
        moved = np.zeros_like(points)
        moved[place] = 1e-5
        slope = (loss(points + moved, wanted) - loss(points - moved, wanted)) / 2e-5
        np.testing.assert_allclose(uphill[place], slope, rtol=1e-5, atol=1e-8)


@steps_of_both
@pytest.mark.parametrize(
    ("n_point", "perplexity", "metric"),
    [
        (16, 5.0, "cosine"),
        (22, 5.0, "euclidean"),
        (64, 15.0, "cosine"),
        (128, 5.0, "euclidean"),
        (128, 15.0, "cosine"),
    ],
)
def test_loss_is_as_low_as_scikit_learns(
    n_point: int, perplexity: float, metric: str, steps: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the descent ends depends on the seed, with either engine, so the mean over seeds is compared."""
    monkeypatch.setattr(tsne, "descend", steps.descend)
    losses = {"quickest": 0.0, "scikit-learn": 0.0}
    vectors = groups(n_point, seed=n_point)
    wanted = joint_probabilities(distances(vectors, vectors, metric) ** 2, perplexity)
    for engine in losses:
        for seed in range(3):
            points = lay_out(
                vectors,
                "tsne",
                metric=metric,
                engine=engine,
                perplexity=perplexity,
                iterations=1000,
                seed=seed,
            )
            losses[engine] += loss(points.astype(np.float64), wanted) / 3
    assert losses["quickest"] <= 1.03 * losses["scikit-learn"] + 0.005, losses


@steps_of_both
def test_the_first_steps_are_the_same(steps: ModuleType) -> None:
    """Later ones differ: rounding decides which way a point turns."""
    wanted = joint_probabilities(distances(groups(22), groups(22), "euclidean") ** 2, 5.0)
    points = np.random.default_rng(0).normal(0, 1, (22, 2))
    expected = points.copy()
    steps.descend(points, wanted, 50.0, 0.8, 250, 260)
    tsne_compiled.descend(expected, wanted, 50.0, 0.8, 250, 260)
    np.testing.assert_allclose(points, expected, rtol=1e-6)


@steps_of_both
def test_steps_end_where_nothing_moves_any_more(steps: ModuleType) -> None:
    wanted = joint_probabilities(2.0 * (1 - np.eye(4)), 1.0)
    corners = np.array([[1.0, 1], [-1, 1], [-1, -1], [1, -1]]) * 1e-4
    assert 250 <= steps.descend(corners, wanted, 50.0, 0.8, 250, 5000) < 4999


def test_scikit_learn_can_be_chosen(tiny_model, monkeypatch) -> None:
    trace = tiny_model("gpt2").trace("the cat sat")
    usual = attnviz.project(trace, 0, 0).points
    chosen = attnviz.project(trace, 0, 0, engine="scikit-learn").points
    monkeypatch.setattr(layouts, "EXACT_UP_TO", 0)
    np.testing.assert_array_equal(attnviz.project(trace, 0, 0).points, chosen)
    assert usual.shape == chosen.shape and not np.allclose(usual, chosen, atol=1e-3)
    with pytest.raises(SelectionError, match="quickest, scikit-learn"):
        attnviz.project(trace, 0, 0, engine="sklearn")  # type: ignore[arg-type]
