"""The effect of a mask on one head with the same queries, keys and values, and on the model's output.

One concept: the effect of a mask.
"""

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Bool, Float

from attnviz.records import AttentionPattern, Kind

if TYPE_CHECKING:
    from attnviz.model.trace import Trace


def under_mask(
    trace: "Trace",
    layer: int,
    head: int,
    allowed: Bool[np.ndarray, "query key"],
    kind: Kind | None = None,
) -> AttentionPattern:
    """The matrix of a head with the same queries and keys, in which a query sees only the allowed ones.

    Keys that the model forbids stay forbidden.

    Raises:
        SelectionError: no such layer, head or kind.
    """
    call = trace.attention(layer, kind)
    seen = allowed[None] if call.allowed is None else allowed & call.allowed
    return trace.with_layer(replace(call, allowed=seen)).pattern(layer, head, kind)


def cosine_change(
    before: Float[np.ndarray, "token hidden"], after: Float[np.ndarray, "token hidden"]
) -> Float[np.ndarray, " token"]:
    """How far each token's vector has turned: 1 - cos of the angle, from 0 for no change of direction to 2."""
    first, second = before.astype(np.float64), after.astype(np.float64)
    lengths = np.linalg.norm(first, axis=1) * np.linalg.norm(second, axis=1)
    cosine = (first * second).sum(axis=1) / np.maximum(lengths, np.finfo(np.float32).tiny)
    change: np.ndarray = (1 - cosine).clip(0, 2).astype(np.float32)
    return change
