"""Every head switched off on every pair of a set of prompts: the mean effects as a grid, a ranking, a finding and a note."""

from dataclasses import dataclass

import numpy as np
import streamlit as st

from attnviz.effects.ablation import HeadEffects
from attnviz.effects.over_pairs import MeanHeadEffects, mean_head_effects
from attnviz.figures.numbers import number_text
from ui.components.ranked_list import Row, ranked_list
from ui.rooms.cause import prompts
from ui.rooms.cause.heads_off import jobs
from ui.rooms.cause.heads_off.facts import largest_effect
from ui.rooms.cause.heads_off.grid import N_RANKED, means_are_there, means_words, pick
from ui.rooms.cause.heads_off.screen import AblatedRun
from ui.rooms.cause.prompts import SetRun
from ui.shell.navigation import link_to
from ui.shell.view import View
from ui.words.extremes import equals
from ui.words.literal import literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Screen:
    """The effects of all heads, averaged over a set of prompts."""

    view: View
    run: SetRun[HeadEffects]
    mean: MeanHeadEffects


def screen_of(view: View) -> Screen | None:
    """The mean over all pairs; None until all are done, while the mean so far is drawn, or if the model has no answers.

    Raises:
        As `ui.rooms.cause.prompts.table`.
    """
    off = AblatedRun(view=view)
    pairs = prompts.table(view)
    if pairs is None or not means_are_there(off, off.ablation, key="ablation"):
        return None
    run = prompts.set_run(
        view,
        pairs,
        jobs.ablate_pair,
        off.of_ablation(off.ablation),
        lambda: (off.means(off.ablation),),
    )
    if not run.is_done("Switching off every head on", lambda: grid(view, mean_of(run))):
        return None
    return Screen(view=view, run=run, mean=mean_of(run))


def mean_of(run: SetRun[HeadEffects]) -> MeanHeadEffects:
    """The mean over the pairs that are done."""
    return mean_head_effects([*run.results.values()])


def all_heads(screen: Screen) -> None:
    """All heads, and what their numbers mean."""
    grid(screen.view, screen.mean)
    st.caption(note(screen.run, screen.mean))


def beside(screen: Screen) -> None:
    """The heads with the largest mean effects; a click selects."""
    ranking(screen.view, screen.mean)
    link_to("Together", label=f"See the attention of {screen.view.selection.place.words}")


def grid(view: View, effects: MeanHeadEffects) -> None:
    """All heads, each with its mean effect."""
    prompts.grid(
        view,
        effects.effects,
        name="Mean effect of switching off each head",
        what="mean effect",
        key="effects_grid",
    )


def ranking(view: View, effects: MeanHeadEffects) -> None:
    """The heads with the largest mean effects; a click selects."""
    mean, heads = effects.effects.mean, effects.mean.ranked()[:N_RANKED]
    largest = max(float(np.nanmax(np.abs(mean))), 1e-12)
    st.markdown("**Largest mean effects**")
    ranked_list(
        [
            Row(
                text=head.short,
                amount=prompts.mean_text(effects.effects, *head),
                length=float(mean[head]) / largest,
                picked=head == view.selection.place,
            )
            for head in heads
        ],
        name="Heads with the largest mean effects; select one",
        on_pick=lambda row: pick(*heads[row]),
        theme=view.theme,
        key="effects_ranking",
    )


def finding(screen: Screen) -> str:
    """Which head has the largest effect on average, and how much it varies between pairs, as Markdown."""
    effects = screen.mean
    largest, n_pair = largest_effect(effects.mean), effects.effects.n_pair
    if largest is None:
        return f"No head changes the outcome, {number_text(effects.mean.base)} ({prompts.over_words(n_pair)})"
    before, after = number_text(largest.before), number_text(largest.after)
    how = "falls" if largest.after < largest.before else "rises"
    changed = f"stays at {before}" if before == after else f"{how} from {before} to {after}"
    over = prompts.over_words(n_pair, float(effects.effects.spread[largest.head]))
    return (
        f"Largest mean effect{equals(largest.n_equal)}: without {largest.head.words} the logit difference of the answers {changed} "
        f"({over})"
    )


def note(run: SetRun[HeadEffects], effects: MeanHeadEffects) -> str:
    """What the numbers are relative to, what they average, and which lines are left out."""
    off = AblatedRun(view=run.view)
    gives = "zeros" if effects.mean.ablation == "zero" else means_words(off)
    sentences = [
        prompts.outcome_words({"clean": effects.clean}),
        "Each number is the mean of the outcome of a clean prompt without the head minus that of the unchanged run; while a head "
        f"is off, its output is replaced by {gives}. Means of opposite effects cancel: a head with a mean near 0 and a large standard deviation matters in "
        "single pairs.",
    ]
    return literal(" ".join([*sentences, *run.refused]))
