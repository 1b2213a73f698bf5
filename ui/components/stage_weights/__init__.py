"""The weights of all heads and their colours, sent to the browser once for each text, for its previews on hover."""

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
        text: names the text and model, with the same name as in the parts of the stage.
        cells: of each layer, shares of 255.
        queries, keys: rows and columns that are ignored when a picture's colour scale is set, see
            `attnviz.heads.facts.colour_end`.
    """
    _, n_query, n_key = cells[0].shape
    aside = {"queries": np.flatnonzero(queries).tolist(), "keys": np.flatnonzero(keys).tolist()}
    data = {
        "text": text,
        "counts": [len(cell) for cell in cells],
        "nQuery": n_query,
        "nKey": n_key,
        "aside": aside,
        "scale": colours_at(np.linspace(0, 1, _TONES), theme).ravel().tolist(),
    }
    # Independent of the selection: Streamlit sends only the hash of a message that the browser already has.
    _mount(key="stage_weights", data=data, attached=b"".join(cell.tobytes() for cell in cells))
