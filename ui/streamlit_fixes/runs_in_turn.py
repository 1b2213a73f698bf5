"""Every run of a page or a block waits for its turn, and a visitor who waits for long is told how many are ahead.

Symptom: Streamlit runs the scripts of all visitors at once, each in a thread of its own; with fifty visitors each of them waits
for all others, for half a minute (docs/operating.md has the figures).
Version: 1.67.0. No upstream issue is known to us.
No longer needed when: Streamlit has a setting for how many scripts run at once.

A run waits after its message was taken in and before its page begins, where Streamlit lets a newer message of the visitor take
its place.
"""

from collections.abc import Callable
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator
from streamlit.runtime.scriptrunner import exec_code, script_runner
from streamlit.runtime.scriptrunner_utils.script_run_context import ScriptRunContext

from ui.work.turns import line

TELL_SECONDS = 1.0
"""After so long a visitor is told how many are ahead."""

_begin = ScriptRunContext.on_script_start
_execute = exec_code.exec_func_with_error_handling


def take_turns() -> None:
    """From now on runs take turns."""
    ScriptRunContext.on_script_start = _begin_in_turn  # type: ignore[method-assign]
    vars(script_runner)["exec_func_with_error_handling"] = _execute_and_leave


def _begin_in_turn(self: ScriptRunContext) -> None:
    told: dict[str, Any] = {"seconds": 0.0, "place": None}

    def look(ahead: int, seconds: float) -> None:
        self.yield_check()
        if seconds - told["seconds"] >= TELL_SECONDS and not self.fragment_ids_this_run:
            told["seconds"] = seconds
            words = f"Many people are using attnviz. Ahead of you: {ahead}."
            place: DeltaGenerator | None = told["place"]
            told["place"] = (place.toast if place else st.toast)(words, icon=":material/hourglass_top:")

    line.enter(look)
    _begin(self)


def _execute_and_leave(run: Callable[[], Any], context: ScriptRunContext) -> Any:
    try:
        return _execute(run, context)
    finally:
        line.leave()
