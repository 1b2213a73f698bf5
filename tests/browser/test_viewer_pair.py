"""An opened cell: its numbers as given, its keys, and tokens as text, in a page with nothing but its modules."""

import json
from dataclasses import asdict

import pytest
from playwright.sync_api import Page

from attnviz import viewer
from attnviz.figures.theme import FONT, THEMES, TOKEN_FONT
from attnviz.model.trace import Trace
from attnviz.viewer.pair import PairData, pair_data, pair_json
from tests.browser.conftest import ROOT, Visitors

HOSTILE = '<img src=x onerror="alert(1)">'
OPEN = """([data, look, from]) => {
  window.timesClosed = 0;
  window.pair = new Pair({ close: () => window.timesClosed++ });
  document.querySelector(".viewer").append(pair.root);
  document.querySelector("#cell").focus();
  pair.show(data, look, from);
}"""


@pytest.fixture(scope="module")
def data(door_trace: Trace) -> PairData:
    return pair_data(door_trace, 3, 1, 7, 5, kind=None)


def open_pair(page: Page, written: bytes, at: tuple[int, int] = (300, 200)) -> None:
    """A page that is as high as its window, with the panel over the cell at this place."""
    colours = {name: value for name, value in asdict(THEMES["light"]).items() if isinstance(value, str)}
    look = {"colours": colours, "font": FONT, "tokenFont": TOKEN_FONT}
    style = (ROOT / "attnviz" / "viewer" / "pair.css").read_text()
    script = viewer.joined("svg", "html", "measure", "pair")
    page.set_content(
        f"<style>body {{ margin: 0 }} .viewer {{ position: relative; height: 100vh }} {style}</style>"
        '<div class="viewer"><button id="cell" type="button">cell</button></div>'
        f"<script>{script}; window.Pair = Pair;</script>"
    )
    page.evaluate(OPEN, [json.loads(written), look, dict(zip("xy", at, strict=True))])


def test_numbers_stand_there_as_given(page: Page, data: PairData) -> None:
    open_pair(page, pair_json(data))
    texts = page.locator(".pair svg text").all_text_contents()
    given = [piece.text for piece in (*data.score, *data.softmax)] + [
        data.weight,
        data.exponentials,
        data.total,
    ]
    given += [
        text
        for row in data.rows
        for text in (row.label, row.score_text, row.exponential_text, row.weight_text)
    ]
    assert [text for text in given if text not in texts] == []
    drawn = " ".join(texts)  # captions are in several lines
    assert all(word in drawn for caption in data.captions for word in caption.text.split())

    page.locator('[data-strip="product"][data-cell="21"]').hover()
    query, key, product = (strip.texts[21] for strip in data.products.strips)
    assert page.locator(".pair-live").inner_text() == f"dimension 21: query {query} × key {key} = {product}"
    page.locator(".pair-screen").focus()
    page.keyboard.press("ArrowRight")
    assert page.locator(".pair-live").inner_text().startswith("dimension 22: ")


def test_the_weight_goes_on_from_its_own_row(page: Page, data: PairData) -> None:
    """The line ends at the frame of the picked row, which has its label and its weight."""
    open_pair(page, pair_json(data))
    within = page.evaluate(
        """() => {
          const { top, bottom } = document.querySelector('.pair svg rect[rx="4"]').getBoundingClientRect();
          const isWithin = (box) => top < (box.top + box.bottom) / 2 && (box.top + box.bottom) / 2 < bottom;
          return [...document.querySelectorAll(".pair svg text")].filter((text) => text.getAttribute("font-family") && isWithin(text.getBoundingClientRect()))
            .map((text) => text.textContent);
        }"""
    )
    [row] = [row for row in data.rows if row.is_picked]
    assert within == [row.label, row.score_text, row.exponential_text, row.weight_text]


@pytest.mark.parametrize("way", ["Escape", "outside", "button"])
def test_closes_and_gives_the_focus_back(page: Page, data: PairData, way: str) -> None:
    open_pair(page, pair_json(data))
    assert page.get_by_role("dialog", name=data.name).evaluate("dialog => dialog === document.activeElement")
    if way == "Escape":
        page.keyboard.press("Tab")  # from whatever has the focus
        page.keyboard.press("Escape")
    elif way == "button":
        page.get_by_role("button", name="Close").click()
    else:
        page.locator("#cell").click()
    assert page.locator(".pair").count() == 0
    assert page.evaluate("[timesClosed, document.activeElement.id]") == [1, "cell"]
    page.keyboard.press("Escape")
    assert page.evaluate("timesClosed") == 1


def test_a_token_stays_text(page: Page, data: PairData) -> None:
    open_pair(page, pair_json(data).replace(b"door", json.dumps(HOSTILE)[1:-1].encode()))
    assert page.locator(".pair img").count() == 0
    assert HOSTILE in page.get_by_role("dialog").get_attribute("aria-label")  # type: ignore[operator]


@pytest.mark.parametrize(("width", "height"), [(400, 700), (620, 900), (1366, 768)])
def test_nothing_is_cut_off(visitors: Visitors, embedded, width: int, height: int) -> None:
    page = visitors(width=width, height=height, motion=False)
    trace = embedded.trace("antidisestablishmentarianism made the cat sit on the mat of the old house " * 3)
    open_pair(page, pair_json(pair_data(trace, 2, 5, 9, 30, kind=None)), (80, 120))
    beyond = page.evaluate(
        """() => {
          const svg = pair.picture.svg.getBoundingClientRect();
          const isBeyond = ({ left, right }) => left < svg.left - 0.5 || right > svg.right + 0.5;
          return [...pair.picture.svg.querySelectorAll("text, rect:not([visibility])")].filter((drawn) => isBeyond(drawn.getBoundingClientRect()))
            .map((drawn) => drawn.outerHTML);
        }"""
    )
    assert beyond == []
    assert page.evaluate("pair.screen.scrollWidth <= pair.screen.clientWidth")
    assert page.evaluate(
        "pair.picture.svg.getBoundingClientRect().right <= pair.root.getBoundingClientRect().right"
    )
    box = page.locator(".pair").bounding_box()
    assert box is not None
    assert box["x"] >= 0 and box["x"] + box["width"] <= width
    assert box["y"] >= 0 and box["y"] + box["height"] <= height
    if width > 560:
        assert box["x"] >= 80 or box["y"] >= 120  # the row's label is on the left of the cell
