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
    token_labels,
)
from attnviz.records import Projection, Role

HEIGHT = 460
N_LINES = 5
"""Strongest keys that the picked query is joined to."""
MOST_LABELS = 60
"""Above this many points labels would cover each other; then only those that a line joins have theirs."""

_SYMBOLS: dict[Role, str] = {"query": "circle", "key": "diamond"}
_WIDEST_LINE = 8.0  # px, for a weight of 1
_CHARACTER, _LINE = 7.3, 15.0  # px a character of the token font takes at 12 px
_SIDES = {  # where a label's middle lies, in label sizes from its point
    "top center": np.array([0.0, 1.0]),
    "bottom center": np.array([0.0, -1.0]),
    "middle right": np.array([0.6, 0.0]),
    "middle left": np.array([-0.6, 0.0]),
    "top right": np.array([0.6, 0.9]),
    "top left": np.array([-0.6, 0.9]),
    "bottom right": np.array([0.6, -0.9]),
    "bottom left": np.array([-0.6, -0.9]),
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
    rows: dict[Role, np.ndarray] = {role: projection.rows(role) for role in _SYMBOLS}
    joined: list[int] = []  # keys with a line
    lines: list[go.Scatter] = []
    if picked is not None:
        row = weights[picked[0]]
        joined = [int(key) for key in np.argsort(-row, kind="stable")[:N_LINES] if row[key] > 0]
        ends = [projection.points[[rows["query"][picked[0]], rows["key"][key]]] for key in joined]
        lines = [_line(one, float(row[key]), palette) for one, key in zip(ends, joined, strict=True)]
    texts = _texts(projection, rows, picked, joined)
    sides, lowest, highest = _place_labels(projection.points, texts)
    points = [_points(projection, role, palette, texts, sides, picked) for role in _SYMBOLS]
    layout = base_layout(
        palette,
        height=HEIGHT,
        xaxis={"visible": False, "range": [lowest[0], highest[0]]},
        yaxis={
            "visible": False,
            "range": [lowest[1], highest[1]],
            "scaleanchor": "x",
            "scaleratio": 1,
        },
        showlegend=True,
        legend={
            "orientation": "h",
            "x": 0,
            "y": 1.0,
            "yanchor": "bottom",
            "font": {"size": SMALL_FONT_SIZE},
        },
        margin={"l": 8, "r": 8, "t": 28, "b": 8},
    )
    return go.Figure([*lines, *points], layout)


def _line(ends: Float[np.ndarray, "2 2"], weight: float, palette: Theme) -> go.Scatter:
    return go.Scatter(
        x=ends[:, 0],
        y=ends[:, 1],
        mode="lines",
        line={"width": max(1.0, _WIDEST_LINE * weight), "color": palette.picked},
        opacity=0.35 + 0.5 * weight,
        hoverinfo="skip",
        showlegend=False,
    )


def _texts(
    projection: Projection, rows: dict[Role, np.ndarray], picked: tuple[int, int] | None, joined: list[int]
) -> list[str]:
    """Label of each point: all while they are few, else those of the picked tokens and their lines."""
    named: set[int] = set()
    if picked is not None:
        named = {int(rows["query"][picked[0]]), *(int(rows["key"][key]) for key in (picked[1], *joined))}
    texts = [
        *token_labels(projection.query_tokens, projection.position[rows["query"]]),
        *token_labels(projection.key_tokens, projection.position[rows["key"]]),
    ]
    all_named = len(texts) <= MOST_LABELS
    return [text if all_named or point in named else "" for point, text in enumerate(texts)]


def _place_labels(
    points: Float[np.ndarray, "point 2"], texts: list[str]
) -> tuple[list[str], Float[np.ndarray, "2"], Float[np.ndarray, "2"]]:
    """A side of its point for each label, and the corners of a map that holds all points and labels.

    Sides are chosen one after the other, each where the label covers least of what is there already.
    """
    scale = (HEIGHT - 120) / max(float(np.ptp(points, axis=0).max()), 1e-9)  # px; a map is about that wide
    centres = points.astype(np.float64) * scale
    taken = np.column_stack([centres, np.full_like(centres, 14.0)])  # x, y, width, height of what is drawn
    sides = []
    for centre, text in zip(centres, texts, strict=True):
        size = np.array([_CHARACTER * len(text) + 4, _LINE])
        reach = size + np.array([10, 1])
        boxes = np.array([[*(centre + shift * reach), *size] for shift in _SIDES.values()])
        covered = [_overlap(box, taken) for box in boxes] if text else [0.0]
        best = int(np.argmin(covered))
        sides.append(list(_SIDES)[best])
        if text:
            taken = np.vstack([taken, boxes[best]])
    lowest = (taken[:, :2] - taken[:, 2:] / 2).min(axis=0) / scale
    highest = (taken[:, :2] + taken[:, 2:] / 2).max(axis=0) / scale
    return sides, lowest, highest


def _overlap(box: Float[np.ndarray, "4"], others: Float[np.ndarray, "box 4"]) -> float:
    """Area that a box shares with others, in square pixels."""
    shared = (box[2:] + others[:, 2:]) / 2 - np.abs(box[:2] - others[:, :2])
    return float(shared.clip(min=0).prod(axis=1).sum())


def _points(
    projection: Projection,
    role: Role,
    palette: Theme,
    texts: list[str],
    sides: list[str],
    picked: tuple[int, int] | None,
) -> go.Scatter:
    rows = projection.rows(role)
    is_query = role == "query"
    colour = palette.query if is_query else palette.key
    tokens = projection.query_tokens if is_query else projection.key_tokens
    positions = projection.position[rows]
    is_picked = positions == (-1 if picked is None else picked[0 if is_query else 1])
    return go.Scatter(
        name="queries" if is_query else "keys",
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
        hovertext=[f"{role} {label}" for label in token_labels(tokens, positions)],
        hoverinfo="text",
        cliponaxis=False,
    )
