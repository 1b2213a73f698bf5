"""The settings of maps of queries and keys, for every part that lays some out: their choices, and the widgets for them."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal, Self

import numpy as np
import streamlit as st

from attnviz.figures.projection import Tint
from attnviz.maps.layouts import FEWEST_ITERATIONS, METHOD_NAMES, METRICS, MISSING, MOST_ITERATIONS, limits
from attnviz.maps.projection import METHODS
from attnviz.maps.spaces import Space
from attnviz.records import AllHeads, Head
from ui.choice import widgets
from ui.choice.fields import Number, OneHead, Switch, Word
from ui.choice.selection import FIELDS, choices
from ui.shell.navigation import link_to
from ui.shell.view import View
from ui.words.findings import SPACE_NAMES, SPACE_WORDS, TINT_NAMES

PARAMETERS = ("perplexity", "neighbours", "min_dist", "iterations", "seed")
"""The parameters of all methods."""
MapsOrder = Literal["layer", "reliability"]
"""How the maps of all heads are ordered: by layer and head, or the most reliable first."""


_PERPLEXITY = (
    "How many neighbours each point takes into account: a low value shows small groups, a high one the whole."
)


_SPACES = " ".join(f"{SPACE_NAMES[space]}: {words}" for space, words in SPACE_WORDS.items())


@choices
@dataclass(frozen=True, slots=True, kw_only=True)
class MapSettings:
    """The settings of a map of one head's queries and keys, and what is drawn on it."""

    method: Annotated[
        str,
        Word(
            METHODS,
            names=METHOD_NAMES,
            missing=MISSING,
            title="Method",
            help="Places the points: the attention map is fitted to the weights themselves; t-SNE and UMAP keep "
            "neighbours together; PCA and classical MDS keep large distances.",
        ),
    ] = "attention"
    """The first screen's map is always t-SNE."""
    space: Annotated[
        Space,
        Word(
            names=SPACE_NAMES,
            title="Vectors",
            help=f"Feeds these vectors to the method; the attention map is fed the weights instead. {_SPACES}",
        ),
    ] = "lifted"
    """The first screen's map uses the raw vectors."""
    dimensions: Annotated[
        int,
        Number(
            2,
            3,
            title="Dimensions",
            help="Lays the points out in the plane, or in space, where you can turn them.",
        ),
    ] = 2
    values: Annotated[
        bool,
        Switch(
            title="Values as a third cloud",
            help="Adds the value vectors as squares; the attention map, fitted to weights, has no place for them.",
        ),
    ] = False
    aligned_with: Annotated[
        Head | None, OneHead(help="Rotates and mirrors the map to lie as close to this head's as it can.")
    ] = None
    tint: Annotated[
        Tint,
        Word(
            names=TINT_NAMES,
            title="Coloured by",
            help="Colours the points by this; their shapes always tell queries, keys and values apart.",
        ),
    ] = "role"
    order: Annotated[
        MapsOrder,
        Word(
            names={"layer": "By layer", "reliability": "Best map first"},
            title="Order",
            help="Orders the maps by layer and head, or puts those first whose distances follow the scores best.",
        ),
    ] = "layer"
    largest_first: Annotated[
        bool,
        Switch(
            title="Largest first",
            help="Orders the dimensions by what they add to the score or take from it, instead of by number.",
        ),
    ] = False
    """Whether the selected pair's dimensions are ordered by their contribution to the score."""
    sources: Annotated[
        bool,
        Switch(
            title="Sources of the score",
            help="Splits the score of the pair by where its query and key come from: embedding, earlier heads and MLPs.",
        ),
    ] = False
    """Whether the selected pair's score is split by the sources of its query and key."""
    metric: Annotated[
        str,
        Word(
            METRICS,
            title="Distance",
            help="Cosine compares the directions of the vectors, euclidean also their lengths.",
        ),
    ] = "cosine"
    perplexity: Annotated[float, Number(1, 100, title="Perplexity", help=_PERPLEXITY)] = 5.0
    iterations: Annotated[
        int,
        Number(
            FEWEST_ITERATIONS,
            MOST_ITERATIONS,
            step=250,
            title="Iterations",
            help="Largest number of steps of the optimiser; with more, the points settle.",
        ),
    ] = 1000
    neighbours: Annotated[
        int,
        Number(
            2,
            500,
            title="Neighbours",
            help="How many neighbours each point takes into account: few show small groups, many the whole.",
        ),
    ] = 15
    min_dist: Annotated[
        float,
        Number(
            0,
            1,
            step=0.05,
            title="Least distance",
            help="How close points may be: a low value packs groups, a high one spreads them.",
        ),
    ] = 0.1

    def fitted(self, is_there: Callable[[Head | AllHeads], bool], model: str) -> tuple[Self, str]:
        """These choices without a head that a model does not have, and what was left out."""
        like = self.aligned_with
        if like is None or is_there(like):
            return self, ""
        remark = f"The map was to be aligned with that of {like.words}, which {model} does not have."
        return replace(self, aligned_with=None), remark


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


def link_to_others() -> None:
    """The link from a t-SNE map to the maps of every method, of which another may be more reliable for the same head."""
    link_to(
        "Other maps",
        label="Other maps",
        help="Each map has a reliability of its own: where this one says little, another may say more.",
    )
