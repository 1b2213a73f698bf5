"""nginx with the configuration of deploy/proxy.py, in front of two small servers that say their names."""

import socket
import subprocess
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from deploy.find_nginx import NginxNotFoundError, nginx_path
from deploy.proxy import COMPOSED, FILE, configuration
from tests.browser.conftest import free_port

try:
    NGINX = nginx_path()
except NginxNotFoundError as error:
    pytest.skip(f"{error} `make nginx` installs it.", allow_module_level=True)


class Named(ThreadingHTTPServer):
    """A server that answers with its name, and at /full that it is full."""

    def __init__(self, name: str, port: int = 0) -> None:
        self.full = False
        self.seen: list[dict[str, str]] = []

        class Handler(BaseHTTPRequestHandler):
            def do_GET(handler) -> None:
                self.seen.append(dict(handler.headers))
                handler.send_response(503 if self.full else 200)
                handler.end_headers()
                handler.wfile.write(name.encode())

            def log_message(self, *_: object) -> None:
                pass

        super().__init__(("127.0.0.1", port), Handler)
        self.thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.01})
        self.thread.start()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.server_port}"

    def end(self) -> None:
        self.shutdown()
        self.thread.join()
        self.server_close()


class Front:
    """nginx before two servers."""

    def __init__(self, port: int, servers: list[Named]) -> None:
        self.port = port
        self.servers = servers

    def get(self, cookie: str = "", **headers: str) -> tuple[str, str]:
        """Who answers, and the cookie that comes with it."""
        asked = urllib.request.Request(f"http://127.0.0.1:{self.port}/", headers=headers)
        if cookie:
            asked.add_header("Cookie", f"attnviz={cookie}")
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(asked, timeout=10) as answer:
            given = answer.headers.get("Set-Cookie", "")
            return answer.read().decode(), given.partition(";")[0].removeprefix("attnviz=")


@pytest.fixture
def front(tmp_path: Path) -> Iterator[Front]:
    servers = [Named("first"), Named("second")]
    port = free_port()
    tmp_path.chmod(0o711)
    written = tmp_path / "nginx.conf"
    written.write_text(
        configuration(f"127.0.0.1:{port}", [server.address for server in servers], str(tmp_path))
    )
    command = [
        NGINX,
        "-p",
        str(tmp_path),
        "-c",
        str(written),
        "-e",
        str(tmp_path / "log"),
        "-g",
        "daemon off;",
    ]
    process = subprocess.Popen(command)
    try:
        end = time.monotonic() + 20
        while time.monotonic() < end:
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
                break
            except OSError:
                time.sleep(0.02)
        yield Front(port, servers)
    finally:
        process.terminate()
        process.wait(10)
        for server in servers:
            server.end()


def test_the_configuration_for_compose_is_one_that_nginx_takes(tmp_path):
    text = FILE.read_text().replace("listen 8080", "listen 127.0.0.1:8080").replace("/tmp/", f"{tmp_path}/")
    (tmp_path / "nginx.conf").write_text(text)
    command = [NGINX, "-t", "-p", str(tmp_path), "-c", str(tmp_path / "nginx.conf"), "-e", "stderr"]
    assert subprocess.run(command, capture_output=True, check=False).returncode == 0
    (tmp_path / "nginx.conf").write_text(text.replace(COMPOSED[0], "not an address", 1))
    assert subprocess.run(command, capture_output=True, check=False).returncode == 1


def test_newcomers_are_shared_out_and_stay(front):
    newcomers = [front.get() for _ in range(4)]
    assert sorted(newcomers) == [("first", "p1")] * 2 + [("second", "p2")] * 2
    assert [front.get("p1") for _ in range(3)] == [("first", "")] * 3
    assert [front.get("p2") for _ in range(3)] == [("second", "")] * 3
    assert front.get("../../etc/passwd")[0] in ("first", "second")


def test_who_loses_their_process_stays_with_the_next_one(front):
    port = front.servers[0].server_port
    front.servers[0].end()
    assert front.get("p1") == ("second", "p2")
    assert front.get()[0] == "second"

    front.servers[0] = Named("first", port)  # it is back
    assert front.get("p2") == ("second", "")
    assert front.get("p1") == ("first", "")


def test_a_full_process_sends_newcomers_on(front):
    front.servers[0].full = True
    assert {front.get() for _ in range(4)} == {("second", "p2")}
    front.servers[1].full = True
    with pytest.raises(urllib.error.HTTPError, match="503"):
        front.get()


def test_what_a_visitor_says_of_their_address_is_not_passed_on(front):
    front.get("p1", **{"X-Forwarded-For": "10.1.2.3"})
    assert front.servers[0].seen[-1]["X-Forwarded-For"] == "127.0.0.1"
    assert front.servers[0].seen[-1]["Host"] == f"127.0.0.1:{front.port}"
