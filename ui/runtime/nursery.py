"""Where workers come from: a process that has imported what they need and is forked for each.

Importing torch and transformers takes seconds, and 290 MB in each process that does so; a forked copy shares them and
is there in milliseconds. Only Linux forks safely and passes pipes on, and no copy can use a GPU that the original has
initialised: elsewhere each worker is started from scratch.
"""

import gc
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from glob import glob
from importlib import import_module
from pathlib import Path

ROOMS = Path(__file__).parents[1] / "rooms"
IMPORTED = (
    "ui.runtime.with_model",
    "ui.runtime.probes",
    "attnviz.maps.projection",
    "attnviz.maps.tsne",
    *(
        ".".join(("ui", "rooms", *path.relative_to(ROOMS).with_suffix("").parts))
        for path in sorted(ROOMS.rglob("jobs.py"))
    ),
)
"""Modules that calls need. Not scikit-learn: it imports pyarrow, which starts a thread, and a fork copies only one thread."""
MESSAGE_BYTES = 64
"""Size of a request or an answer: a word and a number."""
UNKNOWN = -1
"""Exit code of a process whose nursery has ended."""


def is_there() -> bool:
    """Whether workers are forked on this system."""
    device = os.environ.get("ATTNVIZ_DEVICE") or "auto"
    has_gpu = any(map(glob, ("/dev/nvidia[0-9]*", "/dev/kfd")))
    return sys.platform == "linux" and (device == "cpu" or (device == "auto" and not has_gpu))


class Copy:
    """A forked process, with part of the interface of `subprocess.Popen`."""

    def __init__(self, nursery: "Nursery", pid: int) -> None:
        self.pid = pid
        self._nursery = nursery
        self._code: int | None = None

    def kill(self) -> None:
        """Kills the process if it still runs."""
        if self._code is None:  # once ended, its pid may belong to another process
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)

    def wait(self) -> int:
        """Waits for the process to end; returns its exit code."""
        if self._code is None:
            self._code = self._nursery.exit_code(self.pid)
        return self._code


class Nursery:
    """The process that is forked; for one thread at a time."""

    def __init__(self, command: list[str], environment: Mapping[str, str]) -> None:
        self._line, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(command, env=dict(environment), stdin=theirs.fileno())
        self._lock = threading.Lock()

    @property
    def is_alive(self) -> bool:
        """Whether it accepts requests."""
        return self._process.poll() is None

    def copy(self, calls: int, answers: int) -> Copy:
        """A copy that reads from and writes to these file descriptors.

        Raises:
            OSError: the nursery has ended.
        """
        with self._lock:
            socket.send_fds(self._line, [b"copy"], [calls, answers])
            return Copy(self, self._answered())

    def exit_code(self, pid: int) -> int:
        """Waits for a copy to end; returns its exit code."""
        with self._lock, suppress(OSError):
            self._line.send(b"wait %d" % pid)
            return self._answered()
        return UNKNOWN

    def end(self) -> None:
        """Ends the nursery; its copies end when their input ends."""
        self._process.kill()
        self._process.wait()
        self._line.close()

    def _answered(self) -> int:
        if not (answer := self._line.recv(MESSAGE_BYTES)):
            raise ConnectionError("the process that workers are copied from has ended")
        return int(answer)


def main() -> None:
    """Serves the parent process, through the socket on standard input."""
    from ui.runtime import worker

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # meant for the server, which then ends this process
    worker.be_nice()
    line = socket.socket(fileno=os.dup(0))
    for module in sys.argv[1:]:
        import_module(module)
    gc.collect()
    gc.freeze()  # otherwise a collection would touch, and so copy, the shared pages
    while True:
        asked, pipes, _, _ = socket.recv_fds(line, MESSAGE_BYTES, 2)
        if not asked:
            return
        if asked == b"copy":
            if (pid := os.fork()) == 0:
                line.close()
                for to, pipe in enumerate(pipes):
                    os.dup2(pipe, to)
                    os.close(pipe)
                worker.serve_pipes()
            for pipe in pipes:
                os.close(pipe)
            line.send(b"%d" % pid)
        else:
            line.send(b"%d" % _waited(int(asked.split()[1])))


def _waited(pid: int) -> int:
    with suppress(ChildProcessError):
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return UNKNOWN


if __name__ == "__main__":
    main()
