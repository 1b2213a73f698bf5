"""The page "Token flow" in a real browser: pointing, keeping, the keyboard, and a text of 512 tokens."""

import re
from itertools import pairwise
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Page, expect

from attnviz.figures.numbers import number_text
from tests.browser.conftest import LOAD_MS
from tests.browser.screen import (
    DOOR,
    expect_soon,
    link,
    wait_for_link,
    wait_until_drawn,
    wait_until_still,
)

PLACE = {"text": DOOR, "layer": 3, "head": 1, "query": 7}
LONG = "the river flooded an old market twice; Paris reported 17 bridges, and nobody was surprised. " * 40
PAIR = {"text": "The door was old.", "second": "It creaked when we opened it.", "layer": 2, "head": 4}


def open_flow(page: Page, server: str, **params: object) -> None:
    page.goto(f"{server}/token_flow?{urlencode(params)}")
    expect(picture(page)).to_be_visible(timeout=LOAD_MS)
    wait_until_drawn(page, "token_flow")  # until the verdict is there the page asks for it again and again


def picture(page: Page):
    return page.get_by_role("group", name="Token flow: queries on the left, keys on the right")


@pytest.mark.nightly
def test_it_is_as_wide_as_a_wide_page(visitors, server):
    page = visitors(width=1920, height=1080)
    open_flow(page, server, **PLACE)
    place = page.locator(".st-key-token_flow").bounding_box()
    assert place["width"] > 1500
    assert picture(page).bounding_box()["width"] > 0.98 * place["width"]


def token(page: Page, side: str, position: int):
    return picture(page).locator(f"[data-side={side}][data-position='{position}']")


def status(page: Page):
    return page.locator(".live[aria-live=polite]")


def drawn(page: Page) -> int:
    """How many lines can be seen; a level one has no height, and counts for Playwright as invisible."""
    return len(lines(page))


def lines(page: Page) -> list[str]:
    """The colour of each line that can be seen."""
    colours: list[str] = (
        picture(page)
        .locator("path.line")
        .evaluate_all(
            "all => all.filter(path => path.getClientRects().length).map(path => path.getAttribute('stroke'))"
        )
    )
    return colours


def numbers(page: Page) -> dict[tuple[str, int], str]:
    """The numbers that are written, by head and position of the token they stand at."""
    rows = (
        picture(page)
        .locator("text.number")
        .evaluate_all("all => all.map(text => [text.dataset.of, Number(text.dataset.at), text.textContent])")
    )
    return {(head, at): text for head, at, text in rows}


def as_written(weight: float) -> str:
    return number_text(float(weight))


@pytest.fixture
def weights(door_trace):
    return door_trace.weights(3, 1)


def strongest(row, share=0.7) -> set[int]:
    kept, held = set(), 0.0
    for at in (-row).argsort(kind="stable"):
        if held < share * row.sum():
            kept.add(int(at))
            held += row[at]
    return kept


@pytest.mark.nightly
def test_pointing_at_a_query_shows_its_lines_alone_with_their_numbers(page, server, weights):
    open_flow(page, server, **PLACE)
    n_all = sum(len(strongest(row)) for row in weights)
    assert drawn(page) == n_all
    assert numbers(page) == {}
    expect(status(page)).to_contain_text("Hover over a token")

    token(page, "query", 8).hover()
    expect(status(page)).to_contain_text("query opened·8 → ")
    expected = {("L3 H1", key): as_written(weights[8, key]) for key in strongest(weights[8])}
    assert numbers(page) == expected
    assert drawn(page) == len(expected) < n_all
    for (_, key), number in expected.items():
        expect(status(page)).to_contain_text(f"·{key} {number}")

    page.mouse.move(5, 5)
    expect(status(page)).to_contain_text("Hover over a token")
    assert drawn(page) == n_all


@pytest.mark.nightly
def test_pointing_at_a_key_shows_the_lines_that_arrive(page, server, weights):
    open_flow(page, server, **PLACE)
    token(page, "key", 5).hover()
    expect(status(page)).to_contain_text("key door·5 ← ")
    arriving = {query for query, row in enumerate(weights) if 5 in strongest(row)}
    assert len(arriving) > 2
    assert numbers(page) == {("L3 H1", query): as_written(weights[query, 5]) for query in arriving}
    assert drawn(page) == len(arriving)


@pytest.mark.nightly
def test_pointing_asks_nothing_of_the_server(page, server):
    open_flow(page, server, **PLACE)
    page.evaluate("""() => {
        window.sent = 0;
        const send = WebSocket.prototype.send;
        WebSocket.prototype.send = function (...all) { window.sent += 1; return send.apply(this, all); };
    }""")
    for position in range(11):
        token(page, "query", position).hover()
        expect(status(page)).to_contain_text(f"·{position} ")
    assert page.evaluate("window.sent") == 0
    token(page, "query", 3).click()
    wait_for_link(page, query=3, lines_of="query")
    assert page.evaluate("window.sent") > 0  # or nothing was counted


@pytest.mark.nightly
def test_a_click_keeps_a_query_and_picks_it_everywhere(page, server):
    open_flow(page, server, **PLACE)
    token(page, "query", 8).click()
    wait_for_link(page, query=8, lines_of="query")
    expect(page.get_by_text(re.compile("^Layer 3, head 1: “opened” "))).to_be_visible()
    page.mouse.move(5, 5)
    expect(status(page)).to_contain_text("query opened·8 → ")
    expect(token(page, "query", 8)).to_have_attribute("aria-pressed", "true")
    expect(picture(page).locator("[aria-pressed=true]")).to_have_count(1)

    token(page, "key", 0).hover()  # others can still be hovered over
    expect(status(page)).to_contain_text("key [CLS]·0 ← ")
    page.mouse.move(5, 5)
    expect(status(page)).to_contain_text("query opened·8 → ")

    token(page, "query", 8).click()
    page.mouse.move(5, 5)
    expect(status(page)).to_contain_text("Hover over a token")
    page.wait_for_url(lambda url: "lines_of" not in url)
    assert link(page)["query"] == "8"  # it stays the picked one


@pytest.mark.nightly
def test_what_is_kept_stays_for_another_head_and_threshold(page, server, door_trace):
    open_flow(page, server, **PLACE)
    token(page, "query", 5).click()
    wait_for_link(page, query=5, lines_of="query")
    page.get_by_role("button", name="Next").click()
    wait_for_link(page, head=2)
    expect(page.get_by_text(re.compile("^Layer 3, head 2: “door”"))).to_be_visible()
    page.mouse.move(5, 5)
    row = door_trace.weights(3, 2)[5]
    expect_soon(page, numbers, {("L3 H2", key): as_written(row[key]) for key in strongest(row)})
    expect(status(page)).to_contain_text("query door·5 → ")

    page.get_by_role("slider").focus()
    page.keyboard.press("End")
    wait_for_link(page, share=100)
    expect(picture(page).locator("text.number")).to_have_count(11)
    expect(token(page, "query", 5)).to_have_attribute("aria-pressed", "true")


@pytest.mark.nightly
def test_a_kept_key_is_in_the_link(page, server, visitors):
    open_flow(page, server, **PLACE)
    token(page, "key", 5).click()
    wait_for_link(page, key=5, lines_of="key", query=7)
    other = visitors()
    other.goto(page.url)
    expect(status(other)).to_contain_text("key door·5 ← ", timeout=LOAD_MS)
    page.mouse.move(5, 5)
    kept = numbers(page)
    assert kept != {}
    expect_soon(other, numbers, kept)


@pytest.mark.nightly
def test_a_tap_keeps_and_lets_go(visitors, server):
    page = visitors(width=400, height=800)
    open_flow(page, server, **PLACE)
    box = token(page, "query", 7).bounding_box()
    assert box["height"] >= 32

    def tap() -> None:
        token(page, "query", 7).evaluate("""element => {
            const about = {bubbles: true, composed: true, pointerType: 'touch'};
            element.dispatchEvent(new PointerEvent('pointerover', about));
            element.dispatchEvent(new PointerEvent('click', about));
        }""")

    tap()
    expect(status(page)).to_contain_text("query it·7 → [CLS]·0 0.484, door·5 0.475")
    wait_for_link(page, lines_of="query")
    wait_until_drawn(page)  # or the token that is tapped may be one that has just been drawn anew
    tap()
    expect(status(page)).to_contain_text("Hover over a token")  # nothing is left hovered


@pytest.mark.nightly
class TestKeyboard:
    def test_alone_is_enough(self, page, server, weights):
        open_flow(page, server, **PLACE)
        page.get_by_role("button", name="More").focus()
        page.keyboard.press("Tab")
        expect(token(page, "query", 7)).to_be_focused()  # the picked one is reached first
        expect(status(page)).to_contain_text("query it·7 → [CLS]·0 0.484, door·5 0.475")
        page.keyboard.press("ArrowDown")
        expect(token(page, "query", 8)).to_be_focused()
        expect(status(page)).to_contain_text("query opened·8 → ")
        assert drawn(page) == len(strongest(weights[8]))
        page.keyboard.press("ArrowRight")
        expect(token(page, "key", 8)).to_be_focused()
        page.keyboard.press("Home")
        expect(status(page)).to_contain_text("key [CLS]·0 ← ")
        page.keyboard.press("ArrowUp")
        expect(token(page, "key", 0)).to_be_focused()  # there is none above
        page.keyboard.press("End")
        page.keyboard.press("ArrowLeft")
        expect(token(page, "query", 10)).to_be_focused()
        expect(picture(page).locator("[data-side][tabindex='0']")).to_have_count(1)

    def test_keeps_with_enter_and_lets_go_with_escape(self, page, server):
        open_flow(page, server, **PLACE)
        token(page, "query", 7).focus()
        page.keyboard.press("ArrowUp")
        page.keyboard.press("ArrowUp")
        page.keyboard.press("Enter")
        wait_for_link(page, query=5, lines_of="query")
        expect(page.get_by_text(re.compile("^Layer 3, head 1: “door” "))).to_be_visible()
        expect(token(page, "query", 5)).to_be_focused()  # through the new drawing
        page.keyboard.press("Escape")
        expect(status(page)).to_contain_text("Hover over a token")
        page.wait_for_url(lambda url: "lines_of" not in url)
        expect(token(page, "query", 5)).to_be_focused()

    def test_tokens_say_their_numbers(self, page, server):
        open_flow(page, server, **PLACE)
        name = "query it·7 → [CLS]·0 0.484, door·5 0.475"
        expect(page.get_by_role("button", name=name, exact=True)).to_have_count(1)


@pytest.mark.nightly
class TestSeveralHeads:
    def test_have_numbers_of_their_own(self, page, server, door_trace):
        open_flow(page, server, **PLACE, heads="3.5,2.4")
        token(page, "query", 7).hover()
        expect(status(page)).to_contain_text("L3 H1: [CLS]·0 0.484, door·5 0.475; L3 H5: ")
        expected = {
            (f"L{layer} H{head}", key): as_written(door_trace.weights(layer, head)[7, key])
            for layer, head in ((3, 1), (3, 5), (2, 4))
            for key in strongest(door_trace.weights(layer, head)[7])
        }
        assert numbers(page) == expected
        assert len(set(lines(page))) == 3

    def test_can_be_switched_off_in_the_legend(self, page, server):
        open_flow(page, server, **PLACE, heads="3.5,2.4")
        token(page, "query", 7).click()
        page.mouse.move(5, 5)
        switch = page.get_by_role("button", name="lines of Layer 3, head 1")
        switch.focus()
        page.keyboard.press("Enter")
        expect(switch).to_have_attribute("aria-pressed", "false")
        expect(switch).to_be_focused()
        assert {head for head, _ in numbers(page)} == {"L3 H5", "L2 H4"}
        expect(status(page)).not_to_contain_text("L3 H1:")
        page.keyboard.press("Enter")
        assert {head for head, _ in numbers(page)} == {"L3 H1", "L3 H5", "L2 H4"}


@pytest.mark.nightly
def test_the_border_of_a_pair_is_on_both_sides(page, server):
    open_flow(page, server, **PAIR)
    wait_until_still(page)
    borders = (
        picture(page)
        .locator("line.border")
        .evaluate_all("all => all.map(line => line.getBoundingClientRect()).map(box => [box.left, box.top])")
    )
    assert len(borders) == 2
    assert borders[0][1] == borders[1][1]
    for side in ("query", "key"):
        above, below = token(page, side, 6).bounding_box(), token(page, side, 7).bounding_box()
        assert above["y"] < borders[0][1] <= below["y"] + 1
    assert borders[0][0] < borders[1][0]


@pytest.mark.nightly
class TestLongText:
    def test_has_a_bounded_number_of_lines_and_labels_that_can_be_read(self, page, server):
        open_flow(page, server, text=LONG, cut=1, layer=3, head=1, query=155)
        assert 5 < drawn(page) < 200  # those of the selected pair, so that each can be seen
        expect(page.get_by_text(re.compile(r"^2,000 lines, \d+\.\d% of the weight"))).to_be_visible()
        expect(picture(page).locator("[data-side=query]")).to_have_count(512)
        for side in ("query", "key"):
            assert overlapping(page, side) == []
        token(page, "query", 41).hover()
        expect(status(page)).to_contain_text("query old·41 → ")
        assert numbers(page) != {}
        assert drawn(page) < 512
        for side in ("query", "key"):
            assert overlapping(page, side) == []

    def test_the_kept_token_is_in_sight_with_all_its_lines(self, page, server, embedded):
        open_flow(page, server, text=LONG, cut=1, layer=3, head=1, query=377, lines_of="query")
        expect(token(page, "query", 377).locator("text")).to_be_in_viewport()
        row = embedded.trace(LONG, cut=True).weights(3, 1)[377]
        assert drawn(page) == len(strongest(row.astype(float)))


def overlapping(page: Page, side: str) -> list[list[float]]:
    """Neighbouring labels of a side that lie on each other by more than their margins."""
    boxes = (
        picture(page)
        .locator(f"[data-side={side}] text")
        .filter(visible=True)
        .evaluate_all(
            "all => all.map(text => text.getBoundingClientRect()).map(box => [box.top, box.bottom])"
        )
    )
    assert len(boxes) > 10
    boxes.sort()
    return [[upper, lower] for upper, lower in pairwise(boxes) if lower[0] < upper[1] - 4]


@pytest.mark.nightly
def test_on_a_phone_nothing_leaves_the_window_and_long_tokens_are_shortened(visitors, server):
    page = visitors(width=400, height=800, colours="dark")
    text = "Donaudampfschifffahrtsgesellschaft is a long word."
    open_flow(page, server, text=text, unit="words", layer=3, head=1)
    wait_until_still(page)
    assert page.get_by_test_id("stMain").evaluate("element => element.scrollWidth <= element.clientWidth")
    label = token(page, "query", 1).locator("text")
    assert label.text_content().endswith("…")
    box, svg = label.bounding_box(), picture(page).bounding_box()
    assert box["x"] >= svg["x"] - 1
    assert svg["x"] + svg["width"] <= 400
    token(page, "query", 1).click()
    expect(status(page)).to_contain_text("donaudampfschifffahrtsgesellschaft·1")


@pytest.mark.nightly
def test_the_columns_have_room_for_their_names(page, server):
    open_flow(page, server, text="a b c", special="hidden")  # all labels are shorter than "query"
    wait_until_still(page)
    whole = picture(page).bounding_box()
    for side in ("query", "key"):
        box = picture(page).get_by_text(side, exact=True).bounding_box()
        assert whole["x"] <= box["x"]
        assert box["x"] + box["width"] <= whole["x"] + whole["width"]


@pytest.mark.nightly
def test_the_picture_is_one_svg_whose_look_is_in_its_attributes(page, server):
    """Saved as it is, with no style sheet, it looks the same."""
    open_flow(page, server, **PLACE, heads="3.5")
    copied = picture(page).evaluate("""svg => {
        const copy = new DOMParser().parseFromString(new XMLSerializer().serializeToString(svg), 'image/svg+xml');
        const lines = [...copy.querySelectorAll('path.line')], texts = [...copy.querySelectorAll('text')];
        return {
            root: copy.documentElement.tagName,
            box: copy.documentElement.getAttribute('viewBox'),
            font: copy.documentElement.getAttribute('font-family'),
            bare: lines.filter(path => !['d', 'stroke', 'stroke-width'].every(name => path.getAttribute(name))).length,
            lines: lines.length,
            black: texts.filter(text => !text.getAttribute('fill')).length,
            labels: texts.map(text => text.textContent),
        };
    }""")
    assert copied["root"] == "svg"
    assert re.fullmatch(r"0 0 [\d.]+ [\d.]+", copied["box"])
    assert "monospace" in copied["font"]
    assert copied["lines"] > 20 and copied["bare"] == copied["black"] == 0
    assert {"query", "key", "door", "Layer 3, head 5"} <= set(copied["labels"])


@pytest.mark.nightly
def test_tokens_are_shown_as_they_are(page, server):
    open_flow(page, server, text="<b>door</b> $x^2$ &amp; **it**", layer=3, head=1)
    labels = picture(page).locator("[data-side=query] text").all_text_contents()
    assert "".join(labels[1:-1]) == "<b>door</b>$x^2$&amp;**it**"
    assert picture(page).locator("b").count() == 0


@pytest.mark.nightly
def test_a_link(server, page):
    open_flow(page, server, **PLACE, lines_of="query", heads="3.5")
    expect(status(page)).to_contain_text("query it·7 → L3 H1: [CLS]·0 0.484, door·5 0.475; L3 H5: ")
    expect(page.get_by_text(re.compile("^Layer 3, head 1: “it” .*47[.]5%"))).to_be_visible()
    expect(page).to_have_title("Several heads · Explore · attnviz")
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(page.get_by_role("alert")).to_have_count(0)
