"""Who watches a long computation: visitors, by their session.

Visitors who have gone to another page or cancelled no longer watch; those who closed the page still count for a few
seconds, since a connection may break for a moment.
"""

import time

from ui.streamlit_fixes.sessions import is_open, session_id

PATIENCE = 5.0
"""Seconds after which a visitor without an open page has left."""
LONG_PATIENCE = 90.0
"""Seconds without a sign of a visitor with an open page after which they have left. A waiting page asks twice a second,
but has to wait in line itself, and in a hidden window it asks once a minute."""


class Watchers:
    """Sessions that watch one computation."""

    def __init__(self) -> None:
        self._seen: dict[str, float] = {}  # session -> when it last asked
        self._left: set[str] = set()  # sessions that cancelled

    def subscribe(self) -> None:
        """Notes that this session watches."""
        self._seen[session_id()] = time.monotonic()

    def unsubscribe(self) -> None:
        """Unsubscribes this session."""
        self._seen.pop(session_id(), None)

    def unsubscribe_unseen(self, since: float) -> None:
        """Unsubscribes this session if it was not seen since `since`, by `time.monotonic`."""
        if self._seen.get(session_id(), since) < since:
            self.unsubscribe()

    def leave(self) -> None:
        """Notes that this session cancelled; it is asked before the work goes on."""
        self.unsubscribe()
        self._left.add(session_id())

    def come_back(self) -> None:
        """Notes that this session wants the work to go on."""
        self._left.discard(session_id())

    @property
    def lost_me(self) -> bool:
        """Whether this session cancelled and has not come back."""
        return session_id() in self._left

    def __bool__(self) -> bool:
        """Whether anybody watches."""
        now = time.monotonic()
        return any(
            now - seen < (LONG_PATIENCE if is_open(session) else PATIENCE)
            for session, seen in self._seen.items()
        )
