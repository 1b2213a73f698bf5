"""Tokens as a directed graph: a node for each, and an arrow from key to query for each of the strongest weights.

Source: Veličković et al. 2018, "Graph Attention Networks" (arXiv:1710.10903), section 2.1, where a node's new vector is
the weighted sum over the nodes that it sees.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int
from plotly import graph_objects as go

from attnviz.figures.labels import axis_labels, hover_labels, isolated, shortened
from attnviz.figures.numbers import HOVER_NUMBER
from attnviz.figures.theme import (
    SMALL_FONT_SIZE,
    THEMES,
    TOKEN_FONT,
    Marks,
    Theme,
    ThemeName,
    base_layout,
    figure_of,
)
from attnviz.records import AttentionPattern, Axis, Record

MOST_NODES = 24
"""Most nodes: on a phone the labels of more would touch."""
MOST_EDGES = 60
"""Most arrows, besides those of the selected query."""
EDGES_OF_QUERY = 5
"""The strongest arrows to the selected query, which are always drawn."""
_EDGES_PER_NODE = 3

_HEIGHT = 440  # px; the circle is as wide as the narrowest phone lets it be
_SIZE = 15  # px, diameter of a node
_CHARACTER = 7.3  # px, of the token font at 12 px
_LONGEST = 9  # characters of a label: on a phone there is no room for more beside the circle
_REACH = 2.05  # the half side of the picture, in radii of the circle
_BEND = 0.16  # how far an arrow bends, as a share of its length, so that opposite arrows do not overlap
_LARGEST_LOOP = 0.17  # radius of a self-loop; smaller where nodes are closer
_THINNEST, _THICKEST = 0.8, 6.0  # px, of the weights 0 and 1


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Edges(Record):
    """The edges that are drawn, strongest first, and the nodes that they join."""

    query: Int[np.ndarray, " edge"]
    """Position of the query of each edge: where its arrow ends."""
    key: Int[np.ndarray, " edge"]
    """Position of the key: where it starts."""
    weight: Float[np.ndarray, " edge"]
    queries: Int[np.ndarray, " query_node"]
    """Positions of the queries that are drawn; of all tokens that are drawn where queries and keys are the same tokens."""
    keys: Int[np.ndarray, " key_node"]
    n_edges: int
    """All edges that the mask allows."""
    share: float
    """Share of all weight that is drawn."""


def strongest_edges(pattern: AttentionPattern, query: int) -> Edges:
    """The strongest edges of a matrix of single tokens, and those of the selected query.

    Three for each token, at most `MOST_EDGES`, and `EDGES_OF_QUERY` more for the query. An edge is drawn only
    if both of its ends are among the nodes: the selected query, its strongest keys, then the ends of the
    strongest edges, up to `MOST_NODES`.
    """
    is_one_text = pattern.kind != "cross"
    weights = np.where(pattern.allowed, pattern.weights, 0)
    n_query, n_key = weights.shape
    own = [(query, int(key)) for key in np.argsort(-weights[query], kind="stable") if weights[query, key] > 0]
    order = np.argsort(-weights, axis=None, kind="stable")
    ends = np.column_stack(np.unravel_index(order[: np.count_nonzero(weights)], weights.shape)).tolist()
    offset = 0 if is_one_text else n_query  # keys of another text are separate nodes
    nodes = {query: None}
    for one_query, key in [*own[:EDGES_OF_QUERY], *ends]:
        more = {one_query: None, key + offset: None}
        if len(nodes | more) <= MOST_NODES:
            nodes |= more
    everyone = n_query if is_one_text else n_query + n_key
    if everyone <= MOST_NODES:
        nodes = dict.fromkeys(range(everyone))
    ends_in_graph = [(query, key) for query, key in ends if query in nodes and key + offset in nodes]
    most = min(MOST_EDGES, _EDGES_PER_NODE * len(nodes))
    mine = [end for end in own if end in ends_in_graph][:EDGES_OF_QUERY]
    drawn = sorted({*ends_in_graph[:most], *mine} if ends_in_graph else [], key=lambda end: -weights[end])
    at = np.array(drawn, dtype=np.int64).reshape(-1, 2)
    here = np.array(sorted(nodes), dtype=np.int64)
    total = float(weights.sum())
    return Edges(
        query=at[:, 0],
        key=at[:, 1],
        weight=weights[at[:, 0], at[:, 1]],
        queries=here if is_one_text else here[here < n_query],
        keys=here if is_one_text else here[here >= n_query] - n_query,
        n_edges=int(pattern.allowed.sum()),
        share=float(weights[at[:, 0], at[:, 1]].sum()) / total if total else 0.0,
    )


def draw_graph(
    pattern: AttentionPattern, query: int, *, key: int | None = None, theme: ThemeName = "light"
) -> go.Figure:
    """The tokens on a circle, in the order of the text clockwise from the top, and `strongest_edges` as arrows.

    An arrow points from key to query, the way that the key's value goes, and its width shows the weight. Those to the
    selected query are blue. The weight of a token on itself is a loop. In cross-attention the decoder's tokens are
    on the right and the encoder's on the left.

    Args:
        query: position of the selected query.
        key: position of the selected key, whose node is marked.
    """
    palette = THEMES[theme]
    edges = strongest_edges(pattern, query)
    query_at, key_at = _places(edges, is_one_text=pattern.kind != "cross")
    loop = min(_LARGEST_LOOP, 0.9 * np.pi / max(len(query_at), 1))  # neighbours' loops hardly touch
    shapes, tips = [], []
    for one_query, one_key, weight in zip(
        edges.query[::-1], edges.key[::-1], edges.weight[::-1], strict=True
    ):
        is_own = int(one_query) == query
        path, tip, angle = _arrow(key_at[int(one_key)], query_at[int(one_query)], loop=loop)
        colour = palette.query if is_own else palette.quiet
        style = {"opacity": _opacity(float(weight), is_own=is_own)}
        width = _THINNEST + (_THICKEST - _THINNEST) * float(weight)
        shapes.append(
            (is_own, {"type": "path", "path": path, "line": {"color": colour, "width": width}, **style})
        )
        tips.append(
            (
                is_own,
                tip,
                angle,
                colour,
                style["opacity"],
                7 + 1.4 * width,
                int(one_query),
                int(one_key),
                weight,
            )
        )
    tips.sort(key=lambda drawn: drawn[0])
    shapes.sort(key=lambda drawn: drawn[0])
    told_queries, told_keys = hover_labels(pattern.queries), hover_labels(pattern.keys)
    arrows = dict(
        type="scatter",
        name="edges",
        x=[tip[1][0] for tip in tips],
        y=[tip[1][1] for tip in tips],
        mode="markers",
        marker={
            "symbol": "arrow",
            "angle": [tip[2] for tip in tips],
            "color": [tip[3] for tip in tips],
            "opacity": [tip[4] for tip in tips],
            "size": [tip[5] for tip in tips],
            "line": {"width": 0},
        },
        text=[f"key {told_keys[tip[7]]} → query {told_queries[tip[6]]}" for tip in tips],
        customdata=[float(tip[8]) for tip in tips],
        hovertemplate=f"%{{text}}<br>weight %{{customdata:{HOVER_NUMBER}}}<extra></extra>",
    )
    nodes, labels = _nodes(pattern, query_at, key_at, (query, key), palette)
    side = {"visible": False, "range": [-_REACH, _REACH], "fixedrange": True}
    return figure_of(
        [arrows, nodes],
        base_layout(
            palette,
            height=_HEIGHT,
            margin={"l": 2, "r": 2, "t": 2, "b": 2},
            shapes=[{**shape, "layer": "below"} for _, shape in shapes],
            annotations=labels,
            xaxis={**side, "constrain": "domain"},
            yaxis={**side, "scaleanchor": "x", "constrain": "domain"},
        ),
    )


def _opacity(weight: float, *, is_own: bool) -> float:
    """Faint for small weights, though never so faint that an arrow of the selected query disappears."""
    least = 0.45 if is_own else 0.18
    return least + (1 - least) * float(weight**0.5)


def _places(edges: Edges, *, is_one_text: bool) -> tuple[dict[int, np.ndarray], dict[int, np.ndarray]]:
    """The place of each query and of each key on the circle, by its position."""

    def on(angles: np.ndarray, positions: np.ndarray) -> dict[int, np.ndarray]:
        points = np.column_stack([np.sin(angles), np.cos(angles)])  # clockwise from the top
        return {int(at): point for at, point in zip(positions, points, strict=True)}

    if is_one_text:
        nodes = on(2 * np.pi * np.arange(len(edges.queries)) / max(len(edges.queries), 1), edges.queries)
        return nodes, nodes
    right, left = (
        (np.arange(len(at)) + 0.5) / max(len(at), 1) * 0.86 * np.pi + 0.07 * np.pi
        for at in (edges.queries, edges.keys)
    )
    return on(right, edges.queries), on(-left, edges.keys)


def _arrow(start: np.ndarray, end: np.ndarray, *, loop: float) -> tuple[str, np.ndarray, float]:
    """An SVG path between two nodes, the place of its head, and the head's angle, clockwise from up in degrees."""
    if np.array_equal(start, end):
        middle = start * (1 - loop)
        path = "M" + "L".join(
            f"{middle[0] + loop * np.sin(turn):.3f},{middle[1] + loop * np.cos(turn):.3f}"
            for turn in np.linspace(0, 2 * np.pi, 25)
        )
        across = np.array([start[1], -start[0]])
        tip = middle - start * loop * 0.5 + across * loop * 0.87
        return path, tip, float(np.degrees(np.arctan2(*(start * 0.87 + across * 0.5))))
    along = end - start
    control = (start + end) / 2 * (1 - _BEND) + _BEND * np.array([along[1], -along[0]])
    before_end = end - 0.075 * (end - control) / np.linalg.norm(end - control)  # at the node's edge
    tip = end - 0.11 * (end - control) / np.linalg.norm(end - control)
    path = f"M{start[0]:.3f},{start[1]:.3f}Q{control[0]:.3f},{control[1]:.3f},{before_end[0]:.3f},{before_end[1]:.3f}"
    return path, tip, float(np.degrees(np.arctan2(*(end - control))))


def _nodes(
    pattern: AttentionPattern,
    query_at: dict[int, np.ndarray],
    key_at: dict[int, np.ndarray],
    picked: tuple[int, int | None],
    palette: Theme,
) -> tuple[Marks, list[dict[str, object]]]:
    """The nodes, and their labels along the radius, so that neighbours never overlap."""
    is_one_text = pattern.kind != "cross"
    sides = [("query", pattern.queries, query_at)]
    if not is_one_text:
        sides.append(("key", pattern.keys, key_at))
    points, colours, shapes, labels, told = [], [], [], [], []
    for side, axis, places in sides:
        written = _short_labels(axis)
        for position, point in places.items():
            is_query = side == "query" and position == picked[0]
            is_key = position == picked[1] and (is_one_text or side == "key") and not is_query
            colour = palette.query if is_query else palette.key if is_key else palette.quiet
            points.append(point)
            colours.append(colour)
            shapes.append("square" if is_query else "diamond" if is_key else "circle")
            told.append(hover_labels(axis)[position])
            labels.append(
                _label(
                    written[position], point, colour if is_query or is_key else palette.text, bold=is_query
                )
            )
    at = np.array(points)
    nodes = dict(
        type="scatter",
        name="nodes",
        x=at[:, 0],
        y=at[:, 1],
        mode="markers",
        marker={
            "size": _SIZE,
            "color": colours,
            "symbol": shapes,
            "line": {"color": palette.background, "width": 2},
            "opacity": 1,
        },
        text=told,
        hovertemplate="%{text}<extra></extra>",
    )
    return nodes, labels


def _short_labels(axis: Axis) -> list[tuple[str, int]]:
    """Labels with their lengths in characters as they are drawn; the text is safe for plotly."""
    lengths = [
        len(f"{shortened(isolated(label), _LONGEST)}·{position}")
        for label, position in zip(axis.labels, axis.positions, strict=True)
    ]
    return list(zip(axis_labels(axis, _LONGEST), lengths, strict=True))


def _label(label: tuple[str, int], point: np.ndarray, colour: str, *, bold: bool) -> dict[str, object]:
    """A label that begins beside its node and runs outwards; on the left it ends beside it, so that none is upside down."""
    text, length = label
    away = _SIZE / 2 + 5 + _CHARACTER * length / 2  # px, from the node to the middle of the label
    turn = float(np.degrees(np.arctan2(-point[1], point[0])))  # clockwise, as plotly turns
    if point[0] < -1e-9:
        turn += 180
    return {
        "text": f"<b>{text}</b>" if bold else text,
        "showarrow": False,
        "font": {"family": TOKEN_FONT, "size": SMALL_FONT_SIZE, "color": colour},
        "textangle": (turn + 180) % 360 - 180,
        **{"x": point[0], "y": point[1], "xanchor": "center", "yanchor": "middle"},
        **{"xshift": away * point[0], "yshift": away * point[1]},
    }
