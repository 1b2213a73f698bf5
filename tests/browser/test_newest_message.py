"""A component whose second message comes while its script is still being imported for the first, on a page of this test's own."""

from textwrap import dedent

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import LOAD_MS, ROOT, running_server
from tests.browser.screen import wait_for_a_frame

PLAIN = "export default function (component) { return show(component); }"
# Chromium ends imports of one script in any order; here the first one ends when the test says so.
PAGE = f"""
    import streamlit as st

    ending = {PLAIN!r}
    if "plain" not in st.query_params:
        ending = open({str(ROOT / "ui" / "streamlit_fixes" / "newest_message.js")!r}, encoding="utf-8").read()
    is_next = st.button("Next message")
    script = '''
        function show({{ data, parentElement }}) {{
          const drawn = parentElement.querySelector(".drawn");
          [drawn.textContent, drawn.dataset.ended] = [data.run, "no"];
          return () => (drawn.dataset.ended = "yes");
        }}
    ''' + ending
    if not is_next:
        called = "(component) {{"
        script = script.replace(called, called + " window.firstIsCalled = true;", 1)
        script = "await new Promise((done) => (window.endFirst = done));" + script
    st.components.v2.component("one", html='<b class="drawn"></b>', js=script)(key="one", data={{"run": int(is_next)}})
"""


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    folder = tmp_path_factory.mktemp("messages")
    script = folder / "page.py"
    script.write_text(dedent(PAGE), encoding="utf-8")
    with running_server(folder / "log.txt", script=str(script)) as started:
        yield started


def draw_twice(page, address):
    """The second message comes while the script is imported for the first, and its own import ends before that."""
    page.goto(address)
    page.wait_for_function("Boolean(window.endFirst)", timeout=LOAD_MS)
    page.get_by_role("button", name="Next message").click()
    expect(page.locator(".drawn")).to_have_text("1")
    page.evaluate("window.endFirst()")
    page.wait_for_function("window.firstIsCalled")
    wait_for_a_frame(page)  # a component draws in the turn after it is called


@pytest.mark.nightly
def test_the_newest_message_is_drawn_and_goes_on(page, address):
    draw_twice(page, address)
    drawn = page.locator(".drawn")
    expect(drawn).to_have_text("1")
    expect(drawn).to_have_attribute("data-ended", "no")


@pytest.mark.nightly
def test_it_is_not_without_the_work_around(page, address):
    """Where it fails, `ui/streamlit_fixes/newest_message.js` may no longer be needed."""
    draw_twice(page, f"{address}/?plain")
    drawn = page.locator(".drawn")
    expect(drawn).to_have_text("0")
    expect(drawn).to_have_attribute("data-ended", "yes")
