"""What is exported of a long text: some rows as a table, and a page with the places that the visitor has looked at."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import streamlit as st

from attnviz.records import LONG, Kind
from attnviz.viewer.held import Question, noted
from attnviz.viewer.page import stage_page, trace_facts
from ui.runtime import head_cache
from ui.runtime.source import Source
from ui.session import of_session
from ui.shell.view import View

MOST_ROWS = 256
"""Rows of a long text's matrix in one table: 8,192 keys of each are 20 MB."""


@dataclass(slots=True)
class Visited:
    """What this visitor's viewer has asked about the long text that it shows."""

    text: tuple[Source, Kind] | None = None
    asked: list[Question] = field(default_factory=list)

    def of(self, view: View) -> list[Question]:
        """What was asked about this text; what was asked about another one is forgotten."""
        text = replace(view.selection.source, layers=0), view.kind
        if text != self.text:
            self.text, self.asked = text, []
        return self.asked

    def note(self, view: View, what: str, query: Mapping[str, Any]) -> None:
        """Takes a question that was answered."""
        if view.trace.is_long(view.kind):
            self.asked = noted(self.of(view), what, query)


_SEEN = re.compile(r"(\d{1,6})\.(\d{1,6})\.(\d{1,6})")


def rows_in_sight(view: View) -> slice:
    """The rows of a long text's matrix that the visitor has zoomed to, or that of the selected query."""
    if seen := _SEEN.fullmatch(view.selection.seen):
        first, n_row = int(seen[1]), int(seen[3])
        if n_row and first < len(view.query_tokens):
            return slice(first, min(first + min(n_row, MOST_ROWS), len(view.query_tokens)))
    return slice(view.query, view.query + 1)


def rows_named(rows: slice) -> str:
    """What the table is called."""
    return f"Row {rows.start}" if rows.stop == rows.start + 1 else f"Rows {rows.start} to {rows.stop - 1}"


def rows_csv(view: View, rows: slice) -> bytes:
    """Some rows of the matrix of the selected head."""
    pattern = view.trace.pattern(*view.selection.place, view.kind, measure=view.measure_of_heads, rows=rows)
    return pattern.csv(scores=view.selection.show == "scores")


def _page(view: View) -> bytes:
    selection = view.selection
    choices = {
        "measure": selection.show,
        **{name: getattr(selection, name) for name in ("colour", "pool", "clip", "seen")},
    }
    page = stage_page(
        view.trace,
        layer=selection.layer,
        head=selection.head,
        kind=view.kind,
        query=view.query,
        key=view.key,
        facts=trace_facts(view.trace),
        choices=choices,
        visited=of_session(Visited).of(view),
        read=partial(head_cache.overview, selection.source, view.kind),
    )
    return page.encode()


def page_button(view: View, *, stem: str) -> None:
    """A button that saves the stage as a page, made when it is clicked."""
    st.download_button(
        "Download page (.html)",
        data=partial(_page, view),
        file_name=f"{stem}.html",
        mime="text/html",
        on_click="ignore",
        icon=":material/html:",
        width="stretch",
        key="take_page",
        help="A page that opens without a network, with the text, the overview of this head and the places that you have looked at. "
        f"Bundles are made of texts of up to {LONG:,} tokens.",
    )
