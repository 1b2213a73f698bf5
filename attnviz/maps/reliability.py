"""How reliable a map is: how its distances agree with the scores, and with the vectors it was made from.

numpy, scipy and scikit-learn, without torch.
"""

import numpy as np
from jaxtyping import Float

from attnviz.maps.spaces import distances
from attnviz.maths.ranks import rank_correlations
from attnviz.records import Projection, Reliability

NEIGHBOURS = 5
"""Neighbours of each point for trustworthiness, as in scikit-learn 1.9.1; fewer where there are few points."""


def reliability(
    queries: Float[np.ndarray, "query axis"],
    keys: Float[np.ndarray, "key axis"],
    scores: Float[np.ndarray, "query key"],
    *,
    metric: str = "euclidean",
) -> Reliability:
    """How well distances from queries to keys keep the order of the scores.

    Keys that a query may not see (a score of minus infinity) are left out, and so are queries with fewer than
    two keys. If all distances or scores of a query are equal, its correlation is 0. Equally near keys share equally in
    being the nearest.

    Source: Spearman 1904, the correlation of ranks, ties at their mean rank (scipy 1.17.1, rankdata).
    """
    apart = distances(queries, keys, metric)
    seen = np.isfinite(scores)
    judged = seen.sum(axis=1) >= 2
    if not judged.any():
        nan = float("nan")
        return Reliability(n_query=0, order_correlation=nan, worst_correlation=nan, nearest_agreement=nan)
    scores, apart, seen = scores[judged], apart[judged], seen[judged]
    correlations = rank_correlations(scores, apart, seen)
    strongest = scores == np.where(seen, scores, -np.inf).max(axis=1, keepdims=True)
    nearest = seen & (apart == np.where(seen, apart, np.inf).min(axis=1, keepdims=True))
    return Reliability(
        n_query=len(scores),
        order_correlation=float(correlations.mean()),
        worst_correlation=float(correlations.max()),
        worst_query=int(np.flatnonzero(judged)[correlations.argmax()]),
        nearest_agreement=float(((nearest & strongest).sum(axis=1) / nearest.sum(axis=1)).mean()),
    )


def trustworthiness(
    vectors: Float[np.ndarray, "point d_fed"], points: Float[np.ndarray, "point axis"], *, metric: str
) -> float:
    """Whether points that are near in the map are near as vectors, from 0 to 1; NaN for fewer than 4 points.

    NaN also where all points coincide.

    Source: Venna and Kaski 2001, "Neighborhood Preservation in Nonlinear Projection Methods" (ICANN), by
    scikit-learn 1.9.1, which takes fewer neighbours than half the points.
    """
    n_neighbours = min(NEIGHBOURS, (len(points) - 1) // 2)
    if n_neighbours < 1 or len(points) < 4 or (points == points[0]).all():
        return float("nan")
    from sklearn.manifold import trustworthiness as measured  # slow to import

    apart = distances(vectors, vectors, metric)
    return float(measured(apart, points, n_neighbors=n_neighbours, metric="precomputed"))


def rank_by_distance(projection: Projection, query: int, key: int) -> int:
    """Place of a key among all keys by the distance of its point from the query's; 1 is the nearest.

    Args:
        query: position of the query's token.
        key: position of the key's token.
    """
    from_query = projection.points[projection.rows("query")[query]]
    distances = np.linalg.norm(projection.points[projection.rows("key")] - from_query, axis=1)
    return int((distances < distances[key]).sum()) + 1
