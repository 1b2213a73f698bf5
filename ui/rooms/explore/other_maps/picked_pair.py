"""The selected pair: the vectors of one query and one key as bars, and how their products add up to the score."""

from dataclasses import dataclass

import numpy as np
import streamlit as st

from attnviz.figures import draw_pair
from attnviz.figures.numbers import share_text, sum_text
from attnviz.heads.score import Score, score_of
from attnviz.records import Axis
from ui.choice import widgets
from ui.rooms.explore.other_maps.choices import MapSettings
from ui.shell.chart import chart
from ui.shell.view import View
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
    tokens = view.query_tokens, view.key_tokens
    names = [
        name(Axis.of(tokens_of_axis), at) for tokens_of_axis, at in zip(tokens, (query, key), strict=True)
    ]
    weight = float(view.trace.weights(*selection.place, view.kind)[query, key])
    with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
        st.markdown(f"**Score of {literal(names[0])} and {literal(names[1])}: {literal(_sum(score))}**")
        st.toggle(**widgets.field("largest_first"))
    chart(
        draw_pair(score, largest_first=selection.of(MapSettings).largest_first, theme=view.theme),
        key="pair",
        alt=f"Query {names[0]} and key {names[1]}, dimension by dimension: {_sum(score)}",
    )
    sentence = f"{largest_terms(terms_of(score))} {_outcome(score, weight)}"
    if selection.unit == "words":
        sentence += " Vectors are of single tokens, even where rows and columns show words."
    st.caption(literal(sentence))


def _sum(score: Score) -> str:
    """The score written as a sum."""
    bias = f" + bias {sum_text(score.bias)}" if score.bias else ""
    total = float(score.terms.sum()) / score.scale if score.scale else 0.0
    product = f"{sum_text(total)} × {score.scale:.3g}"
    if score.softcap is not None:
        product = f"{score.softcap:g} tanh({product} / {score.softcap:g})"
    return f"{product}{bias} = {sum_text(score.value)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """The most important terms of a score."""

    n_dimension: int
    softcap: float | None
    has_bias: bool
    adds: tuple[int, ...]
    """Dimensions with the largest term, if positive; several if tied."""
    most: float
    """Their term; 0 if no term is positive."""
    subtracts: tuple[int, ...]
    """Dimensions with the lowest term, if negative."""
    least: float
    """Their term; 0 if no term is negative."""


def terms_of(score: Score) -> Terms:
    """The dimensions that add and subtract the most."""
    most, least = max(0.0, float(score.terms.max())), min(0.0, float(score.terms.min()))
    return Terms(
        n_dimension=len(score.terms),
        softcap=score.softcap,
        has_bias=bool(score.bias),
        adds=tuple(np.flatnonzero(score.terms == most).tolist()) if most else (),
        most=most,
        subtracts=tuple(np.flatnonzero(score.terms == least).tolist()) if least else (),
        least=least,
    )


def largest_terms(facts: Terms) -> str:
    """Which dimensions matter most, in words."""
    and_bias = ", and the bias are the score" if facts.has_bias else ", is the score"
    capped = "" if facts.softcap is None else f", softcapped to {facts.softcap:g} at most"
    sentences = [f"The sum of {facts.n_dimension} products, times the scale{capped}{and_bias}."]
    if facts.adds:
        add = "adds" if len(facts.adds) == 1 else "each add"
        sentences.append(f"{_dimensions(facts.adds)} {add} the most, {sum_text(facts.most)}.")
    if facts.subtracts:
        subtract = "subtracts" if len(facts.subtracts) == 1 else "each subtract"
        sentences.append(f"{_dimensions(facts.subtracts)} {subtract} the most, {sum_text(-facts.least)}.")
    return " ".join(sentences)


def _dimensions(numbers: tuple[int, ...]) -> str:
    """Dimensions by number, at most two of them."""
    match numbers:
        case (first,):
            return f"Dimension {first}"
        case (first, second):
            return f"Dimensions {first} and {second}"
        case (first, second, *more):
            return f"Dimensions {first}, {second} and {len(more)} more"
    raise AssertionError(numbers)


def _outcome(score: Score, weight: float) -> str:
    if score.allowed:
        return f"The softmax over all keys of the query makes it a weight of {share_text(weight)}."
    return (
        "But the query may not see this key: the mask takes minus infinity in its place, and the weight is 0."
    )
