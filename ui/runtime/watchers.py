"""Who looks at something that takes long: visitors, by their session.

One concept: the Watchers of a thing. Whoever has left the page, or cancelled it, looks no more; whoever has closed it is
waited for a few seconds, for a network may break for a moment.
"""

import time

from ui.streamlit_fixes.sessions import is_open, session_id

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
        self._seen[session_id()] = time.monotonic()

    def look_away(self) -> None:
        """Notes that this session no longer looks."""
        self._seen.pop(session_id(), None)

    def looked_away(self, since: float) -> None:
        """Notes that this session no longer looks, if it has not looked since then, by `time.monotonic`."""
        if self._seen.get(session_id(), since) < since:
            self.look_away()

    def leave(self) -> None:
        """Notes that this session no longer looks, and is to be asked before it goes on."""
        self.look_away()
        self._left.add(session_id())

    def come_back(self) -> None:
        """Notes that this session wants it to go on."""
        self._left.discard(session_id())

    @property
    def lost_me(self) -> bool:
        """Whether this session has left, and has not come back."""
        return session_id() in self._left

    def __bool__(self) -> bool:
        """Whether anybody looks."""
        now = time.monotonic()
        return any(
            now - seen < (LONG_PATIENCE if is_open(session) else PATIENCE)
            for session, seen in self._seen.items()
        )
