"""One `ui.work.worker`, from the outside: started, spoken to through pipes, ended.

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

_ROOT = Path(__file__).parents[2]
_THREADS = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1"
) | {"OMP_WAIT_POLICY": "PASSIVE", "GOMP_SPINCOUNT": "0", "KINETO_LOG_LEVEL": "99"}
"""For the libraries in a process: there is a process for each core already, and sums come out the same. Where a
method takes two threads all the same, one that waits sleeps instead of keeping the other from its core. torch's
profiler says nothing of when it begins and ends."""

ENDED = "ended"


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
    def is_alive(self) -> bool:
        """Whether it can be asked."""
        return self._process.poll() is None

    def end(self) -> int:
        """Ends it if it has not ended; its exit code."""
        self._process.kill()
        with suppress(BrokenPipeError), self._process:  # closes the pipes and waits
            pass
        return self._process.returncode


def as_raised(kind: type[Exception], arguments: tuple[Any, ...], state: dict[str, Any]) -> Exception:
    """The error of a call, whatever arguments its class takes."""
    error: Exception = kind.__new__(kind, *arguments)
    vars(error).update(state)
    return error
