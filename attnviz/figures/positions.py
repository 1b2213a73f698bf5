"""Position vectors: how similar any two are, and their path in the plane."""

import numpy as np
from jaxtyping import Float, Int
from plotly import graph_objects as go

from attnviz.figures.numbers import HOVER_NUMBER
from attnviz.figures.theme import (
    THEMES,
    Theme,
    ThemeName,
    axis_title,
    base_layout,
    cell_axis,
    colour_bar,
    figure_of,
    hidden_axis,
    signed,
)

MOST_POSITIONS = 128
"""Most rows and columns of a picture; for a longer table, evenly spaced positions are drawn."""
_MOST_PAIRS = 96


def draw_likeness(
    table: Float[np.ndarray, "position d_model"], *, n_used: int, theme: ThemeName = "light"
) -> go.Figure:
    """Cosine similarity of every position with every other, from -1 to 1.

    Args:
        n_used: positions that the text takes; a frame is drawn around them.
    """
    palette = THEMES[theme]
    shown = spaced(len(table))
    lengths = np.linalg.norm(table[shown], axis=1, keepdims=True)
    unit = table[shown] / np.maximum(lengths, np.finfo(np.float32).tiny)
    edge = n_used - 0.5
    return figure_of(
        dict(
            type="heatmap",
            z=(unit @ unit.T).astype(np.float32),
            x=shown,
            y=shown,
            **signed(1, palette),
            colorbar=colour_bar(),
            hovertemplate=f"positions %{{y}} and %{{x}}: %{{z:{HOVER_NUMBER}}}<extra></extra>",
        ),
        base_layout(
            palette,
            height=400,
            margin={"l": 44, "b": 40},
            shapes=[
                {
                    "type": "rect",
                    **{"x0": -0.5, "y0": -0.5, "x1": edge, "y1": edge},
                    "line": {"color": palette.picked},
                }
            ],
            xaxis={**_axis("position", palette), "constrain": "domain"},
            yaxis={
                **_axis("position", palette),
                "autorange": "reversed",
                "scaleanchor": "x",
                "constrain": "domain",
            },
        ),
    )


def draw_path(
    points: Float[np.ndarray, "position 2"], *, n_used: int, theme: ThemeName = "light"
) -> go.Figure:
    """Positions in the plane, connected in their order; the positions of the text are marked."""
    palette = THEMES[theme]
    numbers = np.arange(len(points))
    return figure_of(
        [
            dict(
                type="scatter",
                x=points[:, 0],
                y=points[:, 1],
                mode="lines+markers",
                line={"color": palette.quiet, "width": 1},
                marker={"size": 4, "color": palette.quiet},
                customdata=numbers,
                hovertemplate="position %{customdata}<extra></extra>",
            ),
            dict(
                type="scatter",
                x=points[:n_used, 0],
                y=points[:n_used, 1],
                mode="markers",
                marker={"size": 8, "color": palette.picked},
                customdata=numbers[:n_used],
                hovertemplate="position %{customdata}, in this text<extra></extra>",
            ),
        ],
        base_layout(
            palette,
            height=400,
            xaxis=hidden_axis(),
            yaxis=hidden_axis(scaleanchor="x"),
        ),
    )


def draw_table(table: Float[np.ndarray, "position d_model"], *, theme: ThemeName = "light") -> go.Figure:
    """The vectors themselves: a row for each position, a column for each dimension.

    The colour scale ends at the table's `tone_limit`, so that a few large numbers do not make all others look empty.
    """
    palette = THEMES[theme]
    pairs = spaced(table.shape[1] // 2, _MOST_PAIRS)  # keeps sine and cosine of a wave side by side
    rows, columns = spaced(len(table)), np.sort(np.concatenate([2 * pairs, 2 * pairs + 1]))
    cells = table[np.ix_(rows, columns)].astype(np.float32)
    span = tone_limit(table)
    return figure_of(
        dict(
            type="heatmap",
            z=cells,
            x=columns,
            y=rows,
            **signed(span, palette),
            colorbar=colour_bar(),
            hovertemplate=f"position %{{y}}, dimension %{{x}}: %{{z:{HOVER_NUMBER}}}<extra></extra>",
        ),
        base_layout(
            palette,
            height=340,
            margin={"l": 44, "b": 40},
            xaxis=_axis("dimension", palette),
            yaxis={**_axis("position", palette), "autorange": "reversed"},
        ),
    )


def tone_limit(table: Float[np.ndarray, "position d_model"]) -> float:
    """The 99th percentile of the absolute numbers of a table, or the largest if that is 0; 1 for a table of zeros."""
    return float(np.quantile(np.abs(table), 0.99)) or float(np.abs(table).max(initial=0.0)) or 1.0


def spaced(count: int, most: int = MOST_POSITIONS) -> Int[np.ndarray, " shown"]:
    """All rows, or ``most`` of them evenly spaced, including the first and the last."""
    return np.unique(np.linspace(0, count - 1, min(count, most)).round().astype(int))


def _axis(name: str, palette: Theme) -> dict[str, object]:
    return cell_axis(title=axis_title(name, palette.quiet))
