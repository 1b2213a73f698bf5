"""Two attention matrices on common axes, and their difference: three figures that share their rows and columns."""

import math
from typing import Literal

import numpy as np
from jaxtyping import Float, Int
from plotly import graph_objects as go

from attnviz.arguments import typed
from attnviz.figures.cells import hatching
from attnviz.figures.heatmap import MEASURE_NAMES, matrix_axes, segment_borders
from attnviz.figures.labels import isolated, literal
from attnviz.figures.numbers import HOVER_NUMBER
from attnviz.figures.theme import (
    SMALL_FONT_SIZE,
    THEMES,
    Marks,
    Theme,
    ThemeName,
    base_layout,
    difference_scale,
    figure_of,
    outline,
    weight_scale,
)
from attnviz.heads.comparison import Alignment, Comparison
from attnviz.records import bare

Part = Literal["first", "second", "difference"]

MOST_BLOCKS = 128
"""Longest side in cells, about the pixels of three figures side by side. Longer sides are drawn in blocks."""

MOST_CHANGES = 10
"""Number of largest changes that are marked, and listed beside the figures."""

_HEIGHT = 360  # px; three figures side by side are little wider than this


@typed
def draw_comparison(
    comparison: Comparison,
    part: Part,
    *,
    picked: tuple[int, int] | None = None,
    around: int | None = None,
    theme: ThemeName = "light",
) -> go.Figure:
    """The first matrix, the second, or their difference (second minus first) on the common axes.

    Both matrices have the same colours for the same numbers. Cells that a matrix does not have are hatched; masked
    cells stay empty. In the difference, the largest changes are marked with a triangle that points up where the number
    grows. Sides longer than `MOST_BLOCKS` are drawn in blocks, each with its largest number.

    Args:
        picked: positions of the query and key, among the first pattern's tokens, whose row and cell are outlined.
        around: entries per side of the part that is drawn, around the selected pair; None for all. The colour scale
            stays that of the whole matrix.
    """
    palette = THEMES[theme]
    furthest = _furthest_of(comparison, part)
    if around is not None:
        comparison = _part(comparison, picked, around)
    x, y = _block_labels(comparison.keys), _block_labels(comparison.queries)
    cells = dict(
        type="heatmap",
        x=x,
        y=y,
        xgap=int(len(x) <= 48),
        ygap=int(len(y) <= 48),
        hoverongaps=False,
        colorbar={
            "orientation": "h",
            **{"y": 0, "yanchor": "top", "ypad": 6},
            "thickness": 8,
            "outlinewidth": 0,
            "nticks": 5,
            "exponentformat": "power",
            "tickfont": {"size": SMALL_FONT_SIZE},
        },
        showscale=furthest > 0,  # a scale of zeros has no numbers to read
        **_values(comparison, part, furthest, palette),
    )
    layout = base_layout(
        palette,
        height=_HEIGHT,
        **matrix_axes(len(y), len(x), palette),
        shapes=[
            *_hatches(comparison, part, palette),
            *segment_borders(_segments(comparison.queries), _segments(comparison.keys), palette.quiet),
            *([] if picked is None else _outlines(comparison, picked, palette.picked)),
        ],
    )
    marks = [_marks(comparison, x, y, palette)] if part == "difference" else []
    return figure_of([cells, *marks], layout)


def entry_labels(alignment: Alignment) -> list[str]:
    """Labels of the entries of a common axis, each with the position of its first token in A.

    "door·5" where B has the same entry, "door→window·5" where B has another in its place, "door·−5" where B has
    none; and "window·+5" for an entry that only B has, with its position there. The part after the last dot is
    unique.
    """
    here, there = (
        [(label, int(position)) for label, position in zip(axis.labels, axis.positions, strict=True)]
        for axis in (alignment.first, alignment.second)
    )
    written = []
    for entry, other in alignment.pairs:
        label, position = here[entry] if entry >= 0 else there[other]
        if entry < 0:
            written.append(f"{isolated(label)}·+{position}")
        elif other < 0:
            written.append(f"{isolated(label)}·−{position}")
        else:
            in_b = there[other][0]
            changed = "" if bare(in_b) == bare(label) else f"→{isolated(in_b)}"
            written.append(f"{isolated(label)}{changed}·{position}")
    return written


def block_length(n_entries: int) -> int:
    """Number of entries of a side that share a row or column of the picture; 1 where there is room for all."""
    return max(1, math.ceil(n_entries / MOST_BLOCKS))


def _cells(comparison: Comparison, part: Part) -> Float[np.ndarray, "query key"]:
    match part:
        case "first":
            return comparison.first_weights
        case "second":
            return comparison.second_weights
        case "difference":
            return comparison.difference


def _strongest(
    cells: Float[np.ndarray, "query key"],
) -> tuple[Int[np.ndarray, "row column"], Int[np.ndarray, "row column"]]:
    """Query and key of the number in each block that is furthest from 0, so that no large number disappears."""
    n_query, n_key = (block_length(n_entries) for n_entries in cells.shape)
    sizes = np.nan_to_num(np.abs(cells), nan=-1)
    sizes = np.pad(
        sizes,
        [(0, -length % n) for length, n in zip(cells.shape, (n_query, n_key), strict=True)],
        constant_values=-2,
    )
    n_rows, n_columns = len(sizes) // n_query, sizes.shape[1] // n_key
    blocks = sizes.reshape(n_rows, n_query, n_columns, n_key).swapaxes(1, 2)  # [row, column, query, key]
    query, key = np.divmod(blocks.reshape(n_rows, n_columns, n_query * n_key).argmax(axis=2), n_key)
    return query + n_query * np.arange(n_rows)[:, None], key + n_key * np.arange(n_columns)


def _part(comparison: Comparison, picked: tuple[int, int] | None, length: int) -> Comparison:
    """The part around the selected pair; the beginning of a side whose selected token is not shown."""
    query, key = (0, 0) if picked is None else picked
    return comparison.around(comparison.queries.index(query) or 0, comparison.keys.index(key) or 0, length)


def _values(comparison: Comparison, part: Part, furthest: float, palette: Theme) -> dict[str, object]:
    """Values of the cells, their colours, their click data and their hover text."""
    number = MEASURE_NAMES[comparison.first.measure]
    cells = _cells(comparison, part)
    query, key = _strongest(cells)
    z = cells[query, key]
    end = furthest or 1.0  # a colour scale has two ends
    positions = comparison.queries.positions(0)[query], comparison.keys.positions(0)[key]
    values: dict[str, object] = {"z": z, "customdata": np.dstack(positions).astype(np.int16)}
    if part == "difference":
        values |= {"zmin": -end, "zmax": end, "colorscale": difference_scale(palette)}
    else:
        values |= {"zmin": 0.0, "zmax": end, "colorscale": weight_scale(palette)}
    match part:
        case _ if z.shape != cells.shape:
            sign = "+" if part == "difference" else ""
            lines = [f"largest of the block: %{{z:{sign}{HOVER_NUMBER}}}"]
        case "first":
            lines = [f"A: {number} %{{z:{HOVER_NUMBER}}}", f"B: {number} %{{text}}"]
            values["text"] = _written(comparison, "second")
        case "second":
            lines = [f"A: {number} %{{text}}", f"B: {number} %{{z:{HOVER_NUMBER}}}"]
            values["text"] = _written(comparison, "first")
        case "difference":
            lines = [f"A to B: {number} %{{text}}", f"B − A: %{{z:+{HOVER_NUMBER}}}"]
            before, after = _written(comparison, "first"), _written(comparison, "second")
            values["text"] = np.strings.add(np.strings.add(before, " → "), after)
    return {**values, "hovertemplate": "<br>".join(["query %{y}", "key %{x}", *lines]) + "<extra></extra>"}


def _furthest_of(comparison: Comparison, part: Part) -> float:
    """The number with the strongest colour, which is the same for both matrices."""
    if part == "difference":
        return _furthest(comparison.difference)
    return max(_furthest(comparison.first_weights), _furthest(comparison.second_weights))


def _furthest(cells: Float[np.ndarray, "query key"]) -> float:
    """The largest absolute value."""
    return float(np.fmax.reduce(np.abs(cells), axis=None, initial=0.0))


def _written(comparison: Comparison, part: Part) -> np.ndarray:
    """The numbers of a matrix [query, key] as text, for the hover text of another."""
    cells = _cells(comparison, part)
    words = np.where(_missing(comparison, part), "no partner", "may not be seen")
    numbers = np.nan_to_num(cells)
    written = np.where(
        numbers < 0.001, "under 0.001", np.strings.mod("%#.3g", numbers)
    )  # short, since every cell has one
    return np.where(np.isnan(cells), words, np.where(numbers == 0, "0", written))


def _missing(comparison: Comparison, part: Part) -> np.ndarray:
    """True for the cells [query, key] that one of the matrices, or the difference, does not have."""
    queries, keys = (_has(alignment, part) for alignment in (comparison.queries, comparison.keys))
    return np.asarray(~(queries[:, None] & keys))


def _has(alignment: Alignment, part: Part) -> np.ndarray:
    if part == "difference":
        return alignment.is_paired
    return alignment.has(0 if part == "first" else 1)


def _block_labels(alignment: Alignment) -> list[str]:
    """A label for each row or column, safe for plotly: that of its first entry, "door·5 …" if it has several."""
    labels = [literal(label) for label in entry_labels(alignment)]
    length = block_length(len(labels))
    blocks = [labels[start : start + length] for start in range(0, len(labels), length)]
    return [block[0] if len(block) == 1 else f"{block[0]} …" for block in blocks]


def _segments(alignment: Alignment) -> Int[np.ndarray, " block"]:
    """The text of a pair, 0 or 1, in which each row or column begins."""
    return alignment.segment[:: block_length(len(alignment))]


def _marks(comparison: Comparison, x: list[str], y: list[str], palette: Theme) -> Marks:
    """Triangles on the largest changes: they show the sign by shape, and are visible however small the cells are."""
    changes = comparison.largest(MOST_CHANGES)
    return dict(
        type="scatter",
        x=[x[change.key // block_length(len(comparison.keys))] for change in changes],
        y=[y[change.query // block_length(len(comparison.queries))] for change in changes],
        mode="markers",
        hoverinfo="skip",
        marker={
            "symbol": ["triangle-up" if change.difference > 0 else "triangle-down" for change in changes],
            "size": 7,
            "color": palette.background,
            "line": {"color": palette.text, "width": 1},
        },
    )


def _hatches(comparison: Comparison, part: Part, palette: Theme) -> list[dict[str, object]]:
    """Hatching over the rows and columns that a matrix does not have."""
    rows, columns = _gone(comparison.queries, part), _gone(comparison.keys, part)
    return hatching(rows[:, None] | columns, palette)


def _gone(alignment: Alignment, part: Part) -> np.ndarray:
    """True for the rows or columns of the picture whose entries are all missing."""
    has = _has(alignment, part)
    return ~np.logical_or.reduceat(has, np.arange(0, len(has), block_length(len(has)))) if len(has) else ~has


def _outlines(comparison: Comparison, picked: tuple[int, int], colour: str) -> list[dict[str, object]]:
    """Frames around the row of the selected query and the cell of the selected key, where they are shown."""
    query, key = comparison.queries.index(picked[0]), comparison.keys.index(picked[1])
    if query is None:
        return []
    n_query, n_key = (block_length(n_entries) for n_entries in comparison.difference.shape)
    n_columns = math.ceil(len(comparison.keys) / n_key)
    y = (query // n_query - 0.5, query // n_query + 0.5)
    frames = [outline((-0.5, n_columns - 0.5), y, colour, width=1)]
    if key is not None:
        frames.append(outline((key // n_key - 0.5, key // n_key + 0.5), y, colour, width=3))
    return frames
