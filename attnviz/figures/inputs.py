"""How much each token counts for an outcome by several methods, and the outcome as tokens are removed."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from plotly import graph_objects as go

from attnviz.figures.cells import cell_letters, colours_at
from attnviz.figures.labels import LONGEST_HOVER, LONGEST_LABEL, isolated, literal, shortened
from attnviz.figures.numbers import HOVER_NUMBER, cell_text, number_text
from attnviz.figures.theme import (
    THEMES,
    Marks,
    ThemeName,
    base_layout,
    figure_of,
    grid_axis,
    legend_above,
    outline,
    points_at,
    signed,
    token_ticks,
)

if TYPE_CHECKING:
    from attnviz.effects.deletion import Deletion
    from attnviz.effects.input_attribution import InputAttribution

_ROW, _TOP = 24, 110  # px
_MOST_WRITTEN = 40
"""Most tokens with numbers in the cells."""
_CURVES_HEIGHT = 380
_DASHES = ("solid", "dash", "dot", "dashdot")
_SYMBOLS = ("circle", "diamond", "square", "triangle-up", "cross", "x", "star")


def draw_attributions(
    attributions: "Sequence[InputAttribution]",
    *,
    picked: int | None = None,
    theme: ThemeName = "light",
) -> go.Figure:
    """A row for each token, a column for each method, each column on its own scale; custom data are token and method.

    Args:
        picked: position of the selected token, whose row is outlined.
    """
    palette, tokens = THEMES[theme], attributions[0].tokens
    values = np.stack([attribution.values for attribution in attributions], axis=1)
    largest = np.abs(values).max(axis=0, initial=0.0)
    shares = values / np.where(largest > 0, largest, 1)
    n_token, n_method = values.shape
    rows = [
        f"{isolated(literal(shortened(label, LONGEST_HOVER)))}·{at}" for at, label in enumerate(tokens.labels)
    ]
    written_tokens = [isolated(literal(shortened(label, LONGEST_LABEL))) for label in tokens.labels]
    columns = [attribution.title for attribution in attributions]
    cells: Marks = dict(
        type="heatmap",
        x=columns,
        y=rows,
        z=shares,
        **signed(1.0, palette),
        showscale=False,
        xgap=1,
        ygap=1,
        customdata=np.stack(
            np.meshgrid(np.arange(n_token), np.arange(n_method), indexing="ij"), axis=-1
        ).tolist(),
        hovertext=[
            [
                f"{token}<br>{column}: {number_text(float(value))}{_error(attribution, at)}"
                for attribution, column, value in zip(attributions, columns, row, strict=True)
            ]
            for at, (token, row) in enumerate(zip(rows, values, strict=True))
        ],
        hovertemplate="%{hovertext}<extra></extra>",
    )
    marks = [cells]
    if n_token <= _MOST_WRITTEN:
        written = [[cell_text(float(value)) for value in row] for row in values]
        fills = colours_at((shares.ravel() + 1) / 2, theme, signed=True)
        marks.append(cell_letters(columns, rows, written, fills, theme))
    axis = {"showgrid": False, "zeroline": False, "ticks": "", "fixedrange": True}
    step = max(1, -(-n_token // 64))
    framed = []
    if picked is not None:
        framed = [outline((-0.5, n_method - 0.5), (picked - 0.5, picked + 0.5), palette.picked, width=2)]
    return figure_of(
        marks,
        base_layout(
            palette,
            height=min(_TOP + _ROW * n_token, 900),
            xaxis={**axis, "side": "top", "tickangle": -30, "automargin": True},
            yaxis={
                **axis,
                "type": "category",
                "range": [n_token - 0.5, -0.5],
                **token_ticks(rows[::step], written_tokens[::step]),
            },
            shapes=framed,
        ),
    )


def _error(attribution: "InputAttribution", at: int) -> str:
    """The standard error behind the number of a token, where there is one."""
    if attribution.sample is None:
        return ""
    return f" ± {number_text(float(attribution.sample.standard_errors[at]))}"


def draw_deletion(
    deletion: "Deletion",
    *,
    outcome: str = "outcome",
    theme: ThemeName = "light",
) -> go.Figure:
    """A line for each method: the outcome as tokens are removed in its order; the band holds 90% of random orders.

    Args:
        outcome: name of the outcome's number, written beside the axis.
    """
    palette = THEMES[theme]
    band: list[Marks] = [
        dict(
            type="scatter",
            mode="lines",
            name="chance (90%)",
            x=np.concatenate([deletion.chance.counts, deletion.chance.counts[::-1]]),
            y=np.concatenate([deletion.chance.removed[0], deletion.chance.removed[1][::-1]]),
            fill="toself",
            fillcolor=palette.edge,
            opacity=0.7,
            line={"width": 0},
            hoverinfo="skip",
        )
    ]
    lines = [
        points_at(
            deletion.counts,
            curve.removed,
            {"size": 7, "symbol": _SYMBOLS[number % len(_SYMBOLS)]},
            mode="lines+markers",
            name=curve.title,
            line={
                "color": palette.groups[number % len(palette.groups)],
                "width": 2,
                "dash": _DASHES[number % len(_DASHES)],
            },
            hovertemplate=f"{curve.title}, %{{x}} away: %{{y:{HOVER_NUMBER}}}<extra></extra>",
        )
        for number, curve in enumerate(deletion.curves)
    ]
    return figure_of(
        band + lines,
        base_layout(
            palette,
            height=_CURVES_HEIGHT,
            margin={"r": 16},
            xaxis=grid_axis(palette, "tokens removed"),
            yaxis=grid_axis(palette, outcome),
            showlegend=True,
            legend=legend_above(),
        ),
    )
