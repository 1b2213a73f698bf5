"""What heads do over a corpus: two numbers of every head, the weight at each distance and position, and examples as arcs."""

from collections.abc import Sequence
from html import escape

import numpy as np
from jaxtyping import Float
from plotly import graph_objects as go

from attnviz.figures.axes import grid_axis
from attnviz.figures.labels import shortened
from attnviz.figures.numbers import HOVER_NUMBER, share_text
from attnviz.figures.theme import (
    SMALL_FONT_SIZE,
    THEMES,
    TOKEN_FONT,
    ThemeName,
    axis_title,
    base_layout,
    figure_of,
)
from attnviz.records import Head

HEIGHT = 420
_LOW = 190  # px, of a histogram
_FAINT = 0.25

_CHARACTER, _GAP, _LINE, _EDGE = 7.3, 14.0, 18.0, 6.0  # px: of the token font at 12 px
_TALLEST = 54.0  # px of an arc
_WIDEST = 6.0  # px of a weight of 1
_FEWEST = 0.02  # of a weight that has an arc
_LONGEST = 16  # characters of a label


def draw_two_numbers(
    across: Float[np.ndarray, " head"],
    up: Float[np.ndarray, " head"],
    *,
    heads: Sequence[Head],
    titles: tuple[str, str],
    ends: tuple[Float[np.ndarray, " head"], Float[np.ndarray, " head"]] | None = None,
    picked: Head | None = None,
    shown: Sequence[Head] | None = None,
    theme: ThemeName = "light",
) -> go.Figure:
    """A point for each head at two of its numbers; the data of a point are its layer and head.

    Args:
        titles: of both axes.
        ends: of the interval of the number that goes up, drawn for the selected head.
        shown: heads that are not dimmed; None for all.
    """
    palette = THEMES[theme]
    is_picked = np.array([one == picked for one in heads])
    is_shown = np.array([shown is None or one in shown for one in heads]) | is_picked
    error: dict[str, object] = {}
    if ends is not None:
        error = {
            "error_y": {
                "type": "data",
                "symmetric": False,
                "array": np.where(is_picked, ends[1] - up, 0),
                "arrayminus": np.where(is_picked, up - ends[0], 0),
                "color": palette.picked,
                "thickness": 2,
                "width": 0,
            }
        }
    points = dict(
        type="scatter",
        x=across,
        y=up,
        mode="markers",
        marker={
            "size": np.where(is_picked, 14, 9),
            "symbol": np.where(is_picked, "diamond", "circle"),
            "color": np.where(is_picked, palette.picked, palette.strong),
            "opacity": np.where(is_picked, 1.0, np.where(is_shown, 0.7, _FAINT)),
            "line": {"width": 0},
        },
        customdata=np.array(heads),
        hovertemplate=(
            f"layer %{{customdata[0]}}, head %{{customdata[1]}}<br>{titles[0]} %{{x:{HOVER_NUMBER}}}"
            f"<br>{titles[1]} %{{y:{HOVER_NUMBER}}}<extra></extra>"
        ),
        cliponaxis=False,
        **error,
    )
    axis = grid_axis(palette)
    layout = base_layout(
        palette,
        height=HEIGHT,
        margin={"l": 8, "r": 16, "t": 12, "b": 8},
        xaxis={**axis, "title": axis_title(titles[0], palette.quiet)},
        yaxis={**axis, "title": axis_title(titles[1], palette.quiet)},
    )
    return figure_of(points, layout)


def draw_shares(
    shares: Float[np.ndarray, " bin"], names: Sequence[str], *, title: str, theme: ThemeName = "light"
) -> go.Figure:
    """Bars of shares of weight, a name below each.

    Args:
        title: of the names.
    """
    palette = THEMES[theme]
    bars = dict(
        type="bar",
        x=list(range(len(names))),
        y=np.nan_to_num(shares),
        marker={"color": palette.key},
        customdata=list(names),
        hovertemplate=f"{title} %{{customdata}}: %{{y:{HOVER_NUMBER}}}<extra></extra>",
    )
    axis = grid_axis(palette)
    every = max(1, -(-len(names) // 17))
    middle = len(names) // 2
    ticks = [one for one in range(len(names)) if (one - middle) % every == 0]
    layout = base_layout(
        palette,
        height=_LOW,
        margin={"l": 8, "r": 8, "t": 8, "b": 8},
        bargap=0.15,
        xaxis={
            **axis,
            "showgrid": False,
            "tickvals": ticks,
            "ticktext": [names[one] for one in ticks],
            "title": axis_title(title, palette.quiet),
        },
        yaxis={**axis, "rangemode": "tozero"},
    )
    return figure_of(bars, layout)


def draw_example(
    labels: Sequence[str],
    weights: Sequence[float],
    *,
    query: int,
    query_label: str,
    one_text: bool,
    theme: ThemeName = "light",
) -> str:
    """A text as an SVG in a box that scrolls: its tokens in a line, and arcs from one of them to what it attends to.

    Args:
        labels: of the keys.
        weights: what the query gives each key.
        query: position of the query among the tokens; without use where it is of another text.
        one_text: whether queries and keys are of one text; otherwise the query stands before the keys.
    """
    palette = THEMES[theme]
    written = [shortened(one, _LONGEST) for one in labels]
    at = query
    given = list(weights)
    if not one_text:
        written, given, at = [shortened(query_label, _LONGEST), *written], [0.0, *given], 0
    widths = [len(one) * _CHARACTER for one in written]
    lefts = np.concatenate([[_EDGE], _EDGE + np.cumsum([one + _GAP for one in widths])])[:-1]
    middles = lefts + np.array(widths) / 2
    width = float(lefts[-1] + widths[-1] + _EDGE)
    floor = _TALLEST + 8
    height = floor + _LINE
    said = ", ".join(
        f"{labels[key]} {share_text(weights[key])}"
        for key in np.argsort(weights)[::-1][:3]
        if weights[key] >= _FEWEST
    )
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" '
        f'height="{height:.0f}" role="img" aria-label="{escape(f"{query_label} attends to {said}")}" '
        f'font-family="{escape(TOKEN_FONT)}" font-size="{SMALL_FONT_SIZE}">'
    ]
    for key, weight in enumerate(given):
        if weight < _FEWEST:
            continue
        tall = min(_TALLEST, 12 + 0.3 * abs(middles[key] - middles[at]))
        stroke = f'stroke="{palette.key}" stroke-width="{max(0.8, _WIDEST * weight):.1f}" stroke-opacity="{0.25 + 0.65 * weight:.2f}"'
        if key == at:
            path = f"M{middles[at] - 6:.1f} {floor:.0f}a6 8 0 1 1 12 0"
        else:
            half = abs(middles[key] - middles[at]) / 2
            sweep = int(middles[key] > middles[at])
            path = f"M{middles[at]:.1f} {floor:.0f}A{half:.1f} {tall:.1f} 0 0 {sweep} {middles[key]:.1f} {floor:.0f}"
        parts.append(f'<path d="{path}" fill="none" {stroke}/>')
    for place, (label, left) in enumerate(zip(written, lefts, strict=True)):
        bold = ' font-weight="700"' if place == at else ""
        colour = palette.query if place == at else palette.text
        parts.append(
            f'<text x="{left:.1f}" y="{floor + 13:.0f}" fill="{colour}"{bold}>{escape(label)}</text>'
        )
    return "".join(['<div style="overflow-x: auto">', *parts, "</svg></div>"])
