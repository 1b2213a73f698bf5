"""The page "All maps" in Chromium: maps come one after another, can be cancelled, and are entered by mouse and key."""

import io
import re
from urllib.parse import urlencode
from xml.etree import ElementTree

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import expect

from tests.browser.conftest import LOAD_MS
from tests.browser.screen import DOOR, link, wait_for_link, wait_until_drawn

pytestmark = pytest.mark.nightly


def grid(page):
    return page.get_by_role("grid", name="Maps of all heads")


def cell(page, layer, head):
    return grid(page).get_by_role("gridcell", name=re.compile(f"^Layer {layer}, head {head}: "))


def open_maps(page, server, **params):
    page.goto(f"{server}/all_maps?{urlencode(params)}")
    expect(grid(page)).to_be_visible(timeout=LOAD_MS)


def wait_until_all_are_there(page, n_map=72):
    expect(grid(page).locator(".queries")).to_have_count(n_map, timeout=LOAD_MS)
    expect(page.get_by_role("button", name="Cancel")).to_have_count(0, timeout=LOAD_MS)
    wait_until_drawn(page)


def test_maps_come_one_after_another_and_are_those_of_the_link(server, page):
    open_maps(page, server, text="The old door creaked.", layer=2, head=7, query=3, method="tsne")
    expect(grid(page).locator(".queries").first).to_be_attached(timeout=LOAD_MS)
    wait_until_all_are_there(page)
    expect(cell(page, 2, 7)).to_have_attribute("aria-selected", "true")
    expect(cell(page, 5, 11)).to_contain_text("L5 H11")
    expect(cell(page, 2, 7).locator(".link")).to_have_count(5)
    dots = cell(page, 2, 7).locator(".queries").get_attribute("d")
    assert dots.count("M") == 7  # the five tokens and two special ones
    assert cell(page, 2, 7).locator(".keys").get_attribute("d").count("M") == 7


def test_cancel_stops_and_go_on_goes_on(server, page):
    text = "While it is counted how many maps there are the old door opens and closes over and over again."
    open_maps(page, server, text=text, method="tsne", iterations=5000)
    page.get_by_role("button", name="Cancel").click(timeout=LOAD_MS)
    expect(page.get_by_text("Cancelled: ")).to_be_visible(timeout=LOAD_MS)
    go_on = page.get_by_role("button", name="Go on")
    expect(go_on).to_be_visible()
    wait_until_drawn(page)
    assert grid(page).locator(".queries").count() < 72
    go_on.click()
    expect(page.get_by_role("button", name="Cancel")).to_be_visible()
    page.get_by_role("button", name="Cancel").click()
    expect(go_on).to_be_visible()


def test_a_click_enters_the_head(server, page):
    open_maps(page, server, method="pca", seed=7)
    wait_until_all_are_there(page)
    cell(page, 4, 3).click()
    page.wait_for_url(re.compile("/query_key_map"))
    wait_for_link(page, layer=4, head=3, method="pca", seed=7)
    expect(page.get_by_role("spinbutton", name="Layer")).to_have_value("4")
    expect(page.get_by_role("spinbutton", name="Head")).to_have_value("3")


def test_keys_walk_and_enter(server, page):
    open_maps(page, server, method="pca")
    wait_until_all_are_there(page)
    cell(page, 3, 1).focus()
    for key in ("ArrowRight", "ArrowDown", "End", "ArrowLeft"):
        page.keyboard.press(key)
    expect(cell(page, 4, 10)).to_be_focused()
    expect(page.locator(".map_grid .live")).to_contain_text(
        "Layer 4, head 10: correlation of distance and score −"
    )
    assert link(page)["layer"] == "3"  # walking picks nothing
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile("/query_key_map"))
    wait_for_link(page, layer=4, head=10)


def test_the_best_map_first(server, page):
    open_maps(page, server, method="pca")
    wait_until_all_are_there(page)
    page.get_by_role("radio", name="Best map first").click()
    wait_for_link(page, order="reliability")
    expect(grid(page).get_by_text("layer", exact=True)).to_have_count(0)
    wait_until_drawn(page)
    names = (
        grid(page)
        .get_by_role("gridcell")
        .evaluate_all("all => all.map(element => element.getAttribute('aria-label'))")
    )
    pattern = re.compile(r"correlation of distance and score ([−+][\d.]+)")
    numbers = [float(pattern.search(name)[1].replace("−", "-")) for name in names]
    assert len(numbers) == 72
    assert numbers == sorted(numbers)


def test_the_saved_picture_is_the_grid(server, page):
    open_maps(page, server, method="pca", query=7)
    wait_until_all_are_there(page)
    box = grid(page).bounding_box()
    page.get_by_role("button", name="Export").click()
    made = {}
    for kind, words in (("SVG", "as lines"), ("PNG", "as pixels")):
        with page.expect_download(timeout=LOAD_MS) as download:
            page.locator(f'.save_picture button[title^="Maps of all heads {words}"]').click()
        made[kind] = download.value.path().read_bytes()
    drawn = list(ElementTree.fromstring(made["SVG"]).iter())
    paths = [element.get("d") for element in drawn if element.get("class") in ("queries", "keys")]
    assert len(paths) == 2 * 72
    assert {path.count("M") for path in paths} == {11}
    assert not any("NaN" in path for path in paths)
    texts = ["".join(element.itertext()) for element in drawn if element.tag.endswith("}text")]
    assert {"L0 H0", "L3 H1", "L5 H11", "layer", "head"} <= set(texts)
    shown = grid(page).locator("text").all_text_contents()
    caption = [text for text in texts if text not in shown]
    assert sorted(texts) == sorted(shown + caption)
    assert DOOR in caption[0] and "all-MiniLM-L6-v2" in " ".join(caption[1:])
    with Image.open(io.BytesIO(made["PNG"])) as image:
        assert image.width == 4 * np.ceil(box["width"])
        assert image.height > 4 * np.ceil(box["height"])  # by its caption
        pixels = np.asarray(image.convert("RGB")).reshape(-1, 3).astype(int)
    for colour in ((0x00, 0x72, 0xB2), (0xD5, 0x5E, 0x00), (0xB0, 0x20, 0x8F)):  # queries, keys, picked
        assert (np.abs(pixels - colour).max(axis=1) < 70).sum() > 1000, colour
