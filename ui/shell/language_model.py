"""What a page that asks for the model's answers offers where the model gives none: the bundled one that does, in one click."""

import streamlit as st

from attnviz.model.catalogue import SMOLLM2
from ui.choice import state
from ui.choice.selection import Selection
from ui.words.literal import literal


def offer_language_model(selection: Selection, lacks: str, *, key: str) -> None:
    """A line that says what the model lacks, and a button that selects the bundled language model and keeps the text.

    Args:
        lacks: what is missing and what that means here, after the model's name: "has no language head, so ...".
        key: of the button; its own where a page has several.
    """
    with st.container(horizontal=True, vertical_alignment="center", width="content"):
        st.markdown(f"{literal(selection.model)} {lacks}", width="content")
        st.button(
            f"Use {SMOLLM2}",
            icon=":material/neurology:",
            on_click=state.change,
            kwargs={"model": SMOLLM2},
            key=key,
            help="Shows the same sentence in the bundled language model, which predicts the next token.",
        )
