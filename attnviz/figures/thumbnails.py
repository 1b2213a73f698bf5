"""A matrix as a small picture, so that all heads of a model fit on one screen.

Pooling keeps the largest value in each block, not the mean, so that no large weight disappears.
"""

import math
from io import BytesIO

import numpy as np
from jaxtyping import Float, UInt8
from PIL import Image

from attnviz.figures.theme import LOG_DECADES, THEMES, Colour, ThemeName, difference_scale, weight_scale

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
