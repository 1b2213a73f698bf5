"""The settings of a map of one head, and what is drawn on it."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Annotated, Literal, Self

from attnviz.figures.projection import Tint
from attnviz.maps.layouts import FEWEST_ITERATIONS, METHOD_NAMES, METRICS, MOST_ITERATIONS
from attnviz.maps.projection import METHODS
from attnviz.maps.spaces import Space
from attnviz.records import AllHeads, Head
from ui.choice.fields import Number, OneHead, Switch, Word
from ui.choice.selection import choices
from ui.words.findings import SPACE_NAMES, SPACE_WORDS, TINT_NAMES

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
