"""The cells of all heads of a layer, some rows at a time, and how their rows and columns lie in the text.

A layer is held where it fits into memory, and computed again for each pass where it does not.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from copy import copy
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Bool, Float, Int

from attnviz.heads.cells import allowed_cells, cells_in_blocks, places, whole_axis
from attnviz.records import Axis, Kind, Measure

if TYPE_CHECKING:
    from attnviz.model.trace import Trace

MOST_HELD = 40_000_000
"""Most cells of a layer that are held, 160 MB: 9 heads of 2,048 tokens. Those of a longer text are computed again for each pass."""
_SOME_ROWS = 150
"""Every so many rows are looked at before a layer that is not held, for the weight that a tenth of its cells lies above."""
_SPECIAL, _NOTHING = -1, -2
"""No numbers of entries: of special tokens among the queries, and of those among the keys."""


class AxisPair:
    """Rows and columns of a matrix: which entries they are, and how far they are apart if they are of one text."""

    def __init__(self, queries: Axis, keys: Axis, *, is_one_text: bool) -> None:
        self.queries, self.keys, self.is_one_text = queries, keys, is_one_text
        self.query_ids, self.key_ids = _numbered(queries, keys)
        """A number for the ids of each entry, so that "Mary" and "␣Mary" differ; special tokens equal nothing."""
        whole = whole_axis(queries, keys) if is_one_text else queries
        self.rows, self.columns = places(queries, keys) if is_one_text else (self.query_ids, self.key_ids)
        of_whole, before = _numbered(whole, whole)
        self.whole_ids = of_whole[self.rows] if is_one_text else self.query_ids
        """The same of the entry of the whole text that a query belongs to."""
        self.ids_before = np.append(before, _NOTHING)[self.columns - 1] if is_one_text else self.key_ids
        """The same of the entry of the whole text right before each key."""
        self.cells: dict[str, tuple[np.ndarray, np.ndarray] | None] = {}
        """Rows and columns of the cells that a statistic of pairs means, by its name: the same in every layer."""
        self._parts: dict[tuple[int, int, int], AxisPair] = {}

    def part(self, rows: slice, n_key: int) -> "AxisPair":
        """Some rows, and the first keys; made once for all layers."""
        if (rows.stop - rows.start, n_key) == (len(self.queries.spans), len(self.keys.spans)):
            return self
        key = rows.start, rows.stop, n_key
        if key not in self._parts:
            self._parts[key] = self._part(rows, n_key)
        return self._parts[key]

    def _part(self, rows: slice, n_key: int) -> "AxisPair":
        part = copy(self)
        part.cells, part._parts = {}, {}
        part.queries = replace(self.queries, spans=self.queries.spans[rows])
        part.keys = replace(self.keys, spans=self.keys.spans[:n_key])
        part.query_ids, part.rows, part.whole_ids = (
            of[rows] for of in (self.query_ids, self.rows, self.whole_ids)
        )
        part.key_ids, part.columns, part.ids_before = (
            of[:n_key] for of in (self.key_ids, self.columns, self.ids_before)
        )
        return part

    @property
    def step(self) -> Int[np.ndarray, "query key"] | None:
        """Place of the key minus that of the query, in entries of the whole text; None for two texts."""
        if not self.is_one_text:
            return None
        return np.asarray(self.columns.astype(np.int32) - self.rows[:, None].astype(np.int32))

    def at_step(self, step: int) -> Bool[np.ndarray, "query key"] | None:
        """True for keys so many entries after the query; None for two texts."""
        return self.columns == self.rows[:, None] + step if self.is_one_text else None

    def meant(
        self, pairs: Mapping[str, Callable[["AxisPair"], Bool[np.ndarray, "query key"] | None]]
    ) -> dict[str, tuple[Int[np.ndarray, " cell"], Int[np.ndarray, " cell"]]]:
        """Rows and columns of the cells that statistics of pairs mean, by their names; found once for all layers, and left out if undefined."""
        for name, of in pairs.items():
            if name not in self.cells:
                target = of(self)
                self.cells[name] = None if target is None else _as_places(target)
        return {name: found for name in pairs if (found := self.cells[name]) is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class Cells:
    """The cells of a layer's heads in some rows, up to the last key that one of these may see."""

    rows: slice
    weights: Float[np.ndarray, "head row key"]
    allowed: Bool[np.ndarray, "#head row key"]
    totals: Float[np.ndarray, "head row"]
    """Sum of each row."""
    n_allowed: Int[np.ndarray, "#head row"]
    """Cells of each row that it may see."""
    axes: AxisPair
    """Of these rows and keys."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerCells:
    """All cells of a layer's heads, some rows at a time, as often as they are asked for."""

    blocks: Callable[[], Iterable[Cells]]
    """All rows."""
    weights: Callable[[int, slice], Iterable[tuple[slice, Float[np.ndarray, "head row key"]]]]
    """The rows from one on of one head, or of all heads where they are held."""
    axes: AxisPair
    kind: Kind
    n_head: int
    is_held: bool
    """Whether they are held, so that to ask again costs nothing."""
    some_rows: Callable[
        [], Iterable[tuple[Float[np.ndarray, "head row key"], Bool[np.ndarray, "#head row key"]]]
    ]
    """Cells of some rows, which tell how those of all are distributed, and which of them are allowed."""

    @staticmethod
    def rows_held(n_head: int, n_key: int) -> int:
        """How many rows of so many heads and keys may be held at once, at least one."""
        return max(1, MOST_HELD // max(1, n_head * n_key))


def layer_cells(
    trace: "Trace",
    layer: int,
    kind: Kind | None,
    axes: AxisPair,
    measure: Measure,
    given: Float[np.ndarray, "head query key"] | None,
) -> LayerCells:
    """The cells of a layer, which are computed once if all of them may be held."""
    call = trace.attention(layer, kind)
    queries, keys = axes.queries, axes.keys
    is_causal = call.kind == "decoder" and not trace.interventions

    def rows_of(
        asked: Axis, first: int = 0, head: int | None = None
    ) -> Iterator[tuple[slice, Float[np.ndarray, "head row key"]]]:
        if given is not None:
            return iter([(slice(first, len(queries)), given[:, first:])])
        return cells_in_blocks(
            trace, layer, kind, asked, keys, measure, head=head, first=first, as_shares=True
        )

    def blocks() -> Iterator[Cells]:
        for rows, weights in rows_of(queries):
            allowed = allowed_cells(call, queries, keys, rows)
            n_key = len(keys)
            if is_causal:  # the keys after the last query have no weight
                n_key = 1 + int(np.flatnonzero(allowed.any(axis=(0, 1))).max(initial=-1))
            weights, allowed = weights[:, :, :n_key], allowed[:, :, :n_key]
            yield Cells(
                rows=rows,
                weights=weights,
                allowed=allowed,
                totals=weights.sum(axis=-1),
                n_allowed=np.count_nonzero(allowed, axis=-1),
                axes=axes.part(rows, n_key),
            )

    def some_rows() -> Iterator[tuple[Float[np.ndarray, "head row key"], Bool[np.ndarray, "#head row key"]]]:
        some = replace(queries, spans=queries.spans[::_SOME_ROWS])
        for rows, weights in rows_of(some):
            yield weights, allowed_cells(call, some, keys, rows)

    n_head = len(call.query)
    is_held = given is not None or n_head * len(queries) * len(keys) <= MOST_HELD
    held = [
        replace(cells, weights=np.ascontiguousarray(cells.weights)) for cells in (blocks() if is_held else ())
    ]
    return LayerCells(
        blocks=(lambda: held) if is_held else blocks,
        weights=lambda first, heads: (
            ((cells.rows, cells.weights) for cells in held)
            if is_held
            else rows_of(queries, first, heads.start)
        ),
        some_rows=some_rows,
        axes=axes,
        kind=call.kind,
        n_head=n_head,
        is_held=is_held,
    )


def _as_places(
    target: Bool[np.ndarray, "query key"],
) -> tuple[Int[np.ndarray, " cell"], Int[np.ndarray, " cell"]]:
    """Rows and columns of the cells that are True; int32, since there may be many."""
    rows, columns = np.nonzero(target)
    return rows.astype(np.int32), columns.astype(np.int32)


def _numbered(queries: Axis, keys: Axis) -> tuple[Int[np.ndarray, " query"], Int[np.ndarray, " key"]]:
    """A number of each entry, equal where the ids of all its tokens are; special tokens have one that no other entry has."""
    sides = queries.ids, keys.ids
    numbers = {entry: number for number, entry in enumerate({*sides[0], *sides[1]})}
    rows, columns = (np.array([numbers[entry] for entry in ids], dtype=np.int32) for ids in sides)
    return np.where(queries.is_special, _SPECIAL, rows), np.where(keys.is_special, _NOTHING, columns)
