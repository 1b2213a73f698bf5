"""A widget's value counts as a choice only if the browser knew what it was choosing from.

Symptom: with every click the browser sends the values of all widgets, as of its own last drawing. After two quick clicks
the second message still holds the value that the first click replaced, and Streamlit calls the widget's callback with it.
And if the server fills in a widget while the visitor selects something else in it, the two messages cross: the browser
then shows, and sends with the next click, the server's value.
Version: 1.67.0. No upstream issue is known to us: the behaviour follows from how widgets work.
No longer needed when: a message says which widget was clicked; `tests/app/test_quick_clicks.py` then passes without it.

docs/decisions/clicks-and-the-session.md has the sequence of events.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import streamlit as st

from ui.session import of_session
from ui.streamlit_fixes.unsent_values import FILLINGS


@dataclass(slots=True)
class Widgets:
    """What the browser's widgets hold, as far as the server knows."""

    page: str = ""
    """The page that is open."""
    run: int = 0
    """Number of page runs so far."""
    fillings: dict[str, int] = field(default_factory=dict)
    """How often each widget was filled in on this page."""
    filled: dict[str, tuple[int, Any]] = field(default_factory=dict)
    """By widget, the run that last filled it in, and the value."""
    crossed: dict[str, Any] = field(default_factory=dict)
    """By widget, the value filled in while another was already on its way from the browser."""
    replaced: dict[str, list[Any]] = field(default_factory=dict)
    """By widget, all values it has had since the browser last sent the right one."""
    doubtful: dict[str, tuple[Any, Callable[[Any], None]]] = field(default_factory=dict)
    """By widget, a replaced value that the browser has just sent, and the function that takes it."""


def open_page(page: str, was_clicked: bool) -> None:
    """Begins a page; if it is another page than before, all widgets are filled in again.

    A replaced value is accepted only if it arrived alone: then it was selected again. Together with a click it is stale.
    """
    widgets = of_session(Widgets)
    widgets.run += 1
    if widgets.page != page:
        widgets.page, widgets.fillings = page, {}
    doubtful, widgets.doubtful = widgets.doubtful, {}
    if len(doubtful) == 1 and not was_clicked:
        [(key, (picked, take))] = doubtful.items()
        if st.session_state.get(key) == picked:
            take(picked)


def tie(
    key: str, value: Any, take: Callable[[Any], None], *, times: int = FILLINGS, is_list: bool = False
) -> dict[str, Any]:
    """Arguments that tie a widget to a value: its key, filled in, and a callback that passes the selection to ``take``.

    A replaced value is doubtful until `open_page` has decided. ``times`` as in `fill`.

    Args:
        is_list: whether it is a list to select from. A selection made there while the list is being filled in is filled
            in again, so that the browser shows it; the steps of a number can be clicked faster than a page runs.
    """

    def changed() -> None:
        widgets = of_session(Widgets)
        picked = st.session_state[key]
        if picked in widgets.replaced.get(key, []):
            widgets.doubtful[key] = picked, take
        elif picked is not None:  # an emptied number field keeps its last value
            run, filled_with = widgets.filled.get(key, (0, None))
            if is_list and run == widgets.run and filled_with != picked:
                widgets.crossed[key] = filled_with
            take(picked)

    return {"key": fill(key, value, times=times), "on_change": changed}


def fill(key: str, value: Any, *, times: int = 1) -> str:
    """Fills a widget in with a value; returns its key.

    Args:
        times: runs of a newly opened page that fill it in. Filling in discards what is being typed, so after those
            runs only a different value is filled in.
    """
    widgets = of_session(Widgets)
    before = st.session_state.get(key)
    has_crossed = key in widgets.crossed
    if has_crossed:
        widgets.replaced.setdefault(key, []).append(widgets.crossed.pop(key))
    elif before == value:
        widgets.replaced.pop(key, None)
    if before not in (value, None):
        widgets.replaced.setdefault(key, []).extend((before, value))
    if widgets.fillings.get(key, 0) < times or before != value or has_crossed:
        st.session_state[key] = value
        widgets.fillings[key] = widgets.fillings.get(key, 0) + 1
        widgets.filled[key] = widgets.run, value
    return key
