"""Every comparison of the drawn numbers with the model's own: its difference, tolerance and reason."""

import streamlit as st

from attnviz.records import Check, VerificationReport
from ui.shell.verdict import RECORDED, headline, place, recorded_outcome, report_on
from ui.shell.view import View
from ui.words.findings import power
from ui.words.literal import literal

# What is compared with the model's own numbers, by check; for the file check, its reason says so. Not a docstring, which
# Streamlit would show on the page.
WHAT = {
    "tokens": "Token ids, and those that the tokenizer gives for the text",
    "labels": "The label of each token, and its entry in the tokenizer's vocabulary",
    "queries": "Query vectors of every head",
    "keys": "Key vectors of every head",
    "values": "Value vectors of every head",
    "scale": "The factor on q · k",
    "attention mask": "Which keys a query may see",
    "score bias": "What the family adds to scores for relative positions",
    "scores": "What the softmax gets, of every head: where the family has more than scale and bias in its formula, or computes it in its own class",
    "attention weights": "The matrix of every head, as it is drawn",
    "norm-based weights": "‖w·v·W_O‖ of every head, and the lengths of the vectors that the model's W_O makes",
    "head outputs": "The weighted mean of the values, of every head",
    "output after W_O": "What all heads add up to through W_O and its bias",
    "last hidden state": "What the whole model returns",
}

# What the comparisons on a text cannot detect.
SHARED = (
    "Both runs share all that is not attention: embeddings, positions, norms and MLPs. What these compute wrongly is wrong in both, and "
    "no comparison here can see it: a model whose module left out, say, its rotary positions would still pass."
)


def checks(view: View) -> None:
    """Every comparison with its difference, tolerance and reason."""
    report, recorded = report_on(view.selection)
    if recorded:
        st.markdown(f"**{RECORDED}: {recorded_outcome(view.selection, report)}**")
    else:
        st.markdown(f"**{headline(report)}**")
        st.caption(SHARED)
    with st.container(key="comparisons"):
        st.table(
            [
                {
                    "compared": f"**{title(check.name)}.** {WHAT.get(check.name) or literal(check.reason)}",
                    "result": _result(check, recorded=recorded),
                    "largest difference": _largest(check),
                    "tolerance": power(check.tolerance),
                }
                for check in report.checks
            ]
        )
    for name, reason in report.not_compared.items():
        st.caption(f"**{title(name)}** are not compared, and not shown on any page: {literal(reason)}")
    for reason, names in _reasons(report).items():
        st.caption(f"**{title(', '.join(names))}.** {literal(reason)}")
    source = report.provenance
    st.caption(
        "The largest difference is the one that is largest relative to its tolerance, of all layers and heads. "
        f"{literal(source.model)}, revision {literal(source.revision)}, {source.dtype}; "
        + ", ".join(f"{name} {literal(number)}" for name, number in source.versions.items())
        + "."
    )


def title(name: str) -> str:
    return name[0].upper() + name[1:]


def _largest(check: Check) -> str:
    """The difference that is largest relative to its tolerance, with its unit and place."""
    if check.difference == 0:
        return "bit-identical" if check.tolerance else "0"
    share = f" of {check.unit.removeprefix('share of ')}" if check.unit.startswith("share of ") else ""
    return f"{power(check.difference)}{share}" + (f", {place(check)}" if place(check) else "")


def _reasons(report: VerificationReport) -> dict[str, list[str]]:
    """Each reason with the names of its checks, except the file's, which is in its row."""
    reasons: dict[str, list[str]] = {}
    for check in report.checks:
        if check.name in WHAT:
            reasons.setdefault(check.reason, []).append(check.name)
    return reasons


def _result(check: Check, *, recorded: bool) -> str:
    if recorded:
        return "passed, as recorded" if check.passed else ":red[failed, as recorded]"
    return ":green[:material/check_circle: passed]" if check.passed else ":red[:material/cancel: failed]"
