"""The cells of the heads of a layer, arranged by two axes, some rows at a time.

So that neither the weights of all layers nor the matrix of a long text are in memory.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Bool, Float, Int

from attnviz.records import Axis, Kind, LayerAttention, Measure, arrange

if TYPE_CHECKING:
    from attnviz.model.trace import Trace

_FAR = 128
"""Tokens between two rows from which on their numbers are computed separately: the rows of a block of weights."""


def cells_in_blocks(
    trace: "Trace",
    layer: int,
    kind: Kind | None,
    queries: Axis,
    keys: Axis,
    measure: Measure = "weights",
    *,
    head: int | None = None,
    first: int = 0,
    as_shares: bool = False,
) -> Iterator[tuple[slice, Float[np.ndarray, "head row key"]]]:
    """Cells of a layer, arranged, some queries at a time, each block with its place among the queries.

    Args:
        head: the head that is asked for; None for all heads of the layer.
        first: the query to begin with.
        as_shares: whether each row is divided by its sum over all keys.
    """
    starts, stops = queries.spans.T
    done = first
    while done < len(queries):
        apart = np.flatnonzero(starts[done + 1 :] - stops[done:-1] >= _FAR)
        end = done + 1 + int(apart[0]) if len(apart) else len(queries)
        rows, begin = [], int(starts[done])
        asked = slice(begin, int(stops[end - 1]))
        for part, cells in trace.blocks(layer, kind, head=head, rows=asked, measure=measure):
            rows.append(cells)
            whole = int(np.searchsorted(stops[:end], part.stop, side="right"))
            if whole > done:  # a word may go on in the next block
                block = rows[0] if len(rows) == 1 else np.concatenate(rows, axis=1)
                made = arrange(
                    _shares(block) if as_shares and measure != "weights" else block,
                    _moved(queries, done, whole, begin),
                    keys,
                )
                yield slice(done, whole), made
                left = int(stops[whole - 1])
                rows = [block[:, left - begin :].copy()] if left < part.stop else []
                begin, done = left, whole
                del block, cells, made  # the next one takes its memory


def _moved(queries: Axis, first: int, stop: int, begin: int) -> Axis:
    """Some queries, whose tokens are counted from the beginning of a block."""
    return replace(queries, spans=queries.spans[first:stop] - begin)


def _shares(cells: Float[np.ndarray, "head row key"]) -> Float[np.ndarray, "head row key"]:
    total = cells.sum(axis=-1, keepdims=True)
    shares: np.ndarray = np.divide(cells, total, out=np.zeros_like(cells), where=total > 0)
    return shares


def allowed_cells(
    call: LayerAttention, queries: Axis, keys: Axis, rows: slice
) -> Bool[np.ndarray, "#head row key"]:
    """True where any token of a query's entry may see any token of a key's entry, for some queries."""
    part = replace(queries, spans=queries.spans[rows])
    allowed = call.allowed
    if allowed is None:
        return np.ones((1, len(part), len(keys)), dtype=bool)
    begin, stop = int(part.spans[0, 0]), int(part.spans[-1, 1])
    seen = allowed[:, begin:stop] if allowed.shape[1] > 1 else allowed
    seen = np.broadcast_to(seen, (len(allowed), stop - begin, allowed.shape[-1]))
    moved = _moved(part, 0, len(part), begin)
    if queries.is_merged or keys.is_merged:
        return np.asarray(arrange(seen.astype(np.float32), moved, keys) > 0)
    return np.asarray(arrange(seen, moved, keys))


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


def on_both_axes(queries: Axis, keys: Axis) -> tuple[Int[np.ndarray, " entry"], Int[np.ndarray, " entry"]]:
    """Rows and columns of the entries that are on both axes."""
    _, rows, columns = np.intersect1d(*places(queries, keys), return_indices=True)
    return rows, columns
