"""The selected pair: the vectors of one query and one key as bars, and how their products make the score."""

import streamlit as st

from attnviz.figures import draw_pair
from attnviz.figures.numbers import share_text, sum_text
from attnviz.heads.score import Score, score_of
from attnviz.records import Axis
from ui.choice import widgets
from ui.page.chart import chart
from ui.page.view import View
from ui.words.findings import name
from ui.words.literal import literal


def picked_pair(view: View, query: int, key: int) -> None:
    """The vectors of one query and one key as bars, and the products that add up to their score.

    Args:
        query: position of the query's token.
        key: position of the key's token.
    """
    selection = view.selection
    score = score_of(view.trace, *selection.place, query, key, kind=view.kind)
    tokens = view.trace.query_tokens(view.kind), view.trace.key_tokens(view.kind)
    names = [name(Axis.of(one), at) for one, at in zip(tokens, (query, key), strict=True)]
    weight = float(view.trace.weights(*selection.place, view.kind)[query, key])
    with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
        st.markdown(f"**Score of {literal(names[0])} and {literal(names[1])}: {literal(_sum(score))}**")
        st.toggle(**widgets.field("largest_first"))
    chart(
        draw_pair(score, largest_first=selection.maps.largest_first, theme=view.theme),
        key="pair",
        alt=f"Query {names[0]} and key {names[1]}, dimension by dimension: {_sum(score)}",
    )
    said = f"{_largest(score)} {_outcome(score, weight)}"
    if selection.unit == "words":
        said += " Vectors are of single tokens, also while words are joined."
    st.caption(literal(said))


def _sum(score: Score) -> str:
    """The score as the sum that it is."""
    bias = f" + bias {sum_text(score.bias)}" if score.bias else ""
    total = float(score.terms.sum()) / score.scale if score.scale else 0.0
    product = f"{sum_text(total)} × {score.scale:.3g}"
    if score.softcap is not None:
        product = f"{score.softcap:g} tanh({product} / {score.softcap:g})"
    return f"{product}{bias} = {sum_text(score.value)}"


def _largest(score: Score) -> str:
    """Which dimensions matter most."""
    terms = score.terms
    most, least = int(terms.argmax()), int(terms.argmin())
    capped = "" if score.softcap is None else f" softcapped to {score.softcap:g} at most,"
    said = [f"The sum of {len(terms)} products, times the scale,{capped} is the score."]
    if score.bias:
        said = [f"The sum of {len(terms)} products, times the scale,{capped} and the bias are the score."]
    if terms[most] > 0:
        said.append(f"Dimension {most} adds the most, {sum_text(terms[most])}.")
    if terms[least] < 0:
        said.append(f"Dimension {least} subtracts the most, {sum_text(-terms[least])}.")
    return " ".join(said)


def _outcome(score: Score, weight: float) -> str:
    if score.allowed:
        return f"The softmax over all keys of the query makes it a weight of {share_text(weight)}."
    return (
        "But the query may not see this key: the mask takes minus infinity in its place, and the weight is 0."
    )
