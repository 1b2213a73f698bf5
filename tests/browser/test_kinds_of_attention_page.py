"""The page of the kinds of attention in Chromium: a cell painted and the tiles read with the keyboard alone."""

import pytest
from playwright.sync_api import expect

from tests.browser.screen import DOOR, chip, open_screen, wait_for_link, wait_until_drawn

pytestmark = pytest.mark.nightly

HELD = {"text": DOOR, "layer": 3, "head": 1, "query": 7, "mask": "none"}


def expect_empty(page, row, column, *, is_empty):
    """Waits until a cell of the right matrix holds nothing, or a number, as Plotly has it."""
    page.wait_for_function(
        """([row, column, isEmpty]) => isEmpty !== Number.isFinite(
            document.querySelector('.st-key-mask_after .js-plotly-plot')._fullData[0].z[row][column])""",
        arg=[row, column, is_empty],
    )


def test_a_cell_is_painted_with_the_keyboard_on_a_phone(visitors, server):
    page = visitors(width=400, colours="dark")
    open_screen(page, server, "kinds_of_attention", **HELD)
    expect_empty(page, 8, 3, is_empty=False)
    chip(page, 8).focus()
    page.keyboard.press("Enter")
    wait_for_link(page, query=8)
    wait_until_drawn(page)
    key = page.get_by_role("combobox", name="Key")
    key.focus()
    page.keyboard.type("watching")
    expect(page.get_by_role("option", name="watching·3")).to_be_visible()
    page.keyboard.press("Enter")
    wait_for_link(page, key=3)
    wait_until_drawn(page)
    key.focus()
    page.keyboard.press("Tab")
    button = page.get_by_role("button", name="Mask “opened” → “watching”")
    expect(button).to_be_focused()
    page.keyboard.press("Enter")
    wait_for_link(page, painted="8.3")
    expect(page.get_by_text("120 of 121 cells are left")).to_be_visible()
    expect_empty(page, 8, 3, is_empty=True)
    expect(page.get_by_role("button", name="Allow “opened” → “watching”")).to_be_visible()


def test_tiles_are_read_to_the_end_with_the_keyboard(page, server):
    open_screen(page, server, "kinds_of_attention", **HELD, tile=4)
    tiles = page.get_by_role("spinbutton", name="Tiles read (1–3)")
    for number in (2, 3):
        tiles.focus()
        page.keyboard.press("ArrowUp")
        page.keyboard.press("Enter")
        wait_for_link(page, tiles=number)
        expect(page.get_by_text(f"{number} of 3 tiles.")).to_be_visible()
        wait_until_drawn(page)
    tiles.focus()
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")  # there is no fourth
    expect(tiles).to_have_value("3")
    expect(
        page.get_by_text("All keys are read: over all 11 rows the output is the direct one's")
    ).to_be_visible()
