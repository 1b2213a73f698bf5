"""Widgets for the fields of the selection: filled in from it, and written back when changed."""

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
        shown: the selection to fill the widget in from; None for the current one.
        is_typed: whether the field is typed into, so that filling it in again must not overwrite the typing.
        take: called with the field's new value, by its name.
        different: overrides of the declaration, such as a model's options; segmented controls are ``required``.
    """
    declared = FIELDS[name]

    def changed(picked: Any) -> None:
        if declared.can_hold(picked):  # an option that no longer exists arrives as its label
            picked = sorted(picked) if isinstance(declared, Positions) else picked
            take(**{name: tuple(picked) if isinstance(picked, list) else picked})

    value = (shown or state.chosen()).value(name)
    is_several = isinstance(declared, Positions | Heads)
    if is_several and value is not None:
        value = list(value)  # multi-value widgets hold a list
    from_list = isinstance(declared, Number) and "options" in different  # has no range
    told = (Text.widget(declared) if from_list else declared.widget()) | different
    times = 1 if is_typed else FILLINGS
    tied = tie(f"field_{name}", value, changed, times=times, is_list="options" in told)
    return _holding(value, told) | told | tied


def _holding(value: Any, told: dict[str, Any]) -> dict[str, Any]:
    """The argument that puts a value into a widget's message, see `ui.streamlit_fixes.unsent_values`.

    Multi-value widgets and segmented controls, which are ``required``, name it differently from a select box; a slider
    over a list gets it from its page, as ``value``.
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
    """Arguments that tie a table with selectable rows, one at a time, to the selection.

    Args:
        rows: what each row stands for.
    """

    def changed(value: Any) -> None:
        state.hold()
        for row in value["selection"]["rows"]:
            if row < len(rows):  # the browser's table may have been longer
                take(rows[row])

    marked = [rows.index(picked)] if picked in rows else []
    tied = tie(key, {"selection": {"rows": marked, "columns": [], "cells": []}}, changed)
    return {"key": tied["key"], "on_select": tied["on_change"], "selection_mode": "single-row"}
