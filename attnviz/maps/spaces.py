"""The vectors that a map of queries and keys is made from: as they are, or moved so that distances follow the scores.

Every space but ``raw`` moves queries and keys without changing the attention weights. Distances can only follow q . k:
terms that a family adds to the scores, such as T5's bias for relative positions, are not in the vectors.

Source: a softmax does not change when a number is added to all scores of a row, and q . (k + c) = q . k + q . c
adds the same number to all scores of query q. The lift is the reduction of maximum inner product search to nearest
neighbours by Bachrach et al. 2014, "Speeding Up the Xbox Recommender System Using a Euclidean Transformation for
Inner-Product Spaces" (RecSys 2014), section 3, applied to centred keys.
"""

from typing import Literal, get_args

import numpy as np
from jaxtyping import Float
from scipy.spatial.distance import cdist

from attnviz.errors import ProjectionError
from attnviz.maths.directions import cosine_distances

Space = Literal["raw", "centred", "balanced", "lifted"]
SPACES: tuple[Space, ...] = get_args(Space)
_ROUNDING = 1e-6
"""Centred keys whose numbers are all below this share of the largest number of any key are zero: float32 rounds a mean by as
much, and a method that compares directions would show nothing else."""


def distances(
    first: Float[np.ndarray, "row d_fed"], second: Float[np.ndarray, "column d_fed"], metric: str
) -> Float[np.ndarray, "row column"]:
    """Distances between two groups of vectors, in float64.

    Args:
        metric: "cosine", 1 - cos of the angle, as `attnviz.maths.directions`; or "euclidean".
    """
    if metric == "cosine":
        return cosine_distances(first, second)
    return np.asarray(cdist(first, second))


def fed(
    queries: Float[np.ndarray, "query d_head"], keys: Float[np.ndarray, "key d_head"], space: Space
) -> tuple[Float[np.ndarray, "query d_fed"], Float[np.ndarray, "key d_fed"]]:
    """Queries and keys as they are fed to a map; d_fed is d_head, or d_head + 1 for lifted vectors.

    Args:
        space: ``raw``, as the model has them; ``centred``, keys moved so that their mean is zero; ``balanced``,
            centred keys k / c and queries q c with c = sqrt(median |k| / median |q|), so that both have the same
            median length and every q . k is what it was; ``lifted``, centred keys (k, sqrt(M^2 - |k|^2)) and
            queries (q, 0) with M the longest key, so that |q - k|^2 = |q|^2 + M^2 - 2 q . k and a nearer key
            always has a larger q . k.

    Raises:
        ProjectionError: no such space.
    """
    if space not in SPACES:
        raise ProjectionError(
            f"Vectors {space!r} were asked for; a map takes {', '.join(SPACES)}. Select one of those."
        )
    if space == "raw" or not len(keys):
        return queries, keys
    largest = np.abs(keys).max()
    keys = keys - keys.mean(axis=0)
    keys[np.abs(keys).max(axis=1) <= _ROUNDING * largest] = 0
    if space == "centred":
        return queries, keys
    if space == "balanced":
        lengths = [
            float(np.median(np.linalg.norm(side.astype(np.float64), axis=1))) for side in (keys, queries)
        ]
        ratio = lengths[0] / lengths[1] if lengths[1] > 0 else 1.0
        factor = np.float32(np.sqrt(ratio) if ratio > 0 else 1.0)
        return queries * factor, keys / factor
    squared = (keys.astype(np.float64) ** 2).sum(axis=1)
    height = np.sqrt((squared.max() - squared).clip(min=0)).astype(np.float32)
    return (
        np.column_stack([queries, np.zeros(len(queries), dtype=np.float32)]),
        np.column_stack([keys, height]),
    )
