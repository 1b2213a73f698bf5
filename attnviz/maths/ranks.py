"""Rank correlation.

Source: Spearman 1904, ties at their mean rank (scipy 1.17.1, rankdata).
"""

import numpy as np
from jaxtyping import Bool, Float
from scipy.stats import rankdata


def rank_correlations(
    scores: Float[np.ndarray, "row key"],
    other: Float[np.ndarray, "row key"],
    seen: Bool[np.ndarray, "row key"],
) -> Float[np.ndarray, " row"]:
    """Spearman's correlation of each pair of rows over the keys that are seen, -1 to 1.

    0 where one of the rows is constant and has no order.
    """
    return np.asarray((unit_ranks(scores, seen) * unit_ranks(other, seen)).sum(axis=1))


def unit_ranks(
    numbers: Float[np.ndarray, "row key"], seen: Bool[np.ndarray, "row key"]
) -> Float[np.ndarray, "row key"]:
    """Ranks among the numbers of a row that are seen, less their mean, as a vector of length 1.

    The product of two such rows is Spearman's correlation. 0 for keys that are not seen, and for a constant row.
    """
    n_seen = seen.sum(axis=1, keepdims=True)
    # Keys that are not seen come first, and n_seen ranks have the mean (n_seen + 1) / 2.
    ranks = rankdata(np.where(seen, numbers, -np.inf), axis=1) - (seen.shape[1] - n_seen)
    centred = np.where(seen, ranks - (n_seen + 1) / 2, 0)
    length = np.sqrt((centred**2).sum(axis=1, keepdims=True))
    return np.asarray(np.divide(centred, length, out=np.zeros_like(centred), where=length > 0))
