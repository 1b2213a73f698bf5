"""Where does the difference between two sentences lie? States of one run carried into the other."""

from functools import partial

import streamlit as st

from ui.export.recipe import patching_lines
from ui.export.take import take
from ui.page import errors, verdict
from ui.page.frame import frame
from ui.page.waiting import is_there
from ui.sections.outcome import outcome_of
from ui.sections.own_run import check_can_run
from ui.sections.patching.heatmap import as_csv, finding, heatmap, note
from ui.sections.patching.screen import controls, joined, look, text_of_donor
from ui.words.glossary import terms
from ui.words.literal import literal

view = frame("Patching")
found = st.container(key="finding", height=28, border=False)
with errors.explained():
    check_can_run(view, "States were to be carried into another run")
    outcome = outcome_of(view)
    controls(view, outcome)
    screen = look(view, outcome)
    work = screen.patching_job()
    n_tokens = screen.n_rows * len(screen.tokens[0]) * len(view.trace.tokens)
    if is_there(work, n_tokens, "Carrying states over", key="patching_act"):
        shares = joined(work)
        found.markdown(f"**{literal(finding(screen, shares))}**")
        drawn = heatmap(screen, shares)
        st.caption(note(screen, shares))
        terms("Activation patching", "Residual stream", "Outcome", "Layer", "Head")
        take(
            view,
            {"patching_shares": "Shares of the difference"},
            csv=partial(as_csv, screen, shares),
            numbers="Shares",
            python=patching_lines(view, outcome, text_of_donor(view)),
            about=f"states carried over from: {text_of_donor(view)}; outcome: {screen.measured}",
            drawn=lambda: {"Shares of the difference": drawn},
        )
verdict.show(view)
