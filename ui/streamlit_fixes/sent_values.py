"""Each browser message is processed as a whole, only values that their widget can send are accepted, and each is read alone.

Symptom: three, all in `SafeSessionState`, through which a run receives messages and reads its session.
1. Streamlit accepts any value for any widget, and if it cannot read the value, the page ends in an exception: text for a
   number, a list for one choice, a value for a widget that is not on the page. For data that is no message at all it writes
   a traceback into the log. No browser sends such data, but anybody can.
2. It checks for a newer message before it processes a message, and whenever a callback reads the session. If there is one,
   it continues with the newer message: of two quick clicks the first is lost, or only half processed. A page that redraws a
   block by itself sends such messages twice a second. With ``runner.fastReruns``, which .streamlit/config.toml turns off, a
   message whose thread has not begun yet is dropped, too.
3. Every number field, list and text field reads the values of the whole session to find its own. For each of our components
   with a callback, Streamlit creates a new class whenever the value is read, so one run created 300 classes and spent a
   ninth of its time on them.
Version: 1.67.0. No upstream issue is known to us.
No longer needed when: one of the tests of `TestSentValues` in tests/unit/test_streamlit_fixes.py fails; each sees one symptom.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from google.protobuf.message import DecodeError
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.WidgetStates_pb2 import WidgetState, WidgetStates
from streamlit.runtime.state import SafeSessionState
from streamlit.runtime.state.session_state import SessionState, WStates

LARGEST = 5_000_000
"""Most bytes of a value; the longest field takes a million characters, of up to four bytes each."""

# A number field declares "double_value" but sends a whole number as "int_value".
_ALIKE: dict[str | None, str] = {"int_value": "number", "double_value": "number"}


def read_message(data: bytes) -> BackMsg | None:
    """Parses a browser's websocket message; None if it is not one."""
    try:
        message: BackMsg = BackMsg.FromString(data)
    except DecodeError:
        return None
    return message


def take_in_whole_and_read_alone() -> None:
    """From now on a session processes a message and its callbacks before it checks for the next, and reads values one by one."""
    SafeSessionState.on_script_will_rerun = _taken_in_whole  # type: ignore[method-assign, assignment]
    SafeSessionState.filtered_state = property(_Values)  # type: ignore[method-assign, assignment]


def _taken_in_whole(self: SafeSessionState, sent: WidgetStates | None, **replayed: Any) -> None:
    yield_point = self._yield_callback
    object.__setattr__(self, "_yield_callback", lambda: None)  # as the class sets its own attributes
    try:
        with self._lock:
            self._state.on_script_will_rerun(_without_forged(self._state, sent), **replayed)
    finally:
        object.__setattr__(self, "_yield_callback", yield_point)


def _without_forged(session: SessionState, sent: WidgetStates | None) -> WidgetStates | None:
    """The values that widgets of this session could have sent; the page checks whether they make sense."""
    if sent is None:
        return None
    kept = WidgetStates()
    kept.widgets.extend(value for value in sent.widgets if _could_be_sent(session, value))
    return kept


def _could_be_sent(session: SessionState, value: WidgetState) -> bool:
    metadata = session._new_widget_state.widget_metadata.get(value.id)
    kind = value.WhichOneof("value")
    if value.ByteSize() > LARGEST:
        return False
    if metadata is None or _ALIKE.get(kind, kind) != _ALIKE.get(metadata.value_type, metadata.value_type):
        return False
    if kind in ("json_value", "json_trigger_value") and not _is_state(getattr(value, kind)):
        return False  # Streamlit would write a traceback into the log for each
    trial = WStates()
    trial.set_widget_from_proto(value)
    trial.set_widget_metadata(metadata)
    try:
        trial[value.id]
    except Exception:  # noqa: BLE001 - a value that cannot be read is not one that the widget sends
        return False
    return True


def _is_state(written: str) -> bool:
    """Whether the text is JSON such as a component sends."""
    try:
        return isinstance(json.loads(written), dict | list)
    except (ValueError, RecursionError):
        return False


class _Values(Mapping[str, Any]):
    """The values of a session, each read when it is asked for."""

    def __init__(self, session: SafeSessionState) -> None:
        self._session = session

    def __getitem__(self, key: str) -> Any:
        with self._session._lock:
            return self._session._state[key]

    def _all(self) -> Mapping[str, Any]:
        with self._session._lock:
            return self._session._state.filtered_state

    def __iter__(self) -> Iterator[str]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())
