"""The tokens as a graph whose edges are the weights under the mask."""

import numpy as np
import streamlit as st

from ui.shell.chart import chart

# isort: split
from attnviz.effects.masking import under_mask
from attnviz.figures.graph import EDGES_OF_QUERY, Edges, draw_graph, strongest_edges
from attnviz.figures.numbers import counted, number_text, share_text
from attnviz.heads.facts import received
from attnviz.records import AttentionPattern
from ui.rooms.how_it_works.kinds_of_attention.mask import mask_title, under_words
from ui.shell.view import View
from ui.words.findings import received_words
from ui.words.glossary import linked
from ui.words.literal import literal


def graph(view: View, allowed: np.ndarray, key: int) -> None:
    """Nodes and arrows, and how many of them are drawn."""
    st.subheader("The same weights as a graph")
    place, kind = view.selection.place, view.kind
    pattern = under_mask(view.trace, *place, allowed, kind)
    has_norms = "norms" in view.trace.measures(kind)
    norms = under_mask(view.trace, *place, allowed, kind, measure="norms") if has_norms else None
    edges = strongest_edges(pattern, view.query)
    picture, words = st.columns([3, 2], gap="medium", vertical_alignment="center")
    with picture:
        chart(
            draw_graph(pattern, view.query, key=key, theme=view.theme),
            key="mask_graph",
            alt=f"{mask_title(view)}: the tokens as nodes, {counted(len(edges.weight), 'arrow')} from key to query; the text beside it "
            "names the strongest to the selected query",
        )
    with words:
        facts = received(pattern, norms, view.query, share_text, number_text)
        sentence = received_words(pattern, view.query, facts, under_words(view))
        st.markdown(f"**{literal(sentence)}**")
        st.markdown(
            "Tokens are nodes, clockwise from the top, and weights are edges. An arrow points from key to query, the way the key's "
            f"{linked('Value')} goes; the thicker the arrow, the larger the weight, which is not how much the value adds: that "
            f"is the {linked('Norm-based weight')}. Blue arrows end at the selected "
            f"{linked('Query')}, a loop is a token's weight on itself, and what the mask forbids has no arrow "
            "(Veličković et al. 2018, arXiv:1710.10903)."
        )
    st.caption(drawn_words(edges, pattern))


def drawn_words(edges: Edges, pattern: AttentionPattern) -> str:
    """How many of the nodes and edges are drawn, and their share of the weight."""
    n_nodes, n_tokens = len(edges.queries), len(pattern.queries)
    if pattern.kind == "cross":  # its keys are separate nodes
        n_nodes, n_tokens = n_nodes + len(edges.keys), n_tokens + len(pattern.keys)
    nodes = f"{n_nodes} of {n_tokens} tokens and " if n_nodes < n_tokens else ""
    return (
        f"Drawn: {nodes}{len(edges.weight):,} of {edges.n_edges:,} edges, the strongest and up to {EDGES_OF_QUERY} of the "
        f"selected query, with {share_text(edges.share)} of all weight."
    )
