"""What an effect is compared with: the weights of the selected head's cells, and the other way to switch heads off."""

from typing import Any

import numpy as np
import streamlit as st
from plotly.graph_objects import Figure

from attnviz.effects.ablation import Ablation, HeadEffects
from attnviz.effects.cell_effects import MOST_CELLS, CellEffects
from attnviz.figures.ablation import draw_ablations, draw_cell_effects
from attnviz.maths.ranks import rank_correlations
from attnviz.records import Head, Measure, known
from ui.choice import state
from ui.page.chart import chart
from ui.page.waiting import is_there
from ui.sections.effects.grid import pick
from ui.sections.effects.screen import Screen, joined
from ui.words.findings import correlation_text
from ui.work import experiments
from ui.work.jobs import TELLS_PROGRESS


def weights_and_effects(screen: Screen) -> Figure | None:
    """A point for each cell of the selected head: its weight, and the size of the effect of masking it; None until known."""
    view, place = screen.view, screen.view.selection.place
    queries, keys = view.trace.query_tokens(view.kind), view.trace.key_tokens(view.kind)
    st.markdown(f"**Does the weight tell the effect? The cells of {place.words}**")
    work = screen.job(
        "cells",
        (place, view.selection.seed),
        lambda: [
            (
                experiments.mask_cells,
                (*screen.given, place),
                {"kind": view.kind, "seed": view.selection.seed, **TELLS_PROGRESS},
            )
        ],
    )
    n_variant = min(MOST_CELLS, len(queries) * len(keys))
    if not is_there(work, screen.n_tokens(n_variant), "Masking single cells", key="cells_act"):
        return None
    found: CellEffects = work.results[0]
    measure: Measure = "norms" if view.measure == "norms" and found.norms is not None else "weights"
    drawn = draw_cell_effects(
        found,
        queries,
        keys,
        measure=measure,
        picked=None if view.selection.key is None else (view.query, view.selection.key),
        theme=view.theme,
    )
    chart(
        drawn,
        key="effects_cells",
        alt=f"Weight and effect of each cell of {place.words}",
        on_pick=_pick_cell,
        name="Cells of the head; select one",
    )
    st.caption(_cells_note(found))
    return drawn


def zeros_and_means(screen: Screen, found: HeadEffects) -> Figure | None:
    """A point for each head: its effect while it gives zeros, and while it gives its mean; None until known."""
    st.markdown("**Zeros or its mean: do both ways to switch a head off agree?**")
    other: Ablation = "mean" if found.ablation == "zero" else "zero"
    work = screen.ablation_job(other)
    n_variant = len(screen.heads) + screen.n_layers
    if not is_there(
        work, screen.n_tokens(n_variant, other), "Switching heads off the other way", key="other_ablation_act"
    ):
        return None
    zero, mean = sorted((found, joined(work)), key=lambda one: one.ablation, reverse=True)
    drawn = draw_ablations(zero, mean, picked=screen.view.selection.place, theme=screen.view.theme)
    chart(
        drawn,
        key="effects_ablations",
        alt="Effect of each head while it gives zeros, and while it gives its mean",
        on_pick=_pick_head,
        name="Heads; select one",
    )
    of_zero, of_mean = (np.abs(known(one.effects))[None] for one in (zero, mean))
    agreement = float(rank_correlations(of_zero, of_mean, np.ones_like(of_zero, dtype=bool))[0])
    several = len(np.unique(of_zero)) > 1 and len(np.unique(of_mean)) > 1
    spoken = f"Rank correlation of the sizes: {correlation_text(agreement)}. " if several else ""
    st.caption(
        f"{spoken}Zeros take away all of a head's output, even the part that is the same in every sentence; its mean over "
        "the bundled sentences keeps that part (Wang et al. 2022, arXiv:2211.00593, section 3.1)."
    )
    return drawn


def _cells_note(found: CellEffects) -> str:
    said = []
    named: tuple[tuple[Measure, str], ...] = (("weights", "weight"), ("norms", "norm-based weight"))
    for measure, name in named:
        correlation = found.rank_correlation(measure)
        if np.isfinite(correlation):
            said.append(f"{name} {correlation_text(correlation)}")
    spoken = f"Rank correlation with the size of the effect: {', '.join(said)}." if said else ""
    drawn = ""
    if len(found.outcomes) < found.n_cell:
        drawn = f" Of {found.n_cell:,} cells, {len(found.outcomes)} are drawn at random."
    meaning = (
        " 1 would mean that the weight tells the order of the effects; it says nothing about why."
        * bool(said)
    )
    return (
        f"{spoken}{meaning}{drawn} A cell is masked in this head alone, so that the rest of its row is renormalised to 1; a query "
        "with a single key then reads nothing."
    ).strip()


def _pick_cell(clicked: Any) -> None:
    match clicked:
        case [int(query), int(key)]:
            state.change(query=query, key=key)


def _pick_head(clicked: Any) -> None:
    match clicked:
        case [int(layer), int(head)]:
            pick(*Head(layer, head))
