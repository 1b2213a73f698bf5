"""One vector for a whole sentence above, a context vector for one query below: the tokens between them are the same.

Sources: Sutskever et al. 2014 (arXiv:1409.3215), figure 1; Bahdanau et al. 2015 (arXiv:1409.0473), figure 1.
"""

import numpy as np
from jaxtyping import Float, Int
from plotly import graph_objects as go

from attnviz.figures.label_placement import written_numbers
from attnviz.figures.labels import axis_labels, hover_labels
from attnviz.figures.numbers import HOVER_NUMBER, number_text, share_text
from attnviz.figures.theme import (
    SMALL_FONT_SIZE,
    THEMES,
    TOKEN_FONT,
    Theme,
    ThemeName,
    base_layout,
    figure_of,
    hidden_axis,
    note,
)
from attnviz.records import Axis

MOST_DRAWN = 24
"""Most tokens that are drawn: on a phone the labels of more would touch."""
MOST_STATES = 11
"""Most tokens for which each state has a label."""
_THINNEST, _THICKEST = 0.6, 14.0  # px, of the weights 0 and 1
_BOX = 0.36  # half the width of a state, in tokens
# Heights in px from the bottom of the picture, which is its y axis.
_CONTEXT, _VALUES, _NUMBERS, _LABELS, _STATES, _VECTOR, _HEIGHT = (
    56.0,
    190.0,
    214.0,
    290.0,
    372.0,
    440.0,
    500.0,
)
_HALF = 16.0  # half the height of a box


def drawn_tokens(weights: Float[np.ndarray, " key"]) -> Int[np.ndarray, " drawn"]:
    """Positions, in order, of the tokens with the largest weights and of the last, whose state is the one vector."""
    last = len(weights) - 1
    others = np.argsort(-weights[:last], kind="stable")[: MOST_DRAWN - 1]
    return np.sort(np.append(others, last))


def draw_one_vector(
    weights: Float[np.ndarray, " key"],
    keys: Axis,
    query: tuple[Axis, int],
    *,
    picked: int | None = None,
    theme: ThemeName = "light",
) -> go.Figure:
    """A chain of states that ends in one vector, and the same tokens' values, which make one query's context vector.

    The widths of the lines to the context vector show the weights. Where tokens are left out, the chain is dotted.

    Args:
        weights: of the query on every key, which sum to 1.
        query: the queries, and the position of the one that the context vector is for.
        picked: position of the selected key, whose line has the colour of a selection.
    """
    palette = THEMES[theme]
    at = drawn_tokens(weights)
    n = len(at)
    places, row = [float(place) for place in range(n)], weights[at]
    middle, wide = (n - 1) / 2, max(n, 4)
    left, right = middle - wide / 2, middle + wide / 2
    one_vector = (right - 0.34 * wide, right)
    decoder = (left, left + 0.42 * wide)
    context = (middle - 0.46 * wide, middle + 0.46 * wide)
    boxes = [
        *(_box(place - _BOX, place + _BOX, _STATES, palette.quiet) for place in places),
        _box(*one_vector, _VECTOR, palette.text),
        _box(*decoder, _VECTOR, palette.quiet),
        _box(*context, _CONTEXT, palette.value),
    ]
    lines = [
        {
            "type": "line",
            "layer": "below",
            **{"x0": place, "y0": _VALUES, "y1": _CONTEXT + _HALF},
            "x1": context[0] + (context[1] - context[0]) * (place - left) / wide,
            "opacity": 0.35 + 0.65 * float(weight) ** 0.5,
            "line": {
                "color": palette.picked if token == picked else palette.value,
                "width": _THINNEST + (_THICKEST - _THINNEST) * float(weight),
            },
        }
        for place, token, weight in zip(places, at, row, strict=True)
        if weight > 0
    ]
    arrows = [_arrow(place, _LABELS + 54, place, _STATES - _HALF, palette) for place in places]
    arrows += [
        _arrow(place + _BOX, _STATES, place + 1 - _BOX, _STATES, palette)
        for place, here, after in zip(places, at, at[1:], strict=False)
        if after == here + 1
    ]
    gaps = [
        {
            "type": "line",
            **{"x0": place + _BOX, "x1": place + 1 - _BOX, "y0": _STATES, "y1": _STATES},
            "line": {"color": palette.quiet, "width": 1.5, "dash": "dot"},
        }
        for place, here, after in zip(places, at, at[1:], strict=False)
        if after != here + 1
    ]
    arrows += [
        _arrow(places[-1], _STATES + _HALF, places[-1], _VECTOR - _HALF, palette),
        _arrow(one_vector[0], _VECTOR, decoder[1], _VECTOR, palette),
        *(_arrow(place, _LABELS - 54, place, _VALUES + 30, palette) for place in places),
    ]
    texts = [
        *(
            _text(f"h{token + 1}", place, _STATES, palette.text)
            for place, token in zip(places, at, strict=True)
            if n <= MOST_STATES
        ),
        _text("<b>one vector</b>", sum(one_vector) / 2, _VECTOR, palette.text),
        _text("decoder, every word", sum(decoder) / 2, _VECTOR, palette.quiet),
        _text(
            f"<b>context vector for {axis_labels(query[0], 12)[query[1]]}</b>",
            middle,
            _CONTEXT,
            palette.query,
        ),
        *(
            {**_text(label, place, _LABELS, palette.text), "textangle": -90}
            | {"font": {"family": TOKEN_FONT, "size": SMALL_FONT_SIZE, "color": palette.text}}
            for place, label in zip(places, _labels(keys, at), strict=True)
        ),
        *(
            _text(number_text(float(row[written_number])), places[written_number], _NUMBERS, palette.text)
            for written_number in written_numbers(row)
        ),
        _title("2014, at first: one vector, the last state, for every output word", _HEIGHT - 12.0, left),
        _title("2014, additive: a context vector for each query, of all values", 14.0, left),
    ]
    told = hover_labels(keys)
    values = dict(
        type="scatter",
        name="values",
        x=places,
        y=np.full(n, _VALUES),
        mode="markers",
        marker={
            "symbol": "square",
            "size": 11,
            "color": palette.value,
            "line": {"color": palette.picked, "width": np.where(at == picked, 2.5, 0)},
        },
        customdata=row,
        text=[told[position] for position in at],
        hovertemplate=f"value of %{{text}}<br>weight %{{customdata:{HOVER_NUMBER}}}<extra></extra>",
    )
    return figure_of(
        values,
        base_layout(
            palette,
            height=int(_HEIGHT),
            margin={"l": 12, "r": 12, "t": 0, "b": 0},
            shapes=[*lines, *gaps, *boxes],
            annotations=[*arrows, *texts],
            xaxis=hidden_axis(range=[left - 0.05, right + 0.05]),
            yaxis=hidden_axis(range=[0, _HEIGHT]),
        ),
    )


def left_out(weights: Float[np.ndarray, " key"]) -> str:
    """A sentence about the tokens that are left out; empty where all are drawn."""
    at = drawn_tokens(weights)
    if len(at) == len(weights):
        return ""
    return (
        f"{len(at)} of {len(weights)} tokens are drawn, those with the largest weights and the last: "
        f"{share_text(float(weights[at].sum()))} of the attention."
    )


def _labels(keys: Axis, at: np.ndarray) -> list[str]:
    written = axis_labels(keys, 11)  # so that a label has room between the two halves
    return [written[position] for position in at]


def _box(left: float, right: float, y: float, colour: str) -> dict[str, object]:
    return {
        "type": "rect",
        **{"x0": left, "x1": right, "y0": y - _HALF, "y1": y + _HALF},
        "line": {"color": colour, "width": 1.5},
    }


def _arrow(x0: float, y0: float, x1: float, y1: float, palette: Theme) -> dict[str, object]:
    return {
        **{"x": x1, "y": y1, "ax": x0, "ay": y0},
        **{"xref": "x", "yref": "y", "axref": "x", "ayref": "y"},
        **{"text": "", "showarrow": True, "arrowhead": 2, "arrowwidth": 1.2, "arrowsize": 0.8},
        "arrowcolor": palette.quiet,
    }


def _text(text: str, x: float, y: float, colour: str) -> dict[str, object]:
    return note(text, colour, x=x, y=y)


def _title(text: str, y: float, left: float) -> dict[str, object]:
    return note(f"<b>{text}</b>", x=left, y=y, xanchor="left")
