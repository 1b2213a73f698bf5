"""The fields for an outcome's tokens in Chromium, where a space at the beginning belongs to what is typed."""

import re
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Page, expect

from attnviz.model.catalogue import SMOLLM2
from tests.browser.conftest import LOAD_MS
from tests.browser.screen import wait_for_link


@pytest.mark.nightly
def test_a_token_that_is_typed_keeps_its_leading_space(page: Page, server: str) -> None:
    text = "When Mary and John went to the store, John gave a drink to"
    asked = {"model": SMOLLM2, "text": text, "outcome": "answer:last:␣the:␣John"}
    page.goto(f"{server}/lens?{urlencode(asked)}")  # the field is there before the figures
    field = page.get_by_role("combobox", name="Token", exact=True)
    expect(field).to_have_value(re.compile("^␣the"), timeout=LOAD_MS)
    field.click()
    page.keyboard.type(" Mary")
    page.keyboard.press("Enter")

    wait_for_link(page, outcome="answer:last:␣Mary:␣John")
    expect(field).to_have_value(re.compile("^␣Mary"))
