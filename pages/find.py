"""Which head links these tokens? The weight of one pair in every head, and the strongest pairs of one head."""

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import streamlit as st

from attnviz import heads
from attnviz.figures.theme import isolated
from attnviz.records import AttentionPattern, Axis, Measure
from attnviz.records.table import table_csv
from ui.choice import state, widgets
from ui.components.head_grid import head_grid
from ui.components.ranked_list import Row, ranked_list
from ui.components.token_strip import token_strip
from ui.export.take import take
from ui.page import errors, verdict
from ui.page.frame import frame
from ui.page.view import View, hidden_note
from ui.words.findings import group_name, number_text, pair_finding, strongest_key
from ui.words.literal import literal
from ui.work import cache

MOST_ROWS = 9  # of a list: as high as the grid of a model of six layers beside it

Span = tuple[int, int]  # position of the first token of a group, and the position after its last


def numbered(axis: Axis) -> list[str]:
    """Entries with their positions, "door·5", so that two equal tokens stay two."""
    pairs = zip(axis.labels, axis.positions, strict=True)
    return [f"{isolated(label)}·{position}" for label, position in pairs]


def span_of(axis: Axis, first: int, last: int | None) -> Span:
    """The tokens from the entry of one position to that of another, or of the one alone."""
    start, end = (axis.index(first if one is None else one) or 0 for one in (first, last))
    return int(axis.spans[start, 0]), int(axis.spans[max(start, end), 1])


def pick_group(view: View, side: str, axis: Axis, span: Span, label: str) -> None:
    """Two fields for one side of the pair: its token, and the last token where it is a phrase."""
    names = dict(zip(axis.positions.tolist(), numbered(axis), strict=True))
    first, last = (int(axis.positions[axis.index(one) or 0]) for one in (span[0], span[1] - 1))
    places: dict[str, Any] = {side: first, f"{side}_to": last}
    shown = replace(view.selection, **places)
    st.selectbox(
        label,
        list(names),
        format_func=names.__getitem__,
        help=f"The {side} of the pair; typing finds a token.",
        **widgets.field(side, shown),
    )
    st.selectbox(
        "up to",
        [one for one in names if one >= first],
        format_func=names.__getitem__,
        help=f"Makes the {side} a phrase that ends here; the same token again for one alone.",
        **widgets.field(f"{side}_to", shown),
    )


def best_heads(view: View, weights: np.ndarray, measure: Measure) -> None:
    """The heads that give the pair most."""
    order = [(int(layer), int(head)) for layer, head in heads.ranked(weights)[:MOST_ROWS]]
    largest = float(weights.max()) or 1.0
    st.markdown("**Heads that give most**")
    ranked_list(
        [
            Row(
                text=f"Layer {layer}, head {head}",
                amount=number_text(float(weights[layer, head]), measure),
                length=float(weights[layer, head]) / largest,
                picked=(layer, head) == (view.selection.layer, view.selection.head),
            )
            for layer, head in order
        ],
        name="Heads, ranked by what they give from the query to the key",
        on_pick=lambda row: state.change(layer=order[row][0], head=order[row][1]),
        theme=view.theme,
        key="best_heads",
    )
    if weights.size > len(order):
        st.caption(f"The first {len(order)} of {weights.size} heads.")


def best_pairs(view: View, pattern: AttentionPattern, picked: tuple[Span, Span]) -> None:
    """The pairs that the picked head, whose pattern this is, gives most."""
    selection = view.selection
    st.markdown(f"**Strongest pairs of layer {selection.layer}, head {selection.head}**")
    pairs = heads.strongest_pairs(
        pattern, MOST_ROWS, special=selection.pairs_special, itself=selection.pairs_self
    )
    queries, keys = pattern.queries, pattern.keys
    query_labels, key_labels = numbered(queries), numbered(keys)
    ranked_list(
        [
            Row(
                text=query_labels[row],
                key=key_labels[column],
                amount=number_text(weight, pattern.measure),
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
    )
    if not pairs:
        st.caption("There is no such pair in this head.")
    choices = st.container(horizontal=True)
    choices.checkbox(
        "Special tokens",
        help="Lists pairs with [CLS], [SEP] and their like too.",
        disabled=view.hides_special,
        **widgets.field("pairs_special"),
    )
    if view.kind != "cross":
        choices.checkbox(
            "Itself", help="Lists what a token gives to itself too.", **widgets.field("pairs_self")
        )
    if note := hidden_note(view):
        st.caption(note)


def as_csv(weights: np.ndarray) -> bytes:
    """What every head gives the pair, the most first."""
    rows = ([layer, head, weights[layer, head]] for layer, head in heads.ranked(weights))
    return table_csv(["layer", "head", "number"], rows)


view = frame("Find the head")
selection, trace, kind = view.selection, view.trace, view.kind
measure: Measure = "norms" if view.measure == "norms" else "weights"  # rollout has no number for a head
queries, keys = (
    Axis.of(tokens, selection.unit) for tokens in (trace.query_tokens(kind), trace.key_tokens(kind))
)
whole = trace.pattern(selection.layer, selection.head, kind, measure=measure)
key = strongest_key(whole.arranged(queries, keys), view.query) if selection.key is None else selection.key
state.pin(key=key)  # or another head would be asked about another pair
query_span = span_of(queries, view.query, selection.query_to)
key_span = span_of(keys, key, selection.key_to)

token_strip(
    queries.tokens,
    query=view.query,
    key=key,
    weights=whole.weights[view.query] if kind != "cross" else None,
    mask_label=cache.mask_label(selection.source) if kind == "encoder" else None,
    on_pick=lambda position: state.change(query=position, key=key, key_to=selection.key_to),
    on_mask=state.mask,
    theme=view.theme,
)
with errors.explained():
    with st.container(horizontal=True, key="pair"):
        pick_group(view, "query", queries, query_span, "Query: the token that looks")
        pick_group(view, "key", keys, key_span, "Key: the token it looks at")
    weights = cache.pair_weights(selection.source, kind, query_span, key_span, measure=measure)
    pair = group_name(queries, query_span), group_name(keys, key_span)
    said = pair_finding(weights, (selection.layer, selection.head), pair, measure)
    with st.container(key="finding"):
        st.markdown(f"**{literal(said)}**")
    grid, ranking, pairs = st.columns([20, 9, 11], gap="medium")
    with grid:
        rank = {tuple(place): number for number, place in enumerate(heads.ranked(weights).tolist(), start=1)}
        head_grid(
            [
                [
                    f"Layer {layer}, head {head}: {number_text(float(weights[layer, head]), measure)} from {pair[0]} "
                    f"to {pair[1]}, rank {rank[layer, head]} of {weights.size}"
                    for head in range(weights.shape[1])
                ]
                for layer in range(weights.shape[0])
            ],
            name=f"What every head gives from {pair[0]} to {pair[1]}",
            picked=(selection.layer, selection.head),
            on_pick=lambda layer, head: state.change(layer=layer, head=head),
            theme=view.theme,
            numbers=weights,
        )
        notes = []
        if max(query_span[1] - query_span[0], key_span[1] - key_span[0]) > 1:
            notes.append("Of a phrase or word: the mean over its queries of the sum over its keys.")
        if view.measure == "rollout":
            notes.append("Rollout is of all heads together; here are the weights of each.")
        if kind == "decoder" and not weights.any():
            notes.append("A decoder's token sees itself and those before it only.")
        if notes:
            st.caption(" ".join(notes))
    with ranking:
        best_heads(view, weights, measure)
    with pairs:
        best_pairs(view, whole.arranged(view.queries, view.keys), (query_span, key_span))
    take(view, {"head_grid": "All heads"}, csv=partial(as_csv, weights), numbers="All heads")
verdict.in_sidebar(view.selection)
