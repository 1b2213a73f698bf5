"""What visitors have brought and the server holds: a bundle that is open, the texts of a file.

One concept: how much of it there is, and letting go of what belongs to visitors who have left.
"""

from collections.abc import Callable
from dataclasses import dataclass
from weakref import WeakSet

from ui.streamlit_fixes.sessions import session_id


@dataclass(slots=True, weakref_slot=True, eq=False)
class Brought:
    """A record of a session with something that it has brought; the next takes the place of the last."""

    session: str = ""
    n_bytes: int = 0

    def counts(self, n_bytes: int) -> None:
        """Says how many bytes it holds from now on, for this session."""
        self.session, self.n_bytes = session_id(), n_bytes
        _of_all.add(self)

    def forget(self) -> None:
        """Lets go of it."""
        self.n_bytes = 0


_of_all: WeakSet[Brought] = WeakSet()  # Streamlit drops those of a session that is over


def n_bytes() -> int:
    """Bytes of all sessions."""
    return sum(brought.n_bytes for brought in list(_of_all))


def n_entries() -> int:
    """How many there are."""
    return sum(brought.n_bytes > 0 for brought in list(_of_all))


def forget_unless(is_here: Callable[[str], bool]) -> None:
    """Forgets what was brought by sessions, by their id, that are no longer here."""
    for brought in list(_of_all):
        if not is_here(brought.session):
            brought.forget()
