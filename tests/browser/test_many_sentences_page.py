"""The page "Many sentences" in Chromium: lines pasted and uploaded, WebGL, clicks, search, cancel, what is saved."""

import io
import re

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import expect

from tests.browser.conftest import LOAD_MS
from tests.browser.screen import (
    expect_its_one_name,
    expect_soon,
    wait_for_link,
    wait_for_points,
    wait_until_drawn,
    wait_until_still,
)

pytestmark = pytest.mark.nightly

LINES = "The old door creaked.\nShe opened the door slowly.\nWhy was it closed?"
HOSTILE = (
    "<img src=x onerror=document.title='hacked'> and <b>bold</b>\n"
    "It costs $5 and $x^2$ **more** [link](https://example.org) :smile:\n"
    "שלום door \u202eabc\n"
)
ROW = 35  # px, of a table of Streamlit's
CHART = "document.querySelector('.st-key-joint_map .js-plotly-plot')"


def open_collection(page, server, **params):
    page.goto(f"{server}/many_sentences?" + "&".join(f"{name}={value}" for name, value in params.items()))
    expect(page.get_by_role("button", name="Your own sentences")).to_be_visible(timeout=LOAD_MS)
    wait_until_drawn(page)


def paste(page, text):
    page.get_by_role("button", name="Your own sentences").click()
    page.get_by_role("textbox", name="One sentence per line").fill(text)
    page.get_by_role("button", name="Show these sentences").click()
    page.keyboard.press("Escape")


def upload(page, name, data):
    page.get_by_role("button", name="Your own sentences").click()
    page.locator(
        ".st-key-own_sentences input[type=file], [data-testid=stPopoverBody] input[type=file]"
    ).first.set_input_files({"name": name, "mimeType": "text/plain", "buffer": data})


def expect_sentences(page, n):
    expect(page.get_by_text(re.compile(rf"^Layer \d+, head \d+, {n} sentences: "))).to_be_visible(
        timeout=LOAD_MS
    )
    wait_for_points(page, "joint_map")
    wait_until_drawn(page)
    expect_soon(page, lambda page: n_points(page) == n_points_in_words(page), True)


def n_points(page):
    """How many points the chart has; it may still be the one before."""
    return page.evaluate(
        f"new Set({CHART}._fullData.flatMap(trace => Array.from(trace.customdata ?? [], String))).size"
    )


def n_points_in_words(page):
    text = page.get_by_text(re.compile(r": [\d,]+ points of [\d,]+ tokens in ")).first.text_content()
    return int(re.search(r": ([\d,]+) points of ", text)[1].replace(",", ""))


def opened(page, server, text=LINES, n=3, **params):
    """The page with these lines pasted."""
    open_collection(page, server, **params)
    paste(page, text)
    expect_sentences(page, n)


def place_of(page, side, token):
    """Where a point lies in the window, and that plotly sees the pointer there."""
    page.locator(".st-key-joint_map").scroll_into_view_if_needed()
    wait_until_still(page)
    x, y = page.evaluate(
        f"""([side, token]) => {{ const chart = {CHART}, {{xaxis, yaxis}} = chart._fullLayout;
        const box = chart.getBoundingClientRect();
        for (const trace of chart._fullData) for (let at = 0; at < trace.x.length; at++)
          if (trace.customdata[at][0] === side && trace.customdata[at][1] === token)
            return [box.x + xaxis._offset + xaxis.l2p(trace.x[at]), box.y + yaxis._offset + yaxis.l2p(trace.y[at])]; }}""",
        [side, token],
    )
    return x, y


def click_point(page, side, token):
    x, y = place_of(page, side, token)
    page.mouse.move(x - 2, y)
    page.mouse.move(x, y)
    expect(page.locator(".st-key-joint_map .hoverlayer .hovertext").first).to_be_visible()
    page.mouse.click(x, y)


def marks(page):
    return page.locator(".st-key-joint_map .links text")


def test_a_click_shows_the_sentence_and_its_lines_without_sending_the_points_again(page, server):
    opened(page, server)
    before = page.evaluate(f"window.chart = {CHART}, window.chart.querySelectorAll('.links').length")
    assert before == 0
    click_point(page, 0, 3)  # door, in the first sentence
    expect(page.get_by_text(re.compile("^Sentence 1, line 1: query “door” attends to "))).to_be_visible()
    expect(marks(page).first).to_have_text("door·3")
    expect(marks(page)).to_have_count(6)
    wait_for_link(page, joint_sentence=0, joint_token=3)
    assert page.evaluate(f"window.chart === {CHART}")  # nothing was drawn anew, so a zoom would have stayed
    page.get_by_role("button", name=re.compile("^token 2: old")).click()
    expect(marks(page).first).to_have_text("old·2")
    wait_for_link(page, joint_token=2)
    wait_until_drawn(page)
    page.get_by_role("link", name="Open in Explore").click()
    page.wait_for_url(lambda url: "/many_sentences" not in url, timeout=LOAD_MS)
    wait_for_link(page, text="The old door creaked.", query=2)


def test_lines_follow_the_zoom(page, server):
    opened(page, server)
    click_point(page, 0, 3)
    expect(marks(page).first).to_have_text("door·3")
    ends = "all => all.map(line => line.getAttribute('x2'))"
    lines = page.locator(".st-key-joint_map .links line")
    before = lines.evaluate_all(ends)
    page.evaluate(f"Plotly.relayout({CHART}, {{'xaxis.range': [-1, 1]}})")
    expect(lines.first).not_to_have_attribute("x2", before[0])
    assert len(lines.evaluate_all(ends)) == len(before) == 5


def test_search_counts_lists_and_picks(page, server):
    opened(page, server)
    page.get_by_role("textbox", name="Find a token").fill("door")
    page.keyboard.press("Enter")
    expect(page.get_by_text("“door”: 2 tokens in 2 sentences")).to_be_visible()
    wait_for_link(page, joint_search="door")
    clouds = f"{CHART}._fullData.map(trace => [trace.name, trace.x.length]).filter(([name]) => name.startsWith('found'))"
    expect_soon(page, lambda page: page.evaluate(clouds), [["found queries", 2], ["found keys", 2]])
    wait_until_drawn(page)  # the table comes after the words above it
    table = page.get_by_test_id("stDataFrame").first
    expect(table.get_by_test_id("data-grid-canvas")).to_be_visible()
    wait_until_still(page)
    table.click(position={"x": 17, "y": 2.5 * ROW})
    wait_for_link(page, joint_sentence=1, joint_token=4)  # [CLS] she opened the door
    wait_until_drawn(page)
    wait_until_still(page)
    table.click(position={"x": 17, "y": 1.5 * ROW})
    wait_for_link(page, joint_sentence=0, joint_token=3)


def test_it_has_its_name_and_reads_a_text_file(page, server):
    open_collection(page, server)
    expect_its_one_name(page, "many_sentences")
    upload(page, "lines.txt", "\ufeffOne door.\r\n\r\nTwo doors.\r\n".encode())
    expect_sentences(page, 2)
    wait_for_link(page, joint_sentences="own")


def test_a_file_that_is_no_text_is_refused_and_the_map_stays(page, server):
    opened(page, server)
    upload(page, "lines.txt", b"\x89PNG\r\n\x1a\n\x00\xff" * 50)
    expect(page.get_by_text("The file is not text in UTF-8: byte 1 is 0x89.")).to_be_visible()
    expect(page.get_by_text(re.compile("3 sentences: "))).to_be_visible()


def test_a_line_of_a_megabyte(page, server):
    open_collection(page, server)
    upload(page, "line.txt", b"door and " * 111_000)
    expect(page.get_by_text(re.compile(r"^Layer 3, head 1, 1 sentences?: "))).to_be_visible(timeout=LOAD_MS)
    expect(page.get_by_text("Line 1 is longer than 512 tokens, and cut there.")).to_be_visible()


def test_hostile_lines_do_nothing(visitors, server):
    page = visitors()
    opened(page, server, HOSTILE, joint_search="door", joint_tint="token")
    expect(page).to_have_title("Joint map · Many texts · attnviz")
    expect(page.get_by_test_id("stMain").locator("img[src=x], b, .katex")).to_have_count(0)
    click_point(page, 1, 1)  # points may lie on each other, and then the one on top is picked
    expect(marks(page).first).to_have_text(re.compile(r"^\S+·\d+$"))
    token, position = marks(page).first.text_content().rsplit("·", 1)
    words = rf"^Sentence \d+, line \d+: key “{re.escape(token)}”( \(token {position}\))? gets attention from "
    expect(page.get_by_text(re.compile(words))).to_be_visible()


def test_the_map_before_stays_until_the_next_is_there_and_can_be_cancelled(page, server):
    open_collection(page, server)
    expect_sentences(page, 206)
    page.get_by_role("radio", name="t-SNE").or_(page.get_by_role("button", name="t-SNE")).first.click()
    page.get_by_role("button", name="Cancel").click()
    expect(page.get_by_text("The layout of the map was stopped.")).to_be_visible(timeout=LOAD_MS)
    expect(page.locator(".st-key-joint_map[data-stale=false] .gl-canvas-context")).to_be_visible()
    expect(page.get_by_text(re.compile("^PCA: 5,782 points of 2,891 tokens"))).to_be_visible()
    page.get_by_role("radio", name="PCA").or_(page.get_by_role("button", name="PCA")).first.click()
    expect(page.get_by_text("The layout of the map was stopped.")).to_have_count(0)


@pytest.mark.parametrize("kind", ["PNG", "SVG"])
def test_a_saved_picture_has_the_points(page, server, kind):
    opened(page, server)
    click_point(page, 0, 3)
    expect(marks(page).first).to_have_text("door·3")
    page.get_by_role("button", name="Export").click()
    with page.expect_download(timeout=LOAD_MS) as download:
        words = "as pixels" if kind == "PNG" else "as lines"
        page.locator(f'.save_picture button[title^="Map of many sentences {words}"]').click()
    data = download.value.path().read_bytes()
    if kind == "SVG":
        assert b"data:image/png" in data
        assert "door·3".encode() in data
        return
    with Image.open(io.BytesIO(data)) as image:
        pixels = np.asarray(image.convert("RGB")).reshape(-1, 3).astype(int)
    for colour in ((0x00, 0x72, 0xB2), (0xD5, 0x5E, 0x00), (0xB0, 0x20, 0x8F)):  # queries, keys, picked
        assert (np.abs(pixels - colour).max(axis=1) < 70).sum() > 100, colour


def test_a_phone(visitors, server):
    page = visitors(width=400, height=850)
    open_collection(page, server)
    expect_sentences(page, 206)
    wait_until_still(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
