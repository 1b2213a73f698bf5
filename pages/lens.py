"""What would the model predict if it stopped after each layer? The logit lens, and what each head adds to the answer."""

from functools import partial

import streamlit as st
from plotly.graph_objects import Figure

from ui.components.head_grid import beside_grid
from ui.rooms.cause import outcome, prompts
from ui.rooms.cause.lens import over_set
from ui.rooms.cause.lens.answers import finding, grid, note, of_token, terms_of
from ui.rooms.cause.lens.followed import followed
from ui.rooms.cause.lens.heads import heads, layers, parts, sources
from ui.rooms.cause.lens.screen import screen_of
from ui.shell import errors, verdict
from ui.shell.export.recipe import attributed_set_lines, lens_lines
from ui.shell.export.take import take
from ui.shell.frame import frame
from ui.shell.head_names import find_probes
from ui.shell.language_model import offer_language_model
from ui.shell.navigation import link_to
from ui.shell.waiting import is_there
from ui.words.glossary import terms

# isort: split
from attnviz.figures.layer_grid import runs_across  # after ui, which sets how torch's threads wait

view = frame("Lens")
place_of_finding = st.container(key="finding", height=28, border=False)
with errors.explained():
    chosen = outcome.outcome_of(view)
    screen = screen_of(view, chosen)
    if screen.has_head:
        with st.container(horizontal=True, vertical_alignment="bottom", key="outcome_controls"):
            outcome.controls(view, chosen)
    answer = None  # whose parts are shown; None for those of the last hidden state
    work = screen.lens()
    n_tokens = screen.counted(len(screen.tokens))
    if is_there(work, n_tokens, "Applying the lens to each layer", key="lens_act"):
        answers = work.results[0]
        if not screen.has_head:
            offer_language_model(
                view.selection,
                "has no language head, so it predicts no tokens: each cell compares a layer's vector with the last layer's.",
                key="use_language_model",
            )
        place_of_finding.markdown(finding(screen, answers))
        left, right = beside_grid((3, 1), "lens_grid", n_layers=view.trace.n_layers(view.kind))
        drawn: dict[str, Figure] = {}
        with left:
            with st.container(key="lens_grid_room" + "_across" * runs_across(view.trace.n_layers(view.kind))):
                drawn["Answers after each layer"] = grid(screen, answers)
            st.caption(note(answers))
        with right:
            of_token(screen, answers)
        if screen.has_head and screen.answer is not None:
            with errors.explained(key="cut_followed"):
                course = screen.followed(screen.answer)
                if is_there(course, n_tokens, "Following the chosen tokens", key="followed_act"):
                    drawn["Chosen answers"] = followed(screen, course.results[0])
        csv, numbers, python = answers.csv, "Answers", ""
        with errors.explained(key="cut_direct"):
            if screen.has_head:
                prompts.choice()
            if screen.has_head and prompts.is_set(view):
                run = over_set.run_of(view)
                if run is not None and (mean := over_set.attributed(run)) is not None:
                    drawn["What each layer adds"] = over_set.show(run, mean)
                    csv, numbers = partial(mean.csv, run.pairs), "Direct effects over the pairs"
                    python = attributed_set_lines(view, run.prompts)
            elif is_there(screen.direct(), n_tokens, "Computing direct logit attribution", key="direct_act"):
                answer, effects = screen.direct().results[0]
                left, right = beside_grid((3, 1), "lens_heads", n_layers=view.trace.n_layers(view.kind))
                with left:
                    heads(screen, answer, effects)
                    drawn["What each layer adds"] = layers(view, effects)
                with right:
                    parts(view, effects)
                    sources(screen, effects)
                    link_to("Heads off", label=f"What if {view.selection.place.words} were off?")
        find_probes(view)
        terms(*terms_of(answers), "Direct effect", "Residual stream", "Layer", "Head")
        take(
            view,
            {
                "lens_grid": "Answers after each layer",
                "lens_followed": "Chosen answers",
                "lens_heads": "What each head adds",
                "lens_layer_parts": "What each layer adds",
            },
            csv=csv,
            numbers=numbers,
            python=python or lens_lines(view, view.last_query, answer),
            drawn=lambda: drawn,
        )
verdict.show(view)
