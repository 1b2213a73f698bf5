"""Why does one token attend to another? The experiment with the door, step by step, and the reader's own."""

import streamlit as st

from ui.rooms.door_experiment.answer import answer
from ui.rooms.door_experiment.experiment import Experiment, introduction
from ui.rooms.door_experiment.near import near_and_far
from ui.rooms.door_experiment.second_half import second_half
from ui.rooms.door_experiment.variation import variation
from ui.runtime import cache
from ui.shell import errors, verdict
from ui.shell.export.take import take
from ui.shell.frame import frame
from ui.stage.matrix import cell_notes, cells, matrix, ranking
from ui.stage.screen import Screen, tokens
from ui.stage.stage import masked_link
from ui.words.findings import place
from ui.words.glossary import terms
from ui.words.literal import literal

view = frame("Door experiment")
with errors.explained():
    experiment, screen = Experiment.here(), Screen.of(view)
    introduction(experiment, experiment.is_shown_in(view, screen.key))
    tokens(screen)
    masked_link(screen)
    st.subheader("1. Which tokens does the query attend to?", anchor=False)
    with st.container(key="finding"):
        st.markdown(f"**{place(screen.pattern)}: {literal(screen.finding)}**")
    left, right = st.columns(2, gap="medium")
    with left:
        with st.container(horizontal=True, key="matrix_controls"):
            cells(view)
        matrix(screen)
    with right:
        ranking(screen)
        cell_notes(screen)
    # Whatever the matrix shows: the lines of the maps and the numbers of the experiment are weights.
    weights = cache.pattern(view.selection.source, *view.selection.place, view.kind, "weights")
    map_note = near_and_far(view, weights, screen.key)
    filled = answer(view)
    second_half(view, screen.key)
    variation(view, weights, screen.key, experiment)
    take(
        view,
        {
            "matrix": "Attention matrix",
            "ranking": "Ranked keys",
            "door_map": "Map with this query",
            "door_map_other": "Map with another query",
            **{key: f"What fills the gap, {number}" for number, key in enumerate(filled, 1)},
        },
        notes=dict.fromkeys(("door_map", "door_map_other"), map_note),
    )
terms("Query", "Key", "Weight", "Special token", "Infilling")
verdict.show(view)
