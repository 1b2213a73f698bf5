"""How many bytes all visitors together have uploaded: files that arrive or have arrived, open bundles, and texts.

Streamlit takes any number of files from a visitor and keeps them in memory until two minutes after the visitor has
left.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from streamlit.typing import UploadedFile

from ui.limits import UPLOADS_MB
from ui.runtime import brought
from ui.streamlit_fixes import sessions

SMALLEST = 1_000_000
"""Bytes that a file counts for at least, so that nobody uploads a million small ones."""

_arriving: dict[object, int] = {}


@contextmanager
def arriving(n_byte: int) -> Iterator[bool]:
    """Whether there is room for a file of so many bytes; reserves the room meanwhile."""
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
    """Bytes that all visitors have uploaded."""
    stored = sum(max(SMALLEST, size) for size in sessions.file_sizes())
    return stored + sum(_arriving.values()) + brought.n_bytes()


def n_entries() -> int:
    """Number of files, bundles and sets of texts."""
    return len(sessions.file_sizes()) + len(_arriving) + brought.n_entries()


def forget(file: UploadedFile) -> None:
    """Frees the bytes of a file that this visitor no longer needs."""
    sessions.forget_file(file.file_id)


def _forget_who_has_left() -> None:
    """Frees the uploads of visitors without an open page."""
    sessions.forget_files_of_who_has_left()
    brought.forget_unless(sessions.is_open)
