"""The tokens as a graph whose edges are the weights under the mask."""

import numpy as np
import streamlit as st

from ui.page.chart import chart

# isort: split
from attnviz.effects.masking import under_mask
from attnviz.figures.graph import EDGES_OF_QUERY, draw_graph, strongest_edges
from attnviz.figures.numbers import share_text
from ui.page.view import View
from ui.sections.kinds_of_attention.mask import mask_title
from ui.words.findings import name
from ui.words.glossary import linked
from ui.words.literal import literal


def graph(view: View, allowed: np.ndarray, key: int) -> None:
    """Nodes and arrows, and what is drawn of them."""
    st.subheader("The same weights as a graph")
    pattern = under_mask(view.trace, *view.selection.place, allowed, view.kind)
    edges = strongest_edges(pattern, view.query)
    query = literal(name(pattern.queries, view.query))
    mine = edges.query == view.query
    picture, words = st.columns([3, 2], gap="medium", vertical_alignment="center")
    with picture:
        chart(
            draw_graph(pattern, view.query, key=key, theme=view.theme),
            key="mask_graph",
            alt=f"{mask_title(view)}: the tokens as nodes, {len(edges.weight)} arrows from key to query; the text beside it "
            "names the strongest to the selected query",
        )
    with words:
        if not mine.any():
            st.markdown(f"**No arrow reaches {query}: the mask leaves it no key.**")
        else:
            at = int(np.flatnonzero(mine)[0])
            strongest, weight = literal(name(pattern.keys, int(edges.key[at]))), float(edges.weight[at])
            st.markdown(
                f"**{query} receives most from {strongest}: {share_text(weight)} of what it takes in.**"
            )
        st.markdown(
            "Tokens are nodes, clockwise from the top, and weights are edges. An arrow points from key to query, the way the key's "
            f"{linked('Value')} goes; the thicker the arrow, the larger the weight. Blue arrows end at the selected "
            f"{linked('Query')}, a loop is a token's weight on itself, and what the mask forbids has no arrow "
            "(Veličković et al. 2018, arXiv:1710.10903)."
        )
    n_nodes = len(edges.queries) if view.kind != "cross" else len(edges.queries) + len(edges.keys)
    n_tokens = len(pattern.queries) + (len(pattern.keys) if view.kind == "cross" else 0)
    nodes = f"{n_nodes} of {n_tokens} tokens and " if n_nodes < n_tokens else ""
    st.caption(
        f"Drawn: {nodes}{len(edges.weight):,} of {edges.n_edges:,} edges, the strongest and up to {EDGES_OF_QUERY} of the "
        f"selected query, with {share_text(edges.share)} of all weight."
    )
