"""`make serve`, for tests and measurements: several processes behind nginx, and that they end."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.browser.conftest import ROOT, START_SECONDS, free_port


def children(pid: int) -> list[int]:
    """Processes that a process has started, oldest first."""
    return [int(part) for part in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def is_server(pid: int) -> bool:
    return b"streamlit" in Path(f"/proc/{pid}/cmdline").read_bytes()


def worker_processes(port: int | str | None) -> list[int]:
    """Processes in which the work of a server's screens is done: started by the server, or copies of the one that imports for them."""
    commands, parents = {}, {}
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended
            commands[int(folder.name)] = (folder / "cmdline").read_text().split("\0")
            parents[int(folder.name)] = int((folder / "stat").read_text().rpartition(")")[2].split()[1])

    def is_server_s(pid: int) -> bool:
        return str(port) in commands.get(parents.get(pid, 0), [])

    return [
        pid
        for pid, parent in parents.items()
        if ("--multiprocessing-fork" in commands[pid] and is_server_s(pid))
        or ("multiprocessing.forkserver" in " ".join(commands.get(parent, [])) and is_server_s(parent))
    ]


@contextmanager
def served(log: Path, n: int, **environment: str) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """Address and process of `make serve`; all that it started has ended afterwards."""
    port = free_port()
    command = [sys.executable, "-m", "deploy.serve", "--address", "127.0.0.1"]
    command += ["--port", str(port), "--processes", str(n)]
    with log.open("w") as output:
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            env=os.environ | {"ATTNVIZ_WARM": "no"} | environment,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        try:
            end = time.monotonic() + START_SECONDS
            while "attnviz: http" not in log.read_text():
                if process.poll() is not None or time.monotonic() > end:
                    pytest.fail(f"Nothing is served:\n{log.read_text()}")
                time.sleep(0.1)
            yield f"http://127.0.0.1:{port}", process
        finally:
            started = children(process.pid) if process.poll() is None else []
            process.send_signal(signal.SIGTERM)
            process.wait(START_SECONDS)
    assert process.returncode == 0
    assert [child for child in started if Path(f"/proc/{child}").exists()] == []
