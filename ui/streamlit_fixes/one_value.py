"""A widget that looks at its own value looks at no other.

Symptom: every number field, list and text field asks for the values of the whole session to find its own among them. For each
of our components that has a callback Streamlit makes a new class whenever its value is read, so that one run made 300 of
them and spent a ninth of its time on it.
Version: 1.67.0. No upstream issue is known to us.
No longer needed when: without it `test_a_field_reads_no_other_value` in tests/app/test_quick_clicks.py passes.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from streamlit.runtime.state import SafeSessionState


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


def read_one_value() -> None:
    """From now on values that nobody asks for are not read."""
    SafeSessionState.filtered_state = property(_Values)  # type: ignore[method-assign, assignment]
