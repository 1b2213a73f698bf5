"""Page runs take turns: a few at once, the others wait in line, first come, first served.

Runs share one interpreter lock, so more of them at once only slow each other down. A run that waits for another process
steps aside and comes back ahead of the line. `ui.streamlit_fixes.runs_in_turn` makes every run of a page or a block
wait for its turn.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ui.limits import RUNS

POLL_SECONDS = 0.05
"""Polling interval while waiting for a turn: has the visitor asked for something newer?"""


class Line:
    """The threads that have a turn, and those that wait for one; a thread is in it at most once."""

    def __init__(self, at_once: int) -> None:
        self._at_once = at_once
        self._changed = threading.Condition()
        self._waiting: deque[int] = deque()
        self._under_way: set[int] = set()

    @property
    def n_waiting(self) -> int:
        """Runs in line."""
        with self._changed:
            return len(self._waiting)

    @property
    def n_under_way(self) -> int:
        """Runs that have a turn."""
        with self._changed:
            return len(self._under_way)

    def enter(self, yield_point: Callable[[int, float], None], *, first: bool = False) -> None:
        """Waits for a turn.

        Args:
            yield_point: called during the wait, with how many are ahead and the seconds waited so far; an error that it
                raises ends the wait.
            first: whether to go ahead of those already waiting.
        """
        me, since = threading.get_ident(), time.monotonic()
        with self._changed:
            (self._waiting.appendleft if first else self._waiting.append)(me)
        try:
            while True:
                with self._changed:
                    if self._waiting[0] == me and len(self._under_way) < self._at_once:
                        self._under_way.add(me)
                        return
                    self._changed.wait(POLL_SECONDS)
                    ahead = self._waiting.index(me)
                yield_point(ahead, time.monotonic() - since)
        finally:
            with self._changed:
                self._waiting.remove(me)
                self._changed.notify_all()

    def leave(self) -> None:
        """Gives the turn back, if this thread has one."""
        with self._changed:
            self._under_way.discard(threading.get_ident())
            self._changed.notify_all()

    @contextmanager
    def stepped_aside(self, yield_point: Callable[[], None]) -> Iterator[None]:
        """Gives the turn to others while this thread waits for another process.

        Args:
            yield_point: called while it waits to come back; an error that it raises ends the wait.
        """
        with self._changed:
            had_turn = threading.get_ident() in self._under_way
        self.leave()
        yield
        if had_turn:
            self.enter(lambda ahead, seconds: yield_point(), first=True)


line = Line(RUNS)
"""The line of this process; two at once were fastest with 50 visitors on two cores, see `benchmarks.load`."""
