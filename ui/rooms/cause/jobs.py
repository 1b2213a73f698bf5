"""An experiment on one pair of a set of prompts, in a worker process."""

from collections.abc import Callable
from typing import Any

from attnviz.effects.prompts import PromptPair
from attnviz.errors import (
    EmptyTextError,
    InvalidTextError,
    SelectionError,
    ShapeError,
    TextTooLongError,
)
from attnviz.records import Progress
from ui.runtime import with_model


def of_line(
    name: str, line: int, experiment: Callable[..., Any], pair: PromptPair, *given: Any, progress: Progress
) -> Any:
    """The result of an experiment on one pair of a set of prompts; a sentence if the pair does not allow it."""
    try:
        return experiment(with_model.own(name), pair, *given, progress=progress)
    except (EmptyTextError, InvalidTextError, SelectionError, ShapeError, TextTooLongError) as error:
        return f"Line {line}: {error}"
