"""The effect of a mask on one head with the same queries, keys and values, and on the model's output."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Bool, Float

from attnviz.arguments import typed
from attnviz.maths.attribution import head_norms
from attnviz.maths.directions import cosine_changes
from attnviz.records import AttentionPattern, Kind, Measure, Record

if TYPE_CHECKING:
    from attnviz.model.trace import Trace


@typed
def under_mask(
    trace: "Trace",
    layer: int,
    head: int,
    allowed: Bool[np.ndarray, "row key"],
    kind: Kind | None = None,
    *,
    measure: Measure = "weights",
    rows: slice = slice(None),
) -> AttentionPattern:
    """The matrix of a head with the same queries and keys, in which a query sees only the allowed ones.

    Keys that the model forbids stay forbidden.

    Args:
        allowed: True where one of the queries that are asked for may see a key.
        rows: these queries, as in `attnviz.Trace.pattern`; all by default.

    Raises:
        SelectionError: no such layer, head, kind or measure.
    """
    own = trace.pattern(layer, head, kind, measure=measure, rows=rows)
    seen = allowed & own.allowed
    scores, weights = replace(trace.head(layer, head, kind).some(rows), allowed=seen).scores_and_weights()
    if measure == "norms":
        weights = head_norms(weights, trace.value_lengths(layer, kind)[head])
    return replace(own, scores=None if own.scores is None else scores, weights=weights, allowed=seen)


def cosine_change(
    before: Float[np.ndarray, "token hidden"], after: Float[np.ndarray, "token hidden"]
) -> Float[np.ndarray, " token"]:
    """How far each token's vector has turned: 1 - cos of the angle, from 0 for no change of direction to 2.

    A vector that stays zero has not turned; one that becomes zero, or was, has turned by 1: `attnviz.maths.directions`.
    """
    change: np.ndarray = cosine_changes(before, after).astype(np.float32)
    return change


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


@typed
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
