"""How reliable the joint map is, in numbers."""

import numpy as np
import streamlit as st

from attnviz.figures.numbers import percent_text
from ui.sections.many_sentences.joint_map import Screen
from ui.words import findings as words
from ui.words.judgement import READ, judge


def reliability(screen: Screen) -> None:
    """How reliable the map is, in numbers and in one sentence."""
    made = screen.map
    inside, plane = made.in_space, made.in_map
    sample = f" (a sample of {made.n_compared:,} points)" if made.n_compared < len(made.points) else ""
    st.markdown("**Reliability**")
    st.dataframe(
        {
            "score and distance": [
                "rank correlation, mean",
                "the same, worst query",
                "nearest is strongest",
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
        },
        hide_index=True,
        key="belief",
    )
    trust = (
        ""
        if np.isnan(made.trustworthiness)
        else (
            f" Trustworthiness {made.trustworthiness:.2f}: 1 when all neighbours on the map are neighbours among the vectors, "
            f"about 0.5 by chance{sample}."
        )
    )
    st.caption(
        f"{READ[judge(plane, made.chance)]}{trust} Within each sentence, over all {screen.collection.n_tokens:,} "
        "queries: correlation −1 where a nearer key is always the stronger one, 0 where distance says nothing."
    )


def share(number: float) -> str:
    return "none" if np.isnan(number) else percent_text(number)
