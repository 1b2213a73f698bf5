"""The selected query and key of one head, on the pages that look inside a head: the query as a chip, the key from a list."""

from collections.abc import Callable
from typing import Any

import numpy as np
import streamlit as st

from attnviz.figures.labels import label_at
from ui.choice import state, widgets
from ui.components.token_strip import token_strip
from ui.runtime import cache
from ui.shell.view import View
from ui.words.findings import strongest_key


def chips(view: View, weights: np.ndarray, key: int, on_pick: Callable[[int], None] | None = None) -> None:
    """The tokens as chips that select or mask a query.

    Args:
        weights: of every query on every key.
        on_pick: selects a query; None for one that is with its strongest key.
    """
    token_strip(
        view.query_tokens,
        query=view.query,
        key=key,
        weights=weights[view.query] if view.kind != "cross" else None,
        mask_label=cache.mask_label(view.selection.source) if view.kind == "encoder" else None,
        on_pick=on_pick or (lambda position: state.change(query=position, key=None)),
        on_mask=state.mask,
        theme=view.theme,
    )


def pick_query(view: View) -> tuple[int, int]:
    """Draws the chips that select or mask a query; returns query and key of the pair."""
    own = view.trace.pattern(*view.selection.place, view.kind)
    key = strongest_key(own, view.query) if view.selection.key is None else view.selection.key
    chips(view, own.weights, key)
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
