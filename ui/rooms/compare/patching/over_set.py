"""States patched in every pair of a set of prompts: the mean over the pairs as a heatmap, a finding and a table."""

import streamlit as st
from plotly.graph_objects import Figure

from attnviz.effects.over_pairs import MeanPatches, mean_patches
from attnviz.effects.patching import PatchEffects
from attnviz.figures.numbers import counted, percent_text
from attnviz.figures.patching import draw_patching
from ui.choice import state
from ui.rooms.cause import prompts
from ui.rooms.cause.prompts import SetRun
from ui.rooms.compare.patching import jobs
from ui.rooms.compare.patching.facts import NoShares, largest_share
from ui.rooms.compare.patching.heatmap import finding, picked_place
from ui.rooms.compare.patching.screen import carried_controls, patches_of
from ui.shell.chart import chart
from ui.shell.view import View
from ui.words.literal import literal


def run_of(view: View) -> SetRun[PatchEffects] | None:
    """The table of pairs, its controls, and the job that patches them; None if the model has no answers.

    Raises:
        As `ui.rooms.cause.prompts.table`.
    """
    with st.container(horizontal=True, vertical_alignment="bottom", key="patching_controls"):
        carried_controls(view)
    pairs, patches = prompts.table(view), patches_of(view)
    if pairs is None:
        return None
    return prompts.set_run(view, pairs, jobs.patch_pair, patches, lambda: (patches,))


def patched(run: SetRun[PatchEffects]) -> MeanPatches | None:
    """The mean over all pairs; None until all are done, while the mean so far is drawn."""
    done = run.is_done(
        "Patching", lambda: _draw(run, mean_patches([*run.results.values()]), key="patching_so_far")
    )
    return mean_patches([*run.results.values()]) if done else None


def heatmap(run: SetRun[PatchEffects], patches: MeanPatches) -> Figure:
    """Draws the mean over the pairs, with its spread in the hover texts; returns the figure."""
    return _draw(run, patches, key="patching_shares")


def _draw(run: SetRun[PatchEffects], patches: MeanPatches, *, key: str) -> Figure:
    def pick(clicked: object) -> None:
        match clicked:
            case [int(row), int(column)]:
                state.change(**picked_place(patches.mean, row, column))

    tokens = run.tokens
    drawn = draw_patching(patches.mean, tokens, tokens, spread=patches.changes.spread, theme=run.view.theme)
    chart(
        drawn,
        key=key,
        alt=f"Mean over {counted(patches.changes.n_pair, 'pair')} of prompts with each state swapped in, a cell for each "
        f"{patches.mean.rows} and {patches.mean.columns}",
        on_pick=pick,
        name="States; select one",
    )
    return drawn


def finding_of_set(run: SetRun[PatchEffects], patches: MeanPatches) -> str:
    """Which state moves the outcome most on average, and how much it varies between pairs."""
    sentence, largest = finding(run.tokens, patches.mean), largest_share(patches.mean)
    over = counted(patches.changes.n_pair, "pair")
    if isinstance(largest, NoShares) or patches.changes.n_pair < 2:
        return f"{sentence} (mean over {over})"
    spread = float(patches.changes.spread[largest.row, largest.column]) / abs(
        patches.mean.donor - patches.mean.base
    )
    return f"{sentence} (mean over {over}, standard deviation {percent_text(spread)})"


def note(run: SetRun[PatchEffects], patches: MeanPatches) -> str:
    """What is measured and averaged, and which lines are left out."""
    sentences = [
        prompts.outcome_words({"clean": patches.clean, "corrupted": patches.corrupted}),
        "States of the corrupted prompt are swapped into the clean one. Shares are of the mean difference.",
    ]
    if patches.mean.columns == "token":
        sentences.append("Columns have the tokens of the first pair.")
    return literal(" ".join([*sentences, *run.refused]))
