"""The first screen: a sentence, the attention of one head on it, and whether the numbers are the model's."""

import streamlit as st

from ui.export.take import take
from ui.page import verdict
from ui.page.frame import frame_around
from ui.page.navigation import link_to
from ui.stage.arcs import arcs
from ui.stage.band import band, previews
from ui.stage.matrix import matrix, notes, ranking
from ui.stage.options import options
from ui.stage.query_key_map import query_key_map
from ui.stage.rail import heads
from ui.stage.screen import Screen
from ui.stage.tour import guide
from ui.words.findings import place
from ui.words.glossary import terms
from ui.words.literal import literal

with frame_around("Attention") as view:
    screen = Screen.of(view)
    filled = view.selection.filled
    with st.container(key="stage_parts"):
        band(screen)
        with st.container(key="finding"):
            st.markdown(f"**{place(screen.pattern)}: {literal(screen.said)}**")
        stage_options = st.container(key="stage_controls", horizontal=True, vertical_alignment="center")
        parts = {"matrix": None, "map": None, "arcs": None}
        if filled == "all":
            parts["matrix"], parts["map"] = st.columns(2, gap="medium")
        else:
            parts[filled] = st.container()
        if parts["matrix"]:
            with parts["matrix"]:
                matrix(screen)
        if parts["arcs"]:
            with parts["arcs"]:
                arcs(screen)
    with view.rail_place:
        heads(screen)
    previews(screen)
    with stage_options:
        options(screen)
    with view.rail_place:
        ranking(screen)
        invitation = st.container(key="invitation")
    st.caption(literal(screen.special_note))
map_note = ""
if parts["map"]:
    with parts["map"]:
        map_note = query_key_map(screen)
notes(screen)
guide(screen, invitation)
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
    label="Why does it look there?",
    selection=view.selection.but(query=screen.query, key=screen.key, sources=True),
    help="Splits the score of the selected query and key by where both come from: embedding, earlier heads and MLPs.",
)
link_to(
    "Claims",
    label="What weights do not say",
    help="A weight says where a head takes its mixture from, not what the answer rests on: four claims, measured.",
)
link_to(
    "Effects",
    label="What if it were not there?",
    help="Switches this head off, and every other, to measure what happens to an outcome.",
)
pictures = {"matrix": "Attention matrix", "ranking": "Ranked keys", "map": "Map of queries and keys"}
take(view, pictures, notes={"map": map_note})
