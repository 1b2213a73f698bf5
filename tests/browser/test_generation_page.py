"""The page "Generation" in Chromium: a candidate that is picked by hand."""

import re

import pytest
from playwright.sync_api import Page, expect

from attnviz.model.catalogue import SMOLLM2
from tests.browser.conftest import LOAD_MS
from tests.browser.screen import open_screen, wait_for_link, wait_until_drawn


@pytest.mark.nightly
def test_a_click_on_a_candidate_makes_a_branch_that_goes_on_with_it(page: Page, server: str) -> None:
    text = "When Mary and John went to the store, John gave a drink to"
    open_screen(page, server, "generation", model=SMOLLM2, text=text, written=2)
    candidates = page.get_by_role(
        "list", name="Most likely tokens of this step; select one to continue with it"
    )
    the = candidates.get_by_role("button", name=re.compile(r"^\d ␣the "))
    expect(the).to_have_attribute("aria-pressed", "false", timeout=LOAD_MS)
    the.click()

    wait_for_link(page, write_branch=1)
    texts = page.get_by_role("list", name="Texts; select one to show it")
    expect(texts.get_by_role("button")).to_have_count(2, timeout=LOAD_MS)
    expect(texts.get_by_role("button", name=re.compile("step 1: ␣the"))).to_have_attribute(
        "aria-pressed", "true"
    )
    expect(page.get_by_text(re.compile(r"^Step 1 writes “␣the” "))).to_be_visible()
    expect(the).to_have_attribute("aria-pressed", "true")
    wait_until_drawn(page)
