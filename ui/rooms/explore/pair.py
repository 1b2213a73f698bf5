"""The selected query and key of one head, on the pages that look inside a head: the query as a chip, the key from a list."""

from typing import Any

import streamlit as st

from attnviz.figures.labels import label_at
from ui.choice import state, widgets
from ui.components.token_strip import token_strip
from ui.runtime import cache
from ui.shell.view import View
from ui.words.findings import strongest_key


def pick_query(view: View) -> tuple[int, int]:
    """Draws the chips that select or mask a query; returns query and key of the pair."""
    selection, kind = view.selection, view.kind
    own = view.trace.pattern(*selection.place, kind)
    key = strongest_key(own, view.query) if selection.key is None else selection.key
    token_strip(
        own.queries.tokens,
        query=view.query,
        key=key,
        weights=own.weights[view.query] if kind != "cross" else None,
        mask_label=cache.mask_label(selection.source) if kind == "encoder" else None,
        on_pick=lambda position: state.change(query=position, key=None),
        on_mask=state.mask,
        theme=view.theme,
    )
    return view.query, key


def pick(clicked: Any) -> None:
    """Selects the token of a clicked point, bar or label: a query with its strongest key, or a key."""
    match clicked:
        case ["query", int(position)]:
            state.change(query=position, key=None)
        case ["key", int(position), *_]:
            state.change(key=position)
        case _:
            state.hold()


def pick_key(view: View, key: int) -> None:
    """A list of the keys, with the pair's key selected."""
    labels = view.key_tokens.labels
    st.selectbox(
        **widgets.field(
            "key",
            view.selection.but(key=key),
            format_func=lambda position: label_at(labels[position], position),
            options=range(len(labels)),
        ),
        width=200,
    )
