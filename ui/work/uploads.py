"""How many bytes all visitors together have brought: files that arrive or have arrived, bundles that are open, and texts.

One concept: the room for them. Streamlit takes any number of files from a visitor and keeps them in memory until two
minutes after the visitor has left.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import cast

from streamlit import runtime
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager
from streamlit.runtime.scriptrunner import get_script_run_ctx
from streamlit.runtime.uploaded_file_manager import UploadedFile

from ui.limits import UPLOADS_MB
from ui.work import brought

SMALLEST = 1_000_000
"""Bytes that a file counts for at least, so that nobody brings a million small ones."""

_arriving: dict[object, int] = {}


@contextmanager
def arriving(n_byte: int) -> Iterator[bool]:
    """Whether there is room for a file of so many bytes, which is kept for it meanwhile."""
    upload, size = object(), max(SMALLEST, n_byte)
    if n_bytes() + size > UPLOADS_MB * 1e6:
        _forget_who_has_left()
    if n_bytes() + size > UPLOADS_MB * 1e6:
        yield False
        return
    _arriving[upload] = size
    try:
        yield True
    finally:
        del _arriving[upload]


def n_bytes() -> int:
    """Bytes that all visitors have brought."""
    files = _stored().file_storage if runtime.exists() else {}
    stored = sum(
        max(SMALLEST, len(file.data)) for of_one in list(files.values()) for file in list(of_one.values())
    )
    return stored + sum(_arriving.values()) + brought.n_bytes()


def n_entries() -> int:
    """Files, bundles and sets of texts that there are."""
    files = _stored().file_storage if runtime.exists() else {}
    return sum(map(len, list(files.values()))) + len(_arriving) + brought.n_entries()


def forget(file: UploadedFile) -> None:
    """Frees the bytes of a file of this visitor, who has no more need of them."""
    context = get_script_run_ctx(suppress_warning=True)
    if runtime.exists() and context is not None:
        _stored().remove_file(context.session_id, file.file_id)


def _forget_who_has_left() -> None:
    """Frees what belongs to visitors without an open page."""
    server = runtime.get_instance()
    for session in list(_stored().file_storage):
        if not server.is_active_session(session):
            _stored().remove_session_files(session)
    brought.forget_unless(server.is_active_session)


def _stored() -> MemoryUploadedFileManager:
    return cast(
        MemoryUploadedFileManager, runtime.get_instance().uploaded_file_mgr
    )  # Streamlit 1.67 has no other
