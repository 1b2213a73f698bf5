"""Components whose second message comes while their script is still being imported, on a page of this test's own."""

from textwrap import dedent

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import ROOT, running_server

N = 40
MOMENTS = (0.0, 0.02, 0.04, 0.06)  # s, from one message to the next
PLAIN = "export default function (component) { return show(component); }"
PAGE = f"""
    import time

    import streamlit as st

    ending = {PLAIN!r}
    if "plain" not in st.query_params:
        ending = open({str(ROOT / "ui" / "streamlit_fixes" / "newest_message.js")!r}, encoding="utf-8").read()
    show = \"\"\"
        function show({{ data, parentElement }}) {{
          const drawn = parentElement.querySelector(".drawn");
          [drawn.textContent, drawn.dataset.ended] = [data.run, "no"];
          return () => (drawn.dataset.ended = "yes");
        }}
    \"\"\"
    run = st.session_state.setdefault("run", 0)
    for number in range({N}):
        script = f"{{show}}// {{number}} {{'-' * 20_000}}\\n{{ending}}"
        component = st.components.v2.component(f"one{{number}}", html='<b class="drawn"></b>', js=script)
        component(key=f"one{{number}}", data={{"run": run}})
    if run == 0:
        st.session_state.run = 1
        time.sleep(float(st.query_params["after"]))
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


def n_newest(page, address, after, rest=""):
    """How many components show their second message, and are still listened to."""
    page.goto(f"{address}/?after={after}{rest}")
    expect(page.get_by_text("All sent")).to_be_visible()
    expect(page.locator(".drawn", has_text="1").first).to_be_visible()
    page.wait_for_timeout(500)  # for those that are drawn last
    return page.locator('.drawn[data-ended="no"]', has_text="1").count()


def test_two_messages_within_a_moment_are_drawn_in_order(page, address):
    for after in MOMENTS:
        assert n_newest(page, address, after) == N


def test_they_are_not_without_the_work_around(page, address):
    """Where it fails, `ui/streamlit_fixes/newest_message.js` may no longer be needed."""
    assert any(n_newest(page, address, after, "&plain") < N for after in 5 * MOMENTS)
