"""Experiments run the model again with something changed, which an opened bundle cannot."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from attnviz.effects.outcome import Outcome
from attnviz.errors import SelectionError
from attnviz.model.catalogue import offer
from ui.page.view import View
from ui.sections import outcome
from ui.work.jobs import Call, Job, job


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnRun:
    """The text of a page, and what is measured of it each time that it is run."""

    view: View
    outcome: Outcome

    @property
    def measured(self) -> str:
        """The outcome in words."""
        return outcome.words(self.outcome, self.view.trace.last_tokens)

    @property
    def given(self) -> tuple[Any, ...]:
        """What every call begins with: the model's name, the trace and the outcome."""
        return offer(self.view.selection.model).name, self.view.trace, str(self.outcome)

    def job(self, name: str, key: tuple[Any, ...], calls: Callable[[], Sequence[Call]]) -> Job:
        """A job on this text and outcome."""
        return job(name, (self.view.selection.source, str(self.outcome), *key), calls)


def check_can_run(view: View, asked: str) -> None:
    """Raises SelectionError where an opened bundle is shown.

    Args:
        asked: what was asked for, as the beginning of a sentence.
    """
    if view.selection.bundle:
        raise SelectionError(
            f"{asked}; an opened bundle holds the numbers of one run, and cannot be run again with changes. Close the bundle to "
            "run its sentence."
        )
