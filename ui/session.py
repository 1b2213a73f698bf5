"""What attnviz keeps for one visitor beside the values of widgets: typed records, each declared by the module that owns it.

No other module names a key of Streamlit's session but those of widgets.
"""

from dataclasses import dataclass, field
from typing import TypeVar

import streamlit as st

Record = TypeVar("Record")


def of_session(record: type[Record]) -> Record:
    """The record of this class that belongs to the visitor; made with its defaults when it is first asked for."""
    key = f"{record.__module__}.{record.__qualname__}"
    try:
        stored: Record = st.session_state[key]
    except KeyError:
        stored = st.session_state[key] = record()
    return stored


@dataclass(slots=True)
class Link:
    """The query string that leads to what the visitor sees."""

    params: dict[str, str] | None = None
    """None before the first page, empty where the text is too long for a link."""
    page: str = ""
    """Name of the page that is open."""
    replaced: dict[str, float] = field(default_factory=dict)
    """The query strings that this page had a moment ago, each with the second of the clock at which another took its place."""
