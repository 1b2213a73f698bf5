"""The scoring functions that led to scaled dot products: their names, formulas and pictures."""

import numpy as np
import streamlit as st

from ui.choice import (
    state,  # before attnviz loads torch
)
from ui.shell.chart import chart

# isort: split
from attnviz.figures.bars import draw_rows
from attnviz.figures.matrices import draw_matrix
from attnviz.figures.numbers import share_text
from attnviz.figures.one_vector import draw_one_vector, left_out
from attnviz.lessons.history import ScaleEffect, Step, StepName, scale_effect
from attnviz.records import AttentionPattern, Axis
from ui.components.token_strip import token_strip
from ui.shell.view import View
from ui.words.findings import name
from ui.words.literal import literal

NAMES: dict[StepName, str] = {
    "fixed": "fixed vector",
    "additive": "additive",
    "general": "general",
    "dot": "dot product",
    "scaled": "scaled dot",
}


TITLES: dict[StepName, str] = {
    "fixed": "2014: one fixed vector",
    "additive": "2014: additive, a small network scores each key",
    "general": "2015: general, one matrix in place of the network",
    "dot": "2015: dot product, no matrix at all",
    "scaled": "2017: scaled dot product",
}


FORMULAS: dict[StepName, str] = {
    "fixed": r"c = \frac{1}{n} \sum_j v_j",
    "additive": r"e_j = v_a^\top \tanh(W_a\, q + U_a\, k_j)",
    "general": r"e_j = q^\top W_a\, k_j",
    "dot": r"e_j = q^\top k_j",
    "scaled": r"e_j = \frac{q^\top k_j}{\sqrt{d_k}}",
}


SAID: dict[StepName, str] = {
    "fixed": "A recurrent network read a sentence word by word, and its last state was all that the translation was made "
    "from, however long the sentence (Sutskever et al. 2014, arXiv:1409.3215; Cho et al. 2014, arXiv:1406.1078). The "
    "mean of the values stands in for that state here: every query gets the same vector.",
    "additive": "Every word of the translation now gets a mixture of its own. The query is the decoder's state before that "
    "word, keys and values are the encoder's states, one for each word read; a network with one hidden layer scores each "
    "pair, a softmax turns their scores into weights, and the weighted mean is the context vector (Bahdanau et al. 2014, "
    "arXiv:1409.0473). The numbers of the network would be learned; here they are random.",
    "general": "Products instead of a network, which a machine computes for all pairs at once (Luong et al. 2015, "
    "arXiv:1508.04025, equation 8). This matrix is random here as well. A transformer's head has one in disguise, "
    "$W_Q W_K^\\top$: its queries and keys are the tokens' vectors times $W_Q$ and $W_K$.",
    "dot": "The simplest score of the same paper: nothing to learn, but query and key must have the same number of "
    "dimensions. The more dimensions, the larger the scores, and the softmax goes to extremes.",
    "scaled": "Dividing by the square root of the number of dimensions keeps the scores small enough for the softmax to "
    "share its weight out (Vaswani et al. 2017, arXiv:1706.03762, section 3.2.1).",
}


def strip(view: View, own: AttentionPattern, key: int) -> None:
    """The tokens, for selecting another query."""
    token_strip(
        view.query_tokens,
        query=view.query,
        key=key,
        weights=own.weights[view.query] if view.kind != "cross" else None,
        mask_label=None,
        on_pick=lambda position: state.change(query=position, key=None),
        on_mask=state.mask,
        theme=view.theme,
    )


def finding(view: View, steps: dict[StepName, Step], key: int) -> str:
    """The selected pair's weight by one vector and by scaled dot products, and the effect of the scale."""
    keys, queries = (Axis.of(of(view.kind)) for of in (view.trace.key_tokens, view.trace.query_tokens))
    scaled, fixed = (share_text(float(steps[scale].weights[key])) for scale in ("scaled", "fixed"))
    return (
        f"{literal(name(queries, view.query))} gives {literal(name(keys, key))} {scaled} of its attention by scaled dot "
        f"products; one fixed vector gives every token {fixed}. {scale_said(scale_effect(steps['scaled'], steps['dot']))}"
    )


LITTLE = 0.05
"""Change of a weight that is too small to see in a bar."""


def scale_said(effect: ScaleEffect) -> str:
    """How the row changes without the scale."""
    numbers = f"from {share_text(effect.scaled)} to {share_text(effect.unscaled)}"
    if effect.largest_change < LITTLE:
        return f"Without the scale this row hardly changes: its largest weight goes {numbers}."
    return f"Without the scale the attention concentrates on fewer keys: its largest weight goes {numbers}."


def one_vector(view: View, steps: dict[StepName, Step], key: int) -> None:
    """A sentence as one vector, and the context vector of the selected query."""
    keys, queries = (Axis.of(of(view.kind)) for of in (view.trace.key_tokens, view.trace.query_tokens))
    weights = steps["scaled"].weights
    query = name(queries, view.query)
    st.subheader("One vector, or one for each word")
    chart(
        draw_one_vector(weights, keys, (queries, view.query), picked=key, theme=view.theme),
        key="history_one_vector",
        alt=f"Above, the tokens become a chain of states that ends in one vector; below, their values become the context "
        f"vector for {query}, with lines as wide as this head's weights",
    )
    st.caption(
        "Above: a recurrent encoder hands the decoder its last state and nothing else. Below: every query has a context "
        f"vector of its own; each line is as wide as the weight of that value for {literal(query)} in this head. {left_out(weights)}"
    )


def pictures(view: View, steps: dict[StepName, Step], key: int) -> None:
    """The weights and the resulting vectors, side by side."""
    left, right = st.columns([3, 2], gap="medium")
    with left:
        chart(
            draw_rows(
                np.array([step.weights for step in steps.values()]),
                [TITLES[step] for step in steps],
                Axis.of(view.key_tokens),
                picked=key,
                theme=view.theme,
            ),
            key="history_weights",
            alt="Weights of the selected query on every key, a row for each way; the table below has the largest",
        )
        st.caption(
            "The weight of each key for the selected query, the oldest way at the top, all to one scale."
        )
    with right:
        chart(
            draw_matrix(
                np.array([step.context for step in steps.values()]),
                title="Context vectors",
                rows=("way", None),
                columns=("dimension", None),
                labels=[NAMES[step] for step in steps],
                theme=view.theme,
            ),
            key="history_contexts",
            alt="The context vector that each way makes of the values, a row for each way",
        )
        st.caption("The context vector of each way: the mean of the values under those weights.")


def ways(steps: dict[StepName, Step]) -> None:
    """Each scoring function with its formula, in words."""
    for step in steps:
        st.markdown(f"**{TITLES[step]}**")
        words, formula = st.columns([3, 2], gap="medium", vertical_alignment="center")
        words.markdown(SAID[step])
        formula.latex(FORMULAS[step])
    st.latex(r"a_j = \frac{\exp(e_j)}{\sum_i \exp(e_i)}, \qquad c = \sum_j a_j\, v_j")
