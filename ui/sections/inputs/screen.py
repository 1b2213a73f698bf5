"""What the page Inputs measures of a text: the jobs, and the tokens and names that it is about."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from attnviz.effects.input_attribution import STEPS, AttributionMethod, InputAttribution
from attnviz.effects.outcome import Outcome
from attnviz.model.catalogue import offer
from attnviz.records import Tokens
from ui.page.view import View
from ui.sections import outcome
from ui.sections.own_run import check_can_run
from ui.work import experiments
from ui.work.jobs import Call, Job, job

NAMES: dict[AttributionMethod, str] = {
    "gradient_times_input": "Gradient × input",
    "integrated_gradients": "Integrated gradients",
    "token_replaced": "Token replaced",
    "keys_masked": "Keys masked",
    "norms": "Norm-based weights",
    "rollout": "Rollout",
    "flow": "Attention flow",
}
"""The methods as they are written on screen."""
_RUNS = 1200
"""Runs of a text that its deletion curves take, most of them for chance."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Screen:
    """A text, and the outcome that is attributed to its tokens."""

    view: View
    outcome: Outcome

    @property
    def tokens(self) -> Tokens:
        """The tokens that the outcome is attributed to: of an encoder-decoder model those of the encoder."""
        return self.view.trace.tokens

    @property
    def measured(self) -> str:
        """The outcome in words."""
        return outcome.words(self.outcome, self.view.trace.target_tokens or self.view.trace.tokens)

    @property
    def n_attributed(self) -> int:
        """Tokens of all runs that the attributions take."""
        return len(self.tokens) * (2 * STEPS + 2 * len(self.tokens))

    @property
    def n_deleted(self) -> int:
        """Tokens of all runs that the deletion curves take."""
        return len(self.tokens) * _RUNS

    def attributions(self) -> Job:
        """The job that attributes the outcome by every method."""
        return self._job("inputs", (), lambda: [(experiments.attribute, self._given, {"progress": None})])

    def deletion(self, found: Sequence[InputAttribution]) -> Job:
        """The job that takes tokens away in the order of each method."""
        seed = self.view.selection.seed
        named = {"seed": seed, "progress": None}
        return self._job(
            "deletion", (seed,), lambda: [(experiments.delete, (*self._given, tuple(found)), named)]
        )

    @property
    def _given(self) -> tuple[Any, ...]:
        return offer(self.view.selection.model).name, self.view.trace, str(self.outcome)

    def _job(self, name: str, key: tuple[Any, ...], calls: Callable[[], Sequence[Call]]) -> Job:
        return job(name, (self.view.selection.source, str(self.outcome), *key), calls)


def look(view: View, chosen: Outcome) -> Screen:
    """The text on screen.

    Raises:
        SelectionError: an opened bundle, which cannot be run again here.
    """
    check_can_run(view, "The outcome was to be attributed to the tokens")
    return Screen(view=view, outcome=chosen)
