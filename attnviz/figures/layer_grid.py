"""A cell for each layer, or head, and token: the frame that figures of a whole run share.

One concept: rows stand from the first at the bottom, as a text passes through them; tokens stand across.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from plotly import graph_objects as go

from attnviz.figures.ink import cell_letters
from attnviz.figures.theme import (
    SMALL_FONT_SIZE,
    THEMES,
    TOKEN_FONT,
    Marks,
    ThemeName,
    axis_title,
    base_layout,
    figure_of,
    outline,
)
from attnviz.figures.thumbnails import colours_at

_ROW, _LABELS = 30, 170  # px
_LOWEST, _HIGHEST = 300, 620
_MOST_GAPS = 48  # tokens with gaps between their columns
_MOST_LABELS = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Colours:
    """What the colours of the cells say."""

    scale: Sequence[tuple[float, str]]
    low: float
    high: float
    title: str


def draw_layer_grid(
    numbers: Float[np.ndarray, "row token"],
    *,
    row: str,
    names: Sequence[str],
    written: Sequence[str],
    colours: Colours,
    said: Sequence[Sequence[str]],
    letters: Sequence[Sequence[str]] | None = None,
    picked: int | None = None,
    theme: ThemeName = "light",
) -> go.Figure:
    """A heatmap; custom data of a cell are row and token.

    Args:
        row: what a row is, as in "layer".
        names: of the tokens across, for hover texts; positions are added.
        written: what stands below each column.
        said: what is said of each cell, safe for plotly.
        letters: what stands in the cells, whose colours are those of weights from 0 to 1; None for nothing.
        picked: position of the token whose column is outlined.
    """
    palette = THEMES[theme]
    tokens = [f"{name}·{at}" for at, name in enumerate(names)]
    n_row, n_token = numbers.shape
    places = np.stack(np.meshgrid(np.arange(n_row), np.arange(n_token), indexing="ij"), axis=-1)
    cells: Marks = dict(
        type="heatmap",
        x=tokens,
        y=np.arange(n_row),
        z=numbers,
        zmin=colours.low,
        zmax=colours.high,
        colorscale=colours.scale,
        xgap=int(n_token <= _MOST_GAPS),
        ygap=1,
        hoverongaps=False,
        customdata=places.tolist(),
        colorbar={
            "title": {"text": colours.title, "side": "right", "font": {"size": SMALL_FONT_SIZE}},
            "thickness": 8,
            "outlinewidth": 0,
            "tickfont": {"size": SMALL_FONT_SIZE},
        },
        hovertext=said,
        hovertemplate="%{hovertext}<extra></extra>",
    )
    axis = {"showgrid": False, "zeroline": False, "ticks": "", "fixedrange": True}
    step = max(1, -(-n_token // _MOST_LABELS))
    framed = []
    if picked is not None:
        framed = [outline((picked - 0.5, picked + 0.5), (-0.5, n_row - 0.5), palette.picked, width=2)]
    marks = [cells]
    if letters is not None:
        fills = colours_at(numbers.ravel().astype(float), theme)
        marks.append(cell_letters(tokens, range(n_row), letters, fills, theme, font=TOKEN_FONT))
    return figure_of(
        marks,
        base_layout(
            palette,
            height=int(np.clip(n_row * _ROW + _LABELS, _LOWEST, _HIGHEST)),
            xaxis={
                **axis,
                "type": "category",
                "range": [-0.5, n_token - 0.5],
                "tickmode": "array",
                "tickvals": tokens[::step],
                "ticktext": list(written)[::step],
                "tickangle": -60,
                "automargin": True,
                "tickfont": {"family": TOKEN_FONT, "size": SMALL_FONT_SIZE},
            },
            yaxis={
                **axis,
                "title": axis_title(row, palette.quiet),
                "range": [-0.5, n_row - 0.5],
                "dtick": max(1, n_row // 12),
                "automargin": True,
                "tickfont": {"size": SMALL_FONT_SIZE},
            },
            shapes=framed,
        ),
    )
