"""What Streamlit does without any work-around, as JSON by symptom: `python -m tests.bare_streamlit`, in a Python that has none of ui."""

import json
import logging
import sys
from collections.abc import Callable
from types import SimpleNamespace

import streamlit as st
from streamlit import config, net_util
from streamlit.logger import get_logger
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.proto.WidgetStates_pb2 import WidgetState, WidgetStates
from streamlit.runtime.forward_msg_queue import ForwardMsgQueue
from streamlit.runtime.memory_session_storage import MemorySessionStorage
from streamlit.runtime.session_manager import SessionInfo
from streamlit.runtime.state import SafeSessionState
from streamlit.runtime.state.session_state import SessionState
from streamlit.testing.v1 import AppTest
from streamlit.web.server import server_util


def takes_in_what_no_widget_sent() -> list[str]:
    """Names of values that a session holds for widgets that were never drawn."""
    state = SessionState()
    SafeSessionState(state, lambda: None).on_script_will_rerun(
        WidgetStates(widgets=[WidgetState(id="forged", string_value="anything")])
    )
    return list(state._new_widget_state.states)


def looks_for_a_newer_message_first() -> bool:
    """Whether a message is lost where a newer one is there."""

    def newer() -> None:
        raise InterruptedError

    try:
        SafeSessionState(SessionState(), newer).on_script_will_rerun(WidgetStates())
    except InterruptedError:
        return True
    return False


def _two_fields() -> None:
    import streamlit as st

    st.number_input("A", key="a")
    st.number_input("B", key="b")


def reads_all_values_for_one() -> bool:
    """Whether a field asks for the values of the whole session."""
    asked = []
    everything = SessionState.filtered_state
    SessionState.filtered_state = property(lambda self: asked.append(self) or everything.fget(self))
    at = AppTest.from_function(_two_fields).run()
    at.number_input(key="a").set_value(1.0).run()
    assert at.number_input(key="a").value == 1.0
    return bool(asked)


def settings_of_runs() -> list[str]:
    """Names of Streamlit's settings of runs."""
    return sorted(name for name in config.get_config_options() if name.startswith("runner."))


def keeps_what_is_within_a_dropped_block() -> list[int]:
    """The path of what stays in the queue when a block is drawn anew whose inner block has not been sent."""
    queue = ForwardMsgQueue()
    for fragment_id, path in (("outer", (0, 1)), ("inner", (0, 1, 0))):
        message = ForwardMsg()
        message.delta.fragment_id = fragment_id
        message.delta.add_block.SetInParent()
        message.metadata.delta_path.extend(path)
        queue.enqueue(message)
    queue.clear(retain_lifecycle_msgs=True, fragment_ids_this_run=["outer"])
    return [place for message in queue.flush() for place in message.metadata.delta_path]


def settings_of_uploads() -> list[str]:
    """Names of Streamlit's settings of uploads and of sessions that were left."""
    return sorted(
        name
        for name in config.get_config_options()
        if name.startswith("server.") and ("upload" in name.lower() or "session" in name.lower())
    )


def told_of_a_session() -> list[str]:
    """What a page can ask of its session."""
    return sorted(name for name in dir(st.context) if not name.startswith("_"))


def keeps_a_session_whose_time_is_over() -> bool:
    """Whether it is in memory although nobody can come back to it."""
    storage = MemorySessionStorage(ttl_seconds=0)
    storage.save(SessionInfo(client=None, session=SimpleNamespace(id="left"), script_run_count=1))
    return storage.get("left") is None and len(storage._cache._data) == 1


def gives_each_logger_a_handler() -> bool:
    """Whether a logger of Streamlit's writes past the handlers of the root logger."""
    made = get_logger("made.later")
    return not made.propagate and any(isinstance(handler, logging.StreamHandler) for handler in made.handlers)


def asks_for_its_address() -> list[str]:
    """What it looks up when a page of somebody else's asks for a websocket."""
    asked = []
    net_util.get_internal_ip = lambda: asked.append("internal")
    net_util.get_external_ip = lambda: asked.append("external")
    assert not server_util.is_url_from_allowed_origins("http://elsewhere.example")
    return asked


def raises_for_what_is_no_message() -> bool:
    """Whether the server's way of reading a message raises for bytes that are none."""
    try:
        BackMsg().ParseFromString(b"\xff\xff\xff")
    except Exception:  # noqa: BLE001 - whatever it raises
        return True
    return False


SYMPTOMS: tuple[Callable[[], object], ...] = (
    takes_in_what_no_widget_sent,
    looks_for_a_newer_message_first,
    reads_all_values_for_one,
    settings_of_runs,
    keeps_what_is_within_a_dropped_block,
    settings_of_uploads,
    told_of_a_session,
    keeps_a_session_whose_time_is_over,
    gives_each_logger_a_handler,
    asks_for_its_address,
    raises_for_what_is_no_message,
)

if __name__ == "__main__":
    seen = {symptom.__name__: symptom() for symptom in SYMPTOMS}
    assert not [name for name in sys.modules if name == "ui" or name.startswith("ui.")]
    print(json.dumps(seen))
