"""Which method is right for this sentence: the outcome while tokens are deleted in each method's order."""

from dataclasses import dataclass
from functools import reduce

import numpy as np
import streamlit as st
from plotly.graph_objects import Figure

from attnviz.effects.deletion import LEVEL, Deletion, RandomOrders
from attnviz.effects.input_attribution import AttributionMethod
from attnviz.figures.inputs import draw_deletion
from attnviz.figures.numbers import number_text, percent_text
from ui.rooms.cause.inputs.attributions import NAMES, Screen
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
    facts = best_orders(deletion)
    st.markdown(f"**{conclusion(facts)}**")
    drawn = draw_deletion(deletion, NAMES, outcome="outcome", theme=screen.view.theme)
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
    st.caption(correction(facts))
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
            "method": NAMES[curve.method],
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


@dataclass(frozen=True, slots=True, kw_only=True)
class BestOrders:
    """The methods in whose order deleting tokens changes the outcome most, compared with random orders."""

    best: tuple[AttributionMethod, ...]
    """The methods with the largest comprehensiveness; several if tied, none if all are NaN."""
    better: tuple[AttributionMethod, ...]
    """Methods better than chance."""
    n_method: int
    n_orders: int
    """Number of random orders."""
    n_as_good: int
    """Random orders as good as the best method."""


def best_orders(deletion: Deletion) -> BestOrders:
    """The methods compared by comprehensiveness."""
    areas = np.array([curve.comprehensiveness for curve in deletion.curves], dtype=np.float64)
    places = [place[0] for place in places_of_largest(areas, number_text)]
    return BestOrders(
        best=tuple(deletion.curves[place].method for place in places),
        better=deletion.better,
        n_method=len(deletion.curves),
        n_orders=deletion.chance.n_orders,
        n_as_good=deletion.curves[places[0]].n_as_good if places else deletion.chance.n_orders,
    )


def conclusion(facts: BestOrders) -> str:
    """Which methods are better than chance for this sentence, in words."""
    if not facts.best:
        return "The methods cannot be compared: the outcomes are not numbers"
    named = " and ".join(f"“{NAMES[method]}”" for method in facts.best)
    orders = "orders" if len(facts.best) == 1 else "order"
    if not facts.better:
        return (
            f"By comprehensiveness, no method is better than chance for this sentence: {facts.n_as_good} of {facts.n_orders} random "
            f"orders are as good as {named}"
        )
    are = "is" if len(facts.better) == 1 else "are"
    return (
        f"By comprehensiveness, {named} {orders} the tokens of this sentence best; {len(facts.better)} of {facts.n_method} methods "
        f"{are} better than chance"
    )


def correction(facts: BestOrders) -> str:
    """What "better than chance" means, with the number of random orders and of methods."""
    return (
        f"Better than chance: so few of the {facts.n_orders} random orders are as good that, if all {facts.n_method} methods ordered the "
        f"tokens at random, any of them would be called better with a probability of at most {percent_text(LEVEL)} (Holm 1979, Scand. J. "
        "Statist. 6:65)."
    )


def _span(pair: tuple[float, float]) -> str:
    return f"{number_text(pair[0])} to {number_text(pair[1])}"
