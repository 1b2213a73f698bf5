"""Heads switched off together, and effects beside weights and beside the other way to switch heads off: a picture each."""

import numpy as np
import streamlit as st
from plotly.graph_objects import Figure

from attnviz.effects.ablation import Ablation, HeadEffects, Removal
from attnviz.effects.cell_effects import MOST_CELLS, CellEffects
from attnviz.figures.ablation import draw_ablations, draw_cell_effects, draw_removal
from attnviz.figures.numbers import counted, number_text
from attnviz.maths.ranks import rank_correlations
from attnviz.records import Head, Measure
from ui.rooms.cause.heads_off.effects_of_heads import ablated
from ui.rooms.cause.heads_off.switched_off import Screen
from ui.rooms.explore.several_heads import FlowSettings
from ui.shell.chart import chart, picks
from ui.shell.waiting import is_there
from ui.words.findings import correlation_text

MOST_GREEDY = 24
"""Most heads for a greedy search: 24 take 300 variants of the text."""
FEWEST_RANKED = 3
"""Fewest heads whose order is worth comparing."""
_ASK: dict[Ablation, str] = {
    "zero": "Switch all heads off with zeros",
    "mean": "Switch all heads off with their means",
}
_MEASURE_NAMES: dict[Measure, str] = {"weights": "weight", "norms": "norm-based weight"}


def group(screen: Screen) -> tuple[list[Head], str]:
    """The heads that are removed together, and the group's name: the picked heads, or those of the selected layer."""
    selection = screen.view.selection
    picked = [
        head
        for head in dict.fromkeys([selection.place, *selection.of(FlowSettings).heads])
        if isinstance(head, Head) and head in screen.heads
    ]
    heads, named = picked, "picked heads"
    if len(picked) == 1:
        heads = [head for head in screen.heads if head.layer == selection.layer]
        named = f"heads of layer {selection.layer}"
    first = f"first {MOST_GREEDY} " if len(heads) > MOST_GREEDY else ""
    return heads[:MOST_GREEDY], f"the {first}{named}"


def greedy(screen: Screen) -> Figure | None:
    """The greedy order of some heads, and the outcome after each of them; None until known."""
    heads, name = group(screen)
    st.markdown(f"**How long does the outcome hold without {name}?**")
    work = screen.removal_job(heads, greedily=True)
    if not is_there(
        work,
        screen.n_tokens(len(heads) * (len(heads) + 1) // 2),
        "Removing heads one by one",
        key="greedy_act",
        request=screen.request(f"Remove {counted(len(heads), 'head')} one by one", "greedy", *heads),
    ):
        return None
    removal: Removal = work.results[0]
    drawn = draw_removal([(name, removal)], outcome="outcome", theme=screen.view.theme)
    chart(drawn, key="effects_greedy", alt=f"Outcome while more and more of {name} are off")
    order = ", ".join(head.short for head in removal.heads)
    st.caption(
        f"Removed in this order: {order}. Each step removes the head whose removal leaves the outcome closest to the unchanged "
        f"{number_text(removal.base)} (after Michel et al. 2019, arXiv:1905.10650, section 4). To remove other heads, "
        "select them on “Several heads” of Explore."
    )
    return drawn


def one_by_one(screen: Screen) -> Figure | None:
    """The outcome while all heads are removed, smallest effects first and largest first; None until known."""
    st.markdown("**How many heads can go?**")
    orders = removal_orders(screen.effects)
    removals: dict[str, Removal] = {}
    for number, (name, order) in enumerate(orders.items()):
        work = screen.removal_job(order, greedily=False)
        if not is_there(
            work,
            screen.n_tokens(len(order)),
            f"Removing all heads, {name}",
            key=f"removal_act_{number}",
            request=screen.request(f"Remove all {counted(len(order), 'head')} in two orders", "removal"),
        ):
            return None
        removals[name] = work.results[0]
    drawn = draw_removal(list(removals.items()), outcome="outcome", theme=screen.view.theme)
    alt = "Outcome while more and more heads are off, in the order of their effects"
    chart(drawn, key="effects_removal", alt=alt)
    st.caption(
        "All heads are switched off one after another, in the order of their effects when each was off alone; what redundant "
        "heads do shows only here."
    )
    return drawn


def removal_orders(effects: HeadEffects) -> dict[str, list[Head]]:
    """The two orders in which all heads are switched off, by their names."""
    ranked = effects.ranked()
    return {"smallest effect first": ranked[::-1], "largest effect first": ranked}


def weights_and_effects(screen: Screen) -> Figure | None:
    """A point for each cell of the selected head: its weight and the size of its effect when masked; None until known."""
    view, place = screen.view, screen.view.selection.place
    st.markdown(f"**Do weights predict effects? The cells of {place.words}**")
    n_variant = min(MOST_CELLS, int(view.trace.pattern(*place, view.kind).allowed.sum()))
    work = screen.cells_job()
    if not is_there(
        work,
        screen.n_tokens(n_variant),
        "Masking single cells",
        key="cells_act",
        request=screen.request(f"Mask {counted(n_variant, 'cell')} one by one", "cells", place, view.kind),
    ):
        return None
    effects: CellEffects = work.results[0]
    drawn = draw_cell_effects(
        effects,
        measure="norms" if view.measure == "norms" and effects.norms is not None else "weights",
        picked=None if view.selection.key is None else (view.query, view.selection.key),
        theme=view.theme,
    )
    chart(
        drawn,
        key="effects_cells",
        alt=f"Weight and effect of each cell of {place.words}",
        on_pick=picks("query", "key"),
        name="Cells of the head; select one",
    )
    st.caption(cells_note(effects))
    return drawn


def zeros_and_means(screen: Screen) -> Figure | None:
    """A point for each head: its effect when replaced with zeros, and with its mean; None until known."""
    st.markdown("**Zeros or mean: do both ways of switching a head off agree?**")
    own = screen.effects
    other: Ablation = "mean" if own.ablation == "zero" else "zero"
    request = screen.request(_ASK[other], "other", other)
    effects = ablated(screen, other, key="other_ablation", request=request)
    if effects is None:
        return None
    zero, mean = sorted((own, effects), key=lambda of: of.ablation, reverse=True)
    drawn = draw_ablations(zero, mean, picked=screen.view.selection.place, theme=screen.view.theme)
    chart(
        drawn,
        key="effects_ablations",
        alt="Effect of each head with its output replaced by zeros, and by its mean",
        on_pick=picks("layer", "head"),
        name="Heads; select one",
    )
    st.caption(ablations_note(ablation_agreement(zero, mean), screen.means_words()))
    return drawn


def cells_note(effects: CellEffects) -> str:
    """How well weights predict the order of effects, how many cells are drawn, and what masking a cell does."""
    correlations = {name: effects.rank_correlation(measure) for measure, name in _MEASURE_NAMES.items()}
    named = [f"{name} {correlation_text(of)}" for name, of in correlations.items() if np.isfinite(of)]
    n_masked = len(effects.outcomes)
    sentences = [
        f"Rank correlation with the size of the effect: {', '.join(named)}. 1 would mean that weights and effects have the same order; "
        "it says nothing about why."
        if named
        else "",
        f"Of {effects.n_cell:,} cells, {n_masked} are drawn at random." if n_masked < effects.n_cell else "",
        "A cell is masked in this head alone, so that the rest of its row is renormalised to 1; a query with a single key then reads "
        "nothing.",
    ]
    return " ".join(filter(None, sentences))


def ablation_agreement(zero: HeadEffects, mean: HeadEffects) -> float | None:
    """Rank correlation of the sizes of heads' effects with zeros and with means; None if there is no order."""
    sizes = [np.abs(ablated.effects).reshape(1, -1) for ablated in (zero, mean)]
    seen = np.isfinite(sizes[0]) & np.isfinite(sizes[1])
    if seen.sum() < FEWEST_RANKED or any(len(np.unique(size[seen])) < 2 for size in sizes):
        return None
    of_zero, of_mean = (np.where(seen, size, 0) for size in sizes)
    return float(rank_correlations(of_zero, of_mean, seen)[0])


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
