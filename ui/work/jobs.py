"""Work that takes seconds, done in processes of its own so that no screen waits for another.

One concept: a Job, a list of calls whose results are shown as they come. Everybody who looks at the same thing
shares one job; it goes on while anybody looks, and stops when the last one has left or gone. Who has left, by
cancelling it, is asked before it goes on for them.

The processes are `ui.work.worker`'s, started when first needed. They are not multiprocessing's: those run the main module
once more, which under Streamlit is a page.
"""

import atexit
import logging
import os
import pickle
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

from attnviz.errors import AttnvizError

Call = tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]
"""A function of attnviz with its arguments. What it is given as ``progress`` is replaced by a function that notes
the share that is done, 0 to 1, and that ends the call when its last visitor has left."""

WORKERS = 2
PATIENCE = 5.0
"""Seconds after which a visitor who was not heard of has left; a page that waits asks twice a second."""
MOST_JOBS = 12
_ROOT = Path(__file__).parents[2]
_THREADS = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1"
) | {"OMP_WAIT_POLICY": "PASSIVE", "GOMP_SPINCOUNT": "0", "KINETO_LOG_LEVEL": "99"}
"""For the libraries in a process: there is a process for each core already, and sums come out the same. Where a
method takes two threads all the same, one that waits sleeps instead of keeping the other from its core. torch's
profiler says nothing of when it begins and ends."""

_log = logging.getLogger(__name__)
_lock = threading.Lock()  # of all jobs and of who works on them


class WorkerLostError(AttnvizError):
    """The process that worked on a call ended before the call did."""


class Job:
    """Calls, their results, and how far they are. Several jobs take turns."""

    def __init__(self, calls: Sequence[Call]) -> None:
        self.results: list[Any] = [None] * len(calls)
        """What has come back so far; None for what has not."""
        self.error: Exception | None = None
        """What a call raised; nothing goes on until `go_on`."""
        self._calls = calls
        self._waiting = deque(range(len(calls)))
        self._under_way: dict[int, float] = {}  # call -> share of it that is done
        self._watchers: dict[str, float] = {}  # session -> when it last looked
        self._left: set[str] = set()  # sessions that do not want it to go on

    @property
    def n_done(self) -> int:
        """Calls that have come back."""
        with _lock:
            return len(self.results) - len(self._waiting) - len(self._under_way)

    @property
    def share(self) -> float:
        """Share of the work that is done, 0 to 1; of calls under way, what they have told."""
        with _lock:
            left = len(self._waiting) + len(self._under_way) - sum(self._under_way.values())
            return 1.0 - left / max(1, len(self.results))

    @property
    def finished(self) -> bool:
        """Whether every call has come back."""
        return self.n_done == len(self.results)

    @property
    def running(self) -> bool:
        """Whether there is more to come without asking for it."""
        with _lock:
            return self._is_watched() and self.error is None and bool(self._waiting or self._under_way)

    def watch(self) -> None:
        """Says that this session looks, which starts the work and keeps it going."""
        with _lock:
            self._watchers[_session()] = time.monotonic()
        _workers.work_on(self)

    def prefer(self, number: int) -> None:
        """Puts a call before the others that wait."""
        with _lock:
            if number in self._waiting:
                self._waiting.remove(number)
                self._waiting.appendleft(number)

    def leave(self) -> None:
        """Says that this session no longer looks, and does not want to."""
        with _lock:
            self._watchers.pop(_session(), None)
            self._left.add(_session())

    @property
    def was_left(self) -> bool:
        """Whether this session has left it, and not gone on since."""
        with _lock:
            return _session() in self._left

    @property
    def is_awaited(self) -> bool:
        """Whether there is more to come for this session."""
        return not (self.finished or self.error or self.was_left)

    def go_on(self) -> None:
        """Forgets the error and that this session has left, so that what is missing is made when a visitor watches."""
        with _lock:
            self.error = None
            self._left.discard(_session())

    def _is_watched(self) -> bool:
        now = time.monotonic()
        return any(now - seen < PATIENCE for seen in self._watchers.values())

    def _can_go_on(self) -> bool:
        return bool(self._waiting) and self.error is None and self._is_watched()


@st.cache_resource(max_entries=MOST_JOBS, show_spinner=False)
def job(name: str, key: Hashable, _calls: Callable[[], Sequence[Call]]) -> Job:
    """The job of this name and key, made from the calls if there is none yet.

    Args:
        _calls: makes the calls. A sequence whose items are made when they are asked for holds less: each is asked
            for once, by the thread that sends it, where nothing of Streamlit can be called.
    """
    return Job(_calls())


class _Process:
    """One `ui.work.worker`, spoken to by one thread at a time."""

    def __init__(self) -> None:
        paths = [str(_ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "ui.work.worker"],
            env=os.environ | _THREADS | {"PYTHONPATH": os.pathsep.join(paths)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    def send(self, message: object) -> None:
        assert self._process.stdin is not None  # it was asked for
        pickle.dump(message, self._process.stdin)
        self._process.stdin.flush()

    def receive(self) -> tuple[str, Any]:
        """What it says next.

        Raises:
            EOFError: it has ended.
        """
        assert self._process.stdout is not None
        what, value = pickle.load(self._process.stdout)
        return what, value

    @property
    def is_alive(self) -> bool:
        """Whether it can be asked."""
        return self._process.poll() is None

    def end(self) -> int:
        """Ends it if it has not ended; its exit code."""
        self._process.kill()
        with suppress(BrokenPipeError), self._process:  # closes the pipes and waits
            pass
        return self._process.returncode


class _Workers:
    """Processes, and a thread for each of them while there is something to do."""

    def __init__(self) -> None:
        self._jobs: deque[Job] = deque()
        self._processes: list[_Process] = []
        self._idle: list[_Process] = []
        self._n_thread = 0
        atexit.register(self.end)

    def work_on(self, job: Job) -> None:
        """Sees to it that a process works on a job."""
        with _lock:
            if job._can_go_on() and job not in self._jobs:
                self._jobs.append(job)
            n_call = sum(len(one._waiting) for one in self._jobs if one._can_go_on())
            for _ in range(min(n_call, WORKERS - self._n_thread)):
                self._n_thread += 1
                threading.Thread(target=self._serve, daemon=True).start()

    def end(self) -> None:
        """Ends the processes."""
        for process in list(self._processes):
            process.end()

    def _next(self) -> tuple[Job, int] | None:
        """The next call of the job that has waited longest for its turn."""
        for job in list(self._jobs):
            if job._can_go_on():
                self._jobs.remove(job)
                self._jobs.append(job)
                number = job._waiting.popleft()
                job._under_way[number] = 0.0
                return job, number
        self._jobs = deque(job for job in self._jobs if job._under_way)
        return None

    def _serve(self) -> None:
        process = None
        while True:
            with _lock:
                task = self._next()
                if task is None:
                    self._n_thread -= 1
                    if process is not None:
                        self._idle.append(process)
                    return
                while process is None and self._idle:
                    process = self._idle.pop()
                    if not process.is_alive:
                        self._processes.remove(process)
                        process.end()
                        process = None
            process = self._make(*task, process)

    def _make(self, job: Job, number: int, process: _Process | None) -> _Process | None:
        """Makes a call; the process that can be asked next, None where it has ended."""
        try:
            call = pickle.dumps(job._calls[number])
        except Exception as error:  # noqa: BLE001 - it goes to the page that asked
            what, value = "error", error
        else:
            try:
                process = process or self._new_process()
                process.send(call)
                what, value = self._listen(job, number, process)
            except Exception as error:  # noqa: BLE001 - the process has ended, or says what cannot be understood
                what, value = "error", self._lost(process, error)
                process = None
        if what == "error" and not isinstance(value, Exception):
            value = _as_raised(*value)
        if what == "error" and not isinstance(value, AttnvizError):
            _log.error("A call failed", exc_info=value)
        with _lock:
            del job._under_way[number]
            if what == "result":
                job.results[number] = value
                if not job._waiting and not job._under_way:
                    job._calls = ()  # they may hold much
            else:
                job._waiting.appendleft(number)
            if what == "error":
                job.error = value
        return process

    def _listen(self, job: Job, number: int, process: _Process) -> tuple[str, Any]:
        """Notes how far a call is, until it ends."""
        while True:
            what, value = process.receive()
            if what != "share":
                return what, value
            with _lock:
                job._under_way[number] = min(1.0, max(0.0, value))
                is_watched = job._is_watched()
            if not is_watched:
                process.send(None)

    def _new_process(self) -> _Process:
        process = _Process()
        with _lock:
            self._processes.append(process)
        return process

    def _lost(self, process: _Process | None, error: Exception) -> WorkerLostError:
        code: object = error
        if process is not None:
            with _lock:
                self._processes.remove(process)
            code = f"exit code {process.end()}"
        return WorkerLostError(
            f"The process that worked on this has ended ({code}), perhaps for want of memory. Try again, or take a "
            "shorter text."
        )


def _as_raised(kind: type[Exception], arguments: tuple[Any, ...], state: dict[str, Any]) -> Exception:
    """The error of a call, whatever arguments its class takes."""
    error: Exception = kind.__new__(kind, *arguments)
    vars(error).update(state)
    return error


_workers = _Workers()


def _session() -> str:
    context = get_script_run_ctx(suppress_warning=True)
    return context.session_id if context else ""
