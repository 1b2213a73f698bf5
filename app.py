"""The first screen: a sentence, the attention of one head on it, and whether the numbers are the model's."""

import streamlit as st

from ui.export.take import take
from ui.page import errors, verdict
from ui.page.frame import frame_around
from ui.sections.attention.matrix import matrix, notes, ranking
from ui.sections.attention.query_key_map import query_key_map
from ui.sections.attention.screen import Screen, tokens
from ui.words.findings import (
    place,
)
from ui.words.glossary import terms
from ui.words.literal import literal

with frame_around("Attention") as view:
    screen = Screen.of(view)
    tokens(screen)
    found, checked = st.columns([5, 3], vertical_alignment="center")
    with found.container(key="finding"):
        st.markdown(f"**{place(screen.pattern)}: {literal(screen.said)}**")
    verdict_place = checked.empty()
    matrix_column, map_column = st.columns(2, gap="medium")
    with matrix_column:
        matrix(screen)
with matrix_column:
    notes(screen)
    ranking(screen)
with map_column:
    query_key_map(screen)
with verdict_place, errors.explained():
    verdict.show(view.selection)

terms("Token", "Special token", "Attention matrix", "Norm-based weight", "Rollout", "t-SNE", "Perplexity")
st.page_link(
    "pages/claims.py",
    label="What weights do not say",
    icon=":material/forum:",
    query_params=view.selection.to_params(),
    help="A weight says where a head takes its mixture from, not what the answer rests on: four claims, measured.",
)
pictures = {"matrix": "Attention matrix", "ranking": "Ranked keys", "map": "Map of queries and keys"}
take(view, pictures)
