"""Matrices as small pictures: the factors of a product, with the selected row and column marked.

Where there are more rows or columns than pixels, the largest value in each block is drawn.
"""

import numpy as np
from jaxtyping import Float
from plotly import graph_objects as go

from attnviz.figures.theme import (
    SMALL_FONT_SIZE,
    THEMES,
    Theme,
    ThemeName,
    axis_title,
    base_layout,
    figure_of,
    outline,
    signed,
    token_ticks,
)

MOST_CELLS = 96
"""Most rows or columns that are drawn: a cell is then 3 px wide in a picture of 300 px."""
_LONGEST_SIDE = 260  # px
_SHORTEST_SIDE = 24
_MOST_LABELLED = 24  # rows with labels that can be read; of blocks there are always more


def draw_matrix(
    cells: Float[np.ndarray, "row column"],
    *,
    title: str,
    rows: tuple[str, int | range | None],
    columns: tuple[str, int | range | None],
    labels: list[str] | None = None,
    theme: ThemeName = "light",
) -> go.Figure:
    """A matrix on a diverging scale centred at 0, its size written after its title.

    Args:
        title: name of the matrix, such as "Q".
        rows, columns: what a row and a column are, such as "token", and the selected index or range of indices.
        labels: of the rows, shown where they are few enough to be readable.
        theme: light or dark colours.
    """
    palette = THEMES[theme]
    n_row, n_column = cells.shape
    row_block, column_block = (-(-size // MOST_CELLS) for size in cells.shape)
    shown = largest_of_blocks(cells, row_block, column_block)
    span = float(np.abs(shown).max(initial=0.0)) or 1.0
    heatmap = dict(
        type="heatmap",
        z=shown,
        **signed(span, palette),
        showscale=False,
        hovertemplate=f"{rows[0]} %{{y}}, {columns[0]} %{{x}}: %{{z:.3g}}<extra></extra>"
        if row_block == column_block == 1
        else f"largest of {row_block} × {column_block}: %{{z:.3g}}<extra></extra>",
    )
    shapes = []
    for picked, block, axis in ((rows[1], row_block, "y"), (columns[1], column_block, "x")):
        if picked is not None:
            several = picked if isinstance(picked, range) else range(picked, picked + 1)
            along, across = (
                (several.start // block - 0.5, (several.stop - 1) // block + 0.5),
                (-0.5, (shown.shape[1] if axis == "y" else len(shown)) - 0.5),
            )
            x, y = (across, along) if axis == "y" else (along, across)
            shapes.append(outline(x, y, palette.picked, width=2))
    return figure_of(
        heatmap,
        base_layout(
            palette,
            height=64 + _side(len(shown), max(shown.shape)),
            title={
                "text": f"<b>{title}</b>  {n_row:,} × {n_column:,}",
                "font": {"size": SMALL_FONT_SIZE + 1},
                "x": 0,
                "xanchor": "left",
                "y": 0.98,
                "yanchor": "top",
            },
            shapes=shapes,
            margin={"l": 26, "t": 30, "b": 26},
            xaxis=_axis(columns[0], palette, "bottom"),
            yaxis={
                **_axis(
                    "" if (labelled := _row_labels(labels, len(shown))) else rows[0],
                    palette,
                    "left",
                ),
                "autorange": "reversed",
                **labelled,
            },
        ),
    )


def largest_of_blocks(
    cells: Float[np.ndarray, "row column"], rows: int, columns: int
) -> Float[np.ndarray, "row_block column_block"]:
    """The number of each block that is farthest from 0."""
    if rows == columns == 1:
        return cells
    n_row, n_column = -(-cells.shape[0] // rows), -(-cells.shape[1] // columns)
    padded = np.zeros((n_row * rows, n_column * columns), dtype=cells.dtype)
    padded[: cells.shape[0], : cells.shape[1]] = cells
    blocks = padded.reshape(n_row, rows, n_column, columns).transpose(0, 2, 1, 3).reshape(n_row, n_column, -1)
    at = np.abs(blocks).argmax(axis=2, keepdims=True)
    return np.asarray(np.take_along_axis(blocks, at, axis=2)[..., 0])


def _side(count: int, longest: int) -> int:
    return max(_SHORTEST_SIDE, round(_LONGEST_SIDE * count / max(longest, 1)), min(_LONGEST_SIDE, 15 * count))


def _axis(name: str, palette: Theme, side: str) -> dict[str, object]:
    return {
        "showticklabels": False,
        "ticks": "",
        "showgrid": False,
        "zeroline": False,
        "fixedrange": True,
        "side": side,
        "title": axis_title(name, palette.quiet),
    }


def _row_labels(labels: list[str] | None, n_shown: int) -> dict[str, object]:
    if labels is None or n_shown > _MOST_LABELLED:
        return {}
    return {"showticklabels": True, **token_ticks(list(range(n_shown)), labels)}
