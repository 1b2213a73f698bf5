"""The joint map of many sentences: its settings, and its layout in the background while the page stays unchanged."""

from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar

import streamlit as st

from attnviz.figures import joint_map as joint_map_figures
from attnviz.figures.numbers import counted
from attnviz.maps.collection import Collection, bundled, sentences
from attnviz.maps.joint_map import JointMap, JointMethod, joint_map
from attnviz.maps.layouts import METHOD_NAMES, MISSING
from attnviz.maps.spaces import Space
from attnviz.model.catalogue import offer
from ui.choice import widgets
from ui.choice.fields import Number, Text, Word
from ui.choice.selection import choices
from ui.rooms.many_texts.own_corpora import OwnSentences, digest, own_lines
from ui.runtime import jobs, with_model
from ui.session import of_session
from ui.shell.view import View
from ui.shell.waiting import is_there
from ui.words.findings import SPACE_NAMES

_PERPLEXITY = (
    "How many neighbours each point takes into account: a low value shows small groups, a high one the whole."
)
_FIELDS = {"pca": (), "umap": ("neighbours", "min_dist", "seed"), "tsne": ("joint_perplexity", "seed")}


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
            ("bundled", "own"), help="Maps the bundled sentences, or the visitor's own, which no link holds."
        ),
    ] = "bundled"
    method: Annotated[
        JointMethod,
        Word(
            names=METHOD_NAMES,
            missing=MISSING,
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Screen:
    """What is drawn: a map and its input."""

    view: View
    collection: Collection
    head: int
    map: JointMap

    @property
    def chosen(self) -> JointMapSettings:
        """What is selected on this page."""
        return self.view.selection.of(JointMapSettings)

    @property
    def place(self) -> str:
        """Name of the map's head."""
        return f"Layer {self.collection.layer}, head {self.head}, {counted(len(self.collection.tokens), 'sentence')}"

    @property
    def token(self) -> int | None:
        """Index of the selected token; None if none is selected, or it does not exist."""
        tokens, at = self.collection.tokens, self.chosen.sentence
        if at is None or at >= len(tokens) or self.chosen.token >= len(tokens[at]):
            return None
        return self.collection.start(at) + self.chosen.token


@dataclass(slots=True)
class LastScreen:
    """The map that this visitor saw last, which stays until the next one is ready."""

    screen: Screen | None = None


def controls(view: View) -> None:
    """The controls for the sentences, for how the map is made and coloured, and for the highlighted token."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        own_lines()
        st.segmented_control(**widgets.field("joint_method", required=True))
        st.selectbox(**widgets.field("joint_tint"), width=190)
        st.text_input(**widgets.field("joint_search"), width=190)
        with st.popover("More", icon=":material/tune:", key="joint_map_more"):
            st.selectbox(**widgets.field("joint_space"))
            for name in _FIELDS[view.selection.of(JointMapSettings).method]:
                st.number_input(**widgets.field(name))


def screen_of(view: View) -> Screen | None:
    """The map of the selected head, or until it is ready the one that this visitor saw last, if any."""
    text, last = chosen_lines(view), of_session(LastScreen)
    collection = read(view, text)
    made = None if collection is None else lay_out(view, text, collection)
    shown = made or last.screen
    last.screen = None if shown is None else replace(shown, view=view)
    return last.screen


def chosen_lines(view: View) -> str:
    """The text whose lines are shown; draws a note if the link asks for another."""
    own, is_own = of_session(OwnSentences).text, view.selection.of(JointMapSettings).sentences == "own"
    if is_own and own:
        st.caption("These sentences stay in this session; no link holds them.")
        return own
    if is_own:
        st.caption(
            ":material/info: The link leads to pasted or uploaded sentences, which no link holds; the bundled set is shown."
        )
    return bundled()


def read(view: View, text: str) -> Collection | None:
    """Queries and keys of all lines, read by a worker process with progress; None meanwhile, or if cancelled.

    Raises:
        EmptyTextError, SelectionError: as `attnviz.maps.collection.collect`.
    """
    selection = view.selection
    work = jobs.job(
        "collection",
        (selection.model, digest(text), selection.layer, view.kind),
        lambda: [
            (
                with_model.collect,
                (offer(selection.model).name, text, selection.layer),
                {"kind": view.kind, **jobs.TELLS_PROGRESS},
            )
        ],
    )
    if not is_there(
        work,
        None,
        f"Reading {counted(len(sentences(text)), 'sentence')}",
        stopped="Reading the sentences was stopped.",
        resume="Read them",
        key="reading_act",
    ):
        return None
    collection: Collection = work.results[0]
    return collection


def lay_out(view: View, text: str, collection: Collection) -> Screen | None:
    """The map of the selected head, computed by a worker process; None until it is ready.

    Raises:
        AttnvizError: one of `ui.shell.waiting.REFUSALS`.
    """
    selection, chosen = view.selection, view.selection.of(JointMapSettings)
    settings: dict[str, Any] = {"method": chosen.method, "space": chosen.space}
    for name in _FIELDS[chosen.method]:
        settings[name.removeprefix(JointMapSettings.PREFIX)] = selection.value(name)
    key = (selection.model, digest(text), selection.layer, view.kind, selection.head, *settings.values())

    def calls() -> list[jobs.Call]:
        vectors = collection.vectors(selection.head)
        scores = [collection.scores(text, selection.head) for text in range(len(collection.tokens))]
        return [(joint_map, (*vectors, scores), settings | jobs.TELLS_PROGRESS)]

    job = jobs.job("joint_map", key, calls)
    if not is_there(
        job,
        None,
        f"Laying out the queries and keys of {counted(len(collection.tokens), 'sentence')}",
        stopped="The layout of the map was stopped.",
        resume="Lay it out",
        key="map_act",
    ):
        return None
    return Screen(view=view, collection=collection, head=selection.head, map=job.results[0])
