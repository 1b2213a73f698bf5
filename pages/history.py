"""What came before scaled dot products? Five ways to mix values for a query, on the reader's own sentence."""

from functools import partial

import numpy as np
import streamlit as st

from ui.choice import (
    state,
    widgets,  # before attnviz loads torch
)
from ui.page import errors, verdict
from ui.work import cache

# isort: split
from attnviz.effects.history import Step, StepName
from attnviz.figures.history import draw_rows
from attnviz.figures.matrices import draw_matrix
from attnviz.figures.theme import share_text
from attnviz.maps.layouts import LARGEST_SEED
from attnviz.records import AttentionPattern, Axis
from attnviz.records.table import entry_names, table_csv
from ui.components.token_strip import token_strip
from ui.export.take import take
from ui.page.frame import frame
from ui.page.view import View
from ui.words.findings import name, power, strongest_key
from ui.words.glossary import linked
from ui.words.literal import literal

CONFIG = {"displayModeBar": False}
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
    "pair, a softmax makes weights of the scores, and the weighted mean is the context vector (Bahdanau et al. 2014, "
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
    """The tokens, to pick another query."""
    token_strip(
        view.trace.query_tokens(view.kind),
        query=view.query,
        key=key,
        weights=own.weights[view.query] if view.kind != "cross" else None,
        mask_label=None,
        on_pick=lambda position: state.change(query=position, key=None),
        on_mask=state.mask,
        theme=view.theme,
    )


def finding(view: View, steps: dict[StepName, Step], key: int) -> str:
    """What the picked query gives the picked key, by the last way and by others."""
    keys, queries = (Axis.of(of(view.kind)) for of in (view.trace.key_tokens, view.trace.query_tokens))
    given = {one: share_text(float(step.weights[key])) for one, step in steps.items()}
    return (
        f"{literal(name(queries, view.query))} gives {literal(name(keys, key))} {given['scaled']} of its attention by "
        f"scaled dot products; {given['dot']} without the scale, and {given['fixed']}, like any other token, with one "
        "fixed vector."
    )


def pictures(view: View, steps: dict[StepName, Step], key: int) -> None:
    """The weights and the vectors that they make, side by side."""
    left, right = st.columns([3, 2], gap="medium")
    with left:
        st.plotly_chart(
            draw_rows(
                np.array([one.weights for one in steps.values()]),
                [TITLES[one] for one in steps],
                Axis.of(view.trace.key_tokens(view.kind)),
                picked=key,
                theme=view.theme,
            ),
            theme=None,
            key="history_weights",
            config=CONFIG,
            alt="Weights of the picked query on every key, a row for each way; the table below has the largest",
        )
        st.caption(
            "The weight of each key for the picked query, the oldest way at the top, all to one scale."
        )
    with right:
        st.plotly_chart(
            draw_matrix(
                np.array([one.context for one in steps.values()]),
                title="Context vectors",
                rows=("way", None),
                columns=("dimension", None),
                labels=[NAMES[one] for one in steps],
                theme=view.theme,
            ),
            theme=None,
            key="history_contexts",
            config=CONFIG,
            alt="The context vector that each way makes of the values, a row for each way",
        )
        st.caption("What each way hands on: the mean of the values under those weights.")


def table(view: View, steps: dict[StepName, Step]) -> None:
    """The numbers of each way."""
    keys = Axis.of(view.trace.key_tokens(view.kind))
    alone = len(view.trace.query_tokens(view.kind)) == 1
    strongest = {one: int(step.weights.argmax()) for one, step in steps.items()}
    st.dataframe(
        {
            "way": list(NAMES.values()),
            "strongest key": [
                "all the same" if one == "fixed" else name(keys, at) for one, at in strongest.items()
            ],
            "its weight": [share_text(float(steps[one].weights[at])) for one, at in strongest.items()],
            "changes for the next query": [
                "–" if alone else share_text(float(np.abs(one.weights - one.other_weights).max()))
                for one in steps.values()
            ],
            "to learn": [f"{one.n_parameters:,}" for one in steps.values()],
            "multiplications": [f"{one.n_multiplications:,}" for one in steps.values()],
        },
        hide_index=True,
        key="history_table",
        alt="Each way's strongest key, how its weights change with the query, and what it costs",
    )
    st.caption(
        "Changes for the next query: the most that any weight changes when the next token of the text asks instead. To "
        "learn: parameters of the score. Multiplications: for the scores of all queries with all keys of this text."
    )


def ways(steps: dict[StepName, Step]) -> None:
    """Each way with its formula, in words."""
    for one in steps:
        st.markdown(f"**{TITLES[one]}**")
        words, formula = st.columns([3, 2], gap="medium", vertical_alignment="center")
        words.markdown(SAID[one])
        formula.latex(FORMULAS[one])
    st.latex(r"a_j = \frac{\exp(e_j)}{\sum_i \exp(e_i)}, \qquad c = \sum_j a_j\, v_j")


def compare(view: View, own: AttentionPattern, scaled: Step) -> None:
    """Whether the last row is the head's, as its trace has it."""
    difference = float(np.abs(own.weights[view.query] - scaled.weights).max())
    if difference < 1e-4:
        st.markdown(
            ":material/calculate: Recomputed here: the last row. Largest difference from the trace's weights: "
            f"{power(difference)}."
        )
        return
    call = view.trace.attention(view.selection.layer, view.kind)
    st.markdown(
        f"This model departs from the formula of 2017: it multiplies by {call.scale:.3g}"
        + (" and adds a bias to each score" if call.bias is not None else "")
        + f", so the weights of its trace differ from the last row by up to {share_text(difference)}."
    )


def as_csv(view: View, steps: dict[StepName, Step]) -> bytes:
    """A line for each way: its weight on every key."""
    keys = Axis.of(view.trace.key_tokens(view.kind))
    rows = ([NAMES[name], *one.weights] for name, one in steps.items())
    return table_csv(["way \\ key", *entry_names(keys)], rows)


view = frame("History")
with errors.explained():
    selection = view.selection
    n_query = len(view.trace.query_tokens(view.kind))
    steps = {
        one.name: one
        for one in cache.steps_to_scaled(
            selection.source,
            selection.layer,
            selection.head,
            view.query,
            view.kind,
            (view.query + 1) % n_query,
            selection.seed,
        )
    }
    own = cache.pattern(selection.source, selection.layer, selection.head, view.kind, "weights")
    key = strongest_key(own, view.query) if selection.key is None else selection.key
    strip(view, own, key)
    with st.container(key="finding"):
        st.markdown(f"**{finding(view, steps, key)}**")
    st.markdown(
        f"How to make one {linked('Context vector', 'vector for a query')} out of many {linked('Value', 'values')}? Five "
        f"answers from four years, among them {linked('Additive score', 'additive')} and "
        f"{linked('General score', 'general')} scores, each run on the {linked('Query')}, "
        f"{linked('Key', 'keys')} and values of this very head. Their authors had other networks around them; the formulas are theirs."
    )
    with st.columns(3)[0]:
        st.number_input(
            "Seed of what would be learned",
            min_value=0,
            max_value=LARGEST_SEED,
            help="Another seed draws other matrices for the additive and the general score.",
            **widgets.field("seed"),
        )
    pictures(view, steps, key)
    compare(view, own, steps["scaled"])
    table(view, steps)
    ways(steps)
    take(
        view,
        {"history_weights": "Weights", "history_contexts": "Context vectors"},
        csv=partial(as_csv, view, steps),
        numbers="Weights",
    )
verdict.in_sidebar(view.selection)
