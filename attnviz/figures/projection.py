"""Query and key vectors in the plane, with lines from the picked query to its strongest keys."""

import numpy as np
from jaxtyping import Float
from plotly import graph_objects as go

from attnviz.figures.theme import (
    SMALL_FONT_SIZE,
    THEMES,
    TOKEN_FONT,
    Theme,
    ThemeName,
    base_layout,
    token_label,
)
from attnviz.records import Projection, Role, Tokens

HEIGHT = 460
N_LINES = 5
"""Strongest keys that the picked query is joined to."""
MOST_LABELS = 60
"""Above this many points labels would cover each other; then only those that a line joins have theirs."""

_SYMBOLS: dict[Role, str] = {"query": "circle", "key": "diamond"}
_WIDEST_LINE = 8.0  # px, for a weight of 1
_CHARACTER, _LINE = 7.3, 15.0  # px a character of the token font takes at 12 px
_SIDES: dict[str, tuple[float, float]] = {  # where a label's middle lies, in label sizes from its point
    "top center": (0.0, 1.0),
    "bottom center": (0.0, -1.0),
    "middle right": (0.6, 0.0),
    "middle left": (-0.6, 0.0),
    "top right": (0.6, 0.9),
    "top left": (-0.6, 0.9),
    "bottom right": (0.6, -0.9),
    "bottom left": (-0.6, -0.9),
}


def draw_projection(
    projection: Projection,
    weights: Float[np.ndarray, "query key"],
    *,
    picked: tuple[int, int] | None = None,
    theme: ThemeName = "light",
) -> go.Figure:
    """Queries as circles, keys as diamonds, and lines whose thickness is the weight.

    Args:
        weights: attention weights of the same head.
        picked: positions of a query and a key; lines go from the query to its `N_LINES` strongest keys.
    """
    palette = THEMES[theme]
    figure = go.Figure(layout=base_layout(palette, height=HEIGHT))
    rows: dict[Role, np.ndarray] = {role: projection.rows(role) for role in _SYMBOLS}
    joined: list[int] = []  # keys with a line
    if picked is not None:
        row = weights[picked[0]]
        joined = [int(key) for key in np.argsort(-row, kind="stable")[:N_LINES] if row[key] > 0]
        for key in joined:
            ends = projection.points[[rows["query"][picked[0]], rows["key"][key]]]
            _add_line(figure, ends, float(row[key]), palette)
    texts = _texts(projection, rows, picked, joined)
    sides = _place_labels(projection.points, texts)
    for role in _SYMBOLS:
        _add_points(figure, projection, role, palette, texts, sides, picked)
    figure.update_xaxes(visible=False)
    figure.update_yaxes(visible=False, scaleanchor="x", scaleratio=1)
    figure.update_layout(
        showlegend=True,
        legend={"orientation": "h", "x": 0, "y": 1.0, "yanchor": "bottom", "font": {"size": SMALL_FONT_SIZE}},
        margin={"t": 28},
    )
    return figure


def _add_line(figure: go.Figure, ends: Float[np.ndarray, "2 2"], weight: float, palette: Theme) -> None:
    figure.add_trace(
        go.Scatter(
            x=ends[:, 0],
            y=ends[:, 1],
            mode="lines",
            line={"width": max(1.0, _WIDEST_LINE * weight), "color": palette.picked},
            opacity=0.35 + 0.5 * weight,
            hoverinfo="skip",
            showlegend=False,
        )
    )


def _texts(
    projection: Projection, rows: dict[Role, np.ndarray], picked: tuple[int, int] | None, joined: list[int]
) -> list[str]:
    """Label of each point: all while they are few, else those of the picked tokens and their lines."""
    named: set[int] = set()
    if picked is not None:
        named = {int(rows["query"][picked[0]]), *(int(rows["key"][key]) for key in (picked[1], *joined))}
    all_named = len(projection.points) <= MOST_LABELS
    return [
        token_label(_tokens(projection, role).labels[position], int(position))
        if all_named or point in named
        else ""
        for point, (role, position) in enumerate(zip(projection.role, projection.position, strict=True))
    ]


def _place_labels(points: Float[np.ndarray, "point 2"], texts: list[str]) -> list[str]:
    """A side of its point for each label, chosen one after the other where it covers least."""
    spread = max(float(np.ptp(points, axis=0).max()), 1e-9)
    pixels = points * (HEIGHT - 80) / spread  # the map is about as wide as high
    taken = [(x, y, 9.0, 9.0) for x, y in pixels]  # centre and size of what is drawn already
    sides = []
    for (x, y), text in zip(pixels, texts, strict=True):
        width, height = _CHARACTER * len(text) + 4, _LINE
        boxes = {
            side: (x + across * (width + 10), y + up * (height + 1), width, height)
            for side, (across, up) in _SIDES.items()
        }
        side = min(boxes, key=lambda one: sum(_overlap(boxes[one], other) for other in taken))
        sides.append(side)
        if text:
            taken.append(boxes[side])
    return sides


def _overlap(one: tuple[float, float, float, float], other: tuple[float, float, float, float]) -> float:
    """Area that two boxes share, in square pixels."""
    across = (one[2] + other[2]) / 2 - abs(one[0] - other[0])
    up = (one[3] + other[3]) / 2 - abs(one[1] - other[1])
    return max(0.0, across) * max(0.0, up)


def _tokens(projection: Projection, role: Role) -> Tokens:
    return projection.query_tokens if role == "query" else projection.key_tokens


def _add_points(
    figure: go.Figure,
    projection: Projection,
    role: Role,
    palette: Theme,
    texts: list[str],
    sides: list[str],
    picked: tuple[int, int] | None,
) -> None:
    rows = projection.rows(role)
    colour = palette.query if role == "query" else palette.key
    positions = projection.position[rows]
    labels = _tokens(projection, role).labels
    is_picked = positions == (-1 if picked is None else picked[0 if role == "query" else 1])
    figure.add_trace(
        go.Scatter(
            name={"query": "queries", "key": "keys"}[role],
            x=projection.points[rows, 0],
            y=projection.points[rows, 1],
            mode="markers+text",
            marker={
                "symbol": _SYMBOLS[role],
                "size": np.where(is_picked, 13, 8),
                "color": colour,
                "line": {"width": np.where(is_picked, 2.5, 0), "color": palette.picked},
            },
            text=[texts[row] for row in rows],
            textposition=[sides[row] for row in rows],
            textfont={"family": TOKEN_FONT, "size": SMALL_FONT_SIZE, "color": colour},
            hovertext=[f"{role} {token_label(labels[position], int(position))}" for position in positions],
            hoverinfo="text",
            cliponaxis=False,
        )
    )
