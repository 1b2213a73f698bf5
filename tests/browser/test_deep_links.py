"""A link that is the very first visit after the server's start, when nothing has run yet."""

import re

from playwright.sync_api import expect

from tests.browser.screen import finding, link, open_screen, picked_chips, sentence


def menu(page):
    return page.get_by_test_id("stSidebar").get_by_role("link").all_inner_texts()


def names(page):
    return [re.sub(r"^\w+\n", "", one).strip() for one in menu(page)]  # the icon's name comes first


def test_a_link_to_the_first_screen(fresh_server, page):
    open_screen(page, fresh_server, text="The old door creaked.", layer=4, head=2, query=3, special="hidden")

    expect(finding(page)).to_contain_text("Layer 4, head 2: “door” gives")
    expect(sentence(page)).to_have_value("The old door creaked.")
    assert picked_chips(page) == [3]
    assert link(page)["special"] == "hidden"
    assert names(page) == ["Attention", "Verification"]
    expect(page.get_by_role("alert")).to_have_count(0)
    expect(page.get_by_role("dialog")).to_have_count(0)


def test_a_link_to_the_verification_page(fresh_server, page):
    open_screen(page, fresh_server, "verification", text="The old door creaked.", layer=4, head=2, query=3)

    expect(page.get_by_text("The row of “door” (token 3) in layer 4, head 2")).to_be_visible()
    expect(sentence(page)).to_have_value("The old door creaked.")
    assert names(page) == ["Attention", "Verification"]
    assert page.title() == "Verification · attnviz"
    expect(page.get_by_text("Page not found")).to_have_count(0)
    expect(page.get_by_role("dialog")).to_have_count(0)
