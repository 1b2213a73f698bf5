"""A cell for each layer, or head, and token: the frame that figures of a whole run share.

Layer 0 is on top, as in a matrix; more than `MOST_DOWN` layers run across, and layer 0 is on the left.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from plotly import graph_objects as go

from attnviz.figures.cells import cell_letters, colours_at, hatching
from attnviz.figures.theme import (
    THEMES,
    TOKEN_FONT,
    Marks,
    ThemeName,
    axis_title,
    base_layout,
    cell_axis,
    colour_bar,
    figure_of,
    outline,
    token_ticks,
)

MOST_DOWN = 12
"""Most layers that are drawn from top to bottom; more would be thin strips on an empty page, and are drawn from left to right."""
_ROW, _LABELS = 30, 170  # px
_TOKEN, _NUMBERS = 24, 80  # px, the same where tokens run down
_LOWEST, _HIGHEST = 300, 620
_LETTER = 7.2  # px of a letter of `TOKEN_FONT`
_MOST_GAPS = 48  # rows or columns with gaps between them
_MOST_LABELS = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Colours:
    """The colour scale of the cells, and its title."""

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
    hovers: Sequence[Sequence[str]],
    letters: Sequence[Sequence[str]] | None = None,
    picked: int | None = None,
    theme: ThemeName = "light",
) -> go.Figure:
    """A heatmap with rows down and tokens across, or tokens down where there are many rows; custom data of a cell are row and token.

    Cells without a number are hatched, so that they do not look like 0.

    Args:
        row: what a row is, such as "layer".
        names: of the tokens, which tell the cells apart; positions are added.
        written: label beside the cells of each token.
        hovers: hover text of each cell, safe for plotly.
        letters: text in each cell, whose colours must be those of weights from 0 to 1; None for no text.
        picked: position of the token whose cells are outlined.
    """
    palette = THEMES[theme]
    tokens = [f"{name}·{at}" for at, name in enumerate(names)]
    n_row, n_token = numbers.shape
    is_across = runs_across(n_row)
    places = np.stack(np.meshgrid(np.arange(n_row), np.arange(n_token), indexing="ij"), axis=-1)
    if is_across:
        numbers, places = numbers.T, places.swapaxes(0, 1)
        hovers, letters = _turned(hovers), None if letters is None else _turned(letters)
    x, y = (range(n_row), tokens) if is_across else (tokens, range(n_row))
    cells: Marks = dict(
        type="heatmap",
        x=list(x),
        y=list(y),
        z=numbers,
        zmin=colours.low,
        zmax=colours.high,
        colorscale=colours.scale,
        xgap=int(len(x) <= _MOST_GAPS),
        ygap=int(len(y) <= _MOST_GAPS),
        hoverongaps=False,
        customdata=places.tolist(),
        colorbar=colour_bar(colours.title),
        hovertext=hovers,
        hovertemplate="%{hovertext}<extra></extra>",
    )
    axis = cell_axis(automargin=True)
    step = max(1, -(-n_token // _MOST_LABELS))
    of_tokens = axis | {"type": "category"} | token_ticks(tokens[::step], list(written)[::step])
    numbered = axis | {"title": axis_title(row, palette.quiet), "dtick": 1}
    framed = hatching(np.isnan(numbers), palette)
    if picked is not None:
        of_token, of_all = (picked - 0.5, picked + 0.5), (-0.5, n_row - 0.5)
        wide, high = (of_all, of_token) if is_across else (of_token, of_all)
        framed.append(outline(wide, high, palette.picked, width=2))
    marks = [cells]
    if letters is not None:
        fills = colours_at(numbers.ravel().astype(float), theme)
        longest = np.quantile(
            [len(line) for row in letters for line in row], 0.75
        )  # a few long ones may stick out
        room = int(_LETTER * longest)
        marks.append(cell_letters(x, y, letters, fills, theme, font=TOKEN_FONT, room=room))
    height = n_token * _TOKEN + _NUMBERS if is_across else n_row * _ROW + _LABELS
    return figure_of(
        marks,
        base_layout(
            palette,
            height=int(np.clip(height, _LOWEST, _HIGHEST)),
            xaxis={**numbered, "side": "top", "range": [-0.5, n_row - 0.5], "tickangle": 0}
            if is_across
            else {**of_tokens, "range": [-0.5, n_token - 0.5], "tickangle": -60},
            yaxis={
                **(of_tokens if is_across else numbered),
                "range": [len(y) - 0.5, -0.5],
            },  # the first on top
            shapes=framed,
        ),
    )


def runs_across(n_layer: int) -> bool:
    """Whether this many layers are drawn from left to right."""
    return n_layer > MOST_DOWN


def _turned(rows: Sequence[Sequence[str]]) -> list[list[str]]:
    """Columns as rows."""
    return [list(column) for column in zip(*rows, strict=True)]
