"""The softmax of one row, computed tile by tile; and where each kind of attention takes its vectors from."""

from collections.abc import Sequence

import numpy as np
import streamlit as st
from jaxtyping import Float

from attnviz.cost.counting import TILE
from attnviz.cost.streaming import Stream
from attnviz.figures.labels import label_at
from attnviz.figures.sources import Sizes, draw_sources
from attnviz.records import KINDS, Axis, Kind
from ui.choice import widgets
from ui.rooms.how_it_works.kinds_of_attention.around import Around
from ui.rooms.how_it_works.kinds_of_attention.mask import Masked, MaskSettings
from ui.runtime import cache
from ui.shell.chart import chart
from ui.shell.table import whole_rows
from ui.shell.view import View
from ui.words.findings import name, power
from ui.words.literal import literal
from ui.words.score_formula import layer_departures

_NUMBERS = (
    "largest score in the tile",
    "m′, maximum so far",
    "e^(m − m′)",
    "ℓ′, sum so far",
    "largest difference from the direct output",
)


def streaming(screen: Masked | Around) -> None:
    """The softmax of one row, tile by tile; of a long text this row alone is computed."""
    st.subheader("Tile by tile")
    view = screen.view
    selection, chosen = view.selection, view.selection.of(MaskSettings)
    is_alone = view.trace.is_long(view.kind)
    size = max(chosen.tile, TILE) if is_alone else chosen.tile
    query = view.query if is_alone else None
    streamed = cache.streamed(selection.source, *selection.place, view.kind, size, query)
    n_read = min(chosen.tiles, len(streamed))
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
    left.number_input(**widgets.field("tile", selection.but(tile=size), min_value=TILE if is_alone else 1))
    right.number_input(
        **widgets.field(
            "tiles",
            selection.but(tiles=n_read),
            max_value=len(streamed),
            label=f"Tiles read (1–{len(streamed)})",
        )
    )
    keys = view.key_tokens
    if is_alone:
        of_row = view.trace.head(*selection.place, view.kind).some(slice(view.query, view.query + 1))
        direct, row = of_row.weights() @ of_row.value, 0
    else:
        direct, row = view.trace.output(*selection.place, view.kind), view.query
    tiles = streamed[:n_read]
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
    where = "in this row" if is_alone else f"over all {len(direct)} rows"
    st.caption(
        f"The row of {literal(name(queries, view.query))}; {n_read} of {len(streamed)} tiles. "
        + (
            f"All keys are read: {where} the output is the direct one's, to {apart}."
            if n_read == len(streamed)
            else f"{where.capitalize()} the output differs from the direct one by up to {apart}; after the last tile "
            "they are equal up to rounding."
        )
    )


def columns(
    tiles: Sequence[Stream], row: int, direct: Float[np.ndarray, "query d_value"]
) -> list[list[float]]:
    """The numbers of a row after each tile, in the order of `_NUMBERS`; ``direct``: the output of the whole matrix."""
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


SOURCES = {
    "encoder": (
        "Self-attention",
        "Queries, keys and values are made from the same tokens, and no token is hidden from those before it.",
    ),
    "decoder": (
        "Masked self-attention",
        "Made from the same tokens too; the mask lets a token see only itself and earlier ones.",
    ),
    "cross": (
        "Cross-attention",
        "Queries are made from the decoder's tokens, keys and values from the encoder's: the text being written "
        "attends to the text that was read.",
    ),
}


def sources(screen: Masked | Around) -> None:
    """Where queries, keys and values come from, for every kind; with sizes for the kinds that this model has."""
    view = screen.view
    st.subheader("Where queries, keys and values come from")
    st.markdown(
        "One formula for all kinds; what differs is the text that each part is made from, and the mask "
        "(Vaswani et al. 2017, arXiv:1706.03762, section 3.2)."
    )
    st.latex(r"\mathrm{softmax}\!\left(\frac{Q K^\top}{\sqrt{d_k}} + \text{mask}\right) V")
    for column, kind in zip(st.columns(3, gap="medium"), KINDS, strict=True):
        title, text = SOURCES[kind]
        is_here = kind in view.trace.kinds
        with column:
            st.markdown(f"**{title}**" + ("" if is_here else " · not in this model"))
            chart(
                draw_sources(
                    kind,
                    sizes(view, kind) if is_here and not view.selection.layers else None,
                    theme=view.theme,
                ),
                key=f"sources_{kind}",
                alt=f"{title}: {text}",
            )
            st.caption(text)
    if departs := layer_departures(view.trace.attention(view.selection.layer, view.kind)):
        st.caption(f"This model departs from the formula: in layer {view.selection.layer} it {departs}.")
    if view.trace.kinds == ("encoder",):
        st.caption(
            "n and m stand for numbers of tokens, d for lengths of vectors. A decoder such as GPT-2, or an "
            "encoder-decoder such as BART, listed in ATTNVIZ_MODELS, is drawn with its own numbers."
        )


def sizes(view: View, kind: Kind) -> Sizes:
    """The sizes of one head of a kind, for this text."""
    query, key = (
        array[0] for array in (view.trace.attention(0, kind).query, view.trace.attention(0, kind).key)
    )
    return Sizes(
        query=len(query), key=len(key), d_model=view.trace.last_hidden_state.shape[1], d_head=query.shape[1]
    )
