"""The first screen for every reader: by axe, by touch, without a connection, in two tabs, by Back and Forward, and by links of before."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, WebSocketRoute, expect

from tests.browser.conftest import LOAD_MS
from tests.browser.screen import (
    DOOR,
    answered,
    cells,
    chip,
    click_cell,
    expect_soon,
    finding,
    head,
    link,
    open_screen,
    picked_chips,
    point_of_cell,
    stage,
    wait_for_link,
    wait_until_drawn,
    wait_until_still,
)
from tests.tiers import first_gates

HEAD = {"text": DOOR, "layer": 3, "head": 1, "query": 7}
READABLE = 4.5  # WCAG 2.2, success criterion 1.4.3

_LETTERS = """() => {
    const pen = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
    const luminance = (...colours) => {
        for (const colour of colours) {
            pen.fillStyle = colour;
            pen.fillRect(0, 0, 1, 1);
        }
        const parts = [...pen.getImageData(0, 0, 1, 1).data.slice(0, 3)].map((part) => part / 255);
        const [red, green, blue] = parts.map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
    };
    return document.attnvizStage.viewer.parts.band.tokens.flatMap((token) => {
        const ground = getComputedStyle(token).backgroundColor;
        return [...token.querySelectorAll(".index, .label, .share")].map((part) => {
            const both = [luminance(ground), luminance(ground, getComputedStyle(part).color)];
            return (Math.max(...both) + 0.05) / (Math.min(...both) + 0.05);
        });
    });
}"""


def found(page: Page) -> list[tuple[str, Any]]:
    """What axe finds, however grave: the rule and where."""
    response = Axe().run(page, options={"resultTypes": ["violations"]}).response
    return [(rule["id"], node["target"]) for rule in response["violations"] for node in rule["nodes"]]


@pytest.mark.parametrize(
    ("colours", "width", "height"),
    first_gates(("light", 1366, 768), ("dark", 1366, 768), ("light", 400, 800), ("dark", 400, 800)),
)
def test_axe_finds_nothing_with_the_options_or_a_cell_open(colours, width, height, visitors, server):
    page = visitors(width=width, height=height, colours=colours)
    open_screen(page, server, **HEAD)
    wait_until_still(page)
    assert found(page) == []
    page.locator(".viewer .options-button").click()
    expect(page.locator(".viewer .options")).to_be_visible()
    assert found(page) == []
    page.keyboard.press("Escape")
    page.mouse.dblclick(*point_of_cell(page, 7, 8))
    expect(page.locator(".viewer .pair svg")).to_be_visible(timeout=LOAD_MS)
    wait_until_still(page)
    assert found(page) == []


@pytest.mark.parametrize("colours", first_gates("light", "dark"))
def test_letters_can_be_read_on_the_tone_of_any_weight(colours, visitors, server, door_trace):
    """Axe leaves out what lies on a mixed colour."""
    page = visitors(colours=colours)
    open_screen(page, server, **HEAD)
    weights = np.stack([[door_trace.weights(layer, of) for of in range(12)] for layer in range(6)])
    itself = np.einsum("lhqq->lhq", weights)[:, :, 1:-1]
    for layer, of, query in (
        np.unravel_index(weights[..., 0].argmax(), weights.shape[:3]),  # a special token's
        np.add(np.unravel_index(itself.argmax(), itself.shape), (0, 0, 1)),
        np.unravel_index(weights[..., 1:-1].max(axis=-1).argmax(), weights.shape[:3]),
    ):
        stage(page, f"viewer.put({{layer: {layer}, head: {of}, query: {query}}})")
        assert min(page.evaluate(_LETTERS)) >= READABLE


class Finger:
    """Touches at places of the window."""

    def __init__(self, page: Page) -> None:
        self._page = page
        self._browser = page.context.new_cdp_session(page)

    def _touch(self, kind: str, *points: tuple[float, float]) -> None:
        touches = [{"x": x, "y": y, "id": number} for number, (x, y) in enumerate(points)]
        self._browser.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": touches})

    def swipe(self, start: tuple[float, float], across: float, down: float) -> None:
        x, y = start
        self._touch("touchStart", start)
        for part in range(1, 11):
            self._touch("touchMove", (x + across * part / 10, y + down * part / 10))
        self._touch("touchEnd")

    def spread(self, middle: tuple[float, float], before: float, after: float) -> None:
        """Two fingers that move apart, or together."""
        x, y = middle
        self._touch("touchStart", (x - before, y), (x + before, y))
        for part in range(1, 9):
            away = before + (after - before) * part / 8
            self._touch("touchMove", (x - away, y), (x + away, y))
        self._touch("touchEnd")


@contextmanager
def own_window(browser: Browser, **how: Any) -> Iterator[Page]:
    """A window of a kind that is not handed from test to test."""
    context = browser.new_context(**how)
    try:
        page = context.new_page()
        errors: list[str] = []
        page.on("pageerror", lambda error: errors.append(str(error)))
        yield page
        assert errors == []
    finally:
        context.close()


@pytest.fixture
def phone(browser: Browser) -> Iterator[Page]:
    with own_window(browser, viewport={"width": 400, "height": 800}, has_touch=True) as page:
        yield page


def scrolled(page: Page) -> float:
    top: float = page.locator("[data-testid=stMain]").evaluate("main => main.scrollTop")
    return top


def test_a_tap_selects_a_token_a_head_and_a_cell(phone, server):
    open_screen(phone, server, **HEAD)
    chip(phone, 6).tap()
    wait_for_link(phone, query=6)
    expect(finding(phone)).to_contain_text("“when”")
    wait_until_drawn(phone)
    head(phone, 2, 3).scroll_into_view_if_needed()
    wait_until_still(phone)
    head(phone, 2, 3).tap()
    expect(finding(phone)).to_contain_text("Layer 2, head 3:")
    assert (link(phone)["layer"], link(phone)["head"]) == ("2", "3")
    phone.touchscreen.tap(*point_of_cell(phone, 4, 5))
    wait_for_link(phone, query=4, key=5)
    assert picked_chips(phone) == [4]


def test_a_swipe_scrolls_the_page_and_the_band_and_no_matrix_holds_it(phone, server):
    open_screen(phone, server, **HEAD)
    wait_until_still(phone)
    band = phone.locator(".viewer .band")
    line = band.locator(".scroller")
    expect(chip(phone, 7)).to_be_in_viewport(ratio=1)
    expect(band.locator(".more.after")).to_be_visible()  # the hint that it goes on
    finger, address = Finger(phone), phone.url
    before = line.evaluate("line => line.scrollLeft")
    box = chip(phone, 7).bounding_box()
    finger.swipe((box["x"] + 5, box["y"] + 20), 120, 0)
    expect_soon(phone, lambda _: line.evaluate("line => line.scrollLeft") < before - 50, True)
    finger.swipe((box["x"] + 5, box["y"] + 20), 0, -150)
    expect_soon(phone, lambda page: scrolled(page) > 50, True)
    wait_until_still(phone)

    place, top = point_of_cell(phone, 4, 5), scrolled(phone)
    finger.swipe(place, 0, -100)
    expect_soon(phone, lambda page: scrolled(page) > top + 50, True)
    wait_until_still(phone)

    place, top = point_of_cell(phone, 4, 5), scrolled(phone)
    finger.spread(place, 20, 60)
    assert stage(phone, "viewer.parts.matrix.window.side") > 40
    for _ in range(4):  # first to the end of the matrix, then on
        finger.swipe(place, 0, -150)
    expect_soon(phone, lambda page: scrolled(page) > top + 100, True)
    assert phone.url == address  # nothing was selected


class Cable:
    """The connection of a page, which can be cut."""

    def __init__(self, page: Page) -> None:
        self._page, self._is_cut = page, False
        self._sockets: list[WebSocketRoute] = []
        page.route_web_socket(re.compile("/_stcore/stream"), self._connect)

    def _connect(self, socket: WebSocketRoute) -> None:
        if self._is_cut:
            socket.close()
            return
        socket.connect_to_server()
        self._sockets.append(socket)

    def cut(self) -> None:
        self._is_cut = True
        self._page.context.set_offline(True)
        while self._sockets:
            self._sockets.pop().close()

    def mend(self) -> None:
        self._is_cut = False
        self._page.context.set_offline(False)


def test_without_a_connection_the_stage_goes_on_and_what_was_selected_is_told_after(
    browser, server, door_trace
):
    with own_window(browser, viewport={"width": 1366, "height": 768}) as page:
        cable = Cable(page)
        open_screen(page, server, **HEAD)
        cable.cut()
        lost = page.get_by_role("status").filter(has_text="No connection to the server")
        expect(lost).to_be_visible()
        head(page, 2, 3).click()
        expect(finding(page)).to_contain_text("Layer 2, head 3:")
        expect_soon(page, lambda page: np.allclose(cells(page), door_trace.weights(2, 3), atol=1e-4), True)
        chip(page, 5).click()
        wait_for_link(page, layer=2, head=3, query=5)
        click_cell(page, 4, 2)
        wait_for_link(page, query=4, key=2)
        for name, fill in (("Matrix", "matrix"), ("Arcs", "token_flow"), ("Together", None)):
            page.locator(".viewer .fills").get_by_role("button", name=name, exact=True).click()
            expect_soon(page, lambda page: link(page).get("filled"), fill)
        page.locator(".viewer .options-button").click()
        page.locator(".viewer [name=special]").select_option("hidden")
        wait_for_link(page, special="hidden")
        assert len(cells(page)) == 9
        page.locator(".viewer .options-close").click()
        expect(page.get_by_role("dialog")).to_have_count(0)
        expect(page.locator(".st-key-map .js-plotly-plot").first).to_be_visible()
        head(page, 5, 7).click()
        wait_for_link(page, layer=5, head=7)

        cable.mend()
        expect(lost).to_be_hidden(timeout=LOAD_MS)
        notes = page.locator(
            ".viewer .notes:not(.old)"
        )  # the server's words about what was selected meanwhile
        expect(notes).to_contain_text("hidden", timeout=LOAD_MS)
        expect(finding(page)).to_contain_text("Layer 5, head 7:")
        assert {"layer": "5", "head": "7", "query": "4", "special": "hidden"}.items() <= link(page).items()
        wait_until_drawn(page)
        before = map_points(page)
        with answered(page):
            head(page, 0, 1).click()
        expect_soon(page, lambda page: map_points(page) != before, True)


def map_points(page: Page) -> Any:
    return page.locator(".st-key-map .js-plotly-plot").first.evaluate(
        "plot => plot._fullData.filter(trace => trace.mode !== 'lines').map(trace => [...trace.x])"
    )


def test_two_tabs_of_one_browser_select_apart(page, server):
    open_screen(page, server, **HEAD)
    other = page.context.new_page()
    open_screen(other, server, **HEAD)
    with answered(page):
        head(page, 2, 3).click()
    with answered(other):
        chip(other, 5).click()
    for tab, layer, query in ((page, 2, 7), (other, 3, 5)):
        tab.bring_to_front()
        assert (link(tab)["layer"], picked_chips(tab)) == (str(layer), [query])
        expect(finding(tab)).to_contain_text(f"Layer {layer}, head")
        with answered(tab):  # the server too has kept them apart
            tab.locator(".viewer .fills").get_by_role("button", name="Matrix", exact=True).click()
        assert (link(tab)["layer"], link(tab)["filled"], picked_chips(tab)) == (str(layer), "matrix", [query])


def test_back_and_forward_walk_through_the_heads_where_one_rested(visitors, server):
    page = visitors(alone=True)  # a window keeps 50 entries of its history, and those of other tests count
    open_screen(page, server, **HEAD)
    began = page.evaluate("history.length")
    heads = [(3, 1), (2, 3), (4, 4), (5, 7)]
    for layer, number in heads[1:]:
        with answered(page):
            head(page, layer, number).click()
    assert page.evaluate("history.length") == began + 3
    for step, (layer, number) in (
        *((page.go_back, at) for at in heads[2::-1]),
        *((page.go_forward, at) for at in heads[1:]),
    ):
        step()
        wait_for_link(page, layer=layer, head=number)
        expect(finding(page)).to_contain_text(f"Layer {layer}, head {number}:", timeout=LOAD_MS)
        wait_until_drawn(page)
        assert (link(page)["layer"], link(page)["head"]) == (str(layer), str(number))


BEFORE: list[tuple[dict[str, object], dict[str, object]]] = [
    ({"filled": "token_flow", "unit": "words", "colour": "logarithmic", "clip": 0}, {"fill": "token_flow", "unit": "words", "colour": "logarithmic", "clip": False}),
    ({"filled": "matrix", "show": "norms", "special": "renormalised", "key": 5}, {"fill": "matrix", "measure": "norms", "special": "renormalised", "key": 5}),
    ({"filled": "map", "show": "scores", "without_first": 1, "kind": "encoder"}, {"fill": "map", "measure": "scores", "withoutFirst": True}),
    ({"show": "rollout", "special": "hidden", "masked": 5}, {"fill": "all", "measure": "rollout", "special": "hidden"}),
    ({"template": "plain", "special": 0}, {"fill": "all", "special": "shown"}),
]  # fmt: skip


@pytest.mark.parametrize(("before", "shown"), first_gates(*BEFORE))
def test_a_link_of_before_opens_its_view(before, shown, page, server):
    page.goto(f"{server}/?{'&'.join(f'{name}={value}' for name, value in ({**HEAD} | before).items())}")
    expect(page.locator(".viewer:not(.waits) .headline")).to_contain_text(
        re.compile("^Layers? .*3, "), timeout=LOAD_MS
    )
    wait_until_drawn(page)
    selection = stage(page, "viewer.selection")
    assert shown.items() <= selection.items()
    assert (selection["layer"], selection["head"], selection["query"]) == (3, 1, 7)
    expect(page.locator(".viewer .pictures > :visible").first).to_be_visible()
    if "masked" in before:
        expect(chip(page, 5)).to_contain_text("[MASK]")
