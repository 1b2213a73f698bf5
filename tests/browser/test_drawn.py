"""The number of the drawn run on the page: what all other tests in Chromium wait for."""

import pytest
from playwright.sync_api import Route, expect

from tests.browser.conftest import LOAD_MS
from tests.browser.screen import answered, open_screen, plot, wait_until_drawn


@pytest.mark.nightly
def test_it_is_raised_when_charts_are_drawn_and_again_for_each_run(server, visitors):
    """Plotly's script is held until the test lets it through; until then the run has ended and no chart is drawn."""
    page = visitors(alone=True)
    held: list[Route] = []
    page.route("**/PlotlyChart.*.js", lambda route: held.append(route))  # Playwright takes no built-in
    page.goto(server)
    app = page.get_by_test_id("stApp")
    expect(page.get_by_role("button", name="Export")).to_be_visible(timeout=LOAD_MS)
    expect(app).to_have_attribute("data-test-script-state", "notRunning", timeout=LOAD_MS)
    page.wait_for_function("document.due?.size > 0")
    page.evaluate("() => new Promise(done => requestIdleCallback(done))")
    assert app.get_attribute("data-drawn") is None

    for route in held:
        route.continue_()
    page.unroute("**/PlotlyChart.*.js")
    wait_until_drawn(page)
    assert app.get_attribute("data-drawn") == "1"
    for key in ("matrix", "ranking", "map"):
        assert plot(page, key).is_visible()
    with answered(page):
        page.get_by_role("button", name="Next", exact=True).click()
    assert int(app.get_attribute("data-drawn")) > 1


@pytest.mark.nightly
def test_it_is_not_there_while_a_run_is_under_way(server, page):
    open_screen(page, server)
    page.evaluate("""() => {
        const app = document.querySelector(".stApp");
        window.states = [];
        const note = () => window.states.push([app.dataset.testScriptState, app.dataset.drawn ?? null]);
        new MutationObserver(() => queueMicrotask(note)).observe(app, { attributeFilter: ["data-test-script-state"] });
    }""")
    with answered(page):
        page.get_by_role("button", name="Next", exact=True).click()
    assert {number for state, number in page.evaluate("window.states") if state == "running"} <= {None}
