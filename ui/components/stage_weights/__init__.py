"""The weights of all heads and their colours, sent to the browser once for each text, which answers the pointer from them."""

import json
from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool, UInt8

from attnviz.figures.theme import ThemeName
from attnviz.figures.thumbnails import colours_at
from ui.components import register

_mount = register("stage_weights", "stage")
_TONES = 256


def stage_weights(
    text: str,
    cells: Sequence[UInt8[np.ndarray, "head query key"]],
    *,
    queries: Bool[np.ndarray, " query"],
    keys: Bool[np.ndarray, " key"],
    theme: ThemeName,
) -> None:
    """Sends the weights of every head.

    Args:
        text: names the text and model, as the parts of the stage name theirs.
        cells: of each layer, shares of 255.
        queries, keys: rows and columns whose cells do not set the end of a picture's colours, see
            `attnviz.heads.facts.colour_end`.
    """
    _, n_query, n_key = cells[0].shape
    aside = {"queries": np.flatnonzero(queries).tolist(), "keys": np.flatnonzero(keys).tolist()}
    told = {
        "text": text,
        "counts": [len(cell) for cell in cells],
        "nQuery": n_query,
        "nKey": n_key,
        "aside": aside,
        "scale": colours_at(np.linspace(0, 1, _TONES), theme).ravel().tolist(),
    }
    # A message that does not depend on what is selected: Streamlit sends one that the browser has only by its hash.
    _mount(
        key="stage_weights",
        data=b"\n".join([json.dumps(told).encode(), b"".join(cell.tobytes() for cell in cells)]),
    )
