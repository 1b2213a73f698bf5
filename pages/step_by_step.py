"""How does attention get from the sentence to its output? Every step, with the model's own numbers."""

from collections.abc import Callable

import streamlit as st

from ui.choice import state, widgets
from ui.rooms.explore.pair import pick_key, pick_query
from ui.rooms.how_it_works.step_by_step.film import film
from ui.rooms.how_it_works.step_by_step.outputs import heads_step, mean_step
from ui.rooms.how_it_works.step_by_step.scores import row_step, score_step, softmax_step
from ui.rooms.how_it_works.step_by_step.vectors import projections_step, tokens_step, vectors_step
from ui.rooms.how_it_works.step_by_step.walk import Walk
from ui.runtime import cache
from ui.shell import verdict
from ui.shell.export.take import take
from ui.shell.frame import frame

STEPS: tuple[tuple[str, Callable[[Walk], None]], ...] = (
    ("Tokens", tokens_step),
    ("Vectors", vectors_step),
    ("Queries, keys, values", projections_step),
    ("One score", score_step),
    ("A row of scores", row_step),
    ("Softmax", softmax_step),
    ("Mean of values", mean_step),
    ("All heads", heads_step),
)


view = frame("Step by step")
selection = view.selection
_, key = pick_query(view)
walk = Walk(
    view=view,
    query=view.query,
    key=key,
    anatomy=None if selection.bundle else cache.anatomy(selection.source, selection.layer, view.kind),
)
with st.container(key="about_finding", horizontal=True, vertical_alignment="center"):
    with st.container(key="finding", width="stretch"):
        st.markdown(
            f"**{selection.place.title}, from {walk.label(view.query, of='query')} to "
            f"{walk.label(key, of='key')}**"
        )
    pick_key(view, key)
st.header("The head as a film", anchor=False)
film(walk)
st.header("Every step in detail", anchor=False)
names = {0: "All", **{number: f"{number}. {title}" for number, (title, _) in enumerate(STEPS, 1)}}
st.pills(
    **widgets.field("step", format_func=names.__getitem__, options=list(names), required=True),
)
if selection.step != 1:  # which has no matrix
    st.caption(
        "In every matrix blue-green cells are above 0, orange-brown ones below, and empty ones 0; frames mark the selected query, key "
        "and head. A matrix too large to show is reduced to the largest value in each block."
    )
for number, (title, draw) in enumerate(STEPS, 1):
    if selection.step in (0, number):
        st.subheader(f"{number}. {title}")
        with st.container(key=f"step_part_{number}"):
            draw(walk)
        if number == selection.step and number < len(STEPS):
            st.button(
                f"Next: {STEPS[number][0]}",
                icon=":material/chevron_right:",
                on_click=lambda: state.change(step=state.chosen().step + 1),
                key="step_on",
                help="Shows what happens next.",
            )
take(
    view,
    {"head_film": "The head as a film"}
    | {
        f"step_part_{number}": f"{number}. {title}"
        for number, (title, _) in enumerate(STEPS, 1)
        if number > 1 and selection.step in (0, number)
    },
)
verdict.show(view)
