"""Why divide by the square root of d_k, in Chromium: a scale is chosen with the keyboard alone."""

import pytest
from playwright.sync_api import expect

from tests.browser.screen import DOOR, open_screen, plot, wait_for_link

pytestmark = pytest.mark.nightly


def test_the_scale_by_keyboard(page, server):
    open_screen(page, server, "scaling", text=DOOR, layer=3, head=1, query=7)
    slider = page.get_by_role("slider", name="Scale")
    expect(slider).to_have_attribute("aria-valuetext", "0.177 (the model’s)")
    slider.focus()
    slider.press("ArrowRight")
    wait_for_link(page, scale=0.25)
    expect(page.get_by_text("Yours, scale 0.25:")).to_be_visible()
    for key in ("sharp_entropy", "sharp_largest", "sharp_jacobian"):
        expect(plot(page, key).get_by_text("yours", exact=True)).to_be_visible()
    expect(plot(page, "spread_model")).to_contain_text("q · k × 0.25: variance")
    page.get_by_role("slider", name="Dimensions of the random vectors").press("End")
    wait_for_link(page, scale=0.25, d_k=1024)
    expect(plot(page, "spread_random")).to_contain_text("q · k: variance 1,0")
