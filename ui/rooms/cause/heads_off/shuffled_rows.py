"""The selected query's row of every head, shuffled among its keys: in which heads the picture matters for the outcome."""

import numpy as np
import streamlit as st

from attnviz.effects.row_shuffle import ShuffledHeads, shuffled_heads
from attnviz.figures.numbers import counted, number_text
from attnviz.records import Head
from ui.rooms.cause.heads_off.switched_off import Screen
from ui.runtime import with_model
from ui.runtime.jobs import TELLS_PROGRESS, Call
from ui.shell.heads import heads_and_largest
from ui.shell.waiting import is_there
from ui.words.literal import quoted
from ui.words.shuffled_rows import p_text

KEY = "effects_shuffled"
N_RANKED = 8


def shuffled(screen: Screen) -> ShuffledHeads | None:
    """The change of the outcome while the row of each head is shuffled; None until known."""
    view = screen.view
    kind, query = view.kind, view.query

    def calls() -> list[Call]:
        given = shuffled_heads, screen.model, view.trace, query, screen.outcome
        return [(with_model.call, given, {"kind": kind, **TELLS_PROGRESS})]

    work = screen.job("shuffled_heads", (kind, query), calls)
    st.markdown(f"**Does it matter where {quoted(view.query_tokens.labels[query])} looks?**")
    if not is_there(
        work,
        None,
        f"Shuffling the row of {counted(len(screen.heads), 'head')}",
        key="shuffled_act",
        request=screen.request(
            f"Shuffle its row in {counted(len(screen.heads), 'head')}", "shuffled", kind, query
        ),
    ):
        return None
    found: ShuffledHeads = work.results[0]
    return found


def shuffled_rows(screen: Screen) -> None:
    """All heads, each with its change, and which stand out."""
    if (found := shuffled(screen)) is None:
        return
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
