"""Query and key vectors of one head as points in the plane, with figures of how faithful they are.

One concept: from vectors to points. Nothing of torch or transformers is needed.
"""

from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float
from scipy.spatial.distance import cdist
from scipy.stats import rankdata

from attnviz.errors import ProjectionError
from attnviz.records import Kind, Projection, Role

if TYPE_CHECKING:
    from attnviz.trace import Trace

METHODS = ("tsne",)
METRICS = ("cosine", "euclidean")
FEWEST_ITERATIONS = 250
"""scikit-learn 1.9.1 refuses fewer: the first 250 are its early exaggeration."""
MOST_ITERATIONS = 5000
_START_SPREAD = 1e-4
"""Standard deviation of the starting points along the first axis, as in scikit-learn 1.9.1, TSNE(init="pca")."""
_START_NOISE = 1e-5
"""What the seed adds to them: without it the descent has nothing random, and no seed would matter."""
FEWEST_POINTS = 4
"""With three points or fewer, no perplexity of at least 1 is valid and t-SNE says nothing."""


def largest_perplexity(n_point: int) -> float:
    """Largest perplexity that makes sense for this many points: a third of the others.

    Source: the check ``N - 1 < 3 * perplexity`` in van der Maaten's bhtsne (tsne.cpp); each point looks
    for three times the perplexity of neighbours.
    """
    return max(1.0, (n_point - 1) / 3)


def project(
    trace: "Trace",
    layer: int,
    head: int,
    *,
    kind: Kind | None = None,
    method: str = "tsne",
    metric: str = "cosine",
    perplexity: float = 5.0,
    iterations: int = 1000,
    seed: int = 0,
) -> Projection:
    """Queries and keys of one head laid out together in the plane; same settings, same picture.

    Args:
        method: "tsne", van der Maaten and Hinton 2008 (JMLR 9:2579), by scikit-learn 1.9.1, started from
            the first two principal components with a little noise.
        metric: "cosine" or "euclidean" distance between the vectors.
        perplexity: how many neighbours a point minds, at least 1; lowered where the points are too few,
            which ``remark`` of the result then says.
        iterations: steps of the optimiser, 250 to 5000.
        seed: of the noise, 0 to 2^32 - 1. Maps that differ with the seed show what not to believe.

    Returns:
        Points [point, 2], queries first, and how well distances keep the order of the scores.

    Raises:
        ProjectionError: a parameter outside its range.
        SelectionError: no such layer, head or kind.
    """
    _check(method, metric, perplexity, iterations, seed)
    pattern = trace.pattern(layer, head, kind)
    query, key = trace.query(layer, head, kind), trace.key(layer, head, kind)
    vectors = np.concatenate([query, key])  # [point, d_head]
    n_point = len(vectors)
    remark = ""
    used: dict[str, Any] = {}
    if n_point < FEWEST_POINTS:
        method = "pca"
        points = _principal_components(vectors)
        remark = f"{n_point} points are too few for t-SNE; they are placed by their principal components."
    else:
        if perplexity > largest_perplexity(n_point):
            fitted = largest_perplexity(n_point)
            remark = f"Perplexity {perplexity:g} is lowered to {fitted:.1f}: there are only {n_point} points."
            perplexity = fitted
        used = {"metric": metric, "perplexity": perplexity, "iterations": iterations, "seed": seed}
        points = _tsne(vectors, **used)
    agreement, correlation = _faithfulness(points[: len(query)], points[len(query) :], pattern.scores)
    roles: list[Role] = ["query" for _ in query]
    roles += ["key" for _ in key]
    return Projection(
        points=points,
        role=tuple(roles),
        position=np.concatenate([np.arange(len(query)), np.arange(len(key))]),
        query_tokens=pattern.query_tokens,
        key_tokens=pattern.key_tokens,
        kind=pattern.kind,
        layer=layer,
        head=head,
        method=method,
        parameters=used,
        remark=remark,
        neighbour_agreement=agreement,
        order_correlation=correlation,
        provenance=trace.provenance,
    )


def _check(method: str, metric: str, perplexity: float, iterations: int, seed: int) -> None:
    def refuse(asked: str, valid: str) -> ProjectionError:
        return ProjectionError(f"{asked} was asked for; a map takes {valid}. Pick one of those.")

    if method not in METHODS:
        raise refuse(f"Method {method!r}", "tsne")
    if metric not in METRICS:
        raise refuse(f"Metric {metric!r}", " or ".join(METRICS))
    if not 1.0 <= perplexity < np.inf:
        raise refuse(f"Perplexity {perplexity}", "a perplexity of at least 1")
    if not FEWEST_ITERATIONS <= iterations <= MOST_ITERATIONS:
        raise refuse(f"{iterations} iterations", f"{FEWEST_ITERATIONS} to {MOST_ITERATIONS} iterations")
    if not 0 <= seed < 2**32:
        raise refuse(f"Seed {seed}", "a seed from 0 to 4294967295")


def _tsne(
    vectors: Float[np.ndarray, "point d_head"], metric: str, perplexity: float, iterations: int, seed: int
) -> Float[np.ndarray, "point 2"]:
    from sklearn.manifold import TSNE  # slow to import
    from threadpoolctl import threadpool_limits

    start = _principal_components(vectors)
    spread = max(float(start[:, 0].std()), float(np.finfo(np.float32).tiny))
    start *= _START_SPREAD / spread
    start += np.random.default_rng(seed).normal(0, _START_NOISE, start.shape).astype(np.float32)
    method = TSNE(init=start, metric=metric, perplexity=perplexity, max_iter=iterations, random_state=seed)
    # One thread: a step on few points is shorter than the wait for a second thread. On a busy machine 22
    # points took 0.05 s with one thread and up to 4 s with two; 1,024 points 2.0 s and 1.5 s on an idle one.
    with threadpool_limits(1, user_api="openmp"):
        points: np.ndarray = method.fit_transform(vectors)
    return points.astype(np.float32)


def _principal_components(vectors: Float[np.ndarray, "point d_head"]) -> Float[np.ndarray, "point 2"]:
    centred = vectors - vectors.mean(axis=0)
    left, singular, _ = np.linalg.svd(centred, full_matrices=False)
    points = np.zeros((len(vectors), 2), dtype=np.float32)
    n_axis = min(2, len(singular))
    points[:, :n_axis] = left[:, :n_axis] * singular[:n_axis]
    return points


def _faithfulness(
    queries: Float[np.ndarray, "query 2"],
    keys: Float[np.ndarray, "key 2"],
    scores: Float[np.ndarray, "query key"],
) -> tuple[float, float]:
    """Share of queries whose nearest key scores highest, and mean rank correlation of score and distance.

    Keys that a query may not see are left out, and so are queries with fewer than two keys.
    """
    distances = cdist(queries, keys)
    nearest, correlations = [], []
    for row, distance in zip(scores, distances, strict=True):
        seen = np.isfinite(row)
        if seen.sum() < 2:
            continue
        nearest.append(row[seen].argmax() == distance[seen].argmin())
        correlations.append(_spearman(row[seen], distance[seen]))
    if not nearest:
        return float("nan"), float("nan")
    return float(np.mean(nearest)), float(np.mean(correlations))


def _spearman(one: Float[np.ndarray, " key"], other: Float[np.ndarray, " key"]) -> float:
    """Correlation of the ranks; 0 where one side is constant and has no order."""
    first, second = rankdata(one), rankdata(other)
    if np.ptp(first) == 0 or np.ptp(second) == 0:
        return 0.0
    return float(np.corrcoef(first, second)[0, 1])
