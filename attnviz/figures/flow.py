"""Lines from queries to keys as one SVG, for a page without the app's own component."""

from html import escape

import numpy as np
from jaxtyping import Bool

from attnviz.figures.labels import label_at, shortened
from attnviz.figures.theme import SMALL_FONT_SIZE, THEMES, TOKEN_FONT, ThemeName
from attnviz.heads.flow import Flow
from attnviz.records import Axis

_ROW, _ROOM, _WIDTH, _TOP = (
    18,
    150,
    640,
    24,
)  # px: a row, the labels on a side, the picture, the header
_WIDEST = 8.0  # px of the strongest line
_DASHES = ("none", "12 5", "3 4", "14 4 3 4")


def draw_flow(
    flow: Flow,
    queries: Axis,
    keys: Axis,
    *,
    largest: float,
    drawn: Bool[np.ndarray, " line"] | None = None,
    theme: ThemeName = "light",
) -> str:
    """An SVG with queries on the left and keys on the right; the width of a line shows its weight.

    Args:
        largest: the weight that is drawn with the thickest line.
        drawn: lines that are drawn; None for all.
    """
    palette = THEMES[theme]
    height = _TOP + _ROW * max(len(queries), len(keys)) + 8
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" height="{height}" '
        f'role="img" aria-label="Token flow; its numbers are in page.csv" style="max-width: 100%; height: auto" '
        f'font-family="{escape(TOKEN_FONT)}" font-size="{SMALL_FONT_SIZE}">'
    ]
    left, right = _ROOM, _WIDTH - _ROOM
    half = (left + right) / 2
    lines = np.arange(len(flow)) if drawn is None else np.flatnonzero(drawn)
    ends = (flow.matrix, flow.query, flow.key, flow.weight)
    for matrix, query, key, weight in zip(*(end[lines] for end in ends), strict=True):
        strength = min(1.0, float(weight) / largest)
        start, end = _middle(int(query)), _middle(int(key))
        parts.append(
            f'<path d="M{left} {start}C{half} {start} {half} {end} {right} {end}" fill="none" '
            f'stroke="{palette.heads[matrix]}" stroke-dasharray="{_DASHES[matrix]}" '
            f'stroke-width="{max(0.75, _WIDEST * strength):.2f}" stroke-opacity="{0.15 + 0.8 * strength**0.5:.2f}"/>'
        )
    for axis, title, x, anchor, colour in (
        (queries, "query", left - 6, "end", palette.query),
        (keys, "key", right + 6, "start", palette.key),
    ):
        parts.append(_text(x, 15, anchor, colour, title))
        for row, (label, position) in enumerate(zip(axis.labels, axis.positions, strict=True)):
            parts.append(
                _text(x, _middle(row) + 4, anchor, palette.text, label_at(shortened(label), position))
            )
    return "".join([*parts, "</svg>"])


def _middle(row: int) -> float:
    return _TOP + (row + 0.5) * _ROW


def _text(x: float | int, y: float | int, anchor: str, colour: str, text: str) -> str:
    return f'<text x="{x}" y="{y}" text-anchor="{anchor}" fill="{colour}">{escape(text)}</text>'
