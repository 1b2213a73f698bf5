"""A text from a visitor's file, in the place of the sentence."""

from dataclasses import dataclass

import streamlit as st

from ui.choice import state
from ui.limits import TEXTS_MB
from ui.runtime import uploads
from ui.session import of_session
from ui.words.literal import literal


@dataclass(slots=True)
class TextFiles:
    """How many files this visitor has brought, and what was wrong with the last one."""

    n_brought: int = 0
    problem: str = ""


def _key() -> str:
    """A new key after each file, so that the next uploader is empty."""
    return f"text_file_{of_session(TextFiles).n_brought}"


def uploader() -> None:
    """The field that takes a file, and what was wrong with the last one."""
    st.file_uploader(
        "Open a text file",
        type=["txt", "md"],
        max_upload_size=TEXTS_MB,
        key=_key(),
        on_change=_open,
        help="Its text replaces the sentence; a file in UTF-8. One that is dropped on the sentence is taken, too.",
    )
    if problem := of_session(TextFiles).problem:
        st.error(literal(problem), icon=":material/error:")


def _open() -> None:
    here, file = of_session(TextFiles), st.session_state.get(_key())
    state.hold()
    if file is None:
        return
    here.n_brought += 1
    here.problem = ""
    data = file.getvalue()
    uploads.forget(file)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        here.problem = f"{file.name} was to be read as UTF-8; byte {error.start + 1:,} is none of it. Save it as UTF-8 text."
        return
    state.type_sentence(text=text.replace("\r\n", "\n"))
