"""How reliable the joint map is, in numbers and in words."""

from dataclasses import dataclass

import numpy as np
import streamlit as st

from attnviz.figures.numbers import counted, percent_text
from attnviz.maps.joint_map import JointMap
from ui.rooms.many_texts.joint_map.joint_map import Screen
from ui.shell.table import whole_rows
from ui.words import findings as words
from ui.words.reliability import Reading, read, reading_of


@dataclass(frozen=True, slots=True, kw_only=True)
class JointFacts:
    """Facts about a joint map besides its own figures."""

    reading: Reading
    n_query: int
    """Queries that see at least two keys in their sentence; the figures are over these."""
    sees_all: bool
    """Whether these are all queries."""
    is_sample: bool
    """Whether trustworthiness was measured on a sample of the points."""


def joint_facts(made: JointMap) -> JointFacts:
    """Facts about a joint map from its figures and those of permuted key points."""
    return JointFacts(
        reading=reading_of(made.in_map, made.chance),
        n_query=made.in_map.n_query,
        sees_all=2 * made.in_map.n_query == len(made.points),
        is_sample=made.n_compared < len(made.points),
    )


def headline(place: str, made: JointMap) -> str:
    """The share of queries whose nearest key has the largest weight, and the share by chance; plain text."""
    facts, chance = joint_facts(made), made.chance
    if not facts.n_query:
        return f"{place}: no query sees two keys, so there is no order of keys to compare with distances"
    sentence = f"{place}: the nearest key of the sentence has the largest weight for {share(made.in_map.nearest_agreement)} of "
    sentence += _queries(facts)
    if facts.reading.order == "unknown":
        return sentence
    return (
        f"{sentence}; with the key points permuted, at most one map in twenty exceeds {share(chance.nearest)}"
    )


def _queries(facts: JointFacts) -> str:
    return f"the {counted(facts.n_query, 'query', 'queries')}" + " that see two keys or more" * (
        not facts.sees_all
    )


def reliability(screen: Screen) -> None:
    """How reliable the map is, in numbers and in words."""
    made = screen.map
    inside, plane = made.in_space, made.in_map
    st.markdown("**Reliability**")
    columns = {
        "score and distance": [
            "rank correlation, mean",
            "the same, worst query",
            "nearest has the largest weight",
        ],
        "map": [
            words.correlation_text(plane.order_correlation),
            words.correlation_text(plane.worst_correlation),
            share(plane.nearest_agreement),
        ],
        "vectors": [
            words.correlation_text(inside.order_correlation),
            words.correlation_text(inside.worst_correlation),
            share(inside.nearest_agreement),
        ],
    }
    st.dataframe(columns, hide_index=True, height=whole_rows(len(columns["map"])), key="reliability")
    st.caption(note(made))


def note(made: JointMap) -> str:
    """What the figures of a joint map mean for a reader; plain text."""
    facts = joint_facts(made)
    sentences = [read(facts.reading)]
    if facts.reading.order != "unknown":
        sentences.append(f"{words.by_chance(made.chance)}; points are permuted within their sentence.")
    if not np.isnan(made.trustworthiness):
        sample = f" (a sample of {made.n_compared:,} points)" if facts.is_sample else ""
        sentences.append(
            f"Trustworthiness {made.trustworthiness:.2f}: 1 when all neighbours on the map are neighbours among the vectors, "
            f"about 0.5 by chance{sample}."
        )
    if facts.n_query:
        sentences.append(
            f"Within each sentence, over {_queries(facts)}: correlation −1 where a nearer key always has the higher score, 0 "
            "where the ranks of distance and score do not go together."
        )
    return " ".join(sentences)


def share(number: float) -> str:
    """A share in whole percent, or a note that it is undefined."""
    return "none" if np.isnan(number) else percent_text(number)
