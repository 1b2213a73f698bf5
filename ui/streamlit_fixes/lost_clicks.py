"""A click is taken in whole, however soon the next message of its browser comes.

Symptom: Streamlit looks for a newer message before it takes in what a message says, and whenever a callback asks for
something of the session. Where there is one, it goes on with that: of two clicks within a moment the first is lost, or only
half done. A page that redraws a block by itself sends such messages twice a second. With ``runner.fastReruns``, which
.streamlit/config.toml turns off, a message whose thread has not begun yet is dropped, too.
Version: 1.67.0. No upstream issue is known to us.
No longer needed when: without it tests/app/test_lost_clicks.py passes.
"""

from typing import Any

from streamlit.proto.WidgetStates_pb2 import WidgetStates
from streamlit.runtime.state import SafeSessionState

from ui.streamlit_fixes.forged_values import without_forged


def keep_clicks() -> None:
    """From now on a session takes in a message, with its callbacks, before it looks for the next."""
    SafeSessionState.on_script_will_rerun = _taken_in_whole  # type: ignore[method-assign, assignment]


def _taken_in_whole(self: SafeSessionState, sent: WidgetStates | None, **replayed: Any) -> None:
    look = self._yield_callback
    object.__setattr__(self, "_yield_callback", lambda: None)  # it keeps its own attributes this way, too
    try:
        with self._lock:
            self._state.on_script_will_rerun(without_forged(self._state, sent), **replayed)
    finally:
        object.__setattr__(self, "_yield_callback", look)
