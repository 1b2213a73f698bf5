"""How reliable a map is, in a real browser: a map of the ranking is taken over, and a figure explains itself."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import LOAD_MS
from tests.browser.screen import plot, wait_until_drawn

pytestmark = pytest.mark.nightly

PLACE = "query_key_map?layer=3&head=1&query=7&key=5&method=pca&space=raw"
ROW = 35  # px, Streamlit's


def open_place(page: Page, server: str) -> None:
    page.goto(f"{server}/{PLACE}")
    expect(plot(page, "pair")).to_be_visible(timeout=LOAD_MS)
    wait_until_drawn(page)


def test_a_ticked_map_is_shown(page: Page, server: str) -> None:
    open_place(page, server)
    expect(page.get_by_text("B: implied by the map")).to_have_count(0)
    page.get_by_role("button", name="Compare all maps of this head").click()
    # The attention map is the first to be made; t-SNE and UMAP, which take long, come last.
    expect(page.get_by_text(re.compile(r"^[1-9]\d? of 22 maps done"))).to_be_visible(timeout=LOAD_MS)
    page.get_by_role("button", name="Cancel", exact=True).click()
    expect(page.get_by_role("button", name="Go on")).to_be_visible(timeout=LOAD_MS)
    wait_until_drawn(page)
    table = page.get_by_test_id("stDataFrame")
    expect(table.locator("canvas").first).to_be_visible()  # on which the rows are drawn
    table.click(position={"x": 17, "y": 1.5 * ROW})
    expect(page.get_by_text("B: implied by the map")).to_be_visible(timeout=LOAD_MS)
    expect(page).not_to_have_url(re.compile("method="))  # the attention map is the default


def test_a_figure_is_explained_by_key(page: Page, server: str) -> None:
    open_place(page, server)
    figure = page.get_by_text("Nearest key has the largest weight", exact=True)
    words = figure.locator("xpath=following-sibling::span")
    expect(words).to_be_hidden()
    figure.focus()
    page.keyboard.press("Enter")
    expect(words).to_be_visible()
