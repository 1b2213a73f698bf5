"""The page "Find tokens" in Chromium: bundled and own sentences, another token, what a line opens, a phone."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import LOAD_MS
from tests.browser.screen import (
    answered,
    chip,
    expect_its_one_name,
    finding,
    link,
    open_screen,
    wait_for_link,
    wait_until_drawn,
    wait_until_still,
)

pytestmark = pytest.mark.nightly

LINES = "The old door creaked.\nShe opened the door slowly.\nWhy was it closed?"
HOSTILE = (
    "<img src=x onerror=document.title='hacked'> door\n$x^2$ **door** [link](https://example.org) :smile:"
)


def opened(page: Page, server: str, **asked: object) -> None:
    """The page with its ten lines."""
    open_screen(page, server, "find_tokens", **asked)
    expect(arcs(page)).to_have_count(10, timeout=LOAD_MS)
    wait_until_drawn(page)


def arcs(page: Page):
    """The lines that are drawn; the ones before stand until the next are there."""
    return page.locator("[class*=st-key-found_arcs_][data-stale=false] svg[role=img]")


def spoken(page: Page) -> list[str]:
    """What each line says to a screen reader."""
    return arcs(page).evaluate_all("all => all.map(picture => picture.getAttribute('aria-label'))")


def similarities(page: Page) -> list[float]:
    """The numbers before the lines, without the parts of speech after them."""
    lines = page.locator("[class*=st-key-found_line_]").all_inner_texts()
    return [float(re.match(r"−?[\d.]+", line.strip())[0].replace("−", "-")) for line in lines]


def paste(page: Page, text: str) -> None:
    page.get_by_role("button", name="Your own sentences").click()
    page.get_by_role("textbox", name="One sentence per line").fill(text)
    page.get_by_role("button", name="Show these sentences").click()
    page.keyboard.press("Escape")


def test_a_token_its_lines_and_the_stage(page, server):
    opened(page, server, layer=3, head=1, query=5)
    expect_its_one_name(page, "find_tokens")
    assert similarities(page) == sorted(similarities(page), reverse=True)
    before = spoken(page)
    assert all(re.fullmatch(r".+ attends to .+ with \d+%", line) for line in before)
    expect(finding(page)).to_contain_text("“door”")
    with answered(page):
        chip(page, 3).click()
    wait_for_link(page, query=3)
    expect(finding(page)).to_contain_text("“watching”")
    expect(arcs(page)).to_have_count(10, timeout=LOAD_MS)
    assert spoken(page) != before
    token, key, percent = re.fullmatch(r"(.+) attends to (.+) with (\d+)%", spoken(page)[0]).groups()
    page.locator(".st-key-found_line_0").get_by_role("link", name="Open").click()
    page.wait_for_url(lambda url: "/find_tokens" not in url, timeout=LOAD_MS)
    wait_until_drawn(page, "")
    assert {"layer": "3", "head": "1"}.items() <= link(page).items()
    expect(finding(page)).to_contain_text(f"“{token}”")
    expect(finding(page)).to_contain_text(f"“{key}”")
    expect(finding(page)).to_contain_text(re.compile(rf"\b{percent}(\.\d)?%"))


def test_own_sentences_and_a_query_of_a_head(page, server):
    opened(page, server, layer=3, head=1, query=5)
    paste(page, LINES)
    expect(page.get_by_text(re.compile(r"all 16 tokens of 3 texts were compared"))).to_be_visible(
        timeout=LOAD_MS
    )
    wait_until_drawn(page)
    assert [line.split(" ")[0] for line in spoken(page)][:2] == ["door", "door"]
    hidden = similarities(page)
    with answered(page):
        page.locator(".st-key-part_controls").get_by_text("Query", exact=True).click()
    wait_for_link(page, found_vectors="query")
    assert similarities(page) != hidden


def test_hostile_sentences_do_nothing(visitors, server):
    page = visitors()
    opened(page, server, query=5)
    paste(page, HOSTILE)
    expect(page.get_by_text(re.compile(r"tokens of 2 texts were compared"))).to_be_visible(timeout=LOAD_MS)
    expect(page).to_have_title("Find tokens · Many texts · attnviz")
    expect(page.get_by_test_id("stMain").locator("img[src=x], b, .katex")).to_have_count(0)


def test_a_phone(visitors, server):
    page = visitors(width=400, height=850)
    opened(page, server, query=5)
    wait_until_still(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
