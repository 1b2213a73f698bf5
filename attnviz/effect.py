"""What a mask does: to one head with the same queries, keys and values, and to the model's output.

One concept: the effect of a mask.
"""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Bool, Float

from attnviz.records import AttentionPattern, Kind, Record

if TYPE_CHECKING:
    from attnviz.trace import Trace


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


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Effect(Record):
    """How far the last hidden state of each token is from what it was."""

    cosine_change: Float[np.ndarray, " token"]
    """1 - cos of the angle between the vector before and after: 0 for no change of direction."""
    length_ratio: Float[np.ndarray, " token"]
    """Length after, divided by the length before."""


def effect(before: "Trace", after: "Trace") -> Effect:
    """What an intervention did to each token, from a trace without it and one with it."""
    first, second = (one.last_hidden_state.astype(np.float64) for one in (before, after))
    lengths = np.linalg.norm(first, axis=1), np.linalg.norm(second, axis=1)
    tiny = np.finfo(np.float32).tiny
    cosine = (first * second).sum(axis=1) / np.maximum(lengths[0] * lengths[1], tiny)
    return Effect(
        cosine_change=(1 - cosine).clip(0, 2).astype(np.float32),
        length_ratio=(lengths[1] / np.maximum(lengths[0], tiny)).astype(np.float32),
    )
