"""Step 3: what would stand in the place of the query, by the models that predict tokens."""

import streamlit as st
from plotly.graph_objects import Figure

from attnviz.model.catalogue import BERT, SMOLLM2, locate, offer
from ui.choice.presets import DOOR_MASK
from ui.shell import downloads, errors
from ui.shell.gap import Gap, candidates, fillers, masked_position
from ui.shell.view import View
from ui.words.literal import literal


def answer(view: View) -> dict[str, Figure]:
    """The likeliest tokens for the gap at the mask token, or else at the query; returns the charts by their keys."""
    st.subheader("3. What would fill the gap?", anchor=False)
    drawn: dict[str, Figure] = {}
    if view.selection.bundle:
        st.markdown(
            "An opened bundle holds no model that could fill a gap. Close the bundle to run its sentence."
        )
        return drawn
    if not fillers(view.selection.model):
        st.markdown(f"No model on this machine predicts tokens. `make models` installs {SMOLLM2}.")
    with errors.explained(key="cut_gap"):
        gap = Gap.at(view.selection, masked_position(view.selection, view.query))
        drawn = candidates(view, gap, key="gap")
    _offer_bert()
    return drawn


def _offer_bert() -> None:
    """If BERT's weights are not on disk: what the download is for, how long it takes, and the button."""
    bert, head = offer(BERT), DOOR_MASK.head
    if locate(bert) is not None or head is None:
        return
    effort = downloads.effort(bert)
    st.markdown(
        f"With {BERT}{f' ({effort})' * bool(effort)} this page reads “{literal(DOOR_MASK.text)}” in layer {head.layer}, head "
        f"{head.head}, the experiment of most articles, and this step shows what that model fills in, too."
    )
    with st.expander(f"Download {BERT}"):
        downloads.panel(bert)
