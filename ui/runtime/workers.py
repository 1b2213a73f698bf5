"""Who runs the calls of jobs: processes, started when first needed, that alternate between the watched jobs.

The Workers know a job only as `Work`, and nothing of the pages that watch it.
"""

import atexit
import threading
import time
from collections import deque
from queue import Empty
from typing import Any, Generic, Protocol, TypeVar

from attnviz.model.storage import dumps
from ui.limits import WORKERS
from ui.runtime.process import ENDED, Process, Processes, as_raised, lost

LAST_SHARE = 60.0
"""Seconds that a call that is no longer waited for has to end by itself (`ui.runtime.stopping`), more than loading a model takes
on a busy machine; after that its process is killed, and its loaded models are lost."""
LISTEN_SECONDS = 0.25
"""Polling interval: does anybody still wait for a call that reports nothing?"""
THREADS = "serving jobs"
"""Name of the threads that talk to the processes."""
lock = threading.Lock()
"""Held while any job, or the set of workers on it, is read or changed."""


class Work(Protocol):
    """Calls that wait for a process. All members but `call` are used while the lock is held."""

    @property
    def n_ready(self) -> int:
        """Calls that may begin."""

    @property
    def n_begun(self) -> int:
        """Calls that processes are working on."""

    @property
    def is_watched(self) -> bool:
        """Whether anybody watches."""

    def begin(self) -> int:
        """Begins the next call; returns its number."""

    def call(self, number: int) -> object:
        """What is sent to the process: a function with its arguments."""

    def set_share(self, number: int, share: float, part: Any) -> None:
        """Records a call's progress, 0 to 1, and a part of its result; None for none."""

    def take_back(self, number: int, what: str, value: Any) -> None:
        """Records how a call ended: with a `result`, an `error`, or nothing where it was `stopped`."""

    def note(self) -> None:
        """Logs the progress."""


W = TypeVar("W", bound=Work)


class Workers(Processes, Generic[W]):
    """Processes, and a thread for each of them while there is something to do."""

    def __init__(self, most: int = WORKERS, idle_seconds: float | None = None) -> None:
        """No process yet.

        Args:
            most: processes at once.
            idle_seconds: how long they stay with nothing to do, and their models in memory; None for always.
        """
        super().__init__()
        self._most, self._idle_seconds = most, idle_seconds
        self._n_given_back = 0
        self._jobs: deque[W] = deque()
        self._n_thread = 0
        self._has_ended = False
        atexit.register(self.end)

    @property
    def jobs(self) -> tuple[W, ...]:
        """The jobs under way or waiting, the next one first."""
        return tuple(self._jobs)

    def end(self) -> None:
        """Ends all processes for good: no call begins any more, and calls under way are dropped, not reported as failed."""
        with lock:
            self._has_ended = True
        super().end()

    def work_on(self, job: W) -> None:
        """Makes sure that a process works on a job, unless `end` was called."""
        with lock:
            if self._has_ended:
                return
            if job.n_ready and job not in self._jobs:
                self._jobs.append(job)
            n_call = sum(job.n_ready for job in self._jobs)
            for _ in range(min(n_call, self._most - self._n_thread)):
                self._n_thread += 1
                threading.Thread(target=self._serve, daemon=True, name=THREADS).start()

    def _next(self) -> tuple[W, int] | None:
        """The next call of the job that has waited longest for its turn."""
        if self._has_ended:
            return None
        for job in self._jobs:
            job.note()
        for job in self.jobs:
            if job.n_ready:
                self._jobs.remove(job)
                self._jobs.append(job)
                return job, job.begin()
        self._jobs = deque(job for job in self._jobs if job.n_begun)
        return None

    def _serve(self) -> None:
        process = None
        while True:
            with lock:
                task = self._next()
                if task is None:
                    self._n_thread -= 1
                    if process is not None:
                        self.give_back(process)
                        self._end_later()
                    return
                process = process or self.take()
            process = self._make(*task, process)

    def _end_later(self) -> None:
        """Ends the idle processes if none is needed for a while."""
        self._n_given_back += 1
        if self._idle_seconds is not None:
            timer = threading.Timer(self._idle_seconds, self._end_idle, (self._n_given_back,))
            timer.daemon = True
            timer.start()

    def _end_idle(self, n_given_back: int) -> None:
        with lock:
            if self._n_given_back == n_given_back:
                while (process := self.take()) is not None:
                    self.forget(process)

    def _make(self, job: W, number: int, process: Process | None) -> Process | None:
        """Runs a call; returns the process for the next one, None if it has ended."""
        value: Any
        try:
            call = dumps(job.call(number))
        except Exception as error:  # noqa: BLE001 - sent to the page that asked
            what, value = "error", error
        else:
            try:
                process = process or self.start()
                process.send(call)
                what, value = self._listen(job, number, process)
            except Exception as error:  # noqa: BLE001 - the process cannot be started or reached
                what, value = ENDED, error
            if what == ENDED:
                what, value = "error", lost(process, value)
            if process is not None and not process.is_alive:
                self.forget(process)
                process = None
        if what == "error" and not isinstance(value, Exception):
            value = as_raised(*value)
        with lock:
            if not self._has_ended:
                job.take_back(number, what, value)
            del value  # before whoever waits goes on: nothing here may keep what its job gives away
        return process

    def _listen(self, job: W, number: int, process: Process) -> tuple[str, Any]:
        """Records a call's progress until it ends; stops it once it is no longer waited for."""
        unwatched_since = None
        while True:
            try:
                what, value = process.receive(LISTEN_SECONDS)
            except Empty:
                what, value = "", None
            if what not in ("share", ""):
                return what, value
            now = time.monotonic()
            with lock:
                if what == "share" and not self._has_ended:
                    job.set_share(number, *value)
                is_watched = job.is_watched
            if is_watched:
                unwatched_since = None
            elif unwatched_since is None:
                unwatched_since = now
                process.send(None)
            elif now - unwatched_since > LAST_SHARE:
                process.end()
                return "stopped", None
