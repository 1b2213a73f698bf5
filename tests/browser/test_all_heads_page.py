"""The page "All heads" in Chromium: the grid is drawn, heads are picked by mouse and keyboard, 512 tokens work."""

import re
from urllib.parse import urlencode

import numpy as np
import pytest
from playwright.sync_api import expect

from tests.app.hostile import TEXT
from tests.browser.conftest import LOAD_MS
from tests.browser.screen import answered, link, plot, wait_for_link, wait_until_drawn

pytestmark = pytest.mark.nightly

OLD_DOOR = "The old door creaked."
ROW = 35  # px, of a table of Streamlit's


def grid(page):
    return page.get_by_role("grid", name="All heads")


def cell(page, layer, head):
    return grid(page).get_by_role("gridcell", name=re.compile(f"^Layer {layer}, head {head}: "))


def line_below(page):
    """The line below the grid."""
    return page.locator(".head_grid .live")


def open_heads(page, server, **params):
    page.goto(f"{server}/all_heads?{urlencode(params)}")
    expect(grid(page)).to_be_visible(timeout=LOAD_MS)
    expect(plot(page, "head_map")).to_be_visible(timeout=LOAD_MS)
    wait_until_drawn(page)


def expect_picked(page, layer, head):
    """The head is the picked one: in the address, the sidebar, the grid and the list of its like."""
    wait_for_link(page, layer=layer, head=head)
    expect(page.get_by_role("spinbutton", name="Layer")).to_have_value(str(layer))
    expect(page.get_by_role("spinbutton", name="Head")).to_have_value(str(head))
    expect(page.get_by_text(f"Most similar to layer {layer}, head {head}")).to_be_visible()
    expect(grid(page).locator("[aria-selected=true]")).to_have_count(1)
    expect(cell(page, layer, head)).to_have_attribute("aria-selected", "true")
    wait_until_drawn(page)


def wait_for_pictures(page):
    """They come in messages of their own, after the grid."""
    expect(grid(page).locator("image")).to_have_count(
        grid(page).get_by_role("gridcell").count(), timeout=LOAD_MS
    )


def drawn_pixels(page):
    """Width and height of every picture as the browser has decoded it, and its range of red."""
    wait_for_pictures(page)
    return grid(page).evaluate("""async grid => Promise.all(Array.from(grid.querySelectorAll('image'), async element => {
        const image = new Image();
        image.src = element.getAttribute('href');
        await image.decode();
        const canvas = new OffscreenCanvas(image.width, image.height), context = canvas.getContext('2d');
        context.drawImage(image, 0, 0);
        const red = context.getImageData(0, 0, image.width, image.height).data.filter((_, at) => at % 4 === 0);
        return [image.width, image.height, Math.min(...red), Math.max(...red)];
    }))""")


def test_a_link(server, page):
    open_heads(page, server, text=OLD_DOOR, layer=4, head=2)
    pixels = np.array(drawn_pixels(page))
    assert pixels.shape == (72, 4)
    assert (pixels[:, :2] == 7).all()  # [CLS] the old door creaked . [SEP]
    assert (pixels[:, 2] == 0x0A).all()  # the strongest tone is somewhere in each
    expect(line_below(page)).to_contain_text("Layer 4, head 2: largest weight ")
    expect_picked(page, 4, 2)
    expect(page).to_have_title("Pictures and numbers · All heads · attnviz")
    expect(page.get_by_role("alert")).to_have_count(0)


def test_a_click_picks_a_head_everywhere(page, server):
    open_heads(page, server, text=OLD_DOOR)
    cell(page, 1, 8).click()
    expect_picked(page, 1, 8)
    page.get_by_test_id("stSidebar").get_by_role("link", name="Explore", exact=True).click()
    expect(page.get_by_text(re.compile("^Layer 1, head 8: "))).to_be_visible(timeout=LOAD_MS)


def test_the_keyboard_alone_is_enough(page, server):
    open_heads(page, server, text=OLD_DOOR, layer=2, head=10)
    expect(grid(page).locator("[tabindex='0']")).to_have_count(1)
    cell(page, 2, 10).focus()
    for key in ("ArrowDown", "ArrowRight", "ArrowRight"):  # the second has nowhere to go
        page.keyboard.press(key)
    expect(cell(page, 3, 11)).to_be_focused()
    expect(line_below(page)).to_contain_text("Layer 3, head 11: ")
    assert link(page)["layer"] == "2"  # moving picks nothing
    page.keyboard.press("Enter")
    expect_picked(page, 3, 11)
    expect(cell(page, 3, 11)).to_be_focused()  # and so it goes on
    page.keyboard.press("Home")
    page.keyboard.press("ArrowUp")
    page.keyboard.press(" ")
    expect_picked(page, 2, 0)
    expect(grid(page).locator("[tabindex='0']")).to_have_count(1)


def test_hover_says_what_a_head_is(page, server):
    open_heads(page, server, text=OLD_DOOR, grid="entropy")
    cell(page, 0, 5).hover()
    expect(line_below(page)).to_contain_text("Layer 0, head 5: entropy ")
    page.mouse.move(2, 2)
    expect(line_below(page)).to_contain_text("Layer 3, head 1: entropy ")


def test_a_pick_does_not_send_the_pictures_again(page, server):
    frames = []
    page.on("websocket", lambda socket: socket.on("framereceived", lambda frame: frames.append(len(frame))))
    open_heads(page, server, text=OLD_DOOR)
    wait_for_pictures(page)
    pictures = sum(
        len(href.partition(",")[2])  # as it is sent; the page puts the kind of picture before it
        for href in grid(page)
        .locator("image")
        .evaluate_all("all => all.map(element => element.getAttribute('href'))")
    )
    assert max(frames) > pictures
    frames.clear()
    cell(page, 5, 4).click()
    expect_picked(page, 5, 4)
    assert 0 < max(frames) < pictures / 2
    expect(grid(page).locator("image")).to_have_count(72)


def test_a_point_of_the_map_and_a_row_of_the_list_pick_their_head(page, server):
    open_heads(page, server, text=OLD_DOOR)
    for layer, head in ((0, 2), (3, 1), (0, 2)):
        point = plot(page, "head_map").locator(".point").nth(12 * layer + head)
        point.scroll_into_view_if_needed()
        box = point.bounding_box()
        page.mouse.move(box["x"] + box["width"] / 2 - 1, box["y"] + box["height"] / 2)
        page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        expect_picked(page, layer, head)
    page.get_by_role("grid").first.scroll_into_view_if_needed()
    row = page.locator(".ranked_list").get_by_role("button").first
    layer, head = re.search(r"Layer (\d+), head (\d+)", row.inner_text()).groups()
    row.click()
    expect_picked(page, int(layer), int(head))


def test_a_row_of_the_table_picks_its_head(page, server):
    open_heads(page, server, text=OLD_DOOR, layer=3, head=1)
    table = page.get_by_test_id("stDataFrame")
    expect(table.locator("canvas").first).to_be_visible()  # on which the rows are drawn
    for row in (2, 0, 2):
        table.click(position={"x": 17, "y": (row + 1.5) * ROW})
        expect_picked(page, 0, row)
    with answered(page):
        table.click(position={"x": 17, "y": 3.5 * ROW})  # a picked row that is taken away comes back
    expect_picked(page, 0, 2)
    page.get_by_role("button", name="Next").click()
    expect_picked(page, 0, 3)
    table.click(position={"x": 17, "y": 3.5 * ROW})  # picked again, though Next took its place
    expect_picked(page, 0, 2)


def test_the_whole_grid_fits_a_laptop_s_window(page, server):
    open_heads(page, server, text=OLD_DOOR)
    box = grid(page).bounding_box()
    assert box["y"] + box["height"] < 900
    assert box["x"] + box["width"] <= 1400
    assert cell(page, 0, 0).bounding_box()["width"] >= 48


def test_a_phone_scrolls_the_grid_alone(visitors, server):
    page = visitors(width=400, height=850)
    open_heads(page, server, text=OLD_DOOR, layer=2, head=11)
    assert cell(page, 2, 11).bounding_box()["width"] >= 32
    page.locator(".st-key-head_grid").evaluate("element => element.scrollIntoView({block: 'center'})")
    expect(cell(page, 2, 11)).to_be_in_viewport()  # the picked head is scrolled to, sideways
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
    cell(page, 1, 1).click()
    wait_for_link(page, layer=1, head=1)  # the sidebar is closed here
    expect(cell(page, 1, 1)).to_have_attribute("aria-selected", "true")


def test_512_tokens(page, server):
    open_heads(page, server, text="the old door creaked when it opened " * 90, cut=1)
    pixels = np.array(drawn_pixels(page))
    assert pixels.shape == (72, 4)
    assert (pixels[:, :2] == 64).all()
    assert (pixels[:, 2] == 0x0A).all()
    expect(page.get_by_text("Each pixel is the largest value in its block")).to_be_visible()
    cell(page, 0, 3).click()
    expect_picked(page, 0, 3)


def test_hostile_tokens_do_nothing(visitors, server):
    page = visitors()
    open_heads(page, server, model="hostile", layer=1, head=0, text=TEXT)
    expect(page).to_have_title("Pictures and numbers · All heads · attnviz")
    expect(page.get_by_test_id("stMain").locator("img[src=x], b, .katex")).to_have_count(0)
    assert (np.array(drawn_pixels(page))[:, 2:] == [0x0A, 0xFF]).any()
