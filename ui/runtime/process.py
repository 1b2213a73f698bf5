"""`ui.runtime.worker` from the outside: processes that are started, or copied, spoken to through pipes, and ended.

They are not multiprocessing's processes: those run the main module once more, which under Streamlit is a page.
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
"""For the libraries in a process: there is a process for each core already, and sums come out the same. Where a
method takes two threads all the same, one that waits sleeps instead of keeping the other from its core. torch's
profiler says nothing of when it begins and ends."""

ENDED = "ended"


class WorkerLostError(AttnvizError):
    """The process that worked on a call ended before the call did."""


class Process:
    """One `ui.runtime.worker`, spoken to by one thread at a time."""

    def __init__(self, start: Callable[[int, int], Copy | subprocess.Popen[bytes]]) -> None:
        """Starts one.

        Args:
            start: starts it with the file descriptors that it reads from and writes to.
        """
        read, written = os.pipe(), os.pipe()  # by it
        try:
            self._process = start(read[0], written[1])
        finally:
            os.close(read[0])
            os.close(written[1])
        self._calls, self._said = os.fdopen(read[1], "wb"), os.fdopen(written[0], "rb")
        self._answers: Queue[tuple[str, Any]] = Queue()
        self._listens = threading.Thread(target=self._take_in, daemon=True, name="answers")
        self._listens.start()

    def _take_in(self) -> None:
        """A pipe cannot be read with a time limit on every system; a queue can."""
        try:
            while True:
                self._answers.put(pickle.load(self._said))
        except Exception as error:  # noqa: BLE001 - it has ended, or says what cannot be understood
            self._answers.put((ENDED, error))

    def send(self, message: object) -> None:
        pickle.dump(message, self._calls)
        self._calls.flush()

    def receive(self, seconds: float) -> tuple[str, Any]:
        """What it says next, or `ENDED` with the reason.

        Raises:
            queue.Empty: it says nothing for so long.
        """
        return self._answers.get(timeout=seconds)

    @property
    def id(self) -> int:
        """The system's number for it."""
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        """Whether it can be asked: nobody else writes to its pipe."""
        return self._listens.is_alive()

    def end(self) -> int:
        """Ends it if it has not ended; its exit code."""
        self._process.kill()
        code = self._process.wait()
        self._listens.join()
        with suppress(BrokenPipeError):
            self._calls.close()
        self._said.close()
        return code


class Processes:
    """Those there are, and those of them that have nothing to do."""

    def __init__(self) -> None:
        self._processes: list[Process] = []
        self._idle: list[Process] = []
        self._nursery: Nursery | None = None
        self._starting = threading.Lock()

    @property
    def ids(self) -> tuple[int, ...]:
        """The system's numbers of those that live."""
        return tuple(process.id for process in list(self._processes) if process.is_alive)

    def take(self) -> Process | None:
        """One that has nothing to do; None where there is none."""
        while self._idle:
            process = self._idle.pop()
            if process.is_alive:
                return process
            self.forget(process)
        return None

    def give_back(self, process: Process) -> None:
        """It has nothing to do."""
        self._idle.append(process)

    def start(self) -> Process:
        """A new one."""
        process = Process(self._started)
        self._processes.append(process)
        return process

    def forget(self, process: Process) -> None:
        """Ends it, if it has not ended."""
        process.end()
        self._processes.remove(process)

    def end(self) -> None:
        """Ends all."""
        for process in list(self._processes):
            process.end()
        if self._nursery is not None:
            self._nursery.end()  # without the lock: who waits for the first copy holds it until all is imported

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
    """What is said of a process that could not be started or spoken to, which is ended."""
    code: object = reason if process is None else f"exit code {process.end()}"
    return WorkerLostError(
        f"The process that worked on this has ended ({code}), perhaps for want of memory. Try again, or take a "
        "shorter text."
    )


def as_raised(kind: type[Exception], arguments: tuple[Any, ...], state: dict[str, Any]) -> Exception:
    """The error of a call, whatever arguments its class takes."""
    error: Exception = kind.__new__(kind, *arguments)
    vars(error).update(state)
    return error
