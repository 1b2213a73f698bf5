"""Heads switched off together: the order in which a greedy search removes them, and how long the outcome holds."""

from collections.abc import Mapping
from typing import Any

import streamlit as st
from plotly.graph_objects import Figure

from attnviz.effects.ablation import HeadEffects, Removal
from attnviz.figures.ablation import draw_removal
from attnviz.figures.numbers import counted, number_text
from attnviz.records import Head
from ui.rooms.cause.heads_off import jobs
from ui.rooms.cause.heads_off.screen import Screen
from ui.rooms.explore.several_heads import FlowSettings
from ui.runtime.jobs import TELLS_PROGRESS, Job
from ui.shell.chart import chart
from ui.shell.waiting import is_there

MOST_GREEDY = 24
"""Most heads for a greedy search: 24 take 300 variants of the text."""


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
    work = _job(screen, heads, greedily=True)
    n_variant = len(heads) * (len(heads) + 1) // 2
    if not is_there(
        work,
        screen.n_tokens(n_variant),
        "Removing heads one by one",
        key="greedy_act",
        request=screen.request(f"Remove {counted(len(heads), 'head')} one by one", "greedy", *heads),
    ):
        return None
    removal: Removal = work.results[0]
    drawn = draw_removal([(name, removal)], outcome="outcome", theme=screen.view.theme)
    chart(
        drawn,
        key="effects_greedy",
        alt=f"Outcome while more and more of {name} are off",
    )
    order = ", ".join(head.short for head in removal.heads)
    st.caption(
        f"Removed in this order: {order}. Each step removes the head whose removal leaves the outcome closest to the unchanged "
        f"{number_text(removal.base)} (after Michel et al. 2019, arXiv:1905.10650, section 4). To remove other heads, "
        "select them on “Several heads” of Explore."
    )
    return drawn


def all_heads(screen: Screen) -> Figure | None:
    """The outcome while all heads are removed, smallest effects first and largest first; None until known."""
    st.markdown("**How many heads can go?**")
    ranked = screen.effects.ranked()
    works = {
        name: _job(screen, order, greedily=False) for name, order in removal_orders(screen.effects).items()
    }
    removals: dict[str, Removal] = {}
    for number, (name, work) in enumerate(works.items()):
        if not is_there(
            work,
            screen.n_tokens(len(ranked)),
            f"Removing all heads, {name}",
            key=f"removal_act_{number}",
            request=screen.request(f"Remove all {counted(len(ranked), 'head')} in two orders", "removal"),
        ):
            return None
        removals[name] = work.results[0]
    drawn = draw_removal(list(removals.items()), outcome="outcome", theme=screen.view.theme)
    chart(
        drawn,
        key="effects_removal",
        alt="Outcome while more and more heads are off, in the order of their effects",
    )
    st.caption(
        "All heads are switched off one after another, in the order of their effects when each was off alone; what redundant "
        "heads do shows only here."
    )
    return drawn


def removal_orders(effects: HeadEffects) -> dict[str, list[Head]]:
    """The two orders in which all heads are switched off, by their names."""
    ranked = effects.ranked()
    return {"smallest effect first": ranked[::-1], "largest effect first": ranked}


def _job(screen: Screen, heads: list[Head], *, greedily: bool) -> Job:
    named: Mapping[str, Any] = {
        "kind": screen.view.kind,
        "means": screen.means(screen.ablation),
        "greedily": greedily,
        **TELLS_PROGRESS,
    }
    return screen.job(
        "removal",
        (*screen.of_ablation(screen.ablation), tuple(heads), greedily),
        lambda: [(jobs.remove, (*screen.given, tuple(heads)), dict(named))],
    )
