"""The heads that link the pair most strongly, and the strongest pairs of the selected head."""

import numpy as np
import streamlit as st

from attnviz import heads
from attnviz.figures.labels import labels_at
from attnviz.figures.numbers import number_text
from attnviz.records import AttentionPattern, known
from attnviz.records.table import table_csv
from ui.choice import state, widgets
from ui.components.ranked_list import Row, ranked_list
from ui.rooms.all_heads.find_a_head.choices import PairList
from ui.rooms.all_heads.find_a_head.groups import Span
from ui.shell.view import View, hidden_note

MOST_ROWS = 24  # of a list, which scrolls if the window is too small
NO_PAIR = "There is no such pair in this head."


def best_heads(view: View, weights: np.ndarray) -> None:
    """The heads with the largest weight for the pair."""
    order = [(int(layer), int(head)) for layer, head in heads.ranked(weights)[:MOST_ROWS]]
    largest = float(np.nanmax(weights)) or 1.0
    st.markdown("**Heads with the largest weight**")
    ranked_list(
        [
            Row(
                text=f"Layer {layer}, head {head}",
                amount=number_text(float(weights[layer, head])),
                length=float(weights[layer, head]) / largest,
                picked=(layer, head) == view.selection.place,
            )
            for layer, head in order
        ],
        name="Heads, ranked by what they give from the query to the key",
        on_pick=lambda row: state.change(layer=order[row][0], head=order[row][1]),
        theme=view.theme,
        key="best_heads",
        scrolls=True,
    )
    if (n_heads := len(known(weights))) > len(order):
        st.caption(f"The first {len(order)} of {n_heads} heads.")


def best_pairs(view: View, pattern: AttentionPattern, picked: tuple[Span, Span]) -> None:
    """The pairs with the largest weight in the selected head, whose pattern this is."""
    selection = view.selection
    st.markdown(f"**Strongest pairs of {selection.place.words}**")
    pairs = heads.strongest_pairs(
        pattern, MOST_ROWS, special=selection.of(PairList).special, itself=selection.of(PairList).itself
    )
    queries, keys = pattern.queries, pattern.keys
    query_labels, key_labels = labels_at(queries), labels_at(keys)
    ranked_list(
        [
            Row(
                text=query_labels[row],
                key=key_labels[column],
                amount=number_text(weight),
                length=weight / pairs[0].weight,
                picked=(tuple(queries.spans[row]), tuple(keys.spans[column])) == picked,
            )
            for row, column, weight in pairs
        ],
        name="Pairs of query and key, ranked by what this head gives them",
        on_pick=lambda row: state.change(
            query=int(queries.positions[pairs[row].row]), key=int(keys.positions[pairs[row].column])
        ),
        theme=view.theme,
        key="best_pairs",
        scrolls=True,
    )
    if not pairs:
        st.caption(NO_PAIR)
    choices = st.container(horizontal=True)
    choices.checkbox(**widgets.field("pairs_special"), disabled=view.hides_special)
    if view.kind != "cross":
        choices.checkbox(**widgets.field("pairs_itself"))
    if note := hidden_note(view):
        st.caption(note)


def as_csv(weights: np.ndarray) -> bytes:
    """The pair's weight in every head, largest first."""
    rows = ([layer, head, weights[layer, head]] for layer, head in heads.ranked(weights))
    return table_csv(["layer", "head", "number"], rows)
