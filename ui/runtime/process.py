"""`ui.runtime.worker` from the outside: processes that are started or forked, talked to through a pipe, and ended.

Importing torch and transformers takes seconds, and 290 MB in each process that does so; copies of one process that has
imported them share them and are there in milliseconds. Only Linux forks safely, and no copy can use a GPU that the
original has initialised: elsewhere each worker is started from scratch.
"""

import multiprocessing
import os
import pickle
import sys
from glob import glob
from importlib import import_module
from multiprocessing import spawn
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from queue import Empty
from typing import Any

from attnviz.errors import AttnvizError
from attnviz.model.storage import dumps

_SETTINGS = "ui.runtime.worker_settings"
IMPORTED: tuple[str, ...] = (
    "ui.runtime.with_model",
    "ui.runtime.probes",
    "attnviz.maps.projection",
    "attnviz.maps.tsne",
)
"""Modules that calls need. Not scikit-learn: it imports pyarrow, which starts a thread, and a fork copies only one thread."""

ENDED = "ended"

# For the process that is forked, which up to Python 3.13 does not look at the sys.path that it is sent.
os.environ["PYTHONPATH"] = os.pathsep.join(
    [str(Path(__file__).parents[2]), *filter(None, [os.environ.get("PYTHONPATH")])]
)
_preparation = spawn.get_preparation_data


def _without_main(name: str) -> dict[str, Any]:
    """What a new process is told, without the main module, which it would run: under Streamlit that is a page."""
    return {what: value for what, value in _preparation(name).items() if not what.startswith("init_main")}


spawn.get_preparation_data = _without_main


def are_forked() -> bool:
    """Whether workers are forked on this system."""
    device = os.environ.get("ATTNVIZ_DEVICE") or "auto"
    has_gpu = any(map(glob, ("/dev/nvidia[0-9]*", "/dev/kfd")))
    return sys.platform == "linux" and (device == "cpu" or (device == "auto" and not has_gpu))


def _serve(line: Connection) -> None:
    import_module(_SETTINGS)
    from ui.runtime import worker

    worker.serve_line(line)


class WorkerLostError(AttnvizError):
    """The process that worked on a call ended before the call was done."""


class Process:
    """One `ui.runtime.worker`, used by one thread at a time."""

    def __init__(self) -> None:
        context: Any = multiprocessing.get_context("forkserver" if are_forked() else "spawn")
        if are_forked():
            context.set_forkserver_preload([_SETTINGS, *IMPORTED, __name__, "ui.runtime.worker"])
        self._line, theirs = context.Pipe()
        self._process: BaseProcess = context.Process(target=_serve, args=(theirs,), daemon=True)
        with theirs:
            self._process.start()

    def send(self, message: object) -> None:
        self._line.send_bytes(dumps(message))  # `send` would put torch's tensors into shared memory

    def receive(self, seconds: float) -> tuple[str, Any]:
        """The worker's next message, or `ENDED` with the reason.

        Raises:
            queue.Empty: no message for so many seconds.
        """
        try:
            if self._line.poll(seconds):
                what, value = pickle.loads(self._line.recv_bytes())
                return what, value
        except Exception as error:  # noqa: BLE001 - the worker has ended, or its message cannot be read
            return ENDED, error
        raise Empty

    @property
    def id(self) -> int:
        """Process id."""
        return self._process.pid or 0

    @property
    def is_alive(self) -> bool:
        """Whether it accepts calls."""
        return self._process.is_alive()

    def end(self) -> int | None:
        """Kills the process if it still runs; returns its exit code. The pipe closes with its last user, another thread perhaps."""
        if self._process.is_alive():  # once it has ended, its number may be another's
            self._process.kill()
        self._process.join()
        return self._process.exitcode


class Processes:
    """All worker processes, and which of them are idle."""

    def __init__(self) -> None:
        self._processes: list[Process] = []
        self._idle: list[Process] = []

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
        process = Process()
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
