"""How far the shown numbers are from the model's own, for every layer and head."""

import numpy as np
from plotly import graph_objects as go

from attnviz.arguments import typed
from attnviz.figures.layer_grid import runs_across
from attnviz.figures.numbers import power_of_ten, power_text
from attnviz.figures.theme import (
    SMALL_FONT_SIZE,
    THEMES,
    ThemeName,
    axis_title,
    base_layout,
    figure_of,
    outline,
    weight_scale,
)
from attnviz.records import Check, Kind

_SMALLEST = (
    -5
)  # the faint end of the colour scale, 10^-5 of the tolerance; smaller shares and zero have its colour
_CELL, _REST = 34, 70  # px


@typed
def draw_errors(
    check: Check,
    *,
    kind: Kind | None = None,
    picked: tuple[int, int] | None = None,
    theme: ThemeName = "light",
) -> go.Figure:
    """Difference of every layer and head as a share of its tolerance, layers down and heads across; many layers run across.

    Where a layer has fewer heads than another, its row or column is shorter.

    The colour scale is logarithmic and ends where a difference equals its tolerance: a cell of the strongest colour has
    failed.

    Args:
        kind: kind of attention; None for the check's first.
        picked: layer and head whose cell is outlined.
    """
    palette = THEMES[theme]
    of_kind = next(iter(check.differences)) if kind is None else kind
    errors, tolerances = check.differences[of_kind], check.tolerances[of_kind]
    with np.errstate(divide="ignore", invalid="ignore"):
        # No difference is the smallest share of any tolerance, also of one of 0.
        shares = np.where(errors == 0, _SMALLEST, np.maximum(np.log10(errors / tolerances), _SMALLEST))
    exponents = np.arange(_SMALLEST, 1)
    shown = np.where(  # NaN has failed
        check.compared(of_kind), np.nan_to_num(shares, nan=0.0, posinf=0.0, neginf=_SMALLEST), np.nan
    )
    both, told = np.stack([errors, tolerances], axis=-1), _told(errors, tolerances)
    if is_across := runs_across(len(errors)):
        shown, both, told = shown.T, both.swapaxes(0, 1), told.T
    cells = dict(
        type="heatmap",
        z=shown,
        hoverongaps=False,
        zmin=_SMALLEST,
        zmax=0,
        customdata=both,
        text=told,
        colorscale=weight_scale(palette),
        xgap=1,
        ygap=1,
        hovertemplate=f"{'layer %{x}, head %{y}' if is_across else 'layer %{y}, head %{x}'}<br>%{{text}}<extra></extra>",
        colorbar={
            "thickness": 10,
            "outlinewidth": 0,
            "tickvals": exponents,
            "ticktext": [*(power_of_ten(exponent) for exponent in exponents[:-1].tolist()), "tolerance"],
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
        frames = [outline(*((y, x) if is_across else (x, y)), palette.picked, width=3)]
    down, across = ("head", "layer") if is_across else ("layer", "head")
    layout = base_layout(
        palette,
        height=_REST + _CELL * len(shown),
        xaxis={**axis, "side": "top", "title": axis_title(across, palette.text), "tickangle": 0},
        yaxis={**axis, "autorange": "reversed", "title": axis_title(down, palette.text)},
        shapes=frames,
    )
    return figure_of(cells, layout)


def _told(errors: np.ndarray, tolerances: np.ndarray) -> np.ndarray:
    """The hover text of each cell."""
    write = np.vectorize(
        lambda error, tolerance: (
            f"largest difference {power_text(error)}<br>tolerance {power_text(tolerance)}"
        ),
        otypes=[object],
    )
    told: np.ndarray = write(errors, tolerances)
    return told
