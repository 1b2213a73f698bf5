"""What came before scaled dot products? Five ways to mix values for a query, on the reader's own sentence."""

from functools import partial

import streamlit as st

from ui.choice import (
    widgets,  # before attnviz loads torch
)
from ui.runtime import cache
from ui.shell import errors, verdict

# isort: split
from attnviz.lessons.history import departure
from ui.rooms.how_it_works.history.steps import finding, one_vector, pictures, strip, ways
from ui.rooms.how_it_works.history.table import as_csv, departure_words, table
from ui.shell.export.take import take
from ui.shell.frame import frame
from ui.words.findings import strongest_key
from ui.words.glossary import linked

view = frame("History")
with errors.explained():
    selection = view.selection
    n_query = len(view.query_tokens)
    steps = {
        step.name: step
        for step in cache.steps_to_scaled(
            selection.source,
            selection.layer,
            selection.head,
            view.query,
            view.kind,
            (view.query + 1) % n_query,
            selection.seed,
        )
    }
    own = cache.pattern(selection.source, *selection.place, view.kind, "weights")
    key = strongest_key(own, view.query) if selection.key is None else selection.key
    strip(view, own, key)
    with st.container(key="finding"):
        st.markdown(f"**{finding(view, steps, key)}**")
    st.markdown(
        f"How to make one {linked('Context vector', 'vector for a query')} out of many {linked('Value', 'values')}? Five "
        f"answers from 2014 to 2017, among them {linked('Additive score', 'additive')} and "
        f"{linked('General score', 'general')} scores, each run on the {linked('Query')}, "
        f"{linked('Key', 'keys')} and values of this very head. Their authors had other networks around them; the formulas are theirs."
    )
    one_vector(view, steps, key)
    with st.columns(3)[0]:
        st.number_input(
            **widgets.field(
                "seed",
                help="Another seed draws other matrices for the additive and the general score.",
                label="Random seed",
            )
        )
    pictures(view, steps, key)
    st.markdown(
        departure_words(departure(view.trace, *selection.place, view.query, steps["scaled"], view.kind))
    )
    table(view, steps)
    ways(steps)
    take(
        view,
        {
            "history_one_vector": "One vector",
            "history_weights": "Weights",
            "history_contexts": "Context vectors",
        },
        csv=partial(as_csv, view, steps),
        numbers="Weights",
    )
verdict.show(view)
