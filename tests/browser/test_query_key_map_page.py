"""The page "Query-key map" in a real browser: map and matrix linked both ways, the keyboard, three axes, a phone."""

import re
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import LOAD_MS
from tests.browser.screen import (
    DOOR,
    click_cell,
    expect_soon,
    finding,
    link,
    plot,
    wait_for_link,
    wait_until_drawn,
    wait_until_still,
)

pytestmark = pytest.mark.nightly

PLACE = {"text": DOOR, "layer": 3, "head": 1, "query": 7}
LONG = "the river flooded an old market twice; Paris reported 17 bridges, and nobody was surprised. " * 40
MAP = ".st-key-space_map .js-plotly-plot"
HINT = "Click a point, or walk through the points with the arrow keys; Enter selects."


def open_space(page: Page, server: str, **params: object) -> None:
    page.goto(f"{server}/query_key_map?{urlencode(params)}")
    wait_for_map(page)


def wait_for_map(page: Page) -> None:
    expect(plot(page, "space_map")).to_be_visible(timeout=LOAD_MS)
    wait_until_drawn(page)


def focus_line(page: Page) -> Locator:
    """The line under the map that names the point with the focus."""
    return page.locator(".point_clicks[data-walks=true]")


def place_of(page: Page, cloud: str, position: int) -> tuple[float, float]:
    """Where a point of the flat map is in the window."""
    x, y = page.evaluate(
        """([map, cloud, position]) => {
            const chart = document.querySelector(map), {xaxis, yaxis} = chart._fullLayout;
            const points = chart._fullData.find(trace => trace.name === cloud);
            const box = chart.getBoundingClientRect();
            return [box.x + xaxis._offset + xaxis.l2p(points.x[position]),
                    box.y + yaxis._offset + yaxis.l2p(points.y[position])];
        }""",
        [MAP, cloud, position],
    )
    return x, y


def click_point(page: Page, cloud: str, position: int) -> None:
    wait_until_still(page)
    x, y = place_of(page, cloud, position)
    page.mouse.move(x - 3, y - 3)
    page.mouse.move(x, y)
    expect(page.locator(".st-key-space_map .hoverlayer .hovertext").first).to_be_visible()
    page.mouse.click(x, y)


def ends(page: Page) -> list[list[list[float]]]:
    """The two ends of each line."""
    line_ends: list[list[list[float]]] = page.evaluate(
        """map => document.querySelector(map)._fullData.filter(trace => trace.mode === 'lines')
            .map(trace => [0, 1].map(end => [trace.x[end], trace.y[end]]))""",
        MAP,
    )
    return line_ends


def at(page: Page, cloud: str, position: int) -> list[float]:
    """Where a point lies on the map."""
    point: list[float] = page.evaluate(
        """([map, cloud, position]) => {
            const points = document.querySelector(map)._fullData.find(trace => trace.name === cloud);
            return [points.x[position], points.y[position]];
        }""",
        [MAP, cloud, position],
    )
    return point


def frames(page: Page) -> list[list[float]]:
    """The outlined row or column of the matrix, then its outlined cell: x0, x1, y0, y1."""
    outlines: list[list[float]] = page.evaluate(
        """() => document.querySelector('.st-key-matrix .js-plotly-plot')._fullLayout.shapes
            .map(shape => [shape.x0, shape.x1, shape.y0, shape.y1])"""
    )
    return outlines


def test_a_click_on_a_query_draws_its_lines_and_marks_its_row(page, server, door_trace):
    open_space(page, server, **PLACE)
    assert {tuple(end[0]) for end in ends(page)} == {tuple(at(page, "queries", 7))}
    click_point(page, "queries", 3)
    wait_for_link(page, query=3, lines_of="query")
    expect(finding(page)).to_contain_text("“watching” ")
    wait_for_map(page)
    strongest = door_trace.weights(3, 1)[3].argsort()[::-1][:5]
    lines = [[at(page, "queries", 3), at(page, "keys", int(key))] for key in strongest]
    expect_soon(page, ends, lines)
    expect_soon(page, lambda page: frames(page)[0], [-0.5, 10.5, 2.5, 3.5])


def test_a_click_on_a_key_draws_lines_to_its_strongest_queries_and_marks_its_column(page, server, door_trace):
    open_space(page, server, **PLACE)
    click_point(page, "keys", 5)
    wait_for_link(page, key=5, lines_of="key", query=7)
    expect(finding(page)).to_contain_text(re.compile("“opened” .*“door”"))
    wait_for_map(page)
    strongest = door_trace.weights(3, 1)[:, 5].argsort()[::-1][:5]
    lines = [[at(page, "keys", 5), at(page, "queries", int(query))] for query in strongest]
    expect_soon(page, ends, lines)
    expect_soon(page, frames, [[4.5, 5.5, -0.5, 10.5], [4.5, 5.5, 6.5, 7.5]])


def test_a_click_on_a_cell_draws_the_lines_of_its_query(page, server):
    open_space(page, server, **PLACE, lines_of="key")
    click_cell(page, 2, 3)
    wait_for_link(page, query=2, key=3, lines_of="query")
    expect(finding(page)).to_contain_text("“was” ")
    wait_for_map(page)
    start = tuple(at(page, "queries", 2))
    expect_soon(page, lambda page: {tuple(end[0]) for end in ends(page)}, {start})


def test_points_are_walked_through_and_picked_by_key(page, server):
    open_space(page, server, **PLACE)
    expect(focus_line(page)).to_have_text(HINT)
    chart = page.get_by_role("group", name=re.compile("^Map of queries and keys; arrow keys"))
    chart.focus()
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    expect(focus_line(page)).to_have_text("query was·2")
    page.keyboard.press("ArrowDown")
    expect(focus_line(page)).to_have_text("key was·2")
    page.keyboard.press("ArrowLeft")
    expect(focus_line(page)).to_have_text("key i·1")
    page.keyboard.press("Enter")
    wait_for_link(page, key=1, lines_of="key")
    wait_for_map(page)
    expect(chart).to_be_focused()
    page.keyboard.press("End")
    expect(focus_line(page)).to_have_text("key [SEP]·10")
    page.keyboard.press("Enter")
    wait_for_link(page, key=10)


def test_maps_stay_aligned_while_heads_change(page, server):
    open_space(page, server, **PLACE, method="pca")
    page.locator(".st-key-space_more button").first.click()
    page.get_by_role("button", name="Align other heads with this").click()
    wait_for_link(page, aligned_with="3.1")
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Next").click()
    wait_for_link(page, head=2, aligned_with="3.1")
    expect(page.get_by_text("Aligned with the map of layer 3, head 1.")).to_be_visible()


def test_a_turned_map_stays_turned(page, server):
    open_space(page, server, **PLACE, method="pca", dimensions=3)
    camera = f"document.querySelector('{MAP}')._fullLayout.scene._scene.getCamera().eye"
    before = page.evaluate(camera)
    box = plot(page, "space_map").bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + 90, y + 20, steps=6)
    page.mouse.up()
    page.wait_for_function(
        f"before => Math.abs({camera}.x - before) > 0.05", arg=before["x"], timeout=LOAD_MS
    )
    page.wait_for_function(
        f"""() => {{
            const eye = JSON.stringify({camera});
            [window.nAlike, window.lastEye] = [window.lastEye === eye ? window.nAlike + 1 : 0, eye];
            return window.nAlike > 10;
        }}""",
        timeout=LOAD_MS,
    )  # it turns on for a moment
    turned = page.evaluate(camera)
    page.mouse.move(5, 5)
    click_cell(page, 2, 3)
    wait_for_link(page, query=2)
    wait_for_map(page)
    page.wait_for_function(f"x => Math.abs({camera}.x - x) < 0.01", arg=turned["x"], timeout=LOAD_MS)


def test_a_link(server, page):
    open_space(
        page, server, **PLACE, method="tsne", space="centred", metric="euclidean", lines_of="key", key=5
    )
    expect(page).to_have_title("Other maps · Explore · attnviz")
    expect(
        page.get_by_text(re.compile("^t-SNE, euclidean distance, perplexity 5, 1000 iterations"))
    ).to_be_visible()
    assert ends(page)[0][0] == at(page, "keys", 5)
    assert link(page)["space"] == "centred"
    expect(page.get_by_role("alert")).to_have_count(0)


def test_map_matrix_and_verdict_are_above_the_fold(page, server):
    open_space(page, server, **PLACE)
    expect(page.get_by_text("This attention map can be read")).to_be_visible()
    wait_until_still(page)
    for shown in (plot(page, "space_map"), finding(page), page.get_by_text("This attention map can be read")):
        box = shown.bounding_box()
        assert box["y"] >= 0 and box["y"] + box["height"] <= 900
    cells = page.locator(".st-key-matrix .heatmaplayer image").first.bounding_box()
    assert cells["y"] + cells["height"] <= 900


def test_on_a_phone_nothing_leaves_the_window(visitors, server):
    page = visitors(width=400, height=800, colours="dark")
    open_space(page, server, **PLACE)
    wait_until_still(page)
    assert page.get_by_test_id("stMain").evaluate("element => element.scrollWidth <= element.clientWidth")
    box = plot(page, "space_map").bounding_box()
    assert box["x"] >= 0 and box["x"] + box["width"] <= 400


def test_others_go_on_while_a_map_is_made(visitors, server):
    busy, other = visitors(), visitors()
    much = {
        "text": LONG,
        "cut": 1,
        "method": "tsne",
        "iterations": 2500,
        "seed": 41,
    }  # long enough to be seen while it is made
    busy.goto(f"{server}/query_key_map?{urlencode(PLACE | much)}")
    busy.wait_for_function(
        "document.body?.innerText.includes('t-SNE lays out 1,024 points')", timeout=LOAD_MS
    )
    open_space(other, server, **PLACE)
    other.get_by_role("button", name="Next").click()
    wait_for_link(other, head=2)
    expect(finding(other)).to_contain_text("Layer 3, head 2:")
    expect(plot(busy, "space_map")).to_be_visible(timeout=LOAD_MS)
    expect(busy.get_by_text(re.compile("^t-SNE, cosine distance, perplexity 5"))).to_be_visible()


def test_a_long_text_can_be_picked_from(page, server):
    open_space(page, server, text=LONG, cut=1, layer=3, head=1, query=155, method="pca", space="lifted")
    labels = page.locator(".st-key-space_map .textpoint text").filter(has_text="·")
    assert 2 <= labels.count() <= 7
    click_point(page, "keys", 0)
    wait_for_link(page, lines_of="key")
