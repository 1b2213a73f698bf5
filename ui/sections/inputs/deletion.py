"""Which method is right for this sentence: the outcome while tokens are taken away in the order of each."""

import streamlit as st
from plotly.graph_objects import Figure

from attnviz.effects.deletion import Deletion
from attnviz.figures.inputs import draw_deletion
from attnviz.figures.numbers import number_text
from ui.page.chart import chart
from ui.sections.inputs.screen import NAMES, Screen


def curves(screen: Screen, found: Deletion) -> Figure:
    """The finding, and a line for each method beside the band of chance; the figure."""
    st.markdown(f"**{verdict(found)}**")
    drawn = draw_deletion(found, NAMES, outcome="outcome", theme=screen.view.theme)
    chart(
        drawn,
        key="inputs_deletion",
        alt="Outcome while more and more tokens are away, in the order of each method, with a band for random orders",
    )
    st.caption(
        "Tokens are taken away in each method's order, most important first. The band holds 90% of "
        f"{found.chance.n_orders} random orders (seed {found.chance.seed}). “Token replaced” measures each token the same way and "
        "has an advantage. The text without its tokens is one that the model was not trained on."
    )
    return drawn


def table(found: Deletion) -> None:
    """Comprehensiveness and sufficiency of each method, and those of chance."""
    ranked = sorted(found.curves, key=lambda one: -one.comprehensiveness)
    chance = found.chance
    rows = {NAMES[one.method]: (one.comprehensiveness, one.sufficiency) for one in ranked}
    st.markdown("**In numbers**")
    st.table(
        {
            "method": [*rows, "Chance (5th to 95th percentile)"],
            "comprehensiveness": [
                *(number_text(one) for one, _ in rows.values()),
                _span(chance.comprehensiveness),
            ],
            "sufficiency": [*(number_text(one) for _, one in rows.values()), _span(chance.sufficiency)],
        },
        hide_index=True,
    )
    st.caption(
        "Comprehensiveness: how much the outcome changes without the first tokens of an order, large is good. Sufficiency: how much "
        "it changes with these alone, small is good. Means over the first 1, 5, 10, 20 and 50% of the tokens (DeYoung et al. 2020, "
        "arXiv:1911.03429, section 4.2)."
    )


def verdict(found: Deletion) -> str:
    """Which methods are better than chance for this sentence, in words."""
    best = max(found.curves, key=lambda one: one.comprehensiveness)
    limit = found.chance.comprehensiveness[1]
    better = [one for one in found.curves if one.comprehensiveness > limit]
    if not better:
        return "By comprehensiveness, no method does better than 95% of random orders for this sentence"
    return (
        f"By comprehensiveness, “{NAMES[best.method]}” orders the tokens of this sentence best; {len(better)} of "
        f"{len(found.curves)} methods do better than 95% of random orders"
    )


def _span(pair: tuple[float, float]) -> str:
    return f"{number_text(pair[0])} to {number_text(pair[1])}"
