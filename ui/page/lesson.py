"""A line that leads to an example in which the effect that a page teaches is visible."""

import streamlit as st

from ui.choice import state
from ui.choice.lessons import lesson_for
from ui.page.view import View
from ui.words.literal import literal

_MOST_WORDS = 4


def offer(page: str, view: View) -> None:
    """A button below the heading; none where the page has no such example, or shows it."""
    lesson = lesson_for(page, view.selection)
    if lesson is None:
        return
    is_other = view.selection.model != lesson.model
    model = f", in the bundled model {lesson.model}" if is_other else ""
    place = "" if lesson.layer is None else f"layer {lesson.layer}, head {lesson.head} on "
    st.button(
        literal(
            f"Show an example where {lesson.shows}{model}: {place}“{_beginning(lesson.text)}” ({lesson.words})"
        ),
        icon=":material/lightbulb:",
        type="tertiary",
        on_click=state.change,
        kwargs=lesson.changes,
        key="lesson_example",
        help=f"Replaces your {'model, ' * is_other}sentence, layer, head and query with this example; the browser's Back "
        "brings yours back.",
    )


def _beginning(text: str) -> str:
    """The first words of a sentence."""
    words = text.split()
    return " ".join(words[:_MOST_WORDS]) + (" …" if len(words) > _MOST_WORDS else "")
