"""A needle in a long text: how much the best heads look at it wherever it is, and the answer without them."""

from typing import TYPE_CHECKING

import numpy as np
from plotly import graph_objects as go

from attnviz.figures.numbers import HOVER_NUMBER
from attnviz.figures.theme import (
    THEMES,
    Marks,
    Theme,
    ThemeName,
    base_layout,
    figure_of,
    grid_axis,
    legend_above,
    line,
    points_at,
)
from attnviz.records import Head, known

if TYPE_CHECKING:
    from attnviz.effects.needle import HeadsOff, NeedleHeads

_HEIGHT = 320
_SYMBOLS = ("circle", "diamond", "square", "triangle-up", "cross")
_DASHES = ("solid", "dash", "dot", "dashdot", "longdash")


def draw_needle(
    needle: "NeedleHeads", *, picked: tuple[int, int] | None = None, theme: ThemeName = "light"
) -> go.Figure:
    """A line for each of the best heads: its weight on the needle over the needle's depth; dotted, the median of all heads.

    Custom data of a point are layer and head.

    Args:
        picked: layer and head of the selected head, which has a line too.
    """
    palette, order = THEMES[theme], np.argsort(needle.depths)
    depths, weights = np.array(needle.depths)[order] * 100, needle.weights[order]
    heads = needle.ranked()[: len(_SYMBOLS)]
    marks = [
        _line(depths, weights[:, head.layer, head.head], head, number, palette)
        for number, head in enumerate(heads)
    ]
    median = np.array([np.median(known(of_depth)) for of_depth in weights])
    marks.append(
        points_at(
            depths,
            median,
            {"size": 1},
            name="median head",
            mode="lines+markers",
            line={"color": palette.quiet, "width": 2, "dash": "dot"},
            hovertemplate=f"median of all heads: %{{y:{HOVER_NUMBER}}}<extra></extra>",
        )
    )
    if picked is not None and picked not in heads and np.isfinite(weights[(0, *picked)]):
        marks.append(
            _line(depths, weights[:, picked[0], picked[1]], Head(*picked), 0, palette, palette.picked)
        )
    across = grid_axis(palette, "depth of the needle in the text", range=[-4, 104], ticksuffix="%")
    up = grid_axis(palette, "weight on the needle", range=[-0.02, 1.04])
    layout = base_layout(
        palette,
        height=_HEIGHT,
        margin={"r": 16},
        xaxis=across,
        yaxis=up,
        showlegend=True,
        legend=legend_above(),
    )
    return figure_of(marks, layout)


def _line(
    depths: np.ndarray, weights: np.ndarray, head: Head, number: int, palette: Theme, colour: str = ""
) -> Marks:
    return points_at(
        depths,
        weights,
        {"size": 8, "symbol": _SYMBOLS[number]},
        name=head.short,
        mode="lines+markers",
        line={
            "color": colour or palette.heads[number % len(palette.heads)],
            "width": 2,
            "dash": _DASHES[number],
        },
        customdata=[list(head)] * len(depths),
        hovertemplate=f"{head.words}, needle at %{{x:{HOVER_NUMBER}}}%: %{{y:{HOVER_NUMBER}}}<extra></extra>",
    )


def draw_heads_off(off: "HeadsOff", *, theme: ThemeName = "light") -> go.Figure:
    """A bar for the outcome without the best heads, and for each random draw; a dotted line for the unchanged run."""
    palette = THEMES[theme]
    names = ["best heads", *(f"random {number}" for number in range(1, len(off.random) + 1))]
    which = [", ".join(head.short for head in heads) for heads in (off.heads, *off.drawn)]
    bars: Marks = dict(
        type="bar",
        x=names,
        y=np.array([off.off, *off.random.tolist()]),
        marker={"color": [palette.picked, *[palette.strong] * len(off.random)]},
        text=which,
        textposition="none",
        hovertemplate=f"without %{{text}}: %{{y:{HOVER_NUMBER}}}<extra></extra>",
    )
    unchanged = line((0.0, off.base), (1.0, off.base), palette.quiet, xref="paper")
    up = grid_axis(palette, off.outcome or "outcome", rangemode="tozero")
    layout = base_layout(
        palette,
        height=_HEIGHT,
        margin={"r": 16},
        xaxis=grid_axis(palette, "heads that are off", type="category"),
        yaxis=up,
        shapes=[unchanged],
    )
    return figure_of(bars, layout)
