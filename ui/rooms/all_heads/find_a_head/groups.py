"""The pair that heads are searched for: a token or a phrase on either side."""

from typing import Any

import streamlit as st

from attnviz.figures.labels import labels_at
from attnviz.records import Axis
from ui.choice import widgets
from ui.shell.view import View

Span = tuple[int, int]  # position of the first token of a group, and the position after its last


def span_of(axis: Axis, first: int, last: int | None) -> Span:
    """The tokens from the axis entry of one position to that of another, or of the first entry alone."""
    start, end = (axis.index(first if position is None else position) or 0 for position in (first, last))
    return int(axis.spans[start, 0]), int(axis.spans[max(start, end), 1])


def pick_group(view: View, side: str, axis: Axis, span: Span) -> None:
    """Two fields for one side of the pair: its token, and the last token if it is a phrase."""
    names = dict(zip(axis.positions.tolist(), labels_at(axis), strict=True))
    first, last = (int(axis.positions[axis.index(position) or 0]) for position in (span[0], span[1] - 1))
    places: dict[str, Any] = {side: first, f"{side}_to": last}
    shown = view.selection.but(**places)
    st.selectbox(
        **widgets.field(
            side,
            shown,
            format_func=names.__getitem__,
            help=f"The {side} of the pair; typing finds a token.",
            options=list(names),
        )
    )
    st.selectbox(
        **widgets.field(
            f"{side}_to",
            shown,
            format_func=names.__getitem__,
            help=f"Makes the {side} a phrase that ends here; the same token again for one alone.",
            options=[name for name in names if name >= first],
        )
    )
