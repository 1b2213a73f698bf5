"""The attention matrix of one head: queries down, keys across, square cells."""

import math
from typing import TYPE_CHECKING, Literal

import numpy as np
from plotly import graph_objects as go

from attnviz.figures.theme import (
    LOG_DECADES,
    SMALL_FONT_SIZE,
    THEMES,
    TOKEN_FONT,
    Theme,
    ThemeName,
    axis_title,
    base_layout,
    outline,
    token_labels,
    weight_scale,
)
from attnviz.records import AttentionPattern, Kind

if TYPE_CHECKING:
    from attnviz.trace import Trace

Shown = Literal["weights", "scores"]
Colour = Literal["linear", "logarithmic"]
Special = Literal["shown", "hidden", "renormalised"]

MOST_CELLS_WITH_SCORES = 120_000
"""Up to this many cells the hover text carries both weight and score. Above, the second number of every
cell would double the 1.4 MB that 512 x 512 cells take on the wire."""

_CELL, _LABELS = 26, 140  # px
_LOWEST, _HIGHEST = 380, 560  # px


def draw_heatmap(
    trace: "Trace",
    layer: int,
    head: int,
    *,
    kind: Kind | None = None,
    show: Shown = "weights",
    colour: Colour = "linear",
    special: Special = "shown",
    picked: tuple[int, int] | None = None,
    theme: ThemeName = "light",
) -> go.Figure:
    """Attention matrix of one head as a heatmap.

    Args:
        show: "weights" after the softmax, or "scores" before it: scaled, biased and masked.
        colour: "linear", or "logarithmic" over the four decades below the largest weight; scores are
            always linear.
        special: rows and columns of special tokens "shown", "hidden", or "renormalised": hidden, with
            each row divided by the weight that remains.
        picked: positions of the query and key whose row, column and cell are outlined.

    Raises:
        SelectionError: no such layer, head or kind.
    """
    pattern = trace.pattern(layer, head, kind)
    if special != "shown":
        pattern = pattern.without_special(renormalise=special == "renormalised")
    return draw_pattern(pattern, show=show, colour=colour, picked=picked, theme=theme)


def draw_pattern(
    pattern: AttentionPattern,
    *,
    show: Shown = "weights",
    colour: Colour = "linear",
    picked: tuple[int, int] | None = None,
    theme: ThemeName = "light",
) -> go.Figure:
    """The same for a pattern at hand; see `draw_heatmap`."""
    palette = THEMES[theme]
    n_query, n_key = pattern.weights.shape
    height = int(np.clip(n_query * _CELL + _LABELS, _LOWEST, _HIGHEST))
    is_logarithmic = colour == "logarithmic" and show == "weights"
    bar = {  # below, where it takes no width from the cells
        "orientation": "h",
        "y": 0,
        "yanchor": "top",
        "ypad": 6,
        "thickness": 8,
        "outlinewidth": 0,
        "tickfont": {"size": SMALL_FONT_SIZE},
    }
    cells = go.Heatmap(
        x=token_labels(pattern.key_tokens, pattern.key_position),
        y=_query_labels(pattern),
        colorscale=weight_scale(palette, logarithmic=is_logarithmic),
        showscale=not is_logarithmic,
        xgap=_gap(n_key),
        ygap=_gap(n_query),
        hoverongaps=False,
        colorbar=bar,
        **_values(pattern, show),
    )
    axis = {
        "type": "category",
        "showgrid": False,
        "zeroline": False,
        "ticks": "",
        "constrain": "domain",
        "automargin": True,
        "tickfont": {"family": TOKEN_FONT, "size": SMALL_FONT_SIZE},
    }
    layout = base_layout(
        palette,
        height=height,
        xaxis={**axis, "side": "top", "tickangle": -60, "title": axis_title("key", palette.key)},
        yaxis={
            **axis,
            "autorange": "reversed",
            "scaleanchor": "x",
            "scaleratio": 1,
            "constraintoward": "top",
            "title": axis_title("query", palette.query),
        },
        shapes=[] if picked is None else _outlines(pattern, picked, palette.picked),
    )
    bars = [_logarithmic_bar(float(pattern.weights.max()), bar, palette)] if is_logarithmic else []
    return go.Figure([cells, *bars], layout)


def _logarithmic_bar(largest: float, bar: dict[str, object], palette: Theme) -> go.Scatter:
    """A trace without points, for its colour bar: plotly's bar of the cells would be linear in the weight."""
    highest = math.log10(max(largest, float(np.finfo(np.float32).tiny)))
    lowest = highest - LOG_DECADES
    exponents = range(math.ceil(lowest), math.floor(highest) + 1)
    return go.Scatter(
        x=[None],
        y=[None],
        mode="markers",
        hoverinfo="skip",
        marker={
            "color": [lowest],
            "cmin": lowest,
            "cmax": highest,
            "colorscale": weight_scale(palette),
            "showscale": True,
            "colorbar": {
                **bar,
                "tickvals": list(exponents),
                "ticktext": [f"{10.0**exponent:.{max(0, -exponent)}f}" for exponent in exponents],
            },
        },
    )


def _values(pattern: AttentionPattern, show: Shown) -> dict[str, object]:
    """What the cells hold and what hover text says; cells that are masked stay empty."""
    allowed = np.isfinite(pattern.scores)
    weights = np.where(allowed, pattern.weights, np.float32(np.nan))
    scores = np.where(allowed, pattern.scores, np.float32(np.nan))
    hover = "query %{y}<br>key %{x}<br>weight %{WEIGHT:.4f}<br>score %{SCORE:.4f}<extra></extra>"
    if show == "weights":
        values: dict[str, object] = {
            "z": weights,
            "zmin": 0.0,
            "zmax": max(float(pattern.weights.max()), 1e-9),
        }
        other, names = scores, {"WEIGHT": "z", "SCORE": "customdata"}
    else:
        values = {"z": scores}
        other, names = weights, {"WEIGHT": "customdata", "SCORE": "z"}
    if allowed.size > MOST_CELLS_WITH_SCORES:
        hover = hover.replace(
            "<br>score %{SCORE:.4f}" if show == "weights" else "<br>weight %{WEIGHT:.4f}", ""
        )
    else:
        values["customdata"] = other
    for name, source in names.items():
        hover = hover.replace(name, source)
    return {**values, "hovertemplate": hover}


def _query_labels(pattern: AttentionPattern) -> list[str]:
    """The queries; behind each the share of its weight that lies on keys which are not shown."""
    labels = token_labels(pattern.query_tokens, pattern.query_position)
    if not pattern.hidden_weight.any():
        return labels
    return [f"{label} −{100 * lost:.0f} %" for label, lost in zip(labels, pattern.hidden_weight, strict=True)]


def _gap(n_token: int) -> int:
    """Pixels between cells while cells are large enough to be counted."""
    return 1 if n_token <= 48 else 0


def _outlines(pattern: AttentionPattern, picked: tuple[int, int], colour: str) -> list[dict[str, object]]:
    """Frames around the row of the picked query and the cell of the picked key, where they are shown."""
    rows = np.flatnonzero(pattern.query_position == picked[0])
    columns = np.flatnonzero(pattern.key_position == picked[1])
    if len(rows) == 0:
        return []
    y = (float(rows[0]) - 0.5, float(rows[0]) + 0.5)
    frames = [outline((-0.5, len(pattern.key_position) - 0.5), y, colour, width=1)]
    if len(columns):
        frames.append(outline((float(columns[0]) - 0.5, float(columns[0]) + 0.5), y, colour, width=3))
    return frames
