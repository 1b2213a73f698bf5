"""The selected token of many sentences: its strongest partners, its sentence, and links to it on other pages."""

from dataclasses import dataclass

import numpy as np
import streamlit as st

from attnviz.figures.numbers import share_text
from attnviz.maps.collection import Collection
from attnviz.records import Axis
from ui.choice import state
from ui.components.token_strip import token_strip
from ui.rooms.many_texts.joint_map.choices import JointMapSettings
from ui.rooms.many_texts.joint_map.joint_map import Screen
from ui.shell.navigation import link_to
from ui.shell.view import View
from ui.words.findings import name
from ui.words.literal import literal

N_LINES = 5  # strongest partners that the selected point is joined to


def picked_token(view: View, screen: Screen) -> int | None:
    """Index of the selected token; None if none is selected, or it does not exist."""
    selection, tokens = view.selection, screen.collection.tokens
    if selection.of(JointMapSettings).sentence is None:
        return None
    if selection.of(JointMapSettings).sentence >= len(tokens) or selection.of(JointMapSettings).token >= len(
        tokens[selection.of(JointMapSettings).sentence]
    ):
        st.caption(":material/info: The token that the link selects is not among these sentences.")
        return None
    return (
        screen.collection.start(selection.of(JointMapSettings).sentence)
        + selection.of(JointMapSettings).token
    )


def pick(collection: Collection, side: int, token: int) -> None:
    """Selects a token's query (0) or key (1)."""
    if 0 <= token < collection.n_tokens and side in (0, 1):
        state.change(
            joint_sentence=int(collection.sentence[token]),
            joint_token=int(collection.position[token]),
            joint_side=("query", "key")[side],
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """The selected query and a key of its sentence, or the selected key and a query."""

    token: int
    """Index of the other token."""
    weight: float


def links(screen: Screen, token: int, side: str) -> list[Link]:
    """The strongest partners of a token within its sentence, with positive weights, strongest first."""
    sentence, position = (
        int(numbers[token]) for numbers in (screen.collection.sentence, screen.collection.position)
    )
    weights = screen.collection.weights(sentence, screen.head)
    row = weights[position] if side == "query" else weights[:, position]
    start = screen.collection.start(sentence)
    return [
        Link(token=start + int(key), weight=float(row[key]))
        for key in np.argsort(-row, kind="stable")[:N_LINES]
        if row[key] > 0
    ]


def in_words(collection: Collection, token: int, side: str, partners: list[Link]) -> str:
    """What the head does with the selected token; plain text."""
    number, position = int(collection.sentence[token]), int(collection.position[token])
    axis = Axis.of(collection.tokens[number])
    this = name(axis, position)
    listed = ", ".join(
        f"{name(axis, int(collection.position[partner.token]))} {share_text(partner.weight)}"
        for partner in partners
    )
    if side == "query":
        sentence = f"query {this} attends to {listed}" if partners else f"query {this} sees no key"
    else:
        sentence = (
            f"key {this} gets attention from {listed}" if partners else f"no query gives weight to key {this}"
        )
    return f"Sentence {number + 1}, line {collection.line[number]}: {sentence}"


def sentence(view: View, screen: Screen, token: int) -> None:
    """The selected token's sentence, what the head does there, and links to it on other pages."""
    selection, collection = view.selection, screen.collection
    number, position = int(collection.sentence[token]), int(collection.position[token])
    tokens = collection.tokens[number]
    weights = collection.weights(number, screen.head)
    partners = links(screen, token, selection.of(JointMapSettings).side)
    first = int(collection.position[partners[0].token]) if partners else position
    query, key = (position, first) if selection.of(JointMapSettings).side == "query" else (first, position)
    with st.container(key="picked_sentence"):
        st.markdown(
            f"**{literal(in_words(collection, token, selection.of(JointMapSettings).side, partners))}**"
        )
    token_strip(
        tokens,
        query=query,
        key=key,
        weights=weights[query],
        mask_label=None,
        on_pick=lambda position: pick(collection, 0, collection.start(number) + position),
        on_mask=lambda position: None,
        theme=view.theme,
    )
    there = selection.alone(
        tokens.text,
        cut=any(tokens.n_cut),
        query=query,
        key=key,
        layer=collection.layer,
        head=screen.head,
    )
    with st.container(horizontal=True):
        for part, label in (
            ("Together", "Explore"),
            ("Several heads", "Several heads"),
            ("Other maps", "Other maps"),
        ):
            link_to(
                part,
                label=f"Open in {label}",
                selection=there,
                help="Shows this sentence there, with this query and key selected.",
            )
