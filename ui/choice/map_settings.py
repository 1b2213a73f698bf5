"""What a map is made with, as widgets: the method, what it is fed with, and its parameters in their ranges."""

from dataclasses import replace
from typing import Any

import numpy as np
import streamlit as st

from attnviz.maps.layouts import limits
from ui.choice import widgets
from ui.choice.selection import CHOICES, NUMBERS
from ui.page.view import View
from ui.words import findings as words

PARAMETERS = {
    "perplexity": (
        "Perplexity",
        "How many neighbours each point minds: low shows small groups, high the whole.",
    ),
    "neighbours": (
        "Neighbours",
        "How many neighbours each point minds: few show small groups, many the whole.",
    ),
    "min_dist": ("Least distance", "How near points may lie: low packs groups, high spreads them."),
    "iterations": ("Iterations", "Steps of the optimiser at most; more let the points settle."),
    "seed": (
        "Seed",
        "Seed of what is random in the method; what differs between seeds is not reliable.",
    ),
}
"""Title and help of every parameter that some method takes."""


def method_and_vectors(view: View) -> None:
    """What places the points, and what it is fed with."""
    selection = view.selection
    st.selectbox(
        "Method",
        CHOICES["method"],
        format_func=words.METHOD_NAMES.__getitem__,
        help="What places the points: the attention map is fitted to the weights themselves; t-SNE and UMAP keep "
        "neighbours together; PCA and classical MDS keep large distances.",
        width=145,
        **widgets.field("method"),
    )
    st.selectbox(
        "Vectors",
        CHOICES["space"],
        format_func=words.SPACE_NAMES.__getitem__,
        help="What the method is fed with; the attention map is fed with the weights. "
        + " ".join(f"{words.SPACE_NAMES[one]}: {said}" for one, said in words.SPACE_WORDS.items()),
        disabled=selection.maps.method == "attention",
        width=165,
        **widgets.field("space"),
    )


def parameters(view: View, n_point: int) -> None:
    """The method's parameters, each in the range that it has for this many points."""
    selection = view.selection
    for name, (low, high) in limits(selection.maps.method, n_point).items():
        title, said = PARAMETERS[name]
        kind: Any = type(getattr(selection, name))
        high = min(high, NUMBERS[name].highest)
        is_shown = low <= getattr(selection, name) <= high
        fits = selection.but(**{name: kind(np.clip(getattr(selection, name), low, high))})
        st.number_input(
            f"{title} ({low:g} to {high:,.4g})" if name != "seed" else title,
            min_value=kind(low),
            max_value=kind(high),
            step={"iterations": 250, "min_dist": 0.05}.get(name, kind(1)),
            format="%g" if kind is float else None,
            help=said if is_shown else f"{said} {getattr(selection, name):g} was asked for.",
            **widgets.field(name, fits),
        )
    if selection.maps.method not in ("attention", "pca"):
        st.segmented_control(
            "Distance",
            CHOICES["metric"],
            required=True,
            format_func=str.capitalize,
            help="Cosine compares the directions of the vectors, euclidean also their lengths.",
            **widgets.field("metric"),
        )
