"""Where queries, keys and values come from: the texts, the weight matrices, and their products."""

from dataclasses import dataclass
from typing import NamedTuple

from plotly import graph_objects as go

from attnviz.figures.theme import FONT_SIZE, THEMES, ThemeName, base_layout, figure_of, hidden_axis
from attnviz.records import Kind, Record

LETTERS = {"query": "n", "key": "n", "d_model": "d_model", "d_head": "d_k"}
"""Letters for the sizes of a kind of attention that the model does not have."""
_ROW_HEIGHT = 62  # px; a box of two lines
_BOX = 0.66  # of a row
_GAP = 0.04  # on each side of a box; a column is 1 wide
_ROWS = 5


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Sizes(Record):
    """The sizes of one head's attention."""

    query: int
    """Tokens that queries are made from."""
    key: int
    """Tokens that keys and values are made from."""
    d_model: int
    d_head: int


class _Box(NamedTuple):
    row: int
    left: float
    right: float
    text: str
    colour: str

    @property
    def middle(self) -> float:
        return (self.left + self.right) / 2


def draw_sources(kind: Kind, sizes: Sizes | None = None, *, theme: ThemeName = "light") -> go.Figure:
    """Boxes from top to bottom: the text or texts, W_Q, W_K and W_V, Q, K and V, the weights, the output.

    Source: Vaswani et al. 2017, arXiv:1706.03762, sections 3.2.1 to 3.2.3.

    Args:
        sizes: of the model; None for a kind of attention that it does not have, which is drawn with letters and dashes.
    """
    palette = THEMES[theme]
    n_query, n_key, d_model, d_head = (
        (sizes.query, sizes.key, sizes.d_model, sizes.d_head)
        if sizes
        else (LETTERS["query"], "m" if kind == "cross" else LETTERS["key"], *list(LETTERS.values())[2:])
    )
    quiet = palette.quiet
    columns = (("Q", n_query, palette.query), ("K", n_key, palette.key), ("V", n_key, palette.value))
    texts = (
        [
            _Box(0, 0, 1, f"decoder's text<br>{n_query} × {d_model}", quiet),
            _Box(0, 1, 3, f"encoder's text<br>{n_key} × {d_model}", quiet),
        ]
        if kind == "cross"
        else [
            _Box(0, 0, 3, f"{'text so far' if kind == 'decoder' else 'text'}<br>{n_query} × {d_model}", quiet)
        ]
    )
    matrices = [
        _Box(1, at, at + 1, f"W_{name}<br>{d_model} × {d_head}", colour)
        for at, (name, _, colour) in enumerate(columns)
    ]
    vectors = [
        _Box(2, at, at + 1, f"<b>{name}</b><br>{n} × {d_head}", colour)
        for at, (name, n, colour) in enumerate(columns)
    ]
    weights = _Box(
        3,
        0,
        2,
        f"softmax(Q Kᵀ / √d_k{' + mask' if kind == 'decoder' else ''})<br>weights, {n_query} × {n_key}",
        palette.strong,
    )
    output = _Box(4, 0, 3, f"weights × V<br>output, {n_query} × {d_head}", palette.strong)
    arrows = [
        *((next(text for text in texts if text.left <= box.middle <= text.right), box) for box in matrices),
        *zip(matrices, vectors, strict=True),
        *((box, weights) for box in vectors[:2]),
        (weights, output),
        (vectors[2], output),
    ]
    boxes = [*texts, *matrices, *vectors, weights, output]
    return figure_of(
        dict(
            type="scatter",
            x=[box.middle for box in boxes],
            y=[box.row for box in boxes],
            text=[box.text for box in boxes],
            mode="text",
            textfont={"size": FONT_SIZE, "color": palette.text if sizes else quiet},
            hoverinfo="skip",
        ),
        base_layout(
            palette,
            height=_ROWS * _ROW_HEIGHT,
            margin={"l": 2, "r": 2, "t": 2, "b": 2},
            shapes=[
                {
                    "type": "rect",
                    "x0": box.left + _GAP,
                    "x1": box.right - _GAP,
                    "y0": box.row - _BOX / 2,
                    "y1": box.row + _BOX / 2,
                    "line": {
                        "color": box.colour if sizes else quiet,
                        "width": 1.5,
                        "dash": "solid" if sizes else "dot",
                    },
                }
                for box in boxes
            ],
            annotations=[
                {
                    **{"x": _meeting(start, end), "y": end.row - _BOX / 2},
                    **{"ax": _meeting(start, end), "ay": start.row + _BOX / 2},
                    **{"xref": "x", "yref": "y", "axref": "x", "ayref": "y"},
                    **{"text": "", "showarrow": True, "arrowhead": 2, "arrowwidth": 1.5},
                    "arrowcolor": quiet,
                }
                for start, end in arrows
            ],
            xaxis=hidden_axis(range=[0, 3]),
            yaxis=hidden_axis(range=[_ROWS - 0.6, -0.4]),
        ),
    )


def _meeting(start: _Box, end: _Box) -> float:
    """The horizontal place of a vertical arrow: the middle of the narrower box."""
    return min(start, end, key=lambda box: box.right - box.left).middle
