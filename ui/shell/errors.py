"""attnviz's errors on the screen: one sentence, and a button for what can be done about it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import streamlit as st

from attnviz.errors import AttnvizError, TextTooLongError, enough_memory
from ui.choice import state
from ui.runtime import events
from ui.words.literal import literal

UNFORESEEN = "Something went wrong. The server log has the details. Try again, or change the settings."
"""For an error that is not attnviz's: its message would not help a reader, and may quote another visitor's text."""


def show(error: AttnvizError, *, key: str = "cut") -> None:
    """The error's sentence, with a button where one would help.

    Args:
        key: of the button; a separate one where two texts may be refused at once.
    """
    measured = {}
    if isinstance(error, TextTooLongError):
        measured = {"found": error.length, "limit": error.limit, "unit": error.unit}
    events.refused(type(error).__name__, **measured)
    st.error(literal(str(error)), icon=":material/error:")
    if isinstance(error, TextTooLongError) and error.unit in ("tokens", "characters"):
        st.button(
            f"Cut the text after {error.limit:,} tokens" if error.unit == "tokens" else "Cut the text",
            icon=":material/content_cut:",
            on_click=state.change,
            kwargs={"cut": True},
            key=key,
            help="Leaves out what the model cannot read, and marks where.",
        )
    if isinstance(error, TextTooLongError) and error.unit == "template":
        st.button(
            "Read the text alone",
            on_click=state.change,
            kwargs={"template": "plain"},
            key=key,
            help="Leaves out what the chat template puts around the text.",
        )


def failed(error: Exception, try_again: Callable[[], None], *, key: str = "try_again") -> None:
    """Why something failed, with a button that tries again.

    Args:
        key: of the button; a separate one where two things may fail on one page.
    """
    if isinstance(error, AttnvizError):
        show(error)
    else:
        _show_unforeseen()

    def act() -> None:
        state.hold()
        try_again()

    st.button(
        "Try again",
        icon=":material/refresh:",
        key=key,
        on_click=act,
        help="Tries again with the same settings.",
    )


@contextmanager
def explained(*, key: str = "cut") -> Iterator[None]:
    """A part of a page: an error in it is shown in its place, and the rest of the page is still drawn."""
    try:
        yield
    except AttnvizError as error:
        show(error, key=key)


def uncaught(error: Exception) -> bool:
    """Ends a page, or a block that is redrawn by itself, with a sentence in place of Streamlit's message.

    Returns:
        True, so that Streamlit shows no message of its own; it has already logged the error.
    """
    if isinstance(next(iter(error.args), None), Exception):
        return True  # Streamlit's own, around the error of a block within this one, where it is already shown
    try:
        with enough_memory():
            raise error
    except AttnvizError as refusal:
        show(refusal, key="cut_uncaught")
    except Exception:  # noqa: BLE001  (whatever it is)
        _show_unforeseen()
    return True


def _show_unforeseen() -> None:
    st.error(UNFORESEEN, icon=":material/error:")
