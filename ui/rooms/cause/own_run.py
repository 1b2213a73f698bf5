"""A text that the model runs again, with something changed or read on the way. An opened bundle cannot be run again."""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from attnviz.effects.outcome import Outcome
from attnviz.errors import SelectionError
from attnviz.model.catalogue import offer
from ui.rooms.cause import outcome
from ui.runtime import cache, with_model
from ui.runtime.jobs import Call, Job, job
from ui.runtime.source import Source
from ui.runtime.with_model import Measuring
from ui.shell.view import View
from ui.shell.waiting import Request

_PARAMETERS = 10_800_000
"""Parameters of all-MiniLM-L6-v2 without its embeddings."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnRun:
    """The text of a page that runs it again."""

    view: View

    @property
    def model(self) -> str:
        """The model's name, as worker processes load it."""
        return offer(self.view.selection.model).name

    @property
    def given(self) -> tuple[Any, ...]:
        """The first arguments of a call: the model's name, the trace and the outcome, if any."""
        return self.model, self.view.trace

    def call(self, function: Callable[..., Any], *given: Any, **named: Any) -> Call:
        """A call of a function of attnviz on the model, the trace and the outcome, if any."""
        return with_model.call, (function, *self.given, *given), named

    def job(self, name: str, key: tuple[Any, ...], calls: Callable[[], Sequence[Call]]) -> Job:
        """A job on this text and outcome, in the process for long texts if it is one."""
        return job(
            name,
            (self._source, *self._measures, *key),
            calls,
            is_long=self.view.trace.is_long(self.view.kind),
        )

    def request(self, label: str, *key: Hashable) -> Request:
        """A request for a computation on this text and outcome.

        Args:
            label: of its button.
        """
        return Request(label=label, key=(self._source, *self._measures, *key))

    def counted(self, n_tokens: int) -> int:
        """The number of tokens of the bundled model that cost as much as so many of this one, by the parameters per token."""
        network = cache.model(self.view.selection.source.model).network
        return round(n_tokens * network.num_parameters(exclude_embeddings=True) / _PARAMETERS)

    @property
    def _source(self) -> Source:
        """What the model runs again: all of the text, however many layers of it are there."""
        return replace(self.view.selection.source, layers=0)

    @property
    def _measures(self) -> tuple[str, ...]:
        return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredRun(OwnRun):
    """The text of a page, and what is measured in each of its runs."""

    outcome: Outcome

    @property
    def given(self) -> tuple[Any, ...]:
        """Also what is measured."""
        return self.model, self.view.trace, Measuring(self.outcome)

    @property
    def measured(self) -> str:
        """The outcome in words."""
        return outcome.words(self.outcome, self.view.trace.last_tokens)

    @property
    def _measures(self) -> tuple[str, ...]:
        return (str(self.outcome),)


def check_can_run(view: View, asked: str) -> None:
    """Raises SelectionError if an opened bundle is shown.

    Args:
        asked: what was asked for, as the beginning of a sentence.
    """
    if view.selection.bundle:
        raise SelectionError(
            f"{asked}; an opened bundle holds the numbers of one run, and cannot be run again with changes. Close the bundle to "
            "run its sentence."
        )
