"""What a newcomer meets: the purpose of attnviz, a tour, and the menu."""

import re

import pytest
from playwright.sync_api import expect

from attnviz.cli import main
from tests.browser.conftest import LOAD_MS
from tests.browser.screen import (
    DOOR,
    chip,
    chips,
    click_cell,
    expect_soon,
    finding,
    head,
    link,
    open_screen,
    sentence,
    wait_for_a_frame,
    wait_for_link,
    wait_until_drawn,
    wait_until_still,
)
from ui.part import part_named
from ui.rooms import PAGES, ROOMS
from ui.shell.first_look import PURPOSE


def tour(page):
    return page.get_by_role("region", name="Tour")


IS_WHOLE_BESIDE_THE_TOUR = """() => {
    const parts = document.attnvizStage?.viewer?.root.querySelectorAll("[part]") ?? [];
    const all = [...document.querySelectorAll(".stMain [class*=st-key-]"), ...parts];
    const outlined = all.find(element => getComputedStyle(element).outlineStyle === "solid");
    if (!outlined) return false;
    const [stop, about] = [document.querySelector(".st-key-tour_under_way"), outlined].map(element => element.getBoundingClientRect());
    return about.top >= 0 && about.bottom <= innerHeight && (about.top >= stop.bottom || about.bottom <= stop.top);
}"""


def at_stop(page, number, title):
    """The stop is there, and what it is about is framed and whole beside it."""
    expect(tour(page)).to_contain_text(f"{number} of 6 · {title}.")
    wait_for_link(page, tour=number)
    page.wait_for_function(IS_WHOLE_BESIDE_THE_TOUR)
    expect(tour(page)).to_be_in_viewport(ratio=1)


def by_keys(page):
    """What the stops ask for, one after the other, with the keyboard alone."""

    def type_a_sentence():
        sentence(page).focus()
        page.keyboard.press("Control+a")
        page.keyboard.type("The old door creaked.")
        page.keyboard.press("Enter")

    def select_a_token():
        chip(page, 3).focus()
        page.keyboard.press("ArrowRight")
        page.keyboard.press("Enter")

    def select_a_head():
        page.locator(".viewer .heads [role=gridcell][tabindex='0']").focus()
        page.keyboard.press("ArrowDown")
        page.keyboard.press("Enter")

    def select_a_cell():
        page.locator(".viewer .matrix .sheet").focus()
        page.keyboard.press("ArrowDown")
        page.keyboard.press("Enter")

    def open_the_map():
        page.get_by_role("button", name="Map", exact=True).focus()
        page.keyboard.press("Enter")

    return type_a_sentence, select_a_token, select_a_head, select_a_cell, open_the_map


def by_pointer(page):
    """The same by clicking."""

    def type_a_sentence():
        sentence(page).fill("The old door creaked.")
        sentence(page).press("Enter")

    return (
        type_a_sentence,
        lambda: chip(page, 3).click(),
        lambda: head(page, 2, 3).click(),
        lambda: click_cell(page, 2, 3),
        lambda: page.get_by_role("button", name="Map", exact=True).click(),
    )


@pytest.mark.nightly
@pytest.mark.parametrize(("width", "deeds"), [(1366, by_keys), (400, by_pointer)])
def test_a_visitor_does_each_stop_of_the_tour(width, deeds, server, visitors):
    page = visitors(width=width, height=768 if width > 400 else 800, alone=True)
    open_screen(page, server)
    expect(tour(page)).to_contain_text("attnviz shows where a language model's attention goes")
    tour(page).get_by_role("button", name="Start here").click()
    titles = ("Sentence", "Token", "Head", "Matrix", "Map")
    for number, (title, do) in enumerate(zip(titles, deeds(page), strict=True), start=1):
        at_stop(page, number, title)
        wait_until_drawn(page)
        do()
    at_stop(page, 6, "Check")
    tour(page).get_by_role("button", name="Back").click()
    at_stop(page, 5, "Map")
    wait_until_drawn(page)
    tour(page).get_by_role("button", name="Skip").click()
    at_stop(page, 6, "Check")
    tour(page).get_by_role("button", name="Finish").click()
    expect(tour(page).get_by_role("button", name="Take the tour again")).to_be_visible()
    expect(page).not_to_have_url(re.compile("tour="))


@pytest.mark.nightly
def test_the_tour_is_left_with_escape_and_goes_on_another_day(server, visitors):
    page = visitors(width=1366, height=768, alone=True)
    open_screen(page, server)
    tour(page).get_by_role("button", name="Start here").click()
    at_stop(page, 1, "Sentence")
    tour(page).get_by_role("button", name="Skip").click()
    at_stop(page, 2, "Token")
    wait_until_drawn(page)
    page.keyboard.press("Escape")
    expect(tour(page).get_by_role("button", name="Continue the tour: stop 2 of 6")).to_be_visible()
    wait_until_drawn(page)
    page.goto(f"{server}/")  # another day
    expect(tour(page).get_by_role("button", name="Continue the tour: stop 2 of 6")).to_be_visible(
        timeout=LOAD_MS
    )


@pytest.mark.nightly
def test_the_tour_ends_in_the_first_lesson(server, visitors):
    page = visitors(width=1366, height=768, alone=True)
    open_screen(page, server, layer=3, head=1, tour=6)
    tour(page).get_by_role("button", name="Finish").wait_for()
    page.get_by_role("link", name="Begin the first lesson").click()
    expect(page.locator(".st-key-lesson_line")).to_contain_text("step 1 of", timeout=LOAD_MS)
    expect(tour(page)).to_have_count(0)
    page.get_by_role("button", name="Leave the lesson").click()
    expect(tour(page).get_by_role("button", name="Take the tour again")).to_be_visible()


@pytest.mark.nightly
@pytest.mark.parametrize(("width", "height"), [(1366, 768), (400, 900)])
def test_where_to_begin_stands_in_the_first_window(width, height, server, visitors):
    page = visitors(width=width, height=height, alone=True)
    open_screen(page, server)
    expect(tour(page).get_by_role("button", name="Start here")).to_be_in_viewport(ratio=1)
    expect(tour(page)).to_contain_text(PURPOSE)
    assert bottom(tour(page)) <= chip(page, 7).bounding_box()["y"]


@pytest.mark.nightly
def test_an_entry_of_the_menu_with_the_focus_is_framed_and_hides_no_other(server, visitors):
    page = visitors(width=1366, height=768)
    open_screen(page, server)
    wait_until_drawn(page)
    entries = page.get_by_test_id("stSidebar").get_by_role("link")
    page.get_by_role("link", name="Explore").focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    expect(entries.nth(2)).to_be_focused()
    expect(entries.nth(2)).to_have_css("outline-style", "solid")
    tooltip = page.get_by_role("tooltip").filter(visible=True)
    expect(tooltip).to_contain_text(ROOMS[2].asks)
    wait_until_still(page)
    entry = entries.nth(2).bounding_box()
    assert tooltip.bounding_box()["x"] >= entry["x"] + entry["width"]
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.closest('[data-testid=stSidebar]')") is None


def bottom(element):
    """Where an element ends, in pixels from the top of the window."""
    box = element.bounding_box()
    return box["y"] + box["height"]


@pytest.mark.nightly
def test_no_hint_lies_over_a_text_that_is_typed(server, page):
    open_screen(page, server)
    sentence(page).click()
    page.keyboard.type("The old door ")
    hint = page.locator(".st-key-field_text").get_by_test_id("InputInstructions")
    expect(hint).to_be_visible()
    assert hint.bounding_box()["y"] >= bottom(sentence(page))
    expect(page.get_by_text("Press Ctrl+Enter").filter(visible=True)).to_have_count(0)
    page.get_by_role("button", name="More input").click()
    page.get_by_test_id("stPopoverBody").get_by_role("textbox").click()
    page.keyboard.type("It creaked, ")
    expect(page.get_by_test_id("stPopoverBody").get_by_text("Press Ctrl+Enter")).to_have_count(1)
    expect(page.get_by_text("Press Ctrl+Enter").filter(visible=True)).to_have_count(0)
    expect(page.get_by_test_id("InputInstructions").filter(visible=True)).to_have_count(0)


@pytest.mark.nightly
def test_a_stop_that_is_drawn_again_is_not_kept_again(server, visitors):
    """A tour that was finished while a run was under way stays finished."""
    page = visitors(width=1366, height=768, alone=True)
    open_screen(page, server, layer=3, head=1, tour=6)
    expect(tour(page)).to_contain_text("6 of 6")
    page.evaluate("localStorage.setItem('attnviz.tour', 7)")  # as "Finish" does
    page.get_by_role("button", name="Next head").click()
    wait_for_link(page, head=2)
    wait_until_drawn(page)
    assert page.evaluate("localStorage.getItem('attnviz.tour')") == "7"


@pytest.mark.nightly
def test_on_a_phone_the_menu_is_one_tap_away_and_closes_when_a_page_is_chosen(server, visitors):
    page = visitors(width=400, height=800)
    open_screen(page, server)
    expect(sentence(page)).to_be_visible()
    expect(page.get_by_role("combobox", name="Model")).to_be_visible()
    expect(page.get_by_role("button", name="Options")).to_be_visible()
    page.get_by_test_id("stExpandSidebarButton").click()
    entry = page.get_by_test_id("stSidebar").get_by_role("link", name="Compare")
    expect(entry).to_be_in_viewport()
    entry.click()
    expect(page.get_by_role("heading", name="Compare", level=1)).to_be_visible(timeout=LOAD_MS)
    expect(entry).not_to_be_in_viewport()


@pytest.mark.nightly
def test_on_a_phone_what_is_found_stays_in_sight(server, visitors):
    page = visitors(width=400, height=800)
    open_screen(page, server)
    page.locator(".viewer .matrix").scroll_into_view_if_needed()
    page.mouse.move(200, 600)
    page.mouse.wheel(0, 500)
    expect(finding(page)).to_be_in_viewport(ratio=1)


@pytest.mark.nightly
@pytest.mark.parametrize(
    "name",
    [part.name for part in PAGES if "head" in part.asks and not part.has_finding and not part.is_stage],
)
def test_on_a_phone_a_tap_on_next_is_seen_on_every_page(name, server, visitors):
    page = visitors(width=400, height=800)
    open_screen(page, server, part_named(name).address, layer=3, head=1)
    line = page.locator(".st-key-selected_finding")
    expect(line).to_contain_text("Layer 3, head 1: “it” gives 47.5%")
    page.get_by_role("button", name="Next", exact=True).click()
    expect(line).to_contain_text("Layer 3, head 2: “it” gives 1.7%")
    expect(line).to_be_in_viewport(ratio=1)
    page.mouse.move(200, 600)
    page.mouse.wheel(0, 900)
    expect(line).to_be_in_viewport(ratio=1)
    page.set_viewport_size({"width": 1366, "height": 900})
    expect(line).to_be_hidden()


@pytest.mark.nightly
def test_on_a_phone_the_menu_of_input_closes_when_a_bundle_is_opened(server, visitors, tmp_path, embedded):
    path = tmp_path / "bundle.zip"
    assert main(["export", DOOR, "--layer", "3", "--head", "1", "--out", str(path)]) == 0
    page = visitors(width=400, height=800)
    open_screen(page, server)
    page.get_by_role("button", name="More input").click()
    page.locator("input[type=file][accept*=zip]").set_input_files(path)
    expect(page.get_by_text("From a bundle, as recorded")).to_be_visible(timeout=LOAD_MS)
    expect(page.get_by_test_id("stPopoverBody")).to_have_count(0)
    expect(page.locator("input[type=file][accept*=zip]")).to_have_count(0)


@pytest.mark.nightly
def test_a_tap_on_a_page_keeps_what_is_typed(server, page):
    open_screen(page, server)
    sentence(page).fill("The cat slept because it was tired.")
    box = page.get_by_test_id("stSidebar").get_by_role("link", name="All heads").bounding_box()
    finger = page.context.new_cdp_session(page)
    place = {"x": box["x"] + 30, "y": box["y"] + box["height"] / 2}
    finger.send("Input.dispatchTouchEvent", {"type": "touchStart", "touchPoints": [place]})
    wait_for_a_frame(page)  # a finger stays for longer
    finger.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    expect(page).to_have_title("Pictures and numbers · All heads · attnviz")
    wait_for_link(page, text="The cat slept because it was tired.")
    expect(sentence(page)).to_have_value("The cat slept because it was tired.")


@pytest.mark.nightly
@pytest.mark.parametrize("width", [1400, 400])
def test_a_page_keeps_what_is_typed_for_b(width, server, visitors):
    page = visitors(width=width)
    typed = "The cat slept because it was tired."
    open_screen(page, server, "compare", text=DOOR, layer=3, head=1, other_text="I was watching the window.")
    page.get_by_label("Sentence B", exact=True).fill(typed)
    to_all_heads(page, width)
    wait_for_link(page, other_text=typed)


@pytest.mark.nightly
@pytest.mark.parametrize("width", [1400, 400])
def test_a_page_keeps_what_is_typed_as_the_second_sentence(width, server, visitors):
    page = visitors(width=width)
    open_screen(page, server, text=DOOR, layer=3, head=1)
    page.get_by_role("button", name="More input").click()
    page.locator(".st-key-field_second textarea").fill("It was late.")
    to_all_heads(page, width)
    wait_for_link(page, second="It was late.")


def to_all_heads(page, width):
    """Opens another page from the menu, at once."""
    if width < 768:
        page.get_by_test_id("stExpandSidebarButton").click()
    page.get_by_test_id("stSidebar").get_by_role("link", name="All heads").click()
    expect(page).to_have_title("Pictures and numbers · All heads · attnviz", timeout=LOAD_MS)


@pytest.mark.nightly
def test_a_head_that_is_not_there_is_the_last_one(server, page):
    open_screen(page, server, layer=3, head=1)
    page.get_by_role("button", name="Options").click()
    field = page.get_by_role("spinbutton", name="Head", exact=True)
    field.fill("14")
    field.press("Enter")
    expect(finding(page)).to_contain_text("Layer 3, head 11:")
    expect(field).to_have_value("11")
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Next head").click()
    expect(finding(page)).to_contain_text("Layer 4, head 0:")


@pytest.mark.nightly
def test_a_closed_menu_covers_nothing_of_the_page(server, visitors):
    page = visitors(width=1366, height=768)
    open_screen(page, server)
    page.get_by_test_id("stSidebar").hover()
    page.get_by_test_id("stSidebarCollapseButton").get_by_role("button").click()
    expect(page.get_by_test_id("stExpandSidebarButton")).to_be_visible()
    for control in (page.get_by_role("heading", level=1), page.get_by_role("button", name="Export")):
        control.click(trial=True)  # refused where something lies over it


@pytest.mark.nightly
def test_what_is_typed_and_not_shown_yet_is_marked(page, server):
    open_screen(page, server, text=DOOR, layer=3, head=1)
    field = page.get_by_role("textbox", name="Sentence")
    hint = """() => {
        const line = document.querySelector(".st-key-field_text [data-testid=InputInstructions]");
        return line && getComputedStyle(line, "::after").content.replaceAll('"', "");
    }"""
    nothing = (None, "none")
    assert page.evaluate(hint) in nothing
    field.press("End")
    field.press_sequentially(" Then")
    expect_soon(page, lambda page: page.evaluate(hint), "Not shown yet: Enter shows it")
    field.press("Enter")
    wait_for_link(page, text=f"{DOOR} Then")
    expect_soon(page, lambda page: page.evaluate(hint) in nothing, True)


@pytest.mark.nightly
def test_a_press_on_a_picture_of_the_sentence_before_shows_the_new_one_alone(page, server):
    """Query and key that it would select are tokens of the old sentence."""
    open_screen(page, server, text=DOOR, layer=3, head=1)
    field = page.get_by_role("textbox", name="Sentence")
    field.press("Home")
    field.press_sequentially("Yesterday ")
    click_cell(page, 7, 5)
    wait_for_link(page, text=f"Yesterday {DOOR}")
    expect(chips(page).nth(1)).to_contain_text("yesterday")
    wait_until_drawn(page)
    assert "key" not in link(page)
    click_cell(page, 8, 6)  # the next press counts
    wait_for_link(page, query=8, key=6)


@pytest.mark.nightly
def test_the_frame_of_a_stop_goes_with_the_tour(page, server):
    page.goto(f"{server}/?tour=4")
    wait_until_drawn(page)
    expect(page.locator(".viewer .matrix")).to_have_css("outline-style", "solid")
    page.get_by_role("button", name="Leave", exact=True).click()
    expect(page.locator(".viewer .matrix")).to_have_css("outline-style", "none")
