"""A press that is held while the page is redrawn still becomes a click."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import LOAD_MS
from tests.browser.screen import chip, open_screen, wait_for_link, wait_until_drawn

pytestmark = pytest.mark.nightly

PLACE = {"layer": 3, "head": 1, "query": 7, "key": 5}
PRESSED: dict[str, tuple[str, Callable[[Page], Locator], dict[str, object]]] = {
    "a chip": ("", lambda page: chip(page, 4), {"query": 4}),
    "the tour": ("", lambda page: page.get_by_role("button", name="Start here"), {"tour": 1}),
    "a head": (
        "all_heads",
        lambda page: page.locator("[data-layer='4'][data-head='9']"),
        {"layer": 4, "head": 9},
    ),
    "a map": (
        "all_maps",
        lambda page: page.locator("[data-layer='0'][data-head='5']"),
        {"layer": 0, "head": 5},
    ),
    "a token": (
        "token_flow",
        lambda page: page.locator("[data-side='key'][data-position='3']"),
        {"lines_of": "key", "key": 3},
    ),
    "a row": (
        "find_a_head",
        lambda page: page.locator(".st-key-best_heads .ranked_list button").nth(1),
        {"layer": 5, "head": 7},
    ),
}


@pytest.mark.parametrize("what", PRESSED)
def test_is_one_click(page, server, what):
    path, pressed, chosen = PRESSED[what]
    open_screen(page, server, path, **PLACE)
    place = pressed(page)
    expect(page.get_by_role("button", name="Cancel")).to_have_count(
        0, timeout=LOAD_MS
    )  # of the maps' progress
    place.scroll_into_view_if_needed()
    wait_until_drawn(page)
    place.hover()
    page.mouse.down()
    page.get_by_role("button", name="Next", exact=True).evaluate("element => element.click()")
    wait_for_link(page, head=2)
    wait_until_drawn(page)
    page.mouse.up()
    wait_for_link(page, **chosen)
