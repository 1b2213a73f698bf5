"""A component whose second message comes while its script is still being imported for the first, on a page of this test's own."""

from textwrap import dedent

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import ROOT, running_server

PLAIN = "export default function (component) { return show(component); }"
# Chromium ends imports of one script in any order; here the first one always ends last.
PAGE = f"""
    import time

    import streamlit as st

    ending = {PLAIN!r}
    if "plain" not in st.query_params:
        ending = open({str(ROOT / "ui" / "streamlit_fixes" / "newest_message.js")!r}, encoding="utf-8").read()
    run = st.session_state.setdefault("run", 0)
    script = '''
        function show({{ data, parentElement }}) {{
          const drawn = parentElement.querySelector(".drawn");
          [drawn.textContent, drawn.dataset.ended] = [data.run, "no"];
          return () => (drawn.dataset.ended = "yes");
        }}
    ''' + ending
    if run == 0:
        script = "await new Promise((done) => setTimeout(done, 2000));" + script
    st.components.v2.component("one", html='<b class="drawn"></b>', js=script)(key="one", data={{"run": run}})
    if run == 0:
        time.sleep(0.7)  # while the first import goes on
        st.session_state.run = 1
        st.rerun()
    st.write("All sent")
"""


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    folder = tmp_path_factory.mktemp("messages")
    script = folder / "page.py"
    script.write_text(dedent(PAGE), encoding="utf-8")
    with running_server(folder / "log.txt", script=str(script)) as started:
        yield started


def open_twice_drawn(page, address):
    page.goto(address)
    expect(page.get_by_text("All sent")).to_be_visible()
    page.wait_for_timeout(2500)  # until the first import has ended


def test_the_newest_message_is_drawn_and_goes_on(page, address):
    open_twice_drawn(page, address)
    drawn = page.locator(".drawn")
    expect(drawn).to_have_text("1")
    expect(drawn).to_have_attribute("data-ended", "no")


def test_it_is_not_without_the_work_around(page, address):
    """Where it fails, `ui/streamlit_fixes/newest_message.js` may no longer be needed."""
    drawn = page.locator(".drawn")
    for _ in range(5):
        open_twice_drawn(page, f"{address}/?plain")
        if drawn.text_content() == "0":
            break  # a busy browser takes both messages at once, and draws the second alone
    expect(drawn).to_have_text("0")
    expect(drawn).to_have_attribute("data-ended", "yes")
