"""Numbers and pictures of all heads of a text, cached as in `ui.runtime.cache`."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
from jaxtyping import Bool

from attnviz import heads
from attnviz.figures.cells import thumbnail
from attnviz.figures.heatmap import Shown
from attnviz.figures.theme import Colour, ThemeName
from attnviz.records import Axis, Kind, Measure
from attnviz.viewer import tiles
from attnviz.viewer.data import StageData, fits, numbers_of_layers, stage_data
from attnviz.viewer.tiles import Overview, Pool
from ui.runtime import all_heads
from ui.runtime.cache import of_all_heads, trace
from ui.runtime.jobs import elsewhere
from ui.runtime.remembered import NUMBERS
from ui.runtime.source import Source

MOST_ON_A_MAP = 300
"""Most heads that a page lays out itself, without a worker process."""

Result = TypeVar("Result")
Spans = tuple[tuple[int, int], ...]
"""The entries of an `Axis`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cells:
    """The cells of all heads that are shown: their text and measure, their rows and columns."""

    source: Source
    kind: Kind
    measure: Measure
    rows: Spans
    columns: Spans

    @property
    def axes(self) -> tuple[Axis, Axis]:
        """Queries and keys."""
        here = trace(self.source)
        sides = (here.query_tokens(self.kind), self.rows), (here.key_tokens(self.kind), self.columns)
        queries, keys = (Axis(tokens=tokens, spans=np.array(spans).reshape(-1, 2)) for tokens, spans in sides)
        return queries, keys


def spans(axis: Axis) -> Spans:
    """An axis as plain values."""
    return tuple((int(first), int(stop)) for first, stop in axis.spans)


@NUMBERS.remembers()
def pooled(cells: Cells, *, renormalise: bool) -> tuple[np.ndarray, ...]:
    """The matrices of all heads [head, row, column] of each layer, small enough for a thumbnail each.

    Args:
        renormalise: whether each row is divided by its sum over the keys that are shown.
    """
    return _of_cells(all_heads.pooled, cells, measure=cells.measure, renormalise=renormalise)


def _of_cells(function: Callable[..., Result], cells: Cells, **named: Any) -> Result:
    return of_all_heads(function, trace(cells.source), cells.kind, cells.kind, *cells.axes, **named)


@dataclass(frozen=True, slots=True, kw_only=True)
class Staged:
    """What the stage is sent of a text."""

    document: StageData
    """Without the names of heads."""
    cells: bytes
    """The weights of all heads, or of one where that would be too much."""
    labels: Mapping[str, Bool[np.ndarray, "layer head"]]
    """The known patterns that heads match, as `attnviz.heads.labels`; none where not all heads are there."""


def staged(source: Source, kind: Kind, layer: int, head: int) -> Staged:
    """What the stage is sent of a text, with this head at least."""
    here = trace(source)
    return _staged(source, kind, None if fits(here, kind) or here.is_long(kind) else (layer, head))


@NUMBERS.remembers()
def _staged(source: Source, kind: Kind, alone: tuple[int, int] | None) -> Staged:
    here = trace(source)
    if alone is not None or here.is_long(kind):
        document, cells = stage_data(here, kind, heads=[alone] if alone else None)
        return Staged(document=document, cells=cells, labels={})
    layers = numbers_of_layers(here, kind, "weights")
    document, cells = stage_data(here, kind, layers=layers)
    weights = [np.nan_to_num(layer) for layer in layers]  # what a query may not see has none
    numbers = heads.statistics_on(here, kind, *here.axes(kind), names=heads.LABELS, cells=weights)
    return Staged(document=document, cells=cells, labels=heads.labels(numbers))


def overview(source: Source, kind: Kind, layer: int, head: int, measure: Shown, pool: Pool) -> Overview:
    """What reading a head of a long text through once gives; the same when more layers are there."""
    place = kind, layer, head, measure, pool
    return NUMBERS.found_or_made(
        (overview, replace(source, layers=0), place), lambda: tiles.overview(trace(source), *place)
    )


@NUMBERS.remembers()
def thumbnails(
    cells: Cells, *, renormalise: bool, common: bool, colour: Colour, theme: ThemeName
) -> list[list[bytes]]:
    """A PNG of every head, layer by layer.

    Args:
        common: whether all heads share one colour scale, up to the largest cell of all, instead of one each.
    """
    matrices = pooled(cells, renormalise=renormalise)
    largest = float(max(layer.max() for layer in matrices)) if common else None
    return [
        [thumbnail(weights, largest=largest, colour=colour, theme=theme) for weights in layer]
        for layer in matrices
    ]


@NUMBERS.remembers()
def statistics(cells: Cells) -> dict[str, np.ndarray]:
    """Every statistic of every head [layer, head], by name; NaN where a layer has no such head."""
    return _of_cells(heads.statistics_on, cells, measure=cells.measure)


@NUMBERS.remembers()
def pair_weights(
    source: Source, kind: Kind, query: tuple[int, int], key: tuple[int, int], *, measure: Measure
) -> np.ndarray:
    """The weight of one span of tokens on another in every head [layer, head]; NaN where a layer has no such head."""
    return of_all_heads(heads.pair_weights, trace(source), kind, kind, query, key, measure=measure)


@NUMBERS.remembers()
def strongest_pairs(
    cells: Cells, layer: int, head: int, count: int, *, special: bool, itself: bool
) -> list[heads.Pair]:
    """The cells of a head with the largest values."""
    asked = (layer, head, cells.kind, *cells.axes, count)
    return heads.strongest_pairs_of_head(
        trace(cells.source), *asked, measure=cells.measure, special=special, itself=itself
    )


@NUMBERS.remembers()
def rows(source: Source, kind: Kind, query: int) -> tuple[np.ndarray, ...]:
    """The weights of one query on each key in every head, [head, key] of each layer."""
    return of_all_heads(all_heads.rows, trace(source), kind, kind, query)


@NUMBERS.remembers()
def divergences(cells: Cells) -> heads.Divergences:
    """How unlike any two heads are; always by their weights, whatever the measure."""
    return _of_cells(heads.divergences, cells)


@NUMBERS.remembers()
def head_map(cells: Cells) -> np.ndarray:
    """All heads as points [head, 2]; similar heads are close together."""
    similarities = divergences(cells)
    if len(similarities.divergence) <= MOST_ON_A_MAP:
        return similarities.map()
    made: np.ndarray = elsewhere(heads.Divergences.map, similarities)
    return made
