"""The softmax of one row read tile by tile, on the page of the kinds of attention."""

from dataclasses import replace

import numpy as np
import streamlit as st

from attnviz.figures.theme import isolated
from attnviz.records import Axis
from ui import cache, state
from ui.frame import View
from ui.text import literal
from ui.words import name, power

_NUMBERS = ("largest score in the tile", "maximum so far", "sum so far", "far from the direct output")


def streaming(view: View) -> None:
    """The softmax of one row, tile by tile."""
    st.subheader("Tile by tile")
    selection = view.selection
    streamed = cache.streamed(selection.source, selection.layer, selection.head, view.kind, selection.tile)
    n_read = min(selection.tiles, len(streamed))
    st.markdown(
        "FlashAttention (Dao et al. 2022, arXiv:2205.14135) never holds the matrix: it reads some keys at a time and "
        "keeps a running maximum and a running sum for each row. When a tile brings a larger score, what was summed "
        "before is scaled down, and nothing is read twice."
    )
    left, right = st.columns(2)
    left.number_input(
        "Keys in a tile",
        min_value=1,
        max_value=512,
        help="How many keys are read at a time.",
        **state.field("tile"),
    )
    right.number_input(
        f"Tiles read (1–{len(streamed)})",
        min_value=1,
        max_value=len(streamed),
        help="Steps through the tiles; after the last, the result is the direct one.",
        **state.field("tiles", replace(selection, tiles=n_read)),
    )
    keys = view.trace.key_tokens(view.kind)
    direct = view.trace.output(selection.layer, selection.head, view.kind)
    tiles = streamed[:n_read]
    row = view.query
    st.dataframe(
        {
            "keys": [
                f"{isolated(keys.labels[one.start])}·{one.start} … {isolated(keys.labels[one.stop - 1])}·{one.stop - 1}"
                for one in tiles
            ],
            "largest score in the tile": [float(one.scores[row].max()) for one in tiles],
            "maximum so far": [float(one.maximum[row]) for one in tiles],
            "sum so far": [float(one.total[row]) for one in tiles],
            "far from the direct output": [
                float(np.abs(one.output[row].numpy() - direct[row]).max()) for one in tiles
            ],
        },
        hide_index=True,
        column_config={title: st.column_config.NumberColumn(format="%.4f") for title in _NUMBERS},
        key="streamed_table",
    )
    queries = Axis.of(view.trace.query_tokens(view.kind))
    apart = power(float(np.abs(tiles[-1].output.numpy() - direct).max()))
    st.caption(
        f"The row of {literal(name(queries, row))}; {n_read} of {len(streamed)} tiles. "
        + (
            f"All keys are read: over all {len(direct)} rows the output is the direct one's, to {apart}."
            if n_read == len(streamed)
            else f"Over all {len(direct)} rows the output is up to {apart} from the direct one's; after the last tile "
            "it will be the same."
        )
    )
