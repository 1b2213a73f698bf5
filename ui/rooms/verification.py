"""Are these numbers the model's own? Every comparison for the sentence at hand."""

from dataclasses import dataclass, field, replace

import numpy as np
import streamlit as st

from attnviz.figures import draw_errors
from attnviz.figures.labels import isolated
from attnviz.figures.numbers import power_text
from attnviz.records import LONG, WEIGHTS, Check, VerificationReport
from ui.choice import state
from ui.choice.presets import offered_presets
from ui.choice.selection import Selection
from ui.part import Part, Picture, Row, Sheet
from ui.runtime import cache
from ui.session import of_session
from ui.shell.chart import chart
from ui.shell.table import whole_rows
from ui.shell.verdict import RECORDED, headline, is_there, largest, place, recorded_outcome, report_on
from ui.shell.view import View
from ui.words.findings import power
from ui.words.glossary import linked
from ui.words.literal import literal, quoted
from ui.words.score_formula import capped_latex

# What is compared with the model's own numbers, by check; for the file check, its reason says so.
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
# Checks with a difference for each head, which the grid can show.
OF_HEADS = ("attention weights", "norm-based weights", "head outputs", "queries", "keys", "values")


def lead(view: View) -> None:
    """What is compared, and the formula."""
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
        f"{linked('Softmax')} turns their {linked('Score', 'scores')} into {linked('Weight', 'weights')}, with which the "
        f"{linked('Value', 'values')} are averaged."
    )


def verified(view: View) -> View | None:
    """The view, once there is a verdict on it; where it cannot be had, one sentence says why for all that follows."""
    if cache.is_long(view.selection.source) and not is_there(view.selection):
        return None
    report_on(view.selection)
    return view


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


def row(view: View) -> None:
    """The numbers of the selected query, from score to weight, ours and the model's side by side."""
    selection, trace = view.selection, view.trace
    if len(view.query_tokens) > LONG:
        st.caption(f"A row from its scores to its weights is shown of texts of up to {LONG:,} tokens.")
        return
    pattern = trace.pattern(*selection.place, view.kind)
    query = view.query
    scores, ours = trace.scores(*selection.place, view.kind)[query], pattern.weights[query]
    sees_any = bool(np.isfinite(scores).any())
    exponentials = np.exp(scores - scores.max()) if sees_any else np.zeros_like(scores)
    attention = trace.attention(selection.layer, view.kind)
    scale = attention.scale
    st.markdown(
        f"**The row of {quoted(pattern.queries.labels[query])} (token {query}) in layer "
        f"{selection.layer}, head {selection.head}, from scores to weights**"
    )
    bias = "" if attention.bias is None else " + b_{ij}"  # in T5 by distance, in DeBERTa by content too
    product = capped_latex(rf"{scale:.4g} \; q_i \cdot k_j", attention.softcap)
    st.latex(rf"s_{{ij}} = {product}{bias}")
    st.latex(r"\text{weight}_{ij} = \frac{e^{s_{ij} - m}}{\sum_k e^{s_{ik} - m}}")
    d_head = trace.query(*selection.place, view.kind).shape[1]
    factor = f"; {scale:.4g} is 1 / √{d_head}" if np.isclose(scale, d_head**-0.5) else ""
    st.caption(
        f"Here i = {query}, the row's largest score m is {scores.max():.4f}, the exponentials sum to "
        f"{exponentials.sum():.4f} and the weights to {ours.sum():.6f}{factor}."
        if sees_any
        else f"Here i = {query}; this query may see no key, so it has no scores and its weights are 0."
    )
    columns: dict[str, object] = {
        "key": [f"{position}  {isolated(label)}" for position, label in enumerate(pattern.keys.labels)],
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
        columns |= {
            "the model's": theirs,
            "difference": [power_text(float(apart)) for apart in np.abs(ours - theirs)],
        }
    st.dataframe(
        columns,
        hide_index=True,
        height=whole_rows(len(ours)),
        column_config={
            "score s": st.column_config.NumberColumn(format="%.4f"),
            "exp(s − m)": st.column_config.NumberColumn(format="%.6f"),
            "ours": st.column_config.NumberColumn(format="%.7f"),
            "the model's": st.column_config.NumberColumn(format="%.7f"),
            "difference": st.column_config.TextColumn(alignment="right"),
        },
        key="row",
    )


@dataclass(slots=True)
class Verified:
    """The results of the comparisons for the examples, by model."""

    by_model: dict[str, list[dict[str, object]]] = field(default_factory=dict)


def every_preset(view: View) -> None:
    """The button that runs the comparisons for each example sentence, and their results."""
    if view.selection.bundle:
        return
    model = view.selection.model
    verified = of_session(Verified).by_model
    if st.button(
        "Verify every preset",
        icon=":material/fact_check:",
        key="verify_presets",
        on_click=state.hold,
        help="Makes the same comparisons for each of the example sentences.",
    ):
        progress = st.progress(0.0)
        rows = []
        presets = offered_presets(model, fills_blanks=True)
        for number, preset in enumerate(presets):
            progress.progress(number / len(presets), text=f"{literal(preset.name)} …")
            rows.append(_verify(Selection(model=model, text=preset.text, cut=True)))
        progress.empty()
        verified[model] = rows
    if model in verified:
        n_passed = sum(row["passed"] == "yes" for row in verified[model])
        st.markdown(f"**{n_passed} of {len(verified[model])} passed.**")
        st.table(verified[model])


def _verify(selection: Selection) -> dict[str, object]:
    report = cache.report(selection.source)
    return {
        "sentence": literal(selection.text),
        "tokens": len(cache.trace(selection.source).tokens),
        "comparisons": len(report.checks),
        "weights": largest(report.max_abs_error),
        "last hidden state": largest(report.check("last hidden state").difference),
        "passed": "yes" if report.passed else "**no**",
    }


PART = Part(
    name="Verification",
    address="verification",
    question="Are these numbers the model's own?",
    longest=8192,
    sheets=(
        Sheet(
            strip=lead,
            screen=verified,
            rows=(
                checks,
                Row(
                    Picture(
                        "errors",
                        "Differences of all heads",
                        "cell colour: largest difference from the model's attention weights",
                        grid,
                    ),
                    row,
                    widths=(2, 3),
                ),
                every_preset,
            ),
        ),
    ),
)
