"""Where a worker's call ends early: at its next progress report, or before the next module of a network that it runs.

When the last visitor who waits for a call has left, the call ends and its process stays, with its loaded models; so a call
never ends where something could be left half done, such as while a model is being loaded.
"""

import threading
from contextvars import ContextVar
from typing import Any

_stop: ContextVar[threading.Event | None] = ContextVar("attnviz_stop", default=None)


class Stopped(BaseException):
    """No visitor waits for this call any more; not an Exception, so that no library catches it."""


def listen_to(stop: threading.Event) -> None:
    """From now on the calls of this thread end once ``stop`` is set."""
    _stop.set(stop)


def end_if_stopped(*_: Any) -> None:
    """Ends this thread's call if its last visitor has left; also used as a forward pre-hook.

    Raises:
        Stopped: they have.
    """
    stop = _stop.get()
    if stop is not None and stop.is_set():
        raise Stopped
