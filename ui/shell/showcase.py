"""A line that leads to an example that clearly shows the effect a page teaches."""

import streamlit as st

from ui.choice import state
from ui.choice.showcases import showcase_for
from ui.shell.view import View
from ui.words.literal import literal

_MOST_WORDS = 4


def offer(page: str, view: View) -> None:
    """A button below the heading; none if the page has no such example, or already shows it."""
    showcase = showcase_for(page, view.selection)
    if showcase is None:
        return
    is_other = view.selection.model != showcase.model
    model = f", in the bundled model {showcase.model}" if is_other else ""
    place = "" if showcase.layer is None else f"layer {showcase.layer}, head {showcase.head} on "
    st.button(
        literal(
            f"Show an example where {showcase.shows}{model}: {place}“{_beginning(showcase.text)}” ({showcase.words})"
        ),
        icon=":material/lightbulb:",
        type="tertiary",
        on_click=state.change,
        kwargs=showcase.changes,
        key="showcase_example",
        help=f"Replaces your {'model, ' * is_other}sentence, layer, head and query with this example; the browser's Back "
        "brings yours back.",
    )


def _beginning(text: str) -> str:
    """The first words of a sentence."""
    words = text.split()
    return " ".join(words[:_MOST_WORDS]) + (" …" if len(words) > _MOST_WORDS else "")
