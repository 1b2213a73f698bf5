"""The largest difference between ours and the model's, for every layer and head."""

import numpy as np
from plotly import graph_objects as go

from attnviz.figures.theme import (
    SMALL_FONT_SIZE,
    THEMES,
    ThemeName,
    axis_title,
    base_layout,
    outline,
    weight_scale,
)
from attnviz.records import Kind, VerificationReport

_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")  # <sup> would make them 8 px small
_SMALLEST = 1e-9  # the faint end of the colours; smaller differences, and zero, are drawn as this
_CELL, _REST = 34, 70  # px


def draw_errors(
    report: VerificationReport,
    *,
    kind: Kind | None = None,
    picked: tuple[int, int] | None = None,
    theme: ThemeName = "light",
) -> go.Figure:
    """Largest difference of attention weights, layers down and heads across, in logarithmic colours.

    The scale ends at the tolerance, so that a cell of the strongest colour has failed.

    Args:
        picked: layer and head whose cell is outlined.
    """
    palette = THEMES[theme]
    errors = report.weight_error if kind is None else report.weight_errors[kind]
    exponents = np.arange(np.log10(_SMALLEST), np.log10(report.weight_rung.tolerance) + 1)
    cells = go.Heatmap(
        z=np.nan_to_num(np.log10(np.maximum(errors, _SMALLEST)), nan=exponents[-1]),  # NaN has failed
        zmin=exponents[0],
        zmax=exponents[-1],
        customdata=errors,
        colorscale=weight_scale(palette),
        xgap=1,
        ygap=1,
        hovertemplate="layer %{y}, head %{x}<br>largest difference %{customdata:.2e}<extra></extra>",
        colorbar={
            "thickness": 10,
            "outlinewidth": 0,
            "tickvals": exponents,
            "ticktext": ["10" + f"{exponent:.0f}".translate(_SUPERSCRIPTS) for exponent in exponents],
            "tickfont": {"size": SMALL_FONT_SIZE},
        },
    )
    axis = {
        "showgrid": False,
        "zeroline": False,
        "ticks": "",
        "dtick": 1,
        "fixedrange": True,
        "automargin": True,
    }
    frames = []
    if picked is not None:
        layer, head = picked
        x, y = (head - 0.5, head + 0.5), (layer - 0.5, layer + 0.5)
        frames = [outline(x, y, palette.picked, width=3)]
    layout = base_layout(
        palette,
        height=_REST + _CELL * len(errors),
        xaxis={**axis, "side": "top", "title": axis_title("head", palette.text)},
        yaxis={**axis, "autorange": "reversed", "title": axis_title("layer", palette.text)},
        shapes=frames,
    )
    return go.Figure(cells, layout)
