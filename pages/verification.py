"""Is what is shown what the model computes? The ladder of checks for the sentence at hand."""

import numpy as np
import streamlit as st

from attnviz.figures import draw_errors
from ui import cache, errors, state
from ui.frame import View, frame
from ui.glossary import linked
from ui.presets import PRESETS
from ui.selection import Selection
from ui.take import take
from ui.text import literal, quoted
from ui.verdict import headline
from ui.words import power

RUNGS = (
    "Our weights against those the model returns, for every layer and head",
    "Our head outputs against torch's own attention on the same queries, keys and values",
    "What the whole model puts out when it runs on our attention, against its own",
)


def ladder(view: View) -> None:
    """The three rungs with their differences, tolerances and reasons."""
    report = cache.report(view.selection.source)
    st.markdown(f"**{headline(report, view.selection)}**")
    columns = st.columns(len(RUNGS), gap="medium")
    for number, (column, what, rung) in enumerate(zip(columns, RUNGS, report.rungs, strict=True), start=1):
        column.markdown(f"**{number}. {rung.name.capitalize()}.** {what}.")
        outcome = (
            ":green[:material/check_circle: Passed:]" if rung.passed else ":red[:material/cancel: Failed:]"
        )
        column.markdown(f"{outcome} {power(rung.difference)}, tolerance {power(rung.tolerance)}")
        column.caption(rung.reason)
    source = report.provenance
    st.caption(
        f"{literal(source.model)}, revision {literal(source.revision)}, {source.dtype}; "
        + ", ".join(f"{name} {literal(number)}" for name, number in source.versions.items())
        + "."
    )


def grid(view: View) -> None:
    """The largest weight difference of every layer and head."""
    report = cache.report(view.selection.source)
    errors = report.weight_errors[view.kind]
    layer, head = (int(one) for one in np.unravel_index(errors.argmax(), errors.shape))
    st.markdown(
        f"**Of {errors.size} heads, layer {layer}, head {head} differs most: {power(float(errors.max()))}**"
    )
    st.plotly_chart(
        draw_errors(
            report, kind=view.kind, picked=(view.selection.layer, view.selection.head), theme=view.theme
        ),
        theme=None,
        key="errors",
        config={"displayModeBar": False},
        alt="Largest difference of attention weights for every layer and head",
    )
    st.caption("Colours are powers of ten, up to the tolerance. The outlined cell is the picked head.")


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
            "The verdict is as recorded in the bundle. The model's own weights are not in it, so they do not stand "
            "beside ours here."
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
    """The ladder for each example sentence, on a button."""
    model = view.selection.model
    verified: dict[str, list[dict[str, object]]] = st.session_state.setdefault("verified_presets", {})
    if st.button(
        "Verify every preset",
        icon=":material/fact_check:",
        key="verify_presets",
        on_click=state.hold,
        help="Runs the three checks on each of the example sentences with this model.",
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
        "weights": power(report.weight_rung.difference),
        "head outputs": power(report.output_rung.difference),
        "last hidden state": power(report.hidden_rung.difference),
        "passed": "yes" if report.passed else "**no**",
    }


view = frame("Verification")
st.markdown("#### Is what is shown what the model computes?")
st.markdown(
    "The model runs on attnviz's own scaled dot-product attention. The same model, with the same parameters, "
    "runs once more on the attention that the transformers library has for it, and the two are compared."
)
st.latex(r"\text{attention}(Q, K, V) = \text{softmax}\!\left(\frac{Q K^\top}{\sqrt{d_k}}\right) V")
st.caption(
    f"Vaswani et al. 2017, arXiv:1706.03762, equation 1. Each {linked('Query')} and {linked('Key')} has $d_k$ numbers; the "
    f"{linked('Softmax')} makes {linked('Weight', 'weights')} of their {linked('Score', 'scores')}, with which the "
    f"{linked('Value', 'values')} are averaged."
)
with errors.explained():
    ladder(view)
    left, right = st.columns([2, 3], gap="medium")
    with left:
        grid(view)
    with right:
        row(view)
    if not view.selection.bundle:
        every_preset(view)
take(view, {"errors": "Differences of all heads"})
