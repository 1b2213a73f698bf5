"""Cells that a matrix does not have: grey with slanted lines, so that they do not look like zeros."""

import numpy as np
from jaxtyping import Bool

from attnviz.figures.theme import Theme

_HATCHES = 40  # lines across a side, at most one per cell

Box = tuple[float, float, float, float]
"""Left, right, top and bottom edge, in cells."""


def hatching(
    missing: Bool[np.ndarray, "row column"], palette: Theme, *, above: bool = False
) -> list[dict[str, object]]:
    """Shapes over the cells that are missing; none if no cell is.

    Args:
        above: whether they lie above the cells, as they must if an overview covers the cells; otherwise below.
    """
    if not missing.any():
        return []
    path = {"type": "path", "layer": "above" if above else "below"}
    grey = {"fillcolor": palette.edge, "opacity": 0.4, "line": {"width": 0}}
    lines = {"line": {"color": palette.quiet, "width": 1}}
    return [
        {**path, **grey, "path": "".join(_frame(box) for box in boxes(missing))},
        {**path, **lines, "path": _slants(missing)},
    ]


def boxes(missing: Bool[np.ndarray, "row column"]) -> list[Box]:
    """Boxes that cover exactly the missing cells: runs within a row, joined where the next rows have the same runs."""
    boxes_of_row: list[Box] = []
    first = 0
    for row in range(1, len(missing) + 1):
        if row == len(missing) or not np.array_equal(missing[row], missing[first]):
            boxes_of_row += [
                (left - 0.5, right - 0.5, first - 0.5, row - 0.5)
                for left, right in _stretches(missing[first])
            ]
            first = row
    return boxes_of_row


def _frame(box: Box) -> str:
    """An SVG path around a box."""
    left, right, top, bottom = box
    return f"M{left:g},{top:g}L{right:g},{top:g}L{right:g},{bottom:g}L{left:g},{bottom:g}Z"


def _slants(missing: Bool[np.ndarray, "row column"]) -> str:
    """An SVG path of the lines row + column = 0, step, 2 step ..., where they cross missing cells from corner to corner."""
    n_row, n_column = missing.shape
    step = max(1, max(missing.shape) // _HATCHES)
    lines = []
    for total in range(0, n_row + n_column - 1, step):
        rows = np.arange(max(0, total - n_column + 1), min(n_row, total + 1))
        for first, stop in _stretches(missing[rows, total - rows]):
            top, bottom = rows[first] - 0.5, rows[stop - 1] + 0.5
            lines.append(f"M{total - top:g},{top:g}L{total - bottom:g},{bottom:g}")
    return "".join(lines)


def _stretches(gone: np.ndarray) -> list[tuple[int, int]]:
    """Where the array is True: each stretch from its first entry up to the one after its last."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], gone, [False]]))).tolist()
    return list(zip(edges[::2], edges[1::2], strict=True))
