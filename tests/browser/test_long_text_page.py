"""A long text in the app, from the page that is opened to the place that a reload leads back to."""

import re
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Page, expect

from attnviz.model.catalogue import SMOLLM2
from tests.browser.conftest import LOAD_MS
from tests.browser.screen import link
from ui.choice.presets import long_preset

pytestmark = pytest.mark.nightly

TEXT = long_preset().text[:4600]
"""About 1,100 tokens of SmolLM2."""


def test_a_long_text_is_travelled_in_the_app(page: Page, server: str) -> None:
    place = long_preset().head
    params = {"model": SMOLLM2, "text": TEXT, "layer": place.layer, "head": place.head}
    page.goto(f"{server}/?{urlencode(params)}")
    links = page.locator(".viewer .far button")
    expect(links).to_have_count(10, timeout=LOAD_MS)
    told = page.locator(".matrix .told")
    expect(told).to_contain_text("largest in each block of")

    # the head looks at the same word further up, and a click on a link leads to single cells
    query, at_query, key, at_key, share = re.fullmatch(
        r"(.+)·(\d+) → (.+)·(\d+) +([\d.]+%)", links.first.text_content() or ""
    ).groups()
    assert query == key and int(at_query) - int(at_key) >= 64
    links.first.click()
    expect(told).not_to_contain_text("block", timeout=LOAD_MS)  # a tile has come
    expect(page.locator(".matrix .live")).to_have_text(
        f"“{query}”·{at_query} → “{key}”·{at_key}: {share}", timeout=LOAD_MS
    )
    assert page.locator(".matrix .sheet").evaluate("sheet => sheet.getBoundingClientRect().top >= 0")
    expect(page.locator(f".passage [data-at='{at_query}']")).to_have_class("query")

    # the text is searched, and the matrix follows
    find = page.get_by_label("Find in the text")
    find.fill("Dinah")
    find.press("Enter")
    expect(page.locator(".passage .count")).to_have_text(f"1 of {TEXT.count('Dinah')}")
    expect(page.locator(".passage .query")).to_have_text("Din")
    at = int(page.locator(".passage .query").get_attribute("data-at") or 0)
    expect(page.locator(".headline")).to_contain_text(f"“Din” (token {at})", timeout=LOAD_MS)

    # the address leads back to the place
    expect(page).to_have_url(re.compile(rf"query={at}\b"))
    seen = link(page)["seen"]
    page.reload()
    expect(page.locator(".headline")).to_contain_text(f"“Din” (token {at})", timeout=LOAD_MS)
    assert link(page)["seen"] == seen
    first, _, n_row = map(int, seen.split("."))
    assert first <= at < first + n_row
