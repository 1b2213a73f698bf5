"""The overview of a matrix whose cells are smaller than a pixel: a picture of its blocks, and a note that says so.

A browser draws one cell for each pixel and drops the others; the overview shows the largest value in each block. The
cells stay below the overview, for hover texts and for zooming in.
"""

from base64 import b64encode
from typing import Any

import numpy as np
from jaxtyping import Float

from attnviz.figures.theme import SMALL_FONT_SIZE, THEMES, Colour, ThemeName
from attnviz.figures.thumbnails import block_length, thumbnail

MOST_DOTS = 192
"""Most dots per side, about the pixels of a matrix on a phone. A matrix with no more cells needs no overview."""


def overview(
    cells: Float[np.ndarray, "query key"],
    span: tuple[float, float],
    *,
    number: str,
    colour: Colour,
    theme: ThemeName,
) -> dict[str, Any]:
    """Image and annotation for the layout of a heatmap with more than `MOST_DOTS` rows or columns.

    Args:
        cells: values of the heatmap, NaN where a cell is empty.
        span: numbers at the two ends of the colour scale.
        number: name of a cell's number.
    """
    n_query, n_key = cells.shape
    rows, columns = (block_length(size, MOST_DOTS) for size in cells.shape)
    picture = thumbnail(cells, most=MOST_DOTS, smallest=span[0], largest=span[1], colour=colour, theme=theme)
    image = {
        "source": f"data:image/png;base64,{b64encode(picture).decode()}",
        "layer": "above",
        "sizing": "stretch",
        **{"xref": "x", "x": -0.5, "xanchor": "left", "sizex": -(-n_key // columns) * columns},
        **{"yref": "y", "y": -0.5, "yanchor": "top", "sizey": -(-n_query // rows) * rows},
    }
    words = {
        "text": f"Overview: each dot is the largest {number}<br>of {rows} × {columns} cells.",
        "showarrow": False,
        "align": "left",
        "font": {"size": SMALL_FONT_SIZE, "color": THEMES[theme].quiet},
        **{"xref": "x domain", "x": 0, "xanchor": "left"},
        **{"yref": "y domain", "y": 0, "yanchor": "top", "yshift": -10},
    }
    return {"images": [image], "annotations": [words]}
