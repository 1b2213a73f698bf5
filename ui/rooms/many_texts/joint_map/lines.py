"""The visitor's lines: pasted, from a file or the bundled ones, and read by the model with progress."""

from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256

import streamlit as st

from attnviz.errors import InvalidTextError
from attnviz.figures.numbers import counted
from attnviz.maps.collection import LARGEST_FILE, Collection, bundled, decoded, sentences
from attnviz.model.catalogue import offer
from ui.choice import state
from ui.rooms.many_texts.joint_map.choices import JointMapSettings
from ui.runtime import uploads
from ui.runtime.jobs import TELLS_PROGRESS, job
from ui.runtime.with_model import collect
from ui.session import of_session
from ui.shell.view import View
from ui.shell.waiting import is_there
from ui.words.literal import literal

_MB = 1_000_000


@dataclass(slots=True)
class OwnSentences:
    """The visitor's own sentences."""

    text: str = ""
    """One sentence per line; empty until the visitor enters some."""
    problem: str = ""
    """The problem with the last input."""
    n_file: int = 0
    """Files uploaded so far, readable or not."""


def _uploader_key() -> str:
    """A new key after each file, so that the next uploader is empty."""
    return f"sentences_file_{of_session(OwnSentences).n_file}"


def own_lines(title: str = "Your own sentences", from_file: Callable[[], None] | None = None) -> None:
    """The popover that takes lines, pasted or from a file.

    Args:
        from_file: draws another uploader in place of the one for files of lines.
    """
    with st.popover(title, icon=":material/upload_file:", key="own_sentences"):
        with st.form("own", border=False):
            st.text_area(
                "One sentence per line",
                height=160,
                max_chars=LARGEST_FILE,
                key="pasted_lines",
                help="Each line is read by itself; lines that are blank are skipped.",
            )
            st.form_submit_button(
                "Show these sentences",
                type="primary",
                on_click=_take_pasted,
                key="take_pasted",
                help="Reads these lines in place of the bundled ones.",
            )
        if from_file is None:
            st.file_uploader(
                "Or a text file",
                type=["txt", "text", "md", "csv", "tsv"],
                max_upload_size=LARGEST_FILE // _MB,
                key=_uploader_key(),
                on_change=_take_file,
                help="Plain text in UTF-8, one sentence per line.",
            )
        else:
            from_file()
        if problem := of_session(OwnSentences).problem:
            st.error(literal(problem), icon=":material/error:")
        if of_session(OwnSentences).text:
            st.button(
                "Show the bundled set",
                on_click=_show,
                args=("bundled",),
                key="show_bundled",
                help="Returns to the bundled sentences.",
            )


def _show(sentences: str) -> None:
    corpus = "own" if sentences == "own" else ""
    state.change(joint_sentences=sentences, joint_sentence=None, profile_corpus=corpus, found_corpus=corpus)


def _take_pasted() -> None:
    _take(st.session_state.pasted_lines)


def _take_file() -> None:
    # A message that arrives before the page is redrawn with the next uploader reports a changed file, since its bytes are
    # gone; the new key does not exist yet, and the problem with the file still has to be shown.
    own, file = of_session(OwnSentences), st.session_state.get(_uploader_key())
    state.hold()
    if file is None:
        return
    own.n_file += 1
    own.problem = ""
    data = file.getvalue()
    uploads.forget(file)
    try:
        text = decoded(data)
    except InvalidTextError as error:
        own.problem = str(error)
        return
    _take(text)


def _take(text: str) -> None:
    state.hold()
    own = of_session(OwnSentences)
    own.problem = "" if text.strip() else "There is no line to read. Paste a sentence or more."
    if text.strip():
        own.text = text
        _show("own")


def chosen_lines(view: View) -> str:
    """The text whose lines are shown; draws a note if the link asks for another."""
    own = of_session(OwnSentences).text
    if view.selection.of(JointMapSettings).sentences == "own" and own:
        st.caption("These sentences stay in this session; no link holds them.")
        return own
    if view.selection.of(JointMapSettings).sentences == "own":
        st.caption(
            ":material/info: The link leads to pasted or uploaded sentences, which no link holds; the bundled set is shown."
        )
    return bundled()


def read(view: View, text: str) -> Collection | None:
    """Queries and keys of all lines, read by a worker process with progress; None meanwhile, or if cancelled.

    Raises:
        EmptyTextError, SelectionError: as `attnviz.maps.collection.collect`.
    """
    selection = view.selection
    work = job(
        "collection",
        (selection.model, digest(text), selection.layer, view.kind),
        lambda: [
            (
                collect,
                (offer(selection.model).name, text, selection.layer),
                {"kind": view.kind, **TELLS_PROGRESS},
            )
        ],
    )
    if not is_there(
        work,
        None,
        f"Reading {counted(len(sentences(text)), 'sentence')}",
        stopped="Reading the sentences was stopped.",
        resume="Read them",
        key="reading_act",
    ):
        return None
    collection: Collection = work.results[0]
    return collection


def digest(text: str) -> str:
    """SHA-256 of a text that is too long to be kept."""
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
