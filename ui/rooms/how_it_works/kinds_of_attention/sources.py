"""Where each kind of attention takes its vectors from, and what it costs."""

import streamlit as st

from ui.shell.chart import chart

# isort: split
from attnviz.figures.sources import Sizes, draw_sources
from attnviz.records import KINDS, Kind
from ui.shell.view import View
from ui.words.score_formula import layer_departures

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


def sources(view: View) -> None:
    """Where queries, keys and values come from, for every kind; with sizes for the kinds that this model has."""
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
                draw_sources(kind, sizes(view, kind) if is_here else None, theme=view.theme),
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
