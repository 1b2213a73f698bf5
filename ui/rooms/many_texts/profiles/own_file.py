"""The visitor's own file of texts: uploaded, read by a worker process, with a choice of column if it is not obvious."""

from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING

import streamlit as st

from attnviz.errors import AttnvizError
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

FILE = "file"
"""The visitor's own file among the corpora, which is not part of links."""
ENDINGS = ["txt", "csv", "tsv", "jsonl", "ndjson", "parquet", "conllu"]


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


def _uploader_key() -> str:
    """A new key after each file, so that the next uploader is empty."""
    return f"texts_file_{of_session(OwnFile).n_file}"


def uploader() -> None:
    """The uploader for a file."""
    st.file_uploader(
        "Or a file of texts",
        type=ENDINGS,
        max_upload_size=TEXTS_MB,
        key=_uploader_key(),
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
    # As in `ui.rooms.many_texts.joint_map.lines`: the key has changed when a message reports that the bytes are gone.
    own, file = of_session(OwnFile), st.session_state.get(_uploader_key())
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
