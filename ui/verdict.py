"""The verdict: whether attnviz's attention gives the model's numbers for this text."""

import streamlit as st

from attnviz.records import VerificationReport
from ui import cache, errors
from ui.selection import Selection
from ui.words import power

PAGE = "pages/verification.py"


def headline(report: VerificationReport, selection: Selection, *, tolerance: bool = True) -> str:
    """Passed or not, with the largest difference and its tolerance: of the weights, or of what failed first."""
    failed = [rung for rung in report.rungs if not rung.passed]
    rung = failed[0] if failed else report.weight_rung
    verdict = f":red[Not the model's {rung.name}:]" if failed else ":green[Checked:]"
    if selection.bundle:
        verdict = f":red[Recorded, not the model's {rung.name}:]" if failed else ":green[Recorded:]"
    allowed = f", tolerance {power(rung.tolerance)}" if tolerance else ""
    return f"{verdict} largest difference {power(rung.difference)}{allowed}"


def in_sidebar(selection: Selection) -> None:
    """The verdict at the sidebar's end, for a page that has no place of its own for it.

    The last thing that a page calls: the check takes as long as reading the text did.
    """
    with st.sidebar, errors.explained(key="cut_verified"):
        show(cache.report(selection.source), selection, tolerance=False)  # for which there is no room


def show(report: VerificationReport, selection: Selection, *, tolerance: bool = True) -> None:
    """The headline in one line, which leads to the Verification page."""
    st.page_link(
        PAGE,
        label=headline(report, selection, tolerance=tolerance),
        icon=":material/check_circle:" if report.passed else ":material/cancel:",
        query_params=selection.to_params(),
        help="attnviz's own attention against the model's, for this text. Click to see how it was checked.",
    )
