"""What visitors have uploaded and the server holds: an open bundle, the texts of a file."""

from collections.abc import Callable
from dataclasses import dataclass
from weakref import WeakSet

from ui.streamlit_fixes.sessions import session_id


@dataclass(slots=True, weakref_slot=True, eq=False)
class Brought:
    """Something that a session has uploaded; its next upload replaces it."""

    session: str = ""
    n_bytes: int = 0

    def counts(self, n_bytes: int) -> None:
        """Records how many bytes this session holds here from now on."""
        self.session, self.n_bytes = session_id(), n_bytes
        _of_all.add(self)

    def forget(self) -> None:
        """Drops the upload."""
        self.n_bytes = 0


_of_all: WeakSet[Brought] = WeakSet()  # Streamlit drops a session's entries when the session ends


def n_bytes() -> int:
    """Bytes of all sessions."""
    return sum(brought.n_bytes for brought in list(_of_all))


def n_entries() -> int:
    """Number of uploads held."""
    return sum(brought.n_bytes > 0 for brought in list(_of_all))


def forget_unless(is_here: Callable[[str], bool]) -> None:
    """Drops the uploads of sessions that are no longer here, by session id."""
    for brought in list(_of_all):
        if not is_here(brought.session):
            brought.forget()
