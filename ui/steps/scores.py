"""From a query and a key to a row of weights: the score of a pair, the row of scores, the softmax."""

import numpy as np
import streamlit as st

from ui.steps.walk import Walk, check, goes, labels, leads_on, picture, shown_keys, size


def score_step(walk: Walk) -> None:
    """Query and key to one score."""
    trace, kind = walk.view.trace, walk.view.kind
    layer, head = walk.place
    query, key = trace.query(layer, head, kind)[walk.query], trace.key(layer, head, kind)[walk.key]
    call = trace.attention(layer, kind)
    products, dot = query * key, float(query @ key)
    score = float(trace.scores(layer, head, kind)[walk.query, walk.key])
    goes(f"one query and one key, {len(query)} numbers each", f"one number, {score:.4f}")
    st.markdown(
        f"How well does the key of {walk.label(walk.key, of='key')} answer the query of "
        f"{walk.label(walk.query, of='query')}? Their numbers are multiplied one by one and added up: the dot "
        "product, large where both vectors point the same way. "
        f"It is divided by √{len(query)}, or scores would grow with the number of dimensions."
    )
    st.latex(
        rf"s_{{{walk.query},{walk.key}}} = \frac{{q_{{{walk.query}}} \cdot k_{{{walk.key}}}}}{{\sqrt{{{len(query)}}}}}"
        rf" = {call.scale:.4f} \times {dot:.4f} = {call.scale * dot:.4f}"
    )
    picture(
        walk,
        "pair",
        np.stack([query, key, products]),
        title="query, key and their product, dimension by dimension",
        rows=("vector", 2),
        columns=("dimension", None),
        labels=[f"q {walk.query}", f"k {walk.key}", "product"],
    )
    strongest = np.argsort(-np.abs(products))[:3]
    said = ", ".join(
        f"dimension {one}: {query[one]:.3f} × {key[one]:.3f} = {products[one]:.3f}" for one in strongest
    )
    st.caption(f"The three products that count most: {said}.")
    leads_on(walk, "pages/scaling.py", "Why divide by the root of the dimensions?")
    if not np.isfinite(score):
        st.caption("The query may not see this key: whatever the product, the score is minus infinity.")
        return
    if call.bias is not None:
        st.caption(f"This family adds a bias for how far apart the two are: {score - call.scale * dot:.4f}.")
        return
    check(np.array([call.scale * dot]), np.array([score]), f"the score is the model's, {score:.4f}")


def row_step(walk: Walk) -> None:
    """One score for every key."""
    trace, kind = walk.view.trace, walk.view.kind
    layer, head = walk.place
    queries, keys = trace.query(layer, head, kind), trace.key(layer, head, kind)
    scores, call = trace.scores(layer, head, kind), trace.attention(layer, kind)
    row = scores[walk.query]
    seen = np.isfinite(row)
    goes(f"Q, {size(queries)}, and K, {size(keys)}", f"a matrix S of scores, {size(scores)}")
    st.markdown(
        f"The same for every key gives a row of {len(row)} scores for {walk.label(walk.query, of='query')}; all "
        f"queries together give a matrix of {scores.shape[0]} × {scores.shape[1]}. Scores are any numbers: a key can "
        "stand out only against the others of its row."
    )
    st.latex(r"S = \frac{Q K^\top}{\sqrt{d_k}}")
    columns = st.columns(3)
    with columns[0]:
        picture(
            walk,
            "row_query",
            queries,
            title="Q",
            rows=("query", walk.query),
            columns=("dimension", None),
        )
    with columns[1]:
        picture(
            walk,
            "row_key",
            keys.T,
            title="Kᵀ",
            rows=("dimension", None),
            columns=("key", walk.key),
        )
    with columns[2]:
        picture(
            walk,
            "scores",
            np.where(np.isfinite(scores), scores, 0).astype(np.float32),
            title="S",
            rows=("query", walk.query),
            columns=("key", walk.key),
            labels=labels(walk, "query"),
        )
    best, worst = int(np.where(seen, row, -np.inf).argmax()), int(np.where(seen, row, np.inf).argmin())
    st.caption(
        f"Highest in this row: {walk.label(best, of='key')} with {row[best]:.4f}; lowest: "
        f"{walk.label(worst, of='key')} with {row[worst]:.4f}; {walk.label(walk.key, of='key')}: {row[walk.key]:.4f}."
        + ("" if seen.all() else " Keys that a query may not see are left empty.")
    )
    if call.bias is None:
        product = call.scale * (queries[walk.query].astype(np.float64) @ keys.T)
        check(product[seen], row[seen], f"this row of {int(seen.sum())} scores is the model's")


def softmax_step(walk: Walk) -> None:
    """Scores to weights."""
    trace, kind = walk.view.trace, walk.view.kind
    layer, head = walk.place
    row = trace.scores(layer, head, kind)[walk.query].astype(np.float64)
    matrix = trace.weights(layer, head, kind)
    weights = matrix[walk.query]
    goes(f"S, {size(matrix)}", f"a matrix of weights, {size(matrix)}, whose rows sum to 1")
    largest = float(row.max())
    exponentials = np.exp(row - (largest if np.isfinite(largest) else 0.0))
    total = float(exponentials.sum()) or 1.0
    st.markdown(
        "The softmax makes shares of a row of scores: the exponential of each, divided by their sum, so that the row "
        "sums to 1. A score that is higher by 1 gets e ≈ 2.72 times the weight. The largest score is taken off first: "
        "it cancels in the division, and keeps the exponentials from becoming too large for the machine."
    )
    st.latex(
        rf"w_{{{walk.query},{walk.key}}} = \frac{{e^{{s - \max s}}}}{{\sum_j e^{{s_j - \max s}}}}"
        rf" = \frac{{{exponentials[walk.key]:.4f}}}{{{total:.4f}}} = {exponentials[walk.key] / total:.4f}"
    )
    order = shown_keys(walk, weights)
    picture_column, table_column = st.columns([1, 2])
    with picture_column:
        picture(
            walk,
            "weights",
            matrix,
            title="weights",
            rows=("query", walk.query),
            columns=("key", walk.key),
            labels=labels(walk, "query"),
        )
    table_column.dataframe(
        {
            "key": [labels(walk, "key")[one] for one in order],
            "score": row[order],
            "less the largest": row[order] - largest,
            "exponential": exponentials[order],
            "weight": weights[order],
        },
        hide_index=True,
        height=36 * (len(order) + 1),
        column_config={
            name: st.column_config.NumberColumn(format="%.4f")
            for name in ("score", "less the largest", "exponential", "weight")
        },
        key="step_softmax_table",
    )
    if len(order) < len(row):
        rest = float(weights.sum() - weights[order].sum())
        st.caption(f"The {len(order)} strongest keys; the other {len(row) - len(order):,} share {rest:.4f}.")
    check(exponentials / total, weights, "the row of weights is the model's")
