"""A figure in the whole window: type that a class can read, nothing else on screen, and a lesson's steps by key."""

from urllib.parse import urlencode

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import LOAD_MS
from tests.browser.screen import expect_soon, wait_for_link, wait_until_drawn

LEAST_PX = 24  # at 1920
LETTERS = """figure => {
    const sizes = [];
    const enlarged = new DOMMatrix(getComputedStyle(document.querySelector(".stMainBlockContainer")).transform).a;
    const visit = (element) => {
        [...(element.shadowRoot?.children ?? [])].forEach(visit);
        const says = [...element.childNodes].some((node) => node.nodeType === Node.TEXT_NODE && node.data.trim());
        if (says && element.tagName !== "STYLE" && element.checkVisibility({ visibilityProperty: true })) {
            sizes.push(parseFloat(getComputedStyle(element).fontSize) * enlarged);
        }
        [...element.children].forEach(visit);
    };
    visit(figure);
    return sizes.length > 40 ? Math.min(...sizes) : 0;
}"""


@pytest.mark.nightly
def test_a_link_presents_a_step_and_keys_lead_on_and_back(server, visitors):
    page = visitors(width=1920, height=1080)
    place = {"layer": 3, "head": 1, "query": 8, "key": 5}
    link = {"lesson": "weighted_mean", "lesson_step": 1, "present": 1} | place
    page.goto(f"{server}/?{urlencode(link)}")
    wait_until_drawn(page)
    stage = page.locator(".st-key-stage")
    for part in (".viewer .band", ".viewer .matrix", ".st-key-map"):
        expect(stage.locator(part)).to_be_visible()
    expect(page.locator(".st-key-lesson_text")).to_contain_text("step 1 of 5")
    expect_soon(page, lambda page: stage.evaluate(LETTERS) >= LEAST_PX - 0.01, True)
    read_aloud = page.locator(".st-key-lesson_text p").first
    drawn, laid_out = read_aloud.evaluate("text => [text.getBoundingClientRect().width, text.offsetWidth]")
    assert round(drawn / laid_out, 2) == 2
    others = [page.locator(f".st-key-{key}") for key in ("sentence", "take", "lesson_ways", "slot_links")]
    for other in (*others, page.get_by_test_id("stSidebar")):
        expect(other).to_be_hidden()
    assert stage.bounding_box()["width"] > 0.95 * 1920  # also of what is beside it

    page.keyboard.press("ArrowRight")
    expect(page.locator(".st-key-lesson_text")).to_contain_text("step 2 of 5", timeout=LOAD_MS)
    wait_for_link(page, lesson_step=2, query=7, present=1)
    expect(page.locator(".st-key-sentence")).to_be_hidden()

    page.get_by_role("button", name="Leave", exact=True).click()
    expect(page.locator(".st-key-sentence")).to_be_visible()
    wait_for_link(page, lesson_step=2, query=7)
    expect_soon(page, lambda page: "present=" in page.url, False)
    page.locator(".st-key-map").hover()
    page.keyboard.press("p")
    expect(page.locator(".viewer .matrix")).to_be_hidden()
    expect(page.locator(".st-key-map")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator(".st-key-sentence")).to_be_visible()

    page.get_by_role("button", name="Present", exact=True).click()  # which has the focus now
    expect(page.locator(".st-key-sentence")).to_be_hidden()
    page.keyboard.press("ArrowRight")
    expect(page.locator(".st-key-lesson_text")).to_contain_text("step 3 of 5", timeout=LOAD_MS)
    wait_until_drawn(page)
    expect(page.get_by_role("slider", name="Stage of the film")).to_have_attribute(
        "aria-valuetext", "Scaling"
    )


ENDS = """() => {
    const mounts = [...document.querySelectorAll("[data-presented] [data-testid^=stBidiComponent]")].filter(
        (mount) => mount.checkVisibility() && mount.offsetHeight
    );
    return Math.round(Math.max(...mounts.map((mount) => mount.getBoundingClientRect().bottom)));
}"""
"""Where the lowest of what is presented ends, with the line below it."""


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("address", "figure"),
    [
        ("?filled=all&", ".st-key-map"),
        ("?filled=matrix&", ".viewer .matrix"),
        ("?filled=map&", ".st-key-map"),
        ("?filled=token_flow&", ".viewer .flow"),
        ("token_flow?", ".st-key-token_flow"),
    ],
)
def test_a_figure_presented_ends_within_a_projectors_window(server, visitors, address, figure):
    page = visitors(width=1366, height=768)
    page.goto(f"{server}/{address}present=1&layer=3&head=1")
    expect(page.locator(figure)).to_be_visible(timeout=LOAD_MS)
    wait_until_drawn(page)
    expect_soon(page, lambda page: 500 < page.evaluate(ENDS) <= 768, True)


@pytest.mark.nightly
def test_a_pointer_at_rest_points_at_nothing(server, page):
    page.goto(f"{server}/?{urlencode({'layer': 3, 'head': 1, 'query': 7, 'key': 5})}")
    wait_until_drawn(page)
    button = page.get_by_role("button", name="Present", exact=True)
    button.click()
    where = page.locator(".viewer .band [data-position='3']").bounding_box()
    page.keyboard.press("Escape")
    expect(page.locator(".st-key-sentence")).to_be_visible()
    page.mouse.move(where["x"] + where["width"] / 2, where["y"] + where["height"] / 2)
    page.mouse.move(where["x"] + where["width"] / 2 + 1, where["y"] + where["height"] / 2)
    page.keyboard.press("p")  # the token comes to lie under the pointer
    expect(page.locator(".st-key-sentence")).to_be_hidden()
    queries = page.locator(".viewer .band .token.query")
    expect_soon(page, lambda page: queries.get_attribute("data-position"), "7")
    page.mouse.move(where["x"] + where["width"] / 2, where["y"] + where["height"] / 2)
    expect_soon(page, lambda page: queries.get_attribute("data-position"), "3")
