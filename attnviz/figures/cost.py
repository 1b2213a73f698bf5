"""How a cost grows with the number of tokens, on logarithmic axes: lines where it is counted, points where it is measured."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Float, Int
from plotly import graph_objects as go

from attnviz.figures.theme import (
    SMALL_FONT_SIZE,
    THEMES,
    ThemeName,
    axis_title,
    base_layout,
    figure_of,
    legend_above,
    note,
)

Unit = Literal["count", "bytes", "seconds"]
Way = Literal["whole", "rows", "window", "streaming"]

WAY_NAMES: dict[Way, str] = {
    "whole": "Whole matrix",
    "rows": "Blocks of rows",
    "window": "Sliding window",
    "streaming": "Streaming",
}
"""Names of the ways to compute attention, in a legend."""

_NAMES: dict[Unit, dict[int, str]] = {
    "count": {2: "million", 3: "billion", 4: "trillion", 5: "quadrillion", 6: "quintillion"},
    "bytes": {0: "B", 1: "kB", 2: "MB", 3: "GB", 4: "TB", 5: "PB", 6: "EB"},
    "seconds": {-3: "ns", -2: "µs", -1: "ms", 0: "s"},
}
"""The word or unit after a number, by the power of 1,000 that the number is divided by."""
_DASHES = {"whole": "solid", "rows": "dot", "window": "dashdot", "streaming": "dash"}
_SYMBOLS = {"whole": "square", "rows": "triangle-up", "window": "diamond", "streaming": "circle"}
_MOST_TICKS = 8  # most decades with a tick each; with more, every third has one
_HEIGHT = 380  # px


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """One curve: numbers of tokens, and what they cost."""

    way: Way
    n_token: Int[np.ndarray, " point"]
    cost: Float[np.ndarray, " point"]
    measured: bool = False
    """Whether it is drawn as points instead of a line."""


def draw_growth(
    curves: list[Growth],
    *,
    what: str,
    unit: Unit,
    marks: Mapping[str, int] | None = None,
    theme: ThemeName = "light",
) -> go.Figure:
    """Lines and points over the number of tokens, both axes logarithmic.

    Args:
        what: title of the vertical axis.
        marks: numbers of tokens that are marked by a vertical line, by the line's label.
    """
    palette = THEMES[theme]
    tones = dict(zip(WAY_NAMES, palette.heads, strict=True))
    traces = [
        dict(
            type="scatter",
            name=WAY_NAMES[curve.way],
            x=curve.n_token,
            y=curve.cost,
            mode="markers" if curve.measured else "lines",
            line={"color": tones[curve.way], "width": 2.5, "dash": _DASHES[curve.way]},
            marker={"color": tones[curve.way], "size": 10, "symbol": _SYMBOLS[curve.way]},
            showlegend=curve.measured or not any(curve.measured for curve in curves),
            customdata=[quantity_text(value, unit) for value in curve.cost],
            hovertemplate=f"{WAY_NAMES[curve.way]}, %{{x:,}} tokens: %{{customdata}}<extra></extra>",
            cliponaxis=not curve.measured,
        )
        for curve in curves
    ]
    numbers = np.concatenate([curve.cost for curve in curves])
    tokens = np.concatenate([curve.n_token for curve in curves])
    upright = [
        {
            "type": "line",
            **{"x0": n_token, "x1": n_token, "yref": "y domain", "y0": 0, "y1": 1},
            "line": {"color": palette.picked, "width": 1.5, "dash": "dot"},
        }
        for n_token in (marks or {}).values()
    ]
    written = [
        note(
            text,
            palette.picked,
            **{"x": float(np.log10(n_token)), "xanchor": "left", "xshift": 4},
            **{"yref": "y domain", "y": 1, "yanchor": "top", "yshift": -18 * row},  # labels below each other
        )
        for row, (text, n_token) in enumerate((marks or {}).items())
    ]
    axis = {
        "type": "log",
        "showgrid": True,
        "gridcolor": palette.edge,
        "zeroline": False,
        "fixedrange": True,
        "ticks": "",
    }
    return figure_of(
        traces,
        base_layout(
            palette,
            height=_HEIGHT,
            margin={"r": 16, "b": 44},
            showlegend=True,
            legend=legend_above(xanchor="left", font={"size": SMALL_FONT_SIZE}),
            shapes=upright,
            annotations=written,
            xaxis={
                **axis,
                **_decades(tokens, "count"),
                "title": axis_title("tokens (n)", palette.quiet),
            },
            yaxis={
                **axis,
                **_decades(numbers, unit),
                "automargin": True,
                "title": axis_title(what, palette.quiet),
            },
        ),
    )


def quantity_text(number: float | int, unit: Unit) -> str:
    """A number in words, to three digits: "1.45 billion", "48 TB", "1.88 ms"; a count below a million as it is.

    A line never breaks before the unit.
    """
    names = _NAMES[unit]
    if number == 0 or (unit == "count" and number < 1e6):
        written, power = f"{number:,.0f}", 0
    else:
        rounded = float(f"{number:.3g}")
        power = int(np.clip(np.floor(np.log10(rounded) / 3 + 1e-9), min(names), max(names)))
        written = f"{rounded / 1000.0**power:.3g}"
    return f"{written}\N{NO-BREAK SPACE}{names[power]}" if power in names else written


def _decades(numbers: np.ndarray, unit: Unit) -> dict[str, object]:
    """Range and ticks of an axis that shows all these numbers."""
    first, last = np.log10(numbers.min()), np.log10(numbers.max())
    room = 0.04 * max(last - first, 1.0)
    powers = np.arange(int(np.ceil(first - room)), int(np.floor(last + room)) + 1)
    if len(powers) > _MOST_TICKS:
        powers = powers[powers % 3 == 0]
    return {
        "range": [first - room, last + room],
        "tickmode": "array",
        "tickvals": 10.0**powers,
        "ticktext": [quantity_text(10.0**power, unit) for power in powers],
        "tickfont": {"size": SMALL_FONT_SIZE},
    }
