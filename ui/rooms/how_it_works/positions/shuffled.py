"""How every token changes when the words are shuffled."""

import numpy as np
import streamlit as st
from jaxtyping import Float

from attnviz.errors import UnsupportedArchitectureError
from attnviz.figures.bars import draw_effect
from attnviz.figures.labels import isolated
from attnviz.figures.numbers import number_text
from attnviz.records import Axis
from ui.choice import widgets
from ui.rooms.how_it_works.positions.facts import OrderMatters, order_matters
from ui.runtime import cache
from ui.shell.chart import chart
from ui.shell.view import View
from ui.words.literal import literal


def shuffled(view: View) -> None:
    """The same words in another order."""
    st.subheader("Shuffled words")
    if view.selection.bundle:
        st.info("A bundle holds no model to run again; close the bundle to compute its sentence.")
        return
    try:
        shuffle = cache.shuffled(view.selection.source, view.selection.seed)
    except UnsupportedArchitectureError as error:
        st.info(f"{literal(view.selection.model)} is not shuffled: {error.reason}.")
        return
    with st.columns(3)[0]:
        st.number_input(
            **widgets.field(
                "seed",
                help="Another seed gives another order; the same seed gives the same.",
                label="Random seed of the order",
            )
        )
    labels = view.trace.tokens.labels
    st.markdown(f"The model reads: {literal(' '.join(isolated(labels[at]) for at in shuffle.order))}")
    axis = Axis.of(view.trace.tokens)
    columns = st.columns(2, gap="medium")
    for column, title, change, key in (
        (columns[0], "With its positions", shuffle.with_positions, "shuffled_with"),
        (columns[1], "Without position vectors", shuffle.without_positions, "shuffled_without"),
    ):
        with column:
            st.markdown(f"**{title}**")
            chart(
                draw_effect(change, axis, picked=view.query, theme=view.theme),
                key=key,
                alt=f"{title}: by how much the direction of each token's last hidden state changes",
            )
            st.caption(change_words(change))
    facts = order_matters(shuffle)
    if says_bag_of_words(facts):
        st.latex(r"\mathrm{attention}(P M) = P\,\mathrm{attention}(M) \quad \text{for every reordering } P")
    st.markdown(meaning(facts, is_causal=view.kind == "decoder"))


def change_words(change: Float[np.ndarray, " token"]) -> str:
    """How much the tokens' vectors change direction."""
    return (
        f"The direction of a token’s vector changes by {number_text(float(change.mean()))} on average, by "
        f"{number_text(float(change.max()))} at most (1 − cosine)."
    )


def says_bag_of_words(facts: OrderMatters) -> bool:
    """Whether the order matters only through the position vectors."""
    return not facts.is_own_order and not facts.without_positions


def meaning(facts: OrderMatters, *, is_causal: bool) -> str:
    """What the two pictures mean."""
    if facts.is_own_order:
        return "This order is the text's own, so nothing changes. Another seed may give another order."
    if says_bag_of_words(facts):
        return (
            "Without position vectors every token ends with the same vector wherever it stands: to attention without a "
            "causal mask a sentence is a bag of words."
            + " The positions alone make the difference on the left."
            * facts.with_positions
        )
    if is_causal:
        return (
            "Even without position vectors the order matters to this model: its causal mask tells before from after "
            "(Haviv et al. 2022, arXiv:2203.16634)."
        )
    return (
        "Even without position vectors the order matters to this model, which has no causal mask: it knows positions in another way "
        "too."
    )
