"""The visitor's own texts: pasted lines, a file of lines, or a file of texts with a choice of column if it is not obvious."""

from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING

import streamlit as st

from attnviz.errors import AttnvizError, InvalidTextError
from attnviz.maps.collection import LARGEST_FILE, decoded
from ui.choice import state
from ui.limits import TEXTS_MB
from ui.runtime import uploads
from ui.runtime.jobs import elsewhere
from ui.runtime.own_texts import MOST_TEXTS, read_file
from ui.runtime.uploads import Brought
from ui.session import of_session
from ui.words.literal import literal

if TYPE_CHECKING:
    from attnviz.corpus.texts import Entry, Failure

_MB = 1_000_000
OWN = "own"
"""The visitor's own sentences among the corpora, which are not part of links."""
FILE = "file"
"""The visitor's own file among them."""
ENDINGS = ["txt", "csv", "tsv", "jsonl", "ndjson", "parquet", "conllu"]


@dataclass(slots=True)
class OwnSentences:
    """The visitor's own sentences."""

    text: str = ""
    """One sentence per line; empty until the visitor enters some."""
    problem: str = ""
    """The problem with the last input."""
    n_file: int = 0
    """Files uploaded so far, readable or not."""


@dataclass(slots=True, eq=False)
class OwnFile(Brought):
    """The file whose texts are measured, and the file that replaces it once its column is selected."""

    name: str = ""
    """Empty until a file is uploaded."""
    digest: str = ""
    column: str | None = None
    """The selected column of a table; None if no choice was needed."""
    entries: "tuple[Entry | Failure, ...]" = ()
    n_read: int = 0
    """Bytes of the texts."""
    waiting: tuple[str, bytes] | None = None
    """Name and bytes of a table whose column must be selected."""
    columns: tuple[str, ...] = ()
    """The columns to select from."""
    problem: str = ""
    """The problem with the last upload."""
    n_file: int = 0
    """Files uploaded so far, readable or not."""

    def forget(self) -> None:
        """Drops the file."""
        Brought.forget(self)
        self.name, self.digest, self.entries, self.n_read = "", "", (), 0
        self.waiting, self.columns = None, ()


def corpus_name(corpus: str) -> str:
    """Name of a profile's texts."""
    return {"": "Bundled sentences", OWN: "Your own sentences", FILE: of_session(OwnFile).name}.get(
        corpus, corpus
    )


def digest(text: str) -> str:
    """SHA-256 of a text that is too long to be kept."""
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


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
                key=f"sentences_file_{of_session(OwnSentences).n_file}",
                on_change=_take_lines_file,
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


def _take_lines_file() -> None:
    # A message that arrives before the page is redrawn with the next uploader reports a changed file, since its bytes are
    # gone; the new key does not exist yet, and the problem with the file still has to be shown.
    own = of_session(OwnSentences)
    file = st.session_state.get(f"sentences_file_{own.n_file}")
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


def uploader() -> None:
    """The uploader for a file."""
    st.file_uploader(
        "Or a file of texts",
        type=ENDINGS,
        max_upload_size=TEXTS_MB,
        key=f"texts_file_{of_session(OwnFile).n_file}",
        on_change=_take_file,
        help="A text on each line, row, object or sentence, as `attnviz corpus profile` reads it, which takes larger files too.",
    )
    st.caption(
        f"Text, CSV, TSV, JSON lines, Parquet or CoNLL-U in UTF-8; up to {TEXTS_MB} MB and {MOST_TEXTS:,} texts. It stays in this "
        "session, and no link holds it."
    )


def to_do() -> None:
    """The question which column of a table holds the texts, or the problem with a file; otherwise nothing."""
    own = of_session(OwnFile)
    if own.problem:
        st.error(literal(own.problem), icon=":material/error:")
    if own.waiting is not None:
        st.selectbox(
            "Which column holds the texts?",
            own.columns,
            index=None,
            placeholder="Choose a column",
            key=f"texts_column_{own.n_file}",
            on_change=_take_column,
            width=360,
            help="Measures every head on the texts of this column of your file.",
        )


def _take_file() -> None:
    # As in `_take_lines_file`: the key has changed when a message reports that the bytes are gone.
    own = of_session(OwnFile)
    file = st.session_state.get(f"texts_file_{own.n_file}")
    state.hold()
    if file is None:
        return
    own.n_file += 1
    data = file.getvalue()
    uploads.forget(file)
    if len(data) > TEXTS_MB * 1024**2:  # browsers refuse such a file, but others could send it
        own.problem = (
            f"{file.name} has more than {TEXTS_MB} MB. Use attnviz corpus profile, which reads larger files."
        )
        return
    _read(file.name, data, None)


def _take_column() -> None:
    own = of_session(OwnFile)
    state.hold()
    column = st.session_state.get(f"texts_column_{own.n_file}")
    if own.waiting is not None and column in own.columns:
        _read(*own.waiting, column)


def _read(name: str, data: bytes, column: str | None) -> None:
    """Has a file read; if that fails, the screen stays unchanged."""
    own = of_session(OwnFile)
    own.problem, own.waiting, own.columns = "", None, ()
    try:
        entries = elsewhere(read_file, name, data, column)
    except AttnvizError as error:
        own.problem = f"{name}: {error}"
        return
    if entries.columns:
        own.waiting, own.columns = (name, data), entries.columns
        own.counts(own.n_read + len(data))
        return
    own.name, own.column, own.entries = name, column, entries.entries
    own.digest = sha256(b"\0".join([name.encode(), (column or "").encode(), data])).hexdigest()
    own.n_read = entries.n_bytes
    own.counts(own.n_read)
    state.change(profile_corpus=FILE)
