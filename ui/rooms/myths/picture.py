"""Shared by all claims: whether one holds, and the picture of one number for every head."""

import numpy as np
import streamlit as st
from jaxtyping import Float

from attnviz.figures.heads import draw_heads
from attnviz.figures.numbers import cell_text
from attnviz.heads.claim_facts import Showing
from attnviz.heads.facts import Extremes, extremes
from attnviz.records import Head
from ui.shell.chart import chart
from ui.shell.view import View
from ui.words.findings import together

_WORDS = {
    "holds": "**Holds** here",
    "half true": "**Half true** here",
    "does not hold": "**Does not hold** here",
}


def heads_say(facts: Showing) -> str:
    """How many heads agree with a claim, and whether it holds."""
    return f"{_WORDS[facts.standing]}: {facts.n_showing} of {facts.n_heads} heads"


def figure(view: View, key: str, numbers: Float[np.ndarray, "layer head"], what: str) -> None:
    """One number of every head, from 0 to 1."""
    picked = view.selection.place
    chart(
        draw_heads(numbers, what=what, picked=picked, theme=view.theme),
        key=f"claim_{key}",
        alt=f"{what}, one point for each head; {picked.words}: {cell_text(float(numbers[picked]))}",
    )
    st.caption(ends_words(picked, float(numbers[picked]), extremes(numbers, cell_text)))


def ends_words(picked: Head, number: float, facts: Extremes) -> str:
    """The number of the selected head, and the largest of all."""
    most = together([head.words for head in facts.most])
    return f"The selected head, {picked.words}: {cell_text(number)}; the largest, {most}: {cell_text(facts.largest)}."
