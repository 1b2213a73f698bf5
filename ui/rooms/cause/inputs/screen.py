"""What the page Inputs measures on a text: the jobs, the tokens and the methods' names."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

from attnviz.effects.deletion import RandomOrders
from attnviz.effects.input_attribution import (
    METHODS,
    AttributionMethod,
    InputAttribution,
    available_methods,
    without_rounding,
)
from attnviz.effects.outcome import Outcome
from attnviz.maths.gradients import FIRST_PANELS, NODES
from attnviz.records import Tokens
from ui.rooms.cause.inputs import jobs
from ui.rooms.cause.own_run import MeasuredRun, check_can_run
from ui.runtime.jobs import TELLS_PROGRESS, Call, Job
from ui.shell.view import View

NAMES: dict[AttributionMethod, str] = {
    "gradient_times_input": "Gradient × input",
    "integrated_gradients": "Integrated gradients",
    "token_replaced": "Token replaced",
    "keys_masked": "Keys masked",
    "norms": "Norm-based weights",
    "rollout": "Rollout",
    "flow": "Attention flow",
}
"""The methods' names on screen."""
PARTS = 2
"""Parts of integrated gradients' path, and of the random orders, to keep the default number of processes busy."""
_RUNS = 700
"""Runs of a text for its deletion curves, most of them for chance."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Screen(MeasuredRun):
    """A text, and the outcome that is attributed to its tokens."""

    @property
    def tokens(self) -> Tokens:
        """The tokens that the outcome is attributed to; in an encoder-decoder model, the encoder's."""
        return self.view.trace.tokens

    @property
    def n_attributed(self) -> int:
        """Tokens in all runs of the attributions."""
        return len(self.tokens) * 2 * len(self.tokens)

    @property
    def n_integrated(self) -> int:
        """Fewest tokens in all runs of integrated gradients; a token with its gradient counts as two."""
        return len(self.tokens) * 2 * FIRST_PANELS * NODES

    @property
    def n_deleted(self) -> int:
        """Tokens in all runs of the deletion curves."""
        return len(self.tokens) * _RUNS

    def attributions(self) -> Job:
        """The job that attributes the outcome by all methods except integrated gradients, a call for each."""

        def calls() -> list[Call]:
            there = available_methods(self.view.trace, self.outcome)
            return [
                (jobs.attribute, (*self.given, method), TELLS_PROGRESS)
                for method in there
                if method != "integrated_gradients"
            ]

        return self.job("inputs", (), calls)

    def integral(self) -> Job:
        """The job for integrated gradients, which take longest, in parts."""
        given = (*self.given, "integrated_gradients")
        return self.job(
            "integrated_gradients",
            (),
            lambda: [
                (jobs.attribute, given, {"part": (number, PARTS), **TELLS_PROGRESS})
                for number in range(PARTS)
            ],
        )

    def chance(self) -> Job:
        """The job that deletes tokens in random orders, in parts."""
        seed = self.view.selection.seed
        return self.job(
            "random_orders",
            (seed,),
            lambda: [
                (
                    jobs.delete_at_random,
                    self.given,
                    {"seed": seed, "part": (number, PARTS), **TELLS_PROGRESS},
                )
                for number in range(PARTS)
            ],
        )

    def deletion(self, attributions: Sequence[InputAttribution], chance: RandomOrders) -> Job:
        """The job that deletes tokens in each method's order."""
        return self.job(
            "deletion",
            (chance.seed,),
            lambda: [(jobs.delete, (*self.given, tuple(attributions), chance), TELLS_PROGRESS)],
        )


def so_far(work: Job, integral: Job) -> list[InputAttribution]:
    """The attributions so far, in the order of the methods."""
    there = {result.method: result for result in work.results if result is not None}
    if integral.finished:
        parts: list[InputAttribution] = integral.results
        there["integrated_gradients"] = reduce(InputAttribution.joined, parts)
    return without_rounding([there[method] for method in METHODS if method in there])


def joined(work: Job) -> RandomOrders:
    """The results of a finished job of random orders, joined."""
    parts: list[RandomOrders] = work.results
    return reduce(RandomOrders.joined, parts)


def screen_of(view: View, chosen: Outcome) -> Screen:
    """The text on screen.

    Raises:
        SelectionError: a bundle is open, which cannot be run again here.
    """
    check_can_run(view, "Attribution of the outcome to the tokens was asked for")
    return Screen(view=view, outcome=chosen)
