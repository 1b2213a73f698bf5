"""Answers to what the viewer asks the server for: one message for each question, and nothing else is drawn."""

from collections.abc import Callable, Mapping
from typing import Any

from ui.components import register
from ui.components.sent import sent

_mount = register("stage_answer")


def stage_answer(answer: Callable[[str, dict[str, Any]], tuple[Mapping[str, object], bytes]]) -> None:
    """Answers what the viewer asks for: numbers that its document does not hold.

    Args:
        answer: called with what is asked for and its arguments; gives JSON and the bytes beside it.
    """
    data: dict[str, object] = {}
    attached = b""
    match sent("stage_answer", "asked"):
        case {"id": int(number), "what": str(what), "query": dict(query)}:
            given, attached = answer(what, query)
            data = {"id": number, **given}
    _mount(key="stage_answer", data=data, attached=attached, on_asked_change=lambda: None)
