"""What a component's script sends, read as what it should be; anybody can write messages of their own."""

from typing import Any

import streamlit as st


def sent(key: str, trigger: str) -> Any:
    """What the component of this key has sent under this name; None for nothing."""
    return getattr(st.session_state.get(key), trigger, None)
