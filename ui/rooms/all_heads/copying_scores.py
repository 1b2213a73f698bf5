"""Which heads copy: the copying score of every head, from the model's weights alone."""

import numpy as np
import streamlit as st

from attnviz.effects.copying import copying_scores
from attnviz.figures.numbers import number_text
from attnviz.model.catalogue import offer
from attnviz.records import Head, by_layer, known
from ui.choice import widgets
from ui.components.head_grid import head_grid
from ui.rooms.all_heads.heads_shown import GridSettings, Screen
from ui.rooms.cause.own_run import check_can_run
from ui.runtime import with_model
from ui.runtime.jobs import TELLS_PROGRESS, job
from ui.shell.heads import pick_head
from ui.shell.waiting import is_there
from ui.words.extremes import equals, places_of_largest

NOTE = (
    "Copying score: the sum of the eigenvalues of W_E W_V W_O W_U over the sum of their absolute values, 1 where a head raises the logits of "
    "the tokens that it attends to, −1 where it lowers them. It takes the embedding straight to the logits: what MLPs and other "
    "heads do in between is left out. Gains of norms are part of the matrices. Source: Elhage et al. 2021, "
    "transformer-circuits.pub/2021/framework, section “Detecting Copying Behavior”."
)


def copying(screen: Screen) -> None:
    """A switch, and the copying score of every head if it is on."""
    view = screen.view
    with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
        st.subheader("Which heads copy?", anchor=False, width="content")
        st.toggle(**widgets.field("copying"))
    if not view.selection.of(GridSettings).copying:
        return
    check_can_run(view, "The copying score of every head was asked for")
    model = offer(view.selection.model).name
    work = job("copying", model, lambda: [(with_model.call, (copying_scores, model), TELLS_PROGRESS)])
    if is_there(work, None, "Finding the eigenvalues of every head", key="copying_act"):
        scores: np.ndarray = work.results[0]
        st.markdown(f"**{finding(scores)}**")
        head_grid(
            [
                [text(head, float(scores[head])) for head in of_layer]
                for of_layer in by_layer(view.trace.heads(view.kind))
            ],
            name="Copying score of every head; select one",
            picked=view.selection.place,
            on_pick=pick_head,
            theme=view.theme,
            numbers=scores,
            signed=True,
            key="copying_grid",
        )
        st.caption(NOTE)


def text(head: Head, score: float) -> str:
    """A head's text below the grid; a head that adds nothing to any logit, such as one with a W_O of zeros, has no score."""
    return f"{head.title}: {'none' if np.isnan(score) else number_text(score)}"


def finding(scores: np.ndarray) -> str:
    """How many heads copy, and which copy most."""
    places = places_of_largest(scores, number_text)
    if not places:
        return "No head has a copying score"
    most, n_above = Head(*places[0]), int((known(scores) > 0).sum())
    return (
        f"{n_above} of {len(known(scores))} heads have a copying score above 0; {most.words} has the highest"
        f"{equals(len(places) - 1, 'high')}, {number_text(float(scores[most]))}"
    )
