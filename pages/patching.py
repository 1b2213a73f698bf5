"""Where does the difference between two sentences lie? States of one run carried into the other."""

from functools import partial

import streamlit as st
from plotly.graph_objects import Figure

from attnviz.figures.numbers import counted
from ui.rooms.cause import prompts
from ui.rooms.cause.outcome import outcome_of
from ui.rooms.cause.own_run import check_can_run
from ui.rooms.compare.patching import over_set
from ui.rooms.compare.patching.heatmap import as_csv, estimate, finding, gradient, heatmap, note, sofar
from ui.rooms.compare.patching.screen import (
    controls,
    joined,
    patches_of,
    screen_of,
    text_of_donor,
    without_donor,
)
from ui.shell import errors, verdict
from ui.shell.export.recipe import patched_set_lines, patching_lines
from ui.shell.export.take import take
from ui.shell.frame import frame
from ui.shell.waiting import is_there
from ui.words.glossary import terms
from ui.words.literal import literal

view = frame("Patching")
place_of_finding = st.container(key="finding", height=28, border=False)
with errors.explained():
    check_can_run(view, "Patching was asked for")
    prompts.choice()
    if prompts.is_set(view):
        run = over_set.run_of(view)
        if run is not None and (mean := over_set.patched(run)) is not None:
            place_of_finding.markdown(f"**{literal(over_set.finding_of_set(run, mean))}**")
            whole = over_set.heatmap(run, mean)
            st.caption(over_set.note(run, mean))
            terms("Activation patching", "Path patching", "Residual stream", "Outcome", "Head")
            take(
                view,
                {"patching_shares": "Shares of the mean difference"},
                csv=partial(mean.csv, run.pairs),
                numbers="Changes over the pairs",
                python=patched_set_lines(view, run.prompts, patches_of(view)),
                about=f"mean over {counted(mean.changes.n_pair, 'pair')} of prompts",
                drawn=lambda: {"Shares of the mean difference": whole},
            )
    else:
        outcome = outcome_of(view)
        controls(view, outcome)
        if not text_of_donor(view):
            without_donor(view)
        else:
            screen = screen_of(view, outcome)
            work = screen.patching_job()
            so_far = partial(sofar, screen, work)
            if is_there(work, screen.n_tokens, "Patching states", key="patching_act", result=so_far):
                shares = joined(work)
                assert shares is not None  # all of it is there
                place_of_finding.markdown(f"**{literal(finding(screen.tokens[0], shares))}**")
                drawn: dict[str, Figure | None] = {}
                left, right = st.columns(2, gap="medium")
                with left:
                    drawn["Shares of the difference"] = heatmap(screen, shares, key="patching_shares")
                    st.caption(note(screen, shares))
                with right, errors.explained(key="cut_gradient"):
                    if shares.end is None:
                        drawn["By gradient"] = gradient(screen, shares)
                terms(
                    "Activation patching",
                    "Path patching",
                    "Attribution patching",
                    "Residual stream",
                    "Outcome",
                    "Head",
                )
                take(
                    view,
                    {"patching_shares": "Shares of the difference", "patching_gradient": "By gradient"},
                    csv=partial(as_csv, screen, shares, estimate(screen)),
                    numbers="Shares",
                    python=patching_lines(view, outcome, text_of_donor(view), screen.patches),
                    about=f"states swapped in from: {text_of_donor(view)}; outcome: {screen.measured}",
                    drawn=lambda: {title: picture for title, picture in drawn.items() if picture is not None},
                )
verdict.show(view)
