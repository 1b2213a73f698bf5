"""What was computed once is there for every visitor, as long as its bytes have room.

One concept: a Store, a cache whose limit is in bytes, and the functions that keep their results in it. Streamlit's own caches
count entries, and any visitor's browser may ask for all of them to be emptied; these are emptied by nobody but the process.
"""

import threading
from collections.abc import Callable, Hashable
from contextlib import AbstractContextManager, nullcontext, suppress
from functools import partial, wraps
from typing import Any, ParamSpec, TypeVar

from cachetools import LRUCache

from ui.limits import CACHE_MB, MODELS_MB
from ui.runtime.memory import n_bytes
from ui.runtime.turns import LOOK_SECONDS, line
from ui.streamlit_fixes.runs_in_turn import newer_message_check

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


class Store:
    """Results by what they were computed from; the least recently used go first."""

    def __init__(self, megabytes: float, size: Callable[[Any], int] = n_bytes) -> None:
        # with each result what it was computed from, which may be a text or a mask of many bytes
        self._entries: LRUCache[Hashable, tuple[Any, Hashable]] = LRUCache(megabytes * 1e6, getsizeof=size)
        self._locks: dict[Hashable, threading.Lock] = {}
        self._lock = threading.Lock()  # of both

    @property
    def n_bytes(self) -> float:
        """Bytes that are kept."""
        with self._lock:
            return self._entries.currsize

    @property
    def n_entries(self) -> int:
        """Results that are kept."""
        with self._lock:
            return len(self._entries)

    @property
    def most_bytes(self) -> float:
        """Bytes that are kept at the most."""
        return self._entries.maxsize

    def clear(self) -> None:
        """Forgets everything."""
        with self._lock:
            self._entries.clear()

    def found(self, key: Hashable) -> Any:
        """What is kept under this key; None for nothing."""
        with self._lock:
            return self._entries[key][0] if key in self._entries else None

    def keep(self, key: Hashable, value: object) -> None:
        """Keeps a value, unless it alone is larger than the store."""
        with self._lock, suppress(ValueError):  # cachetools refuses what is too large
            self._entries[key] = value, key

    def found_or_made(self, key: Hashable, make: Callable[[], Result]) -> Result:
        """What is kept under this key, or what is made now; made once, however many ask at the same time."""
        with self._lock:
            if key in self._entries:
                return self._entries[key][0]  # type: ignore[no-any-return]
            making = self._locks.setdefault(key, threading.Lock())
        _acquire(making)
        try:
            with self._lock:
                if key in self._entries:  # by whoever was before
                    return self._entries[key][0]  # type: ignore[no-any-return]
            made = make()
            self.keep(key, made)
            return made
        finally:
            making.release()
            with self._lock:
                if not making.locked():
                    self._locks.pop(key, None)

    def remembers(
        self, waiting: Callable[[], AbstractContextManager[Any]] = nullcontext
    ) -> Callable[[Callable[Arguments, Result]], Callable[Arguments, Result]]:
        """Decorates a function of plain values, whose results are kept.

        Args:
            waiting: what is shown while a result is being made.
        """

        def decorate(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
            @wraps(function)
            def kept(*args: Arguments.args, **named: Arguments.kwargs) -> Result:
                def make() -> Result:
                    with waiting():
                        return function(*args, **named)

                key = function.__module__, function.__qualname__, args, tuple(sorted(named.items()))
                return self.found_or_made(key, make)

            return kept

        return decorate


def _acquire(lock: threading.Lock) -> None:
    """Waits for a lock without holding up others; a visitor who asks for something newer waits no longer."""
    if lock.acquire(blocking=False):
        return
    yield_point = newer_message_check()
    is_mine = False
    try:
        with line.stepped_aside(yield_point):
            while not (is_mine := lock.acquire(timeout=LOOK_SECONDS)):
                yield_point()
    except BaseException:  # the visitor asked for something newer, perhaps when the lock had been got
        if is_mine:
            lock.release()
        raise


NUMBERS = Store(CACHE_MB, partial(n_bytes, without=("output_weight", "output_bias")))
"""Everything that is computed from texts and models, the models themselves aside, and their maps W_O, which every trace shares."""
MODELS = Store(MODELS_MB)
"""Loaded models."""
