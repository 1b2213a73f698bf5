"""How reliable a map is: how its distances agree with the scores, and with the vectors it was made from.

One concept: figures of faithfulness. numpy, scipy and scikit-learn, without torch.
"""

import numpy as np
from jaxtyping import Float
from scipy.spatial.distance import cdist

from attnviz.maths.ranks import rank_correlations
from attnviz.records import Faithfulness, Projection

NEIGHBOURS = 5
"""Neighbours of each point for trustworthiness, as in scikit-learn 1.9.1; fewer where there are few points."""

_AT_MOST_ONE_IN_TWENTY = 1.73
"""Standard deviations of Spearman's correlation that at most one in twenty orders of any number of keys exceeds.

The normal quantile of 1/20 is 1.645, which 5.1 to 5.5% of the orders exceed for 6, 7 and 9 to 12 keys. At most 4.4%
exceed 1.73: all orders of up to 9 keys were counted, and 400,000 random orders of each larger number of keys.
"""


def faithfulness(
    queries: Float[np.ndarray, "query axis"],
    keys: Float[np.ndarray, "key axis"],
    scores: Float[np.ndarray, "query key"],
    *,
    metric: str = "euclidean",
) -> Faithfulness:
    """How well distances from queries to keys keep the order of the scores.

    Keys that a query may not see (a score of minus infinity) are left out, and so are queries with fewer than
    two keys. Where all distances or scores of a query are equal there is no order, and its correlation is 0.

    Source: Spearman 1904, the correlation of ranks, ties at their mean rank (scipy 1.17.1, rankdata).
    """
    distances = cdist(queries, keys, metric)
    seen = np.isfinite(scores)
    judged = seen.sum(axis=1) >= 2
    if not judged.any():
        nan = float("nan")
        return Faithfulness(order_correlation=nan, worst_correlation=nan, nearest_agreement=nan)
    scores, distances, seen = scores[judged], distances[judged], seen[judged]
    correlations = rank_correlations(scores, distances, seen)
    strongest = np.where(seen, scores, -np.inf).argmax(axis=1)
    nearest = np.where(seen, distances, np.inf).argmin(axis=1)
    return Faithfulness(
        order_correlation=float(correlations.mean()),
        worst_correlation=float(correlations.max()),
        worst_query=int(np.flatnonzero(judged)[correlations.argmax()]),
        nearest_agreement=float((strongest == nearest).mean()),
    )


def chance_correlation(*scores: Float[np.ndarray, "_query _key"]) -> float:
    """The correlation (`Faithfulness.order_correlation`) that at most one shuffled map in twenty falls below.

    An upper bound that is the same for every map of these scores; how many shuffled maps pass depends on the map. NaN
    where no query sees two keys, and -1 or less where there are too few keys for any map to pass.

    Args:
        scores: of one text, or of each of several texts that are judged together.

    Source: if all orders are equally likely, Spearman's correlation of n ranks has the standard deviation
    1 / sqrt(n - 1), Kendall 1948, "Rank Correlation Methods", chapter 5. The standard deviation of a mean is at most the
    mean of the standard deviations, which it reaches where all queries order the keys alike. Of 38,400 attention maps
    of the bundled model (5, 9, 11 and 29 tokens) whose keys were shuffled, 0.5 to 1.3% fell below, of a single head
    4.5% at most.
    """
    n_seen = np.concatenate([np.isfinite(one).sum(axis=1) for one in scores])
    n_seen = n_seen[n_seen >= 2]
    return float(-_AT_MOST_ONE_IN_TWENTY * (1 / np.sqrt(n_seen - 1)).mean()) if len(n_seen) else float("nan")


def trustworthiness(
    vectors: Float[np.ndarray, "point d_fed"], points: Float[np.ndarray, "point axis"], *, metric: str
) -> float:
    """Whether points that are near in the map are near among the vectors, from 0 to 1; NaN for fewer than 4 points.

    Source: Venna and Kaski 2001, "Neighborhood Preservation in Nonlinear Projection Methods" (ICANN), by
    scikit-learn 1.9.1, which takes fewer neighbours than half the points.
    """
    n_neighbours = min(NEIGHBOURS, (len(points) - 1) // 2)
    if n_neighbours < 1 or len(points) < 4:
        return float("nan")
    from sklearn.manifold import trustworthiness as measured  # slow to import

    return float(measured(vectors, points, n_neighbors=n_neighbours, metric=metric))


def rank_by_distance(projection: Projection, query: int, key: int) -> int:
    """Place of a key among all keys by the distance of its point from the query's; 1 is the nearest.

    Args:
        query: position of the query's token.
        key: position of the key's token.
    """
    from_query = projection.points[projection.rows("query")[query]]
    distances = np.linalg.norm(projection.points[projection.rows("key")] - from_query, axis=1)
    return int((distances < distances[key]).sum()) + 1
