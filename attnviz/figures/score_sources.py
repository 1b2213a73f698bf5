"""A score split by its origin: a cell for each source of the query and each source of the key."""

from typing import TYPE_CHECKING

import numpy as np
from plotly import graph_objects as go

from attnviz.figures.numbers import signed_text
from attnviz.figures.theme import (
    SMALL_FONT_SIZE,
    THEMES,
    Marks,
    ThemeName,
    axis_title,
    base_layout,
    colour_bar,
    difference_scale,
    figure_of,
)

if TYPE_CHECKING:
    from attnviz.effects.score_sources import ScoreSources

_CELL, _LABELS = 13, 90  # px
_LOWEST, _HIGHEST = 300, 560
_MOST_LABELS = 24
_MOST_GAPS = 30
"""Most sources with gaps between their cells."""


def draw_score_sources(score_parts: "ScoreSources", *, theme: ThemeName = "light") -> go.Figure:
    """Sources of the query down, sources of the key across, both in the order in which the model adds them.

    The colour scale has 0 in its middle, and reaches as far on both sides as the part that is farthest from 0.
    """
    palette, parts = THEMES[theme], score_parts.parts
    names = [source.short for source in score_parts.sources]
    largest = float(np.abs(parts).max(initial=0.0)) or 1.0
    places = np.arange(len(names))
    gap = int(len(names) <= _MOST_GAPS)
    cells: Marks = dict(
        type="heatmap",
        x=places,
        y=places,
        z=parts,
        zmin=-largest,
        zmax=largest,
        colorscale=difference_scale(palette),
        xgap=gap,
        ygap=gap,
        colorbar=colour_bar("part of the score"),
        hovertext=[
            [
                f"query from {of_query}<br>key from {of_key}<br>{signed_text(part)}"
                for of_key, part in zip(names, row, strict=True)
            ]
            for of_query, row in zip(names, parts.tolist(), strict=True)
        ],
        hovertemplate="%{hovertext}<extra></extra>",
    )
    step = -(-len(names) // _MOST_LABELS)
    ends = [-0.5, len(names) - 0.5]
    axis = {
        "showgrid": False,
        "zeroline": False,
        "ticks": "",
        "fixedrange": True,
        "automargin": True,
        "tickmode": "array",
        "tickvals": places[::step],
        "ticktext": names[::step],
        "tickfont": {"size": SMALL_FONT_SIZE},
    }
    return figure_of(
        cells,
        base_layout(
            palette,
            height=int(np.clip(len(names) * _CELL + _LABELS, _LOWEST, _HIGHEST)),
            xaxis={
                **axis,
                "range": ends,
                "tickangle": -60,
                "title": axis_title("source of the key", palette.key_text),
            },
            yaxis={**axis, "range": ends[::-1], "title": axis_title("source of the query", palette.query)},
        ),
    )
