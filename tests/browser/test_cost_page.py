"""The page "Cost" in Chromium: a measurement is started and cancelled by keyboard, and leaves the page as it was."""

from playwright.sync_api import expect

from tests.browser.conftest import LOAD_MS
from tests.browser.screen import open_screen, plot


def test_a_measurement_can_be_cancelled(server, page):
    open_screen(page, server, "cost")
    measure = page.get_by_role("button", name="Measure")
    measure.press("Enter")
    cancel = page.get_by_role("button", name="Cancel")
    expect(cancel).to_be_visible(timeout=LOAD_MS)
    expect(page.get_by_role("progressbar")).to_be_visible()
    expect(plot(page, "cost_counted")).to_be_visible()
    cancel.press("Enter")
    expect(measure).to_be_visible(timeout=LOAD_MS)
    expect(cancel).to_have_count(0)
    expect(page.get_by_role("progressbar")).to_have_count(0)
