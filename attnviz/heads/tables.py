"""Numbers of every head as one table: the statistics of several texts, and how far the heads of two traces differ."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

from attnviz.arguments import typed
from attnviz.errors import ArgumentError, SelectionError, ShapeError
from attnviz.heads.cells import cells_in_blocks
from attnviz.heads.comparison import align
from attnviz.heads.head_statistics import STATISTICS, statistics_on
from attnviz.maths.quotients import quotients
from attnviz.records import Head, Kind, Measure, Result
from attnviz.records.table import Table

if TYPE_CHECKING:
    from attnviz.model.trace import Trace

_ROWS = 128
"""Rows of two traces that are compared at once."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class HeadTable(Result):
    """Numbers of every head on every text."""

    kind: Kind
    names: tuple[str, ...]
    """Of the numbers; `attnviz.heads.head_statistics.STATISTICS` says what each is."""
    heads: tuple[Head, ...]
    texts: tuple[str, ...]
    """What was read; one entry, "mean of 50 texts", for a mean."""
    numbers: Float[np.ndarray, "text head name"]
    """NaN where a head has no such number on a text."""

    def mean(self) -> "HeadTable":
        """The mean of each number over the texts that have it."""
        n_text = np.isfinite(self.numbers).sum(axis=0)
        sums = np.asarray(np.nansum(self.numbers, axis=0, dtype=np.float64))
        mean = quotients(sums, n_text)
        return replace(
            self, texts=(f"mean of {len(self.texts)} texts",), numbers=mean[None].astype(np.float32)
        )

    def of(self, name: str, text: int = 0) -> Float[np.ndarray, "layer head"]:
        """One number of every head on one text.

        Raises:
            SelectionError: no such number or text.
        """
        if name not in self.names or not 0 <= text < len(self.texts):
            raise SelectionError(
                f"“{name}” of text {text} was asked for; there are {', '.join(self.names)}, and texts 0 to {len(self.texts) - 1}."
            )
        shape = 1 + max(head.layer for head in self.heads), 1 + max(head.head for head in self.heads)
        table = np.full(shape, np.nan, dtype=np.float32)
        for head, number in zip(self.heads, self.numbers[text, :, self.names.index(name)], strict=True):
            table[head] = number
        return table

    def _table(self) -> Table:
        """A row for each text and head."""
        rows = [
            [text, head.layer, head.head, *("" if np.isnan(number) else number for number in row)]
            for text, of_text in zip(self.texts, self.numbers, strict=True)
            for head, row in zip(self.heads, of_text, strict=True)
        ]
        return ["text", "layer", "head", *self.names], rows


@typed
def statistics(
    traces: "Trace | Sequence[Trace]",
    *,
    kind: Kind | None = None,
    names: Collection[str] | None = None,
    measure: Measure = "weights",
) -> HeadTable:
    """What every head does on every text: entropy, distance, weight on the token before, and so on, over all single tokens.

    Args:
        traces: of one text or several, of one model.
        names: the numbers that are asked for, of `attnviz.heads.head_statistics.STATISTICS`; None for all. Those that
            no text has, as weight on [CLS] where a model has no such token, are left out.
        measure: ``weights``, or ``norms``.

    Raises:
        ArgumentError: no trace.
        SelectionError: no such kind, number or measure, or rollout, which has no number for a head.
        ShapeError: traces of models with other heads.

    >>> import attnviz
    >>> model = attnviz.load_model("all-MiniLM-L6-v2")
    >>> table = attnviz.statistics(model.trace(["I was watching the door", "It opened"]), names=["previous"])
    >>> table.numbers.shape
    (2, 72, 1)
    """
    given = [traces] if not isinstance(traces, Sequence) else list(traces)
    if not given:
        raise ArgumentError(
            "statistics() was given no trace; it takes one, or a list. Pass model.trace(texts)."
        )
    if unknown := [name for name in names or () if name not in STATISTICS]:
        raise SelectionError(
            f"“{unknown[0]}” was asked for; there are {', '.join(STATISTICS)}. Select some of those."
        )
    asked = tuple(name for name in STATISTICS if names is None or name in names)
    heads = given[0].heads(kind)
    numbers = np.full((len(given), len(heads), len(asked)), np.nan, dtype=np.float32)
    for number, trace in enumerate(given):
        if trace.heads(kind) != heads:
            raise ShapeError(
                f"Trace {number} is of {trace.provenance.model} with {len(trace.heads(kind))} heads, trace 0 of "
                f"{given[0].provenance.model} with {len(heads)}. Pass traces of one model."
            )
        tables = statistics_on(trace, kind, *trace.axes(kind), measure=measure, names=asked)
        for name, table in tables.items():
            numbers[number, :, asked.index(name)] = [table[head] for head in heads]
    if not np.isfinite(numbers).any():
        raise SelectionError(f"No head has {' or '.join(asked)} on these texts. Ask for other numbers.")
    is_there = np.asarray(np.isfinite(numbers).any(axis=(0, 1)))
    return HeadTable(
        kind=kind or given[0].kinds[0],
        names=tuple(name for name, there in zip(asked, is_there.tolist(), strict=True) if there),
        heads=heads,
        texts=tuple(trace.tokens.text for trace in given),
        numbers=numbers[:, :, is_there],
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class HeadChanges(Result):
    """How far every head of one trace differs from the same head of another."""

    kind: Kind
    models: tuple[str, str]
    changes: Float[np.ndarray, "layer head"]
    """Share of its attention that a query distributes differently, mean over the queries that both texts have:
    `attnviz.heads.comparison.Comparison.row_change`."""

    def ranked(self) -> list[Head]:
        """All heads, the most different first."""
        order = np.argsort(-np.nan_to_num(self.changes, nan=-1.0), axis=None, kind="stable")
        places = (Head(*map(int, np.unravel_index(at, self.changes.shape))) for at in order)
        return [head for head in places if not np.isnan(self.changes[head])]

    def _table(self) -> Table:
        """A row for each head, the most different first."""
        return ["layer", "head", "change"], [
            [head.layer, head.head, self.changes[head]] for head in self.ranked()
        ]


@typed
def compare_heads(first: "Trace", second: "Trace", *, kind: Kind | None = None) -> HeadChanges:
    """How far every head of two traces differs: of two models, as before and after fine-tuning, or of two texts.

    Tokens of two texts, or of two tokenizers, are paired as `attnviz.compare` pairs them.

    Raises:
        SelectionError: no such kind.
        ShapeError: the traces have other heads.
    """
    if first.heads(kind) != second.heads(kind):
        raise ShapeError(
            f"{first.provenance.model} has {len(first.heads(kind))} heads, {second.provenance.model} {len(second.heads(kind))}; heads "
            "are compared one by one. Pass traces of models of one shape."
        )
    axes = [trace.axes(kind) for trace in (first, second)]
    queries, keys = (align(*sides) for sides in zip(*axes, strict=True))
    paired, both = queries.pairs[queries.is_paired], keys.pairs[keys.is_paired]
    changes = np.full(first.shape(kind), np.nan, dtype=np.float32)
    for layer in range(first.n_layers(kind)) if len(paired) else ():
        summed = np.zeros(first.n_heads(layer, kind))
        for begin in range(0, len(paired), _ROWS):
            rows = [
                np.concatenate(
                    [
                        cells
                        for _, cells in cells_in_blocks(
                            trace,
                            layer,
                            kind,
                            replace(of_trace[0], spans=of_trace[0].spans[entries]),
                            of_trace[1],
                        )
                    ],
                    axis=1,
                )
                for trace, of_trace, entries in zip(
                    (first, second), axes, paired[begin : begin + _ROWS].T, strict=True
                )
            ]  # [head, row, key] of each
            here, there = (np.take(of, column, axis=2) for of, column in zip(rows, both.T, strict=True))
            # a key that only one of the two has has weight 0 in the other
            alone = sum(
                of[:, :, ~keys.is_paired[keys.has(side)]].sum(axis=2, dtype=np.float64)
                for side, of in enumerate(rows)
            )
            summed += (np.abs(there - here).sum(axis=2, dtype=np.float64) + alone).sum(axis=1) / 2
        changes[layer, : len(summed)] = summed / len(paired)
    return HeadChanges(
        kind=kind or first.kinds[0], models=(first.provenance.model, second.provenance.model), changes=changes
    )
