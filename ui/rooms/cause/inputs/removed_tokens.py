"""Which method is right for this sentence: the outcome while tokens are deleted in each method's order."""

from functools import reduce

import numpy as np
import streamlit as st
from plotly.graph_objects import Figure

from attnviz.effects.deletion import LEVEL, Deletion, RandomOrders
from attnviz.figures.inputs import draw_deletion
from attnviz.figures.numbers import number_text, percent_text
from ui.rooms.cause.inputs.attributions import Screen
from ui.shell.chart import chart
from ui.shell.waiting import is_there
from ui.words.extremes import places_of_largest


def removed_tokens(screen: Screen) -> Figure | None:
    """The outcome while tokens are removed, and each method in numbers; None until known."""
    st.subheader("Which method is right for this sentence?", anchor=False)
    chance = screen.chance()
    if not is_there(chance, screen.n_deleted, "Removing tokens in random orders", key="chance_act"):
        return None
    work, doing = (
        screen.deletion(reduce(RandomOrders.joined, chance.results)),
        "Removing tokens in each method’s order",
    )
    if not is_there(work, screen.n_deleted, doing, key="deletion_act"):
        return None
    left, right = st.columns([3, 2], gap="medium")
    with right:
        table(work.results[0])
    with left:
        return curves(screen, work.results[0])


def curves(screen: Screen, deletion: Deletion) -> Figure:
    """Draws the finding, and a line for each method with the band of chance; returns the figure."""
    st.markdown(f"**{conclusion(deletion)}**")
    drawn = draw_deletion(deletion, outcome="outcome", theme=screen.view.theme)
    chart(
        drawn,
        key="inputs_deletion",
        alt="Outcome while more and more tokens are removed, in the order of each method, with a band for random orders",
    )
    st.caption(
        "Tokens are removed in each method's order, most important first. The band holds 90% of "
        f"{deletion.chance.n_orders} random orders (seed {deletion.chance.seed}). “Token replaced” measures each token the same way, "
        "which gives it an advantage. The text without its tokens is one that the model was not trained on."
    )
    st.caption(correction(deletion.chance.n_orders, len(deletion.curves)))
    return drawn


def table(deletion: Deletion) -> None:
    """Comprehensiveness and sufficiency of each method, and of chance."""
    st.markdown("**In numbers**")
    st.table(rows_of(deletion), hide_index=True)
    st.caption(
        "Comprehensiveness: how much the outcome changes without the first tokens of an order, large is good. Sufficiency: how much "
        "it changes with these alone, small is good. Means over the first 1, 5, 10, 20 and 50% of the tokens, rounded up (DeYoung et al. "
        "2020, arXiv:1911.03429, section 4.2). Random orders as good: those with at least this comprehensiveness."
    )


def rows_of(deletion: Deletion) -> list[dict[str, str]]:
    """The rows of the table: the methods, largest comprehensiveness first, and chance."""
    chance = deletion.chance
    rows = [
        {
            "method": curve.title,
            "comprehensiveness": number_text(curve.comprehensiveness),
            "random orders as good": f"{curve.n_as_good} of {chance.n_orders}",
            "sufficiency": number_text(curve.sufficiency),
        }
        for curve in sorted(deletion.curves, key=lambda curve: -curve.comprehensiveness)
    ]
    by_chance = {
        "method": "Chance (5th to 95th percentile)",
        "comprehensiveness": _span(chance.comprehensiveness),
        "random orders as good": "–",
        "sufficiency": _span(chance.sufficiency),
    }
    return [*rows, by_chance]


def conclusion(deletion: Deletion) -> str:
    """Which methods are better than chance for this sentence, by comprehensiveness, in words."""
    areas = np.array([curve.comprehensiveness for curve in deletion.curves], dtype=np.float64)
    best = [deletion.curves[at] for (at,) in places_of_largest(areas, number_text)]
    if not best:
        return "The methods cannot be compared: the outcomes are not numbers"
    named, n_better = " and ".join(f"“{curve.title}”" for curve in best), len(deletion.better)
    if not n_better:
        return (
            f"By comprehensiveness, no method is better than chance for this sentence: {best[0].n_as_good} of "
            f"{deletion.chance.n_orders} random orders are as good as {named}"
        )
    return (
        f"By comprehensiveness, {named} order{'s' * (len(best) == 1)} the tokens of this sentence best; {n_better} of "
        f"{len(deletion.curves)} methods {'is' if n_better == 1 else 'are'} better than chance"
    )


def correction(n_orders: int, n_method: int) -> str:
    """What "better than chance" means, with the number of random orders and of methods."""
    return (
        f"Better than chance: so few of the {n_orders} random orders are as good that, if all {n_method} methods ordered the "
        f"tokens at random, any of them would be called better with a probability of at most {percent_text(LEVEL)} (Holm 1979, Scand. J. "
        "Statist. 6:65)."
    )


def _span(pair: tuple[float, float]) -> str:
    return f"{number_text(pair[0])} to {number_text(pair[1])}"
