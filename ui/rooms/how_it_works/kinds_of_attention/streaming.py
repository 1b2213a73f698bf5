"""The softmax of one row, computed tile by tile, on the page "Kinds of attention"."""

from collections.abc import Sequence

import numpy as np
import streamlit as st
from jaxtyping import Float

from attnviz.cost.streaming import Stream
from attnviz.figures.labels import label_at
from attnviz.records import Axis
from ui.choice import widgets
from ui.rooms.how_it_works.kinds_of_attention.choices import MaskSettings
from ui.runtime import cache
from ui.shell.table import whole_rows
from ui.shell.view import View
from ui.words.findings import name, power
from ui.words.literal import literal

_NUMBERS = (
    "largest score in the tile",
    "m′, maximum so far",
    "e^(m − m′)",
    "ℓ′, sum so far",
    "largest difference from the direct output",
)


def streaming(view: View) -> None:
    """The softmax of one row, tile by tile."""
    st.subheader("Tile by tile")
    selection = view.selection
    streamed = cache.streamed(selection.source, *selection.place, view.kind, selection.of(MaskSettings).tile)
    n_read = min(selection.of(MaskSettings).tiles, len(streamed))
    st.markdown(
        "FlashAttention (Dao et al. 2022, arXiv:2205.14135) never holds the matrix: it reads some keys at a time and "
        "keeps a running maximum and a running sum for each row. When a tile brings a larger score, what was summed "
        "before is scaled down, and a row reads no key twice (Milakov and Gimelshein 2018, arXiv:1805.02867, algorithm 3); "
        "each block of rows reads all keys again."
    )
    st.latex(
        r"m' = \max(m, \max_{j \in \text{tile}} s_j), \quad "
        r"\ell' = e^{m - m'}\, \ell + \sum_{j \in \text{tile}} e^{s_j - m'}, \quad "
        r"o' = \frac{e^{m - m'}\, \ell\, o + \sum_{j \in \text{tile}} e^{s_j - m'}\, v_j}{\ell'}"
    )
    left, right = st.columns(2)
    left.number_input(**widgets.field("tile"))
    right.number_input(
        **widgets.field(
            "tiles",
            selection.but(tiles=n_read),
            max_value=len(streamed),
            label=f"Tiles read (1–{len(streamed)})",
        )
    )
    keys = view.key_tokens
    direct = view.trace.output(*selection.place, view.kind)
    tiles = streamed[:n_read]
    row = view.query
    ends = [[label_at(keys.labels[at], at) for at in (tile.start, tile.stop - 1)] for tile in tiles]
    st.dataframe(
        {"keys": [" … ".join(end) for end in ends]}
        | dict(zip(_NUMBERS, columns(tiles, row, direct), strict=True)),
        hide_index=True,
        height=whole_rows(len(tiles)),
        column_config={title: st.column_config.NumberColumn(format="%.3g") for title in _NUMBERS},
        key="streamed_table",
    )
    queries = Axis.of(view.query_tokens)
    apart = power(off(tiles[-1], direct))
    st.caption(
        f"The row of {literal(name(queries, row))}; {n_read} of {len(streamed)} tiles. "
        + (
            f"All keys are read: over all {len(direct)} rows the output is the direct one's, to {apart}."
            if n_read == len(streamed)
            else f"Over all {len(direct)} rows the output differs from the direct one by up to {apart}; after the last tile "
            "they are equal up to rounding."
        )
    )


def columns(
    tiles: Sequence[Stream], row: int, direct: Float[np.ndarray, "query d_value"]
) -> list[list[float]]:
    """The numbers of a row after each tile, in the order of `_NUMBERS`.

    Args:
        direct: the output of the whole matrix.
    """
    maxima = np.array([float(tile.maximum[row]) for tile in tiles])
    level = np.where(np.isfinite(maxima), maxima, 0)  # while no key may be seen
    return [
        [float(tile.scores[row].max()) for tile in tiles],
        maxima.tolist(),
        np.exp(np.concatenate([[-np.inf], maxima[:-1]]) - level).tolist(),
        [float(tile.total[row]) for tile in tiles],
        [float(np.abs(tile.output[row].numpy() - direct[row]).max()) for tile in tiles],
    ]


def off(tile: Stream, direct: Float[np.ndarray, "query d_value"]) -> float:
    """The largest difference between the output so far and the direct one, over all rows."""
    return float(np.abs(tile.output.numpy() - direct).max())
