"""Vectors as points: what each method keeps, that it repeats, its limits, and turning one picture onto another."""

import numpy as np
import pytest
import torch
from scipy.spatial.distance import pdist, squareform
from sklearn.datasets import make_blobs

from attnviz.maps import layouts
from attnviz.maps.layouts import (
    LAYOUTS,
    METRICS,
    Layout,
    aligned,
    laid_across,
    lay_out,
    limits,
    principal_components,
)

pytestmark = pytest.mark.slow

PARAMETERS = {
    "tsne": {"perplexity": 5.0, "iterations": 300},
    "umap": {"neighbours": 5, "min_dist": 0.1},
    "pca": {},
    "mds": {},
}
SEEDED: tuple[Layout, ...] = ("tsne", "umap")


def placed(vectors: np.ndarray, method: Layout, *, seed: int = 0, **changes) -> np.ndarray:
    """Laid out with few steps, each parameter no higher than these points allow."""
    n_point = len(vectors)
    given = PARAMETERS[method] | ({"seed": seed} if method in SEEDED else {})
    fitted = {
        name: type(value)(min(value, limits(method, n_point)[name][1])) for name, value in given.items()
    }
    return lay_out(vectors, method, **fitted | changes)


@pytest.fixture(scope="module")
def vectors() -> np.ndarray:
    return np.random.default_rng(0).normal(size=(23, 7)).astype(np.float32)


@pytest.fixture
def few_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """t-SNE by openTSNE for any number of points."""
    monkeypatch.setattr(layouts, "EXACT_UP_TO", 0)
    monkeypatch.setattr(layouts, "OPENTSNE_FROM", 1)


@pytest.mark.parametrize("dimensions", [2, 3])
@pytest.mark.parametrize("method", LAYOUTS)
def test_a_point_for_each_vector_the_same_each_time(vectors, method: Layout, dimensions: int) -> None:
    points = placed(vectors, method, dimensions=dimensions)
    assert points.shape == (23, dimensions)
    assert points.dtype == np.float32
    assert np.isfinite(points).all()
    np.testing.assert_array_equal(points, placed(vectors, method, dimensions=dimensions))


@pytest.mark.parametrize("method", LAYOUTS)
def test_leaves_the_threads_as_they_were(vectors, method: Layout) -> None:
    """Torch with another number of threads sums in another order, and gives other last digits."""
    before = torch.get_num_threads()
    try:
        for n_thread in (1, 2):
            torch.set_num_threads(n_thread)
            placed(vectors, method)
            assert torch.get_num_threads() == n_thread
    finally:
        torch.set_num_threads(before)


class _Given:
    """In the place of an engine: what it was given, and its start as its points."""

    def __init__(self, **given) -> None:
        self.given = given

    def fit(self, vectors):
        type(self).last = self.given
        return self.given.get("init", self.given.get("initialization"))

    fit_transform = fit


@pytest.mark.parametrize(
    ("n_point", "engine", "threads"),
    [(129, "sklearn.manifold", None), (1999, "openTSNE", 1), (2000, "openTSNE", 2)],
)
def test_what_an_engine_of_t_sne_is_given(n_point, engine, threads, monkeypatch) -> None:
    """A start of standard deviation 0.0001 along the first axis, with noise of a tenth of it; one thread, or two for many points."""
    monkeypatch.setattr(f"{engine}.TSNE", _Given)
    points = np.random.default_rng(0).normal(size=(n_point, 3)).astype(np.float32) * (9, 3, 0.1)
    for seed in (0, 1):
        start = layouts._tsne(points, 2, "cosine", "quickest", None, 7.0, 750, seed)
        given = _Given.last
        assert (given["perplexity"], given["metric"], given["random_state"]) == (7.0, "cosine", seed)
        components = principal_components(points, 2)
        noise = start / 1e-4 - components / components[:, 0].std()
        np.testing.assert_allclose(noise.std(), 0.1, rtol=0.25)
        np.testing.assert_allclose(noise.mean(), 0.0, atol=0.04)
    if threads is None:
        assert given["max_iter"] == 750 and "n_jobs" not in given
    else:
        assert (given["early_exaggeration_iter"], given["n_iter"], given["n_jobs"]) == (250, 500, threads)


@pytest.mark.parametrize("method", SEEDED)
def test_seed_and_parameters_change_the_picture(vectors, method: Layout) -> None:
    first = placed(vectors, method)
    others = [{"seed": 1}, {"metric": "cosine"}]
    others += [{"perplexity": 3.0}, {"iterations": 400}] if method == "tsne" else []
    others += [{"neighbours": 3}, {"min_dist": 0.9}] if method == "umap" else []
    for changes in others:
        assert not np.allclose(placed(vectors, method, **changes), first), changes


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("method", [layout for layout in LAYOUTS if layout != "pca"])
def test_groups_of_vectors_stay_groups(method: Layout, metric: str) -> None:
    blobs, groups = make_blobs(60, n_features=16, centers=4, cluster_std=0.5, random_state=1)
    points = placed(blobs.astype(np.float32), method, metric=metric)
    distances = squareform(pdist(points))
    np.fill_diagonal(distances, np.inf)
    assert np.mean(groups[distances.argmin(axis=1)] == groups) > 0.95


@pytest.mark.usefixtures("few_are_many")
@pytest.mark.parametrize("metric", METRICS)
def test_groups_of_vectors_stay_groups_in_opentsne(metric: str) -> None:
    test_groups_of_vectors_stay_groups("tsne", metric)


@pytest.mark.usefixtures("few_are_many")
@pytest.mark.parametrize("dimensions", [2, 3])
def test_opentsne_repeats_itself(vectors, dimensions: int) -> None:
    test_a_point_for_each_vector_the_same_each_time(vectors, "tsne", dimensions)


@pytest.mark.usefixtures("few_are_many")
def test_opentsne_tells_how_far_it_is_and_goes_on_to_the_end(vectors) -> None:
    told: list[float] = []
    placed(vectors, "tsne", progress=told.append)
    assert told == pytest.approx(np.arange(25, 301, 25) / 300)


@pytest.mark.parametrize("n_point", [4, 5, 6])
@pytest.mark.parametrize("method", SEEDED)
def test_few_points(vectors, method: Layout, n_point: int) -> None:
    for metric in METRICS:
        for dimensions in (2, 3):
            for parameters in (
                {},
                {name: kind(limits(method, n_point)[name][0]) for name, kind in _LOWEST[method]},
            ):
                points = placed(vectors[:n_point], method, metric=metric, dimensions=dimensions, **parameters)
                assert np.isfinite(points).all()


_LOWEST: dict[str, list] = {
    "tsne": [("perplexity", float)],
    "umap": [("neighbours", int), ("min_dist", float)],
}


@pytest.mark.parametrize("n_point", [1, 2, 3])
@pytest.mark.parametrize("method", ["pca", "mds"])
def test_a_point_or_two(vectors, method: Layout, n_point: int) -> None:
    for metric in METRICS:
        points = placed(vectors[:n_point], method, metric=metric, dimensions=3)
        assert points.shape == (n_point, 3)
        assert np.isfinite(points).all()


@pytest.mark.parametrize("method", LAYOUTS)
@pytest.mark.parametrize("value", [0.0, 1.0])
def test_equal_vectors_are_no_error(method: Layout, value: float) -> None:
    for metric in METRICS:
        same = np.full((11, 7), value, dtype=np.float32)
        assert np.isfinite(placed(same, method, metric=metric)).all()


class TestPrincipalComponents:
    def test_keep_all_distances_of_points_in_a_plane(self) -> None:
        random = np.random.default_rng(0)
        plane = random.normal(size=(11, 2))
        turn = np.linalg.qr(random.normal(size=(7, 7)))[0][:2]
        vectors = (plane @ turn + 3).astype(np.float32)
        for method in ("pca", "mds"):
            np.testing.assert_allclose(pdist(placed(vectors, method)), pdist(plane), rtol=1e-3)

    def test_are_those_of_the_covariance(self, vectors) -> None:
        components = principal_components(vectors, 3)
        largest = np.linalg.eigvalsh(np.cov(vectors.T.astype(np.float64)))[::-1][:3]
        np.testing.assert_allclose(np.cov(components.T), np.diag(largest), atol=1e-4)

    def test_are_zero_along_directions_that_there_are_not(self) -> None:
        line = np.arange(5, dtype=np.float32)[:, None]
        components = principal_components(line, 3)
        np.testing.assert_allclose(np.abs(components[:, 0]), [2, 1, 0, 1, 2], atol=1e-6)
        assert (components[:, 1:] == 0).all()


def test_scaling_by_angles_keeps_them() -> None:
    """Vectors of different lengths in two directions are two points for cosine distance."""
    vectors = np.array([[1, 0], [5, 0], [0, 2], [0, 9]], dtype=np.float32)
    distances = squareform(pdist(placed(vectors, "mds", metric="cosine")))
    np.testing.assert_allclose(distances, np.kron([[0, 1], [1, 0]], np.ones((2, 2))), atol=1e-5)


class TestLimits:
    @pytest.mark.parametrize(
        ("n_point", "largest"), [(2, 1.0), (4, 1.0), (5, 4 / 3), (22, 7.0), (301, 100.0)]
    )
    def test_of_perplexity_are_a_third_of_the_other_points(self, n_point: int, largest: float) -> None:
        assert limits("tsne", n_point)["perplexity"] == pytest.approx((1.0, largest))

    @pytest.mark.parametrize(("n_point", "largest"), [(2, 2), (4, 3), (22, 21)])
    def test_of_neighbours_are_all_other_points(self, n_point: int, largest: int) -> None:
        assert limits("umap", n_point)["neighbours"] == (2, largest)

    def test_name_what_a_method_takes(self) -> None:
        taken = {method: set(limits(method, 22)) for method in ("attention", *LAYOUTS)}
        assert taken == {
            "attention": {"iterations", "seed"},
            "tsne": {"perplexity", "iterations", "seed"},
            "umap": {"neighbours", "min_dist", "seed"},
            "pca": set(),
            "mds": set(),
        }


class TestLaidAcross:
    @pytest.mark.parametrize("n_axis", [2, 3])
    def test_keeps_all_distances_and_spreads_most_along_the_first_axis(self, n_axis: int) -> None:
        random = np.random.default_rng(0)
        tall = random.normal(size=(40, n_axis)) * np.arange(1, n_axis + 1)
        turn = np.linalg.qr(random.normal(size=(n_axis, n_axis)))[0]
        laid = laid_across(tall @ turn + 40)  # wherever it lies
        np.testing.assert_allclose(pdist(laid), pdist(tall))
        covariance = np.cov(laid.T)
        np.testing.assert_allclose(covariance - np.diag(np.diag(covariance)), 0, atol=1e-12)
        assert (np.diff(np.diag(covariance)) < 0).all()

    def test_leaves_as_it_is_what_lies_across_already(self) -> None:
        square = np.array([[-3.0, -1.0], [3.0, -1.0], [3.0, 1.0], [-3.0, 1.0]])
        np.testing.assert_allclose(laid_across(square), square, atol=1e-12)

    @pytest.mark.parametrize("dimensions", [2, 3])
    @pytest.mark.parametrize("method", SEEDED)
    def test_so_lie_maps_whose_directions_mean_nothing(
        self, vectors, method: Layout, dimensions: int
    ) -> None:
        spread = np.cov(placed(vectors, method, dimensions=dimensions).T)
        scale = np.diag(spread)[0]
        assert (np.diff(np.diag(spread)) <= 0).all()
        np.testing.assert_allclose(spread - np.diag(np.diag(spread)), 0, atol=1e-4 * scale)


class TestAligned:
    @pytest.mark.parametrize("n_axis", [2, 3])
    @pytest.mark.parametrize("mirror", [1, -1])
    def test_a_turned_mirrored_and_moved_copy_comes_back(self, n_axis: int, mirror: int) -> None:
        random = np.random.default_rng(0)
        onto = random.normal(size=(11, n_axis)).astype(np.float32)
        turn = np.linalg.qr(random.normal(size=(n_axis, n_axis)))[0]
        turn[:, 0] *= mirror
        moved = (onto @ turn + random.normal(size=n_axis) * 50).astype(np.float32)
        np.testing.assert_allclose(aligned(moved, onto), onto, atol=1e-4)

    def test_nothing_is_stretched(self, vectors) -> None:
        points, onto = vectors[:, :2], vectors[:, 2:4] * 9
        np.testing.assert_allclose(pdist(aligned(points, onto)), pdist(points), rtol=1e-4)

    def test_it_lies_nearer_than_before(self, vectors) -> None:
        points, onto = vectors[:, :2], vectors[:, 2:4]
        before = ((points - points.mean(axis=0) - onto + onto.mean(axis=0)) ** 2).sum()
        assert ((aligned(points, onto) - onto) ** 2).sum() < before


@pytest.mark.parametrize("n_axis", [2, 3])
def test_points_are_turned_to_lie_across_and_never_upside_down(n_axis):
    """By one rotation: each new axis has the old one's direction rather than the opposite one."""
    random = np.random.default_rng(0)
    for _ in range(20):
        points = random.normal(size=(9, n_axis)) @ random.normal(size=(n_axis, n_axis)) + 5
        centred = points - points.mean(axis=0)
        laid = laid_across(points)
        rotation = np.linalg.lstsq(centred, laid, rcond=None)[0]
        np.testing.assert_allclose(rotation @ rotation.T, np.eye(n_axis), atol=1e-9)
        assert (np.diag(rotation) >= 0).all()
        assert (np.diff(laid.std(axis=0)) < 0).all()
        np.testing.assert_allclose(np.cov(laid.T), np.diag(laid.var(axis=0, ddof=1)), atol=1e-9)
