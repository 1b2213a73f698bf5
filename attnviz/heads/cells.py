"""The cells of all heads of a layer, arranged by two axes.

Layers are processed one by one, so that only one layer's weights are in memory.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Bool, Float, Int

from attnviz.records import Axis, Kind, LayerAttention, Measure, arrange

if TYPE_CHECKING:
    from attnviz.model.trace import Trace


def layer_cells(
    trace: "Trace", kind: Kind | None, queries: Axis, keys: Axis, measure: Measure, *, as_shares: bool = False
) -> Iterator[Float[np.ndarray, "head query key"]]:
    """Cells of each layer, arranged; with ``as_shares`` each row is divided by its sum over all keys."""
    for layer in range(trace.n_layers(kind)):
        cells = trace.layer_weights(layer, kind, measure=measure)
        if as_shares and measure != "weights":  # weights are shares already
            total = cells.sum(axis=-1, keepdims=True)
            cells = np.divide(cells, total, out=np.zeros_like(cells), where=total > 0)
        yield arrange(cells, queries, keys)


def allowed_cells(call: LayerAttention, queries: Axis, keys: Axis) -> Bool[np.ndarray, "#head query key"]:
    """True where any token of a query's entry may see any token of a key's entry."""
    allowed = call.allowed
    if allowed is None:
        return np.ones((1, len(queries.spans), len(keys.spans)), dtype=bool)
    whole = np.broadcast_to(allowed, (len(allowed), call.query.shape[1], allowed.shape[-1]))
    seen: np.ndarray = arrange(whole.astype(np.float32), queries, keys) > 0
    return seen


def whole_axis(queries: Axis, keys: Axis) -> Axis:
    """All entries of the text of two axes, hidden entries included; a token that neither axis shows is an entry by itself."""
    begins = np.ones(len(queries.tokens), dtype=bool)
    for first, stop in np.concatenate([queries.spans, keys.spans]):
        begins[first + 1 : stop] = False
    starts = np.flatnonzero(begins)
    return replace(queries, spans=np.column_stack([starts, np.append(starts[1:], len(begins))]))


def places(queries: Axis, keys: Axis) -> tuple[Int[np.ndarray, " query"], Int[np.ndarray, " key"]]:
    """Positions of the entries of two axes of one text, counted in entries, hidden entries included."""
    starts = whole_axis(queries, keys).positions
    rows, columns = (np.searchsorted(starts, axis.positions, side="right") - 1 for axis in (queries, keys))
    return rows, columns


def distances(queries: Axis, keys: Axis) -> Float[np.ndarray, "query key"]:
    """Distance of each query from each key of the same text, in entries."""
    rows, columns = places(queries, keys)
    apart: np.ndarray = np.abs(rows[:, None] - columns).astype(np.float32)
    return apart


def on_both_axes(queries: Axis, keys: Axis) -> tuple[Int[np.ndarray, " entry"], Int[np.ndarray, " entry"]]:
    """Rows and columns of the entries that are on both axes."""
    _, rows, columns = np.intersect1d(*places(queries, keys), return_indices=True)
    return rows, columns
