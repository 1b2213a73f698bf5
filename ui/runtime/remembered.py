"""Results computed once are shared by all visitors, as long as there is room for their bytes.

Streamlit's own caches count entries, and any visitor's browser may empty all of them; only the process empties these.
"""

import threading
from collections.abc import Callable, Hashable
from contextlib import AbstractContextManager, nullcontext, suppress
from functools import partial, wraps
from typing import Any, ParamSpec, TypeVar

from cachetools import LRUCache

from ui.limits import CACHE_MB, MODELS_MB
from ui.runtime.memory import n_bytes
from ui.runtime.turns import POLL_SECONDS, line
from ui.streamlit_fixes.runs_in_turn import newer_message_check

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


class Store:
    """Results by their arguments; the least recently used are dropped first."""

    def __init__(self, megabytes: float, size: Callable[[Any], int] = n_bytes) -> None:
        # result and key together: the key may hold a long text or a mask of many bytes
        self._entries: LRUCache[Hashable, tuple[Any, Hashable]] = LRUCache(megabytes * 1e6, getsizeof=size)
        self._locks: dict[Hashable, threading.Lock] = {}
        self._lock = threading.Lock()  # for both

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
        """Limit in bytes."""
        return self._entries.maxsize

    def clear(self) -> None:
        """Forgets everything."""
        with self._lock:
            self._entries.clear()

    def found(self, key: Hashable) -> Any:
        """The value kept under this key; None if there is none."""
        with self._lock:
            return self._entries[key][0] if key in self._entries else None

    def keep(self, key: Hashable, value: object) -> None:
        """Keeps a value, unless it alone is larger than the store."""
        with self._lock, suppress(ValueError):  # cachetools refuses what is too large
            self._entries[key] = value, key

    def found_or_made(self, key: Hashable, make: Callable[[], Result]) -> Result:
        """The value kept under this key, or else computed now; computed once, however many ask at the same time."""
        with self._lock:
            if key in self._entries:
                return self._entries[key][0]  # type: ignore[no-any-return]
            making = self._locks.setdefault(key, threading.Lock())
        _acquire(making)
        try:
            with self._lock:
                if key in self._entries:  # computed by whoever had the lock before
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
    """Waits for a lock without holding up others; stops waiting if the visitor asks for something newer."""
    if lock.acquire(blocking=False):
        return
    yield_point = newer_message_check()
    is_mine = False
    try:
        with line.stepped_aside(yield_point):
            while not (is_mine := lock.acquire(timeout=POLL_SECONDS)):
                yield_point()
    except BaseException:  # the visitor asked for something newer, perhaps after the lock was acquired
        if is_mine:
            lock.release()
        raise


OF_MODEL = ("output_weight", "output_bias")
"""The fields of a trace's layers that it shares with its model."""
NUMBERS = Store(CACHE_MB, partial(n_bytes, without=OF_MODEL))
"""Everything computed from texts and models, except the models themselves and their W_O, which all traces share."""
MODELS = Store(MODELS_MB)
"""Loaded models."""
