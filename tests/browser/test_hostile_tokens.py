"""Tokens that look like markup are text in every part of the screen, and do nothing."""

from urllib.parse import urlencode

import pytest
from playwright.sync_api import expect

from tests.app.hostile import LABELS, TEXT
from tests.browser.screen import (
    bars,
    chips,
    finding,
    hover_cell,
    open_screen,
    plot,
    readout,
    sentence,
    show_attention,
    wait_for_link,
    wait_until_drawn,
)

POSITIONS = {label: 2 + number for number, label in enumerate(LABELS)}


def assert_untouched(page, title="Explore · attnviz"):
    """No token has become an element, a link, a formula or a script that ran."""
    expect(page).to_have_title(title)
    for selector in (
        "img[src=x]",
        "a[href^='https://example.org']",
        "b:not(.options-head b)",
        ".katex",
        ".MathJax",
        "em",
        "s",
        "del",
    ):
        expect(page.get_by_test_id("stMain").locator(selector)).to_have_count(0)
    scripts = page.locator("script").evaluate_all("all => all.map(element => element.textContent)")
    assert not any("hacked" in script for script in scripts)


@pytest.fixture
def opened(page, server):
    open_screen(page, server, model="hostile", layer=2, head=0, text=TEXT, query=2, key=2)
    return page


def in_the_ranking(token, position):
    """A token as the ranking has room for it: 24 letters, what is longer without its middle."""
    return f"{token}·{position}" if len(token) <= 24 else f"{token[:19]}…{token[-4:]}·{position}"


def in_hover_text(token):
    """A token as the line below the matrix has it, with room for 40 letters."""
    return token if len(token) <= 40 else f"{token[:35]}…{token[-4:]}"


def points_pointed_at(page):
    """What is said of every point of the map that the pointer is on, as it is drawn."""
    return page.evaluate("""async () => {
        const chart = document.querySelector(".st-key-map .js-plotly-plot");
        const labels = [];
        for (const [curveNumber, trace] of chart.data.entries()) {
            for (const pointNumber of (trace.customdata ?? []).keys()) {
                Plotly.Fx.hover(chart, [{ curveNumber, pointNumber }]);
                await new Promise(requestAnimationFrame);
                labels.push([...chart.querySelectorAll(".hoverlayer .hovertext")].map((element) => element.textContent).join());
                Plotly.Fx.unhover(chart);
            }
        }
        return labels;
    }""")


@pytest.mark.nightly
def test_chips_axes_and_bars_show_them_as_they_are(opened):
    labels = chips(opened).locator(".label").all_inner_texts()
    assert labels == ["[CLS]", "the", *LABELS, "door", "[SEP]"]
    for axis in ("rows", "columns"):
        written = opened.locator(f".viewer .matrix .{axis} text").all_text_contents()
        assert len(written) >= 4  # some are left out where they have no room
        for text in written:
            token, _, position = text.rpartition("·")
            start = token.split("…")[0]
            assert start and labels[int(position)].startswith(start), text
    named = {f"{label}·{position}" for position, label in enumerate(labels)}
    drawn = {text for text in plot(opened, "map").locator(".textpoint text").all_text_contents() if text}
    pointed_at = [
        next(label for label in named if label in hover_text) for hover_text in points_pointed_at(opened)
    ]
    assert drawn <= named  # where there is no room for a label it waits for the pointer
    assert sorted(pointed_at) == sorted([*named] * 2)  # a query and a key of each
    assert len(bars(opened)) == 8
    assert set(bars(opened)) <= {in_the_ranking(label, position) for position, label in enumerate(labels)}
    assert_untouched(opened)


@pytest.mark.nightly
def test_hover_and_readout_show_them_as_they_are(page, server):
    place = {
        "model": "hostile",
        "layer": 2,
        "head": 0,
        "text": TEXT,
        "filled": "matrix",
    }  # as wide as it gets
    open_screen(page, server, **place)
    for token, position in POSITIONS.items():
        hover_cell(page, position, position)
        name = f"“{in_hover_text(token)}”·{position}"
        expect(readout(page)).to_contain_text(f"{name} → {name}: ")
    assert_untouched(page)


@pytest.mark.nightly
def test_words_show_them_as_they_are(opened):
    for token, position in POSITIONS.items():
        chips(opened).nth(position).click()
        wait_for_link(opened, query=position)
        expect(finding(opened)).to_contain_text(f": “{token}” ")
        expect(opened.locator(".viewer .ranking .told")).to_contain_text(f"Keys of “{token}”, largest")
    assert_untouched(opened)


@pytest.mark.nightly
def test_the_verification_page_shows_them_as_they_are(page, server):
    position = POSITIONS["**bold**"]
    open_screen(page, server, "verification", model="hostile", layer=2, text=TEXT, query=position)
    expect(page.get_by_text(f"The row of “**bold**” (token {position})")).to_be_visible()
    expect(
        page.get_by_test_id("stMain").locator("b, img[src=x], a[href^='https://example.org']")
    ).to_have_count(0)
    expect(page).to_have_title("Verification · attnviz")


@pytest.mark.nightly
def test_a_typed_text_with_markup_is_only_text(page, server):
    text = "<img src=x onerror=alert(1)> <script>alert(1)</script> $x^2$ %{x} **b** :smile: [a](https://example.org)"
    open_screen(page, server)
    show_attention(page, text)
    wait_for_link(page, text=text)
    expect(chips(page).nth(1)).to_contain_text("<")
    expect(sentence(page)).to_have_value(text)
    assert_untouched(page)


@pytest.mark.nightly
def test_markup_in_a_link_is_only_text(page, server):
    text = "<img src=x onerror=alert(1)> **b** $x^2$ ~~s~~"
    open_screen(page, server, text=text, metric=text)
    expect(page.get_by_text(f"The link asks for metric “{text}”")).to_be_visible()
    assert_untouched(page)


@pytest.mark.nightly
def test_markup_in_the_name_of_a_model_is_only_text(page, server):
    name = "<img src=x onerror=alert(1)> **b** $x^2$ ~~s~~"
    page.goto(f"{server}/?{urlencode({'text': name, 'model': name})}")
    wait_until_drawn(page)
    expect(page.get_by_role("alert").get_by_text(name)).to_be_visible()
    expect(page.locator(".js-plotly-plot")).to_have_count(0)  # nothing is shown for a model that there is not
    assert_untouched(page)
