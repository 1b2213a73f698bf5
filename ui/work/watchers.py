"""Who looks at something that takes long: visitors, by their session.

One concept: the Watchers of a thing. Whoever has left the page, or cancelled it, looks no more; whoever has closed it is
waited for a few seconds, for a network may break for a moment.
"""

import time

from streamlit import runtime
from streamlit.runtime.scriptrunner import get_script_run_ctx

PATIENCE = 5.0
"""Seconds after which a visitor without an open page has left."""
LONG_PATIENCE = 90.0
"""Seconds after which a visitor with an open page has left, if nothing was heard of them. A page that waits asks twice a second,
but has to wait in line itself, and in a window that is not shown asks once a minute."""


class Watchers:
    """Sessions that look at something."""

    def __init__(self) -> None:
        self._seen: dict[str, float] = {}  # session -> when it last looked
        self._left: set[str] = set()  # sessions that do not want it to go on

    def look(self) -> None:
        """Notes that this session looks."""
        self._seen[session()] = time.monotonic()

    def look_away(self) -> None:
        """Notes that this session no longer looks."""
        self._seen.pop(session(), None)

    def looked_away(self, since: float) -> None:
        """Notes that this session no longer looks, if it has not looked since then, by `time.monotonic`."""
        if self._seen.get(session(), since) < since:
            self.look_away()

    def leave(self) -> None:
        """Notes that this session no longer looks, and is to be asked before it goes on."""
        self.look_away()
        self._left.add(session())

    def come_back(self) -> None:
        """Notes that this session wants it to go on."""
        self._left.discard(session())

    @property
    def lost_me(self) -> bool:
        """Whether this session has left, and has not come back."""
        return session() in self._left

    def __bool__(self) -> bool:
        """Whether anybody looks."""
        now = time.monotonic()
        return any(
            now - seen < (LONG_PATIENCE if _is_open(one) else PATIENCE) for one, seen in self._seen.items()
        )


def session() -> str:
    """Whose page this thread draws; empty for the server itself."""
    context = get_script_run_ctx(suppress_warning=True)
    return context.session_id if context else ""


def _is_open(one: str) -> bool:
    return runtime.exists() and runtime.get_instance().is_active_session(one)
