"""From weights and values to the output of a head, and of all heads to the output of the layer."""

import numpy as np
import streamlit as st
from jaxtyping import Float

from attnviz.figures.numbers import counted, number_text
from ui.rooms.how_it_works.step_by_step.facts import head_lengths, listed_keys
from ui.rooms.how_it_works.step_by_step.walk import (
    TABLE_NUMBER,
    Walk,
    anatomy,
    compare,
    goes,
    labels,
    listed_note,
    picture,
    size,
    source,
)
from ui.shell.table import whole_rows
from ui.words.extremes import equals


def mean_step(walk: Walk) -> None:
    """Weights and values to the head's output."""
    trace, kind = walk.view.trace, walk.view.kind
    layer, head = walk.place
    weights = trace.weights(layer, head, kind)[walk.query]
    values, whole = trace.value(layer, head, kind), trace.output(layer, head, kind)
    output = whole[walk.query]
    goes(
        f"the weights, {len(whole):,} × {len(values):,}, and V, {size(values)}",
        f"the output of head {head}, {size(whole)}",
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
    st.dataframe(
        {
            "key": [labels(walk, "key")[key] for key in order],
            **columns_of(weights[order], values[order]),
        },
        hide_index=True,
        height=whole_rows(len(order), len(order)),
        column_config=dict.fromkeys(
            ("weight", "length of its value ‖v‖", "weight × length ‖w·v‖"), TABLE_NUMBER
        ),
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
        columns=("dimension", None),
        labels=[
            *(labels(walk, "key")[key] for key in order),
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
    return {
        "weight": weights,
        "length of its value ‖v‖": lengths,
        "weight × length ‖w·v‖": weights * lengths,
    }


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
        columns=("dimension", None),
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
