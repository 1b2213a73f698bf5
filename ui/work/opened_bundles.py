"""The bundle that a session has opened, which takes the place of a computed trace for that session alone."""

from collections.abc import Callable
from dataclasses import dataclass
from weakref import WeakSet

from attnviz.bundle.writing import Bundle
from attnviz.errors import BundleError
from ui.session import of_session
from ui.streamlit_fixes.sessions import session_id
from ui.work import memory


@dataclass(slots=True, weakref_slot=True, eq=False)
class OpenedBundle:
    """A bundle with the SHA-256 of its file."""

    digest: str = ""
    bundle: Bundle | None = None
    session: str = ""
    n_bytes: int = 0


_of_all: WeakSet[OpenedBundle] = WeakSet()  # Streamlit drops those of a session that is over


def keep(digest: str, bundle: Bundle) -> None:
    """Keeps an opened bundle for this session, in the place of the last: it may hold 160 MB."""
    here = of_session(OpenedBundle)
    here.digest, here.bundle, here.n_bytes = digest, bundle, memory.n_bytes(bundle)
    here.session = session_id()
    _of_all.add(here)


def opened(digest: str) -> Bundle | None:
    """The bundle of this digest, if this session has opened it; a link does not reach another session's."""
    here = of_session(OpenedBundle)
    return here.bundle if digest and here.digest == digest else None


def recorded(digest: str) -> Bundle:
    """The bundle of this digest; the frame shows only those that are open."""
    bundle = opened(digest)
    if bundle is None:
        raise BundleError("This bundle is not open here. Open it again, or leave it.")
    return bundle


def n_bytes() -> int:
    """Bytes of the bundles of all sessions."""
    return sum(one.n_bytes for one in list(_of_all))


def n_entries() -> int:
    """Bundles that are open."""
    return sum(one.bundle is not None for one in list(_of_all))


def forget_unless(is_here: Callable[[str], bool]) -> None:
    """Forgets the bundles of sessions, by their id, that are no longer here."""
    for one in list(_of_all):
        if not is_here(one.session):
            one.digest, one.bundle, one.n_bytes = "", None, 0
