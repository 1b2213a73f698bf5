"""Hovering over tokens and heads of the first screen, which the browser answers: from the pointer's event to the new layout."""

import statistics
import tempfile
from collections.abc import Iterator
from pathlib import Path

from playwright.sync_api import sync_playwright

from benchmarks.measurement import Measurement
from tests.browser.conftest import LAUNCH, running_server
from tests.browser.find_chromium import chromium_path
from tests.browser.screen import DOOR, open_screen

TEXTS = {11: DOOR, 64: "the old man the boats " * 12 + "door door"}
"""By number of tokens; the browser answers for at most 64."""
POINTED_AT = {"head": ".st-key-head_rail [role=gridcell]", "token": ".st-key-token_strip [data-position]"}
POINT_AT_EACH = """all => Array.from({length: 40}, (_, number) => {
    const one = all[(7 * number) % all.length], start = performance.now();
    one.dispatchEvent(new MouseEvent("mousemove", {bubbles: true, composed: true}));
    document.body.offsetHeight;  // lays it out
    return performance.now() - start;
})"""


def measure() -> Iterator[Measurement]:
    """Median milliseconds of hovering over a head and over a token."""
    with (
        tempfile.TemporaryDirectory() as folder,
        running_server(Path(folder) / "app.log") as app,
        sync_playwright() as playwright,
    ):
        page = playwright.chromium.launch(executable_path=chromium_path(), args=LAUNCH).new_page()
        for n_token, text in TEXTS.items():
            open_screen(page, app, "", text=text)
            for what, selector in POINTED_AT.items():
                times = page.locator(selector).evaluate_all(POINT_AT_EACH)
                yield Measurement(
                    what=f"pointing at a {what}, {n_token} tokens: milliseconds",
                    value=statistics.median(times),
                    budget=50.0,
                    detail=f"in Chromium, nothing sent; the longest of {len(times)} {max(times):.0f} ms",
                )
