"""What the page Inputs measures of a text: the jobs, and the tokens and names that it is about."""

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
"""The methods as they are written on screen."""
PARTS = 2
"""Parts of integrated gradients' path, and of the random orders, so that as many processes as there usually are work on them."""
_RUNS = 700
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
        return len(self.tokens) * 2 * len(self.tokens)

    @property
    def n_integrated(self) -> int:
        """Tokens of all runs that integrated gradients take at least; one with its gradient counts for two."""
        return len(self.tokens) * 2 * FIRST_PANELS * NODES

    @property
    def n_deleted(self) -> int:
        """Tokens of all runs that the deletion curves take."""
        return len(self.tokens) * _RUNS

    def attributions(self) -> Job:
        """The job that attributes the outcome by all methods but integrated gradients, a call for each."""

        def calls() -> list[Call]:
            there = available_methods(self.view.trace, self.outcome)
            return [
                (jobs.attribute, (*self.given, method), TELLS_PROGRESS)
                for method in there
                if method != "integrated_gradients"
            ]

        return self.job("inputs", (), calls)

    def integral(self) -> Job:
        """The job that attributes it by integrated gradients, which takes longest, in parts."""
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
        """The job that takes tokens away in random orders, in parts."""
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
        """The job that takes tokens away in the order of each method."""
        return self.job(
            "deletion",
            (chance.seed,),
            lambda: [(jobs.delete, (*self.given, tuple(attributions), chance), TELLS_PROGRESS)],
        )


def so_far(work: Job, integral: Job) -> list[InputAttribution]:
    """The attributions that have come, in the order of the methods."""
    there = {result.method: result for result in work.results if result is not None}
    if integral.finished:
        parts: list[InputAttribution] = integral.results
        there["integrated_gradients"] = reduce(InputAttribution.joined, parts)
    return without_rounding([there[method] for method in METHODS if method in there])


def joined(work: Job) -> RandomOrders:
    """What the parts of a finished job of random orders have found, as one."""
    parts: list[RandomOrders] = work.results
    return reduce(RandomOrders.joined, parts)


def screen_of(view: View, chosen: Outcome) -> Screen:
    """The text on screen.

    Raises:
        SelectionError: an opened bundle, which cannot be run again here.
    """
    check_can_run(view, "Attribution of the outcome to the tokens was asked for")
    return Screen(view=view, outcome=chosen)
