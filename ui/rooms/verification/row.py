"""The numbers of one query, from scores to weights, ours and the model's side by side."""

import numpy as np
import streamlit as st

from attnviz.figures.labels import isolated
from attnviz.figures.numbers import power_text
from ui.runtime import cache
from ui.shell.table import whole_rows
from ui.shell.view import View
from ui.words.literal import quoted
from ui.words.score_formula import capped_latex


def row(view: View) -> None:
    """The numbers of the selected query, from score to weight, ours and the model's side by side."""
    selection, trace = view.selection, view.trace
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
