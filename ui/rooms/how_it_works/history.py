"""What came before scaled dot products? Five ways to mix values for a query, on the reader's own sentence."""

from dataclasses import dataclass

import numpy as np
import streamlit as st

from attnviz.figures.bars import draw_rows
from attnviz.figures.matrices import draw_matrix
from attnviz.figures.numbers import share_text
from attnviz.figures.one_vector import draw_one_vector, left_out
from attnviz.lessons.history import Departure, ScaleEffect, Step, StepName, departure, scale_effect
from attnviz.records import Axis
from attnviz.records.table import entry_names, table_csv
from ui.choice import widgets
from ui.part import Part, Picture, Row, Sheet
from ui.rooms.explore.pair import pick_query
from ui.rooms.how_it_works.step_by_step.walk import key_of
from ui.runtime import cache
from ui.shell.chart import chart
from ui.shell.export.captions import LINES, SIGNED
from ui.shell.table import whole_rows
from ui.shell.view import View
from ui.words.findings import name, power
from ui.words.glossary import linked
from ui.words.literal import literal
from ui.words.score_formula import departures

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


@dataclass(frozen=True, kw_only=True)
class Ways:
    """The selected query by each way to mix values, the oldest first."""

    view: View
    steps: dict[StepName, Step]

    @classmethod
    def of(cls, view: View) -> "Ways":
        """Of the view's head and query."""
        selection = view.selection
        place = selection.layer, selection.head, view.query, view.kind
        following = (view.query + 1) % len(view.query_tokens)
        steps = cache.steps_to_scaled(selection.source, *place, following, selection.seed)
        return cls(view=view, steps={step.name: step for step in steps})

    @property
    def key(self) -> int:
        """Position of the selected key."""
        return key_of(self.view)

    @property
    def keys(self) -> Axis:
        """Every key."""
        return Axis.of(self.view.key_tokens)

    @property
    def query(self) -> str:
        """The selected query in a sentence."""
        return name(Axis.of(self.view.query_tokens), self.view.query)


def finding(ways: Ways) -> str:
    """The selected pair's weight by scaled dot products and by one vector."""
    key = ways.key
    scaled, fixed = (share_text(float(ways.steps[way].weights[key])) for way in ("scaled", "fixed"))
    pair = f"{literal(ways.query)} gives {literal(name(ways.keys, key))}"
    return f"{pair} {scaled} by scaled dot products, {fixed} by one fixed vector"


LITTLE = 0.05
"""Change of a weight that is too small to see in a bar."""


def scale_said(effect: ScaleEffect) -> str:
    """How the row changes without the scale."""
    numbers = f"from {share_text(effect.scaled)} to {share_text(effect.unscaled)}"
    if effect.largest_change < LITTLE:
        return f"Without the scale this row hardly changes: its largest weight goes {numbers}."
    return f"Without the scale the attention concentrates on fewer keys: its largest weight goes {numbers}."


def one_vector(ways: Ways) -> None:
    """A sentence as one vector, and the context vector of the selected query."""
    view, weights = ways.view, ways.steps["scaled"].weights
    queries = Axis.of(view.query_tokens), view.query
    chart(
        draw_one_vector(weights, ways.keys, queries, picked=ways.key, theme=view.theme),
        key="history_one_vector",
        alt=f"Above, the tokens become a chain of states that ends in one vector; below, their values become the context "
        f"vector for {ways.query}, with lines as wide as this head's weights",
    )
    st.caption(
        "Above: a recurrent encoder hands the decoder its last state and nothing else. Below: every query has a context "
        f"vector of its own; each line is as wide as the weight of that value for {literal(ways.query)} in this head. {left_out(weights)}"
    )


def weights(ways: Ways) -> None:
    """The weight of each key by each way."""
    chart(
        draw_rows(
            np.array([step.weights for step in ways.steps.values()]),
            [TITLES[step] for step in ways.steps],
            ways.keys,
            picked=ways.key,
            theme=ways.view.theme,
        ),
        key="history_weights",
        alt="Weights of the selected query on every key, a row for each way; the table below has the largest",
    )
    effect = scale_effect(ways.steps["scaled"], ways.steps["dot"])
    st.caption(
        "The weight of each key for the selected query, the oldest way at the top, all to one scale. "
        + scale_said(effect)
    )


def contexts(ways: Ways) -> None:
    """The vector that each way makes."""
    chart(
        draw_matrix(
            np.array([step.context for step in ways.steps.values()]),
            title="Context vectors",
            rows=("way", None),
            columns=("dimension", None),
            labels=[NAMES[step] for step in ways.steps],
            theme=ways.view.theme,
        ),
        key="history_contexts",
        alt="The context vector that each way makes of the values, a row for each way",
    )
    st.caption("The context vector of each way: the mean of the values under those weights.")


def table(ways: Ways) -> None:
    """The numbers of each scoring function, and those of the last one compared with attnviz's own."""
    view, alone = ways.view, len(ways.view.query_tokens) == 1
    st.dataframe(
        [row_of(step, ways.keys, alone=alone) for step in ways.steps.values()],
        hide_index=True,
        height=whole_rows(len(NAMES)),
        key="history_table",
        alt="Each way's strongest key, how its weights change with the query, and what it costs",
    )
    st.caption(
        "Changes for the next query: the most that any weight changes when the next token of the text asks instead. To "
        "learn: parameters of the score. Multiplications: for the scores of all queries with all keys of this text."
    )
    place = view.selection.place
    st.markdown(departure_words(departure(view.trace, *place, view.query, ways.steps["scaled"], view.kind)))


def row_of(step: Step, keys: Axis, *, alone: bool) -> dict[str, str]:
    """The numbers of one scoring function; ``alone``: the text has a single query, and so no next one."""
    at = int(step.weights.argmax())
    return {
        "way": NAMES[step.name],
        "strongest key": "all the same" if step.name == "fixed" else name(keys, at),
        "its weight": share_text(float(step.weights[at])),
        "changes for the next query": "–"
        if alone
        else share_text(float(np.abs(step.weights - step.other_weights).max())),
        "to learn": f"{step.n_parameters:,}",
        "multiplications": f"{step.n_multiplications:,}",
    }


ROUNDING = 1e-4
"""Difference between two weights that float32 explains, since a row's scores are summed in another order."""


def departure_words(facts: Departure) -> str:
    """Whether the last row matches the head's row in the trace, and if not, why, in Markdown."""
    if facts.difference < ROUNDING:
        return (
            ":material/calculate: Recomputed here: the last row. Largest difference from the trace's weights: "
            f"{power(facts.difference)}."
        )
    departs = departures(facts.scale, facts.softcap, has_bias=facts.has_bias)
    why = f": it {departs}" if departs else ""
    return (
        f"This model departs from the formula of 2017{why}. The weights of its trace differ from the last row by up to "
        f"{share_text(facts.difference)}."
    )


def more(ways: Ways) -> None:
    """What the ways have in common, and each with its formula, in words."""
    with st.expander("More", key="history_more"):
        st.markdown(
            f"How to make one {linked('Context vector', 'vector for a query')} out of many {linked('Value', 'values')}? Five "
            f"answers from 2014 to 2017, among them {linked('Additive score', 'additive')} and "
            f"{linked('General score', 'general')} scores, each run on the {linked('Query')}, "
            f"{linked('Key', 'keys')} and values of this very head. Their authors had other networks around them; the formulas are theirs."
        )
        for step in ways.steps:
            st.markdown(f"**{TITLES[step]}**")
            words, formula = st.columns([3, 2], gap="medium", vertical_alignment="center")
            words.markdown(SAID[step])
            formula.latex(FORMULAS[step])
        st.latex(r"a_j = \frac{\exp(e_j)}{\sum_i \exp(e_i)}, \qquad c = \sum_j a_j\, v_j")
        with st.columns(3)[0]:
            st.number_input(
                **widgets.field(
                    "seed",
                    help="Another seed draws other matrices for the additive and the general score.",
                    label="Random seed",
                )
            )


def csv(ways: Ways) -> bytes:
    """A line for each scoring function: its weight on every key."""
    rows = ([NAMES[way], *step.weights] for way, step in ways.steps.items())
    return table_csv(["way \\ key", *entry_names(ways.keys)], rows)


PART = Part(
    name="History",
    address="history",
    question="What came before scaled dot-product attention?",
    sheets=(
        Sheet(
            strip=pick_query,
            screen=Ways.of,
            finding=finding,
            rows=(
                Picture("history_one_vector", "One vector", LINES, one_vector),
                Row(
                    Picture(
                        "history_weights",
                        "Weights",
                        "bar height: weight of each key, by each way of scoring",
                        weights,
                    ),
                    Picture("history_contexts", "Context vectors", SIGNED, contexts),
                    widths=(3, 2),
                ),
                table,
                more,
            ),
            numbers="Weights",
            csv=csv,
        ),
    ),
)
