"""The first screen in a real browser: what it shows, and what has to follow."""

import re

import pytest
from playwright.sync_api import expect

from attnviz.figures.numbers import share_text
from tests.browser.conftest import LOAD_MS
from tests.browser.screen import (
    DOOR,
    answered,
    bars,
    cells,
    chip,
    chips,
    expect_soon,
    finding,
    hover_cell,
    line_starts,
    link,
    map_point,
    once_changed,
    open_screen,
    picked_chips,
    plot,
    readout,
    sentence,
    show_attention,
    verdict,
    wait_for_link,
    wait_until_drawn,
    wait_until_still,
)


def test_the_first_screen_shows_the_door_example(page, server):
    open_screen(page, server)

    expect(finding(page)).to_contain_text("“it” looks mostly at “[CLS]” (48.4%) and “door” (47.5%)")
    expect(chips(page)).to_have_count(11)
    expect(chip(page, 7)).to_have_attribute("aria-pressed", "true")
    assert picked_chips(page) == [7]  # and no other
    expect(verdict(page)).to_contain_text("Checked: 13 comparisons, weights within")
    expect(page.locator(".viewer .notes")).to_contain_text("Before the softmax, “it” scores “door” 4.13.")
    assert len(cells(page)) == 11
    assert bars(page)[:2] == ["[CLS]·0", "door·5"]
    assert line_starts(page) == [map_point(page, "queries", 7)] * 5
    expect(page.get_by_role("alert")).to_have_count(0)
    expect(page).to_have_title("Explore · attnviz")


VERDICT = re.compile(r"^Checked: 13 comparisons, weights within \d(\.\d)?\s×\s10⁻[⁶⁷]$")
"""Rounding depends on the number of threads."""
IS_CUT = """shown => {
    for (let node = shown; node && node.tagName !== "A"; node = node.parentElement)
        if (node.scrollWidth > node.clientWidth && getComputedStyle(node).display !== "inline") return true;
    return false;
}"""


@pytest.mark.nightly
@pytest.mark.parametrize("width", [1400, 400])
def test_the_verdict_is_not_cut(server, page, width):
    page.set_viewport_size({"width": width, "height": 900})
    open_screen(page, server)
    expect(verdict(page)).to_have_text(VERDICT)
    wait_until_still(page)
    assert not verdict(page).evaluate(IS_CUT)


@pytest.mark.nightly
def test_nor_is_it_on_another_page(server, page):
    open_screen(page, server, "find_a_head")
    shown = page.get_by_text("weights within").filter(visible=True).first
    expect(shown).to_have_text(VERDICT)
    wait_until_still(page)
    assert not shown.evaluate(IS_CUT)


@pytest.mark.nightly
def test_everything_of_the_main_job_is_above_the_fold(page, server):
    open_screen(page, server)
    wait_until_still(page)
    for shown in (
        chip(page, 7),
        finding(page),
        verdict(page),
        page.locator(".viewer .matrix"),
        plot(page, "map"),
    ):
        box = shown.bounding_box()
        assert box["y"] >= 0 and box["y"] + box["height"] <= 900


@pytest.mark.nightly
def test_next_and_the_number_field_change_the_head(page, server):
    open_screen(page, server)
    before = cells(page)
    page.get_by_role("button", name="Next head").click()
    expect(finding(page)).to_contain_text("Layer 3, head 2:")
    wait_for_link(page, layer=3, head=2)
    wait_until_drawn(page)
    second = once_changed(page, cells, before)
    page.get_by_role("button", name="Options").click()
    expect(page.get_by_role("spinbutton", name=re.compile("^Head"))).to_have_value("2")

    field = page.get_by_role("spinbutton", name=re.compile("^Head"))
    field.fill("11")
    field.press("Enter")
    expect(finding(page)).to_contain_text("Layer 3, head 11:")
    wait_for_link(page, layer=3, head=11)
    wait_until_drawn(page)

    assert once_changed(page, cells, second) != before
    assert picked_chips(page) == [7]
    expect(sentence(page)).to_have_value(DOOR)


NOTE_HEADS = """() => {
    const head = () => Number(new URLSearchParams(location.search).get("head"));
    window.heads = [head()];
    for (const name of ["pushState", "replaceState"]) {
        const change = history[name].bind(history);
        history[name] = (...to) => { change(...to); window.heads.push(head()); };
    }
}"""
"""Keeps every head that the address says from now on."""


@pytest.mark.nightly
def test_clicks_in_a_row_are_not_taken_back(page, server):
    """Two of them may reach the server as one; none leads back."""
    open_screen(page, server, layer=3, head=1)
    page.evaluate(NOTE_HEADS)
    for _ in range(4):
        page.get_by_role("button", name="Next head").click()
    page.get_by_role("button", name="Options").click()
    page.get_by_role("spinbutton", name=re.compile("^Layer")).fill("2")
    page.get_by_role("spinbutton", name=re.compile("^Layer")).press(
        "Enter"
    )  # read after all that was clicked before it
    wait_for_link(page, layer=2)
    expect(finding(page)).to_contain_text("Layer 2, head ")
    heads = page.evaluate("window.heads")
    assert heads[0] == 1 and heads[-1] >= 2
    assert heads == sorted(heads)
    expect(finding(page)).to_contain_text(f"Layer 2, head {heads[-1]}:")


@pytest.mark.nightly
def test_hover_says_what_a_cell_holds(page, server, door_trace):
    open_screen(page, server)
    hover_cell(page, 8, 5)
    expect(readout(page)).to_have_text(
        f"“opened”·8 → “door”·5: {share_text(float(door_trace.weights(3, 1)[8, 5]))}"
    )
    page.mouse.move(5, 5)
    expect(readout(page)).not_to_contain_text("“opened”·8")


@pytest.mark.nightly
def test_a_blank_text_gets_a_message_and_nothing_of_the_text_before(page, server):
    open_screen(page, server)
    show_attention(page, "  ")

    expect(page.get_by_role("alert")).to_have_text(re.compile("The text is empty. Type a sentence."))
    expect(page.get_by_role("alert")).to_have_count(1)
    expect(page.get_by_text("Traceback")).to_have_count(0)
    expect(sentence(page)).to_have_value("  ")
    wait_until_drawn(page)
    expect(chips(page)).to_have_count(0)
    expect(page.locator(".cartesianlayer")).to_have_count(0)  # no chart
    expect(page.get_by_text("of its attention to")).to_have_count(0)  # no finding
    expect(page.get_by_text("weights within")).to_have_count(0)  # no verdict
    expect(sentence(page)).to_have_value("  ")

    show_attention(page, "the door")
    expect(page.get_by_role("alert")).to_have_count(0)
    expect(chips(page)).to_have_count(4)
    expect(sentence(page)).to_have_value("the door")


WATCH = """() => {
    const inViewers = selector => [...document.querySelectorAll(".st-key-viewer *")].flatMap(
        element => [...(element.shadowRoot?.querySelectorAll(`.viewer ${selector}`) ?? [])]);
    const parts = {
        map: [() => [...document.querySelectorAll(".st-key-map")], ".cartesianlayer"],
        matrix: [() => inViewers(".matrix"), ".cells[width]"],
        ranking: [() => inViewers(".ranking"), "li"],
    };
    window.seen = {};
    const frame = () => {
        for (const [key, [find, drawn]] of Object.entries(parts)) {
            const tall = find().filter(element => element.getBoundingClientRect().height > 50);
            (window.seen[key] ??= []).push([tall.length, tall.filter(element => element.querySelector(drawn)).length]);
        }
        requestAnimationFrame(frame);
    };
    requestAnimationFrame(frame);
}"""


@pytest.mark.nightly
def test_pictures_stay_while_the_next_ones_are_made(page, server):
    open_screen(page, server, layer=5, head=3)
    page.evaluate(WATCH)
    slowly = page.context.new_cdp_session(page)  # or the hole is seldom as long as a frame
    slowly.send("Emulation.setCPUThrottlingRate", {"rate": 4})
    for head in (4, 5, 6):
        with answered(page):
            page.get_by_role("button", name="Next head").click()
        expect(finding(page)).to_contain_text(f"head {head}:")
    show_attention(page, "The old door creaked.")
    expect(chips(page)).to_have_count(7)
    wait_until_drawn(page)
    slowly.send("Emulation.setCPUThrottlingRate", {"rate": 1})  # the window is another test's afterwards

    for key, seen in page.evaluate("window.seen").items():
        assert len(seen) > 10, "it did not look"
        rooms, pictures = zip(*seen, strict=True)
        assert set(rooms) == {1}, f"frames without room for {key}, or with room for two: {rooms}"
        assert set(pictures) == {1}, f"frames without {key}, or with two: {pictures}"


@pytest.mark.nightly
def test_a_text_over_the_limit_is_offered_to_be_cut_and_marked(page, server):
    open_screen(page, server, iterations=250)
    show_attention(page, "the old door " * 300)
    expect(page.get_by_role("alert")).to_contain_text("902 tokens long; at most 512 can be read")
    expect(chips(page)).to_have_count(0)  # nothing of the text before
    page.get_by_role("button", name="Cut the text after 512 tokens").click()

    expect(chips(page)).to_have_count(512, timeout=LOAD_MS)
    expect(page.get_by_role("alert")).to_have_count(0)
    mark = page.get_by_text("cut here: 390 more tokens not read")
    mark.scroll_into_view_if_needed()
    expect(mark).to_be_in_viewport()
    wait_until_drawn(page)
    expect_soon(page, lambda page: len(cells(page)), 512)
    wait_until_still(page)
    hover_cell(page, 100, 200)
    words = re.compile(r"^“\w+”·(\d+) → “\w+”·(\d+): (under )?[\d.]+%$")
    expect(readout(page)).to_have_text(words)
    query, key = map(int, words.match(readout(page).text_content()).groups()[:2])
    assert abs(query - 100) <= 4 and abs(key - 200) <= 4  # two pixels: a cell is half of one


@pytest.mark.nightly
def test_the_verdict_leads_to_the_verification_page_and_back(page, server):
    open_screen(page, server, layer=2, head=5, query=3, text="The old door creaked.")
    chosen = link(page)
    verdict(page).click()

    page.wait_for_url(re.compile("/verification"), timeout=LOAD_MS)
    wait_until_drawn(page, "verification")
    expect(page.get_by_text("Are these numbers the model's own?")).to_be_visible()
    expect(page.get_by_text("The row of “door” (token 3) in layer 2, head 5")).to_be_visible()
    expect(sentence(page)).to_have_value("The old door creaked.")
    expect_soon(page, link, chosen)
    expect(page.get_by_text("Page not found")).to_have_count(0)

    page.get_by_test_id("stSidebar").get_by_role("link", name="Explore", exact=True).click()
    wait_until_drawn(page)
    expect(finding(page)).to_contain_text("Layer 2, head 5: “door” ")
    expect_soon(page, link, chosen)
    expect(sentence(page)).to_have_value("The old door creaked.")
    page.get_by_role("button", name="Options").click()
    expect(page.get_by_role("spinbutton", name=re.compile("^Layer"))).to_have_value("2")
    expect(page.get_by_role("spinbutton", name=re.compile("^Head"))).to_have_value("5")


@pytest.mark.nightly
def test_every_preset_can_be_verified(page, server):
    open_screen(page, server, "verification")
    page.get_by_role("button", name="Verify every preset").click()
    expect(page.get_by_text("6 of 6 passed.")).to_be_visible(timeout=LOAD_MS)
    expect(page.get_by_text("Not the model's")).to_have_count(0)
