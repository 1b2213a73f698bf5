"""The bundled language model, one click away on a page that needs predictions when the selected model makes none."""

import streamlit as st

from attnviz.model.catalogue import SMOLLM2
from ui.choice import state
from ui.choice.selection import Selection
from ui.words.literal import literal


def offer_language_model(selection: Selection, lacks: str, *, key: str) -> None:
    """A line that says what the model lacks, and a button that selects the bundled language model and keeps the text.

    Args:
        lacks: continues the sentence after the model's name with what is missing: "has no language head, so ...".
        key: of the button; a separate one where a page has several.
    """
    with st.container(horizontal=True, vertical_alignment="center", width="content", key=f"{key}_lacks"):
        st.markdown(f"{literal(selection.model)} {lacks}", width="content")
        st.button(
            f"Use {SMOLLM2}",
            icon=":material/neurology:",
            on_click=state.change,
            kwargs={"model": SMOLLM2},
            key=key,
            help="Shows the same sentence in the bundled language model, which predicts the next token.",
        )
