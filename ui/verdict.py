"""The verdict: whether attnviz's attention gives the model's numbers for this text."""

import streamlit as st

from attnviz.records import VerificationReport
from ui.state import Selection
from ui.words import power

PAGE = "pages/verification.py"


def headline(report: VerificationReport) -> str:
    """Passed or not, with the largest difference and the tolerance: of the weights, or of what failed first."""
    failed = [rung for rung in report.rungs if not rung.passed]
    rung = failed[0] if failed else report.weight_rung
    verdict = f":red[Not the model's {rung.name}:]" if failed else ":green[Checked:]"
    return f"{verdict} largest difference {power(rung.difference)}, tolerance {power(rung.tolerance)}"


def show(report: VerificationReport, selection: Selection) -> None:
    """The headline in one line, which leads to the Verification page."""
    st.page_link(
        PAGE,
        label=headline(report),
        icon=":material/check_circle:" if report.passed else ":material/cancel:",
        query_params=selection.to_params(),
        help="attnviz's own attention against the model's, for this text. Click to see how it was checked.",
    )
