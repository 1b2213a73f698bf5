"""The first screen: a sentence, the attention of one head on it, and whether the numbers are the model's."""

from functools import partial

import streamlit as st

from ui.choice import state
from ui.shell import verdict
from ui.shell.controls import walk
from ui.shell.export.take import take
from ui.shell.frame import model_place, newest, put_in_link, redrawn_with_head, selected, shell
from ui.shell.navigation import link_to, part_named
from ui.shell.view import View
from ui.stage.arcs import arcs
from ui.stage.band import band, weights_of_all
from ui.stage.matrix import cell_notes, matrix, ranking
from ui.stage.options import options
from ui.stage.query_key_map import notes_of_map, query_key_map
from ui.stage.rail import Names, head_name, heads
from ui.stage.screen import Screen
from ui.stage.tour import advance, guide
from ui.streamlit_fixes.redrawn_block import redrawn_block
from ui.words.findings import place
from ui.words.glossary import terms
from ui.words.literal import literal

PICTURES = {
    "matrix": "Attention matrix",
    "token_flow": "Token flow",
    "ranking": "Ranked keys",
    "map": "Map of queries and keys",
}
"""By the key of a chart or component on the stage, what its picture is called."""

LONG = 128
"""Rows above which a matrix that fills the stage is as tall as it is wide, beyond the end of the window: its cells are small."""


def together() -> None:
    """All that changes with the selection."""
    with selected("Together") as view:
        if view is not None:
            redrawn_with_head(view, stage)
    if view is None:
        return
    weights_of_all(view)
    if state.chosen().tour:
        with view.places.lead:
            guide(Screen.of(view))
    verdict.show(view)
    terms(
        "Attention",
        "Model",
        "Layer",
        "Head",
        "Token",
        "Special token",
        "Attention matrix",
        "Norm-based weight",
        "Rollout",
        "t-SNE",
        "Perplexity",
    )
    link_to(
        "Myths",
        label="What weights do not say",
        help="A weight says what a head reads, not what the answer depends on: four claims, measured.",
    )
    link_to(
        "Heads off",
        label="What if this head were off?",
        help="Switches this head off, and every other, to measure what happens to an outcome.",
    )
    shown = (*_filling(view), "ranking")
    take(
        partial(newest, view),
        {key: name for key, name in PICTURES.items() if key in shown},
        notes=notes_of_map if "map" in shown else None,
    )


def _filling(view: View) -> tuple[str, ...]:
    """What fills the stage, by the keys of `PICTURES`."""
    filled = view.selection.filled
    return ("matrix", "map") if filled == "all" else (filled,)


def stage(view: View) -> None:
    """One head on the text, and beside it all heads."""
    screen = Screen.of(view)
    filled, shown = view.selection.filled, _filling(view)
    with st.container(key="stage"):
        main, rail = st.container(key="stage_parts"), st.container(key="rail")
    with rail, model_place(part_named("Together")):
        walk(view)
    with main:
        band(screen)
        with st.container(key="finding"):
            st.markdown(f"**{place(screen.pattern)}: {literal(screen.headline)}**")
        stage_options = st.container(key="stage_controls", horizontal=True, vertical_alignment="center")
        is_tall = filled == "matrix" and len(screen.pattern.queries) > LONG
        with st.container(key="filled_long_matrix" if is_tall else f"filled_{filled}"):
            if "matrix" in shown:
                matrix(screen)
            if "token_flow" in shown:
                arcs(screen)
            map_place = st.container(key="map_place") if "map" in shown else None
    names = Names.of(view)  # what comes after the matrix, which is sent as early as it can be
    with rail:
        heads(screen, names)
    with stage_options:
        link_to(
            "Step by step",
            label="Watch it happen",
            icon="play_circle",
            selection=view.selection.but(query=screen.query, key=screen.key),
            help="Plays how this head gets from the tokens to these weights, as a film with the model's own numbers.",
        )
        options(screen)
        head_name(screen, names)
    with rail:
        ranking(screen)
        if not view.selection.tour:
            guide(screen)
    cell_notes(screen)
    advance(screen)
    put_in_link(view.selection)
    if map_place is not None:
        with map_place:
            query_key_map(screen)
    link_to(
        "Other maps",
        label="Where does this score come from?",
        selection=view.selection.but(query=screen.query, key=screen.key, sources=True),
        help="Splits the score of the selected query and key by where both come from: embedding, earlier heads and MLPs.",
    )


with shell("Together"):
    redrawn_block(together, None)  # a change draws nothing else
