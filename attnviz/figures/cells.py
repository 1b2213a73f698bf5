"""What the cells of a matrix look like beside a heatmap's own colours: small pictures, letters on them, and hatching where there are none."""

import math
from collections.abc import Sequence
from io import BytesIO

import numpy as np
from jaxtyping import Bool, Float, UInt8
from PIL import Image

from attnviz.figures.theme import (
    FONT,
    LOG_DECADES,
    SMALL_FONT_SIZE,
    THEMES,
    Colour,
    Marks,
    Theme,
    ThemeName,
    difference_scale,
    weight_scale,
)

MOST_PIXELS = 64
"""Longest side of a picture, about the size of a cell in the grid of heads: a browser would average the pixels of a
larger picture."""

_TONES = 256  # entries of a palette


def pool(cells: Float[np.ndarray, "query key"], most: int = MOST_PIXELS) -> Float[np.ndarray, "row column"]:
    """The largest cell of each block of a matrix, at most ``most`` blocks a side; small matrices stay as they are.

    Empty cells (NaN) are ignored; a block of only empty cells is empty.
    """
    for axis, size in enumerate(cells.shape):
        cells = np.fmax.reduceat(cells, np.arange(0, size, block_length(size, most)), axis=axis)
    return cells


def block_length(size: int, most: int) -> int:
    """Number of entries of an axis that are pooled to one, so that at most ``most`` are left."""
    return math.ceil(size / most)


def thumbnail(
    cells: Float[np.ndarray, "query key"],
    *,
    most: int = MOST_PIXELS,
    smallest: float = 0.0,
    largest: float | None = None,
    colour: Colour = "linear",
    theme: ThemeName = "light",
) -> bytes:
    """PNG of a matrix, a pixel for each block of `pool`, in the colours of `attnviz.figures.draw_heatmap`.

    Args:
        most: pixels of its longer side.
        smallest: number that has the background's tone, like empty cells.
        largest: number that has the strongest tone; the matrix's own largest by default.
    """
    pooled = pool(cells, most)
    span = (float(np.nanmax(pooled)) if largest is None else largest) - smallest
    shares = np.nan_to_num((pooled - smallest) / max(span, float(np.finfo(np.float32).tiny)))
    if colour == "logarithmic":
        with np.errstate(divide="ignore"):  # log10(0) becomes tone 0
            shares = 1 + np.log10(shares) / LOG_DECADES
    tones = np.rint(shares.clip(0, 1) * (_TONES - 1)).astype(np.uint8)
    return _png(tones, colours_at(np.linspace(0, 1, _TONES), theme))


def colours_at(
    shares: Float[np.ndarray, " place"], theme: ThemeName, *, signed: bool = False
) -> UInt8[np.ndarray, "place 3"]:
    """Red, green and blue of places on the weight scale, from 0 to 1, or on that of differences, whose 0 is at 0.5."""
    scale = difference_scale(THEMES[theme]) if signed else weight_scale(THEMES[theme])
    places = [place for place, _ in scale]
    channels = np.array([[int(colour[i : i + 2], 16) for i in (1, 3, 5)] for _, colour in scale])
    mixed = [np.interp(shares, places, channel) for channel in channels.T]
    return np.asarray(np.rint(np.column_stack(mixed)), dtype=np.uint8)


def _png(tones: UInt8[np.ndarray, "row column"], palette: UInt8[np.ndarray, "entry 3"]) -> bytes:
    image = Image.fromarray(tones)
    image.putpalette(palette.tobytes())
    file = BytesIO()
    image.save(file, format="PNG")
    return file.getvalue()


def contrast(
    colour: Float[np.ndarray, "place 3"], other: Float[np.ndarray, "#place 3"]
) -> Float[np.ndarray, " place"]:
    """Contrast ratio of colours, red, green and blue from 0 to 255: 1 for equal ones, 21 for black and white."""
    first, second = _luminance(colour), _luminance(other)
    return np.asarray((np.maximum(first, second) + 0.05) / (np.minimum(first, second) + 0.05))


def inks(fills: UInt8[np.ndarray, "place 3"], theme: ThemeName) -> list[str]:
    """The colour of letters on each fill."""
    palette = THEMES[theme]
    given = fills.astype(float)
    on_text, on_background = (contrast(given, _rgb(colour)) for colour in (palette.text, palette.background))
    return [palette.text if is_text else palette.background for is_text in on_text >= on_background]


def cell_letters(
    x: Sequence[object],
    y: Sequence[object],
    texts: Sequence[Sequence[str]],
    fills: UInt8[np.ndarray, "place 3"],
    theme: ThemeName,
    *,
    font: str = FONT,
    room: float | None = None,
) -> Marks:
    """A text in each cell of a heatmap, row by row; clicks go through it.

    Args:
        x, y: the columns and rows of the heatmap.
        fills: colours of the cells, row by row.
        room: px that a column needs for its letters; on a page, narrower columns are shown without. None to always show them.
    """
    return dict(
        type="scatter",
        mode="text",
        meta=room,
        x=[column for _ in y for column in x],
        y=[row for row in y for _ in x],
        text=[letter for row in texts for letter in row],
        textfont={"family": font, "size": SMALL_FONT_SIZE, "color": inks(fills, theme)},
        hoverinfo="skip",
    )


def _rgb(colour: str) -> Float[np.ndarray, "1 3"]:
    return np.array([[int(colour[i : i + 2], 16) for i in (1, 3, 5)]], dtype=float)


def _luminance(colours: Float[np.ndarray, "place 3"]) -> Float[np.ndarray, " place"]:
    shares = colours / 255
    linear = np.where(shares <= 0.04045, shares / 12.92, ((shares + 0.055) / 1.055) ** 2.4)
    return np.asarray(linear @ [0.2126, 0.7152, 0.0722])


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
