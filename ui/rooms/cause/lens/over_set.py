"""Direct logit attribution of every pair of a set of prompts: what each part adds on average, and how much pairs vary."""

import streamlit as st
from plotly.graph_objects import Figure

from attnviz.effects.logit_attribution import DirectParts
from attnviz.effects.over_pairs import MeanDirectEffects, mean_direct_effects
from attnviz.figures.numbers import number_text
from ui.components.head_grid import beside_grid
from ui.rooms.cause import prompts
from ui.rooms.cause.lens import heads, jobs
from ui.rooms.cause.lens.facts import largest_part
from ui.rooms.cause.prompts import SetRun
from ui.shell.view import View
from ui.words.literal import literal


def run_of(view: View) -> SetRun[DirectParts] | None:
    """The table of pairs, and the job that attributes their answers; None if the model has no answers.

    Raises:
        As `ui.rooms.cause.prompts.table`.
    """
    pairs = prompts.table(view)
    return None if pairs is None else prompts.set_run(view, pairs, jobs.attribute_pair, ())


def attributed(run: SetRun[DirectParts]) -> MeanDirectEffects | None:
    """The mean over all pairs; None until all are done, while the mean so far is drawn."""

    def so_far() -> None:
        _grid(run.view, mean_direct_effects([*run.results.values()]))

    return mean_direct_effects([*run.results.values()]) if run.is_done("Taking apart", so_far) else None


def show(run: SetRun[DirectParts], effects: MeanDirectEffects) -> Figure:
    """Draws the finding, all heads, all layers and the largest parts; returns the figure of the layers."""
    view = run.view
    left, right = beside_grid((3, 1), "lens_heads", n_layers=view.trace.n_layers(view.kind))
    with left:
        st.markdown(f"**{finding(effects)}**")
        _grid(view, effects)
        st.caption(note(run, effects))
        drawn = heads.layers(view, effects.mean, effects)
    with right:
        heads.parts(view, effects.mean, [*run.results.values()])
    return drawn


def _grid(view: View, effects: MeanDirectEffects) -> None:
    prompts.grid(
        view,
        effects.heads,
        name="What each head adds on average",
        what="mean direct effect",
        key="lens_heads",
    )


def finding(effects: MeanDirectEffects) -> str:
    """Which head adds or subtracts most on average, and how much it varies between pairs."""
    largest, n_pair = largest_part(effects.mean), effects.heads.n_pair
    over = "" if largest is None else prompts.over_words(n_pair, float(effects.heads.spread[largest.head]))
    sentence = heads.finding(
        largest,
        "the logit difference of the answers on average",
        f"that difference is {number_text(effects.mean.total)}",
    )
    return f"{sentence} ({over or prompts.over_words(n_pair)})"


def note(run: SetRun[DirectParts], effects: MeanDirectEffects) -> str:
    """What is measured, what the parts sum to, and which lines are left out."""
    sentences = [
        prompts.outcome_words({"clean": effects.totals}),
        "Each part is the mean of what it adds directly, through W_O and the norms after it, whose scales are kept; means of parts sum "
        "to the mean outcome.",
    ]
    return literal(" ".join([*sentences, *run.refused]))
