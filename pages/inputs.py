"""Which tokens does the outcome depend on? Seven methods on one sheet, and which of them is right for this sentence."""

from functools import partial

import streamlit as st

from ui.rooms.cause import outcome
from ui.rooms.cause.inputs.deletion import curves, table
from ui.rooms.cause.inputs.screen import joined, screen_of, so_far
from ui.rooms.cause.inputs.sheet import as_csv, facts, finding, note, sheet
from ui.shell import errors, verdict
from ui.shell.export.recipe import inputs_lines
from ui.shell.export.take import take
from ui.shell.frame import frame
from ui.shell.waiting import is_there
from ui.words.glossary import terms
from ui.words.literal import literal

view = frame("Inputs")
place_of_finding = st.container(key="finding", height=28, border=False)
with errors.explained():
    chosen = outcome.outcome_of(view)
    screen = screen_of(view, chosen)  # before the model of an opened bundle is asked for
    with st.container(horizontal=True, vertical_alignment="bottom", key="outcome_controls"):
        outcome.controls(view, chosen)
    work, integral = screen.attributions(), screen.integral()

    @errors.explained()  # a block is drawn apart from the page, also the first time
    def result() -> None:
        if there := so_far(work, integral):
            sheet(screen, there, complete=False)

    if is_there(
        work, screen.n_attributed, "Attributing the outcome to the tokens", key="inputs_act", result=result
    ) and is_there(
        integral,
        screen.n_integrated,
        "Integrating gradients along the path",
        key="integral_act",
        result=result,
    ):
        attributions = so_far(work, integral)
        first = facts(screen, attributions)
        place_of_finding.markdown(finding(first, screen.tokens))
        drawn = {"Attributions": sheet(screen, attributions)}
        st.caption(literal(note(screen, attributions, first)))
        st.subheader("Which method is right for this sentence?", anchor=False)
        with errors.explained(key="cut_deletion"):
            chance = screen.chance()
            if is_there(chance, screen.n_deleted, "Removing tokens in random orders", key="chance_act"):
                taken = screen.deletion(attributions, joined(chance))
                if is_there(
                    taken, screen.n_deleted, "Removing tokens in each method’s order", key="deletion_act"
                ):
                    left, right = st.columns([3, 2], gap="medium")
                    with left:
                        drawn["Deletion curves"] = curves(screen, taken.results[0])
                    with right:
                        table(taken.results[0])
        terms(
            "Attribution", "Integrated gradients", "Attention flow", "Rollout", "Norm-based weight", "Outcome"
        )
        take(
            view,
            {"inputs_sheet": "Attributions", "inputs_deletion": "Deletion curves"},
            csv=partial(as_csv, screen, attributions),
            numbers="Attributions",
            python=inputs_lines(view, chosen),
            about=f"outcome: {screen.measured}",
            drawn=lambda: drawn,
        )
verdict.show(view)
