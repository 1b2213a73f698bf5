"""Clicks on the heatmap and its labels, and a description of the cell under the pointer."""

from collections.abc import Callable
from typing import Any

import numpy as np

from attnviz.figures.heatmap import MEASURE_NAMES, MOST_COUNTED
from attnviz.figures.labels import label_at, labels_at
from attnviz.figures.numbers import number_text
from attnviz.figures.theme import THEMES, ThemeName
from attnviz.records import AttentionPattern
from ui.components.plotly_figure import Listener


def heatmap_events(
    pattern: AttentionPattern,
    *,
    show: str,
    picked: tuple[int, int],
    on_pick: Callable[[int, int], None],
    on_label: Callable[[str, int], None],
    theme: ThemeName,
) -> Listener:
    """Calls ``on_pick`` with the query and key of a clicked cell.

    Args:
        on_label: called with "query" or "key" and the position of a row or column whose label is clicked.
    """

    def take(sent: Any) -> None:
        match sent:
            case [int(query), int(key)] if (
                query in pattern.queries.positions and key in pattern.keys.positions
            ):
                on_pick(query, key)
            case ["query", int(position)] if position in pattern.queries.positions:
                on_label("query", position)
            case ["key", int(position)] if position in pattern.keys.positions:
                on_label("key", position)

    cell = _cell(pattern, picked)
    return Listener(
        name="heatmap_events",
        data={
            "queries": labels_at(pattern.queries),
            "keys": labels_at(pattern.keys),
            "number": "score" if show == "scores" else MEASURE_NAMES[pattern.measure],
            "queryPositions": pattern.queries.positions.tolist(),
            "keyPositions": pattern.keys.positions.tolist(),
            "normalisers": _normalisers(pattern),
            "picked": _picked(pattern, cell),
            "pickedCell": cell,
            "zooms": max(pattern.weights.shape) > MOST_COUNTED,
            "colour": THEMES[theme].quiet,
        },
        take=take,
    )


def _normalisers(pattern: AttentionPattern) -> list[float | None]:
    """Score minus ln(weight) of each row, the same in all its cells; None for a row without weights or scores."""
    if pattern.scores is None:
        return [None for _ in pattern.queries.positions]
    strongest = pattern.weights.argmax(axis=1)
    rows = np.arange(len(strongest))
    weights, scores = pattern.weights[rows, strongest], pattern.scores[rows, strongest]
    return [
        float(score - np.log(weight)) if weight > 0 else None
        for score, weight in zip(scores, weights, strict=True)
    ]


def _cell(pattern: AttentionPattern, picked: tuple[int, int]) -> tuple[int, int] | None:
    """Row and column of the selected cell; None while it is not shown."""
    row, column = pattern.queries.index(picked[0]), pattern.keys.index(picked[1])
    return None if row is None or column is None else (row, column)


def _picked(pattern: AttentionPattern, cell: tuple[int, int] | None) -> str:
    """The selected cell in words; empty while it is not shown."""
    if cell is None:
        return ""
    row, column = cell
    query = label_at(pattern.queries.labels[row], pattern.queries.positions[row])
    key = label_at(pattern.keys.labels[column], pattern.keys.positions[column])
    sentence = f"query {query} → key {key}: "
    sentence += f"{MEASURE_NAMES[pattern.measure]} {number_text(float(pattern.weights[row, column]))}"
    return (
        sentence
        if pattern.scores is None
        else f"{sentence}, score {number_text(float(pattern.scores[row, column]))}"
    )
