"""The matrix of a long text, travelled in a page that holds its overview and one place."""

import re

import pytest
from playwright.sync_api import Page, expect

from attnviz.figures.numbers import share_text
from attnviz.viewer.page import stage_page
from tests.browser.test_viewer_page import offline  # noqa: F401 - a fixture
from tests.long_stage import LINK, long_trace


@pytest.fixture
def page(offline: Page, tmp_path) -> Page:  # noqa: F811
    place = {"layer": 1, "head": 1, "measure": "weights", "pool": "max"}
    made = stage_page(
        long_trace(), layer=1, head=1, visited=[("tiles", {**place, "level": 0, "at": [[4, 0]]})]
    )
    (file := tmp_path / "long.html").write_text(made, encoding="utf-8")
    offline.goto(file.as_uri())
    expect(offline.locator(".viewer .far button")).to_have_count(10)
    return offline


def test_a_long_text_is_travelled(page: Page) -> None:
    query, key = LINK
    weight = share_text(float(long_trace().weights(1, 1)[LINK]))
    live, text = page.locator(".matrix .live"), page.locator(".passage .text")
    expect(page.locator(".viewer .headline")).to_contain_text(f"“␣word{key}” ({weight})")
    expect(page.locator(f".passage [data-at='{query}']")).to_have_class("query")
    expect(page.locator(".matrix .told")).to_contain_text("largest in each block of 8 × 8")
    assert page.locator(".band, .fills, .flow").evaluate_all("all => all.every(one => !one.offsetParent)")

    page.locator(".far button").first.click()  # near enough to see single cells, which this page holds there
    expect(page.locator(".matrix .told")).not_to_contain_text("block")
    expect(live).to_have_text(f"“␣word{query}”·{query} → “␣word{key}”·{key}: {weight}")
    expect(page.locator(".row-profile path")).to_have_count(1)
    expect(page.locator(".passage .chunk.beside").first).to_be_attached()
    row = int(re.search(r"·(\d+)", page.locator(".matrix .rows text").first.text_content()).group(1))
    assert query - 60 < row < query

    page.get_by_label("Find in the text").fill("needle")
    page.get_by_label("Find in the text").press("Enter")
    expect(page.locator(".passage .count")).to_have_text("1 of 1")
    expect(page.locator(".passage [data-at='900']")).to_have_class("query")
    expect(page.locator(".viewer .notes")).to_contain_text(
        "This page "
    )  # holds neither its row nor the cells around it: whichever answer comes last
    assert text.evaluate("box => box.scrollTop") > 0

    page.get_by_role("button", name="Whole matrix").click()
    expect(page.locator(".passage .chunk.beside")).to_have_count(0)
    page.locator(".matrix .sheet").press("ArrowLeft")
    expect(live).to_contain_text(re.compile(r"at most, in 8 × 8 cells here: .*%|masked"))
