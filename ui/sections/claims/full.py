"""The claim that every cell is filled, measured."""

import streamlit as st

from attnviz.figures.numbers import percent_text, share_text
from attnviz.heads.claims import MOST_WEIGHT, Claims
from attnviz.heads.verdicts import Filling, filling
from ui.page.view import View
from ui.sections.claims.picture import figure


def full(view: View, claims: Claims) -> None:
    """The verdict, how few cells hold most of the weight, and the heads."""
    found = filling(claims)
    st.markdown(
        f"{filled_words(found)} Of the cells that a query may see, the strongest {share_text(found.median)} hold "
        f"{percent_text(MOST_WEIGHT)} of the weight in the median head, and {share_text(found.least)} in the most "
        "concentrated one."
    )
    what = f"share of the cells that hold {percent_text(MOST_WEIGHT)} of the weight"
    figure(view, "full", claims.cells_for_most, what)


def filled_words(found: Filling) -> str:
    """Whether every cell has a weight above 0, and why not, in Markdown."""
    if found.is_full:
        return "**Literally true** here: no mask hides a cell, and each has a weight above 0."
    false = "**Not even literally true** here:"
    if not found.masked:
        return (
            f"{false} no mask hides a cell, but the weight of {share_text(found.rounded)} of them is so small that "
            "float32 rounds it to 0."
        )
    others = (
        f"of the others {share_text(found.rounded)} are so small that float32 rounds them to 0"
        if found.rounded
        else "each of the others has a weight above 0"
    )
    return f"{false} the mask hides {share_text(found.masked)} of the cells, whose weight is 0; {others}."
