"""`ui.runtime.worker` from the outside: processes that are started or forked, talked to through pipes, and ended.

Not with multiprocessing: its processes run the main module again, which under Streamlit is a page.
"""

import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from queue import Queue
from typing import Any

from attnviz.errors import AttnvizError
from ui.runtime import nursery
from ui.runtime.nursery import Copy, Nursery

_ROOT = Path(__file__).parents[2]
_THREADS = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1"
) | {"OMP_WAIT_POLICY": "PASSIVE", "GOMP_SPINCOUNT": "0", "KINETO_LOG_LEVEL": "99"}
"""For the libraries in a process: one thread, since there is a process for each core already, and sums stay the same.
Where a method uses two threads all the same, a waiting one sleeps instead of keeping the other from its core. torch's
profiler does not log its start and end."""

ENDED = "ended"


class WorkerLostError(AttnvizError):
    """The process that worked on a call ended before the call was done."""


class Process:
    """One `ui.runtime.worker`, used by one thread at a time."""

    def __init__(self, start: Callable[[int, int], Copy | subprocess.Popen[bytes]]) -> None:
        """Starts a worker.

        Args:
            start: called with the file descriptors that the worker reads from and writes to.
        """
        read, written = os.pipe(), os.pipe()  # by the worker
        try:
            self._process = start(read[0], written[1])
        finally:
            os.close(read[0])
            os.close(written[1])
        self._calls, self._replies = os.fdopen(read[1], "wb"), os.fdopen(written[0], "rb")
        self._answers: Queue[tuple[str, Any]] = Queue()
        self._listens = threading.Thread(target=self._take_in, daemon=True, name="answers")
        self._listens.start()

    def _take_in(self) -> None:
        """Moves messages from the pipe to a queue, which can be read with a timeout on every system."""
        try:
            while True:
                self._answers.put(pickle.load(self._replies))
        except Exception as error:  # noqa: BLE001 - the worker has ended, or its message cannot be read
            self._answers.put((ENDED, error))

    def send(self, message: object) -> None:
        pickle.dump(message, self._calls)
        self._calls.flush()

    def receive(self, seconds: float) -> tuple[str, Any]:
        """The worker's next message, or `ENDED` with the reason.

        Raises:
            queue.Empty: no message for so many seconds.
        """
        return self._answers.get(timeout=seconds)

    @property
    def id(self) -> int:
        """Process id."""
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        """Whether it accepts calls; only it writes to the pipe, so an open pipe means that it lives."""
        return self._listens.is_alive()

    def end(self) -> int:
        """Kills the process if it still runs; returns its exit code."""
        self._process.kill()
        code = self._process.wait()
        self._listens.join()
        with suppress(BrokenPipeError):
            self._calls.close()
        self._replies.close()
        return code


class Processes:
    """All worker processes, and which of them are idle."""

    def __init__(self) -> None:
        self._processes: list[Process] = []
        self._idle: list[Process] = []
        self._nursery: Nursery | None = None
        self._starting = threading.Lock()

    @property
    def ids(self) -> tuple[int, ...]:
        """Process ids of those that live."""
        return tuple(process.id for process in list(self._processes) if process.is_alive)

    def take(self) -> Process | None:
        """An idle process; None if there is none."""
        while self._idle:
            process = self._idle.pop()
            if process.is_alive:
                return process
            self.forget(process)
        return None

    def give_back(self, process: Process) -> None:
        """Marks a process as idle."""
        self._idle.append(process)

    def start(self) -> Process:
        """Starts a new process."""
        process = Process(self._started)
        self._processes.append(process)
        return process

    def forget(self, process: Process) -> None:
        """Kills a process if it still runs, and removes it."""
        process.end()
        self._processes.remove(process)

    def end(self) -> None:
        """Ends all."""
        for process in list(self._processes):
            process.end()
        if self._nursery is not None:
            self._nursery.end()  # without the lock, which the thread starting the first copy holds until all is imported

    def _started(self, calls: int, answers: int) -> Copy | subprocess.Popen[bytes]:
        """A worker that reads from and writes to these file descriptors."""
        paths = os.pathsep.join([str(_ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
        environment = os.environ | _THREADS | {"PYTHONPATH": paths}
        command = [sys.executable, "-P", "-m"]
        if not nursery.is_there():
            return subprocess.Popen(
                [*command, "ui.runtime.worker"], env=environment, stdin=calls, stdout=answers
            )
        with self._starting:
            if self._nursery is not None and not self._nursery.is_alive:
                self._nursery.end()
                self._nursery = None
            if self._nursery is None:
                self._nursery = Nursery([*command, "ui.runtime.nursery", *nursery.IMPORTED], environment)
            return self._nursery.copy(calls, answers)


def lost(process: Process | None, reason: Exception) -> WorkerLostError:
    """The error for a process that could not be started or reached; ends the process."""
    code: object = reason if process is None else f"exit code {process.end()}"
    return WorkerLostError(
        f"The process that worked on this has ended ({code}), perhaps for want of memory. Try again, or take a "
        "shorter text."
    )


def as_raised(kind: type[Exception], arguments: tuple[Any, ...], state: dict[str, Any]) -> Exception:
    """Restores a call's error, whatever arguments its class takes."""
    error: Exception = kind.__new__(kind, *arguments)
    vars(error).update(state)
    return error
