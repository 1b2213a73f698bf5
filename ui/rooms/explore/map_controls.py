"""The settings of a map as widgets: the method, its input vectors, and its parameters with their ranges."""

from typing import Any

import numpy as np
import streamlit as st

from attnviz.maps.layouts import METHOD_NAMES, limits
from ui.choice import widgets
from ui.choice.selection import FIELDS
from ui.rooms.explore.other_maps.choices import MapSettings
from ui.shell.view import View

PARAMETERS = ("perplexity", "neighbours", "min_dist", "iterations", "seed")
"""The parameters of all methods."""


def in_words(view: View, n_point: int) -> str:
    """The settings of a map of this many points: "t-SNE, perplexity 5, iterations 1000, random seed 0"."""
    selection = view.selection
    method = selection.of(MapSettings).method
    used = {
        FIELDS[name].title: np.clip(selection.value(name), *ends)
        for name, ends in limits(method, n_point).items()
    }
    return ", ".join([METHOD_NAMES[method], *(f"{title.lower()} {value:g}" for title, value in used.items())])


def method_and_vectors(view: View) -> None:
    """The controls for the method and its input vectors."""
    selection = view.selection
    st.selectbox(**widgets.field("method"), width=145)
    st.selectbox(
        **widgets.field("space"), disabled=selection.of(MapSettings).method == "attention", width=165
    )


def parameters(view: View, n_point: int) -> None:
    """The method's parameters, each with its range for this many points."""
    selection = view.selection
    for name, (low, high) in limits(selection.of(MapSettings).method, n_point).items():
        help_text, highest = FIELDS[name].help, FIELDS[name].widget()["max_value"]
        kind: Any = type(selection.value(name))
        high = min(high, highest)
        is_shown = low <= selection.value(name) <= high
        label = FIELDS[name].title + ("" if name == "seed" else f" ({low:g} to {high:,.4g})")
        fits = selection.but(**{name: kind(np.clip(selection.value(name), low, high))})
        st.number_input(
            **widgets.field(
                name,
                fits,
                min_value=kind(low),
                max_value=kind(high),
                help=help_text if is_shown else f"{help_text} {selection.value(name):g} was asked for.",
                label=label,
            )
        )
    if selection.of(MapSettings).method not in ("attention", "pca"):
        st.segmented_control(**widgets.field("metric", required=True))
