"""Two processes behind nginx: one is ended, and its visitors come back on the other at the same URL with the same view."""

import os
import re
import signal
import time
import urllib.request

import pytest
from playwright.sync_api import Page, expect

from deploy.find_nginx import NginxNotFoundError, nginx_path
from tests.browser.conftest import LOAD_MS, START_SECONDS
from tests.browser.screen import (
    answered,
    finding,
    open_screen,
    screen,
    show_attention,
    wait_for_a_frame,
    wait_for_link,
    wait_until_drawn,
)
from tests.served import children, is_server, served

pytestmark = pytest.mark.nightly

try:
    nginx_path()
except NginxNotFoundError as error:
    pytest.skip(f"{error} `make nginx` installs it.", allow_module_level=True)

LOST = re.compile(r"WebSocket|Failed to load resource|ERR_|502|404 \(Not Found\)")
"""What a browser writes to its console while a server is gone for a moment."""


def which(page: Page) -> str:
    """The process that the visitor's cookie names."""
    return next(cooky["value"] for cooky in page.context.cookies() if cooky["name"] == "attnviz")


def answers(address: str, name: str) -> str:
    """The process that answers whoever belongs to this one."""
    asked = urllib.request.Request(f"{address}/_stcore/health", headers={"Cookie": f"attnviz={name}"})
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(asked, timeout=10) as answer:
        moved = re.match(r"attnviz=(\w+)", answer.headers.get("Set-Cookie", ""))
    return moved[1] if moved else name


def started_again(pid: int, before: list[int]) -> int:
    """The server that has replaced one of those before."""
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end:
        for child in children(pid):
            if child not in before and is_server(child):
                return child
        time.sleep(0.01)
    pytest.fail("No process was started again.")


def test_visitors_of_a_process_that_ends_come_back_with_their_view(tmp_path, visitors):
    page = visitors(alone=True)
    with served(tmp_path / "log.txt", 2) as (address, process):
        open_screen(page, address, text="The old door creaked.", layer=4, head=2, query=3, special="hidden")
        show_attention(page, "The new door creaked loudly.")
        wait_for_link(page, text="The new door creaked loudly.")
        wait_until_drawn(page)
        before, url, mine = screen(page), page.url, which(page)
        servers = [child for child in children(process.pid) if is_server(child)]

        # The page asks for a run as soon as it is connected; clicks before that run has come are lost.
        with answered(page):
            os.kill(servers[int(mine[1:]) - 1], signal.SIGKILL)
            new = started_again(process.pid, servers)
            os.kill(new, signal.SIGSTOP)  # a fast machine would have it ready before the browser asks again
            other = {"p1": "p2", "p2": "p1"}[mine]
            end = time.monotonic() + START_SECONDS
            while which(page) == mine and time.monotonic() < end:
                wait_for_a_frame(page)
            os.kill(new, signal.SIGCONT)
            assert which(page) == other
        wait_until_drawn(page)
        assert page.url == url
        assert screen(page) == before

        page.get_by_role("button", name="Next", exact=True).click()
        expect(finding(page)).to_contain_text("Layer 4, head 3: ", timeout=LOAD_MS)
        wait_for_link(page, head=3)  # the finding is drawn before the address changes
        wait_until_drawn(page)
        visitors.wrong[:] = [message for message in visitors.wrong if not LOST.search(message)]

        # The process is there again, and the visitor stays with the other one.
        end = time.monotonic() + START_SECONDS
        while answers(address, mine) != mine and time.monotonic() < end:
            time.sleep(0.2)
        assert answers(address, mine) == mine
        page.reload()
        expect(finding(page)).to_contain_text("Layer 4, head 3: ", timeout=LOAD_MS)
        assert which(page) == other
        visitors.leave()
