"""Compares effects with the weights of the selected head's cells, and with the other way to switch heads off."""

from typing import Any

import streamlit as st
from plotly.graph_objects import Figure

from attnviz.effects.ablation import Ablation
from attnviz.effects.cell_effects import MOST_CELLS, CellEffects
from attnviz.figures.ablation import draw_ablations, draw_cell_effects
from attnviz.figures.numbers import counted
from attnviz.records import Head, Measure
from ui.choice import state
from ui.rooms.cause.heads_off import jobs
from ui.rooms.cause.heads_off.facts import CellOrder, ablation_agreement, cell_order
from ui.rooms.cause.heads_off.grid import ablated, means_words, pick
from ui.rooms.cause.heads_off.screen import Screen
from ui.runtime.jobs import TELLS_PROGRESS
from ui.shell.chart import chart
from ui.shell.waiting import is_there
from ui.words.findings import correlation_text


def weights_and_effects(screen: Screen) -> Figure | None:
    """A point for each cell of the selected head: its weight and the size of its effect when masked; None until known."""
    view, place = screen.view, screen.view.selection.place
    queries, keys = view.query_tokens, view.key_tokens
    n_allowed = int(view.trace.pattern(*place, view.kind).allowed.sum())
    st.markdown(f"**Do weights predict effects? The cells of {place.words}**")
    work = screen.job(
        "cells",
        (view.kind, place, view.selection.seed),
        lambda: [
            (
                jobs.mask_cells,
                (*screen.given, place),
                {"kind": view.kind, "seed": view.selection.seed, **TELLS_PROGRESS},
            )
        ],
    )
    n_variant = min(MOST_CELLS, n_allowed)
    if not is_there(
        work,
        screen.n_tokens(n_variant),
        "Masking single cells",
        key="cells_act",
        request=screen.request(f"Mask {counted(n_variant, 'cell')} one by one", "cells", place, view.kind),
    ):
        return None
    effects: CellEffects = work.results[0]
    measure: Measure = "norms" if view.measure == "norms" and effects.norms is not None else "weights"
    drawn = draw_cell_effects(
        effects,
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
    st.caption(cells_note(cell_order(effects)))
    return drawn


_ASK: dict[Ablation, str] = {
    "zero": "Switch all heads off with zeros",
    "mean": "Switch all heads off with their means",
}


def zeros_and_means(screen: Screen) -> Figure | None:
    """A point for each head: its effect when replaced with zeros, and with its mean; None until known."""
    st.markdown("**Zeros or mean: do both ways of switching a head off agree?**")
    own = screen.effects
    other: Ablation = "mean" if own.ablation == "zero" else "zero"
    effects = ablated(
        screen, other, key="other_ablation", request=screen.request(_ASK[other], "other", other)
    )
    if effects is None:
        return None
    zero, mean = sorted((own, effects), key=lambda place: place.ablation, reverse=True)
    drawn = draw_ablations(zero, mean, picked=screen.view.selection.place, theme=screen.view.theme)
    chart(
        drawn,
        key="effects_ablations",
        alt="Effect of each head with its output replaced by zeros, and by its mean",
        on_pick=_pick_head,
        name="Heads; select one",
    )
    st.caption(ablations_note(ablation_agreement(zero, mean), means_words(screen)))
    return drawn


_MEASURE_NAMES: dict[Measure, str] = {"weights": "weight", "norms": "norm-based weight"}


def cells_note(order: CellOrder) -> str:
    """How well weights predict the order of effects, how many cells are drawn, and what masking a cell does."""
    sentences = []
    if order.correlations:
        named = ", ".join(
            f"{_MEASURE_NAMES[measure]} {correlation_text(number)}" for measure, number in order.correlations
        )
        sentences.append(
            f"Rank correlation with the size of the effect: {named}. 1 would mean that weights and effects have the same order; "
            "it says nothing about why."
        )
    if order.n_masked < order.n_cell:
        sentences.append(f"Of {order.n_cell:,} cells, {order.n_masked} are drawn at random.")
    sentences.append(
        "A cell is masked in this head alone, so that the rest of its row is renormalised to 1; a query with a single key then reads "
        "nothing."
    )
    return " ".join(sentences)


def ablations_note(agreement: float | None, means: str) -> str:
    """Whether zeros and means rank the heads similarly, and how they differ.

    Args:
        means: describes the means.
    """
    spoken = "" if agreement is None else f"Rank correlation of the sizes: {correlation_text(agreement)}. "
    return (
        f"{spoken}Zeros take away all of a head's output, even the part that is the same in every sentence; {means} keeps that part "
        "(Wang et al. 2022, arXiv:2211.00593, section 3.1)."
    )


def _pick_cell(clicked: Any) -> None:
    match clicked:
        case [int(query), int(key)]:
            state.change(query=query, key=key)


def _pick_head(clicked: Any) -> None:
    match clicked:
        case [int(layer), int(head)]:
            pick(*Head(layer, head))
