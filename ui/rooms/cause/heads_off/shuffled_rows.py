"""The selected query's row of every head, shuffled among its keys: in which heads the picture matters for the outcome."""

import numpy as np
import streamlit as st

from attnviz.effects.row_shuffle import ShuffledHeads, shuffled_heads
from attnviz.figures.numbers import counted, number_text
from attnviz.records import Head
from ui.rooms.cause.heads_off.switched_off import Screen
from ui.runtime import with_model
from ui.runtime.jobs import TELLS_PROGRESS, Call, Job
from ui.shell.heads import heads_and_largest
from ui.shell.waiting import is_there
from ui.words.literal import quoted
from ui.words.shuffled_rows import p_text

KEY = "effects_shuffled"
N_RANKED = 8


def shuffling(screen: Screen) -> Job:
    """The job that shuffles the selected query's row of every head."""
    view = screen.view
    kind, query = view.kind, view.query

    def calls() -> list[Call]:
        given = shuffled_heads, screen.model, view.trace, query, screen.outcome
        return [(with_model.call, given, {"kind": kind, **TELLS_PROGRESS})]

    return screen.job("shuffled_heads", (kind, query), calls)


def shuffled_rows(screen: Screen) -> tuple[str, ...]:
    """All heads, each with its change, and which matter most; a button until they are asked for."""
    view, work = screen.view, shuffling(screen)
    st.markdown(f"**Does it matter where {quoted(view.query_tokens.labels[view.query])} looks?**")
    n_heads = counted(len(screen.heads), "head")
    if not is_there(
        work,
        None,
        f"Shuffling the row of {n_heads}",
        key="shuffled_act",
        request=screen.request(f"Shuffle its row in {n_heads}", "shuffled", view.kind, view.query),
    ):
        return ()
    found: ShuffledHeads = work.results[0]
    heads_and_largest(
        screen.view,
        found.heads,
        lambda head: said_of(found, head),
        found.ranked()[:N_RANKED],
        lambda head: number_text(float(found.heads[head])),
        names=(
            "Change of the outcome while the row of each head is shuffled; select one",
            "Heads whose row matters most; select one",
        ),
        key=KEY,
        notes=[note(found)],
    )
    return (KEY,)


def said_of(found: ShuffledHeads, head: Head) -> str:
    """What shuffling the row of a head changes."""
    change, p = float(found.heads[head]), float(found.p_values[head])
    if np.isnan(change):
        return f"{head.title}: all keys have the same weight, so that shuffling tells nothing"
    return f"{head.title}: change {number_text(change)}, {p_text(p)}"


def note(found: ShuffledHeads) -> str:
    """What the numbers are."""
    return (
        f"Each number is how far the outcome moves while the head's row of this query is shuffled among its keys, the median of "
        f"{counted(found.n_shuffles, 'order')} (after Jain and Wallace 2019, arXiv:1902.10186). p is the share of orders that take the outcome "
        "as far from their mean as the model's own; of many heads some are small by chance."
    )
