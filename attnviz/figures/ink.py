"""Letters on coloured cells, in the page's text or background colour, whichever has more contrast on the cell's colour.

Source: WCAG 2.2, relative luminance and contrast ratio.
"""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float, UInt8

from attnviz.figures.theme import FONT, SMALL_FONT_SIZE, THEMES, Marks, ThemeName


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
    room: int | None = None,
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
