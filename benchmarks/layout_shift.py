"""How much each page moves while it is loaded and scrolled, in a real Chromium."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

from playwright.sync_api import sync_playwright

from benchmarks.measurement import Measurement
from tests.browser.conftest import LAUNCH, running_server
from tests.browser.find_chromium import chromium_path
from tests.browser.screen import PLACES, open_screen
from ui.rooms import PAGES

BUDGET = 0.1
"""Limit of a good score. Source: web.dev, "Cumulative Layout Shift"."""
WINDOWS = ((1366, 768), (400, 800))
WHEEL = 400  # px at a time; on a phone some lines of a page are sticky
REST_MS = 2500  # after the server has sent everything

_WATCH = """
window.layoutShift = 0;
new PerformanceObserver((list) => {
  for (const entry of list.getEntries()) if (!entry.hadRecentInput) window.layoutShift += entry.value;
}).observe({type: "layout-shift", buffered: true});
"""


def measure() -> Iterator[Measurement]:
    """The sum of all layout shifts of each page that is opened directly, at a laptop's and a phone's width."""
    with (
        tempfile.TemporaryDirectory() as folder,
        running_server(Path(folder) / "app.log") as app,
        sync_playwright() as playwright,
    ):
        browser = playwright.chromium.launch(executable_path=chromium_path(), args=LAUNCH)
        for width, height in WINDOWS:
            for path in (part.address for part in PAGES):
                context = browser.new_context(viewport={"width": width, "height": height})
                page = context.new_page()
                page.add_init_script(_WATCH)
                open_screen(page, app, path, **PLACES.get(path, {}))
                page.wait_for_timeout(REST_MS)
                page.mouse.move(width / 2, height / 2)
                for _ in range(3):
                    page.mouse.wheel(0, WHEEL)
                    page.wait_for_timeout(REST_MS / 5)
                shift = float(page.evaluate("window.layoutShift"))
                context.close()
                yield Measurement(
                    what=f"layout shift of {path or 'the first screen'}, {width} px",
                    value=round(shift, 3),
                    budget=BUDGET,
                )
        browser.close()
