"""What a browser sends for a widget counts only if that widget could have sent it.

Symptom: Streamlit takes any value for any widget, and where its own reading of it fails, the page ends in an exception: text for
a number, a list for one choice, a value for a widget that is not on the page. No browser sends that, but anybody can.
Version: 1.67.0. No upstream issue is known to us.
No longer needed when: tests/server/test_forged_messages.py passes without it.
"""

import json

from streamlit.proto.WidgetStates_pb2 import WidgetState, WidgetStates
from streamlit.runtime.state.session_state import SessionState, WStates

# A number field says "double_value" of itself and sends a whole number as "int_value".
_ALIKE: dict[str | None, str] = {"int_value": "number", "double_value": "number"}


LARGEST = 5_000_000
"""Bytes of a value; the longest field takes a million characters, of up to four bytes each."""


def without_forged(session: SessionState, sent: WidgetStates | None) -> WidgetStates | None:
    """The values that widgets of this session could have sent; what they may mean is the page's to check."""
    if sent is None:
        return None
    kept = WidgetStates()
    kept.widgets.extend(one for one in sent.widgets if _could_be_sent(session, one))
    return kept


def _could_be_sent(session: SessionState, one: WidgetState) -> bool:
    metadata = session._new_widget_state.widget_metadata.get(one.id)
    kind = one.WhichOneof("value")
    if one.ByteSize() > LARGEST:
        return False
    if metadata is None or _ALIKE.get(kind, kind) != _ALIKE.get(metadata.value_type, metadata.value_type):
        return False
    if kind in ("json_value", "json_trigger_value") and not _is_state(getattr(one, kind)):
        return False  # Streamlit would write a traceback into the log for each
    trial = WStates()
    trial.set_widget_from_proto(one)
    trial.set_widget_metadata(metadata)
    try:
        trial[one.id]
    except Exception:  # noqa: BLE001 - whatever reading it raises, it is not what the widget sends
        return False
    return True


def _is_state(written: str) -> bool:
    """Whether it is JSON such as a component sends."""
    try:
        return isinstance(json.loads(written), dict | list)
    except (ValueError, RecursionError):
        return False
