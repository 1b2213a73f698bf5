"""What a component's script sends, read as what it should be; anybody can write messages of their own."""

from collections.abc import Callable, Sequence
from typing import Any

import streamlit as st


def sent(key: str, trigger: str) -> Any:
    """What the component of this key has sent under this name; None for nothing."""
    return getattr(st.session_state.get(key), trigger, None)


def takes_position(key: str, trigger: str, n_token: int, call: Callable[[int], None]) -> Callable[[], None]:
    """A callback for the component of this key: ``call`` is called with the position of a token that it sends by this name."""

    def take() -> None:
        position = sent(key, trigger)
        if isinstance(position, int | float) and 0 <= position < n_token:
            call(int(position))

    return take


def takes_cell(
    key: str, rows: Sequence[Sequence[object]], on_pick: Callable[[int, int], None]
) -> Callable[[], None]:
    """A callback for the component of this key: ``on_pick`` is called with row and column of the cell that it sends.

    Args:
        rows: the cells that there are; rows may differ in length.
    """

    def take() -> None:
        match sent(key, "pick"):
            case [int(row), int(column)] if 0 <= row < len(rows) and 0 <= column < len(rows[row]):
                on_pick(row, column)

    return take
