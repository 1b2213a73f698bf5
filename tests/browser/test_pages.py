"""Every room once in Chromium, and at night every part: it opens by a link, is drawn without an error, can be read by everybody, and answers a click."""

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from tests.browser.screen import (
    DOOR,
    PLACES,
    expect_its_one_name,
    open_screen,
    part_at,
    wait_for_link,
    wait_until_drawn,
    wait_until_still,
)
from ui.rooms import PAGES, ROOMS

PLACE = {"text": DOOR, "layer": 3, "head": 1}
SHORT = "it opened"
"""For pages that run the model once for each head, cell or token."""
TEXTS = {"effects": SHORT, "patching": SHORT, "inputs": SHORT}


def grave(page: Page) -> list[tuple[str, str, str]]:
    """What axe-core 4.12 finds critical or serious: the rule, what it is about, and why."""
    experimental = {"label-content-name-mismatch": {"enabled": True}}
    # Of what passes, axe would send every element.
    options = {"rules": experimental, "resultTypes": ["violations"]}
    violations = Axe().run(page, options=options).response["violations"]
    return [
        (violation["id"], node["html"][:100], node["failureSummary"].splitlines()[1])
        for violation in violations
        if violation["impact"] in ("critical", "serious")
        for node in violation["nodes"]
    ]


FIRST = [room.parts[0].address for room in ROOMS if room.in_menu and room.parts[0].shows_text]
OTHERS = [page.address for page in PAGES if page.address not in FIRST]


@pytest.mark.parametrize(
    "path", [*FIRST, *(pytest.param(path, marks=pytest.mark.nightly) for path in OTHERS)]
)
def test_opens_by_a_link_can_be_read_by_everybody_and_answers_a_click(visitors, server, path):
    page = visitors(width=1366, height=768)
    place = PLACE | {"text": TEXTS.get(path, DOOR)} | PLACES.get(path, {})
    open_screen(page, server, path, **place)
    expect_its_one_name(page, path)
    expect(page.get_by_role("alert")).to_have_count(0)
    wait_until_still(page)
    assert grave(page) == []

    if "head" not in part_at(path).asks:
        return
    # The film has a button of this name too.
    if path == "":
        page.get_by_role("button", name="Next head").click()
    else:
        page.locator(".st-key-place").get_by_role("button", name="Next", exact=True).click()
    wait_for_link(
        page, head=2, text=place["text"]
    )  # a page that works in parts draws runs that no click led to
    wait_until_drawn(page)
    expect_its_one_name(page, path)
    expect(page.get_by_role("alert")).to_have_count(0)
