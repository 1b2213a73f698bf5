"""The attention matrix of one head: queries down, keys across, square cells."""

import math
from base64 import b64encode
from functools import cache
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from jaxtyping import Float, Int
from plotly import graph_objects as go

from attnviz.arguments import typed
from attnviz.figures.cells import block_length, hatching, thumbnail
from attnviz.figures.labels import aliases, axis_labels, hover_labels
from attnviz.figures.numbers import HOVER_NUMBER, percent_text
from attnviz.figures.theme import (
    LOG_DECADES,
    SELECTION,
    SMALL_FONT_SIZE,
    THEMES,
    TOKEN_FONT,
    Colour,
    Marks,
    Theme,
    ThemeName,
    axis_title,
    base_layout,
    figure_of,
    note,
    outline,
    weight_scale,
)
from attnviz.records import AttentionPattern, Kind, Measure, Mixing

if TYPE_CHECKING:
    from attnviz.model.trace import Trace

Shown = Literal["weights", "scores", "norms", "rollout"]
Special = Literal["shown", "hidden", "renormalised"]

MOST_CELLS_WITH_SCORES = 120_000
"""Up to this many cells the hover text has both weight and score. Above, the second number of every cell
would double the 1.4 MB that are sent for 512 x 512 cells."""

MOST_COUNTED = 48
"""Entries per side up to which cells are large enough for gaps and frames. Above, dragging a box zooms in."""

_DROPPED_BITS = 3
"""Last bits of each number that are set to 0 above `MOST_CELLS_WITH_SCORES`: 28 kB less at 512 x 512 cells, since plotly writes a
slash in base64 as the six characters ``\\u002f`` and zeros have none. The relative change of a number is 4.8e-7 at most."""

_CELL, _LABELS = 26, 140  # px
_LOWEST, _HIGHEST = 380, 560  # px
TALLEST = 960
"""Height of a matrix that may be as tall as a wide column, px."""
_MARK = 6.0  # px from the middle of the selected cell to its frame, where cells are small


@typed
def draw_heatmap(
    trace: "Trace",
    layer: int,
    head: int,
    *,
    kind: Kind | None = None,
    show: Shown = "weights",
    colour: Colour = "linear",
    special: Special = "shown",
    picked: tuple[int, int] | None = None,
    theme: ThemeName = "light",
) -> go.Figure:
    """Attention matrix of one head as a heatmap.

    Args:
        show: "weights" after the softmax; "scores" before it: scaled, biased and masked; "norms" or "rollout",
            see `attnviz.maths.attribution`; rollout always takes all heads.
        colour: "linear", or "logarithmic" over the four decades below the largest weight; scores are
            always linear.
        special: rows and columns of special tokens "shown", "hidden", or "renormalised": hidden, with
            each row divided by the weight that remains.
        picked: positions of the query and key whose row, column and cell are outlined.

    Raises:
        SelectionError: no such layer, head or kind.
    """
    pattern = trace.pattern(layer, head, kind, measure=measure_of(show))
    if special != "shown":
        queries, keys = pattern.queries.without_special(), pattern.keys.without_special()
        pattern = pattern.arranged(queries, keys, renormalise=special == "renormalised")
    return draw_pattern(pattern, show=show, colour=colour, picked=picked, theme=theme)


@cache
def _scale(palette: Theme, *, logarithmic: bool = False) -> list[tuple[float, str]]:
    """The colour scale of weights, made once."""
    return weight_scale(palette, logarithmic=logarithmic)


def measure_of(shown: Shown) -> Measure:
    """The measure whose pattern is drawn; scores are drawn from the pattern of weights."""
    return "weights" if shown == "scores" else shown


@typed
def draw_pattern(
    pattern: AttentionPattern,
    *,
    show: Shown = "weights",
    colour: Colour = "linear",
    picked: tuple[int, int] | None = None,
    side: Literal["query", "key"] = "query",
    largest: float | None = None,
    tallest: int = _HIGHEST,
    hatched: bool = False,
    theme: ThemeName = "light",
) -> go.Figure:
    """The same as `draw_heatmap`, for a given pattern.

    Args:
        side: whether the row of the selected query is outlined, or the column of the selected key.
        largest: number that has the strongest tone, unless scores are shown, so that two patterns can be compared;
            None for the largest of this pattern.
        hatched: whether masked cells are hatched, like those that a matrix of `draw_comparison` lacks; otherwise
            they are empty.
        tallest: greatest height of the figure, px; where its cells are small, more height makes them larger.
    """
    palette = THEMES[theme]
    n_query, n_key = pattern.weights.shape
    height = int(np.clip(n_query * _CELL + _LABELS, _LOWEST, tallest))
    is_logarithmic = colour == "logarithmic" and show != "scores"
    longest = max(n_query, n_key)
    below = (
        6 if longest <= MOST_COUNTED else 14 if longest <= MOST_DOTS else 44
    )  # px: ticks and the note of the overview
    bar = {  # below the matrix, so that the cells keep the whole width
        "orientation": "h",
        "y": 0,
        "yanchor": "top",
        "xpad": 0,
        "ypad": below,
        "exponentformat": "power",
        "thickness": 8,
        "outlinewidth": 0,
        "tickfont": {"size": SMALL_FONT_SIZE},
    }
    values = _values(pattern, show, largest)
    keys, queries = hover_labels(pattern.keys), _with_lost(hover_labels(pattern.queries), pattern)
    axes = matrix_axes(n_query, n_key, palette)
    axes["xaxis"]["labelalias"] = aliases(keys, axis_labels(pattern.keys))
    axes["yaxis"]["labelalias"] = aliases(queries, _with_lost(axis_labels(pattern.queries), pattern))
    cells = dict(  # a dict, since plotly would validate an object twice
        type="heatmap",
        x=keys,
        y=queries,
        colorscale=_scale(palette, logarithmic=is_logarithmic),
        showscale=not is_logarithmic,
        xgap=_gap(n_key),
        ygap=_gap(n_query),
        hoverongaps=False,
        colorbar=bar,
        **values,
    )
    layout = base_layout(
        palette,
        height=height,
        **axes,
        shapes=[
            *(hatching(~pattern.allowed, palette, above=longest > MOST_DOTS) if hatched else []),
            *segment_borders(pattern.queries.segment, pattern.keys.segment, palette.quiet),
            *([] if picked is None else _outlines(pattern, picked, side, palette.picked)),
        ],
        dragmode="zoom" if longest > MOST_COUNTED else False,
    )
    if longest > MOST_DOTS:
        layout |= overview(
            values["z"],
            (values["zmin"], values["zmax"]),
            number="score" if show == "scores" else MEASURE_NAMES[pattern.measure],
            colour="logarithmic" if is_logarithmic else "linear",
            theme=theme,
        )
    bars = [_logarithmic_bar(float(pattern.weights.max()), bar, palette)] if is_logarithmic else []
    return figure_of([cells, *bars], layout)


def matrix_axes(n_query: int, n_key: int, palette: Theme) -> dict[str, dict[str, object]]:
    """The two axes of a matrix: queries down, keys across and named above, square cells.

    The title above is read first and has the room, so it says what the labels are made of.

    The ranges are set: for a figure that replaces a zoomed one, Plotly would choose only a part of it.
    """
    axis = {
        "type": "category",
        "showgrid": False,
        "zeroline": False,
        "ticks": "",
        "constrain": "domain",
        "automargin": True,
        "tickfont": {"family": TOKEN_FONT, "size": SMALL_FONT_SIZE},
    }
    return {
        "xaxis": {
            **axis,
            "range": [-0.5, n_key - 0.5],
            "side": "top",
            "tickangle": -60,
            "title": axis_title("key (token·position)", palette.key),
        },
        "yaxis": {
            **axis,
            "range": [n_query - 0.5, -0.5],
            "scaleanchor": "x",
            "scaleratio": 1,
            "constraintoward": "top",
            "title": axis_title("query", palette.query),
        },
    }


def _logarithmic_bar(largest: float, bar: dict[str, object], palette: Theme) -> Marks:
    """A trace without points, for its colour bar: the bar of the cells' own trace would be linear in the weight."""
    highest = math.log10(max(largest, float(np.finfo(np.float32).tiny)))
    lowest = highest - LOG_DECADES
    exponents = range(math.ceil(lowest), math.floor(highest) + 1)
    return dict(
        type="scatter",
        x=[None],
        y=[None],
        mode="markers",
        hoverinfo="skip",
        marker={
            "color": [lowest],
            "cmin": lowest,
            "cmax": highest,
            "colorscale": _scale(palette),
            "showscale": True,
            "colorbar": {
                **bar,
                "tickvals": list(exponents),
                "ticktext": [f"{10.0**exponent:.{max(0, -exponent)}f}" for exponent in exponents],
            },
        },
    )


MEASURE_NAMES: dict[Measure | Mixing, str] = {
    "weights": "weight",
    "norms": "norm-based weight",
    "rollout": "rollout",
    "alti": "ALTI",
    "value_zeroing": "value zeroing",
}
"""The name of a cell's number, by measure."""


def _values(pattern: AttentionPattern, show: Shown, largest: float | None) -> dict[str, Any]:
    """Values of the cells, the ends of their colour scale, and their hover text; masked cells stay empty."""
    nothing = np.float32(np.nan)
    weights = np.where(pattern.allowed, pattern.weights, nothing)
    scores = None if pattern.scores is None else np.where(pattern.allowed, pattern.scores, nothing)
    numbers = {MEASURE_NAMES[pattern.measure]: weights} | ({} if scores is None else {"score": scores})
    first = "score" if show == "scores" and scores is not None else MEASURE_NAMES[pattern.measure]
    cells = numbers.pop(first)
    lowest, highest = 0.0, max(float(pattern.weights.max(initial=0.0)) if largest is None else largest, 1e-9)
    if first == "score" and pattern.allowed.any():
        lowest, highest = float(np.nanmin(cells)), float(np.nanmax(cells))
    values: dict[str, Any] = {"z": cells, "zmin": lowest, "zmax": highest}
    lines = [f"{first} %{{z:{HOVER_NUMBER}}}"]
    if weights.size > MOST_CELLS_WITH_SCORES:
        values["z"] = _shorter(cells)
    elif numbers:
        [(name, values["customdata"])] = numbers.items()
        lines.append(f"{name} %{{customdata:{HOVER_NUMBER}}}")
    hover = "<br>".join(["query %{y:c}", "key %{x:c}", *lines]) + "<extra></extra>"
    return {**values, "hovertemplate": hover}


def _shorter(cells: Float[np.ndarray, "query key"]) -> Float[np.ndarray, "query key"]:
    """The nearest float32 numbers whose last `_DROPPED_BITS` bits are 0."""
    half = np.uint32(1 << (_DROPPED_BITS - 1))
    bits: np.ndarray = (cells.view(np.uint32) + half) >> _DROPPED_BITS << _DROPPED_BITS
    return bits.view(np.float32)


def _with_lost(labels: list[str], pattern: AttentionPattern) -> list[str]:
    """Labels of the queries, each with the percentage of its weight that is on hidden keys."""
    if not pattern.hidden_weight.any() or pattern.measure == "norms":
        return labels
    return [
        f"{label}, {percent_text(lost)} hidden"
        for label, lost in zip(labels, pattern.hidden_weight, strict=True)
    ]


def _gap(n_token: int) -> int:
    """Pixels between cells; 0 where cells are too small for a gap."""
    return 1 if n_token <= MOST_COUNTED else 0


def segment_borders(
    rows: Int[np.ndarray, " row"], columns: Int[np.ndarray, " column"], colour: str
) -> list[dict[str, object]]:
    """Lines where the second text of a pair begins, on both sides of a matrix.

    Args:
        rows: number of the text that each row belongs to.
        columns: the same for each column.
    """
    line = {"type": "line", "line": {"color": colour, "width": 1, "dash": "dot"}}
    x, y = (-0.5, len(columns) - 0.5), (-0.5, len(rows) - 0.5)
    across = [
        {"x0": x[0], "x1": x[1], "y0": at + 0.5, "y1": at + 0.5} for at in np.flatnonzero(np.diff(rows))
    ]
    down = [
        {"y0": y[0], "y1": y[1], "x0": at + 0.5, "x1": at + 0.5} for at in np.flatnonzero(np.diff(columns))
    ]
    return [{**line, **ends} for ends in (*down, *across)]


def _outlines(
    pattern: AttentionPattern, picked: tuple[int, int], side: str, colour: str
) -> list[dict[str, object]]:
    """Frames around a whole row or column and around the cell of the selected pair, where they are shown."""
    row, column = pattern.queries.index(picked[0]), pattern.keys.index(picked[1])
    if row is None:
        return []
    y = (row - 0.5, row + 0.5)
    if max(pattern.weights.shape) > MOST_COUNTED:
        return _marks(row, column, colour)
    frames = []
    if side == "query":
        frames.append(outline((-0.5, len(pattern.keys) - 0.5), y, colour, width=1))
    elif column is not None:
        x = (column - 0.5, column + 0.5)
        frames.append(outline(x, (-0.5, len(pattern.queries) - 0.5), colour, width=1))
    if column is not None:
        frames.append(outline((column - 0.5, column + 0.5), y, colour, width=3))
    return frames


def _marks(row: int, column: int | None, colour: str) -> list[dict[str, object]]:
    """The marks of the selected pair where cells are so small that frames would cover them.

    Ticks beside the row and below the column, and a frame around the cell that has the same size at any zoom.
    """
    tick: dict[str, object] = {"type": "line", "name": SELECTION, "line": {"color": colour, "width": 3}}
    across = {"xref": "x domain", "xsizemode": "pixel", "xanchor": 1, "x0": 2, "x1": 10}
    marks = [{**tick, **across, "y0": row, "y1": row}]
    if column is not None:
        down = {"yref": "y domain", "ysizemode": "pixel", "yanchor": 0, "y0": -2, "y1": -10}
        marks.append({**tick, **down, "x0": column, "x1": column})
        frame = outline((-_MARK, _MARK), (-_MARK, _MARK), colour, width=2)
        marks.append({**frame, "xsizemode": "pixel", "xanchor": column, "ysizemode": "pixel", "yanchor": row})
    return marks


MOST_DOTS = 192
"""Most dots per side, about the pixels of a matrix on a phone. A matrix with no more cells needs no overview."""


def overview(
    cells: Float[np.ndarray, "query key"],
    span: tuple[float, float],
    *,
    number: str,
    colour: Colour,
    theme: ThemeName,
) -> dict[str, Any]:
    """Image and annotation for the layout of a heatmap with more than `MOST_DOTS` rows or columns.

    Args:
        cells: values of the heatmap, NaN where a cell is empty.
        span: numbers at the two ends of the colour scale.
        number: name of a cell's number.
    """
    n_query, n_key = cells.shape
    rows, columns = (block_length(size, MOST_DOTS) for size in cells.shape)
    picture = thumbnail(cells, most=MOST_DOTS, smallest=span[0], largest=span[1], colour=colour, theme=theme)
    image = {
        "source": f"data:image/png;base64,{b64encode(picture).decode()}",
        "layer": "above",
        "sizing": "stretch",
        **{"xref": "x", "x": -0.5, "xanchor": "left", "sizex": -(-n_key // columns) * columns},
        **{"yref": "y", "y": -0.5, "yanchor": "top", "sizey": -(-n_query // rows) * rows},
    }
    words = note(
        f"Overview: each dot is the largest {number}<br>of {rows} × {columns} cells.",
        THEMES[theme].quiet,
        align="left",
        **{"xref": "x domain", "x": 0, "xanchor": "left"},
        **{"yref": "y domain", "y": 0, "yanchor": "top", "yshift": -10},
    )
    return {"images": [image], "annotations": [words]}
