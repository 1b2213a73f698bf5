"""A server of attnviz's own, a Chromium, and a watch for whatever must not happen in any test."""

import os
import re
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urljoin, urlsplit

import pytest
from playwright.sync_api import (
    Browser,
    ConsoleMessage,
    Dialog,
    Error,
    Page,
    Request,
    WebSocket,
    expect,
    sync_playwright,
)

from tests.app.hostile import save_hostile_bert
from tests.browser.find_chromium import chromium_path
from tests.log_lines import errors

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "test-results"
LAUNCH = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)
LAPTOP = {"width": 1400, "height": 900}
HEALTH = "/_stcore/health"
START_SECONDS, LOAD_MS = 180, 120_000  # a slow machine takes four times as long as a fast one

expect.set_options(timeout=20_000)  # two windows at once on two slow cores; what is right is seen at once


def free_port() -> int:
    """A port of this machine's own address that nobody uses now."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    return port


def streamlit(port: int, *arguments: str, script: str = "app.py") -> list[str]:
    """The command that serves a script at a port."""
    command = [sys.executable, "-m", "streamlit", "run", script, "--server.headless", "true"]
    return [*command, "--server.port", str(port), *arguments]


@contextmanager
def running_server(log: Path, script: str = "app.py", **environment: str) -> Iterator[str]:
    """Address of a server that has just started; it is ended afterwards."""
    port = free_port()
    address = f"http://127.0.0.1:{port}/{environment.get('STREAMLIT_SERVER_BASE_URL_PATH', '')}".rstrip("/")
    with log.open("w") as output:
        process = subprocess.Popen(
            streamlit(port, "--server.address", "127.0.0.1", script=script),
            cwd=ROOT,
            # A server of a test has few visitors, and what goes wrong is to be read.
            env=os.environ | {"ATTNVIZ_WARM": "no", "ATTNVIZ_LOG_TEXTS": "yes"} | environment,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        try:
            wait_for(f"{address}{HEALTH}", process, log)
            yield address
        finally:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def wait_for(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end:
        if process.poll() is not None:
            break
        try:
            with opener.open(url, timeout=5) as answer:
                if answer.status == 200:
                    return
        except OSError:
            time.sleep(0.05)
    pytest.fail(f"The server did not start:\n{log.read_text()}")


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server that all tests share. It also offers the model with hostile tokens, called "hostile"."""
    folder = tmp_path_factory.mktemp("server")
    hostile = save_hostile_bert(folder / "hostile")
    with running_server(folder / "log.txt", ATTNVIZ_MODELS=str(hostile)) as address:
        yield address
    assert errors(folder / "log.txt") == []


@pytest.fixture
def fresh_server(tmp_path: Path, visitors: "Visitors") -> Iterator[str]:
    """A server without earlier visitors. Its visitors leave before it ends."""
    with running_server(tmp_path / "log.txt") as address:
        yield address
        visitors.leave()


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=chromium_path(), args=list(LAUNCH))
        yield started
        started.close()


class Visitors:
    """People with a browser, each with a window of their own; all are watched.

    Windows are handed from test to test, for in a new one Chromium compiles Streamlit anew, which takes longer
    than most tests; one that is `alone` is new, and is not used again.
    """

    def __init__(self, browser: Browser, free: list[Page]) -> None:
        self._browser = browser
        self._free = free
        self._shared: list[Page] = []
        self._alone: list[Page] = []
        self._listeners: dict[str, Callable[[Any], None]] = {
            "console": self._console,
            "pageerror": self._error,
            "dialog": self._dialog,
            "request": self._request,
            "websocket": self._request,
        }
        self.wrong: list[str] = []
        self.failed = False
        self.name = ""

    def __call__(
        self,
        *,
        width: int = 1400,
        height: int = 900,
        colours: str = "light",
        motion: bool = True,
        alone: bool = False,
    ) -> Page:
        page = self._free.pop() if self._free and not alone else self._browser.new_context().new_page()
        page.context.set_default_timeout(30_000)
        page.set_viewport_size({"width": width, "height": height})
        page.emulate_media(
            color_scheme="dark" if colours == "dark" else "light",
            reduced_motion="no-preference" if motion else "reduce",
        )
        for event, listener in self._listeners.items():
            page.on(event, listener)  # type: ignore[call-overload]
        (self._alone if alone else self._shared).append(page)
        return page

    def leave(self) -> None:
        """Leaves all pages, with a picture of each if something went wrong."""
        pages = [tab for page in (*self._shared, *self._alone) for tab in page.context.pages]
        for number, page in enumerate(pages):
            if self.failed or self.wrong:
                RESULTS.mkdir(exist_ok=True)
                page.screenshot(path=RESULTS / f"{self.name}-{number}.png")
        for page in self._shared:
            if self.failed or self.wrong or not page.url.startswith("http"):
                page.context.close()
            else:
                self._free.append(self._cleared(page))
        for page in self._alone:
            page.context.close()
        self._shared.clear()
        self._alone.clear()

    def _cleared(self, page: Page) -> Page:
        """The window as if it were new, on a page without a script of the same server."""
        for other in page.context.pages:
            if other != page:
                other.close()
        page.unroute_all()
        page.goto(urljoin(page.url, HEALTH))  # also where a test has written a page of its own into this one
        page.evaluate("localStorage.clear(); sessionStorage.clear()")
        page.mouse.move(0, 0)
        for event, listener in self._listeners.items():
            page.remove_listener(event, listener)
        return page

    def _console(self, message: ConsoleMessage) -> None:
        if message.type == "error":
            self.wrong.append(f"console: {message.text} ({message.location['url']})")

    def _error(self, error: Error) -> None:
        self.wrong.append(f"error in the page: {error.name}: {error.message} {error.stack}")

    def _dialog(self, dialog: Dialog) -> None:
        self.wrong.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def _request(self, request: Request | WebSocket) -> None:
        parts = urlsplit(request.url)
        if parts.scheme not in ("data", "blob", "file") and parts.hostname != "127.0.0.1":
            self.wrong.append(f"request to {request.url[:200]}")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    report = yield
    visitors = item.funcargs.get("visitors")  # type: ignore[attr-defined]
    if report.failed and visitors is not None:
        visitors.failed = True
    return report


@pytest.fixture(scope="session")
def free_windows(browser: Browser) -> list[Page]:
    """Windows that no test uses now; they end with the browser."""
    return []


@pytest.fixture(autouse=True)
def visitors(
    browser: Browser, free_windows: list[Page], request: pytest.FixtureRequest
) -> Iterator[Visitors]:
    """Opens windows; fails a test in whose windows something happened that never may."""
    visitors = Visitors(browser, free_windows)
    visitors.name = re.sub(r"\W+", "-", request.node.name).strip("-")
    yield visitors
    visitors.leave()
    assert visitors.wrong == []


@pytest.fixture
def page(visitors: Visitors) -> Page:
    """A laptop's window in the light theme."""
    return visitors()
