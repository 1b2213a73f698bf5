"""Every head switched off on every pair of a set of prompts: the mean effects as a grid, a ranking, a finding and a note."""

import numpy as np
import streamlit as st

from attnviz.effects.ablation import HeadEffects
from attnviz.effects.over_pairs import MeanHeadEffects, mean_head_effects
from attnviz.figures.numbers import number_text
from ui.choice import widgets
from ui.components.ranked_list import Row, ranked_list
from ui.rooms.cause import prompts
from ui.rooms.cause.effects import jobs
from ui.rooms.cause.effects.facts import largest_effect
from ui.rooms.cause.effects.grid import N_RANKED, means_are_there, means_words, pick, references
from ui.rooms.cause.effects.screen import AblatedRun
from ui.rooms.cause.prompts import SetRun
from ui.shell.view import View
from ui.words.extremes import equals
from ui.words.literal import literal


def run_of(view: View) -> SetRun[HeadEffects] | None:
    """The replacement of heads, the table of pairs, and the job; None if the model has no answers, or the means are unknown.

    Raises:
        As `ui.rooms.cause.prompts.table`.
    """
    off = AblatedRun(view=view)
    with st.container(horizontal=True, vertical_alignment="bottom", key="effects_controls"):
        st.segmented_control(**widgets.field("ablation", required=True))
    references(off)
    pairs = prompts.table(view)
    if pairs is None or not means_are_there(off, off.ablation, key="ablation"):
        return None
    return prompts.set_run(
        view,
        pairs,
        jobs.ablate_pair,
        off.of_ablation(off.ablation),
        lambda: (off.means(off.ablation),),
    )


def ablated(run: SetRun[HeadEffects]) -> MeanHeadEffects | None:
    """The mean over all pairs; None until all are done, while the mean so far is drawn."""

    def so_far() -> None:
        grid(run.view, mean_head_effects([*run.results.values()]))

    return (
        mean_head_effects([*run.results.values()])
        if run.is_done("Switching off every head on", so_far)
        else None
    )


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


def finding_of_set(effects: MeanHeadEffects) -> str:
    """Which head has the largest effect on average, and how much it varies between pairs, as Markdown."""
    largest, n_pair = largest_effect(effects.mean), effects.effects.n_pair
    if largest is None:
        return f"**No head changes the outcome, {number_text(effects.mean.base)} ({prompts.over_words(n_pair)})**"
    before, after = number_text(largest.before), number_text(largest.after)
    how = "falls" if largest.after < largest.before else "rises"
    changed = f"stays at {before}" if before == after else f"{how} from {before} to {after}"
    over = prompts.over_words(n_pair, float(effects.effects.spread[largest.head]))
    return (
        f"**Largest mean effect{equals(largest.n_equal)}: without {largest.head.words} the logit difference of the answers {changed} "
        f"({over})**"
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
