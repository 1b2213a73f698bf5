"""The verdict: whether attnviz's attention gives the model's numbers for this text."""

import streamlit as st

from attnviz.records import VerificationReport
from ui.state import Selection
from ui.words import power

PAGE = "pages/verification.py"


def headline(report: VerificationReport) -> str:
    """Passed or not, the largest difference of a weight, and its tolerance."""
    rung = report.weight_rung
    numbers = f"largest difference {power(rung.difference)}, tolerance {power(rung.tolerance)}"
    if report.passed:
        return f":green[Checked:] {numbers}"
    failed = " and ".join(one.name for one in report.rungs if not one.passed)
    return f":red[Not the model's {failed}:] {numbers}"


def show(report: VerificationReport, selection: Selection) -> None:
    """The headline in one line, which leads to the Verification page."""
    st.page_link(
        PAGE,
        label=headline(report),
        icon=":material/check_circle:" if report.passed else ":material/cancel:",
        query_params=selection.to_params(),
        help="attnviz's own attention against the model's, for this text. Click to see how it was checked.",
    )
