"""The vectors that a map of queries and keys is made from: as they are, or moved so that distances follow the scores.

One concept: vectors to vectors. numpy only. Every space but ``raw`` moves queries and keys without changing the
attention weights. Distances can only follow q . k: terms that a family adds to the scores, such as T5's bias for
relative positions, are not in the vectors.

Source: a softmax does not change when a number is added to all scores of a row, and q . (k + c) = q . k + q . c
adds the same number to all scores of query q. The lift is the reduction of maximum inner product search to nearest
neighbours by Bachrach et al. 2014, "Speeding Up the Xbox Recommender System Using a Euclidean Transformation for
Inner-Product Spaces" (RecSys 2014), section 3, applied to centred keys.
"""

from typing import Literal, get_args

import numpy as np
from jaxtyping import Float

from attnviz.errors import ProjectionError

Space = Literal["raw", "centred", "balanced", "lifted"]
SPACES: tuple[Space, ...] = get_args(Space)


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
    keys = keys - keys.mean(axis=0)
    if space == "centred":
        return queries, keys
    lengths = np.linalg.norm(keys, axis=1)
    if space == "balanced":
        ratio = float(np.median(lengths)) / max(float(np.median(np.linalg.norm(queries, axis=1))), 1e-12)
        factor = np.float32(np.sqrt(ratio) if ratio > 0 else 1.0)
        return queries * factor, keys / factor
    squared = (keys.astype(np.float64) ** 2).sum(axis=1)
    height = np.sqrt((squared.max() - squared).clip(min=0)).astype(np.float32)
    return (
        np.column_stack([queries, np.zeros(len(queries), dtype=np.float32)]),
        np.column_stack([keys, height]),
    )
