"""Clicks on the heatmap, and the cell under the pointer in words."""

from collections.abc import Callable

import numpy as np
import streamlit as st

from attnviz.figures.theme import THEMES, ThemeName, isolated
from attnviz.records import AttentionPattern, Tokens
from ui.components import register

_mount = register("heatmap_events")


def heatmap_events(
    pattern: AttentionPattern,
    *,
    chart: str,
    show: str,
    picked: tuple[int, int],
    on_pick: Callable[[int, int], None],
    theme: ThemeName,
) -> None:
    """Connects the chart of this key; ``on_pick`` is called with the query and key of a clicked cell."""

    def take() -> None:
        match st.session_state["heatmap_events"].pick:
            case [int(query), int(key)] if query in pattern.query_position and key in pattern.key_position:
                on_pick(query, key)

    palette = THEMES[theme]
    names = {
        "queries": [_name(pattern.query_tokens, one) for one in pattern.query_position],
        "keys": [_name(pattern.key_tokens, one) for one in pattern.key_position],
    }
    _mount(
        key="heatmap_events",
        data={
            **names,
            "chart": chart,
            "show": show,
            "queryPositions": pattern.query_position.tolist(),
            "keyPositions": pattern.key_position.tolist(),
            "normalisers": _normalisers(pattern),
            "picked": _picked(pattern, picked),
            "colour": palette.quiet,
        },
        on_pick_change=take,
    )


def _name(tokens: Tokens, position: int) -> str:
    return f"{isolated(tokens.labels[position])}·{position}"


def _normalisers(pattern: AttentionPattern) -> list[float | None]:
    """What score - ln(weight) is in each row, the same for all its cells; None for a row without weight."""
    strongest = pattern.weights.argmax(axis=1)
    rows = np.arange(len(strongest))
    weights, scores = pattern.weights[rows, strongest], pattern.scores[rows, strongest]
    return [
        float(score - np.log(weight)) if weight > 0 else None
        for score, weight in zip(scores, weights, strict=True)
    ]


def _picked(pattern: AttentionPattern, picked: tuple[int, int]) -> str:
    """The picked cell in words; empty while it is not shown."""
    rows = np.flatnonzero(pattern.query_position == picked[0])
    columns = np.flatnonzero(pattern.key_position == picked[1])
    if not len(rows) or not len(columns):
        return ""
    cell = rows[0], columns[0]
    query, key = _name(pattern.query_tokens, picked[0]), _name(pattern.key_tokens, picked[1])
    return f"query {query} → key {key}: weight {pattern.weights[cell]:.4f}, score {pattern.scores[cell]:.4f}"
