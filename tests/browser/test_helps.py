"""Every help can be opened, and a grid that scrolls sideways says so."""

import pytest
from playwright.sync_api import expect

from tests.browser.screen import open_screen

LEAST = 24  # px, WCAG 2.2, success criterion 2.5.8


@pytest.mark.parametrize("path", ["", "all_heads", "token_flow"])
def test_a_help_can_be_hit_by_finger(path, page, server):
    open_screen(page, server, path)
    helps = page.locator("button[aria-label^=Help]").filter(visible=True)
    sizes = helps.evaluate_all(
        "all => all.map(one => one.getBoundingClientRect()).map(one => [one.width, one.height])"
    )
    assert len(sizes) > 3
    assert [one for one in sizes if min(one) < LEAST] == []


def test_joined_buttons_of_the_first_screen_have_a_help_and_stay_on_one_line(page, server):
    open_screen(page, server)
    for label in ("Cells", "Distance"):
        page.get_by_role("button", name=f"Help for {label}").focus()
        expect(page.get_by_role("tooltip")).to_be_visible()
        page.keyboard.press("Tab")
    for key in ("matrix_controls", "map_controls"):
        middles = (
            page.locator(f".st-key-{key} :is(label, button)")
            .filter(visible=True)
            .evaluate_all(
                "all => all.map(one => one.getBoundingClientRect()).map(one => one.y + one.height / 2)"
            )
        )
        assert max(middles) - min(middles) < 4


@pytest.mark.parametrize("path", ["all_heads", "all_maps"])
def test_a_grid_that_scrolls_sideways_says_so(path, visitors, server):
    phone = visitors(width=400)
    open_screen(phone, server, path)
    expect(phone.get_by_text("Scroll sideways for more heads.")).to_be_visible()
    phone.set_viewport_size({"width": 1400, "height": 900})
    expect(phone.get_by_text("Scroll sideways for more heads.")).to_be_hidden()
