"""Why does one token attend to another? The experiment with the door, step by step, and the reader's own."""

import streamlit as st

from ui.choice import state
from ui.part import Block, Part, Picture, Row, Sheet
from ui.rooms.door_experiment.gap_and_heads import answer, second_half
from ui.rooms.door_experiment.near import Door, Experiment, door_map, near_and_far
from ui.rooms.door_experiment.variation import variation
from ui.rooms.explore.stage.matrix import cell_notes, cells, matrix, ranking
from ui.rooms.explore.stage.screen import tokens
from ui.rooms.explore.stage.stage import masked_link
from ui.rooms.explore.together import MATRIX, of_ranking
from ui.shell.export.captions import LINES
from ui.shell.view import View
from ui.words.findings import map_note, place
from ui.words.literal import literal, quoted


def introduction(experiment: Experiment, is_shown: bool) -> None:
    """The question, the head that answers it here, and from a variation the link back to the experiment."""
    own, preset = experiment.selection, experiment.preset
    query, key = quoted(preset.query or ""), quoted(preset.key or "")
    st.markdown(
        f"“{literal(own.text)}” What opened? Layer {own.layer}, head {own.head} of {literal(own.model)} links {query} to "
        f"{key}. Four steps: the attention of {query}, the vectors behind it, the word that a model would fill in, and "
        "what changes when you change one thing."
    )
    if not is_shown:
        st.button(
            "Back to the experiment",
            icon=":material/replay:",
            on_click=lambda: state.change(
                **{
                    name: experiment.selection.value(name)
                    for name in ("model", "text", "second", "layer", "head", "query", "key")
                },
                kind="",
                cut=False,
            ),
            key="experiment_again",
            help="Shows the experiment's own sentence, head and query again.",
        )


def lead(view: View) -> None:
    """The question, the tokens, and the heading of the first step."""
    door = Door.of(view)
    introduction(door.experiment, door.experiment.is_shown_in(view, door.screen.key))
    tokens(door.screen)
    masked_link(view)
    st.subheader("1. Which tokens does the query attend to?", anchor=False)


def of_head(door: Door) -> None:
    """The matrix, with what its cells hold."""
    with st.container(horizontal=True, key="matrix_controls"):
        cells(door.view)
    matrix(door.screen)


def of_query(door: Door) -> None:
    """The keys of the query, and what is to be known of the cells."""
    ranking(door.screen)
    cell_notes(door.screen)


_GAP = "bar length: probability of each candidate for the gap, from the text before, the text after, and both"
_MAPS = ("door_map", "door_map_other")

PART = Part(
    name="Door experiment",
    address="door_experiment",
    question="Why does one token attend to another?",
    asks=("sentence", "head", "rows"),
    terms=("Special token", "Infilling"),  # the ranking links what it names
    sheets=(
        Sheet(
            strip=lead,
            screen=Door.of,
            finding=lambda door: f"{place(door.screen.pattern)}: {literal(door.screen.finding)}",
            rows=(
                Row(Block(of_head, (MATRIX,)), Picture("ranking", "Ranked keys", of_ranking, of_query)),
                Block(
                    near_and_far,
                    (
                        Picture("door_map", "Map with this query", LINES),
                        Picture("door_map_other", "Map with another query", f"{LINES} of another query"),
                    ),
                ),
                Block(
                    answer,
                    tuple(
                        Picture(f"gap_{number}", f"What fills the gap, {number + 1}", _GAP)
                        for number in range(3)
                    ),
                ),
                second_half,
                variation,
            ),
            notes=lambda door: dict.fromkeys(_MAPS, map_note(door_map(door.view.selection, door.view.kind))),
        ),
    ),
)
