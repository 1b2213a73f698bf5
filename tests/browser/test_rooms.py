"""The rooms in Chromium: their parts by key, an address that was a page of its own, and the cards of terms."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import LOAD_MS
from tests.browser.screen import answered, current, link, open_screen, row, wait_for_link
from ui.words.glossary import TERMS

PLACE = {"text": "The old door creaked.", "layer": 2, "head": 5, "query": 3}
TO_PARTS = 12  # presses of Tab that are enough to get from the logo through the menu to the row


def press_until(page: Page, key: str, focused: str) -> None:
    """Presses a key until the element that has the focus says this."""
    for _ in range(TO_PARTS):
        if page.evaluate("document.activeElement.innerText").strip() == focused:
            return
        page.keyboard.press(key)
    raise AssertionError(f"{focused} has not got the focus in {TO_PARTS} presses of {key}")


@pytest.mark.nightly
def test_a_link_of_before_opens_its_part_and_the_keyboard_alone_leads_on(page, server):
    open_screen(page, server, "token_flow", **PLACE)
    expect(current(page)).to_contain_text(["Explore", "Several heads"])
    before = {name: str(value) for name, value in PLACE.items()}
    assert before.items() <= link(page).items()

    row(page).first.focus()
    press_until(page, "Tab", "Together")
    with answered(page):
        page.keyboard.press("Enter")
    expect(current(page)).to_contain_text(["Explore", "Together"])
    with answered(page):
        page.get_by_role("button", name="Matrix", exact=True).press("Enter")
    wait_for_link(page, filled="matrix")
    expect(page.locator(".viewer .matrix")).to_be_visible()
    expect(page.locator(".st-key-map")).to_have_count(0)
    assert before.items() <= link(page).items()

    page.locator(".st-key-menu").get_by_role("link", name="Myths").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Myths", timeout=LOAD_MS)
    expect(current(page)).to_contain_text(["Myths"])
    expect(row(page)).to_have_count(0)
    with answered(page):
        page.locator(".st-key-menu").get_by_role("link", name="Explore").click()
    expect(current(page)).to_contain_text(["Explore", "Together"])
    wait_for_link(page, filled="matrix")  # as it was left


def card(page: Page):
    return page.get_by_role("tooltip").and_(page.locator("#term_card"))


def says(name: str) -> re.Pattern[str]:
    return re.compile(rf"^{name}: {re.escape(TERMS[name].means.split('.')[0])}")


@pytest.mark.nightly
@pytest.mark.parametrize("colours", ["light", "dark"])
def test_a_term_is_explained_to_pointer_and_keyboard(colours, visitors, server):
    page = visitors(width=1366, height=768, colours=colours)
    open_screen(page, server, "history", **PLACE)
    expect(card(page)).to_be_hidden()
    term = page.get_by_role("link", name="keys", exact=True)
    term.hover()
    expect(card(page)).to_have_text(says("Key"))
    expect(term).to_have_attribute("aria-describedby", "term_card")
    expect(card(page)).to_be_in_viewport(ratio=1)
    card(page).hover()  # who reads it with the pointer keeps it
    page.keyboard.press("Escape")
    expect(card(page)).to_be_hidden()

    page.get_by_role("link", name="query", exact=True).focus()
    expect(card(page)).to_have_text(says("Query"))
    page.keyboard.press("Tab")
    expect(card(page)).to_have_text(says("Key"))
    page.keyboard.press("Escape")
    expect(card(page)).to_be_hidden()
    expect(term).to_be_focused()


@pytest.mark.nightly
def test_a_tap_on_a_term_opens_its_card_and_a_second_one_its_page(browser, server):
    context = browser.new_context(viewport={"width": 400, "height": 800}, has_touch=True, is_mobile=True)
    try:
        page = context.new_page()
        open_screen(page, server, "history", **PLACE)
        term = page.get_by_role("link", name="keys", exact=True)
        term.tap()
        expect(card(page)).to_have_text(says("Key"))
        expect(card(page)).to_be_in_viewport(ratio=1)
        assert len(context.pages) == 1
        page.get_by_role("heading", level=1).tap()
        expect(card(page)).to_be_hidden()
        term.tap()
        with context.expect_page() as opened:
            term.tap()
        expect(opened.value).to_have_url(re.compile("/glossary.*#key$"))
        assert {name: str(value) for name, value in PLACE.items()}.items() <= link(opened.value).items()
    finally:
        context.close()


@pytest.mark.nightly
def test_the_glossary_is_searched_in_a_drawer_that_escape_closes(page, server):
    open_screen(page, server, **PLACE)
    page.get_by_role("button", name="Glossary").click()
    drawer = page.get_by_role("dialog")
    search = drawer.get_by_role("textbox", name="Search")
    search.fill("causal mask")
    search.press("Enter")
    expect(drawer.get_by_text("Causal mask:")).to_be_visible()
    expect(drawer.get_by_text("Token:", exact=True)).to_have_count(0)
    search.fill("zebra")
    search.press("Enter")
    expect(drawer.get_by_text("No term has “zebra” in its name or its meaning.")).to_be_visible()
    page.keyboard.press("Escape")
    expect(drawer).to_have_count(0)
    assert {name: str(value) for name, value in PLACE.items()}.items() <= link(page).items()
