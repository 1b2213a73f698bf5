"""What the page Inputs measures of a text: the jobs, and the tokens and names that it is about."""

from collections.abc import Sequence
from dataclasses import dataclass

from attnviz.effects.input_attribution import STEPS, AttributionMethod, InputAttribution
from attnviz.effects.outcome import Outcome
from attnviz.records import Tokens
from ui.page.view import View
from ui.sections.own_run import MeasuredRun, check_can_run
from ui.work import experiments
from ui.work.jobs import TELLS_PROGRESS, Job

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
_RUNS = 2400
"""Runs of a text that its deletion curves take, most of them for chance."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Screen(MeasuredRun):
    """A text, and the outcome that is attributed to its tokens."""

    @property
    def tokens(self) -> Tokens:
        """The tokens that the outcome is attributed to: of an encoder-decoder model those of the encoder."""
        return self.view.trace.tokens

    @property
    def n_attributed(self) -> int:
        """Tokens of all runs that the attributions take."""
        return len(self.tokens) * (2 * STEPS[0] + 2 * len(self.tokens))

    @property
    def n_deleted(self) -> int:
        """Tokens of all runs that the deletion curves take."""
        return len(self.tokens) * _RUNS

    def attributions(self) -> Job:
        """The job that attributes the outcome by every method."""
        return self.job("inputs", (), lambda: [(experiments.attribute, self.given, TELLS_PROGRESS)])

    def deletion(self, found: Sequence[InputAttribution]) -> Job:
        """The job that takes tokens away in the order of each method."""
        seed = self.view.selection.seed
        named = {"seed": seed, **TELLS_PROGRESS}
        return self.job(
            "deletion", (seed,), lambda: [(experiments.delete, (*self.given, tuple(found)), named)]
        )


def look(view: View, chosen: Outcome) -> Screen:
    """The text on screen.

    Raises:
        SelectionError: an opened bundle, which cannot be run again here.
    """
    check_can_run(view, "The outcome was to be attributed to the tokens")
    return Screen(view=view, outcome=chosen)
