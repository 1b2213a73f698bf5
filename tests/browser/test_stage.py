"""The stage of the first screen: what it shows at once, and that pointing at it is answered without the server."""

import re
from urllib.parse import urlencode

import numpy as np
import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import LOAD_MS
from tests.browser.screen import (
    DOOR,
    answered,
    cells,
    chip,
    expect_soon,
    head,
    open_screen,
    picked_chips,
    plot,
    wait_until_drawn,
)
from ui.words.glossary import TERMS

HEAD = {"text": DOOR, "layer": 3, "head": 1, "query": 7}


def arcs(page: Page) -> Locator:
    return page.locator(".viewer .band svg path")


def ends(page: Page) -> dict[int, float]:
    """The weight of each key that has an arc, by its position."""
    return {
        int(key): float(weight)
        for key, weight in arcs(page).evaluate_all(
            "all => all.map(element => [element.dataset.key, element.dataset.weight])"
        )
    }


@pytest.fixture
def sent(page: Page) -> list[object]:
    """What the page sends to the server from now on."""
    frames: list[object] = []
    page.on("websocket", lambda socket: socket.on("framesent", lambda frame: frames.append(frame)))
    return frames


@pytest.mark.nightly
def test_it_begins_above_the_fold_and_shows_tokens_matrix_map_and_heads(page, server):
    page.set_viewport_size({"width": 1366, "height": 768})
    open_screen(page, server, "", **HEAD)
    assert page.locator("[data-attnviz=stage]").bounding_box()["y"] < 200
    for part in (page.locator(".viewer .matrix"), plot(page, "map"), head(page, 0, 0), chip(page, 0)):
        box = part.bounding_box()
        assert (
            box["y"] >= 0 and box["y"] + box["height"] <= 768 + 40
        )  # the last line of a chart is its colour bar


def test_pointing_at_a_token_or_a_head_asks_nothing_of_the_server(page, server, sent, door_trace):
    open_screen(page, server, "", **HEAD)
    wait_until_drawn(page)
    own = {key: weight for key, weight in enumerate(door_trace.weights(3, 1)[7]) if weight >= 0.02}
    expect_soon(page, ends, {key: pytest.approx(weight, abs=1e-3) for key, weight in own.items()})
    n_sent = len(sent)

    chip(page, 3).hover()
    other = {key: weight for key, weight in enumerate(door_trace.weights(3, 1)[3]) if weight >= 0.02}
    expect_soon(page, ends, {key: pytest.approx(weight, abs=1e-3) for key, weight in other.items()})

    head(page, 2, 3).hover()
    previewed = door_trace.weights(2, 3)
    expect_soon(page, lambda page: abs(ends(page).get(8, 0) - previewed[7][8]) < 1e-3, True)
    expect_soon(page, lambda page: np.allclose(cells(page), previewed, atol=1e-4), True)

    page.mouse.move(5, 5)
    expect_soon(page, lambda page: np.allclose(cells(page), door_trace.weights(3, 1), atol=1e-4), True)
    expect_soon(page, ends, {key: pytest.approx(weight, abs=1e-3) for key, weight in own.items()})
    assert len(sent) == n_sent


@pytest.mark.nightly
@pytest.mark.parametrize("motion", [True, False])
def test_on_the_first_visit_and_never_again_the_arcs_draw_themselves(motion, server, visitors):
    page = visitors(motion=motion, alone=True)
    open_screen(page, server, "", **HEAD)
    expect(arcs(page).first).to_have_css("animation-name", "draw-arc" if motion else "none")
    chip(page, 3).hover()
    expect(arcs(page).first).to_have_css("animation-name", "none")
    page.mouse.move(5, 5)
    expect(arcs(page).first).to_have_css("animation-name", "none")
    open_screen(page, server, "", **HEAD)
    expect(arcs(page).first).to_have_css("animation-name", "none")


def test_a_click_on_a_head_settles_it(page, server):
    open_screen(page, server, "", **HEAD)
    with answered(page):
        head(page, 2, 3).click()
    expect(page).to_have_url(re.compile("layer=2&head=3"))
    assert picked_chips(page) == [7]


def test_enter_shows_the_sentence_and_shift_enter_begins_a_line(page, server):
    open_screen(page, server, "", **HEAD)
    field = page.get_by_role("textbox", name="Sentence", exact=True)
    field.fill("A pelican")
    field.press("Shift+Enter")
    field.press_sequentially("sat down.")
    with answered(page):
        field.press("Enter")
    expect(chip(page, 2)).to_contain_text("pe")
    expect(page).to_have_url(re.compile("text=A\\+pelican%0Asat\\+down\\."))


@pytest.mark.nightly
@pytest.mark.parametrize(("part", "fill"), [("Matrix", "matrix"), ("Map", "map"), ("Arcs", "token_flow")])
def test_one_part_fills_the_stage(part, fill, page, server):
    open_screen(page, server, "", **HEAD)
    with answered(page):
        page.locator(".viewer .fills").get_by_role("button", name=part, exact=True).click()
    expect(page).to_have_url(re.compile(f"filled={fill}"))
    filling = page.locator(".st-key-map" if fill == "map" else f".viewer [part={fill}]")
    assert filling.bounding_box()["width"] > 0.9 * page.locator(".viewer .pictures").bounding_box()["width"]


@pytest.mark.nightly
def test_a_list_has_what_it_has_no_room_for_as_its_title(page, server):
    page.set_viewport_size({"width": 1366, "height": 768})
    open_screen(page, server, "", model="SmolLM2-135M-Instruct")
    field = page.get_by_role("combobox", name="Model")
    assert field.evaluate("element => element.scrollWidth <= element.clientWidth")
    field.hover()
    expect(field).to_have_attribute("title", "")
    field.evaluate("element => (element.style.maxWidth = '40px')")
    page.mouse.move(5, 5)
    field.hover()
    expect(field).to_have_attribute("title", "SmolLM2-135M-Instruct")


STOPS = """() => {
    const all = [];
    const collect = (root) => {
        for (const element of root.querySelectorAll("*")) {
            if (element.shadowRoot) collect(element.shadowRoot);
            const box = element.getBoundingClientRect();
            const isInSight = box.width && box.bottom > 0 && box.top < innerHeight && element.checkVisibility({ visibilityProperty: true });
            if (element.tabIndex >= 0 && !element.disabled && isInSight) all.push(element.ariaLabel || element.textContent);
        }
    };
    collect(document);
    return all;
}"""


@pytest.mark.nightly
def test_few_stops_of_the_tab_key_stand_above_the_fold(page, server):
    """The menu, the examples, the ranked keys and other rows are one each; arrow keys move within."""
    page.set_viewport_size({"width": 1366, "height": 768})
    open_screen(page, server, "", **HEAD)
    wait_until_drawn(page)
    stops = page.evaluate(STOPS)
    assert any(stop.startswith("token 7") for stop in stops) and "Options" in stops
    assert len(stops) <= 20, stops
    ranked = page.locator(".viewer .ranking button")
    expect(page.locator(".viewer .ranking button[tabindex='0']")).to_have_count(1)
    ranked.nth(0).focus()
    page.keyboard.press("ArrowDown")
    expect(ranked.nth(1)).to_be_focused()
    page.keyboard.press("End")
    expect(ranked.last).to_be_focused()
    expect(page.locator(".viewer .ranking button[tabindex='0']")).to_have_count(1)


def test_a_special_token_is_explained_where_it_stands(page, server):
    means = TERMS["Special token"].means
    open_screen(page, server, "", **HEAD)
    wait_until_drawn(page)
    expect(chip(page, 0)).to_have_attribute("title", re.compile(re.escape(means)))
    expect(chip(page, 5)).not_to_have_attribute("title", re.compile(re.escape(means)))
    line = page.locator(".viewer .ranking .meaning")
    expect(line).to_have_text(f"“[CLS]”: {means}")
    chip(page, 8).click()  # "opened", which gives most to "door"
    expect(line).to_have_text("")


def test_numbers_asked_for_before_the_page_can_ask_come_all_the_same(page, server):
    held = []
    page.route("**/stage_answer.*.js", lambda route: held.append(route))  # Playwright takes no built-in
    page.goto(
        f"{server}/?{urlencode({'text': DOOR, 'layer': 3, 'head': 1, 'show': 'norms', 'filled': 'matrix'})}",
        wait_until="commit",
    )
    expect(page.locator(".viewer.waits")).to_be_visible(timeout=LOAD_MS)
    page.wait_for_function("document.attnvizStage?.asked?.size")
    for route in held:
        route.continue_()
    expect(page.locator(".viewer:not(.waits) .headline")).to_contain_text("Layer 3, head 1", timeout=LOAD_MS)
