"""The claim that every cell is filled, measured."""

import streamlit as st

from attnviz.figures.numbers import percent_text, share_text
from attnviz.heads.claim_facts import Filling, filling
from attnviz.heads.claims import MOST_WEIGHT, Claims
from ui.rooms.myths.picture import figure
from ui.shell.view import View


def full(view: View, claims: Claims) -> None:
    """Whether the claim holds, how few cells have most of the weight, and the heads."""
    facts = filling(claims)
    st.markdown(
        f"{filled_words(facts)} Of the cells that a query may see, the strongest {share_text(facts.median)} hold "
        f"{percent_text(MOST_WEIGHT)} of the weight in the median head, and {share_text(facts.least)} in the most "
        "concentrated one."
    )
    what = f"share of the cells that hold {percent_text(MOST_WEIGHT)} of the weight"
    figure(view, "full", claims.cells_for_most, what)


def filled_words(facts: Filling) -> str:
    """Whether every cell has a positive weight, and if not, why, in Markdown."""
    if facts.is_full:
        return "**Literally true** here: no mask hides a cell, and each has a weight above 0."
    false = "**Not even literally true** here:"
    if not facts.masked:
        return (
            f"{false} no mask hides a cell, but the weight of {share_text(facts.rounded)} of them is so small that "
            "float32 rounds it to 0."
        )
    others = (
        f"of the others {share_text(facts.rounded)} are so small that float32 rounds them to 0"
        if facts.rounded
        else "each of the others has a weight above 0"
    )
    return f"{false} the mask hides {share_text(facts.masked)} of the cells, whose weight is 0; {others}."
