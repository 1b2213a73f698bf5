"""Chosen answers layer by layer: from which layer on one is ahead, as a finding and a figure."""

from typing import Any

import streamlit as st
from plotly.graph_objects import Figure

from attnviz.effects.lens import FollowedTokens
from attnviz.figures.lens import draw_followed
from ui.choice import state
from ui.rooms.cause.lens.facts import Course, course
from ui.rooms.cause.lens.screen import Screen
from ui.shell.chart import chart
from ui.words.literal import quoted


def followed(screen: Screen, tokens: FollowedTokens) -> Figure:
    """Draws the finding, and difference, probability and rank of the chosen tokens after each layer; returns the figure."""
    st.markdown(f"**{finding(course(tokens), [quoted(label) for label in tokens.labels])}**")
    drawn: Figure = draw_followed(tokens, picked=screen.view.selection.layer, theme=screen.view.theme)
    chart(
        drawn,
        key="lens_followed",
        alt="How likely the chosen tokens are after each layer, their ranks, and the difference of their logits where there are two",
        on_pick=_pick,
        name="Layers; select one",
    )
    st.caption(
        "Each layer’s vector through the model’s last norm and language head, as above, for the tokens of the outcome. Rank 1 is the most "
        "likely token of the whole vocabulary."
    )
    return drawn


def finding(facts: Course, names: list[str]) -> str:
    """From which layer on the first token is ahead of the second, and of all.

    Args:
        names: of the tokens, as Markdown.
    """
    sentences = []
    if len(names) > 1:
        sentences.append(f"{names[0]} {_since(facts.ahead_from, facts.last, f'ahead of {names[1]}')}")
    who = "it" if sentences else names[0]
    if facts.first_from is None:
        sentences.append(f"{who} ends at rank {facts.rank:,}")
    else:
        sentences.append(f"{who} {_since(facts.first_from, facts.last, 'the most likely token')}")
    return "; ".join(sentences)


def _since(layer: int | None, last: int, what: str) -> str:
    if layer is None:
        return f"is not {what} after the last layer"
    if layer == 0:
        return f"is {what} after every layer"
    return (
        f"is {what} only after the last layer, {last}"
        if layer == last
        else f"is {what} from layer {layer} on"
    )


def _pick(clicked: Any) -> None:
    if isinstance(clicked, int):
        state.change(layer=clicked)
