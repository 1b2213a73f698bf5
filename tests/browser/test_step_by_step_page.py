"""Step by step in Chromium: all the way with the keyboard alone, on a phone."""

import pytest
from playwright.sync_api import expect

from tests.browser.screen import DOOR, open_screen, wait_for_link

pytestmark = pytest.mark.nightly

TITLES = (
    *("Tokens", "Vectors", "Queries, keys, values", "One score"),
    *("A row of scores", "Softmax", "Mean of values", "All heads"),
)


def test_the_way_is_walked_with_the_keyboard(visitors, server):
    page = visitors(width=400, height=800, colours="dark")
    open_screen(page, server, "step_by_step", text=DOOR, layer=3, head=1, query=7, key=5, step=4)
    for step in range(5, 9):
        page.get_by_role("button", name=f"Next: {TITLES[step - 1]}").focus()
        page.keyboard.press("Enter")
        expect(page.get_by_role("heading", name=f"{step}. {TITLES[step - 1]}")).to_be_visible()
        expect(page.get_by_test_id("stMain").get_by_text("largest difference").first).to_be_visible()
    wait_for_link(page, step=8, layer=3, head=1, query=7, key=5)
