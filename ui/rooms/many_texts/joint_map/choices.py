"""The settings of the joint map of many sentences."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

from attnviz.figures import joint_map as joint_map_figures
from attnviz.maps.joint_map import JointMethod
from attnviz.maps.layouts import METHOD_NAMES
from attnviz.maps.spaces import Space
from ui.choice.fields import Number, Text, Word
from ui.choice.selection import choices
from ui.words.findings import SPACE_NAMES

_PERPLEXITY = (
    "How many neighbours each point takes into account: a low value shows small groups, a high one the whole."
)


@choices
@dataclass(frozen=True, slots=True, kw_only=True)
class JointMapSettings:
    """The joint map of many sentences.

    It has its own method, vectors and colours, since thousands of points need other settings than one sentence.
    """

    PREFIX: ClassVar = "joint_"

    sentences: Annotated[
        str,
        Word(
            ("bundled", "own"),
            help="Maps the bundled sentences, or the visitor's own, which no link holds.",
        ),
    ] = "bundled"
    method: Annotated[
        JointMethod,
        Word(
            names=METHOD_NAMES,
            title="Method",
            help="Places the points: PCA keeps large distances and is fastest; UMAP and t-SNE keep neighbours and form "
            "groups.",
        ),
    ] = "pca"
    space: Annotated[
        Space,
        Word(
            names=SPACE_NAMES,
            title="Vectors",
            help="Feeds these vectors to the method; each choice keeps the weights within a sentence, as stated below the "
            "map.",
        ),
    ] = "lifted"
    perplexity: Annotated[float, Number(1, 500, step=5, title="Perplexity", help=_PERPLEXITY)] = 30.0
    tint: Annotated[
        str,
        Word(
            joint_map_figures.TINTS,
            names=lambda colouring: {
                "token": "Frequent tokens",
                "norm": "Length of vector",
                "special": "Special or not",
            }.get(colouring, colouring.capitalize()),
            title="Colour by",
            help="Colours the points by this; their shapes always tell queries and keys apart.",
        ),
    ] = "role"
    search: Annotated[
        str,
        Text(
            title="Find a token",
            help="Highlights every token or word that is exactly this, in upper or lower case.",
        ),
    ] = ""
    sentence: Annotated[int | None, Number(help="Selects a token of this sentence.")] = None
    token: Annotated[int, Number(help="Position of that token in its sentence.")] = 0
    side: Annotated[str, Word(("query", "key"), help="Selects its query or its key.")] = "query"
