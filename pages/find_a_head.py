"""Which head links these tokens? The weight of one pair in every head, and the strongest pairs of one head."""

from functools import partial

import numpy as np
import streamlit as st

from attnviz.figures.numbers import number_text
from attnviz.heads.facts import rank
from attnviz.records import Axis, Measure, by_layer, known
from ui.choice import state
from ui.components.head_grid import beside_grid, head_grid
from ui.components.token_strip import token_strip
from ui.rooms.all_heads.find_a_head.groups import pick_group, span_of
from ui.rooms.all_heads.find_a_head.lists import as_csv, best_heads, best_pairs
from ui.rooms.all_heads.find_a_head.random_tokens import random_tokens
from ui.runtime import cache, head_cache
from ui.shell import errors, verdict
from ui.shell.export.take import take
from ui.shell.frame import frame
from ui.shell.head_names import known_names
from ui.words.findings import group_name, measure_text, pair_finding, strongest_key
from ui.words.head_names import marks_note, marks_of, with_names
from ui.words.literal import literal

view = frame("Find a head")
selection, trace, kind = view.selection, view.trace, view.kind
measure: Measure = "norms" if view.measure == "norms" else "weights"  # rollout has no number for a head
queries, keys = (Axis.of(tokens, selection.unit) for tokens in (view.query_tokens, view.key_tokens))
whole = trace.pattern(*selection.place, kind, measure=measure)
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
        pick_group(view, "query", queries, query_span)
        pick_group(view, "key", keys, key_span)
    weights = head_cache.pair_weights(selection.source, kind, query_span, key_span, measure=measure)
    pair = group_name(queries, query_span), group_name(keys, key_span)
    facts = rank(weights, selection.place, partial(measure_text, measure=measure))
    sentence = pair_finding(facts, selection.place, pair, measure)
    with st.container(key="finding"):
        st.markdown(f"**{literal(sentence)}**")
    grid, ranking, pairs = beside_grid((23, 10, 10), "head_grid", n_layers=view.trace.n_layers(view.kind))
    with grid:
        names = known_names(view)
        ranks = 1 + (weights > weights[..., None, None]).sum(axis=(2, 3))
        head_grid(
            [
                [
                    with_names(
                        f"{head.title}: {number_text(float(weights[head]))} from {pair[0]} to {pair[1]}, "
                        f"rank {ranks[head]} of {known(weights).size}",
                        names,
                        head,
                    )
                    for head in of_layer
                ]
                for of_layer in by_layer(trace.heads(kind))
            ],
            name=f"The weight in every head from {pair[0]} to {pair[1]}",
            picked=selection.place,
            on_pick=lambda layer, head: state.change(layer=layer, head=head),
            theme=view.theme,
            numbers=weights,
            marks=marks_of(names, trace.heads(kind)),
        )
        notes = []
        if max(query_span[1] - query_span[0], key_span[1] - key_span[0]) > 1:
            notes.append("For a phrase or word: the mean over its queries of the sum over its keys.")
        if view.measure == "rollout":
            notes.append("Rollout combines all heads; the weights of each head are shown.")
        if kind == "decoder" and not np.nan_to_num(weights).any():
            notes.append("In a decoder a token sees only itself and earlier tokens.")
        if names is not None:
            notes.append(literal(marks_note(names)))
        if notes:
            st.caption(" ".join(notes))
    with ranking:
        best_heads(view, weights)
    with pairs:
        best_pairs(view, whole.arranged(view.queries, view.keys), (query_span, key_span))
    random_tokens(view)
    take(view, {"head_grid": "All heads"}, csv=partial(as_csv, weights), numbers="All heads")
verdict.show(view)
