"""The claim that every cell is filled, measured."""

import numpy as np
import streamlit as st

from attnviz.figures.numbers import percent_text, share_text
from attnviz.heads.claims import MOST_WEIGHT, Claims
from attnviz.records import known
from ui.page.view import View
from ui.sections.claims.picture import figure


def full(view: View, claims: Claims) -> None:
    """Claim 11."""
    found = claims.cells_for_most
    of_heads, positive = known(found), known(claims.positive)
    masked, rounded = 1 - float(np.nanmean(claims.seen)), 1 - float(positive.mean())
    every = bool((positive == 1).all())
    if masked:
        rest = (
            "; each of the others has a weight above 0"
            if every
            else f"; of the others {share_text(rounded)} are so small that float32 rounds them to 0"
        )
        said = f"**Not even literally true** here: the mask hides {share_text(masked)} of the cells, whose weight is 0{rest}."
    elif every:
        said = (
            "**Literally true** here: no mask hides a cell, and a softmax gives every one a weight above 0."
        )
    else:
        said = (
            "**Not even literally true** here: no mask hides a cell, but the weight of "
            f"{share_text(rounded)} of them is so small that float32 rounds it to 0."
        )
    st.markdown(
        f"{said} Of the cells that a query may see, the strongest {share_text(float(np.median(of_heads)))} hold "
        f"{percent_text(MOST_WEIGHT)} of the weight in the median head, and {share_text(float(of_heads.min()))} in the most "
        "concentrated one."
    )
    figure(view, "full", found, f"share of the cells that hold {percent_text(MOST_WEIGHT)} of the weight")
