"""What if a head were off? Every head switched off in turn, and what happens to an outcome."""

from functools import partial

import streamlit as st
from plotly.graph_objects import Figure

from attnviz.figures.numbers import counted
from ui.components.head_grid import beside_grid
from ui.rooms.cause import prompts
from ui.rooms.cause.effects import over_set
from ui.rooms.cause.effects.comparing import weights_and_effects, zeros_and_means
from ui.rooms.cause.effects.grid import ablated, controls, finding, grid, layers, note, ranking
from ui.rooms.cause.effects.screen import Screen
from ui.rooms.cause.effects.together import all_heads, greedy
from ui.rooms.cause.outcome import outcome_of
from ui.rooms.cause.own_run import check_can_run
from ui.shell import errors, verdict
from ui.shell.export.recipe import ablated_set_lines, effects_lines
from ui.shell.export.take import take
from ui.shell.frame import frame
from ui.shell.head_names import find_probes
from ui.shell.navigation import link_to
from ui.words.glossary import terms
from ui.words.literal import literal

view = frame("Heads off")
place_of_finding = st.container(key="finding", height=28, border=False)
with errors.explained():
    check_can_run(view, "Heads off was asked for")
    prompts.choice()
    if prompts.is_set(view):
        run = over_set.run_of(view)
        if run is not None and (mean := over_set.ablated(run)) is not None:
            place_of_finding.markdown(over_set.finding_of_set(mean))
            left, right = beside_grid((3, 1), "effects_grid", n_layers=view.trace.n_layers(view.kind))
            with left:
                over_set.grid(view, mean)
                st.caption(over_set.note(run, mean))
            with right:
                over_set.ranking(view, mean)
                link_to("Together", label=f"See the attention of {view.selection.place.words}")
            find_probes(view)
            terms("Head", "Ablation", "Outcome")
            take(
                view,
                {"effects_grid": "Mean effects of all heads"},
                csv=partial(mean.csv, run.pairs),
                numbers="Effects over the pairs",
                python=ablated_set_lines(view, run.prompts),
                about=f"mean over {counted(mean.effects.n_pair, 'pair')} of prompts",
            )
    else:
        screen = Screen(view=view, outcome=outcome_of(view))
        controls(screen)
        effects = ablated(screen, screen.ablation, key="ablation")
        if effects is not None:
            place_of_finding.markdown(finding(screen, effects))
            left, right = beside_grid((3, 1), "effects_grid", n_layers=view.trace.n_layers(view.kind))
            with left:
                grid(screen, effects)
                st.caption(literal(note(screen, effects)))
            with right:
                ranking(screen, effects)
                link_to("Together", label=f"See the attention of {view.selection.place.words}")
                of_layers = layers(screen)
            drawn: dict[str, Figure | None] = {}
            left, right = st.columns(2, gap="medium")
            with left, errors.explained(key="cut_greedy"):
                drawn["Heads off one by one"] = greedy(screen)
            with right, errors.explained(key="cut_cells"):
                drawn["Weights and effects"] = weights_and_effects(screen)
            left, right = st.columns(2, gap="medium")
            with left, errors.explained(key="cut_removal"):
                drawn["All heads off one by one"] = all_heads(screen, effects)
            with right, errors.explained(key="cut_ablations"):
                drawn["Zeros and means"] = zeros_and_means(screen, effects)
            find_probes(view)
            terms("Head", "Ablation", "Outcome", "Weight", "Norm-based weight")
            take(
                view,
                {
                    "effects_grid": "Effects of all heads",
                    "effects_greedy": "Heads off one by one",
                    "effects_cells": "Weights and effects",
                    "effects_removal": "All heads off one by one",
                    "effects_ablations": "Zeros and means",
                },
                csv=partial(effects.csv, of_layers),
                numbers="Effects",
                python=effects_lines(view, screen.outcome),
                about=screen.measured,
                drawn=lambda: {title: picture for title, picture in drawn.items() if picture is not None},
            )
verdict.show(view)
