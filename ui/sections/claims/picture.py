"""The picture that the claims share: a number of every head."""

import numpy as np
import streamlit as st
from jaxtyping import Float

from attnviz.figures.claims import draw_heads
from ui.page.chart import chart
from ui.page.view import View

MOSTLY, HARDLY = 2 / 3, 1 / 3  # shares of the heads from which on, and up to which, a claim holds


def heads_say(holds: np.ndarray) -> str:
    """How many heads agree with a claim, and what follows for it.

    Args:
        holds: for each head whether it does.
    """
    share = float(holds.mean())
    word = (
        "**Holds** here"
        if share >= MOSTLY
        else "**Does not hold** here"
        if share <= HARDLY
        else "**Half true** here"
    )
    return f"{word}: {int(holds.sum())} of {holds.size} heads"


def figure(view: View, key: str, numbers: Float[np.ndarray, "layer head"], what: str) -> None:
    """One number of every head, from 0 to 1."""
    picked = view.selection.place
    chart(
        draw_heads(numbers, what=what, picked=picked, theme=view.theme),
        key=f"claim_{key}",
        alt=f"{what}, one point for each head; layer {picked[0]}, head {picked[1]}: {numbers[picked]:.3f}",
    )
    layer, head = np.unravel_index(np.nanargmax(numbers), numbers.shape)
    st.caption(
        f"The selected head, layer {picked[0]}, head {picked[1]}: {numbers[picked]:.2f}; the largest, layer {layer}, head "
        f"{head}: {np.nanmax(numbers):.2f}."
    )
