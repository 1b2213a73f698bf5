"""Where does attention go? Queries and keys in two columns, joined by lines, for one head or several."""

from functools import partial

import numpy as np
import streamlit as st

from attnviz.figures.flow import draw_flow
from attnviz.heads.flow import lines_csv
from ui.choice import state
from ui.components.token_flow import token_flow
from ui.rooms.explore.token_flow.controls import MOST_HEADS, controls
from ui.rooms.explore.token_flow.lines import (
    chosen_heads,
    drawn_at_once,
    hidden_lines,
    lines_of,
    note,
    pattern_of,
)
from ui.shell import verdict
from ui.shell.export.take import take
from ui.shell.frame import frame
from ui.shell.view import RENORMALISED, hidden_note
from ui.words.findings import MEASURE_NOTES, finding, place, strongest_key
from ui.words.literal import literal

view = frame("Several heads")
selection = view.selection
chosen = chosen_heads(view)
heads = chosen[:MOST_HEADS]
patterns = [pattern_of(head, view) for head in heads]
matrices = np.stack([pattern.weights for pattern in patterns])
flow = lines_of(matrices, view)
largest = float(matrices.max()) if view.measure == "norms" else 1.0

pattern = view.pattern()
key = strongest_key(pattern, view.query) if selection.key is None else selection.key
with st.container(key="finding"):
    st.markdown(f"**{place(pattern)}: {literal(finding(pattern, view.query, key))}**")
controls(view, heads)
drawn = drawn_at_once(flow, view, key)

entry = {
    "query": view.queries.index(view.query),
    "key": None if selection.key is None else view.keys.index(selection.key),
}.get(selection.lines_of)
axis = view.keys if selection.lines_of == "key" else view.queries


def keep(side: str, position: int) -> None:
    """Takes the token whose lines are kept as the selected one."""
    match side:
        case "query":
            state.change(lines_of=side, query=position, key=None)
        case "key":
            state.change(lines_of=side, key=position)
        case _:
            state.change(lines_of="")


token_flow(
    flow,
    view.queries,
    view.keys,
    heads=[(head.short, head.title) for head in heads],
    largest=max(largest, 1e-9),
    drawn=drawn,
    query=view.query,
    kept=None if entry is None else (selection.lines_of, int(axis.positions[entry])),
    on_keep=keep,
    theme=view.theme,
)
sentences = [
    literal(note(flow, view, largest)),
    hidden_lines(drawn),
    MEASURE_NOTES[view.measure],
    hidden_note(view),
    RENORMALISED * view.is_renormalised,
]
if len(chosen) > len(heads):
    left_out = "; ".join(heads.words for heads in chosen[MOST_HEADS:])
    sentences.append(
        f"Lines of {MOST_HEADS} heads at most are drawn, each in its own colour: without {left_out}."
    )
st.caption(" ".join(filter(None, sentences)))
take(
    view,
    {"token_flow": "Token flow"},
    csv=partial(lines_csv, flow, heads, view.queries, view.keys),
    numbers="Lines",
    drawn=lambda: {
        "Token flow": draw_flow(
            flow, view.queries, view.keys, largest=max(largest, 1e-9), drawn=drawn, theme=view.theme
        )
    },
)
verdict.show(view)
