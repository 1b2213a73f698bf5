"""From a query and a key to a row of weights: the score of a pair, the row of scores, the softmax."""

import numpy as np
import streamlit as st

from attnviz.figures.numbers import number_text
from attnviz.model.head_attention import HeadAttention
from ui.rooms.how_it_works.step_by_step.facts import listed_keys, row_ends, strongest_dimensions
from ui.rooms.how_it_works.step_by_step.walk import (
    TABLE_NUMBER,
    Walk,
    compare,
    goes,
    labels,
    listed_note,
    picture,
    size,
    source,
)
from ui.shell.navigation import link_to
from ui.shell.table import whole_rows
from ui.words.extremes import equals
from ui.words.score_formula import capped_latex

# By whether the bias depends only on the distance between two tokens.
_BIASES = {
    True: "learned for how far apart the two tokens are",
    False: "made from the query, the key and how far apart the two tokens are",
}
_BIAS_SOURCES = {
    True: "the bias: Raffel et al. 2020, arXiv:1910.10683, section 2.1",
    False: "the bias: He et al. 2021, arXiv:2006.03654, equation 4",
}
_FEW_ROWS = 8  # the other dimensions are reached by scrolling


def score_step(walk: Walk) -> None:
    """Query and key to one score."""
    trace, kind = walk.view.trace, walk.view.kind
    layer, head = walk.place
    query, key = trace.query(layer, head, kind)[walk.query], trace.key(layer, head, kind)[walk.key]
    call = trace.head(layer, head, kind)
    products = query.astype(np.float64) * key
    dot = float(products.sum())
    bias = None if call.bias is None else float(call.bias[walk.query, walk.key])
    made = float(_capped(call, np.array(call.scale * dot))) + (bias or 0.0)
    score = float(trace.scores(layer, head, kind)[walk.query, walk.key])
    divided = bool(np.isclose(call.scale, len(query) ** -0.5))
    goes(f"one query and one key, {len(query)} numbers each", f"one number, {number_text(score)}")
    st.markdown(
        f"How well does the {walk.term('Key')} of {walk.label(walk.key, of='key')} answer the {walk.term('Query')} of "
        f"{walk.label(walk.query, of='query')}? Their numbers are multiplied one by one and added up: the dot "
        "product, large where both vectors point the same way. "
        + (
            f"It is {walk.term('Scale', 'divided')} by $\\sqrt{{d_k}} = \\sqrt{{{len(query)}}}$, or "
            f"{walk.term('Score', 'scores')} would grow with the number of dimensions."
            if divided
            else f"This model multiplies it by {call.scale:.4g} instead of dividing by $\\sqrt{{d_k}}$, and has its "
            f"{walk.term('Score')}."
        )
        + (
            ""
            if call.softcap is None
            else f" A softcap then keeps it between −{call.softcap:g} and {call.softcap:g}."
        )
        + (
            ""
            if bias is None
            else f" To the product it adds a bias $b$, {_BIASES[call.bias_is_of_distance]}."
        )
    )
    dot_product = rf"q_{{{walk.query}}} \cdot k_{{{walk.key}}}"
    st.latex(
        rf"s_{{{walk.query},{walk.key}}} = "
        + capped_latex(
            rf"\frac{{{dot_product}}}{{\sqrt{{{len(query)}}}}}"
            if divided
            else rf"{call.scale:.4g} \, {dot_product}",
            call.softcap,
        )
        + ("" if bias is None else rf" + b_{{{walk.query},{walk.key}}}")
        + r" \approx "
        + capped_latex(rf"{number_text(call.scale)} \times {number_text(dot)}", call.softcap)
        + ("" if bias is None else f" {'+' if bias >= 0 else '-'} {number_text(abs(bias))}")
        + rf" \approx {number_text(made)}"
    )
    picture(
        walk,
        "pair",
        np.stack([query, key, products.astype(np.float32)]),
        title="query, key and their product, dimension by dimension",
        rows=("vector", 2),
        columns=("dimension", None),
        labels=[f"q {walk.query}", f"k {walk.key}", "product"],
    )
    numbers = {"query": query, "key": key, "product": products, "sum so far": products.cumsum()}
    st.dataframe(
        {"dimension": np.arange(len(query)), **numbers},
        hide_index=True,
        height=whole_rows(len(query), _FEW_ROWS),
        column_config=dict.fromkeys(numbers, TABLE_NUMBER),
        key="step_pair_table",
        alt="Query, key, their product and its sum so far, dimension by dimension",
    )
    strongest = ", ".join(
        f"{strongest_dimension} ({number_text(float(products[strongest_dimension]))})"
        for strongest_dimension in strongest_dimensions(products)
    )
    st.caption(f"The last sum is the dot product. The dimensions that count most: {strongest}.")
    if not np.isfinite(score):
        st.caption("The query may not see this key: whatever the product, the score is minus infinity.")
    else:
        if bias is not None:
            shifts = (
                "the bias shifts the score of the pair, whatever the tokens are"
                if call.bias_is_of_distance
                else "the bias shifts the score of the pair by what the distance is to these two tokens"
            )
            st.caption(
                f"Product {number_text(made - bias)}, bias {number_text(bias)}, score {number_text(made)}: {shifts}."
            )
        compare(np.array([made]), np.array([score]), f"the score, {number_text(made)}")
    link_to("Scaling", label="Why divide by the root of the dimensions?")
    source(
        "Vaswani et al. 2017, arXiv:1706.03762, equation 1 and section 3.2.1",
        *([] if call.softcap is None else ["the softcap: Gemma Team 2024, arXiv:2408.00118, section 2"]),
        *([] if bias is None else [_BIAS_SOURCES[call.bias_is_of_distance]]),
    )


def _capped(call: HeadAttention, scaled: np.ndarray) -> np.ndarray:
    """Scaled products after the model's softcap, if any."""
    return scaled if call.softcap is None else np.asarray(call.softcap * np.tanh(scaled / call.softcap))


def row_step(walk: Walk) -> None:
    """One score for every key."""
    trace, kind = walk.view.trace, walk.view.kind
    layer, head = walk.place
    queries, keys = trace.query(layer, head, kind), trace.key(layer, head, kind)
    scores, call = trace.scores(layer, head, kind), trace.head(layer, head, kind)
    row = scores[walk.query]
    seen = np.isfinite(row)
    goes(f"Q, {size(queries)}, and K, {size(keys)}", f"a matrix S of scores, {size(scores)}")
    st.markdown(
        f"The same for every key gives a row of {len(row)} {walk.term('Score', 'scores')} for {walk.label(walk.query, of='query')}; all "
        f"queries together give a matrix of {scores.shape[0]} × {scores.shape[1]}. Scores are any numbers: a score "
        "counts only relative to the others of its row."
    )
    divided = np.isclose(call.scale, queries.shape[1] ** -0.5)
    product = r"\frac{Q K^\top}{\sqrt{d_k}}" if divided else rf"{call.scale:.4g} \, Q K^\top"
    st.latex(f"S = {capped_latex(product, call.softcap)}" + ("" if call.bias is None else " + B"))
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
    sentence = _of_row(walk, row)
    st.caption(sentence + ("" if seen.all() else " Keys that a query may not see are left empty."))
    made = _capped(call, call.scale * (queries[walk.query].astype(np.float64) @ keys.T))
    if call.bias is not None:
        made = made + call.bias[walk.query]
    compare(made[seen], row[seen], f"this row of {int(seen.sum())} scores")
    source("Vaswani et al. 2017, arXiv:1706.03762, equation 1")


def _of_row(walk: Walk, row: np.ndarray) -> str:
    """The highest and the lowest score of a row, and the selected key's."""
    ends = row_ends(row)
    if ends is None:
        return "The query may see no key, so that its row has no score."
    own = number_text(float(row[walk.key])) if np.isfinite(row[walk.key]) else "not to be seen"
    return (
        f"Highest in this row: {walk.label(ends.highest, of='key')} with {number_text(float(row[ends.highest]))}{equals(ends.n_as_high, 'high')}; "
        f"lowest: {walk.label(ends.lowest, of='key')} with {number_text(float(row[ends.lowest]))}{equals(ends.n_as_low, 'low')}; "
        f"{walk.label(walk.key, of='key')}: {own}."
    )


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
        f"The {walk.term('Softmax')} makes shares of a row of scores, the {walk.term('Weight', 'weights')}: the exponential of each, divided by their sum, so that the row "
        "sums to 1. A score that is higher by 1 gets $e \\approx 2.72$ times the weight. The largest score $m$ is subtracted first: "
        "it cancels in the division, and keeps the exponentials from becoming too large for floating point."
    )
    st.latex(
        rf"w_{{{walk.query},{walk.key}}} = \frac{{e^{{s_{{{walk.query},{walk.key}}} - m}}}}"
        rf"{{\sum_j e^{{s_{{{walk.query},j}} - m}}}}"
        rf" \approx \frac{{{number_text(float(exponentials[walk.key]))}}}{{{number_text(total)}}}"
        rf" \approx {number_text(float(exponentials[walk.key] / total))}"
        + (
            rf", \qquad m = \max_j s_{{{walk.query},j}} \approx {number_text(largest)}"
            if np.isfinite(largest)
            else ""
        )
    )
    listed = listed_keys(weights, walk.key)
    order = np.array(listed.positions)
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
            "key": [labels(walk, "key")[key] for key in order],
            "score": row[order],
            "less the largest": row[order] - (largest if np.isfinite(largest) else 0.0),
            "exponential": exponentials[order],
            "weight": weights[order],
        },
        hide_index=True,
        height=36 * (len(order) + 1),
        column_config=dict.fromkeys(("score", "less the largest", "exponential", "weight"), TABLE_NUMBER),
        key="step_softmax_table",
    )
    if listed.n_others:
        st.caption(listed_note(listed))
    compare(exponentials / total, weights, "this row of weights")
    link_to("Scaling", label="What happens if the largest is not subtracted")
    source(
        "Vaswani et al. 2017, arXiv:1706.03762, equation 1",
        "subtracting the largest: Blanchard et al. 2021, arXiv:1909.03469",
    )
