"""What a component's script sends, read as what it should be; anybody can write messages of their own."""

from collections.abc import Callable
from typing import Any

import streamlit as st


def sent(key: str, trigger: str) -> Any:
    """What the component of this key has sent under this name; None for nothing."""
    return getattr(st.session_state.get(key), trigger, None)


def takes_cell(
    key: str, n_row: int, n_column: int, on_pick: Callable[[int, int], None]
) -> Callable[[], None]:
    """A callback for the component of this key: ``on_pick`` is called with row and column of the cell that it sends."""

    def take() -> None:
        match sent(key, "pick"):
            case [int(row), int(column)] if 0 <= row < n_row and 0 <= column < n_column:
                on_pick(row, column)

    return take
