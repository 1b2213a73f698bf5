"""The bundled language model, lent to a page that needs predictions when the selected model makes none, or one click away."""

from contextlib import suppress

import streamlit as st

from attnviz.errors import AttnvizError
from attnviz.model.catalogue import SMOLLM2, locate, offer
from attnviz.model.parts import fills_masks
from ui.choice import state
from ui.choice.selection import Selection
from ui.part import Part
from ui.runtime import cache
from ui.session import Link, of_session
from ui.words.literal import literal


def lend_language_model(page: Part) -> None:
    """Shows the bundled language model on this page alone, if it is on this disk and the selected model cannot do what the page needs."""
    selected = state.chosen().model
    with suppress(AttnvizError):  # what is wrong with a model is said where it is read, beside its field
        if locate(offer(selected)) is None or locate(offer(SMOLLM2)) is None:
            return
        head = cache.model(selected).language_head
        if head is None or (page.predicts == "writes" and fills_masks(head)):
            state.lend(SMOLLM2, page.name)


def lent_note(page: Part) -> list[str]:
    """Says that the page shows the bundled language model in place of the visitor's own; empty where it does not."""
    lent = state.lent(page.name)
    if lent is None:
        return []
    lacks = "writes no text" if page.predicts == "writes" else "predicts no tokens"
    return [
        f"{lent.own.model} {lacks}, so this page shows {lent.model}. The other rooms keep {lent.own.model}."
    ]


def offer_language_model(selection: Selection, lacks: str, *, key: str) -> None:
    """A line that says what the model lacks, and a button that shows the bundled language model on this page, with the same text.

    Args:
        lacks: continues the sentence after the model's name with what is missing: "has no language head, so ...".
        key: of the button; a separate one where a page has several.
    """
    with st.container(horizontal=True, vertical_alignment="center", width="content", key=f"{key}_lacks"):
        st.markdown(f"{literal(selection.model)} {lacks}", width="content")
        st.button(
            f"Use {SMOLLM2}",
            icon=":material/neurology:",
            on_click=_lend,
            key=key,
            help="Shows the same sentence in the bundled language model here; the other rooms keep their model.",
        )


def _lend() -> None:
    state.lend(SMOLLM2, of_session(Link).page)
    state.hold()
