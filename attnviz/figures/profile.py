"""What heads do over a corpus: two numbers of every head, and the weight at each distance and position."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float
from plotly import graph_objects as go

from attnviz.figures.axes import bare_axis, grid_axis
from attnviz.figures.numbers import HOVER_NUMBER
from attnviz.figures.theme import (
    THEMES,
    ThemeName,
    axis_title,
    base_layout,
    figure_of,
)
from attnviz.records import Head

HEIGHT = 420
_LOW = 190  # px, of a histogram
_FAINT = 0.25
_EVERY = 5  # one bin in this many is named, besides the ends


def draw_two_numbers(
    across: Float[np.ndarray, " head"],
    up: Float[np.ndarray, " head"],
    *,
    heads: Sequence[Head],
    titles: tuple[str, str],
    ends: tuple[Float[np.ndarray, " head"], Float[np.ndarray, " head"]] | None = None,
    picked: Head | None = None,
    shown: Sequence[Head] | None = None,
    is_same_number: bool = False,
    theme: ThemeName = "light",
) -> go.Figure:
    """A point for each head at two of its numbers; custom data of a point are its layer and head.

    Args:
        titles: of the two axes.
        ends: of the intervals of `up`, drawn for the selected head.
        shown: heads that are not dimmed; None for all.
        is_same_number: whether both are the same number over different texts; a line shows where they are equal.
    """
    palette = THEMES[theme]
    is_picked = np.array([head == picked for head in heads])
    is_shown = np.array([shown is None or head in shown for head in heads]) | is_picked
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
    if is_same_number:
        both = np.concatenate([across, up])
        low, high = float(np.nanmin(both)), float(np.nanmax(both))
        line = {"color": palette.quiet, "width": 1, "dash": "dot"}
        layout["shapes"] = [dict(type="line", x0=low, y0=low, x1=high, y1=high, layer="below", line=line)]
    return figure_of(points, layout)


def draw_by_depth(
    models: Sequence[tuple[str, Sequence[Head], Float[np.ndarray, " head"]]],
    *,
    title: str,
    picked: Head | None = None,
    theme: ThemeName = "light",
) -> go.Figure:
    """A number of every head of two models, by the depth of its layer: 0 for the first layer, 1 for the last.

    Args:
        models: name, heads and their numbers; only points of the first have custom data, layer and head.
        title: of the number.
        picked: the selected head of the first model.
    """
    palette = THEMES[theme]
    traces: list[dict[str, object]] = []
    for number, (name, heads, means) in enumerate(models):
        last = max(1, max(head.layer for head in heads))
        is_picked = np.array([number == 0 and head == picked for head in heads])
        colour, symbol = ((palette.query, "circle"), (palette.key, "square-open"))[number]
        traces.append(
            dict(
                type="scatter",
                name=name,
                x=[head.layer / last for head in heads],
                y=means,
                mode="markers",
                marker={
                    "size": np.where(is_picked, 14, 8),
                    "symbol": np.where(is_picked, "diamond", symbol),
                    "color": np.where(is_picked, palette.picked, colour),
                    "opacity": 0.8,
                },
                customdata=np.array(heads) if number == 0 else None,
                text=[head.title for head in heads],
                hovertemplate=f"%{{text}}<br>{title} %{{y:{HOVER_NUMBER}}}<extra></extra>",
                cliponaxis=False,
            )
        )
    axis = grid_axis(palette)
    layout = base_layout(
        palette,
        height=HEIGHT,
        margin={"l": 8, "r": 16, "t": 32, "b": 8},
        showlegend=True,
        legend={"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom"},
        xaxis={**axis, "title": axis_title("layer, as a share of all layers", palette.quiet)},
        yaxis={**axis, "title": axis_title(title, palette.quiet)},
    )
    return figure_of(traces, layout)


def draw_shares(
    shares: Float[np.ndarray, " bin"], names: Sequence[str], *, title: str, theme: ThemeName = "light"
) -> go.Figure:
    """Bars of shares of weight, each with a name.

    Args:
        title: of the axis of names.
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
    numbered = [at for at, name in enumerate(names) if name.removeprefix("−").isdecimal()]
    ticks = [at for at in numbered if int(names[at].removeprefix("−")) % _EVERY == 0]
    ticks = sorted({*ticks, *({0, len(names) - 1} - set(numbered))})
    layout = base_layout(
        palette,
        height=_LOW,
        margin={"l": 8, "r": 8, "t": 8, "b": 8},
        bargap=0.15,
        xaxis={
            **bare_axis(),
            "tickvals": ticks,
            "ticktext": [names[tick] for tick in ticks],
            "title": axis_title(title, palette.quiet),
        },
        yaxis={**grid_axis(palette), "rangemode": "tozero"},
    )
    return figure_of(bars, layout)
