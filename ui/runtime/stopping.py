"""Where a call of a worker process ends early: with the next share that it tells, or the next module of a network that it runs.

One concept: the end of a call that nobody waits for. Its process stays, with the models that it has loaded; so nothing is
ended where it could be left half done, such as a model that is being loaded.
"""

import threading
from contextvars import ContextVar
from typing import Any

_stop: ContextVar[threading.Event | None] = ContextVar("attnviz_stop", default=None)


class Stopped(BaseException):
    """No visitor waits for this call any more; not an Exception, so that no library takes it for one of its own."""


def listen_to(stop: threading.Event) -> None:
    """From now on the calls of this thread end once this is set."""
    _stop.set(stop)


def end_if_stopped(*_: Any) -> None:
    """Ends the call of this thread where nobody waits for it; a hook before a module's forward, too.

    Raises:
        Stopped: nobody waits for it.
    """
    stop = _stop.get()
    if stop is not None and stop.is_set():
        raise Stopped
