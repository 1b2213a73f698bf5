"""The effect of a mask on one head with the same queries, keys and values, and on the model's output.

One concept: the effect of a mask.
"""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Bool, Float

from attnviz.records import AttentionPattern, Kind, Measure, Record

if TYPE_CHECKING:
    from attnviz.model.trace import Trace


def under_mask(
    trace: "Trace",
    layer: int,
    head: int,
    allowed: Bool[np.ndarray, "query key"],
    kind: Kind | None = None,
    *,
    measure: Measure = "weights",
) -> AttentionPattern:
    """The matrix of a head with the same queries and keys, in which a query sees only the allowed ones.

    Keys that the model forbids stay forbidden.

    Raises:
        SelectionError: no such layer, head, kind or measure.
    """
    call = trace.attention(layer, kind)
    seen = allowed[None] if call.allowed is None else allowed & call.allowed
    return trace.with_layer(replace(call, allowed=seen)).pattern(layer, head, kind, measure=measure)


def cosine_change(
    before: Float[np.ndarray, "token hidden"], after: Float[np.ndarray, "token hidden"]
) -> Float[np.ndarray, " token"]:
    """How far each token's vector has turned: 1 - cos of the angle, from 0 for no change of direction to 2.

    Zero vectors have no direction: 0 where both are zero, 1, as at a right angle, where one of them is.
    """
    first, second = (directions(vectors) for vectors in (before, after))
    turned = ((first - second) ** 2).sum(axis=1) / 2  # 1 - cos, without cancellation
    is_zero = [~vectors.any(axis=1) for vectors in (first, second)]
    change: np.ndarray = np.where(is_zero[0] != is_zero[1], 1, turned).clip(0, 2).astype(np.float32)
    return change


def directions(vectors: Float[np.ndarray, "vector axis"]) -> Float[np.ndarray, "vector axis"]:
    """The vectors with length 1, in float64, in which no float32 is too small to be squared; zeros stay zeros."""
    precise = vectors.astype(np.float64)
    lengths = np.linalg.norm(precise, axis=1, keepdims=True)
    unit: np.ndarray = np.divide(precise, lengths, out=np.zeros_like(precise), where=lengths > 0)
    return unit


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MaskEffect(Record):
    """How many cells a mask hides, and how far it turns the last hidden states."""

    n_masked: int
    """Cells that the mask hides and that the model allows in at least one of the heads it is applied in."""
    is_unchanged: bool
    """Whether all last hidden states are bit-identical."""
    change: Float[np.ndarray, " token"]
    """As `cosine_change`."""
    mean: float
    largest: float
    most: tuple[int, ...]
    """Positions of the tokens whose state turns by the largest change; none where no state turns."""


def mask_effect(
    trace: "Trace",
    changed: "Trace",
    allowed: Bool[np.ndarray, "query key"],
    kind: Kind | None = None,
    *,
    layer: int | None = None,
    head: int | None = None,
) -> MaskEffect:
    """What a mask does to a text.

    Args:
        changed: the trace under the mask.
        allowed: the mask, True where a query may see a key.
        layer, head: where the mask is applied; None for every layer, or every head of the layer.
    """
    before, after = trace.last_hidden_state, changed.last_hidden_state
    change = cosine_change(before, after)
    largest = change.max()
    return MaskEffect(
        n_masked=int((_seen_anywhere(trace, allowed.shape, kind, layer, head) & ~allowed).sum()),
        is_unchanged=bool(np.array_equal(before, after)),
        change=change,
        mean=float(change.mean()),
        largest=float(largest),
        most=tuple(np.flatnonzero(change == largest).tolist()) if largest else (),
    )


def _seen_anywhere(
    trace: "Trace", shape: tuple[int, ...], kind: Kind | None, layer: int | None, head: int | None
) -> np.ndarray:
    """Cells [query, key] that the model itself allows in at least one of these heads."""
    seen = np.zeros(shape, dtype=bool)
    for number in range(trace.n_layers(kind)) if layer is None else [layer]:
        own = trace.attention(number, kind).allowed
        if own is None:
            return np.ones(shape, dtype=bool)
        seen |= (own if head is None or len(own) == 1 else own[[head]]).any(axis=0)
    return seen
