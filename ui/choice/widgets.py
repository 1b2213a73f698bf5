"""Widgets for the fields of the selection: filled from it, and written to it when they are changed."""

from collections.abc import Callable, Sequence
from typing import Any

from ui.choice import state
from ui.choice.fields import Heads, Number, Positions, Text
from ui.choice.selection import FIELDS, Selection
from ui.streamlit_fixes.stale_values import tie
from ui.streamlit_fixes.unsent_values import FILLINGS


def field(
    name: str,
    shown: Selection | None = None,
    take: Callable[..., None] = state.change,
    is_typed: bool = False,
    **different: Any,
) -> dict[str, Any]:
    """Arguments of a widget for a field of the selection: its declaration, its value and its callback.

    Args:
        name: of the field, as in a link.
        shown: what the widget is filled in with in place of what is chosen.
        is_typed: whether what is being typed in it must not be filled over.
        take: called with the field's new value, by its name.
        different: what differs from the declaration here, such as the options that a model has; joined buttons are
            ``required``.
    """
    declared = FIELDS[name]

    def changed(picked: Any) -> None:
        if declared.can_hold(picked):  # not the label of an option that is gone
            picked = sorted(picked) if isinstance(declared, Positions) else picked
            take(**{name: tuple(picked) if isinstance(picked, list) else picked})

    value = (shown or state.chosen()).value(name)
    is_several = isinstance(declared, Positions | Heads)
    if is_several and value is not None:
        value = list(value)  # as a widget for several things holds it
    from_list = isinstance(declared, Number) and "options" in different  # which has no range
    told = (Text.widget(declared) if from_list else declared.widget()) | different
    times = 1 if is_typed else FILLINGS
    tied = tie(f"field_{name}", value, changed, times=times, is_list="options" in told)
    return _holding(value, told) | told | tied


def _holding(value: Any, told: dict[str, Any]) -> dict[str, Any]:
    """The argument that puts a value into a widget's message, see `ui.streamlit_fixes.unsent_values`.

    A widget for several things and joined buttons, which are ``required``, name it otherwise than a select box; a slider
    along a list is given it by its page, as ``value``.
    """
    if told.keys() & {"value", "index", "default"}:
        return {}
    if isinstance(value, list):
        return {"default": [option for option in value if option in told.get("options", value)]}
    if told.get("required"):
        return {"default": value}
    if "options" in told:
        options = list(told["options"])
        return {"index": options.index(value) if value in options else None}
    return {"value": value}


def tie_row(key: str, rows: Sequence[Any], picked: Any, take: Callable[[Any], None]) -> dict[str, Any]:
    """Arguments that tie a table, of which one row can be selected, to what is selected.

    Args:
        rows: what each row stands for.
    """

    def changed(value: Any) -> None:
        state.hold()
        for row in value["selection"]["rows"]:
            if row < len(rows):  # the table may have been longer
                take(rows[row])

    marked = [rows.index(picked)] if picked in rows else []
    tied = tie(key, {"selection": {"rows": marked, "columns": [], "cells": []}}, changed)
    return {"key": tied["key"], "on_select": tied["on_change"], "selection_mode": "single-row"}
