"""The selected query and key of one head, on the pages that look inside a head: the query as a chip, the key from a list."""

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import streamlit as st

from attnviz.figures.labels import isolated, label_at
from attnviz.records import SPACE
from ui.choice import state, widgets
from ui.components.token_strip import token_strip
from ui.runtime import cache
from ui.shell.view import View
from ui.words.findings import strongest_key
from ui.words.literal import literal

_AROUND = 12
"""Tokens on each side of the selected one that are shown of a long text."""


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
    """Draws the chips that select or mask a query, of a long text a field for it; returns query and key of the pair."""
    if view.trace.is_long(view.kind):
        pick_in_text(view, "query", view.query)
        return view.query, view.key
    own = view.trace.pattern(*view.selection.place, view.kind)
    key = strongest_key(own, view.query) if view.selection.key is None else view.selection.key
    chips(view, own.weights, key)
    return view.query, key


def pick_in_text(view: View, side: Literal["query", "key"], first: int, stop: int | None = None) -> None:
    """A field for the position of the query or key in a long text, and the words around it.

    Args:
        stop: the position after the end of a phrase, for which there is a second field; None for single tokens.
    """
    tokens = view.query_tokens if side == "query" else view.key_tokens
    last = first if stop is None else stop - 1
    begin, end = max(0, first - _AROUND), min(len(tokens), last + 1 + _AROUND)

    def words(start: int, stop: int) -> str:
        text = tokens.label(start, stop).replace(SPACE, " ").strip() if start < stop else ""
        return literal(isolated(text)) if text else ""

    def choose(**chosen: int) -> None:
        state.change(**({"key": None} | chosen if side == "query" and stop is None else chosen))

    with st.container(horizontal=True, vertical_alignment="bottom", key=f"{side}_in_text"):
        shown = view.selection.but(**{side: first, f"{side}_to": last})
        ends = {side: 0} if stop is None else {side: 0, f"{side}_to": first}
        for name, least in ends.items():
            field = widgets.field(name, shown, choose, min_value=least, max_value=len(tokens) - 1)
            st.number_input(**field, width=140)
        before, picked, after = words(begin, first), words(first, last + 1), words(last + 1, end)
        st.markdown(f"{'… ' * (begin > 0)}{before} **{picked}** {after}{' …' * (end < len(tokens))}")


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
