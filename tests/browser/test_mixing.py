"""ALTI and value zeroing on the stage in a real browser: asked for a layer at a time, also where they take long."""

from itertools import count

import numpy as np
from playwright.sync_api import expect

import attnviz
from attnviz.figures.numbers import share_text
from tests.browser.conftest import LOAD_MS
from tests.browser.screen import DOOR, cells, open_screen, wait_for_link

PLACE = {"text": DOOR, "layer": 3, "head": 1, "query": 7, "key": 5, "filled": "matrix"}


def test_a_layer_s_matrix_comes_when_it_is_chosen_and_for_each_layer(page, server, embedded, door_trace):
    open_screen(page, server, **PLACE)
    headline = page.locator(".viewer .headline")
    page.get_by_role("button", name="Options").click()
    for show, method in (("alti", attnviz.alti), ("value_zeroing", attnviz.value_zeroing)):
        mixed = method(embedded, door_trace)
        page.locator(".viewer select[name=measure]").select_option(show)
        for layer in (3, 4):
            field = page.locator(".viewer input[name=layer]")
            field.fill(str(layer))
            field.press("Enter")
            share = share_text(float(mixed.matrices[layer, 7, 5]))
            expect(headline).to_contain_text(f"Layer {layer}, all heads", timeout=LOAD_MS)
            expect(headline).to_contain_text(share, timeout=LOAD_MS)
            expect(page.locator(".viewer.waits")).to_have_count(0)
            np.testing.assert_allclose(cells(page), mixed.matrices[layer], atol=1e-4)
            expect(page.locator(".viewer .notes")).to_contain_text("model's own vector", timeout=LOAD_MS)
            wait_for_link(page, layer=layer, show=show)


LONG = " ".join(f"The cat number {number} sat on the mat." for number in range(10))
"""Long enough for a worker process."""
ATTEMPTS = count(1)
"""Each attempt has a text of its own, or the second would find what the first one had computed."""


def test_a_matrix_that_takes_long_is_computed_below_the_stage_and_then_there(page, server, embedded):
    text = f"{LONG} The mat had {next(ATTEMPTS)} holes."
    mixed = attnviz.value_zeroing(embedded, embedded.trace(text), layers=(3,))
    open_screen(page, server, **PLACE | {"text": text})
    page.get_by_role("button", name="Options").click()
    page.locator(".viewer select[name=measure]").select_option("value_zeroing")
    headline = page.locator(".viewer .headline")
    expect(headline).to_contain_text("Layer 3, all heads", timeout=LOAD_MS)
    expect(headline).to_contain_text(share_text(float(mixed.matrices[0, 7, 5])), timeout=LOAD_MS)
    np.testing.assert_allclose(cells(page), mixed.matrices[0], atol=1e-4)
