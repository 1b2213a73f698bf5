"""What a popover shows when it is opened after the page was drawn several times."""

import pytest
from playwright.sync_api import expect

from tests.browser.screen import link, open_screen, wait_for_link, wait_until_drawn

pytestmark = pytest.mark.nightly


def test_its_sliders_stand_where_they_are_and_an_arrow_key_moves_one(page, server):
    open_screen(page, server, "all_heads", grid="entropy", layer=3, head=1)
    for head in (2, 3, 4):  # each draws the page anew
        page.get_by_role("button", name="Next", exact=True).click()
        wait_for_link(page, head=head)
        wait_until_drawn(page)
    page.get_by_role("button", name="More").click()
    sliders = page.get_by_test_id("stSlider").get_by_role("slider")
    for number, value in enumerate(("0.5", "0.6", "0.8"), start=2):  # after both ends of the range
        expect(sliders.nth(number)).to_have_value(value)

    sliders.nth(2).press("ArrowRight")
    wait_for_link(page, near=0.55)
    assert link(page).keys().isdisjoint({"delimiter", "broad"})


def test_its_fields_hold_what_the_map_is_made_with(page, server):
    open_screen(page, server, layer=3, head=1)
    for head in (2, 3, 4):
        page.get_by_role("button", name="Next", exact=True).click()
        wait_for_link(page, head=head)
        wait_until_drawn(page)
    page.get_by_role("button", name="Options").click()
    expect(page.get_by_role("spinbutton", name="Perplexity")).to_have_value("5")
    expect(page.get_by_role("spinbutton", name="Iterations")).to_have_value("1000")
