"""Two messages of one browser in quick succession: the first is taken in before the second is looked for."""

import pytest
from streamlit.proto.WidgetStates_pb2 import WidgetStates
from streamlit.runtime.scriptrunner import RerunData, RerunException
from streamlit.runtime.state import SafeSessionState, SessionState
from streamlit.testing.v1 import AppTest

from tests.app.screen import WAIT_SECONDS
from ui.streamlit_fixes.sent_values import take_in_whole_and_read_alone

take_in_whole_and_read_alone()


def _another_message() -> None:
    raise RerunException(RerunData())


def test_a_message_is_taken_in_before_the_next_is_looked_for():
    session = SafeSessionState(SessionState(), _another_message)
    session.on_script_will_rerun(WidgetStates())
    with pytest.raises(RerunException):  # and then it is
        _ = "anything" in session


def _page() -> None:
    import streamlit as st
    from streamlit.runtime.scriptrunner import RerunData, get_script_run_ctx

    def count():
        get_script_run_ctx().script_requests.request_rerun(RerunData())  # as the next click does
        st.session_state.clicks = st.session_state.get("clicks", 0) + 1
        st.session_state.done = True

    st.button("Count", key="count", on_click=count)


def test_a_callback_is_not_left_half_done():
    at = AppTest.from_function(_page, default_timeout=WAIT_SECONDS).run()
    at.button(key="count").click().run()
    assert (at.session_state.clicks, at.session_state.done) == (1, True)
