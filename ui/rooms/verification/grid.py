"""One comparison in every layer and head."""

from dataclasses import replace

import streamlit as st

from attnviz.figures import draw_errors
from attnviz.records import WEIGHTS
from ui.rooms.verification.comparisons import title
from ui.shell.chart import chart
from ui.shell.verdict import report_on
from ui.shell.view import View
from ui.words.findings import power

# Checks with a difference for each head, which the grid can show.
OF_HEADS = ("attention weights", "norm-based weights", "head outputs", "queries", "keys", "values")


def grid(view: View) -> None:
    """One comparison in every layer and head."""
    report, recorded = report_on(view.selection)
    there = [
        check.name for check in report.checks if check.name in OF_HEADS and view.kind in check.differences
    ]
    name = st.selectbox(
        "Comparison",
        there,
        index=there.index(WEIGHTS),
        format_func=str.capitalize,
        key="compared",
        help="Which comparison the cells show.",
    )
    check = report.check(name)
    of_kind = replace(
        check,
        differences={view.kind: check.differences[view.kind]},
        tolerances={view.kind: check.tolerances[view.kind]},
    )
    _, layer, head = of_kind.worst
    sentence = (
        f"differ most, relative to their tolerance, in layer {layer}, head {head}: {power(of_kind.difference)}"
        if of_kind.difference
        else "are bit-identical in every layer and head"
    )
    st.markdown(f"**{title(name)} {sentence}**" + " (as recorded)" * recorded)
    chart(
        draw_errors(check, kind=view.kind, picked=view.selection.place, theme=view.theme),
        key="errors",
        alt=f"Largest difference of {name} for every layer and head, beside its tolerance",
    )
    st.caption(
        f"Colours are powers of ten of the difference divided by its tolerance; hover over a cell or tap it for both. "
        f"Differences are measured in: {check.unit}. The outlined cell is the selected head."
    )
