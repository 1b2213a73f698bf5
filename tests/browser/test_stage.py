"""The stage of the first screen: what it shows at once, and that pointing at it is answered without the server."""

import re

import numpy as np
import pytest
from playwright.sync_api import Locator, Page, expect
from scipy.stats import spearmanr

from attnviz.figures.numbers import number_text
from tests.browser.screen import (
    DOOR,
    answered,
    chip,
    expect_soon,
    open_screen,
    picked_chips,
    plot,
    readout,
    wait_until_drawn,
)

HEAD = {"text": DOOR, "layer": 3, "head": 1, "query": 7}


def arcs(page: Page) -> Locator:
    return page.locator(".st-key-token_strip svg path")


def ends(page: Page) -> dict[int, float]:
    """The weight of each key that has an arc, by its position."""
    return {
        int(key): float(weight)
        for key, weight in arcs(page).evaluate_all(
            "all => all.map(element => [element.dataset.key, element.dataset.weight])"
        )
    }


TONES = """async image => {
    const picture = new Image();
    picture.src = image.getAttribute("href");
    await picture.decode();
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [picture.width, picture.height];
    const context = canvas.getContext("2d");
    context.drawImage(picture, 0, 0);
    const {data} = context.getImageData(0, 0, canvas.width, canvas.height);
    const rows = [];
    for (let row = 0; row < canvas.height; row++) {
        rows.push([]);
        for (let column = 0; column < canvas.width; column++) {
            const at = 4 * (row * canvas.width + column);
            rows[row].push(data[at] + data[at + 1] + data[at + 2]);
        }
    }
    return rows;
}"""
"""How light each cell of a picture is."""


def head(page: Page, layer: int, number: int) -> Locator:
    return page.locator(f".st-key-head_rail [data-layer='{layer}'][data-head='{number}']")


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
    for part in (plot(page, "matrix"), plot(page, "map"), head(page, 0, 0), chip(page, 0)):
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
    expect_soon(page, lambda page: max(abs(ends(page).get(8, 0) - previewed[7][8]), 0) < 0.01, True)
    preview = plot(page, "matrix").locator(".preview image[data-place='2,3']")
    tones = np.array(preview.evaluate(TONES))
    assert tones.shape == previewed.shape
    seen = previewed > 0.02
    assert spearmanr(-tones[seen], previewed[seen]).statistic > 0.95
    assert tones[seen].max() < tones[previewed < 0.001].min()

    page.mouse.move(5, 5)
    expect(preview).to_have_count(0)
    expect_soon(page, ends, {key: pytest.approx(weight, abs=1e-3) for key, weight in own.items()})
    assert len(sent) == n_sent


@pytest.mark.nightly
@pytest.mark.parametrize("motion", [True, False])
def test_on_the_first_visit_and_never_again_the_arcs_draw_themselves(motion, server, visitors):
    page = visitors(motion=motion, alone=True)
    open_screen(page, server, "", **HEAD)
    expect(arcs(page).first).to_have_css("animation-name", "draw" if motion else "none")
    chip(page, 3).hover()
    expect(arcs(page).first).to_have_css("animation-name", "none")
    page.mouse.move(5, 5)
    expect(arcs(page).first).to_have_css("animation-name", "none")
    open_screen(page, server, "", **HEAD)
    expect(arcs(page).first).to_have_css("animation-name", "none")


@pytest.mark.nightly
def test_small_pictures_end_their_colours_where_the_matrix_does(page, server, door_trace):
    """Every cell from the largest of the words on has the strongest tone, others have not."""
    open_screen(page, server, "", **HEAD)
    weights = door_trace.weights(3, 3)
    end = weights[1:-1, 1:-1].max()
    picture = head(page, 3, 3).locator("image")
    tones = np.array(picture.evaluate(TONES))
    strongest = weights >= end
    assert 1 < strongest.sum() < weights.size
    assert set(tones[strongest]) == {tones.min()}
    assert (tones[weights < end - 0.02] > tones.min()).all()


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
@pytest.mark.parametrize(("part", "key"), [("Matrix", "matrix"), ("Map", "map"), ("Arcs", "token_flow")])
def test_one_part_fills_the_stage(part, key, page, server):
    open_screen(page, server, "", **HEAD)
    beside = page.locator(f".st-key-{key}").bounding_box()["width"] if key != "token_flow" else 400
    with answered(page):
        page.locator(".st-key-parts").get_by_role("button", name=part, exact=True).click()
    expect(page).to_have_url(re.compile(f"filled={key}"))
    assert page.locator(f".st-key-{key}").bounding_box()["width"] > 1.4 * beside


BAR = """() => {
    const chart = document.querySelector(".st-key-matrix .js-plotly-plot");
    const [bar, area] = [".cbfills", ".heatmaplayer image"].map(
        selector => chart.querySelector(selector).getBoundingClientRect());
    return [bar.left - area.left, bar.right - area.right];
}"""


@pytest.mark.nightly
@pytest.mark.parametrize("colour", ["linear", "logarithmic"])
def test_the_colour_bar_is_as_wide_as_the_cells(colour, page, server):
    """In a low and wide window the height limits them."""
    page.set_viewport_size({"width": 1366, "height": 768})
    open_screen(page, server, "", **HEAD, colour=colour)
    with answered(page):
        page.locator(".st-key-parts").get_by_role("button", name="Matrix", exact=True).click()
    expect_soon(page, lambda page: max(map(abs, page.evaluate(BAR))) < 2, True)


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


STOP = """() => {
    let element = document.activeElement;
    while (element?.shadowRoot?.activeElement) element = element.shadowRoot.activeElement;
    const {x, y} = element.getBoundingClientRect();
    return {x, y, isRoom: Boolean(element.closest("[data-testid=stSidebar], .st-key-parts")), name: element.className};
}"""


@pytest.mark.nightly
def test_the_matrix_is_one_stop_with_arrow_keys_inside(page, server, door_trace):
    open_screen(page, server, "", **HEAD)
    plot(page, "matrix").focus()
    line = readout(page)
    weights = door_trace.weights(3, 1)
    for key, cell in (
        ("ArrowUp", (6, 5)),
        ("ArrowLeft", (6, 4)),
        ("End", (6, 10)),
        ("Home", (6, 0)),
    ):
        page.keyboard.press(key)
        expect(line).to_contain_text(f"weight {number_text(float(weights[cell]))}")
    with answered(page):
        page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("query=6&key=0"))


@pytest.mark.nightly
def test_few_stops_of_the_tab_key_stand_above_the_fold(page, server):
    """Beside the rooms and their parts; what is scrolled to is not above it."""
    page.set_viewport_size({"width": 1366, "height": 768})
    open_screen(page, server, "", **HEAD)
    stops = []
    for _ in range(80):
        page.keyboard.press("Tab")
        stop = page.evaluate(STOP)
        if page.locator("[data-testid=stMain]").evaluate("main => main.scrollTop") == 0:
            stops.append(stop)
    above = {
        (stop["x"], stop["y"]) for stop in stops if not stop["isRoom"] and stop["x"] > 220 and stop["y"] < 768
    }
    assert 10 < len(above) <= 20
