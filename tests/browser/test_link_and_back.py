"""The address of the first screen: a link shows the same again, and Back the screen before."""

from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import LOAD_MS
from tests.browser.screen import (
    DOOR,
    chips,
    click_cell,
    expect_soon,
    finding,
    open_screen,
    readout,
    screen,
    sentence,
    show_attention,
    wait_for_link,
    wait_until_drawn,
)


@pytest.mark.nightly
def test_a_link_shows_the_same_screen_again_and_to_others(page, server, visitors):
    open_screen(page, server)
    show_attention(page, "The old man the boats.")
    wait_for_link(page, text="The old man the boats.")
    page.get_by_role("button", name="Next").click()
    wait_for_link(page, head=2)
    wait_until_drawn(page)
    click_cell(page, 4, 2)
    wait_for_link(page, query=4, key=2)
    page.get_by_role("button", name="Options").press("Enter")
    page.get_by_role("combobox", name="Cells").select_option("Scores")
    wait_for_link(page, show="scores")
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Reading and map").click()
    page.get_by_role("radio", name="Euclidean", exact=True).click()
    wait_for_link(page, metric="euclidean")
    page.keyboard.press("Escape")
    wait_until_drawn(page)
    page.mouse.move(5, 5)
    expect(readout(page)).to_contain_text("“the”·4 → “old”·2: ")
    before = screen(page)

    page.reload()
    wait_until_drawn(page)
    expect(readout(page)).to_have_text(before["readout"])
    assert screen(page) == before

    other = visitors()
    other.goto(page.url)
    wait_until_drawn(other)
    expect(readout(other)).to_have_text(before["readout"])
    assert screen(other) == before
    expect(other.get_by_text("The link asks for")).to_have_count(0)


@pytest.mark.nightly
def test_back_returns_to_the_screen_before(page, server):
    open_screen(page, server)
    page.get_by_role("button", name="Next").click()
    wait_for_link(page, head=2)
    expect(finding(page)).to_contain_text("head 2:")
    show_attention(page, "the door")
    wait_for_link(page, text="the door")
    expect(chips(page)).to_have_count(4)
    wait_until_drawn(page)

    page.go_back()
    expect(chips(page)).to_have_count(11)
    expect(finding(page)).to_contain_text("Layer 3, head 2:")
    expect(sentence(page)).to_have_value(DOOR)
    wait_until_drawn(page)
    page.go_back()
    expect(finding(page)).to_contain_text("Layer 3, head 1:")
    assert page.url.startswith(server)


def test_a_link_of_the_menu_leads_on_with_what_is_selected_and_one_back_returns(page, server):
    open_screen(page, server)
    page.get_by_role("button", name="Next").click()
    wait_for_link(page, head=2)
    wait_until_drawn(page)
    here = page.url
    link = page.get_by_role("link", name="How it works", exact=True)
    link.hover()
    assert selection_of(link.evaluate("link => link.href")) == selection_of(here)
    with page.context.expect_page() as opened:
        link.click(button="middle")
    opened.value.wait_for_url("**/step_by_step?**", wait_until="commit")
    assert selection_of(opened.value.url) == selection_of(here)
    opened.value.close()

    link.click()
    expect(page.get_by_role("heading", level=1)).to_have_text("How it works")
    wait_until_drawn(page)
    assert selection_of(page.url) == selection_of(here)
    page.go_back()
    expect(finding(page)).to_contain_text("Layer 3, head 2:")
    wait_until_drawn(page)
    assert page.url == here


def selection_of(address: str) -> dict[str, list[str]]:
    """The parameters of an address."""
    return parse_qs(urlsplit(address).query, keep_blank_values=True)


@pytest.mark.nightly
@pytest.mark.parametrize(("address", "name"), [("teach", "Start"), ("scaling?layer=2", "Explore")])
def test_a_link_to_the_first_screen_opens_it_in_another_tab_too(server, page, address, name):
    """Streamlit gives its first page no path; what a browser opens elsewhere, or copies, is the address itself."""
    page.goto(f"{server}/{address}")
    wait_until_drawn(page)
    link = page.get_by_role("link", name=name, exact=True).first
    link.hover()
    expect_soon(page, lambda page: link.evaluate("link => new URL(link.href).pathname"), "/")
    other = page.context.new_page()
    other.goto(link.evaluate("link => link.href"))
    expect(other.locator(".st-key-stage")).to_be_visible(timeout=LOAD_MS)
    link.click()
    expect(page.locator(".st-key-stage")).to_be_visible(timeout=LOAD_MS)
