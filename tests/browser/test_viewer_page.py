"""The stage as a file that is opened from a folder, without a network."""

import re
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from playwright.sync_api import Browser, Page, expect

from attnviz.figures.numbers import share_text
from attnviz.viewer.page import StagePage, stage_page
from tests import odd_bundles


@pytest.fixture
def offline(browser: Browser) -> Iterator[Page]:
    """A window of its own without a network, in which nothing may fail or be asked for."""
    context = browser.new_context(viewport={"width": 1366, "height": 768}, color_scheme="light")
    context.set_offline(True)
    page, wrong = context.new_page(), []
    page.on("console", lambda said: wrong.append(said.text) if said.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("dialog", lambda dialog: wrong.append(dialog.message))
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    yield page
    assert wrong == []
    assert [url for url in asked if not url.startswith(("file:", "data:", "blob:"))] == []
    context.close()


def keys_of(page: Page) -> str:
    return page.locator(".viewer .ranking").inner_text()


def test_another_head_shows_the_numbers_of_the_library(offline, door_trace, tmp_path):
    offline.goto(door_trace.save_html(tmp_path / "page.html", 3, 1, query=7).as_uri())
    headline = offline.locator(".viewer .headline")
    expect(headline).to_contain_text("Layer 3, head 1")
    for head in (1, 2, 3):
        expect(headline).to_contain_text(f"Layer 3, head {head}")
        weights = door_trace.weights(3, head)[7]
        for key in weights.argsort()[::-1][:4]:
            assert share_text(float(weights[key])) in keys_of(offline)
        offline.get_by_role("button", name="Next head").click()
    expect(headline).to_contain_text("Layer 3, head 4")


def test_other_measures_of_a_short_text_are_there_too(offline, door_trace, tmp_path):
    offline.goto(door_trace.save_html(tmp_path / "page.html", 3, 1, query=7).as_uri())
    offline.get_by_role("button", name="Options").click()
    options = offline.locator(".viewer select[name=measure] option:not([disabled])")
    assert options.all_inner_texts() == ["Weights", "Scores", "Norm-based", "Rollout"]
    offline.locator(".viewer select[name=measure]").select_option("scores")
    expect(offline.locator(".viewer .matrix")).to_contain_text("score")
    expect(offline.locator(".viewer.waits")).to_have_count(0)


def test_words_are_offered_only_where_something_tells_them(offline, door_trace, tmp_path):
    tokens = door_trace.tokens
    without = replace(door_trace, tokens=replace(tokens, word=np.full(len(tokens), -1)))
    for trace, units, told in (
        (door_trace, ["Token", "Word"], "Merges word pieces"),
        (without, ["Token"], "Words are not offered"),
    ):
        offline.goto(trace.save_html(tmp_path / f"{len(units)}.html", 3, 1).as_uri())
        field = offline.locator(".viewer .options label", has=offline.locator("select[name=unit]"))
        expect(field).to_have_attribute("title", re.compile(told))
        assert field.locator("option:not([disabled])").all_text_contents() == units


def test_one_head_alone_says_why_there_are_no_others(offline, tmp_path):
    path = tmp_path / "page.html"
    path.write_text(stage_page(odd_bundles.trace(2, 40, 100), layer=1, head=7), encoding="utf-8")
    offline.goto(path.as_uri())
    expect(offline.locator(".viewer .headline")).to_contain_text("Layer 1, head 7")
    offline.get_by_role("button", name="Next head").click()
    expect(offline.locator(".viewer .notes")).to_contain_text("This page holds layer 1, head 7 alone")


def test_it_is_dark_where_the_reader_s_system_is_and_light_on_paper(offline, door_trace, tmp_path):
    offline.emulate_media(color_scheme="dark")
    offline.goto(door_trace.save_html(tmp_path / "page.html", 3, 1).as_uri())
    expect(offline.locator(".viewer .headline")).to_contain_text("Layer 3")

    def has(background: str, colour: str) -> None:
        expect(offline.locator("body")).to_have_css("background-color", background)
        expect(offline.locator(".viewer")).to_have_attribute("style", re.compile(f"--background: {colour};"))

    dark, light = ("rgb(14, 17, 23)", "#0e1117"), ("rgb(255, 255, 255)", "#ffffff")
    has(*dark)
    offline.emulate_media(color_scheme="light")
    has(*light)
    offline.emulate_media(color_scheme="dark")
    has(*dark)
    offline.emulate_media(color_scheme="dark", media="print")
    offline.evaluate("dispatchEvent(new Event('beforeprint'))")
    has(*light)
    for part in ("h1", ".viewer .matrix", ".viewer .ranking", ".below dl"):
        expect(offline.locator(part).first).to_be_visible()
    expect(offline.locator(".viewer .fills")).to_be_hidden()


def test_a_frame_that_can_reach_nothing_shows_it_too(offline, door_trace, tmp_path):
    path = tmp_path / "notebook.html"
    path.write_text(StagePage(door_trace.to_html(3, 1, query=7))._repr_html_(), encoding="utf-8")
    offline.goto(path.as_uri())
    frame = offline.frame_locator("iframe")
    expect(frame.locator(".viewer .headline")).to_contain_text("Layer 3, head 1")
    frame.get_by_role("button", name="Next head").click()
    expect(frame.locator(".viewer .headline")).to_contain_text("Layer 3, head 2")
