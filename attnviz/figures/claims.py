"""One number of every head as a point, layer by layer: where most heads are, and where the selected head is."""

import numpy as np
from jaxtyping import Float
from plotly import graph_objects as go

from attnviz.figures.layer_grid import runs_across
from attnviz.figures.theme import (
    SMALL_FONT_SIZE,
    THEMES,
    ThemeName,
    axis_title,
    base_layout,
    figure_of,
)
from attnviz.records import heads_in, known

_ROW, _ACROSS = 26, 320  # px per layer, and the height where layers run across
_MARGIN = 0.02  # share of the axis, beyond its ends
_SPREAD = 0.6  # share of a layer's row that its heads take


def draw_heads(
    numbers: Float[np.ndarray, "layer head"],
    *,
    what: str,
    picked: tuple[int, int] | None = None,
    span: tuple[float, float] = (0.0, 1.0),
    theme: ThemeName = "light",
) -> go.Figure:
    """A point for each head: layers down and numbers across, or layers across where there are many.

    Args:
        numbers: NaN for heads without a point.
        what: name of the number, written beside the axis.
        picked: layer and head of the selected head, which is marked.
        span: ends of the axis.
    """
    palette = THEMES[theme]
    n_layer, n_head = numbers.shape
    places = heads_in(numbers)
    layers, heads = np.array(places, dtype=np.int64).reshape(-1, 2).T
    is_picked = np.array([place == picked for place in places], dtype=bool)
    is_across = runs_across(n_layer)
    # Heads of a layer stand side by side, so that equal numbers do not hide each other.
    stand = layers + (heads / max(n_head - 1, 1) - 0.5) * _SPREAD
    points = dict(
        type="scatter",
        x=stand if is_across else known(numbers),
        y=known(numbers) if is_across else stand,
        mode="markers",
        marker={
            "size": np.where(is_picked, 13, 9),
            "color": palette.strong,
            "opacity": np.where(is_picked, 1.0, 0.55),
            "line": {"width": np.where(is_picked, 2.5, 0), "color": palette.picked},
        },
        customdata=np.column_stack([layers, heads]),
        hovertemplate="layer %{customdata[0]}, head %{customdata[1]}: "
        + ("%{y:.3g}" if is_across else "%{x:.3g}")
        + "<extra></extra>",
        cliponaxis=False,
    )
    axis = {"showgrid": False, "zeroline": False, "fixedrange": True, "tickfont": {"size": SMALL_FONT_SIZE}}
    of_layers = {**axis, "dtick": 1, "title": axis_title("layer", palette.quiet)}
    beyond = _MARGIN * (span[1] - span[0])
    of_numbers = {
        **axis,
        "range": [span[0] - beyond, span[1] + beyond],
        "title": axis_title(what, palette.quiet),
        "gridcolor": palette.edge,
        "showgrid": True,
    }
    first, last = -0.6, n_layer - 0.4
    return figure_of(
        points,
        base_layout(
            palette,
            height=_ACROSS if is_across else 70 + _ROW * n_layer,
            margin={"l": 44, "r": 16, "t": 8, "b": 44},
            xaxis={**of_layers, "range": [first, last], "tickangle": 0} if is_across else of_numbers,
            yaxis=of_numbers if is_across else {**of_layers, "range": [last, first]},
        ),
    )
