"""Links, one of them the very first visit after the server's start, when nothing has run yet."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import LOAD_MS
from tests.browser.screen import finding, link, open_screen, picked_chips, sentence
from ui.rooms import ROOMS

pytestmark = pytest.mark.nightly

NAMES = [room.name for room in ROOMS if room.in_menu]


def menu(page):
    links = page.locator(".st-key-menu").get_by_role("link")
    expect(links).to_have_count(len(NAMES))
    return links.all_inner_texts()


def names(page):
    return [re.sub(r"^\w+\n", "", entry).strip() for entry in menu(page)]  # the icon's name comes first


def test_a_link_to_the_first_screen(server, page):
    open_screen(page, server, text="The old door creaked.", layer=4, head=2, query=3, special="hidden")

    expect(finding(page)).to_contain_text(re.compile("^Layer 4, head 2: .*“door”"))
    expect(sentence(page)).to_have_value("The old door creaked.")
    assert picked_chips(page) == [3]
    assert link(page)["special"] == "hidden"
    assert names(page) == NAMES
    expect(page.get_by_role("alert")).to_have_count(0)
    expect(page.get_by_role("dialog")).to_have_count(0)


def test_a_link_that_is_the_first_visit_to_a_server(fresh_server, page):
    open_screen(page, fresh_server, "verification", text="The old door creaked.", layer=4, head=2, query=3)

    expect(page.get_by_text("The row of “door” (token 3) in layer 4, head 2")).to_be_visible()
    expect(sentence(page)).to_have_value("The old door creaked.")
    assert names(page) == NAMES
    expect(page).to_have_title("Verification · attnviz")
    expect(page.get_by_text("Page not found")).to_have_count(0)
    expect(page.get_by_role("dialog")).to_have_count(0)


def test_a_link_to_a_term_shows_it_and_keeps_what_is_picked(server, page):
    open_screen(page, server, "claims", text="The old door creaked.", layer=4, head=2, query=3)
    with page.context.expect_page() as opened:
        page.get_by_role("link", name="softmax").click()
    term = opened.value.get_by_role("heading", name="Softmax", exact=True)
    expect(term).to_be_in_viewport(timeout=LOAD_MS)
    expect(opened.value.get_by_text("the weights of “door” sum to 1.000000")).to_be_in_viewport(
        timeout=LOAD_MS
    )
    below_the_bar = "() => document.getElementById('softmax').getBoundingClientRect().y >= 60"
    opened.value.wait_for_function(below_the_bar, timeout=LOAD_MS)
    opened.value.get_by_role("link", name="Step by step").last.click()
    expect(opened.value).to_have_url(re.compile(r"/step_by_step\?.*layer=4&head=2&query=3"), timeout=LOAD_MS)
