"""attnviz for many people on this machine: a process for each core behind nginx, with one command: `make serve`.

A process that ends is started again; its visitors have moved to another one by then, as deploy/proxy.py explains.
"""

import argparse
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from pathlib import Path
from types import FrameType

from deploy.find_nginx import NginxNotFoundError, nginx_path
from deploy.proxy import configuration

ROOT = Path(__file__).parents[1]
START_SECONDS, END_SECONDS = 180, 9
SHARED = {"ATTNVIZ_WORKERS": "1", "ATTNVIZ_RUNS": "1"}
"""Defaults for a process that is one of several: each has one core."""

METRICS = "ATTNVIZ_METRICS_PORT"
"""Environment variable with the port of the first process's metrics; the others take the ports after it."""


class NotServedError(Exception):
    """attnviz could not be started; the message says what to do."""


class Server:
    """One process of attnviz, with its port on loopback."""

    def __init__(self, variables: dict[str, str]) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port: int = free.getsockname()[1]
        self._variables = variables
        self.process = self._started()

    @property
    def address(self) -> str:
        """Its address and port."""
        return f"127.0.0.1:{self.port}"

    def _started(self) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "streamlit", "run", "app.py", "--server.headless", "true"]
        command += ["--server.address", "127.0.0.1", "--server.port", str(self.port)]
        # A session of its own, so that Ctrl-C reaches only this module, which then ends the processes.
        return subprocess.Popen(
            command, cwd=ROOT, env=self._variables, stdout=subprocess.DEVNULL, start_new_session=True
        )

    def restart(self) -> None:
        """Starts it again."""
        self.process = self._started()

    def is_ready(self) -> bool:
        """Whether it answers."""
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(f"http://{self.address}/_stcore/health", timeout=5) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False


def check_free(address: str, port: int) -> None:
    """Raises NotServedError if the port is not available."""
    try:
        address_info = socket.getaddrinfo(address, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(*address_info[:3]) as listener:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(address_info[4])
    except OSError as error:
        raise NotServedError(
            f"Nothing can be served at {address}:{port}: {error.strerror}. Take another port: make serve PORT=8502."
        ) from None


def environment(number: int, n: int) -> dict[str, str]:
    """Environment variables of process ``number``, from 0, of ``n`` processes."""
    own = dict(os.environ) if n == 1 else SHARED | dict(os.environ)
    if (port := own.get(METRICS, "0")).isdigit() and port != "0":
        own[METRICS] = str(int(port) + number)
    return own


def _listens(address: str, port: int) -> bool:
    try:
        socket.create_connection((address, port), timeout=5).close()
    except OSError:
        return False
    return True


def serve(address: str, port: int, n: int, stop: threading.Event) -> None:
    """Serves until the event is set, then ends all processes.

    Raises:
        NginxNotFoundError: nginx is missing.
        NotServedError: the port is taken, or a process ended before it was ready.
    """
    nginx = nginx_path()
    check_free(address, port)
    servers = [Server(environment(number, n)) for number in range(n)]
    proxy = None
    try:
        _await(servers, stop)
        with tempfile.TemporaryDirectory(prefix="attnviz-") as folder:
            Path(folder).chmod(0o711)  # the workers of root's nginx run as another user
            written = Path(folder, "nginx.conf")
            host = f"[{address}]" if ":" in address else address
            written.write_text(
                configuration(f"{host}:{port}", [server.address for server in servers], folder)
            )
            command = [nginx, "-p", folder, "-c", str(written), "-e", "stderr", "-g", "daemon off;"]
            proxy = subprocess.Popen(command, start_new_session=True)
            while proxy.poll() is None and not _listens(address, port):
                stop.wait(0.02)
            print(f"attnviz: http://{host}:{port}, {n} processes", flush=True)
            while not stop.wait(0.5):
                if proxy.poll() is not None:
                    raise NotServedError(
                        f"nginx has ended with exit code {proxy.returncode}; its message is above."
                    )
                for server in servers:
                    if server.process.poll() is not None:
                        print(
                            f"Process {server.process.pid} has ended ({server.process.returncode}); it is started again.",
                            flush=True,
                        )
                        server.restart()
            _end([proxy, *(server.process for server in servers)])
    finally:
        _end([*([proxy] if proxy else []), *(server.process for server in servers)])


def _await(servers: list[Server], stop: threading.Event) -> None:
    end = time.monotonic() + START_SECONDS
    while not stop.is_set() and not all(server.is_ready() for server in servers):
        ended = next((server.process for server in servers if server.process.poll() is not None), None)
        if ended is not None or time.monotonic() > end:
            why = "did not answer" if ended is None else f"ended with exit code {ended.returncode}"
            raise NotServedError(f"A process {why} before it was ready; its message is above.")
        stop.wait(0.2)


def _end(processes: list[subprocess.Popen[bytes]]) -> None:
    """Asks processes to end, and kills those that do not end in time."""
    running = [process for process in processes if process.poll() is None]
    for process in running:
        process.terminate()
    end = time.monotonic() + END_SECONDS
    for process in running:
        try:
            process.wait(max(0.0, end - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def n_core() -> int:
    """Cores that this process may use; macOS knows only how many there are."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def main() -> int:
    """Serves until Ctrl-C or SIGTERM; exit code 1 if it cannot serve."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--address", default="localhost")
    parser.add_argument("--port", type=int, default=8501)
    parser.add_argument("--processes", type=int, default=0, help="one for each core if 0")
    given = parser.parse_args()
    stop = threading.Event()

    def ended(signal_number: int, frame: FrameType | None) -> None:
        stop.set()

    for signal_ in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(signal_, ended)
    try:
        serve(given.address, given.port, given.processes or n_core(), stop)
    except (NginxNotFoundError, NotServedError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
