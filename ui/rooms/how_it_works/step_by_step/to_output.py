"""From a query and a key to the output: one score, the row of scores, the softmax, the mean of the values, all heads."""

from dataclasses import dataclass

import numpy as np
import streamlit as st
from jaxtyping import Float, Int

from attnviz.figures.numbers import counted, number_text
from attnviz.model.head_attention import HeadAttention
from ui.rooms.how_it_works.step_by_step.walk import (
    TABLE_NUMBER,
    Walk,
    anatomy,
    compare,
    goes,
    listed_keys,
    listed_note,
    picture,
    size,
    source,
)
from ui.shell.navigation import link_to
from ui.shell.table import whole_rows
from ui.words.extremes import equals, places_of_largest
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
    query, key, call = walk.of("query")[walk.query], walk.of("key")[walk.key], walk.of("head")
    products = query.astype(np.float64) * key
    dot = float(products.sum())
    bias = None if call.bias is None else float(call.bias[walk.query, walk.key])
    made = float(_capped(call, np.array(call.scale * dot))) + (bias or 0.0)
    score = float(walk.of("scores")[walk.query, walk.key])
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
        "query, key and their product, dimension by dimension",
        ("vector", 2),
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
        f"{at} ({number_text(float(products[at]))})" for at in strongest_dimensions(products)
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
    queries, keys, scores, call = map(walk.of, ("query", "key", "scores", "head"))
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
    of_query, of_key, of_both = st.columns(3)
    with of_query:
        picture(walk, "row_query", queries, "Q", ("query", walk.query))
    with of_key:
        picture(walk, "row_key", keys.T, "Kᵀ", ("dimension", None), ("key", walk.key))
    with of_both:
        drawn = np.where(np.isfinite(scores), scores, 0).astype(np.float32)
        picture(walk, "scores", drawn, "S", ("query", walk.query), ("key", walk.key), walk.labels("query"))
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
    row = walk.of("scores")[walk.query].astype(np.float64)
    matrix = walk.of("weights")
    weights = matrix[walk.query]
    goes(f"S, {size(matrix)}", f"a matrix of weights, {size(matrix)}, whose rows sum to 1")
    largest = float(row.max())
    less = row - (largest if np.isfinite(largest) else 0.0)
    exponentials = np.exp(less)
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
        of = ("query", walk.query), ("key", walk.key)
        picture(walk, "weights", matrix, "weights", *of, walk.labels("query"))
    table_column.dataframe(
        {
            "key": [walk.labels("key")[key] for key in order],
            "score": row[order],
            "less the largest": less[order],
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


@dataclass(frozen=True, slots=True, kw_only=True)
class RowEnds:
    """The highest and the lowest score of a row, among the keys that the query may see."""

    highest: int
    n_as_high: int
    """Other keys with the same score."""
    lowest: int
    n_as_low: int


def row_ends(row: Float[np.ndarray, " key"]) -> RowEnds | None:
    """Highest and lowest finite score of a row; None if the query may see no key."""
    seen = np.where(np.isfinite(row), row, np.nan)
    highest, lowest = (places_of_largest(side, number_text) for side in (seen, -seen))
    if not highest:
        return None
    return RowEnds(
        highest=highest[0][0], n_as_high=len(highest) - 1, lowest=lowest[0][0], n_as_low=len(lowest) - 1
    )


def strongest_dimensions(
    products: Float[np.ndarray, " d_head"], count: int = 3
) -> Int[np.ndarray, " strongest"]:
    """The dimensions with the largest products by magnitude, largest first; earlier ones first if tied."""
    return np.argsort(-np.abs(products), kind="stable")[:count]


def mean_step(walk: Walk) -> None:
    """Weights and values to the head's output."""
    weights, values, whole = walk.of("weights")[walk.query], walk.of("value"), walk.of("output")
    output = whole[walk.query]
    goes(
        f"the weights, {len(whole):,} × {len(values):,}, and V, {size(values)}",
        f"the output of head {walk.place.head}, {size(whole)}",
    )
    st.markdown(
        f"What {walk.label(walk.query, of='query')} gets, the {walk.term('Output')} of the head, is the mean of all "
        f"{walk.term('Value', 'values')}, each counted by its {walk.term('Weight')}. A key with a large weight and a short "
        "value adds little to it: the table has both, and their product ‖w·v‖. The norm-based weight of other pages, "
        "‖w·v·W_O‖, counts $W_O$ too."
    )
    st.latex(rf"o_{{{walk.query}}} = \sum_j w_{{{walk.query},j}}\, v_j")
    listed = listed_keys(weights, walk.key)
    order = np.array(listed.positions)
    names = [walk.labels("key")[key] for key in order]
    numbers = columns_of(weights[order], values[order])
    st.dataframe(
        {"key": names, **numbers},
        hide_index=True,
        height=whole_rows(len(order), len(order)),
        column_config=dict.fromkeys(numbers, TABLE_NUMBER),
        key="step_mean_table",
    )
    given = weights[order, None] * values[order]
    n_others = listed.n_others
    others = (np.delete(weights, order) @ np.delete(values, order, axis=0))[None] if n_others else given[:0]
    if n_others:
        st.caption(listed_note(listed))
    parts = np.concatenate([given, others, output[None]])
    picture(
        walk,
        "mean",
        parts,
        title="weight times value of these keys, and the output",
        rows=("key", len(parts) - 1),
        labels=[
            *(walk.labels("key")[key] for key in order),
            *([counted(n_others, "other")] if n_others else []),
            "output",
        ],
    )
    compare(weights.astype(np.float64) @ values, output, f"the mean, {len(output)} numbers")
    source(
        "Vaswani et al. 2017, arXiv:1706.03762, equation 1",
        "lengths beside weights: Kobayashi et al. 2020, arXiv:2004.10102, who measure ‖w·v·W_O‖",
    )


def columns_of(
    weights: Float[np.ndarray, " key"], values: Float[np.ndarray, "key d_value"]
) -> dict[str, Float[np.ndarray, " key"]]:
    """What each key adds to the mean, by title: its weight, its value's length, and the length of their product."""
    lengths = np.linalg.norm(values, axis=1)
    return {"weight": weights, "length of its value ‖v‖": lengths, "weight × length ‖w·v‖": weights * lengths}


def heads_step(walk: Walk) -> None:
    """All heads to the output of the layer."""
    layer_anatomy = anatomy(walk)
    if layer_anatomy is None:
        return
    trace, kind = walk.view.trace, walk.view.kind
    layer, head = walk.place
    if layer_anatomy.output_weight is None or layer_anatomy.output is None:
        st.info(
            "This family does more to the outputs of its heads than multiply them by $W_O$, or where it does so is not "
            "known to attnviz, so the layer's output is not shown."
        )
        return
    outputs = trace.outputs(layer, kind)  # [head, query, d_value]
    n_head, n_query, d_value = outputs.shape
    side_by_side = outputs.transpose(1, 0, 2).reshape(n_query, n_head * d_value)
    stacked = layer_anatomy.output_weight.reshape(n_head * d_value, -1)
    bias = 0 if layer_anatomy.output_bias is None else layer_anatomy.output_bias
    parts = np.einsum("hv,hvd->hd", outputs[:, walk.query], layer_anatomy.output_weight)
    summed = parts.sum(axis=0) + bias
    own = range(head * d_value, (head + 1) * d_value)
    goes(
        f"the outputs of {n_head} heads, {n_query:,} × {d_value} each",
        f"the attention's output, {size(layer_anatomy.output)}",
    )
    st.markdown(
        f"The outputs of the {len(parts)} {walk.term('Head', 'heads')} are laid side by side, {n_head} × {d_value} = "
        f"{n_head * d_value} numbers, and one last matrix {walk.term('W_O', '$W_O$')} mixes them into {parts.shape[1]} numbers for "
        f"{walk.label(walk.query, of='query')}. Adding up what each head gives through its own part of "
        "$W_O$ is the same thing, so every head's share can be told. The rest of the layer adds "
        "what it has read to this and works on every token by itself."
    )
    st.latex(r"\mathrm{output}_i = \sum_h o_i^{(h)} W_O^{(h)} + b_O")
    columns = st.columns(3)
    for column, key, cells, title, rows, picked in (
        (columns[0], "side_by_side", side_by_side, "heads side by side", ("token", walk.query), own),
        (columns[1], "output_weight", stacked, "W<sub>O</sub>", ("dimension", own), None),
        (columns[2], "layer_output", layer_anatomy.output, "output", ("token", walk.query), None),
    ):
        with column:
            picture(walk, key, cells, title=title, rows=rows, columns=("dimension", picked))
    compare(
        side_by_side @ stacked + bias,
        layer_anatomy.output,
        f"heads side by side times $W_O$, all {n_query:,} rows",
        to="what the model's own $W_O$ gave",
    )
    picture(
        walk,
        "heads",
        np.concatenate([parts, summed[None]]),
        title="what each head gives, and the layer's output",
        rows=("head", head),
        labels=[*(f"head {head}" for head in range(len(parts))), "output"],
    )
    lengths = head_lengths(parts, head)
    st.caption(
        f"Longest: head {lengths.longest} with {number_text(lengths.length)}{equals(lengths.n_as_long, 'long')}; head "
        f"{head} gives {number_text(lengths.own)}, rank {lengths.rank} of {lengths.n_head}."
    )
    compare(
        summed,
        layer_anatomy.output[walk.query],
        f"the sum over the heads for {walk.label(walk.query, of='query')}",
        to="what the model's own $W_O$ gave",
    )
    source(
        "Vaswani et al. 2017, arXiv:1706.03762, section 3.2.2",
        "as a sum over heads: Michel et al. 2019, arXiv:1905.10650, section 2.2",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadLengths:
    """Lengths of the vectors that a layer's heads add, and the selected head's rank."""

    longest: int
    n_as_long: int
    """Other heads with a vector as long."""
    length: float
    """Length of the longest vector."""
    own: float
    """Length of the selected head's vector."""
    rank: int
    """The selected head's rank: 1 if no other head adds a longer vector."""
    n_head: int


def head_lengths(parts: Float[np.ndarray, "head d_model"], head: int) -> HeadLengths:
    """The lengths of what each head adds to one token."""
    lengths = np.linalg.norm(parts, axis=1)
    longest = places_of_largest(lengths, number_text) or ((head,),)
    return HeadLengths(
        longest=longest[0][0],
        n_as_long=len(longest) - 1,
        length=float(lengths[longest[0][0]]),
        own=float(lengths[head]),
        rank=int((lengths > lengths[head]).sum()) + 1,
        n_head=len(lengths),
    )
