"""Queries, keys and values of one head as points, with lines from the selected point for its largest weights."""

from collections import Counter
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from jaxtyping import Float
from plotly import graph_objects as go

from attnviz.arguments import typed
from attnviz.figures.label_placement import CHARACTER, LINE, overlap, place_labels
from attnviz.figures.labels import isolated, literal, token_labels
from attnviz.figures.theme import (
    SMALL_FONT_SIZE,
    THEMES,
    TOKEN_FONT,
    Marks,
    Theme,
    ThemeName,
    base_layout,
    figure_of,
    legend_above,
    note,
    number_scale,
)
from attnviz.records import ROLE_NAMES, Projection, Role, Tokens

Tint = Literal["role", "token", "position", "position mod 5", "part of word", "norm", "special"]

BAR_TITLES = {"position": "position", "norm": "length of the vector"}
Side = Literal["query", "key"]

HEIGHT = 460
N_LINES = 5
"""Number of strongest keys with a line from the selected query, or of strongest queries of the selected key."""
MOST_LABELS = 60
"""Above this many points labels would overlap; then only points at the end of a line are labelled."""
MOST_LABELS_TURNED = 24
"""The same for a map of three axes, whose labels cannot be moved apart."""
CONTOURS = {"½": 2.0, "1/10": 10.0, "1/100": 100.0}
"""Labels of the circles around the selected query, and the factor by which the nearest key's weight is divided there."""

_SYMBOLS: dict[Role, str] = {"query": "circle", "key": "diamond", "value": "square"}
_WIDEST_LINE = 8.0  # px, for a weight of 1
_SIZES = {2: (8, 13), 3: (6, 10)}  # px of a point and of a selected point, by number of axes
_MOST_LARGE, _SMALL_SIZE = 200, 5  # most points of the usual size, and the size above that
_BAR = 44  # px that a colour bar takes below the map
_ANGLES = np.pi * (0.25 + np.arange(16) / 8)  # of the label on a circle, in the order in which they are tried
_OTHERS = "other tokens"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tinting:
    """Colours of points, by the groups that they belong to or by a number on a scale."""

    colours: np.ndarray
    """For each point, its colour, or a number where there is a scale."""
    groups: dict[str, str]
    """Name of each group and its colour; empty where there is a scale."""
    scale: dict[str, Any]
    """The plotly settings for colours of numbers; empty where there are groups."""


@typed
def draw_projection(
    projection: Projection,
    *,
    picked: tuple[int, int] | None = None,
    side: Side = "query",
    tint: Tint = "role",
    lengths: Float[np.ndarray, " point"] | None = None,
    height: int = HEIGHT,
    is_square: bool = True,
    theme: ThemeName = "light",
) -> go.Figure:
    """Queries as circles, keys as diamonds, values as squares, and lines whose thickness shows the weight.

    A map of three axes can be turned. In the plane, the attention map has circles around the selected query on which
    the weight that the map implies is a half, a tenth and a hundredth of that of the query's nearest key.

    Args:
        picked: positions of a query and a key.
        side: whether lines go from the selected query to its `N_LINES` strongest keys, or from the selected key to the
            queries that give it the largest weights.
        tint: property that the points are coloured by.
        lengths: of the vectors, for the tint "norm".
        height: px.
        is_square: whether both axes have one scale, so that distances can be read; otherwise the points fill the figure.
    """
    palette = THEMES[theme]
    is_flat = projection.points.shape[1] == 2
    joined = _joined(projection.weights, picked, side)
    colours = None
    if tint != "role":
        lengths = np.zeros(len(projection.points), dtype=np.float32) if lengths is None else lengths
        colours = tinting(projection, tint, lengths, palette)
    lines = [
        _line(projection.points[ends], weight, palette) for ends, weight in _ends(projection, joined, side)
    ]
    named = _named(picked, joined)
    texts = _texts(projection, named)
    shown_axes: dict[str, Any]
    if is_flat:
        roles_and_positions = zip(projection.role, projection.position.tolist(), strict=True)
        is_named = np.array([position in named for position in roles_and_positions])
        texts, sides, lowest, highest, taken = place_labels(projection.points, texts, is_named, height)
        shown_axes = _flat_axes(lowest, highest, is_square=is_square)
        if picked is not None and side == "query" and projection.method == "attention":
            shown_axes |= _contours(
                projection, projection.weights, picked[0], (lowest, highest), taken, palette
            )
    else:
        sides, shown_axes = ["top center"] * len(texts), {"scene": _scene(palette)}
    roles = [role for role in _SYMBOLS if role in projection.role]
    points = [_points(projection, role, palette, texts, sides, picked, colours) for role in roles]
    layout = base_layout(
        palette,
        height=height,
        showlegend=True,
        legend=legend_above(
            y=1.0,
            font={"size": SMALL_FONT_SIZE},
            **({} if colours is None else {"itemclick": False, "itemdoubleclick": False}),
        ),
        margin={"t": 28, "b": _BAR if colours is not None and colours.scale else 8},
        **shown_axes,
    )
    if colours is not None:
        lines += _legend(roles, colours, tint, palette, is_flat)
    return figure_of([*lines, *points], layout)


def hides_labels(figure: go.Figure) -> bool:
    """Whether a drawn map hides the labels of some points until they are hovered over."""
    return any("" in trace.get("text", ()) for trace in figure.to_dict()["data"])


def _joined(weights: np.ndarray, picked: tuple[int, int] | None, side: Side) -> list[tuple[int, int, float]]:
    """Query, key and weight of each line, the strongest first."""
    if picked is None:
        return []
    row = weights[picked[0]] if side == "query" else weights[:, picked[1]]
    others = [int(other) for other in np.argsort(-row, kind="stable")[:N_LINES] if row[other] > 0]
    if side == "query":
        return [(picked[0], key, float(row[key])) for key in others]
    return [(query, picked[1], float(row[query])) for query in others]


def _ends(
    projection: Projection, joined: list[tuple[int, int, float]], side: Side
) -> list[tuple[list[int], float]]:
    """The two points of each line, the selected one first, with its weight."""
    queries, keys = projection.rows("query"), projection.rows("key")
    step = 1 if side == "query" else -1
    return [([int(queries[query]), int(keys[key])][::step], weight) for query, key, weight in joined]


def _line(ends: Float[np.ndarray, "2 axis"], weight: float, palette: Theme) -> Marks:
    along = dict(zip("xyz", ends.T, strict=False))
    return dict(
        type="scatter" if len(along) == 2 else "scatter3d",
        **along,
        mode="lines",
        line={"width": max(1.0, _WIDEST_LINE * weight), "color": palette.picked},
        opacity=0.35 + 0.5 * weight,
        hoverinfo="skip",
        showlegend=False,
    )


def _tokens(projection: Projection, role: Role) -> Tokens:
    return projection.query_tokens if role == "query" else projection.key_tokens


def _named(picked: tuple[int, int] | None, joined: list[tuple[int, int, float]]) -> set[tuple[str, int]]:
    """The points whose labels matter most: those of the selected tokens and at the ends of their lines."""
    if picked is None:
        return set()
    named: set[tuple[str, int]] = {("query", picked[0]), ("key", picked[1])}
    return named | {("query", query) for query, _, _ in joined} | {("key", key) for _, key, _ in joined}


def _texts(projection: Projection, named: set[tuple[str, int]]) -> list[str]:
    """Label of each point: all labels while there are few points, otherwise only those in ``named``."""
    n_point, n_axis = projection.points.shape
    all_named = n_point <= (MOST_LABELS if n_axis == 2 else MOST_LABELS_TURNED)
    texts = []
    for role in dict.fromkeys(projection.role):
        positions = projection.position[projection.rows(role)]
        labels = token_labels(_tokens(projection, role), positions)
        texts += [
            label if all_named or (role, int(position)) in named else ""
            for label, position in zip(labels, positions, strict=True)
        ]
    return texts


def _flat_axes(lowest: np.ndarray, highest: np.ndarray, *, is_square: bool) -> dict[str, Any]:
    one_scale = {"scaleanchor": "x", "scaleratio": 1} if is_square else {}
    return {
        "xaxis": {"visible": False, "range": [lowest[0], highest[0]]},
        "yaxis": {"visible": False, "range": [lowest[1], highest[1]], **one_scale},
    }


def _scene(palette: Theme) -> dict[str, Any]:
    """Three axes without numbers, which would mean nothing; their grids show the depth."""
    axis = {
        "title": {"text": ""},
        "showticklabels": False,
        "showspikes": False,
        "showbackground": False,
        "gridcolor": palette.edge,
        "zeroline": False,
    }
    return {
        "xaxis": axis,
        "yaxis": axis,
        "zaxis": axis,
        "aspectmode": "data",
        "dragmode": "orbit",
        "uirevision": "turned",  # a map that replaces another keeps its viewpoint
    }


def _contours(
    projection: Projection,
    weights: np.ndarray,
    query: int,
    corners: tuple[np.ndarray, np.ndarray],
    taken: np.ndarray,
    palette: Theme,
) -> dict[str, Any]:
    """Circles around a query on which the attention map implies equal weights, each with its number.

    The map implies weights in proportion to exp(-d^2): if the nearest key is at distance d_0, the weight at distance d is
    exp(d_0^2 - d^2) times that key's.
    """
    centre = projection.points[projection.rows("query")[query]].astype(np.float64)
    seen = projection.points[projection.rows("key")[weights[query] > 0]]
    if not len(seen):
        return {}
    nearest = float(((seen - centre) ** 2).sum(axis=1).min())
    shapes, numbers = [], []
    lowest, highest = corners
    unit = taken[0, 3] / 14.0  # a pixel: the first box is that of a point, 14 px high
    for text, divided in CONTOURS.items():
        radius = float(np.sqrt(nearest + np.log(divided)))
        ends = {name: float(end) for name, end in zip(("x0", "y0"), centre - radius, strict=True)}
        ends |= {name: float(end) for name, end in zip(("x1", "y1"), centre + radius, strict=True)}
        line = {"color": palette.quiet, "width": 1, "dash": "dot"}
        shapes.append({"type": "circle", **ends, "line": line, "layer": "below"})
        size = unit * np.array([CHARACTER * len(text) + 4, LINE])
        places = centre + radius * np.column_stack([np.cos(_ANGLES), np.sin(_ANGLES)])
        inside = ((places - size / 2 >= lowest) & (places + size / 2 <= highest)).all(axis=1)
        if inside.any():
            boxes = [[*place, *size] for place in places[inside]]
            best = boxes[int(overlap(np.array(boxes), taken).argmin())]
            taken = np.vstack([taken, best])
            numbers.append(
                note(
                    text,
                    palette.quiet,
                    x=float(best[0]),
                    y=float(best[1]),
                    bgcolor=palette.background,
                    borderpad=0,
                )
            )
    return {"shapes": shapes, "annotations": numbers}


def _points(
    projection: Projection,
    role: Role,
    palette: Theme,
    texts: list[str],
    sides: list[str],
    picked: tuple[int, int] | None,
    colours: Tinting | None,
) -> Marks:
    rows = projection.rows(role)
    colour = {"query": palette.query, "key": palette.key, "value": palette.value}[role]
    positions = projection.position[rows]
    is_picked = positions == (-1 if picked is None else picked[0 if role == "query" else 1])
    is_picked &= role != "value"
    along = dict(zip("xyz", projection.points[rows].T, strict=False))
    is_flat = len(along) == 2
    usual, large = _SIZES[len(along)]
    if len(projection.points) > _MOST_LARGE:
        usual = _SMALL_SIZE
    marker: dict[str, Any] = {
        "symbol": _SYMBOLS[role],
        "size": np.where(is_picked, large, usual),
        "opacity": 1,  # where sizes differ, plotly's default is 0.7, in the legend too
        "color": colour if colours is None else colours.colours[rows],
        **({} if colours is None else colours.scale),
    }
    if is_flat:
        marker["line"] = {
            "width": np.where(is_picked, np.float32(2.5), np.float32(0)),
            "color": palette.picked,
        }
    return dict(
        type="scatter" if is_flat else "scatter3d",
        name=ROLE_NAMES[role],
        **along,
        mode="markers+text",
        marker=marker,
        text=[texts[row] for row in rows],
        textposition=[sides[row] for row in rows] if is_flat else "top center",
        textfont={
            "family": TOKEN_FONT,
            "size": SMALL_FONT_SIZE,
            "color": colour if colours is None else palette.text,
        },
        hovertext=[f"{role} {label}" for label in token_labels(_tokens(projection, role), positions)],
        hoverinfo="text",
        customdata=[[role, int(position)] for position in positions],
        showlegend=colours is None,
        **({"cliponaxis": False} if is_flat else {}),
    )


def _legend(roles: list[Role], colours: Tinting, tint: Tint, palette: Theme, is_flat: bool) -> list[Marks]:
    """Traces without points: for the shapes, then for the groups or for the bar of a scale."""
    kind = "scatter" if is_flat else "scatter3d"
    nowhere: dict[str, Any] = {axis: [None] for axis in ("xy" if is_flat else "xyz")}
    shapes = [
        dict(
            type=kind,
            **nowhere,
            name=ROLE_NAMES[role],
            mode="markers",
            marker={"symbol": _SYMBOLS[role], "color": palette.text, "size": _SIZES[2][0]},
        )
        for role in roles
    ]
    if colours.groups:
        return shapes + [
            dict(type=kind, **nowhere, name=name, mode="lines", line={"color": colour, "width": 6})
            for name, colour in colours.groups.items()
        ]
    bar = {
        "orientation": "h",
        "y": 0,
        "yanchor": "top",
        "ypad": 4,
        "thickness": 8,
        "outlinewidth": 0,
        "tickfont": {"size": SMALL_FONT_SIZE},
        "title": {"text": BAR_TITLES[tint], "side": "bottom", "font": {"size": SMALL_FONT_SIZE}},
    }
    scaled = {**colours.scale, "color": [colours.scale["cmin"]], "showscale": True, "colorbar": bar}
    return [
        *shapes,
        dict(type=kind, **nowhere, mode="markers", marker=scaled, showlegend=False, hoverinfo="skip"),
    ]


def tinting(
    projection: Projection, tint: Tint, lengths: Float[np.ndarray, " point"], palette: Theme
) -> Tinting:
    """The colour of each point.

    Args:
        lengths: of the vectors, as the model has them.
    """
    if tint in BAR_TITLES:
        numbers = lengths if tint == "norm" else projection.position.astype(np.float32)
        scale = {
            "cmin": float(numbers.min()),
            "cmax": max(float(numbers.max()), float(numbers.min()) + 1e-6),
            "colorscale": number_scale(palette),
        }
        return Tinting(colours=numbers, groups={}, scale=scale)
    of_points = [
        group(projection.query_tokens if role == "query" else projection.key_tokens, int(position), tint)
        for role, position in zip(projection.role, projection.position, strict=True)
    ]
    names = [name for name, _ in Counter(of_points).most_common(len(palette.groups))]
    if tint != "token":
        names.sort()
    groups = dict(zip(names, palette.groups, strict=False))
    if set(of_points) > groups.keys():
        groups[_OTHERS] = palette.quiet
    colours = np.array([groups.get(name, palette.quiet) for name in of_points])
    return Tinting(colours=colours, groups=groups, scale={})


def group(tokens: Tokens, position: int, tint: Tint) -> str:
    """The name of the group that a token belongs to; safe for plotly."""
    is_special, continued = bool(tokens.is_special[position]), tokens.continues_word
    match tint:
        case "token":
            return isolated(literal(tokens.labels[position]))
        case "position mod 5":
            return f"position {position % 5} mod 5"
        case "special":
            return "special token" if is_special else "token of the text"
        case _:
            if is_special:
                return "special token"
            if continued[position]:
                return "further piece of a word"
            return "first piece of a word" if continued[position + 1 : position + 2].any() else "whole word"
