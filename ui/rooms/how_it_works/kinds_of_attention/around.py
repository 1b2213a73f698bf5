"""A long text under a sliding window: the rows around the selected query, and what a window saves."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import streamlit as st

from attnviz.cost.counting import Layer, Way
from attnviz.effects.masking import under_mask
from attnviz.figures import draw_pattern
from attnviz.figures.cost import WAY_NAMES, quantity_text
from attnviz.figures.numbers import counted, share_text
from attnviz.maths.masks import window_mask
from attnviz.records import LONG, AttentionPattern
from ui.choice import widgets
from ui.rooms.how_it_works.kinds_of_attention.mask import MaskSettings
from ui.shell.chart import chart
from ui.shell.view import View
from ui.words.findings import name
from ui.words.literal import literal

SIDE = 64
"""Queries and keys that are drawn of a long text."""


@dataclass(frozen=True, kw_only=True)  # without slots, for what is computed once
class Around:
    """The rows and columns around the selected query of a long text."""

    view: View

    @classmethod
    def of(cls, view: View) -> "Around":
        """Those of the selected head."""
        return cls(view=view)

    @property
    def reach(self) -> int:
        """How far a token sees to each side."""
        return self.view.selection.of(MaskSettings).reach

    @property
    def has_window(self) -> bool:
        """Whether there is a diagonal for a window to slide along."""
        return self.view.kind != "cross"

    @property
    def rows(self) -> slice:
        """The queries that are drawn."""
        return _around(self.view.query, len(self.view.query_tokens))

    @property
    def columns(self) -> slice:
        """The keys that are drawn."""
        return self.rows if self.has_window else _around(self.view.key, len(self.view.key_tokens))

    @cached_property
    def own(self) -> AttentionPattern:
        """The rows of the model's own matrix, with all keys."""
        return self.view.trace.pattern(*self.view.selection.place, self.view.kind, rows=self.rows)

    @cached_property
    def pattern(self) -> AttentionPattern:
        """The same rows under the window."""
        n_query, n_key = len(self.view.query_tokens), len(self.view.key_tokens)
        near = window_mask(n_query, n_key, self.reach, rows=self.rows).numpy()
        return under_mask(self.view.trace, *self.view.selection.place, near, self.view.kind, rows=self.rows)

    @cached_property
    def kept(self) -> np.ndarray:
        """The share of each row's weight that the window leaves."""
        of_rows: np.ndarray = np.where(self.pattern.allowed, self.own.weights, 0).sum(axis=1)
        return of_rows


def _around(position: int, n_token: int) -> slice:
    """`SIDE` positions with this one in the middle, as far as the text allows."""
    first = max(0, min(position - SIDE // 2, n_token - SIDE))
    return slice(first, min(first + SIDE, n_token))


def controls(view: View) -> None:
    """The width of the window."""
    if view.kind != "cross":
        st.number_input(**widgets.field("reach"), width=180)


def finding(around: Around) -> str:
    """What a window leaves of the selected query's weight."""
    if not around.has_window:
        return ""
    view = around.view
    token = literal(name(around.own.queries, view.query))
    place, reach = view.selection.place, counted(around.reach, "token")
    kept = float(around.kept[view.query - around.rows.start])
    return (
        f"{place.title}: a window of {reach} to each side leaves {share_text(kept)} of the weight of {token}"
    )


def lead(around: Around) -> None:
    """What a window is, what it saves on this text, and what is shown of shorter texts only."""
    if not around.has_window:
        st.caption(f"Masks and the graph are shown for texts of up to {LONG:,} tokens.")
        return
    view = around.view
    n = len(view.key_tokens)
    layer = Layer.of(view.trace, view.selection.layer, view.kind, reach=around.reach)
    width = (1 if layer.causal else 2) * around.reach + 1
    st.markdown(
        f"**Sliding window:** a token sees its neighbours only, so that cells grow with n × width instead of n × n (Beltagy et al. 2020, "
        f"arXiv:2004.05150; Jiang et al. 2023, arXiv:2310.06825). Here n = {n:,} and the width is {width:,}"
        f"{', since the model sees no later token anyway' if layer.causal else ''}."
    )
    ways: dict[Way, str] = {"whole": "n × n", "window": "n × width"}
    held = {way: layer.cost("bytes", way, n, n) for way in ways}
    columns = {
        "": [f"{WAY_NAMES[way]}, {size}" for way, size in ways.items()],
        "cells of one head": [f"{layer.cost('cells', way, n, n) // layer.n_head:,}" for way in ways],
        f"weights of the {layer.n_head} heads": [quantity_text(held[way], "bytes") for way in ways],
    }
    if not view.selection.layers:  # else not all layers are there yet
        n_layer = view.trace.n_layers(view.kind)
        columns[f"of all {n_layer} layers"] = [quantity_text(n_layer * held[way], "bytes") for way in ways]
    st.table(columns, hide_index=True)


def matrices(around: Around) -> None:
    """The cells around the selected query, without and under the window."""
    view = around.view
    patterns = [("The model's own", "mask_before", around.own)]
    if around.has_window:
        patterns += [(f"Sliding window, {around.reach:,} to each side", "mask_after", around.pattern)]
    shown = [(title, key, part_of(pattern, around.columns)) for title, key, pattern in patterns]
    for column, (title, key, pattern) in zip(st.columns(2, gap="medium"), shown, strict=False):
        with column:
            st.markdown(f"**{title}**")
            chart(
                draw_pattern(
                    pattern,
                    colour=view.selection.colour,
                    picked=(view.query, view.key),
                    hatched=True,
                    theme=view.theme,
                ),
                key=key,
                alt=f"{title}, {len(pattern.queries)} queries and {len(pattern.keys)} keys around the selected one",
            )
    n_row, n_column = shown[0][2].weights.shape
    said = (
        f"{n_row} of {len(view.query_tokens):,} queries and {n_column} of {len(view.key_tokens):,} keys; the share after a query is its "
        "weight on keys that are not drawn."
    )
    if around.has_window:
        said += (
            f" Of all weight of these queries the window leaves {share_text(float(around.kept.mean()))}. Other masks, the graph and "
            f"what a mask does to the output are shown for texts of up to {LONG:,} tokens."
        )
    st.caption(said)


def csv(around: Around) -> bytes:
    """The cells that are drawn of the model's own matrix."""
    return part_of(around.own, around.columns).csv()


def part_of(pattern: AttentionPattern, columns: slice) -> AttentionPattern:
    """A pattern of all keys with some of them; the weight of the others is hidden."""
    weights = pattern.weights[:, columns]
    hidden = pattern.weights.sum(axis=1, dtype=np.float64) - weights.sum(axis=1, dtype=np.float64)
    return replace(
        pattern,
        scores=None if pattern.scores is None else pattern.scores[:, columns],
        weights=weights,
        allowed=pattern.allowed[:, columns],
        keys=replace(pattern.keys, spans=pattern.keys.spans[columns]),
        hidden_weight=np.maximum(hidden, 0).astype(np.float32),
    )
