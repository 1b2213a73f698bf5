"""Vectors as points in the plane or in space: t-SNE, UMAP, principal components, classical scaling.

`attnviz.maps.attention_map` is the method that does. numpy in, numpy out, so that every function can run in another
process.
"""

import warnings
from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any, Literal, get_args

import numpy as np
from jaxtyping import Float, Int
from scipy.linalg import orthogonal_procrustes
from threadpoolctl import ThreadpoolController, threadpool_limits

from attnviz.arguments import typed
from attnviz.errors import ProjectionError
from attnviz.maps.spaces import distances
from attnviz.maths.directions import directions
from attnviz.records import Progress

Layout = Literal["tsne", "umap", "pca", "mds"]
LAYOUTS: tuple[Layout, ...] = get_args(Layout)
Metric = Literal["cosine", "euclidean"]
METRICS: tuple[Metric, ...] = get_args(Metric)
Engine = Literal["quickest", "scikit-learn"]
"""What computes t-SNE: the quickest for the number of points, or scikit-learn for any."""

METHOD_NAMES = {
    "attention": "Attention map",
    "tsne": "t-SNE",
    "umap": "UMAP",
    "pca": "PCA",
    "mds": "Classical MDS",
}
"""Names on screen of the methods that place the points of a map, including `attnviz.maps.attention_map`."""
MISSING: dict[str, str] = (
    {}
    if find_spec("umap")
    else {"umap": 'UMAP needs umap-learn, which is not installed. Run pip install "attnviz[umap]".'}
)
"""Methods that cannot be used here, each with why and what to do."""
FEWEST_POINTS = 4
"""With three places or fewer, no perplexity of at least 1 is valid and t-SNE is meaningless."""
_ROUNDING = 1e-6
"""Vectors that differ by less, as a share of the largest number in any, are the same: float32 rounds a sum of products by as much."""
_WIDENING = ("tsne", "umap")
"""Methods that widen any difference between vectors, however small, until it fills the map."""
_MIDDLING = 2.0**20
"""Vectors whose largest number is above this, or below its inverse, are scaled by a power of 2, since methods square distances in
float32."""
FEWEST_ITERATIONS = 250
"""scikit-learn 1.9.1 refuses fewer: the first 250 are its early exaggeration."""
MOST_ITERATIONS = 5000
LARGEST_SEED = 2**32 - 1
_START_SPREAD = 1e-4
"""Standard deviation of t-SNE's start along the first axis, as in scikit-learn 1.9.1, TSNE(init="pca")."""
_START_NOISE = 0.1
"""Standard deviation of random noise on a start of standard deviation 1: without noise the random seed would have no
effect on t-SNE."""
EXACT_UP_TO = 128
"""Up to this number of points, t-SNE in the plane is `attnviz.maps.tsne`; above, scikit-learn 1.9.1.

Over 210 heads of both bundled models, 12 to 70 points, both metrics and perplexities 5 and 15, 756 maps: mean divergence 0.208
against scikit-learn's 0.212, trustworthiness 0.948 against 0.947, of the five nearest neighbours 73.2% kept by both, order
correlation -0.395 against -0.387. Single maps differ as they do between two seeds of scikit-learn's: of 16 seeds, both end
four or five times in a worse place. Medians of 22 points 3 ms against 99, of 70 points 17 against 211, of 128 points 53 against 396;
without numba of 22 points 43 ms and more.
"""
_LINEAR_ALGEBRA = ThreadpoolController()
"""The threads of what numpy and scipy compute with. To look for those of all libraries takes as long as t-SNE of 22 points."""
OPENTSNE_FROM = 1000
"""From this number of points on, t-SNE runs in openTSNE 1.0.4, which reports progress; below, scikit-learn 1.9.1 is faster.

Seconds of one thread, for 1,000 steps at 22, 60, 200, 500 and 1,000 points: scikit-learn 0.05, 0.10, 0.38, 1.37 and
2.87, openTSNE 0.13, 0.14, 0.41, 1.33 and 2.87; for 750 steps at 2,000 and 5,000 points 5.5 and 19.7 against 6.1 and
15.7.
"""
_TOLD_EVERY = 25
"""Steps of openTSNE between two reports of its progress."""


def largest_perplexity(n_point: int) -> float:
    """Largest perplexity that makes sense for this many points: a third of the number of other points.

    Source: the check ``N - 1 < 3 * perplexity`` in van der Maaten's bhtsne (tsne.cpp), which searches 3 x perplexity
    neighbours of each point.
    """
    return max(1.0, (n_point - 1) / 3)


def limits(method: str, n_point: int) -> dict[str, tuple[float, float]]:
    """The parameters that a method takes, each with its lowest and highest value for this many points.

    Every method but "pca" and "attention" also takes a metric.
    """
    seed = {"seed": (0.0, float(LARGEST_SEED))}
    match method:
        case "tsne":
            return {
                "perplexity": (1.0, largest_perplexity(n_point)),
                "iterations": (float(FEWEST_ITERATIONS), float(MOST_ITERATIONS)),
                **seed,
            }
        case "umap":
            return {"neighbours": (2.0, max(2.0, n_point - 1.0)), "min_dist": (0.0, 1.0), **seed}
        case "attention":
            return {"iterations": (float(FEWEST_ITERATIONS), float(MOST_ITERATIONS)), **seed}
        case _:
            return {}


def settle(
    vectors: Float[np.ndarray, "point d_fed"], method: str, metric: str, asked: Mapping[str, Any]
) -> tuple[str, dict[str, Any], str]:
    """The method that can place these vectors, its parameters, and a remark on what had to be changed, "" for nothing.

    Parameters that are too high are lowered. Principal components replace t-SNE and UMAP where vectors are at fewer than
    `FEWEST_POINTS` places.

    Args:
        asked: every parameter that `limits` lists for the method.
    """
    n_point, n_place = len(vectors), len(places(vectors, method, metric)[0])
    points = f"{n_point} points" if n_place == n_point else f"{n_point} points at {n_place} places"
    if n_place < min(n_point, 2):
        is_one = len(places(vectors, method, "euclidean")[0]) == 1
        same = "are the same" if is_one else "have the same direction"
        return method, {}, f"All {n_point} vectors {same}: all points coincide."
    if n_place < FEWEST_POINTS and method in _WIDENING:
        remark = (
            f"{points} are too few for {METHOD_NAMES[method]}; they are placed by their principal components."
        )
        return "pca", {}, remark
    used, remark = {}, ""
    for name, (_, highest) in limits(method, n_place).items():
        used[name] = min(asked[name], type(asked[name])(highest))
        if used[name] < asked[name]:
            digits = f"{used[name]:.1f}" if isinstance(used[name], float) else str(used[name])
            remark = f"{name.capitalize()} {asked[name]:g} is lowered to {digits}: there are only {points}."
    return method, used, remark


def places(
    vectors: Float[np.ndarray, "point d_fed"], method: str, metric: str
) -> tuple[Int[np.ndarray, " place"], Int[np.ndarray, " point"]]:
    """The first vector of each place, and the place of each vector: vectors of one place are the same up to rounding.

    Where directions are compared, vectors of one direction are the same.
    """
    compared = directions(vectors) if _compares_directions(method, metric) else vectors.astype(np.float64)
    step = _ROUNDING * np.abs(compared).max(initial=0.0)
    if (np.abs(compared - compared[:1]) <= step).all():
        return np.arange(min(len(vectors), 1)), np.zeros(len(vectors), dtype=np.int64)
    _, first, place = np.unique(np.rint(compared / step), axis=0, return_index=True, return_inverse=True)
    order = first.argsort()
    return first[order], order.argsort()[place.reshape(-1)]


def _compares_directions(method: str, metric: str) -> bool:
    return metric == "cosine" and method not in ("pca", "attention")


@typed
def lay_out(
    vectors: Float[np.ndarray, "point d_fed"],
    method: Layout,
    *,
    dimensions: int = 2,
    metric: str = "euclidean",
    engine: Engine = "quickest",
    progress: Progress | None = None,
    **parameters: Any,
) -> Float[np.ndarray, "point axis"]:
    """One point for each vector; the same for the same arguments, whatever the number of threads.

    Vectors that are the same up to rounding have one point; where all are, it is zero. Principal components replace t-SNE and
    UMAP where there are fewer than `FEWEST_POINTS` places.

    Args:
        method: "tsne", van der Maaten and Hinton 2008 (JMLR 9:2579); "umap", McInnes et al. 2018
            (arXiv:1802.03426), by umap-learn 0.5.12; "pca", principal components, Pearson 1901; "mds", classical
            scaling, Torgerson 1952, by scikit-learn 1.9.1, the same as "pca" for Euclidean distances.
        dimensions: axes of the points, 2 or 3.
        engine: what computes t-SNE, `Engine`.
        progress: called with the share that is done, 0 to 1, where the method reports it.
        parameters: those that `limits` lists for the method.

    Raises:
        ProjectionError: a vector holds a number that is not finite, or the method is `MISSING`.
    """
    if not np.isfinite(vectors).all():
        raise ProjectionError(
            "A map of some vectors was asked for; they hold numbers that are not finite. Leave those vectors out."
        )
    first, place = places(vectors, method, metric)
    if len(first) < 2:
        return np.zeros((len(vectors), dimensions), dtype=np.float32)
    if method in _WIDENING and len(first) < FEWEST_POINTS:
        method = "pca"
    if method in MISSING:
        raise ProjectionError(MISSING[method])
    largest = float(np.abs(vectors).max())
    size = 1.0 if 1 / _MIDDLING <= largest <= _MIDDLING else 2.0 ** np.frexp(largest)[1]
    vectors = (vectors / size).astype(np.float32)
    # One thread: sums over several threads differ in the last digits. A step on few points is also shorter than the wait for a
    # second thread: on a busy machine t-SNE of 22 points took 0.05 s with one thread and up to 4 s with two. The limit also
    # restores the number of OpenMP threads, which numba sets for torch too.
    is_exact = method == "tsne" and _is_exact(len(first), dimensions, engine)
    with _LINEAR_ALGEBRA.limit(limits=1) if is_exact else threadpool_limits(1):
        match method:
            case "tsne":
                points = laid_across(
                    _tsne(vectors[first], dimensions, metric, engine, progress, **parameters)
                )[place]
            case "umap":
                points = laid_across(_umap(vectors[first], dimensions, metric, **parameters))[place]
            case "mds":
                points = _classical_scaling(vectors, dimensions, metric)
            case _:
                points = principal_components(vectors, dimensions)
    if method == "pca" or (method, metric) == ("mds", "euclidean"):  # the others do not depend on the size
        points = points * size
    placed: np.ndarray = points.astype(np.float32)
    return placed


def principal_components(
    vectors: Float[np.ndarray, "point d_fed"], dimensions: int = 2
) -> Float[np.ndarray, "point axis"]:
    """Coordinates along the directions of largest variance; zeros where there are fewer directions."""
    centred = vectors - vectors.mean(axis=0)
    left, singular, _ = np.linalg.svd(centred, full_matrices=False)
    points = np.zeros((len(vectors), dimensions), dtype=np.float32)
    n_axis = min(dimensions, len(singular))
    points[:, :n_axis] = left[:, :n_axis] * singular[:n_axis]
    return points


def laid_across(points: Float[np.ndarray, "point axis"]) -> Float[np.ndarray, "point axis"]:
    """The points rotated as a whole so that they spread most along the first axis, then along the second.

    Methods that know only distances give directions no meaning, and pages are wider than high. Each axis points the way
    closer to the axis before, so that rounding never turns points upside down.
    """
    centre = points.mean(axis=0)
    _, _, directions = np.linalg.svd(points - centre, full_matrices=False)
    if len(directions) < points.shape[1]:
        return points
    directions = directions * np.where(np.diag(directions) < 0, -1, 1)[:, None]
    laid: np.ndarray = (points - centre) @ directions.T
    return laid


def aligned(
    points: Float[np.ndarray, "point axis"], onto: Float[np.ndarray, "point axis"]
) -> Float[np.ndarray, "point axis"]:
    """The points moved, rotated and mirrored as a whole to be as close as possible to ``onto``, without scaling.

    Source: Schönemann 1966, "A generalized solution of the orthogonal Procrustes problem", by scipy 1.17.1.
    """
    centre = points.mean(axis=0)
    turn, _ = orthogonal_procrustes(points - centre, onto - onto.mean(axis=0))
    moved: np.ndarray = (points - centre) @ turn + onto.mean(axis=0)
    return moved.astype(np.float32)


def _is_exact(n_place: int, dimensions: int, engine: Engine) -> bool:
    return engine == "quickest" and n_place <= EXACT_UP_TO and dimensions == 2


def _tsne(
    vectors: np.ndarray,
    dimensions: int,
    metric: str,
    engine: Engine,
    progress: Progress | None,
    perplexity: float,
    iterations: int,
    seed: int,
) -> np.ndarray:
    start = _start(vectors, dimensions, seed) * np.float32(_START_SPREAD)
    if _is_exact(len(vectors), dimensions, engine):
        from attnviz.maps.tsne import exact_tsne  # numba is slow to import

        return exact_tsne(distances(vectors, vectors, metric) ** 2, start, perplexity, iterations)
    if engine == "quickest" and len(vectors) >= OPENTSNE_FROM:
        return _tsne_of_many(vectors, start, metric, progress, perplexity, iterations, seed)
    from sklearn.manifold import TSNE  # slow to import

    method = TSNE(
        n_components=dimensions,
        init=start,
        metric=metric,
        perplexity=perplexity,
        max_iter=iterations,
        random_state=seed,
    )
    return np.asarray(method.fit_transform(vectors))


_TWO_THREADS_FROM = 2000
"""Points from which two threads pay off: 2,000 took 2.3 to 2.6 s with two threads that sleep while they wait, and
3.5 to 6.3 s with one. Active waiting, the default of OpenMP (OMP_WAIT_POLICY), takes 41 s on a busy machine."""


def _tsne_of_many(
    vectors: np.ndarray,
    start: np.ndarray,
    metric: str,
    progress: Progress | None,
    perplexity: float,
    iterations: int,
    seed: int,
) -> np.ndarray:
    from openTSNE import TSNE  # slow to import

    done = 0

    def told(_iteration: int, _error: float, _points: np.ndarray) -> bool:
        nonlocal done
        done += _TOLD_EVERY
        if progress:
            progress(min(1.0, done / iterations))
        return False  # returning True would stop it

    method = TSNE(
        n_components=start.shape[1],
        initialization=start.astype(np.float64),
        metric=metric,
        perplexity=perplexity,
        early_exaggeration_iter=FEWEST_ITERATIONS,
        n_iter=iterations - FEWEST_ITERATIONS,
        neighbors="exact",
        negative_gradient_method="bh",  # the other method took 50 s where this one took 3 s, at 1,000 points
        callbacks=told,
        callbacks_every_iters=_TOLD_EVERY,
        n_jobs=2 if len(vectors) >= _TWO_THREADS_FROM else 1,
        random_state=seed,
    )
    return np.asarray(method.fit(vectors))


def _umap(
    vectors: np.ndarray, dimensions: int, metric: str, neighbours: int, min_dist: float, seed: int
) -> np.ndarray:
    with warnings.catch_warnings():
        # On import umap warns that Tensorflow, which only an unused part of it needs, is not installed.
        warnings.simplefilter("ignore", ImportWarning)
        from umap import UMAP  # slow to import, and compiled at its first call

    method = UMAP(
        n_components=dimensions,
        n_neighbors=neighbours,
        min_dist=min_dist,
        metric=metric,
        random_state=seed,
        n_jobs=1,  # with two threads, umap warns that the same random seed gives other points
        # umap's own start fails where there are few points.
        init=_start(vectors, dimensions, seed),
    )
    return np.asarray(method.fit_transform(vectors))


def _start(vectors: np.ndarray, dimensions: int, seed: int) -> Float[np.ndarray, "point axis"]:
    """Principal components with standard deviation 1 along the first, plus noise from the random seed."""
    points = principal_components(vectors, dimensions)
    deviation = float(points[:, 0].std())
    points = points / deviation if deviation > np.finfo(np.float32).tiny else np.zeros_like(points)
    noise: np.ndarray = np.random.default_rng(seed).normal(0, _START_NOISE, points.shape)
    return points + noise.astype(np.float32)


def _classical_scaling(vectors: np.ndarray, dimensions: int, metric: str) -> np.ndarray:
    from sklearn.manifold import ClassicalMDS  # slow to import

    points = np.zeros((len(vectors), dimensions), dtype=np.float32)
    scaling = ClassicalMDS(n_components=min(dimensions, len(vectors)), metric="precomputed")
    with np.errstate(invalid="ignore"):  # rounding may leave an eigenvalue slightly below 0
        plane = scaling.fit_transform(distances(vectors, vectors, metric))
    points[:, : plane.shape[1]] = np.nan_to_num(plane)
    return points
