"""`ui.work.worker` from the outside: processes that are started, spoken to through pipes, and ended.

They are not multiprocessing's processes: those run the main module once more, which under Streamlit is a page.
"""

import os
import pickle
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from queue import Queue
from typing import Any

from attnviz.errors import AttnvizError

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
    """One `ui.work.worker`, spoken to by one thread at a time."""

    def __init__(self) -> None:
        paths = [str(_ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "ui.work.worker"],
            env=os.environ | _THREADS | {"PYTHONPATH": os.pathsep.join(paths)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self._answers: Queue[tuple[str, Any]] = Queue()
        threading.Thread(target=self._take_in, daemon=True, name="answers").start()

    def _take_in(self) -> None:
        """A pipe cannot be read with a time limit on every system; a queue can."""
        assert self._process.stdout is not None  # it was asked for
        try:
            while True:
                self._answers.put(pickle.load(self._process.stdout))
        except Exception as error:  # noqa: BLE001 - it has ended, or says what cannot be understood
            self._answers.put((ENDED, error))

    def send(self, message: object) -> None:
        assert self._process.stdin is not None  # it was asked for
        pickle.dump(message, self._process.stdin)
        self._process.stdin.flush()

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
        """Whether it can be asked."""
        return self._process.poll() is None

    def end(self) -> int:
        """Ends it if it has not ended; its exit code."""
        self._process.kill()
        with suppress(BrokenPipeError), self._process:  # closes the pipes and waits
            pass
        return self._process.returncode


class Processes:
    """Those there are, and those of them that have nothing to do."""

    def __init__(self) -> None:
        self._processes: list[Process] = []
        self._idle: list[Process] = []

    @property
    def ids(self) -> tuple[int, ...]:
        """The system's numbers of those that live."""
        return tuple(one.id for one in list(self._processes) if one.is_alive)

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
        process = Process()
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
