"""A token masked from its chip and brought back, with the mouse and with the keyboard."""

import pytest
from playwright.sync_api import expect

from tests.browser.screen import (
    cells,
    chip,
    chips,
    expect_soon,
    finding,
    once_changed,
    open_screen,
    wait_for_link,
    wait_until_drawn,
)

pytestmark = pytest.mark.nightly


def test_a_token_is_masked_and_brought_back_by_clicks(page, server):
    open_screen(page, server)
    before = cells(page)
    chip(page, 5).click()
    wait_for_link(page, query=5)

    page.get_by_role("button", name="Put [MASK] in the place of “door”").click()
    wait_for_link(page, query=5, masked=5)
    expect(chips(page).nth(5)).to_contain_text("[MASK]")
    wait_until_drawn(page)
    expect(finding(page)).to_contain_text(": “[MASK]” ")
    once_changed(page, cells, before)

    page.get_by_role("button", name="Bring “door” back.").click()
    expect(finding(page)).to_contain_text(": “door” ")
    wait_until_drawn(page)
    expect_soon(page, cells, before)


def test_the_keyboard_alone_is_enough(page, server):
    open_screen(page, server)
    chip(page, 7).focus()
    page.keyboard.press("ArrowRight")  # the strip is one stop of the Tab key
    expect(page.get_by_role("button", name="Put [MASK] in the place of “it”")).to_be_focused()
    page.keyboard.press("Enter")
    wait_for_link(page, masked=7)
    expect(page.get_by_role("button", name="Bring “it” back.")).to_be_focused()
