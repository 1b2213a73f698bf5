"""Every run of a page or a block waits for its turn and begins with nothing half sent; whoever waits for long is told how many are ahead.

Symptom: two.
1. Streamlit runs the scripts of all visitors at once, each in a thread of its own; with fifty visitors, each waits for all others.
   `make load` measures how long.
2. A block that is drawn anew drops what it had drawn and not yet sent, but keeps what blocks within it had drawn. That then has
   no place in the browser, which ends with "Bad delta path index" and a white page: after a click while a page is being drawn.
Version: 1.67.0. No upstream issue is known to us.
No longer needed when: one of the tests of `TestRunsInTurn` in tests/unit/test_streamlit_fixes.py fails; each sees one symptom.

A run waits after its message was processed and before its page begins, where Streamlit lets a newer message of the same
visitor replace it.
"""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import streamlit as st
from streamlit.delta_generator import DeltaGenerator
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.runtime.forward_msg_queue import ForwardMsgQueue
from streamlit.runtime.scriptrunner import exec_code, script_runner
from streamlit.runtime.scriptrunner_utils.script_run_context import ScriptRunContext, get_run_yield_check

TELL_SECONDS = 1.0
"""Seconds after which a visitor is told how many are ahead."""

Ended = Literal["done", "replaced", "stopped", "failed"]

_begin = ScriptRunContext.on_script_start
_clear = ForwardMsgQueue.clear
_execute = exec_code.exec_func_with_error_handling


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A run that has ended."""

    page: str
    """Name of the page's file, without its ending."""
    is_block: bool
    outcome: Ended
    waited: float
    """Seconds in line."""
    seconds: float
    """Duration of the run itself, after the wait."""


def take_turns(
    enter: Callable[[Callable[[int, float], None]], None],
    leave: Callable[[], None],
    ended: Callable[[Run], None],
) -> None:
    """From now on runs take turns, and none begins with parts of what it draws anew.

    Args:
        enter: waits for a turn; meanwhile calls its argument with how many are ahead and the seconds waited so far.
        leave: gives the turn back, if the thread has one.
        ended: called at the end of every run, in the run's own thread.
    """
    times = threading.local()  # of this thread's run

    def begin(self: ScriptRunContext) -> None:
        times.asked = time.monotonic()
        try:
            enter(_Waiting(self).poll)
        finally:
            times.begun = time.monotonic()
        _begin(self)

    def execute_and_leave(run: Callable[[], Any], context: ScriptRunContext) -> Any:
        times.asked = times.begun = time.monotonic()  # in case the run ends before it waits
        try:
            done = _execute(run, context)
        finally:
            leave()
        ended(
            Run(
                page=_page(context),
                is_block=bool(context.fragment_ids_this_run),
                outcome=_ended(done),
                waited=times.begun - times.asked,
                seconds=time.monotonic() - times.begun,
            )
        )
        return done

    ScriptRunContext.on_script_start = begin  # type: ignore[method-assign]
    vars(script_runner)["exec_func_with_error_handling"] = execute_and_leave
    ForwardMsgQueue.clear = _clear_whole  # type: ignore[method-assign]


def _clear_whole(
    self: ForwardMsgQueue, retain_lifecycle_msgs: bool = False, fragment_ids_this_run: list[str] | None = None
) -> None:
    """Drops with a block all that is within it."""
    waiting = list(self._queue)
    _clear(self, retain_lifecycle_msgs, fragment_ids_this_run)
    if not self._queue or fragment_ids_this_run is None:
        return
    kept = {id(message) for message in self._queue}
    dropped = [_path(message) for message in waiting if _is_block(message) and id(message) not in kept]
    self._queue = [
        message for message in self._queue if not any(_is_within(_path(message), block) for block in dropped)
    ]


def _is_block(message: ForwardMsg) -> bool:
    return message.delta.WhichOneof("type") == "add_block"


def _path(message: ForwardMsg) -> tuple[int, ...]:
    """Where a message's element or block is on the page; empty for a message about neither."""
    return tuple(message.metadata.delta_path)


def _is_within(path: tuple[int, ...], block: tuple[int, ...]) -> bool:
    return len(path) > len(block) and path[: len(block)] == block


def newer_message_check() -> Callable[[], None]:
    """The function that a waiting run calls; it ends the run if its visitor has asked for something newer, or has left."""
    return get_run_yield_check() or _nothing


def _nothing() -> None:
    """The check for a thread that is not a run."""


def _page(context: ScriptRunContext) -> str:
    page = context.pages_manager.get_pages().get(context.page_script_hash)
    return Path(page["script_path"] if page else context.main_script_path).stem


def _ended(done: tuple[Any, bool, Any, bool, Exception | None]) -> Ended:
    """How a run ended, from Streamlit's tuple: result, whether it had no errors, what replaces it, whether stopped, error."""
    _, is_right, newer, was_stopped, _ = done
    if not is_right:
        return "failed"
    if newer is not None:
        return "replaced"
    return "stopped" if was_stopped else "done"


class _Waiting:
    """A waiting run, and what its visitor was told."""

    def __init__(self, context: ScriptRunContext) -> None:
        self._context = context
        self._told = 0.0
        self._place: DeltaGenerator | None = None

    def poll(self, ahead: int, seconds: float) -> None:
        """Ends the wait if the visitor asked for something newer; otherwise tells them how many are ahead."""
        self._context.yield_check()
        if seconds - self._told >= TELL_SECONDS and not self._context.fragment_ids_this_run:
            self._told = seconds
            words = f"Many people are using attnviz. Ahead of you: {ahead}."
            self._place = (self._place.toast if self._place else st.toast)(
                words, icon=":material/hourglass_top:"
            )
