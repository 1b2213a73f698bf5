"""The page "Cost" in Chromium: a measurement is started and cancelled by keyboard, and leaves the page as it was."""

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import LOAD_MS
from tests.browser.screen import open_screen, plot
from tests.served import worker_processes

pytestmark = pytest.mark.nightly


@contextmanager
def work_that_does_not_end(server: str) -> Iterator[None]:
    """Nothing that runs at the end of the page finishes before it is cancelled, however fast the machine is."""
    stopped: list[int] = []
    try:
        end = time.monotonic() + LOAD_MS / 1000
        while not stopped:
            assert time.monotonic() < end
            stopped = worker_processes(server.rpartition(":")[2])
        for number in stopped:
            with suppress(ProcessLookupError):
                os.kill(number, signal.SIGSTOP)
        yield
    finally:
        for number in stopped:
            with suppress(ProcessLookupError):
                os.kill(number, signal.SIGCONT)


def test_a_measurement_can_be_cancelled(server, page):
    open_screen(page, server, "cost")
    measure = page.get_by_role("button", name="Measure")
    measure.press("Enter")
    cancel = page.get_by_role("button", name="Cancel")
    with work_that_does_not_end(server):
        expect(cancel).to_be_visible(timeout=LOAD_MS)
        expect(page.get_by_role("progressbar")).to_be_visible()
        expect(plot(page, "cost_counted")).to_be_visible()
        cancel.press("Enter")
        expect(measure).to_be_visible(timeout=LOAD_MS)
    expect(cancel).to_have_count(0)
    expect(page.get_by_role("progressbar")).to_have_count(0)
