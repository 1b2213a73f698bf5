"""Every help can be opened, and a grid that scrolls sideways says so."""

import pytest
from playwright.sync_api import expect

from tests.browser.screen import open_screen, wait_for_link, wait_until_drawn

pytestmark = pytest.mark.nightly

LEAST = 24  # px, WCAG 2.2, success criterion 2.5.8


def open_options(page):
    """Opens the drawer of the stage, which has most of its controls."""
    page.get_by_role("button", name="Options").click()
    expect(page.get_by_role("button", name="Help for Distance")).to_be_visible()


def tooltip(page):
    """Streamlit's; the card of a term is one too, and always there."""
    return page.locator("[role=tooltip]:not(#term_card)")


@pytest.mark.parametrize("path", ["", "all_heads", "token_flow"])
def test_a_help_can_be_hit_by_finger(path, page, server):
    open_screen(page, server, path)
    if path == "":
        open_options(page)
    helps = page.locator("button[aria-label^=Help]").filter(visible=True)
    sizes = helps.evaluate_all(
        "all => all.map(element => element.getBoundingClientRect()).map(box => [box.width, box.height])"
    )
    assert len(sizes) > 3
    assert [size for size in sizes if min(size) < LEAST] == []


def test_joined_buttons_of_the_first_screen_have_a_help(page, server):
    open_screen(page, server)
    open_options(page)
    for label in ("Cells", "Distance"):
        page.get_by_role("button", name=f"Help for {label}").focus()
        expect(tooltip(page)).to_be_visible()
        page.keyboard.press("Tab")


@pytest.mark.parametrize("path", ["all_heads", "all_maps"])
def test_a_grid_that_scrolls_sideways_says_so(path, visitors, server):
    phone = visitors(width=400)
    open_screen(phone, server, path)
    expect(phone.get_by_text("Scroll sideways for more heads.")).to_be_visible()
    phone.set_viewport_size({"width": 1400, "height": 900})
    expect(phone.get_by_text("Scroll sideways for more heads.")).to_be_hidden()


COVERED = """field => {
    const box = field.getBoundingClientRect();
    const steps = [0.02, 0.25, 0.5, 0.75, 0.98];
    return steps.flatMap(x => steps.map(y => [box.x + x * box.width, box.y + y * box.height]))
        .map(([x, y]) => document.elementFromPoint(x, y)).filter(element => !field.contains(element)).length;
}"""
"""At how many places something else lies over a field."""


@pytest.mark.parametrize("colours", ["light", "dark"])
def test_a_tooltip_covers_nothing_after_the_click(colours, visitors, server):
    page = visitors(width=1366, colours=colours)
    open_screen(page, server, layer=3, head=1)
    button = page.get_by_role("button", name="Next", exact=True)
    button.hover()
    expect(tooltip(page)).to_be_visible()
    walk(page, button)
    page.mouse.move(5, 5)
    button.hover()  # who comes back to it may read it again
    expect(tooltip(page)).to_be_visible()


def test_a_click_covers_nothing_on_a_phone(visitors, server):
    page = visitors(width=400, height=800)
    open_screen(page, server, layer=3, head=1)
    walk(page, page.get_by_role("button", name="Next", exact=True))


def walk(page, button):
    """Walks two heads on, and sees the model's field beside the button and the small pictures below it uncovered."""
    for head in (2, 3):
        button.click()
        wait_for_link(page, head=head)
        wait_until_drawn(page)
        expect(tooltip(page)).to_be_hidden()
        for key in ("field_model", "head_rail"):
            assert page.locator(f".st-key-{key}").evaluate(COVERED) == 0


def test_a_finger_opens_only_the_helps_that_are_asked_for(browser, server):
    context = browser.new_context(viewport={"width": 820, "height": 1180}, has_touch=True, is_mobile=True)
    try:
        page = context.new_page()
        open_screen(page, server, layer=3, head=1)
        page.get_by_role("button", name="Next", exact=True).tap()
        wait_for_link(page, head=2)
        wait_until_drawn(page)
        expect(page.locator("[data-testid=stTooltipHoverTarget][aria-describedby]").first).to_be_attached()
        expect(tooltip(page)).to_be_hidden()
        page.get_by_role("button", name="Options").tap()
        page.get_by_role("button", name="Help for Distance").tap()
        expect(tooltip(page)).to_be_visible()
        page.get_by_role("heading", level=1).tap()
        expect(tooltip(page)).to_be_hidden()
    finally:
        context.close()
