"""The effect of a mask on the model's output, token by token."""

import numpy as np
from jaxtyping import Float
from plotly import graph_objects as go

from attnviz.figures.labels import axis_labels, hover_labels
from attnviz.figures.theme import (
    SMALL_FONT_SIZE,
    THEMES,
    TOKEN_FONT,
    ThemeName,
    axis_title,
    base_layout,
    figure_of,
)
from attnviz.records import Axis

_MOST_LABELS = 40


def draw_effect(
    change: Float[np.ndarray, " token"],
    tokens: Axis,
    *,
    picked: int | None = None,
    theme: ThemeName = "light",
) -> go.Figure:
    """A bar for each token: the change of direction of its last hidden state, 1 - cosine, from 0 to 2."""
    palette = THEMES[theme]
    n = len(change)
    bars = dict(
        type="bar",
        x=np.arange(n),
        y=change,
        marker={
            "color": palette.strong,
            "line": {"color": palette.picked, "width": np.where(np.arange(n) == picked, 2.5, 0)},
        },
        customdata=hover_labels(tokens),
        hovertemplate="%{customdata}: %{y:.3g}<extra></extra>",
    )
    step = -(-n // _MOST_LABELS)
    shown = list(range(0, n, step))
    font = {"family": TOKEN_FONT, "size": SMALL_FONT_SIZE}
    return figure_of(
        bars,
        base_layout(
            palette,
            height=230,
            margin={"l": 8, "r": 8, "t": 8, "b": 8},
            bargap=0.25,
            xaxis={
                "tickmode": "array",
                "tickvals": shown,
                "ticktext": [axis_labels(tokens)[row] for row in shown],
                "tickfont": font,
                "tickangle": -60,
                "automargin": True,
                "fixedrange": True,
            },
            yaxis={
                "range": [0, max(float(change.max(initial=0.0)) * 1.1, 0.05)],
                "title": axis_title("1 − cosine", palette.quiet),
                "automargin": True,
                "fixedrange": True,
                "gridcolor": palette.edge,
                "tickfont": {"size": SMALL_FONT_SIZE},
            },
        ),
    )
