"""Rank correlation.

One concept: Spearman's correlation of many rows at once, over the keys that are seen.

Source: Spearman 1904, ties at their mean rank (scipy 1.17.1, rankdata).
"""

import numpy as np
from jaxtyping import Bool, Float
from scipy.stats import rankdata


def rank_correlations(
    one: Float[np.ndarray, "row key"], other: Float[np.ndarray, "row key"], seen: Bool[np.ndarray, "row key"]
) -> Float[np.ndarray, " row"]:
    """Spearman's correlation of each pair of rows over the keys that are seen, -1 to 1.

    0 where one of the rows is constant and has no order.
    """
    first, second = _centred_ranks(one, seen), _centred_ranks(other, seen)
    size = np.sqrt((first**2).sum(axis=1) * (second**2).sum(axis=1))
    return np.asarray(np.divide((first * second).sum(axis=1), size, out=np.zeros_like(size), where=size > 0))


def _centred_ranks(numbers: np.ndarray, seen: np.ndarray) -> np.ndarray:
    """Ranks among the numbers of a row that are seen, less their mean; 0 for the others."""
    n_seen = seen.sum(axis=1, keepdims=True)
    # Keys that are not seen come first, and n_seen ranks have the mean (n_seen + 1) / 2.
    ranks = rankdata(np.where(seen, numbers, -np.inf), axis=1) - (seen.shape[1] - n_seen)
    return np.where(seen, ranks - (n_seen + 1) / 2, 0)
