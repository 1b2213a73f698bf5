"""The reader's lines: pasted, from a file or the bundled ones, and read by the model with progress."""

from hashlib import sha256

import streamlit as st

from attnviz.errors import InvalidTextError
from attnviz.maps.collection import LARGEST_FILE, Collection, bundled, collect, decoded
from ui.choice import state
from ui.page.view import View
from ui.words.literal import literal
from ui.work import cache, waiting

_MB = 1_000_000


def own_lines() -> None:
    """The popover that takes lines, pasted or from a file."""
    with st.popover("Your own sentences", icon=":material/upload_file:", key="own_sentences"):
        with st.form("own", border=False):
            st.text_area(
                "One sentence a line",
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
        st.file_uploader(
            "Or a text file",
            type=["txt", "text", "md", "csv", "tsv"],
            max_upload_size=LARGEST_FILE // _MB,
            key=f"lines_file_{st.session_state.setdefault('lines_files', 0)}",
            on_change=_take_file,
            help="Plain text in UTF-8, one sentence a line.",
        )
        if problem := st.session_state.get("lines_problem"):
            st.error(literal(problem), icon=":material/error:")
        if st.session_state.get("own_lines"):
            st.button(
                "Show the bundled set",
                on_click=_show,
                args=("bundled",),
                key="show_bundled",
                help="Goes back to the sentences that come with attnviz.",
            )


def _show(sentences: str) -> None:
    state.change(joint_sentences=sentences, joint_sentence=None)


def _take_pasted() -> None:
    _take(st.session_state.pasted_lines)


def _take_file() -> None:
    file = st.session_state[f"lines_file_{st.session_state.lines_files}"]
    state.hold()
    st.session_state.lines_problem = ""
    if file is None:
        return
    try:
        text = decoded(file.getvalue())
    except InvalidTextError as error:
        st.session_state.lines_problem = str(error)
        return
    st.session_state.lines_files += 1  # the next uploader is empty, and the file's bytes can go
    _take(text)


def _take(text: str) -> None:
    state.hold()
    st.session_state.lines_problem = (
        "" if text.strip() else "There is no line to read. Paste a sentence or more."
    )
    if text.strip():
        st.session_state.own_lines = text
        _show("own")


def chosen_lines(view: View) -> str:
    """The text whose lines are shown, with a note where it is not the one that the link asks for."""
    own = st.session_state.get("own_lines")
    if view.selection.joint.sentences == "own" and own:
        st.caption("These sentences stay in this session: no link leads back to them.")
        return str(own)
    if view.selection.joint.sentences == "own":
        st.caption(
            ":material/info: The link leads to pasted or uploaded sentences, which no link holds; the bundled set is shown."
        )
    return bundled()


def read(view: View, text: str) -> Collection | None:
    """Queries and keys of all lines, read with progress; None where that was stopped."""
    selection = view.selection
    key = (selection.model, digest(text), selection.layer, view.kind)
    shelf: list[Collection] = cache.collection_shelf(*key)
    if shelf:
        return shelf[0]

    def stop() -> None:
        st.session_state.reading_stopped = key

    def go_on() -> None:
        st.session_state.reading_stopped = None

    if st.session_state.get("reading_stopped") == key:
        waiting.stopped("The sentences were not read to their end.", "Read them", go_on, key="go_on")
        return None
    place = st.empty()
    with place.container():
        bar = waiting.under_way(0.0, "Reading the sentences …", stop, key="cancel_reading")
    told = 0.0

    def progress(share: float) -> None:
        nonlocal told
        if share - told >= 0.02:  # a message each, during which other people's pages get their turn
            told = share
            bar.progress(min(share, 1.0), text="Reading the sentences …")

    try:
        shelf.append(
            collect(cache.model(selection.model), text, selection.layer, kind=view.kind, progress=progress)
        )
    finally:
        place.empty()
    return shelf[0]


def digest(text: str) -> str:
    """What stands for a text where it is too long to be kept."""
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
