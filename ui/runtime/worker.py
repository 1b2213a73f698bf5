"""The worker process of `ui.runtime.workers`: reads calls from a pipe, runs them, writes their results.

It ends when its pipe ends, and so with the server, however the server ends. It does not import streamlit, and of
attnviz only what a call needs.
"""

import gc
import os
import pickle
import threading
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection
from queue import Empty, SimpleQueue
from typing import Any

from attnviz.errors import enough_memory
from attnviz.model.storage import dumps
from ui.runtime import log, memory
from ui.runtime.stopping import Stopped, end_if_stopped, listen_to

IDLE = 5.0
"""Seconds without a call after which memory is given back."""


def serve(next_call: Callable[[], bytes], answer: Callable[[str, Any], None], stop: threading.Event) -> None:
    """Runs one call after the other; answers with its progress, then its `result`, its `error`, or that it was `stopped`.

    Args:
        next_call: waits for a call, pickled: a function, its arguments and its named arguments.
        answer: takes the kind of answer and its value; an error that it raises during a progress report is the call's error.
        stop: set when the call is no longer waited for; the call then ends as `ui.runtime.stopping` describes.
    """

    def tell(share: float, part: Any = None) -> None:
        end_if_stopped()
        answer("share", (float(share), part))

    listen_to(stop)
    while True:
        try:
            function, positional, named = pickle.loads(next_call())
            if "progress" in named:  # `ui.runtime.jobs.TELLS_PROGRESS`
                named = named | {"progress": tell}
            with enough_memory():
                result = function(*positional, **named)
            answer("result", result)
            del function, positional, named, result  # they may map a file that the server deletes
        except Stopped:
            answer("stopped", None)
        except Exception as error:  # noqa: BLE001 - sent to the page that asked
            error.add_note(log.where(error))
            try:
                answer("error", (type(error), error.args, vars(error)))
            except Exception:  # noqa: BLE001 - the error cannot be pickled, for whatever reason
                answer("error", (RuntimeError, (f"{type(error).__name__}: {error}",), {}))


def _read(line: Connection, calls: "SimpleQueue[bytes]", stop: threading.Event) -> None:
    """Reads calls; None means "stop the last one"."""
    while True:
        try:
            message = pickle.loads(line.recv_bytes())
        except (EOFError, OSError):
            os._exit(0)  # even in the middle of a call
        if message is None:
            stop.set()
        else:
            stop.clear()
            calls.put(message)


def serve_line(line: Connection) -> None:
    """Serves the process at the other end of a pipe; does not return."""
    gc.freeze()  # otherwise a collection would touch, and so copy, the pages that it shares with what it is a copy of
    log.begin()
    calls: SimpleQueue[bytes] = SimpleQueue()
    stop = threading.Event()
    threading.Thread(target=_read, args=(line, calls, stop), daemon=True).start()

    def answer(what: str, value: Any) -> None:
        line.send_bytes(dumps((what, value)))  # if it cannot be pickled, nothing is written

    def next_call() -> bytes:
        with suppress(Empty):
            return calls.get(timeout=IDLE)
        memory.give_back()
        return calls.get()

    serve(next_call, answer, stop)
