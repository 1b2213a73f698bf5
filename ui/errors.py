"""Errors of attnviz on the screen: one sentence, and what can be done about it with a click."""

from collections.abc import Iterator
from contextlib import contextmanager

import streamlit as st

from attnviz.errors import AttnvizError, TextTooLongError
from ui import state
from ui.text import literal


def show(error: AttnvizError) -> None:
    """The error's sentence, with a button where one would help. What was on screen stays below."""
    st.error(literal(str(error)), icon=":material/error:")
    if isinstance(error, TextTooLongError) and error.unit == "tokens":
        st.button(
            f"Cut the text after {error.limit:,} tokens",
            icon=":material/content_cut:",
            on_click=state.change,
            kwargs={"cut": True},
            key="cut",
            help="Leaves out what the model cannot read, and marks where.",
        )


@contextmanager
def explained() -> Iterator[None]:
    """A part of a page: an error in it is shown in its place, and the rest of the page goes on."""
    try:
        yield
    except AttnvizError as error:
        show(error)
