"""The cells of layers and tokens, and of tokens and methods, are read and selected with the keyboard alone."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.screen import DOOR, open_screen, wait_for_link

pytestmark = pytest.mark.nightly


@pytest.mark.parametrize(
    ("path", "chart", "walked", "link"),
    [
        # the first layer is on top: down leads to the next layer
        ("lens", "lens_grid", [r"layer 0, \[CLS\]·0", r"layer 1, \[CLS\]·0", "layer 1, i·1"], {"layer": 1}),
        (
            "patching",
            "patching_shares",
            [r"layer 0, \[CLS\]·0", r"layer 1, \[CLS\]·0", "layer 1, i·1"],
            {"layer": 1},
        ),
        (
            "inputs",
            "inputs_sheet",
            [r"\[CLS\]·0, Gradient × input", "i·1, Gradient × input", "i·1, Integrated gradients"],
            {},
        ),
    ],
)
def test_are_walked_through_from_the_upper_left(path, chart, walked, link, page, server):
    open_screen(page, server, path, text=DOOR, layer=3, head=1, query=7)
    line = page.locator(".point_clicks").first
    expect(line).to_have_text("Click a cell, or walk through the cells with the arrow keys; Enter selects.")
    page.locator(f".st-key-{chart} .js-plotly-plot").focus()
    for key, cell in zip(("ArrowRight", "ArrowDown", "ArrowRight"), walked, strict=True):
        page.keyboard.press(key)
        expect(line).to_have_text(re.compile(f"^{cell}"))
    page.keyboard.press("Enter")
    wait_for_link(page, query=1, **link)
