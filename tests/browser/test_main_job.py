"""The first screen in a real browser: every way to pick something, and all that has to follow."""

import re

import pytest
from playwright.sync_api import expect

from attnviz.figures.numbers import number_text
from tests.browser.screen import (
    DOOR,
    bars,
    cells,
    chip,
    chips,
    click_cell,
    finding,
    hover_cell,
    hover_label,
    line_starts,
    link,
    map_point,
    open_screen,
    picked_chips,
    plot,
    readout,
    screen,
    sentence,
    show_attention,
    verdict,
    wait_for_link,
    wait_until_drawn,
    wait_until_idle,
    wait_until_link_rests,
)


def test_the_first_screen_shows_the_door_example(page, server):
    open_screen(page, server)

    expect(finding(page)).to_contain_text("“it” gives 47.5% of its attention to “door”")
    expect(chips(page)).to_have_count(11)
    expect(chip(page, 7)).to_have_attribute("aria-pressed", "true")
    assert picked_chips(page) == [7]  # and no other
    expect(verdict(page)).to_contain_text("Checked: 12 comparisons, weights within")
    expect(readout(page)).to_have_text("query it·7 → key door·5: weight 0.475, score 4.13")
    assert len(cells(page)) == 11
    assert bars(page)[:2] == ["[CLS]·0", "door·5"]
    assert line_starts(page) == [map_point(page, "queries", 7)] * 5
    expect(page.get_by_role("alert")).to_have_count(0)
    assert page.title() == "Attention · attnviz"


IS_CUT = """shown => {
    for (let node = shown; node && node.tagName !== "A"; node = node.parentElement)
        if (node.scrollWidth > node.clientWidth && getComputedStyle(node).display !== "inline") return true;
    return false;
}"""


@pytest.mark.parametrize("width", [1400, 400])
def test_the_verdict_is_not_cut(server, page, width):
    page.set_viewport_size({"width": width, "height": 900})
    open_screen(page, server)
    expect(verdict(page)).to_contain_text("10⁻⁷")
    assert not verdict(page).evaluate(IS_CUT)


def test_nor_is_it_on_another_page(server, page):
    open_screen(page, server, "find_a_head")
    shown = page.get_by_text("weights within").filter(visible=True).first
    expect(shown).to_contain_text("10⁻⁷")
    assert not shown.evaluate(IS_CUT)


def test_everything_of_the_main_job_is_above_the_fold(page, server):
    open_screen(page, server)
    for shown in (chip(page, 7), finding(page), verdict(page), plot(page, "matrix"), plot(page, "map")):
        box = shown.bounding_box()
        assert box["y"] >= 0 and box["y"] + box["height"] <= 900


def test_next_and_the_number_field_change_the_head(page, server):
    open_screen(page, server)
    before = cells(page)
    page.get_by_role("button", name="Next").click()
    expect(finding(page)).to_contain_text("Layer 3, head 2:")
    wait_for_link(page, layer=3, head=2)
    expect(page.get_by_label(re.compile("^Head"))).to_have_value("2")
    wait_until_drawn(page)
    second = cells(page)

    field = page.get_by_label(re.compile("^Head"))
    field.fill("11")
    field.press("Enter")
    expect(finding(page)).to_contain_text("Layer 3, head 11:")
    wait_for_link(page, layer=3, head=11)
    wait_until_drawn(page)

    assert before != second != cells(page) != before
    assert picked_chips(page) == [7]
    expect(sentence(page)).to_have_value(DOOR)


def test_clicks_in_a_row_are_not_taken_back(page, server):
    open_screen(page, server)
    for _ in range(4):
        page.get_by_role("button", name="Next").click()
    page.wait_for_function("() => Number(new URLSearchParams(location.search).get('head')) > 2")
    wait_until_link_rests(page)  # a click may still be on its way while the server is idle
    reached = int(link(page)["head"])  # two clicks may reach the server as one
    expect(finding(page)).to_contain_text(f"Layer 3, head {reached}:")
    page.get_by_role("button", name="Previous").click()
    wait_for_link(page, head=reached - 1)
    expect(finding(page)).to_contain_text(f"Layer 3, head {reached - 1}:")


def test_a_click_on_a_cell_picks_its_query_and_key(page, server):
    open_screen(page, server)
    click_cell(page, 2, 3)  # "was" to "watching"

    wait_for_link(page, query=2, key=3)
    expect(finding(page)).to_contain_text("“was” gives")
    expect(finding(page)).to_contain_text("of its attention to “watching”")
    expect(chip(page, 2)).to_have_attribute("aria-pressed", "true")
    assert picked_chips(page) == [2]
    wait_until_drawn(page)
    weights = cells(page)[2]
    page.mouse.move(5, 5)
    expect(readout(page)).to_contain_text(
        f"query was·2 → key watching·3: weight {number_text(float(weights[3]))}, score "
    )
    ranked = sorted(range(11), key=lambda key: -weights[key])[:8]
    assert [int(bar.split("·")[1]) for bar in bars(page)] == ranked
    assert set(map(tuple, line_starts(page))) == {tuple(map_point(page, "queries", 2))}
    assert link(page)["head"] == "1"  # the head stays


def test_a_click_beside_the_cells_picks_nothing(page, server):
    open_screen(page, server)
    before = screen(page)
    box = plot(page, "matrix").bounding_box()
    page.mouse.click(box["x"] + 5, box["y"] + box["height"] - 5)
    page.get_by_role("button", name="Next").click()  # something that is sure to run after it
    wait_for_link(page, head=2)
    assert (link(page)["query"], link(page)["key"]) == (before["link"]["query"], before["link"]["key"])


def test_a_click_on_a_chip_picks_the_query(page, server):
    open_screen(page, server)
    chip(page, 8).click()

    wait_for_link(page, query=8)
    expect(finding(page)).to_contain_text("“opened” gives")
    expect(chip(page, 8)).to_have_attribute("aria-pressed", "true")
    expect(chip(page, 7)).to_have_attribute("aria-pressed", "false")
    expect(readout(page)).to_contain_text("query opened·8 → key")
    assert "key" not in link(page)  # the strongest, and not the last query's


def deep_focus(page):
    """What has the keyboard's focus, inside components too: its label or text."""
    return page.evaluate(
        """() => {
            let one = document.activeElement;
            while (one?.shadowRoot?.activeElement) one = one.shadowRoot.activeElement;
            return one?.getAttribute("aria-label") ?? one?.textContent ?? "";
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
    page.keyboard.press("Control+Enter")
    wait_for_link(page, text="The old door creaked.")
    expect(chips(page)).to_contain_text(["[CLS]", "the", "old", "door"])

    tab_to(page, "token ")  # the selected one, for the strip is one stop
    page.keyboard.press("Home")
    for _ in range(3):
        page.keyboard.press("ArrowRight")
        if deep_focus(page).startswith("Put"):
            page.keyboard.press("ArrowRight")
    assert deep_focus(page).startswith("token 3: door")
    page.keyboard.press("Enter")
    wait_for_link(page, query=3)
    expect(finding(page)).to_contain_text("“door” gives")
    page.wait_for_function(
        """() => {
            let one = document.activeElement;
            while (one?.shadowRoot?.activeElement) one = one.shadowRoot.activeElement;
            return one?.dataset.position === "3";
        }"""
    )  # the focus is not lost, so that its button and the next chip are a key away
    assert deep_focus(page).startswith("token 3: door")
    page.keyboard.press("ArrowRight")
    assert deep_focus(page).startswith("Put [MASK] in the place of “door”")
    page.keyboard.press("ArrowRight")
    assert deep_focus(page).startswith("token 4: ")
    page.keyboard.press("End")
    assert deep_focus(page).startswith("token 6: [SEP]")
    page.keyboard.press("Tab")
    assert not deep_focus(page).startswith(("token", "Put"))


def test_a_link_shows_the_same_screen_again_and_to_others(page, server, visitors):
    open_screen(page, server)
    show_attention(page, "The old man the boats.")
    wait_for_link(page, text="The old man the boats.")
    page.get_by_role("button", name="Next").click()
    wait_for_link(page, head=2)
    wait_until_drawn(page)
    click_cell(page, 4, 2)
    wait_for_link(page, query=4, key=2)
    page.get_by_text("Scores", exact=True).click()
    wait_for_link(page, show="scores")
    page.get_by_text("Euclidean", exact=True).click()
    wait_for_link(page, metric="euclidean")
    wait_until_drawn(page)
    page.mouse.move(5, 5)
    expect(readout(page)).to_contain_text("query the·4 → key old·2")
    before = screen(page)

    page.reload()
    wait_until_drawn(page)
    expect(readout(page)).to_have_text(before["readout"])
    assert screen(page) == before

    other = visitors()
    other.goto(page.url)
    wait_until_drawn(other)
    expect(readout(other)).to_have_text(before["readout"])
    assert screen(other) == before
    expect(other.get_by_text("The link asks for")).to_have_count(0)


def test_back_returns_to_the_screen_before(page, server):
    open_screen(page, server)
    page.get_by_role("button", name="Next").click()
    wait_for_link(page, head=2)
    expect(finding(page)).to_contain_text("head 2:")
    show_attention(page, "the door")
    wait_for_link(page, text="the door")
    expect(chips(page)).to_have_count(4)

    page.go_back()
    expect(chips(page)).to_have_count(11)
    expect(finding(page)).to_contain_text("Layer 3, head 2:")
    expect(sentence(page)).to_have_value(DOOR)
    page.go_back()
    expect(finding(page)).to_contain_text("Layer 3, head 1:")
    assert page.url.startswith(server)


def test_hover_says_everything_about_a_cell(page, server):
    open_screen(page, server)
    hover_cell(page, 8, 5)

    label = hover_label(page)
    for part in ("query opened·8", "key door·5", "weight 0.", "score "):
        expect(label).to_contain_text(part)
    said = re.search(r"weight (\d\.\d+)score (-?\d+\.\d+)$", label.text_content())
    assert said is not None
    assert said[1] == f"{cells(page)[8][5]:.3f}"  # three significant digits, as it is above 0.1
    expect(readout(page)).to_have_text(f"query opened·8 → key door·5: weight {said[1]}, score {said[2]}")
    page.mouse.move(5, 5)
    expect(readout(page)).to_contain_text("query it·7 → key door·5")  # back to what is picked


def test_a_blank_text_gets_a_message_and_keeps_the_picture(page, server):
    open_screen(page, server)
    before = screen(page)
    show_attention(page, "  ")

    expect(page.get_by_role("alert")).to_have_text(re.compile("The text is empty. Type a sentence."))
    expect(page.get_by_role("alert")).to_have_count(1)
    expect(page.get_by_text("Traceback")).to_have_count(0)
    expect(sentence(page)).to_have_value("  ")
    wait_until_drawn(page)
    assert screen(page) | {"sentence": ""} == before | {"sentence": ""}

    show_attention(page, "the door")
    expect(page.get_by_role("alert")).to_have_count(0)
    expect(chips(page)).to_have_count(4)


WATCH = """keys => {
    const shown = key => {
        const tall = [...document.querySelectorAll(`.st-key-${key}`)].filter(
            one => one.getBoundingClientRect().height > 50);
        return [tall.length, tall.filter(one => one.querySelector(".cartesianlayer")).length];
    };
    window.seen = {};
    const frame = () => {
        for (const key of keys) window.seen[key] = [...(window.seen[key] ?? []), shown(key)];
        requestAnimationFrame(frame);
    };
    requestAnimationFrame(frame);
}"""


def test_pictures_stay_while_the_next_ones_are_made(page, server):
    open_screen(page, server, layer=5, head=3)
    page.evaluate(WATCH, ["matrix", "ranking", "map"])
    slowly = page.context.new_cdp_session(page)  # or the hole is seldom as long as a frame
    slowly.send("Emulation.setCPUThrottlingRate", {"rate": 4})
    for head in (4, 5, 6):
        page.get_by_role("button", name="Next").click()
        expect(finding(page)).to_contain_text(f"head {head}:")
        wait_until_idle(page)
    show_attention(page, "The old door creaked.")
    expect(chips(page)).to_have_count(7)
    wait_until_drawn(page)

    for key, seen in page.evaluate("window.seen").items():
        assert len(seen) > 10, "it did not look"
        rooms, pictures = zip(*seen, strict=True)
        assert set(rooms) == {1}, f"frames without room for {key}, or with room for two: {rooms}"
        assert set(pictures) == {1}, f"frames without {key}, or with two: {pictures}"


def test_a_text_over_the_limit_is_offered_to_be_cut_and_marked(page, server):
    open_screen(page, server, iterations=250)
    show_attention(page, "the old door " * 300)
    expect(page.get_by_role("alert")).to_contain_text("902 tokens long; at most 512 can be read")
    expect(chips(page)).to_have_count(11)  # what was there stays
    page.get_by_role("button", name="Cut the text after 512 tokens").click()

    expect(chips(page)).to_have_count(512, timeout=60_000)
    expect(page.get_by_role("alert")).to_have_count(0)
    mark = page.get_by_text("cut here: 390 more tokens not read")
    mark.scroll_into_view_if_needed()
    expect(mark).to_be_in_viewport()
    wait_until_drawn(page)
    page.wait_for_function(
        "() => document.querySelector('.st-key-matrix .js-plotly-plot')._fullData[0].z.length === 512"
    )
    page.evaluate("document.querySelector('.st-key-matrix').scrollIntoView()")
    hover_cell(page, 100, 200)
    expect(hover_label(page)).to_contain_text("weight 0.")
    assert "score" not in hover_label(page).text_content()  # it would double what is sent
    words = re.compile(
        r"^query \w+·(\d+) → key \w+·(\d+): weight [\d.]+(?:\s×\s10⁻[⁰-⁹¹²³]+)?, score [-−]?[\d.]+$"
    )
    expect(readout(page)).to_have_text(words)
    query, key = map(int, words.match(readout(page).text_content()).groups())
    assert abs(query - 100) <= 4 and abs(key - 200) <= 4  # two pixels: a cell is half of one


def test_the_verdict_leads_to_the_verification_page_and_back(page, server):
    open_screen(page, server, layer=2, head=5, query=3, text="The old door creaked.")
    chosen = link(page)
    verdict(page).click()

    page.wait_for_url(re.compile("/verification"))
    wait_until_drawn(page, "verification")
    expect(page.get_by_text("Are these numbers the model's own?")).to_be_visible()
    expect(page.get_by_text("The row of “door” (token 3) in layer 2, head 5")).to_be_visible()
    expect(sentence(page)).to_have_value("The old door creaked.")
    assert link(page) == chosen
    expect(page.get_by_text("Page not found")).to_have_count(0)

    page.get_by_role("link", name="Attention").first.click()
    wait_until_drawn(page)
    expect(finding(page)).to_contain_text("Layer 2, head 5: “door” gives")
    assert link(page) == chosen
    expect(sentence(page)).to_have_value("The old door creaked.")
    expect(page.get_by_label(re.compile("^Layer"))).to_have_value("2")
    expect(page.get_by_label(re.compile("^Head"))).to_have_value("5")


def test_every_preset_can_be_verified(page, server):
    open_screen(page, server, "verification")
    page.get_by_role("button", name="Verify every preset").click()
    expect(page.get_by_text("6 of 6 passed.")).to_be_visible(timeout=60_000)
    expect(page.get_by_text("Not the model's")).to_have_count(0)


def tick(page, key, axis, position):
    """The label of the row ("y") or column ("x") of the token at this position."""
    return plot(page, key).locator(f".{axis}tick text").filter(has_text=re.compile(rf"·{position}$"))


def click_tick(page, axis, position):
    """Clicks the label of a row ("y") or of a column ("x") of the matrix."""
    plot(page, "matrix").scroll_into_view_if_needed()
    box = tick(page, "matrix", axis, position).bounding_box()
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)


def click_map(page, role, position):
    at = page.evaluate(
        """([role, position]) => {
            const plot = document.querySelector(".st-key-map .js-plotly-plot:has(.cartesianlayer)");
            const {xaxis, yaxis} = plot._fullLayout, box = plot.getBoundingClientRect();
            const points = plot._fullData.find(one => one.name === role);
            return [box.x + xaxis._offset + xaxis.l2p(points.x[position]),
                box.y + yaxis._offset + yaxis.l2p(points.y[position])];
        }""",
        [role, position],
    )
    page.mouse.move(at[0] - 1, at[1])
    page.mouse.move(*at)
    page.mouse.click(*at)


def click_bar(page, position, x):
    """Clicks the row of a key in the ranking: at its label, or this many px right of the chart's left edge."""
    plot(page, "ranking").scroll_into_view_if_needed()
    row = tick(page, "ranking", "y", position).bounding_box()
    left = plot(page, "ranking").bounding_box()["x"]
    page.mouse.click(left + x, row["y"] + row["height"] / 2)


class TestPicking:
    """Every picture of the first screen selects, not its cells alone."""

    def test_labels_of_rows_and_columns(self, page, server):
        open_screen(page, server)
        click_tick(page, "y", 2)
        wait_for_link(page, query=2)
        assert "key" not in link(page)  # the strongest, as after a click on a chip
        expect(finding(page)).to_contain_text("“was” gives")
        wait_until_drawn(page)
        click_tick(page, "x", 4)
        wait_for_link(page, query=2, key=4)
        expect(finding(page)).to_contain_text("“was” gives")
        expect(finding(page)).to_contain_text("to “the”")

    def test_points_of_the_map(self, page, server):
        open_screen(page, server)
        click_map(page, "keys", 8)
        wait_for_link(page, query=7, key=8)
        expect(finding(page)).to_contain_text("“it” gives")
        wait_until_drawn(page)
        click_map(page, "queries", 3)
        wait_for_link(page, query=3)
        assert "key" not in link(page)
        expect(finding(page)).to_contain_text("“watching” gives")

    def test_two_points_of_the_map_at_once(self, page, server):
        """Neither a double click, nor the first point twice."""
        open_screen(page, server)
        click_map(page, "keys", 8)
        click_map(page, "queries", 3)
        wait_for_link(page, query=3)

    def test_two_cells_at_once(self, page, server):
        open_screen(page, server)
        for query, key in ((2, 5), (9, 0)):
            click_cell(page, query, key)
        wait_for_link(page, query=9, key=0)

    @pytest.mark.parametrize("x", [20, 300])
    def test_bars_and_their_labels(self, x, page, server):
        open_screen(page, server)
        key = int(bars(page)[4].split("·")[1])
        click_bar(page, key, x)
        wait_for_link(page, query=7, key=key)

    def test_by_touch(self, browser, server):
        context = browser.new_context(has_touch=True, viewport={"width": 400, "height": 900})
        page = context.new_page()
        open_screen(page, server)
        key = int(bars(page)[3].split("·")[1])
        tick(page, "ranking", "y", key).scroll_into_view_if_needed()
        row = tick(page, "ranking", "y", key).bounding_box()
        page.touchscreen.tap(row["x"] + 120, row["y"] + row["height"] / 2)
        wait_for_link(page, key=key)
        wait_until_drawn(page)
        plot(page, "matrix").scroll_into_view_if_needed()
        label = tick(page, "matrix", "y", 2).bounding_box()
        page.touchscreen.tap(label["x"] + label["width"] / 2, label["y"] + label["height"] / 2)
        wait_for_link(page, query=2)
        context.close()

    def test_the_keyboard_alone_selects_a_key(self, page, server):
        open_screen(page, server)
        field = page.get_by_role("combobox", name=re.compile("Key"))
        field.focus()
        page.keyboard.press("ArrowDown")
        page.keyboard.type("watching")
        page.keyboard.press("Enter")
        wait_for_link(page, key=3)
        expect(finding(page)).to_contain_text("to “watching”")

    def test_points_of_the_map_by_key(self, page, server):
        open_screen(page, server)
        page.get_by_role("group", name="Map of queries and keys").focus()
        page.keyboard.press("ArrowDown")
        page.keyboard.press("Home")
        page.keyboard.press("Enter")
        wait_for_link(page, query=7, key=0)
