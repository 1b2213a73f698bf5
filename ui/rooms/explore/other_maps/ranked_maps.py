"""All maps of one head, every method with all its input vectors, in a table, best first."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import streamlit as st

from attnviz.maps.layouts import METHOD_NAMES
from attnviz.maps.projection import arrays
from attnviz.maps.ranking import MAPS, MapChoice, RatedMap, best_first, ranking_csv, rate
from ui.choice import state
from ui.rooms.explore.map_settings import MapSettings
from ui.runtime.jobs import Call, Job, job
from ui.session import of_session
from ui.shell import waiting
from ui.shell.export.take import csv_button
from ui.shell.table import whole_rows
from ui.shell.view import View
from ui.words.findings import COMPILED, SPACE_NAMES
from ui.words.reliability import listed, reading_of


@dataclass(slots=True)
class Ranking:
    """The ranking that a visitor has requested."""

    key: Hashable = None
    """The ranking's head and settings."""
    was_picked: bool = False
    """Whether a map was just selected from it."""


def ranking(view: View) -> None:
    """Every method with all its input vectors, best first, once requested."""
    names = ("dimensions", "perplexity", "iterations", "neighbours", "min_dist", "seed")
    settings = {name: view.selection.value(name) for name in names}  # as in `attnviz.maps.projection.place`
    key = (view.selection.source, *view.selection.place, view.kind, *settings.values())
    if of_session(Ranking).key != key:
        st.button(
            "Compare all maps of this head",
            icon=":material/leaderboard:",
            key="compare_maps",
            on_click=_ask,
            args=(key,),
            help=f"Makes {len(MAPS)} maps, every method with every kind of vectors, and ranks them.",
        )
        return

    def calls() -> list[Call]:
        of_head = arrays(view.trace, *view.selection.place, view.kind)
        return [(rate, (*of_head, choice), settings) for choice in MAPS]

    work = job("map_ranking", key, calls)

    def so_far() -> str:
        return f"{work.n_done} of {len(MAPS)} maps done."

    def wording() -> str:
        compiles = any(choice.method == "umap" for choice in MAPS[work.n_done : work.n_done + 2])
        return so_far() + f" {COMPILED}." * compiles

    waiting.show_jobs(
        [work],
        wording,
        lambda: f"Cancelled: {so_far()}",
        key="ranking_act",
        result=lambda: _ranking(view, work),
        pulse=1.0,
    )


def _ask(key: Hashable) -> None:
    of_session(Ranking).key = key
    state.hold()


def _ranking(view: View, work: Job) -> None:
    """The maps so far, ranked."""
    asked = of_session(Ranking)
    if asked.was_picked:
        asked.was_picked = False
        waiting.whole_page()  # to show the selected map
    if rated := best_first([result for result in work.results if result is not None]):
        _ranked(view, rated)


def _ranked(view: View, rated: list[RatedMap]) -> None:
    shown = _shown(view)
    rows = [row for row, rating in enumerate(rated) if rating.choice == shown]
    st.session_state.ranked_maps = {"selection": {"rows": rows, "columns": [], "cells": []}}

    def take() -> None:
        picked = st.session_state.ranked_maps["selection"]["rows"]
        if picked:
            choice = rated[picked[0]].choice
            state.change(method=choice.method, space=choice.space, metric=choice.metric)
            of_session(Ranking).was_picked = True

    text, number = st.column_config.TextColumn, st.column_config.NumberColumn
    columns: dict[str, tuple[Callable[[RatedMap], Any], Any]] = {
        "Map": (
            lambda rated: METHOD_NAMES[rated.choice.method],
            text(help="What places the points.", width=110, pinned=True),
        ),
        "Fed with": (
            lambda rated: _fed_with(rated.choice),
            text(help="The vectors, and the distance between them that is kept."),
        ),
        "Mean": (
            lambda rated: rated.in_map.order_correlation,
            number(
                format="%.2f", help="Correlation of score and distance, mean over the queries; −1 is perfect."
            ),
        ),
        "Worst": (
            lambda rated: rated.in_map.worst_correlation,
            number(format="%.2f", help="The same for the query with the worst correlation."),
        ),
        "Nearest": (
            lambda rated: 100 * rated.in_map.nearest_agreement,
            number(format="%.0f%%", help="Share of the queries whose nearest key has the highest score."),
        ),
        "Reliability": (
            lambda rated: listed(reading_of(rated.in_map, rated.chance)),
            text(
                help="By the p values of both figures with key points permuted, and by the size of the mean correlation."
            ),
        ),
        "Trust": (
            lambda rated: rated.trustworthiness,
            number(
                format="%.2f",
                help="Trustworthiness: whether neighbours on the map are neighbours in what was fed in; 1 when all are.",
            ),
        ),
        "Lost": (
            lambda rated: rated.divergence,
            number(
                format="%.2f nats",
                help="What the attention map loses of the weights; others have none to lose.",
            ),
        ),
        "Took": (
            lambda rated: rated.duration_s,
            number(format="%.2f s", help="Seconds, without what a method does only once in a process."),
        ),
    }
    cells = {title: [of(each) for each in rated] for title, (of, _) in columns.items()}
    st.dataframe(
        {
            title: [None if isinstance(cell, float) and np.isnan(cell) else cell for cell in column]
            for title, column in cells.items()
        },
        column_config={title: config for title, (_, config) in columns.items()},
        hide_index=True,
        height=whole_rows(len(rated)),
        placeholder="–",
        on_select=take,
        selection_mode="single-row",
        key="ranked_maps",
        alt="All maps of this head, ranked",
    )
    sentence = (
        "Best first, by the mean correlation of score and distance. Tick a map to show it. Each map is tested by itself: the "
        "best of many passes by chance more easily than a single one."
    )
    if view.selection.of(MapSettings).values:
        sentence += " Value vectors are left out of all of them."
    st.caption(sentence)
    stem = f"attnviz-layer{view.selection.layer}-head{view.selection.head}-maps"
    csv_button("Ranking", partial(ranking_csv, rated), stem=stem, key="ranking_csv")


def _fed_with(choice: MapChoice) -> str:
    match choice.method:
        case "attention":
            return "the weights"
        case "pca":
            return SPACE_NAMES[choice.space]
        case _:
            return f"{SPACE_NAMES[choice.space]}; {choice.metric}"


def _shown(view: View) -> MapChoice:
    """The map on screen, or its equivalent in `MAPS`."""
    shown = view.selection.of(MapSettings)
    method, space, metric = shown.method, shown.space, shown.metric
    if method == "attention":
        return MapChoice(method=method)
    if method == "mds" and metric == "euclidean":
        method = "pca"
    if method == "pca":
        return MapChoice(method=method, space=space)
    if metric == "cosine" and space == "balanced":
        space = "centred"
    return MapChoice(method=method, space=space, metric=metric)
