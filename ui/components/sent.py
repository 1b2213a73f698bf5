"""Checks what a component's script sends, since anybody can forge messages."""

from collections.abc import Callable, Sequence
from typing import Any

import streamlit as st


def sent(key: str, trigger: str) -> Any:
    """The value that the component of this key has sent under this name; None for nothing."""
    return getattr(st.session_state.get(key), trigger, None)


def takes_position(key: str, trigger: str, n_token: int, call: Callable[[int], None]) -> Callable[[], None]:
    """A callback for the component of this key; passes the token position sent under this name to ``call``."""

    def take() -> None:
        position = sent(key, trigger)
        if isinstance(position, int | float) and 0 <= position < n_token:
            call(int(position))

    return take


def takes_cell(
    key: str, rows: Sequence[Sequence[object]], on_pick: Callable[[int, int], None]
) -> Callable[[], None]:
    """A callback for the component of this key; passes row and column of the cell that was sent to ``on_pick``.

    Args:
        rows: the existing cells; rows may differ in length.
    """

    def take() -> None:
        match sent(key, "pick"):
            case [int(row), int(column)] if 0 <= row < len(rows) and 0 <= column < len(rows[row]):
                on_pick(row, column)

    return take
