"""Widgets that hold what is chosen: filled from the selection, and written to it when they are changed.

A browser that is clicked twice in a row sends with the second click what its widgets held before the first, so what
comes from a widget is not always a choice.
"""

from collections.abc import Callable, Sequence
from typing import Any

import streamlit as st

from ui.choice import state
from ui.choice.fields import Heads, Number, Positions, Text
from ui.choice.selection import FIELDS, Selection


def arrive(page: str) -> None:
    """Begins a page: on another one than before all widgets are filled again.

    Of the values that are doubtful, see `tie`, takes one that came alone, so was picked again; beside another click it is
    an old one.
    """
    if st.session_state.get("page") != page:
        st.session_state.page, st.session_state.filled = page, {}
    doubtful = st.session_state.pop("doubtful", {})
    if len(doubtful) == 1 and not state.was_clicked():
        [(key, (picked, take))] = doubtful.items()
        if st.session_state.get(key) == picked:
            take(picked)


def field(
    name: str,
    shown: Selection | None = None,
    take: Callable[..., None] = state.change,
    **different: Any,
) -> dict[str, Any]:
    """All that a widget for a field of the selection is told: its declaration, its value, and what it changes.

    Args:
        name: of the field, as in a link.
        shown: what the widget is filled in with in place of what is chosen.
        take: called with the field's new value, by its name.
        different: what differs from the declaration here, such as the options that a model has.
    """
    declared = FIELDS[name]

    def changed(picked: Any) -> None:
        if declared.can_hold(picked):  # not the label of an option that is gone
            picked = sorted(picked) if isinstance(declared, Positions) else picked
            take(**{name: tuple(picked) if isinstance(picked, list) else picked})

    value = (shown or state.chosen()).value(name)
    is_several = isinstance(declared, Positions | Heads)
    value = (
        list(value) if is_several and value is not None else value
    )  # as a widget for several things holds it
    from_list = isinstance(declared, Number) and "options" in different  # which has no range
    told = Text.widget(declared) if from_list else declared.widget()
    return told | different | tie(f"field_{name}", value, changed)


def tie(key: str, value: Any, take: Callable[[Any], None]) -> dict[str, Any]:
    """Arguments that tie a widget to a value: its key, filled in, and a callback that gives `take` what is picked.

    A value that was replaced is doubtful until the browser has sent the one in its place: see `arrive`.
    """

    def changed() -> None:
        picked = st.session_state[key]
        if picked in _replaced().get(key, []):
            st.session_state.setdefault("doubtful", {})[key] = picked, take
        elif picked is not None:  # an emptied number field keeps what was chosen
            take(picked)

    # Twice, since Streamlit 1.67 drops what it has not sent yet when a page is drawn anew; the browser would then
    # show, and send, the first of the options.
    return {"key": fill(key, value, times=2), "on_change": changed}


def tie_row(key: str, rows: Sequence[Any], picked: Any, take: Callable[[Any], None]) -> dict[str, Any]:
    """Arguments that tie a table, of which one row can be picked, to what is picked.

    Args:
        rows: what each row stands for.
    """

    def changed(found: Any) -> None:
        state.hold()
        for row in found["selection"]["rows"]:
            if row < len(rows):  # the table may have been longer
                take(rows[row])

    marked = [rows.index(picked)] if picked in rows else []
    tied = tie(key, {"selection": {"rows": marked, "columns": [], "cells": []}}, changed)
    return {"key": tied["key"], "on_select": tied["on_change"], "selection_mode": "single-row"}


def fill(key: str, value: Any, *, times: int = 1) -> str:
    """The key of a widget, filled in with a value.

    Set only where it has to be, since that discards what is being typed: when the value differs, and on every page
    that is opened, where the browser makes the field anew and would show it empty, as often as asked for.
    """
    held = st.session_state.get(key)
    if held == value:
        _replaced().pop(key, None)
    elif held is not None:
        _replaced().setdefault(key, []).extend((held, value))
    filled: dict[str, int] = st.session_state.filled
    if filled.get(key, 0) < times or held != value:
        st.session_state[key] = value
        filled[key] = filled.get(key, 0) + 1
    return key


def _replaced() -> dict[str, list[Any]]:
    """By key, all that a widget held or was filled in with since the browser last sent what it should hold."""
    replaced: dict[str, list[Any]] = st.session_state.setdefault("replaced", {})
    return replaced
