"""Tokens that a model predicts, and those that it wrote, as bars of their probabilities."""

from typing import TYPE_CHECKING

import numpy as np
from plotly import graph_objects as go

from attnviz.figures.labels import LONGEST_HOVER, LONGEST_LABEL, aliases, isolated, literal, shortened
from attnviz.figures.numbers import HOVER_NUMBER, number_text
from attnviz.figures.theme import (
    SMALL_FONT_SIZE,
    THEMES,
    ThemeName,
    base_layout,
    cell_axis,
    figure_of,
    grid_axis,
    hidden_axis,
    named_rows,
    token_ticks,
)

if TYPE_CHECKING:
    from attnviz.model.answers import Predictions
    from attnviz.model.continuation import Continuation

_BAR, _REST, _HEIGHT = 28, 16, 280  # px
_MOST_LABELS = 40


def draw_predictions(predictions: "Predictions", *, theme: ThemeName = "light") -> go.Figure:
    """A bar for each token, the likeliest on top."""
    palette, shares = THEMES[theme], predictions.probabilities
    labels = [
        f"{isolated(literal(shortened(label, LONGEST_HOVER)))}·{at}"
        for at, label in zip(predictions.ids.tolist(), predictions.labels, strict=True)
    ]
    written = [isolated(literal(shortened(label, LONGEST_LABEL))) for label in predictions.labels]
    bars = dict(
        type="bar",
        x=shares,
        y=labels,
        orientation="h",
        marker={"color": palette.strong},
        text=[f"\N{EN SPACE}{number_text(share)}" for share in shares.tolist()],
        textposition="outside",
        textfont={"size": SMALL_FONT_SIZE},
        cliponaxis=False,
        hovertemplate=f"%{{y:c}}<br>probability %{{x:{HOVER_NUMBER}}}<extra></extra>",
    )
    layout = base_layout(
        palette,
        height=_REST + _BAR * len(labels),
        bargap=0.3,
        margin={"r": 48},
        xaxis=hidden_axis(range=[0, 1]),
        yaxis=named_rows(aliases(labels, written)),
    )
    return figure_of(bars, layout)


def draw_continuation(continuation: "Continuation", *, theme: ThemeName = "light") -> go.Figure:
    """A bar for each token that was written: its probability; custom data of a bar is the token's position.

    Hover text has what else could have been written.
    """
    palette, written = THEMES[theme], continuation.written
    names = [
        f"{isolated(literal(shortened(label, LONGEST_HOVER)))}·{at}"
        for at, label in enumerate(written, continuation.n_read)
    ]
    others = [
        "<br>".join(
            f"{isolated(literal(shortened(label, LONGEST_HOVER)))} {number_text(float(share))}"
            for label, share in zip(labels, shares, strict=True)
        )
        for labels, shares in zip(continuation.candidates, continuation.candidate_probabilities, strict=True)
    ]
    bars = dict(
        type="bar",
        x=names,
        y=continuation.probabilities,
        marker={"color": palette.strong},
        customdata=np.arange(continuation.n_read, continuation.n_read + len(written)),
        hovertext=[f"{name}<br>most likely:<br>{told}" for name, told in zip(names, others, strict=True)],
        hovertemplate="%{hovertext}<extra></extra>",
    )
    step = max(1, -(-len(names) // _MOST_LABELS))
    short = [isolated(literal(shortened(label, LONGEST_LABEL))) for label in written]
    across = cell_axis(automargin=True) | {"type": "category", "tickangle": -60}
    layout = base_layout(
        palette,
        height=_HEIGHT,
        bargap=0.2,
        xaxis=across | token_ticks(names[::step], short[::step]),
        yaxis=grid_axis(palette, "probability", range=[0, 1]),
    )
    return figure_of(bars, layout)
