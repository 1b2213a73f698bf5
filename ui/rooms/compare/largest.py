"""The largest changes from A to B, by pair and by row."""

import numpy as np
import streamlit as st

from attnviz.figures.comparison import MOST_CHANGES, entry_labels
from attnviz.figures.numbers import number_text, signed_text
from attnviz.heads.comparison import Alignment, Change, Comparison
from attnviz.records import bare
from ui.choice import state
from ui.components.ranked_list import Row, ranked_list
from ui.rooms.compare.zoom import pick
from ui.shell.view import View
from ui.words.findings import name
from ui.words.literal import literal, quoted


def entry_name(alignment: Alignment, entry: int) -> str:
    """An entry of A, with its counterpart in B if that differs, in Markdown."""
    here, there = alignment.pairs[entry]
    written = literal(name(alignment.first, int(alignment.first.positions[here])))
    if there < 0 or bare(alignment.first.labels[here]) == bare(alignment.second.labels[there]):
        return written
    return f"{written} (in B {quoted(alignment.second.labels[there])})"


def _amount(change: Change) -> str:
    """From what to what, and by how much where both would be written alike."""
    first, second = number_text(change.first), number_text(change.second)
    return f"{first} → {second}" if first != second else f"{first}, {signed_text(change.difference)}"


def largest_changes(view: View, comparison: Comparison, picked: tuple[int, int]) -> None:
    """The cells that differ most; a click selects."""
    changes = comparison.largest(MOST_CHANGES)
    queries, keys = entry_labels(comparison.queries), entry_labels(comparison.keys)
    changed_cells = [
        (int(comparison.queries.positions(0)[change.query]), int(comparison.keys.positions(0)[change.key]))
        for change in changes
    ]
    at = comparison.queries.index(picked[0]), comparison.keys.index(picked[1])
    st.markdown("**Largest changes, A → B**")
    ranked_list(
        [
            Row(
                text=queries[change.query],
                key=keys[change.key],
                amount=_amount(change),
                length=abs(change.difference / changes[0].difference),
                picked=(change.query, change.key) == at,
            )
            for change in changes
        ],
        name="Largest changes from A to B",
        on_pick=lambda row: pick(changed_cells[row]),
        theme=view.theme,
        key="changes",
    )


def changed_rows(view: View, comparison: Comparison, query: int) -> None:
    """The queries whose rows differ most; a click selects."""
    change, order = comparison.row_change, most_changed(comparison)
    labels, positions = entry_labels(comparison.queries), comparison.queries.positions(0)
    st.markdown("**Queries whose attention differs most**")
    ranked_list(
        [
            Row(
                text=labels[row],
                amount=number_text(float(change[row])),
                length=float(change[row] / change[order[0]]),
                picked=row == comparison.queries.index(query),
            )
            for row in order
        ],
        name="Queries by how much of their attention differs",
        on_pick=lambda row: state.change(query=int(positions[order[row]]), key=None),
        theme=view.theme,
        key="changed_rows",
    )
    st.caption(rows_note(comparison))


def most_changed(comparison: Comparison) -> list[int]:
    """Rows of the queries that differ at all, largest difference first."""
    change = np.nan_to_num(comparison.row_change)
    return [int(row) for row in np.argsort(-change, kind="stable")[:MOST_CHANGES] if change[row] > 0]


def rows_note(comparison: Comparison) -> str:
    """Explains a row's number; a share only if weights sum to 1."""
    is_share = ": the share of its attention that goes elsewhere in B" * (
        comparison.first.measure == "weights" and comparison.rows_are_whole
    )
    return f"Half the sum of a row's differences{is_share}, including keys without a partner."
