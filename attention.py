"""The first screen: a sentence, the attention of one head on it, and whether the numbers are the model's."""

import streamlit as st

from ui.export.take import take
from ui.page import verdict
from ui.page.frame import frame_around
from ui.page.navigation import link_to
from ui.sections.attention.matrix import matrix, notes, ranking
from ui.sections.attention.query_key_map import query_key_map
from ui.sections.attention.screen import Screen, tokens
from ui.sections.attention.tour import guide
from ui.sections.pair import pick_key
from ui.words.findings import place
from ui.words.glossary import terms
from ui.words.literal import literal

with frame_around("Attention") as view:
    screen = Screen.of(view)
    guide(screen)
    tokens(screen)
    with st.container(key="finding"):
        st.markdown(f"**{place(screen.pattern)}: {literal(screen.said)}**")
    with st.container(key="about_finding", horizontal=True, vertical_alignment="center"):
        st.caption(literal(screen.special_note), width="stretch")
        pick_key(view, screen.key)
    matrix_column, map_column = st.columns(2, gap="medium")
    with matrix_column:
        matrix(screen)
with matrix_column:
    notes(screen)
    ranking(screen)
with map_column:
    map_note = query_key_map(screen)
verdict.show(view)

terms(
    "Attention",
    "Model",
    "Layer",
    "Head",
    "Token",
    "Special token",
    "Attention matrix",
    "Norm-based weight",
    "Rollout",
    "t-SNE",
    "Perplexity",
)
link_to(
    "Query-key map",
    label="Where does this score come from?",
    selection=view.selection.but(query=screen.query, key=screen.key, sources=True),
    help="Splits the score of the selected query and key by where both come from: embedding, earlier heads and MLPs.",
)
link_to(
    "Claims",
    label="What weights do not say",
    help="A weight says what a head reads, not what the answer depends on: four claims, measured.",
)
link_to(
    "Effects",
    label="What if this head were off?",
    help="Switches this head off, and every other, to measure what happens to an outcome.",
)
pictures = {"matrix": "Attention matrix", "ranking": "Ranked keys", "map": "Map of queries and keys"}
take(view, pictures, notes={"map": map_note})
