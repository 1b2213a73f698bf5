"""Every way to pick a query and a key on the first screen: cells, chips, labels, points, bars, by touch and by key."""

import re

import pytest
from playwright.sync_api import expect

from attnviz.figures.numbers import share_text
from tests.browser.screen import (
    bars,
    cells,
    chip,
    chips,
    click_cell,
    expect_soon,
    finding,
    line_starts,
    link,
    map_point,
    open_screen,
    picked_chips,
    plot,
    readout,
    screen,
    wait_for_link,
    wait_until_drawn,
    wait_until_still,
)


@pytest.mark.nightly
def test_a_click_on_a_cell_picks_its_query_and_key(page, server):
    open_screen(page, server)
    click_cell(page, 2, 3)  # "was" to "watching"

    wait_for_link(page, query=2, key=3)
    expect(finding(page)).to_contain_text(": “was” ")
    expect(finding(page)).to_contain_text("“watching”")
    expect(chip(page, 2)).to_have_attribute("aria-pressed", "true")
    assert picked_chips(page) == [2]
    wait_until_drawn(page)
    weights = cells(page)[2]
    page.mouse.move(5, 5)
    expect(readout(page)).to_contain_text(f"“was”·2 → “watching”·3: {share_text(float(weights[3]))}")
    ranked = sorted(range(11), key=lambda key: -weights[key])[:8]
    expect_soon(page, lambda page: [int(bar.split("·")[1]) for bar in bars(page)], ranked)
    expect_lines_from(page, "queries", 2)
    assert link(page)["head"] == "1"  # the head stays


def expect_lines_from(page, role, position):
    """The map is drawn with lines that all start at this point."""
    expect_soon(
        page,
        lambda page: set(map(tuple, line_starts(page))) == {tuple(map_point(page, role, position))},
        True,
    )


@pytest.mark.nightly
def test_a_click_beside_the_cells_picks_nothing(page, server):
    open_screen(page, server)
    before = screen(page)
    box = page.locator(".viewer .matrix .sheet").bounding_box()
    page.mouse.click(box["x"] + 5, box["y"] + box["height"] - 5)
    page.get_by_role("button", name="Next head").click()  # something that is sure to run after it
    wait_for_link(page, head=2)
    assert (link(page)["query"], link(page)["key"]) == (before["link"]["query"], before["link"]["key"])


@pytest.mark.nightly
def test_a_click_on_a_chip_picks_the_query(page, server):
    open_screen(page, server)
    chip(page, 8).click()

    wait_for_link(page, query=8)
    expect(finding(page)).to_contain_text(": “opened” ")
    expect(chip(page, 8)).to_have_attribute("aria-pressed", "true")
    expect(chip(page, 7)).to_have_attribute("aria-pressed", "false")
    expect(readout(page)).to_contain_text("“opened”·8 → “")
    assert "key" not in link(page)  # the strongest, and not the last query's


def deep_focus(page):
    """What has the keyboard's focus, inside components too: its label or text."""
    return page.evaluate(
        """() => {
            let element = document.activeElement;
            while (element?.shadowRoot?.activeElement) element = element.shadowRoot.activeElement;
            if (element?.localName === "main") return "";  // which is scrolled by key
            return element?.getAttribute("aria-label") ?? element?.textContent ?? "";
        }"""
    )


def tab_to(page, start):
    """Presses Tab until what is focused has a label that starts so."""
    for _ in range(60):
        page.keyboard.press("Tab")
        if deep_focus(page).startswith(start):
            return
    pytest.fail(f"Tab never came to {start!r}")


def test_the_keyboard_alone_is_enough(page, server):
    open_screen(page, server)
    tab_to(page, "Sentence")
    page.keyboard.press("Control+a")
    page.keyboard.type("The old door creaked.")
    page.keyboard.press("Enter")
    wait_for_link(page, text="The old door creaked.")
    expect(chips(page)).to_contain_text(["[CLS]", "the", "old", "door"])
    wait_until_drawn(page)

    tab_to(page, "token ")  # the selected one, for the strip is one stop
    page.keyboard.press("Home")
    for _ in range(3):
        page.keyboard.press("ArrowRight")
        if deep_focus(page).startswith("replace with"):
            page.keyboard.press("ArrowRight")
    assert deep_focus(page).startswith("token 3: door")
    page.keyboard.press("Enter")
    wait_for_link(page, query=3)
    expect(finding(page)).to_contain_text(": “door” ")
    page.wait_for_function(
        """() => {
            let element = document.activeElement;
            while (element?.shadowRoot?.activeElement) element = element.shadowRoot.activeElement;
            return element?.dataset.position === "3";
        }"""
    )  # the focus is not lost, so that its button and the next chip are a key away
    expect(page.get_by_role("button", name="replace with [MASK]")).to_be_visible()
    wait_until_drawn(page)
    assert deep_focus(page).startswith("token 3: door")
    page.keyboard.press("ArrowRight")
    assert deep_focus(page).startswith("replace with [MASK]")
    page.keyboard.press("ArrowRight")
    assert deep_focus(page).startswith("token 4: ")
    page.keyboard.press("End")
    assert deep_focus(page).startswith("token 6: [SEP]")
    page.keyboard.press("Tab")
    assert not deep_focus(page).startswith(("token", "replace"))


def label(page, axis, position):
    """The label of the row or column of the matrix that has the token at this position."""
    return page.locator(f".viewer .matrix .{axis}s text").filter(has_text=re.compile(rf"·{position}$"))


def click_label(page, axis, position):
    """Clicks the label of a row or of a column of the matrix."""
    page.locator(".viewer .matrix").scroll_into_view_if_needed()
    wait_until_still(page)
    box = label(page, axis, position).bounding_box()
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)


def click_map(page, role, position):
    at = page.evaluate(
        """([role, position]) => {
            const plot = document.querySelector(".st-key-map .js-plotly-plot:has(.cartesianlayer)");
            const {xaxis, yaxis} = plot._fullLayout, box = plot.getBoundingClientRect();
            const points = plot._fullData.find(trace => trace.name === role);
            return [box.x + xaxis._offset + xaxis.l2p(points.x[position]),
                box.y + yaxis._offset + yaxis.l2p(points.y[position])];
        }""",
        [role, position],
    )
    page.mouse.move(at[0] - 1, at[1])
    page.mouse.move(*at)
    page.mouse.click(*at)


def bar(page, position):
    """The row of a key in the ranking."""
    return page.locator(f".viewer .ranking [data-position='{position}']")


def click_bar(page, position, across):
    """Clicks the row of a key in the ranking, at this share of its width from the left."""
    bar(page, position).scroll_into_view_if_needed()
    wait_until_still(page)
    box = bar(page, position).bounding_box()
    page.mouse.click(box["x"] + across * box["width"], box["y"] + box["height"] / 2)


class TestPicking:
    """Every picture of the first screen selects, not its cells alone."""

    @pytest.mark.nightly
    def test_labels_of_rows_and_columns(self, page, server):
        open_screen(page, server)
        click_label(page, "row", 2)
        wait_for_link(page, query=2)
        assert "key" not in link(page)  # the strongest, as after a click on a chip
        expect(finding(page)).to_contain_text(": “was” ")
        wait_until_drawn(page)
        click_label(page, "column", 4)
        wait_for_link(page, query=2, key=4)
        expect(finding(page)).to_contain_text(": “was” ")
        expect(finding(page)).to_contain_text("“the”")

    @pytest.mark.nightly
    def test_points_of_the_map(self, page, server):
        open_screen(page, server)
        click_map(page, "keys", 8)
        wait_for_link(page, query=7, key=8)
        expect(finding(page)).to_contain_text(": “it” ")
        wait_until_drawn(page)
        page.mouse.move(5, 5)
        expect(readout(page)).to_contain_text("→ “opened”·8")
        click_map(page, "queries", 3)
        wait_for_link(page, query=3)
        assert "key" not in link(page)
        expect(finding(page)).to_contain_text(": “watching” ")

    @pytest.mark.nightly
    def test_two_points_of_the_map_at_once(self, page, server):
        """Neither a double click, nor the first point twice."""
        open_screen(page, server)
        click_map(page, "keys", 8)
        click_map(page, "queries", 3)
        wait_for_link(page, query=3)

    @pytest.mark.nightly
    def test_two_cells_at_once(self, page, server):
        open_screen(page, server)
        for query, key in ((2, 5), (9, 0)):
            click_cell(page, query, key)
        wait_for_link(page, query=9, key=0)

    @pytest.mark.nightly
    @pytest.mark.parametrize("across", [0.05, 0.9])
    def test_bars_and_their_labels(self, across, page, server):
        open_screen(page, server)
        key = int(bars(page)[4].split("·")[1])
        click_bar(page, key, across)
        wait_for_link(page, query=7, key=key)

    @pytest.mark.nightly
    def test_by_touch(self, browser, server):
        context = browser.new_context(has_touch=True, viewport={"width": 400, "height": 900})
        page = context.new_page()
        open_screen(page, server)
        key = int(bars(page)[3].split("·")[1])
        bar(page, key).tap()
        wait_for_link(page, key=key)
        wait_until_drawn(page)
        page.locator(".viewer .matrix").scroll_into_view_if_needed()
        wait_until_still(page)
        box = label(page, "row", 2).bounding_box()
        page.touchscreen.tap(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        wait_for_link(page, query=2)
        context.close()

    @pytest.mark.nightly
    def test_the_keyboard_alone_selects_a_key(self, page, server):
        open_screen(page, server)
        page.get_by_role("button", name="Options").press("Enter")
        page.get_by_role("combobox", name="Key", exact=True).focus()
        page.keyboard.type("watching")
        wait_for_link(page, key=3)
        expect(finding(page)).to_contain_text("“watching”")

    @pytest.mark.nightly
    def test_points_of_the_map_by_key(self, page, server):
        open_screen(page, server)
        page.get_by_role("group", name="Map of queries and keys").focus()
        page.keyboard.press("ArrowDown")
        page.keyboard.press("Home")
        page.keyboard.press("Enter")
        wait_for_link(page, query=7, key=0)


AFTER_A_CLICK = """() => new Promise(done => {
    const {doubleClickDelay} = document.querySelector(".st-key-map .js-plotly-plot")._context;
    setTimeout(done, doubleClickDelay + 1);
})"""
"""Plotly waits this long for a second click before it acts on the first; of one page's timers the one set later ends later."""


@pytest.mark.nightly
def test_a_click_beside_the_map_opens_no_field_for_its_range(page, server):
    """Plotly lends a field at each end of an axis; a range that is typed there cannot be taken back."""
    open_screen(page, server, layer=3, head=1)
    drag = plot(page, "map").locator(".draglayer > g").first
    corners = drag.locator(
        "rect.cursor-ne-resize, rect.cursor-nw-resize, rect.cursor-se-resize, rect.cursor-sw-resize, .edrag, .wdrag"
    )
    expect(corners).not_to_have_count(0)
    for corner in corners.all():
        wait_until_drawn(page)  # the click before this may have selected something
        box = corner.bounding_box()
        page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        page.evaluate(AFTER_A_CLICK)
        expect(page.locator(".plugin-editable")).to_have_count(0)
