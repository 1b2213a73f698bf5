"""What visitors have uploaded and the server holds: files that arrive or have arrived, open bundles, and texts.

Streamlit takes any number of files from a visitor and keeps them in memory until two minutes after the visitor has
left.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from weakref import WeakSet

from streamlit.typing import UploadedFile

from attnviz.bundle.bundle import Bundle
from attnviz.errors import BundleError
from ui.limits import UPLOADS_MB
from ui.runtime import memory
from ui.session import of_session
from ui.streamlit_fixes import sessions

SMALLEST = 1_000_000
"""Bytes that a file counts for at least, so that a million small ones are not free."""

_arriving: dict[object, int] = {}


@dataclass(slots=True, weakref_slot=True, eq=False)
class Brought:
    """Something that a session has uploaded; its next upload replaces it."""

    session: str = ""
    n_bytes: int = 0

    def counts(self, n_bytes: int) -> None:
        """Records how many bytes this session holds here from now on."""
        self.session, self.n_bytes = sessions.session_id(), n_bytes
        _of_all.add(self)

    def forget(self) -> None:
        """Drops the upload."""
        self.n_bytes = 0


_of_all: WeakSet[Brought] = WeakSet()  # Streamlit drops a session's entries when the session ends


@dataclass(slots=True, eq=False)
class OpenedBundle(Brought):
    """A bundle with the SHA-256 of its file."""

    digest: str = ""
    bundle: Bundle | None = None

    def forget(self) -> None:
        """Drops the bundle."""
        Brought.forget(self)
        self.digest, self.bundle = "", None


def keep(digest: str, bundle: Bundle) -> None:
    """Keeps an opened bundle for this session, replacing the last one: a bundle may hold 160 MB."""
    here = of_session(OpenedBundle)
    here.digest, here.bundle = digest, bundle
    here.counts(memory.n_bytes(bundle))


def opened(digest: str) -> Bundle | None:
    """The bundle of this digest, if this session has opened it; a link does not reach another session's."""
    here = of_session(OpenedBundle)
    return here.bundle if digest and here.digest == digest else None


def recorded(digest: str) -> Bundle:
    """The bundle with this digest; the frame shows only open bundles."""
    bundle = opened(digest)
    if bundle is None:
        raise BundleError("This bundle is not open here. Open it again, or leave it.")
    return bundle


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
    return stored + sum(_arriving.values()) + sum(brought.n_bytes for brought in list(_of_all))


def n_entries() -> int:
    """Number of files, bundles and sets of texts."""
    return len(sessions.file_sizes()) + len(_arriving) + sum(brought.n_bytes > 0 for brought in list(_of_all))


def forget(file: UploadedFile) -> None:
    """Frees the bytes of a file that this visitor no longer needs."""
    sessions.forget_file(file.file_id)


def _forget_who_has_left() -> None:
    """Frees the uploads of visitors without an open page."""
    sessions.forget_files_of_who_has_left()
    for brought in list(_of_all):
        if not sessions.is_open(brought.session):
            brought.forget()
