"""What each token adds to the outcome by each method: the jobs, a sheet of tokens and methods, the finding and the note."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import combinations
from typing import Any

import numpy as np
import streamlit as st
from jaxtyping import Bool, Float
from plotly.graph_objects import Figure

from attnviz.effects.attribution_methods import METHODS
from attnviz.effects.deletion import RandomOrders, deletion_curves, random_orders
from attnviz.effects.input_attribution import (
    Attributions,
    InputAttribution,
    attribute_inputs,
    available_methods,
    without_rounding,
)
from attnviz.effects.outcome import TokenState
from attnviz.effects.shapley import N_PERMUTATIONS
from attnviz.effects.token_embeddings import removable
from attnviz.figures.inputs import draw_attributions
from attnviz.figures.numbers import number_text, percent_text, power_text
from attnviz.maths.gradients import FIRST_PANELS, NODES, ROUNDING, TOLERANCE
from attnviz.maths.ranks import rank_correlations
from attnviz.records import Axis, Tokens
from ui.rooms.cause import outcome
from ui.rooms.cause.own_run import MeasuredRun, check_can_run
from ui.runtime import cache
from ui.runtime.jobs import TELLS_PROGRESS, Job
from ui.shell import errors
from ui.shell.chart import chart, picks
from ui.shell.export.recipe import trace_lines
from ui.shell.view import View
from ui.shell.waiting import QUICK, is_there
from ui.words.extremes import places_of_largest
from ui.words.findings import correlation_text, name
from ui.words.literal import literal

PARTS = 2
"""Parts of integrated gradients' path, and of the random orders, to keep the default number of processes busy."""
_RUNS = 700
"""Runs of a text for its deletion curves, most of them for chance."""
FEWEST_RANKED = 3
"""Fewest tokens whose order is worth comparing."""


@dataclass(frozen=True, kw_only=True)  # without slots, for what is computed once
class Screen(MeasuredRun):
    """A text, and the outcome that is attributed to its tokens."""

    @property
    def given(self) -> tuple[Any, ...]:
        """The outcome as it is: the methods measure it themselves."""
        return self.model, self.view.trace, self.outcome

    @property
    def tokens(self) -> Tokens:
        """The tokens that the outcome is attributed to; in an encoder-decoder model, the encoder's."""
        return self.view.trace.tokens

    @property
    def n_deleted(self) -> int:
        """Tokens in all runs of the deletion curves."""
        return len(self.tokens) * _RUNS

    @cached_property
    def attributions(self) -> list[InputAttribution]:
        """The attributions by all methods, once both jobs have finished; Shapley values where there are some."""
        return so_far(self.attributing(), self.integrating(), self.sampled)

    @cached_property
    def first(self) -> "FirstTokens":
        """What the methods agree on for the tokens that may be deleted."""
        model = cache.model(self.view.selection.source.model)
        return first_tokens(self.attributions, removable(model, self.tokens))

    @property
    def sampled(self) -> list[Job]:
        """The jobs for Shapley values that have finished; each has further permutations."""
        finished: list[Job] = []
        while (work := self.sampling(len(finished))).finished:
            finished.append(work)
        return finished

    @property
    def is_shapley_quick(self) -> bool:
        """Whether the page computes Shapley values without being asked."""
        return self.counted(self.n_sampled) <= QUICK

    @property
    def n_sampled(self) -> int:
        """Tokens in all runs of the first permutations, had no two the same tokens."""
        return N_PERMUTATIONS * len(self.tokens) ** 2

    def attributing(self) -> Job:
        """The job that attributes the outcome by all methods except integrated gradients, a call for each."""
        return self.job(
            "inputs",
            (),
            lambda: [
                self.call(attribute_inputs, methods=(method,), **TELLS_PROGRESS)
                for method in available_methods(
                    cache.model(self.view.selection.source.model), self.view.trace, self.outcome
                )
                if METHODS[method].is_quick and method != "integrated_gradients"
            ],
        )

    def integrating(self) -> Job:
        """The job for integrated gradients, which take longest, in parts."""
        named = {"methods": ("integrated_gradients",), **TELLS_PROGRESS}
        return self.job(
            "integrated_gradients",
            (),
            lambda: [self.call(attribute_inputs, part=(at, PARTS), **named) for at in range(PARTS)],
        )

    def sampling(self, at: int) -> Job:
        """The job for Shapley values by the next permutations, in parts.

        Args:
            at: number of such jobs before this one.
        """
        seed, n_part = self.view.selection.seed, PARTS * (at + 1)
        named = {
            "methods": ("shapley",),
            "n_permutations": N_PERMUTATIONS * (at + 1),
            "seed": seed,
            **TELLS_PROGRESS,
        }
        return self.job(
            "shapley",
            (seed, at),
            lambda: [
                self.call(attribute_inputs, part=(part, n_part), **named)
                for part in range(n_part - PARTS, n_part)
            ],
        )

    def chance(self) -> Job:
        """The job that deletes tokens in random orders, in parts."""
        named = {"seed": self.view.selection.seed, **TELLS_PROGRESS}
        return self.job(
            "random_orders",
            (self.view.selection.seed,),
            lambda: [self.call(random_orders, part=(at, PARTS), **named) for at in range(PARTS)],
        )

    def deletion(self, chance: RandomOrders) -> Job:
        """The job that deletes tokens in each method's order."""
        given = tuple(self.attributions), chance
        return self.job(
            "deletion",
            (chance.seed, len(self.sampled)),
            lambda: [self.call(deletion_curves, *given, **TELLS_PROGRESS)],
        )


def so_far(work: Job, integral: Job, sampled: Sequence[Job] = ()) -> list[InputAttribution]:
    """The attributions so far, in the order of the methods."""
    found = [attribution for result in work.results if result is not None for attribution in result]
    there = {attribution.method: attribution for attribution in found}
    if integral.finished:
        there["integrated_gradients"] = joined(integral)
    if sampled:
        there["shapley"] = joined(*sampled)
    return without_rounding([there[method] for method in METHODS if method in there])


def joined(*jobs: Job) -> InputAttribution:
    """The attribution by one method from all parts of finished jobs."""
    parts: list[InputAttribution] = [part for job in jobs for (part,) in job.results]
    return reduce(InputAttribution.joined, parts)


def controls(view: View) -> None:
    """The controls for what is measured."""
    check_can_run(view, "Attribution of the outcome to the tokens was asked for")
    outcome.controls(view, outcome.outcome_of(view))


def screen_of(view: View) -> Screen | None:
    """The attributions by all methods; None until they are known, while those so far are drawn."""
    screen = Screen(view=view, outcome=outcome.outcome_of(view))
    work, integral, n_token = screen.attributing(), screen.integrating(), len(screen.tokens)

    @errors.explained()  # a block is drawn apart from the page, also the first time
    def result() -> None:
        if there := so_far(work, integral):
            draw(screen, there, complete=False)

    # A token with its gradient counts as two.
    there = is_there(
        work, 2 * n_token * n_token, "Attributing the outcome to the tokens", key="inputs_act", result=result
    ) and is_there(
        integral,
        2 * n_token * FIRST_PANELS * NODES,
        "Integrating gradients along the path",
        key="integral_act",
        result=result,
    )
    if not there:
        return None
    whole = joined(integral)
    if not whole.converged:
        st.warning(literal(gap(whole)), icon=":material/warning:")
    if not screen.sampled and (screen.is_shapley_quick or not whole.converged):
        sample_more(screen)
    return screen


def sample_more(screen: Screen) -> None:
    """A button that asks for Shapley values, or for more permutations, and how far they are."""
    n_before = len(screen.sampled)
    is_there(
        screen.sampling(n_before),
        screen.counted(screen.n_sampled) if not n_before else None,
        "Replacing tokens in random orders",
        key="shapley_act",
        request=screen.request("More permutations" if n_before else "Shapley values", "shapley", n_before),
    )


def sheet(screen: Screen) -> Figure:
    """Tokens down and methods across, and what the numbers are."""
    drawn = draw(screen, screen.attributions)
    there = {attribution.method: attribution for attribution in screen.attributions}
    if screen.sampled or not (screen.is_shapley_quick or not there["integrated_gradients"].converged):
        sample_more(screen)
    st.caption(literal(note(screen, screen.attributions, screen.first)))
    with st.expander("What the methods measure", key="inputs_methods"):
        st.markdown(methods(screen.attributions))
    return drawn


def methods(attributions: Sequence[InputAttribution]) -> str:
    """A line for each method, as Markdown: its name, what its numbers are, its source."""
    return "\n".join(
        f"- **{about.title}**: {literal(about.what)} :small[{literal(about.source)}]"
        for about in (METHODS[attribution.method] for attribution in attributions)
    )


def gap(attribution: InputAttribution) -> str:
    """That integrated gradients do not add up, and what does."""
    integral = attribution.integral
    assert integral is not None  # of integrated gradients
    difference, largest = abs(integral.difference), float(np.abs(attribution.values).max(initial=0.0))
    of = "the difference of outcomes" if difference >= largest else "the largest value"
    share = integral.error / max(difference, largest)
    return (
        f"Integrated gradients did not converge with {integral.n_points} points: their sum may be off by {percent_text(share)} of {of}, "
        f"and {percent_text(TOLERANCE)} is the most allowed. The finding leaves them out; Shapley values sum to the difference exactly."
    )


def draw(screen: Screen, attributions: Sequence[InputAttribution], *, complete: bool = True) -> Figure:
    """Draws tokens down and methods across, and says what they sum to; returns the figure.

    Args:
        complete: whether all methods are done; until then no cell can be selected.
    """
    drawn = draw_attributions(attributions, picked=screen.view.query, theme=screen.view.theme)
    chart(
        drawn,
        key="inputs_sheet",
        alt="How much each token counts by each method, tokens down and methods across",
        on_pick=picks("query", "") if complete else None,
        name="Tokens and methods; select one",
    )
    st.caption(literal(sums(attributions)))
    return drawn


def sums(attributions: Sequence[InputAttribution]) -> str:
    """What each method's numbers sum to, and what those of integrated gradients must sum to; empty while none has a sum."""
    signed = [attribution for attribution in attributions if attribution.has_sign]
    if not signed:
        return ""
    listed = ", ".join(f"{METHODS[each.method].title} {number_text(each.sum)}" for each in signed)
    sentence = f"Sums over the tokens: {listed}."
    for each in signed:
        if (integral := each.integral) is not None:
            apart = abs(each.sum - integral.difference)
            share = f" ({percent_text(apart / abs(integral.difference))})" if integral.difference else ""
            how = "converged" if integral.converged else "did not converge"
            sentence += (
                f" {METHODS[each.method].title} must sum to {number_text(integral.difference)}, the difference in outcome: "
                f"{number_text(apart)}{share} apart; {how}, {integral.n_points} points."
            )
        if (sample := each.sample) is not None:
            errors_of = sample.standard_errors
            sentence += (
                f" Shapley values are means over {len(sample.changes):,} random orders, each of which sums to the difference exactly; "
                f"standard errors up to {number_text(float(np.nanmax(errors_of, initial=0.0)))}."
            )
    return sentence


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstTokens:
    """The tokens, among those that may be deleted, that the methods using the outcome rank first."""

    n_token: int
    """Tokens that may be deleted."""
    n_method: int
    """Methods that use the outcome."""
    n_undecided: int
    """Of ``n_method``, methods without a single first token: several tokens tie, or none has a number."""
    tokens: tuple[int, ...]
    """Positions of the tokens that most methods rank first, alone; several if tied, empty if there is none."""
    n_same: int
    """Methods that rank each of these tokens first."""
    direction: int
    """1 if all tokens together raise the outcome, -1 if they lower it; the first token then does so most. 0 if neither; the
    first token then raises it most."""
    correlation: float | None
    """Mean rank correlation between the orders of any two of these methods; None if there are no two, or too few tokens."""


def first_tokens(attributions: Sequence[InputAttribution], among: Bool[np.ndarray, " token"]) -> FirstTokens:
    """What the methods agree on; integrated gradients' difference, known even without convergence, gives the direction.

    Args:
        among: true for tokens that may be deleted.
    """
    positions = np.flatnonzero(among)
    whole = next(
        (attribution.integral.difference for attribution in attributions if attribution.integral is not None),
        0.0,
    )
    direction = int(np.nan_to_num(np.sign(whole)))
    counted = [attribution for attribution in attributions if attribution.has_sign and attribution.converged]
    values = [attribution.values[positions].astype(np.float64) * (direction or 1) for attribution in counted]
    places = [places_of_largest(value, number_text) for value in values]
    named = [int(positions[place[0]]) for place in places if len(place) == 1]
    n_same = max((named.count(token) for token in named), default=0)
    return FirstTokens(
        n_token=len(positions),
        n_method=len(values),
        n_undecided=len(values) - len(named),
        tokens=tuple(token for token in sorted(set(named)) if named.count(token) == n_same),
        n_same=n_same,
        direction=direction,
        correlation=_mean_correlation(values),
    )


def _mean_correlation(values: Sequence[Float[np.ndarray, " token"]]) -> float | None:
    ordered = [value for value in values if np.isfinite(value).all() and len(np.unique(value)) > 1]
    if len(ordered) < 2 or len(ordered[0]) < FEWEST_RANKED:
        return None
    pairs = list(combinations(ordered, 2))
    left, other = (np.stack([pair[side] for pair in pairs]) for side in (0, 1))
    return float(rank_correlations(left, other, np.ones(left.shape, dtype=bool)).mean())


def finding(first: FirstTokens, tokens: Tokens) -> str:
    """Which of the tokens that may be deleted the methods using the outcome rank first, as Markdown."""
    named = [literal(name(Axis.of(tokens), token)) for token in first.tokens]
    of_methods = f"of {first.n_method} methods that use the outcome"
    of_tokens = "Of the tokens that can be removed, "
    if not first.n_token:
        sentence = "The text has no token that could be removed"
    elif first.n_token == 1:
        sentence = "The text has one token that could be removed, so there is nothing to rank"
    elif not named:
        sentence = f"{of_tokens}none {of_methods} has a single first"
    elif len(named) > 1:
        sentence = f"{of_tokens}{', '.join(named[:-1])} and {named[-1]} are each ranked first by {first.n_same} {of_methods}"
    elif first.n_same == first.n_method:
        sentence = f"{of_tokens}all {first.n_method} methods that use the outcome rank {named[0]} first"
    else:
        sentence = f"{of_tokens}{first.n_same} {of_methods} rank{'s' * (first.n_same == 1)} {named[0]} first"
    if named and first.n_token > 1 and first.n_undecided:
        sentence += (
            f"; {first.n_undecided} {'has' if first.n_undecided == 1 else 'have'} no single first token"
        )
    return sentence


def note(screen: Screen, attributions: Sequence[InputAttribution], first: FirstTokens) -> str:
    """What the numbers are, what they are relative to, and what they do not mean."""
    sentences = [
        f"Outcome: {screen.measured}. Each column has a colour scale of its own; blue-green raises the outcome, orange lowers it."
    ]
    baseline = next(
        (attribution.baseline for attribution in attributions if attribution.baseline is not None), None
    )
    if baseline is not None:
        instead = "zeros" if baseline == "zeros" else f"that of {baseline}"
        sentences.append(
            f"Where a token is removed, its vector is replaced by {instead}; special tokens and masks are kept."
        )
    sentences += [
        _sum(attribution)
        for attribution in attributions
        if attribution.integral is not None and attribution.converged
    ]
    sentences += agreement(first)
    methods = {attribution.method for attribution in attributions}
    is_rounding = "integrated_gradients" in methods and "gradient_times_input" not in methods
    if is_rounding and not isinstance(screen.outcome, TokenState):
        sentences.append(
            "Gradient × input is left out: here it is negligible beside integrated gradients, as in models that scale every token's "
            "vector to one length."
        )
    unsigned = [METHODS[attribution.method].title for attribution in attributions if not attribution.has_sign]
    if unsigned:
        several = len(unsigned) > 1
        listed = f"{', '.join(unsigned[:-1])} and {unsigned[-1]}" if several else unsigned[0]
        have, depend, they = ("have", "depend", "they say") if several else ("has", "depends", "it says")
        sentences.append(
            f"{listed} {have} no sign and {depend} on the outcome only through the tokens whose states it reads: {they} what is read, "
            "not what matters."
        )
    return " ".join(sentences)


def agreement(first: FirstTokens) -> list[str]:
    """What the first token is, and why agreeing methods may still be wrong; a sentence each."""
    if first.n_token < 2:
        return []
    does = "lowers" if first.direction < 0 else "raises"
    together = ", as all of them together do" if first.direction else ""
    sentences = [
        f"Of the tokens that can be removed, ranked first is the one that {does} the outcome most{together}."
    ]
    if first.correlation is not None:
        sentences.append(
            f"Methods can agree and be wrong together: the orders of any two that use the outcome have a rank correlation of "
            f"{correlation_text(first.correlation)} on average."
        )
    return sentences


def _sum(attribution: InputAttribution) -> str:
    """What integrated gradients that converged sum to."""
    assert attribution.integral is not None  # integrated gradients always have it
    difference, error = number_text(attribution.integral.difference), attribution.integral.error
    within = "up to the rounding of float32" if error <= ROUNDING else f"within {power_text(error)}"
    return f"Integrated gradients sum to the difference of outcomes, {difference}, {within}."


def as_csv(screen: Screen) -> bytes:
    """A line for every token, a column for every method."""
    return Attributions(tokens=screen.tokens, methods=tuple(screen.attributions)).csv()


def inputs_lines(view: View, outcome: object) -> str:
    """Python that attributes the outcome to the tokens, as on the page Inputs, and deletes them in each order."""
    return "\n".join(
        [
            "import attnviz",
            "from attnviz.effects.deletion import deletion_curves, random_orders",
            "from attnviz.effects.input_attribution import attribute_inputs",
            "from attnviz.effects.outcome import outcome_from",
            *trace_lines(view),
            f"outcome = outcome_from({str(outcome)!r})",
            "attributions = attribute_inputs(model, trace, outcome)",
            "for attribution in attributions:",
            "    print(attribution.method, attribution.values)",
            f"chance = random_orders(model, trace, outcome, seed={view.selection.seed})",
            "deletion = deletion_curves(model, trace, outcome, attributions, chance)",
            "for curve in deletion.curves:",
            "    print(curve.method, curve.comprehensiveness, curve.sufficiency, curve.n_as_good)",
            "",
        ]
    )
