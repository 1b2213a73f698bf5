"""Which heads copy: the copying score of every head, from the model's weights alone."""

from dataclasses import dataclass

import numpy as np
import streamlit as st

from attnviz.figures.numbers import number_text
from attnviz.model.catalogue import offer
from attnviz.records import Head, by_layer, known
from ui.choice import widgets
from ui.components.head_grid import head_grid
from ui.rooms.all_heads import jobs
from ui.rooms.all_heads.choices import GridSettings
from ui.rooms.all_heads.screen import pick
from ui.rooms.cause.own_run import check_can_run
from ui.runtime.jobs import TELLS_PROGRESS, job
from ui.shell import errors
from ui.shell.view import View
from ui.shell.waiting import is_there
from ui.words.extremes import equals, places_of_largest

NOTE = (
    "Copying score: the sum of the eigenvalues of W_E W_V W_O W_U over the sum of their absolute values, 1 where a head raises the logits of "
    "the tokens that it attends to, −1 where it lowers them. It takes the embedding straight to the logits: what MLPs and other "
    "heads do in between is left out. Gains of norms are part of the matrices. Source: Elhage et al. 2021, "
    "transformer-circuits.pub/2021/framework, section “Detecting Copying Behavior”."
)


def copying(view: View) -> None:
    """A switch, and the copying score of every head if it is on."""
    with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
        st.subheader("Which heads copy?", anchor=False, width="content")
        st.toggle(**widgets.field("copying"))
    if not view.selection.of(GridSettings).copying:
        return
    with errors.explained(key="cut_copying"):
        check_can_run(view, "The copying score of every head was asked for")
        model = offer(view.selection.model).name
        work = job("copying", (model,), lambda: [(jobs.copy_scores, (model,), TELLS_PROGRESS)])
        if is_there(work, None, "Finding the eigenvalues of every head", key="copying_act"):
            scores: np.ndarray = work.results[0]
            st.markdown(f"**{finding(copiers(scores))}**")
            head_grid(
                [
                    [text(head, float(scores[head])) for head in of_layer]
                    for of_layer in by_layer(view.trace.heads(view.kind))
                ],
                name="Copying score of every head; select one",
                picked=view.selection.place,
                on_pick=pick,
                theme=view.theme,
                numbers=scores,
                signed=True,
                key="copying_grid",
            )
            st.caption(NOTE)


def text(head: Head, score: float) -> str:
    """A head's text below the grid; a head that adds nothing to any logit, such as one with a W_O of zeros, has no score."""
    return f"{head.title}: {'none' if np.isnan(score) else number_text(score)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Copiers:
    """How many heads copy, and which copy most."""

    n_above: int
    """Heads with a score above 0."""
    n_head: int
    most: Head
    n_as_much: int
    """Other heads with the same score."""
    score: float


def copiers(scores: np.ndarray) -> Copiers | None:
    """The heads with the highest copying score; None if no head has a score."""
    places = places_of_largest(scores, number_text)
    if not places:
        return None
    most = Head(*places[0])
    return Copiers(
        n_above=int((known(scores) > 0).sum()),
        n_head=len(known(scores)),
        most=most,
        n_as_much=len(places) - 1,
        score=float(scores[most]),
    )


def finding(facts: Copiers | None) -> str:
    """How many heads copy, and which copy most, in words."""
    if facts is None:
        return "No head has a copying score"
    return (
        f"{facts.n_above} of {facts.n_head} heads have a copying score above 0; {facts.most.words} has the highest"
        f"{equals(facts.n_as_much, 'high')}, {number_text(facts.score)}"
    )
