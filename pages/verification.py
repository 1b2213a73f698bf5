"""Is what is shown what the model computes? Every comparison for the sentence at hand."""

import numpy as np
import streamlit as st

from attnviz.figures import draw_errors
from attnviz.records import WEIGHTS, Check, VerificationReport
from ui.choice import state
from ui.choice.presets import PRESETS
from ui.choice.selection import Selection
from ui.export import bundles
from ui.export.take import take
from ui.page import errors
from ui.page.frame import frame
from ui.page.verdict import RECORDED, headline, place, recorded_outcome, report_on
from ui.page.view import View
from ui.words.findings import power
from ui.words.glossary import linked
from ui.words.literal import literal, quoted
from ui.work import cache

# What is compared with the model's own numbers, by check. Streamlit would show a docstring here on the page.
WHAT = {
    "tokens": "Token ids, and those that the tokenizer gives for the text",
    "labels": "The label of each token, and its entry in the tokenizer's vocabulary",
    "queries": "Query vectors of every head",
    "keys": "Key vectors of every head",
    "values": "Value vectors of every head",
    "scale": "The factor on q · k",
    "attention mask": "Which keys a query may see",
    "score bias": "What the family adds to scores for relative positions",
    "attention weights": "The matrix of every head, as it is drawn",
    "norm-based weights": "‖w·v·W_O‖ of every head, and the lengths of the vectors that the model's W_O makes",
    "head outputs": "The weighted mean of the values, of every head",
    "output after W_O": "What all heads add up to through W_O and its bias",
    "last hidden state": "What the whole model returns",
}
# What differs head by head and can be shown in the grid.
OF_HEADS = ("attention weights", "norm-based weights", "head outputs", "queries", "keys", "values")


def checks(view: View) -> None:
    """Every comparison with its difference, tolerance and reason."""
    report, recorded = report_on(view.selection)
    if recorded:
        st.markdown(f"**{RECORDED}: {recorded_outcome(report)}**")
        bundles.compare_button(view.selection.bundle, key="compare_bundle_verdict")
    else:
        st.markdown(f"**{headline(report)}**")
    st.table(
        [
            {
                "compared": f"**{_title(one.name)}.** {WHAT[one.name]}",
                "result": _result(one, recorded=recorded),
                "largest difference": _largest(one),
                "tolerance": power(one.tolerance),
            }
            for one in report.checks
        ]
    )
    for name, reason in report.not_compared.items():
        st.caption(f"**{_title(name)}** are not compared, and not shown on any page: {literal(reason)}")
    for reason, names in _reasons(report).items():
        st.caption(f"**{_title(', '.join(names))}.** {literal(reason)}")
    source = report.provenance
    st.caption(
        "The largest difference is the one that is largest beside its tolerance, of all layers and heads. "
        f"{literal(source.model)}, revision {literal(source.revision)}, {source.dtype}; "
        + ", ".join(f"{name} {literal(number)}" for name, number in source.versions.items())
        + "."
    )


def _title(name: str) -> str:
    return name[0].upper() + name[1:]


def _largest(check: Check) -> str:
    """The difference that is largest beside its tolerance, what it is a share of, and where it is."""
    if check.difference == 0:
        return "0"
    share = f" of {check.unit.removeprefix('share of ')}" if check.unit.startswith("share of ") else ""
    return f"{power(check.difference)}{share}" + (f", {place(check)}" if place(check) else "")


def _reasons(report: VerificationReport) -> dict[str, list[str]]:
    """Each reason with the names of the checks that have it."""
    found: dict[str, list[str]] = {}
    for one in report.checks:
        found.setdefault(one.reason, []).append(one.name)
    return found


def _result(check: Check, *, recorded: bool) -> str:
    if recorded:
        return "passed, as recorded" if check.passed else ":red[failed, as recorded]"
    return ":green[:material/check_circle: passed]" if check.passed else ":red[:material/cancel: failed]"


def grid(view: View) -> None:
    """One comparison in every layer and head."""
    report, recorded = report_on(view.selection)
    there = [one.name for one in report.checks if one.name in OF_HEADS and view.kind in one.differences]
    name = st.selectbox(
        "Comparison",
        there,
        index=there.index(WEIGHTS),
        format_func=str.capitalize,
        key="compared",
        help="Which comparison the cells show.",
    )
    check = report.check(name)
    found = check.differences[view.kind]
    layer, head = (int(one) for one in np.unravel_index(found.argmax(), found.shape))
    st.markdown(
        f"**{_title(name)} differ most in layer {layer}, head {head}: {power(float(found.max()))}**"
        + " (as recorded)" * recorded
    )
    st.plotly_chart(
        draw_errors(
            check, kind=view.kind, picked=(view.selection.layer, view.selection.head), theme=view.theme
        ),
        theme=None,
        key="errors",
        config={"displayModeBar": False},
        alt=f"Largest difference of {name} for every layer and head, beside its tolerance",
    )
    st.caption(
        f"Colours are powers of ten of the difference divided by its tolerance; hover over a cell for both. "
        f"Differences are measured in: {check.unit}. The outlined cell is the selected head."
    )


def row(view: View) -> None:
    """The numbers of the picked query, from score to weight, ours and the model's side by side."""
    selection, trace = view.selection, view.trace
    pattern = trace.pattern(selection.layer, selection.head, view.kind)
    query = view.query
    scores, ours = trace.scores(selection.layer, selection.head, view.kind)[query], pattern.weights[query]
    exponentials = np.exp(scores - scores.max())
    attention = trace.attention(selection.layer, view.kind)
    scale = attention.scale
    st.markdown(
        f"**The row of {quoted(pattern.queries.labels[query])} (token {query}) in layer "
        f"{selection.layer}, head {selection.head}, from scores to weights**"
    )
    bias = "" if attention.bias is None else " + b_{ij}"  # what T5 adds for the distance of two tokens
    st.latex(rf"s_{{ij}} = {scale:.4g} \; q_i \cdot k_j{bias}")
    st.latex(r"\text{weight}_{ij} = \frac{e^{s_{ij} - m}}{\sum_k e^{s_{ik} - m}}")
    d_head = trace.query(selection.layer, selection.head, view.kind).shape[1]
    factor = f"; {scale:.4g} is 1 / √{d_head}" if np.isclose(scale, d_head**-0.5) else ""
    st.caption(
        f"Here i = {query}, the row's largest score m is {scores.max():.4f}, the exponentials sum to "
        f"{exponentials.sum():.4f} and the weights to {ours.sum():.6f}{factor}."
    )
    columns: dict[str, object] = {
        "key": [f"{position}  {label}" for position, label in enumerate(pattern.keys.labels)],
        "score s": scores,
        "exp(s − m)": exponentials,
        "ours": ours,
    }
    if selection.bundle:
        st.caption(
            "The bundle does not hold the model, so the model's own weights cannot be shown beside these."
        )
    else:
        theirs = cache.reference_weights(selection.source, selection.layer, view.kind)[selection.head, query]
        columns |= {"the model's": theirs, "difference": np.abs(ours - theirs)}
    st.dataframe(
        columns,
        hide_index=True,
        column_config={
            "score s": st.column_config.NumberColumn(format="%.4f"),
            "exp(s − m)": st.column_config.NumberColumn(format="%.6f"),
            "ours": st.column_config.NumberColumn(format="%.7f"),
            "the model's": st.column_config.NumberColumn(format="%.7f"),
            "difference": st.column_config.NumberColumn(format="%.1e"),
        },
        key="row",
    )


def every_preset(view: View) -> None:
    """The comparisons for each example sentence, on a button."""
    model = view.selection.model
    verified: dict[str, list[dict[str, object]]] = st.session_state.setdefault("verified_presets", {})
    if st.button(
        "Verify every preset",
        icon=":material/fact_check:",
        key="verify_presets",
        on_click=state.hold,
        help="Compares everything with the model's own numbers for each of the example sentences.",
    ):
        progress = st.progress(0.0)
        rows = []
        for number, preset in enumerate(PRESETS):
            progress.progress(number / len(PRESETS), text=f"{literal(preset.name)} …")
            rows.append(_verify(Selection(model=model, text=preset.text, cut=True)))
        progress.empty()
        verified[model] = rows
    if model in verified:
        n_passed = sum(one["passed"] == "yes" for one in verified[model])
        st.markdown(f"**{n_passed} of {len(verified[model])} passed.**")
        st.table(verified[model])


def _verify(selection: Selection) -> dict[str, object]:
    report = cache.report(selection.source)
    return {
        "sentence": literal(selection.text),
        "tokens": len(cache.trace(selection.source).tokens),
        "comparisons": len(report.checks),
        "weights": power(report.max_abs_error),
        "last hidden state": power(report.check("last hidden state").difference),
        "passed": "yes" if report.passed else "**no**",
    }


view = frame("Verification")
st.markdown("#### Is what is shown what the model computes?")
st.markdown(
    "These numbers come from a file. What the file says of them stands below as recorded, until its text is run again on "
    "the same weights."
    if view.selection.bundle
    else "The model runs on attnviz's own scaled dot-product attention. For each text the same model, with the same "
    "parameters, runs once more on the attention function that the transformers library has for its family, and each "
    "layer is compared as it passes."
)
st.latex(r"\text{attention}(Q, K, V) = \text{softmax}\!\left(\frac{Q K^\top}{\sqrt{d_k}}\right) V")
st.caption(
    f"Vaswani et al. 2017, arXiv:1706.03762, equation 1. Each {linked('Query')} and {linked('Key')} has $d_k$ numbers; the "
    f"{linked('Softmax')} makes {linked('Weight', 'weights')} of their {linked('Score', 'scores')}, with which the "
    f"{linked('Value', 'values')} are averaged."
)
with errors.explained():
    checks(view)
    left, right = st.columns([2, 3], gap="medium")
    with left:
        grid(view)
    with right:
        row(view)
    if not view.selection.bundle:
        every_preset(view)
take(view, {"errors": "Differences of all heads"})
