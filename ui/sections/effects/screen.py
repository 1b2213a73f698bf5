"""What is measured of a text's heads: the jobs of an ablation, and what has come of them."""

from dataclasses import dataclass
from functools import reduce

from attnviz.effects.ablation import Ablation, HeadEffects
from attnviz.effects.outcome import Outcome
from attnviz.records import Head
from ui.page.view import View
from ui.page.waiting import QUICK
from ui.sections.own_run import MeasuredRun, check_can_run
from ui.work import experiments
from ui.work.jobs import TELLS_PROGRESS, Call, Job

MEAN_TOKENS = QUICK
"""What reading the bundled sentences for the means of the heads counts for: one after another they take seconds."""
SHARES = 2
"""Calls that the layers of a text are shared out among, so that as many processes work on them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Screen(MeasuredRun):
    """What is measured of the heads of a text."""

    @property
    def ablation(self) -> Ablation:
        """What a head gives while it is off."""
        return self.view.selection.effects.ablation

    @property
    def heads(self) -> tuple[Head, ...]:
        """Every head, layer by layer."""
        return self.view.trace.heads(self.view.kind)

    @property
    def n_layers(self) -> int:
        """Number of layers, of which each is also switched off as a whole."""
        return self.view.trace.n_layers(self.view.kind)

    def ablation_job(self, ablation: Ablation) -> Job:
        """The job that switches off every head."""

        def calls() -> list[Call]:
            named = {"kind": self.view.kind, "ablation_kind": ablation, **TELLS_PROGRESS}
            return [
                (
                    experiments.ablate,
                    self.given,
                    named | {"layers": tuple(range(first, self.n_layers, SHARES))},
                )
                for first in range(min(SHARES, self.n_layers))
            ]

        return self.job("ablation", (self.view.kind, ablation), calls)

    def n_tokens(self, n_variants: int, ablation: Ablation = "zero") -> int:
        """Tokens that so many variants of the text have, and those that means are taken over."""
        of_text = len(self.view.trace.tokens) + len(self.view.trace.target_tokens or ())
        return n_variants * of_text + MEAN_TOKENS * (ablation == "mean")


def look(view: View, chosen: Outcome) -> Screen:
    """The text on screen.

    Raises:
        SelectionError: an opened bundle, which cannot be run again here.
    """
    check_can_run(view, "Heads were to be switched off")
    return Screen(view=view, outcome=chosen)


def joined(work: Job) -> HeadEffects:
    """What the calls of a finished ablation have found, as one."""
    parts: list[HeadEffects] = work.results
    return reduce(HeadEffects.joined, parts)
