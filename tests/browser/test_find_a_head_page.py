"""Find a head in Chromium: a pair picked, a head picked for it, and a pair picked for a head."""

import re
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.app.hostile import LABELS, TEXT, TOKENS
from tests.browser.conftest import LOAD_MS
from tests.browser.screen import chip, picked_chips, wait_for_link, wait_until_drawn

LONG = "The old door opened when the river flooded the market. " * 60


def open_find(page: Page, server: str, **params: object) -> None:
    page.goto(f"{server}/find_a_head?{urlencode(params)}")
    expect(rows(page, "best_pairs").first).to_be_visible(timeout=LOAD_MS)
    wait_until_drawn(page)


def rows(page: Page, key: str) -> Locator:
    return page.locator(f".st-key-{key}[data-stale=false] .ranked_list button")


def finding(page: Page) -> Locator:
    return page.get_by_text(re.compile(r"^(Layer \d+, head \d+|No head) gives "))


def pressed(page: Page, key: str) -> Locator:
    return page.locator(f".st-key-{key} .ranked_list button[aria-pressed=true]")


def field(page: Page, label: str) -> Locator:
    return page.get_by_role("combobox", name=label, exact=True)


@pytest.mark.nightly
def test_a_link(server, page):
    open_find(page, server, query=7, key=5, layer=5, head=7)
    expect(finding(page)).to_contain_text(
        "from “it” to “door”, rank 2 of 72 heads; layer 3, head 1 gives the most, 47.5%."
    )
    expect(page).to_have_title("Find a head · All heads · attnviz")


@pytest.mark.nightly
def test_a_click_on_a_head_picks_it_everywhere(page, server):
    open_find(page, server)
    rows(page, "best_heads").nth(1).click()
    wait_for_link(page, layer=5, head=7)
    expect(finding(page)).to_contain_text("Layer 5, head 7 gives 35.6% from “it” to “door”, rank 2")
    expect(pressed(page, "best_heads")).to_have_count(1)
    expect(page.get_by_text("Strongest pairs of layer 5, head 7")).to_be_visible()

    page.locator(".st-key-head_grid [data-layer='2'][data-head='4']").click()
    wait_for_link(page, layer=2, head=4, query=7, key=5)
    page.get_by_test_id("stSidebar").get_by_role("link", name="Explore", exact=True).click()
    expect(page.get_by_text(re.compile(r"^Layer 2, head 4: “it” "))).to_be_visible(timeout=LOAD_MS)


@pytest.mark.nightly
def test_a_click_on_a_pair_or_a_chip_asks_about_it(page, server):
    open_find(page, server)
    rows(page, "best_pairs").first.click()  # opened → door
    wait_for_link(page, query=8, key=5)
    expect(finding(page)).to_contain_text("from “opened” to “door”")
    wait_until_drawn(page)
    assert picked_chips(page) == [8]
    expect(pressed(page, "best_pairs")).to_have_text(re.compile("opened·8 → door·5"))

    chip(page, 2).click()
    wait_for_link(page, query=2, key=5)  # the key stays
    expect(finding(page)).to_contain_text("from “was” to “door”")


@pytest.mark.nightly
def test_the_keyboard_alone_is_enough(page, server):
    open_find(page, server)
    field(page, "Key").focus()
    page.keyboard.type("watching")
    expect(page.get_by_role("option", name="watching·3")).to_be_visible()
    page.keyboard.press("Enter")
    wait_for_link(page, key=3)
    expect(finding(page)).to_contain_text("from “it” to “watching”")

    wait_until_drawn(page)
    rows(page, "best_heads").nth(2).focus()
    wanted = rows(page, "best_heads").nth(2).inner_text().split("\n")[1]
    page.keyboard.press("Enter")
    layer, head = re.findall(r"\d+", wanted)
    wait_for_link(page, layer=layer, head=head)
    wait_until_drawn(page)
    expect(rows(page, "best_heads").nth(2)).to_be_focused()  # on to the next without looking for the place
    expect(rows(page, "best_heads").nth(2)).to_have_attribute("aria-pressed", "true")
    page.keyboard.press("Tab")
    page.keyboard.press("Space")
    expect(rows(page, "best_heads").nth(3)).to_have_attribute("aria-pressed", "true")


@pytest.mark.nightly
def test_a_phrase_is_picked_and_given_up(page, server):
    open_find(page, server)
    field(page, "Key ends at").click()
    page.get_by_role("option", name="when·6").click()
    wait_for_link(page, key=5, key_to=6)
    expect(finding(page)).to_contain_text("from “it” to “door when”")
    chip(page, 8).click()
    wait_for_link(page, query=8, key_to=6)
    wait_until_drawn(page)
    field(page, "Key ends at").click()
    page.get_by_role("option", name="door·5").click()
    expect(finding(page)).to_contain_text("from “opened” to “door”")


@pytest.mark.nightly
def test_of_two_quick_clicks_neither_is_lost(page, server):
    open_find(page, server, layer=0, head=0, query=7, key=5)
    for head, query in enumerate((3, 8, 4, 2, 9, 1), start=1):
        chip(page, query).click()
        page.get_by_role("button", name="Next").click()  # while the fields still hold the query before
        wait_for_link(page, query=query, key=5, layer=0, head=head)
        wait_until_drawn(page)
        wait_for_link(page, query=query, key=5, layer=0, head=head)
    page.reload()
    expect(page.get_by_text("Strongest pairs of layer 0, head 6")).to_be_visible(timeout=LOAD_MS)


@pytest.mark.nightly
def test_tokens_that_look_like_markup_are_text(page, server):
    open_find(page, server, model="hostile", text=TEXT, query=2, key=3)
    labels = {
        f"{label}·{position}" for position, label in enumerate(["[CLS]", "the", *LABELS, "door", "[SEP]"])
    }
    for text in rows(page, "best_pairs").locator("bdi").all_text_contents():
        assert text in labels
    expect(finding(page)).to_contain_text(f"from “{TOKENS[0]}” to “{TOKENS[1]}”")
    expect(page).to_have_title("Find a head · All heads · attnviz")
    for selector in ("img[src=x]", "a[href^='https://example.org']", "b", ".katex", "em", "del"):
        expect(page.get_by_test_id("stMain").locator(selector)).to_have_count(0)


@pytest.mark.nightly
def test_512_tokens_are_found_by_typing(page, server):
    open_find(page, server, text=LONG, cut=1, query=7, key=5)
    field(page, "Query").focus()
    page.keyboard.type("river·403")
    expect(page.get_by_role("option", name="river·403")).to_be_visible()
    page.keyboard.press("Enter")
    wait_for_link(page, query=403)
    expect(finding(page)).to_contain_text("from “river” (token 403) to ", timeout=LOAD_MS)
    wait_until_drawn(page)
    assert picked_chips(page) == [403]


@pytest.mark.nightly
def test_nothing_is_wider_than_a_phone(visitors, server):
    phone = visitors(width=400, colours="dark")
    open_find(phone, server)
    for key in ("best_heads", "best_pairs"):
        for row in rows(phone, key).all():
            box = row.bounding_box()
            assert box["x"] >= 0
            assert box["x"] + box["width"] <= 400
            assert box["height"] >= 32
    assert phone.evaluate("document.documentElement.scrollWidth") <= 400
