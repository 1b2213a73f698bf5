"""A map of all heads: similar heads are close together."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool, Float
from plotly import graph_objects as go

from attnviz.figures.theme import (
    SMALL_FONT_SIZE,
    THEMES,
    ThemeName,
    base_layout,
    colour_bar,
    figure_of,
    weight_scale,
)
from attnviz.records import Head

HEIGHT = 460
_FAINT = 0.2
_FIRST_TONE = 0.3
"""Place of the lowest layer on the weight scale; a paler tone would not be visible on the background."""
_LABEL = np.array([44.0, 14.0])  # px that a label takes
_ABOVE = np.array([0.0, 14.0])  # px from a point to the middle of its label
_POINT = 10.0  # px
_MAP = np.array([480.0, HEIGHT - 60.0])  # px, approximate; labels that overlap at this size are hidden


def draw_head_map(
    points: Float[np.ndarray, "head 2"],
    *,
    heads: Sequence[Head],
    picked: tuple[int, int] | None = None,
    dimmed: Bool[np.ndarray, " head"] | None = None,
    theme: ThemeName = "light",
) -> go.Figure:
    """Heads as points, named "L3 H1", in a tone for each layer; custom data of a point are its layer and head.

    Overlapping labels are hidden; the hover text of a point names its head.

    Args:
        heads: the head of each point.
        picked: layer and head of the selected head, whose point is larger, framed and labelled.
        dimmed: True for heads that are dimmed, in the order of the points.
    """
    palette = THEMES[theme]
    layer = np.array([head.layer for head in heads])
    is_picked = np.array([head == picked for head in heads])
    n_layer = int(layer[-1]) + 1
    order = np.argsort(~is_picked, kind="stable")
    is_named = _thinned(points, order)
    names = [head.short for head in heads]
    drawn = dict(
        type="scatter",
        x=points[:, 0],
        y=points[:, 1],
        mode="markers+text",
        marker={
            "size": np.where(is_picked, 15, 10),
            "symbol": np.where(is_picked, "diamond", "circle"),
            "color": layer,
            "cmin": 0,
            "cmax": max(n_layer - 1, 1),
            "colorscale": _layer_scale(theme),
            "opacity": 1.0 if dimmed is None else np.where(dimmed & ~is_picked, _FAINT, 1.0),
            "line": {
                "width": np.where(is_picked, 3, 0.5),
                "color": np.where(is_picked, palette.picked, palette.quiet),
            },
            "showscale": n_layer > 1,
            "colorbar": colour_bar("layer") | {"dtick": max(1, n_layer // 6)},
        },
        customdata=np.array(heads),
        text=[name if named else "" for name, named in zip(names, is_named, strict=True)],
        textposition="top center",
        textfont={
            "size": SMALL_FONT_SIZE,
            "color": np.where(is_picked, palette.picked, palette.text),
            "shadow": ", ".join(
                [f"0 0 2px {palette.background}"] * 4
            ),  # the picked label may lie on other points
        },
        hovertemplate="layer %{customdata[0]}, head %{customdata[1]}<extra></extra>",
        cliponaxis=False,
    )
    axis = {"visible": False}
    layout = base_layout(
        palette,
        height=HEIGHT,
        xaxis=axis,
        yaxis={**axis, "scaleanchor": "x", "scaleratio": 1},
        margin={"l": 16, "r": 8, "t": 24, "b": 8},
    )
    return figure_of(drawn, layout)


def _layer_scale(theme: ThemeName) -> list[tuple[float, str]]:
    """The upper part of the weight scale, from the lowest layer to the highest."""
    scale = [(place, colour) for place, colour in weight_scale(THEMES[theme]) if place >= _FIRST_TONE]
    first = scale[0][0]
    return [((place - first) / (1 - first), colour) for place, colour in scale]


def _thinned(points: Float[np.ndarray, "head 2"], order: np.ndarray) -> Bool[np.ndarray, " head"]:
    """True for labels that are drawn: in this order, each that does not overlap one drawn before."""
    scale = float(np.min(_MAP / np.maximum(np.ptp(points, axis=0), 1e-9)))
    centres = points * scale  # px
    is_named = np.zeros(len(points), dtype=bool)
    for number in order:
        from_labels = np.abs(centres[is_named] - centres[number])
        from_points = np.abs(centres - (centres[number] + _ABOVE))
        covers = (from_labels < _LABEL).all(axis=1).any()
        covers |= (from_points < (_LABEL + _POINT) / 2).all(axis=1).any()
        is_named[number] = number == order[0] or not covers
    return is_named
