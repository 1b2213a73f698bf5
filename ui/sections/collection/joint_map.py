"""The joint map of many sentences: what it is made with, and how it is made while the page stays as it is."""

from dataclasses import dataclass
from typing import Any

import streamlit as st

from attnviz.maps.collection import Collection
from attnviz.maps.joint_map import JOINT_METHODS, METHOD_NAMES, JointMap, joint_map
from attnviz.maps.spaces import SPACES
from ui.choice import widgets
from ui.choice.map_settings import PARAMETERS
from ui.choice.selection import NUMBERS, Selection
from ui.page.view import View
from ui.sections.collection.lines import digest
from ui.words.findings import SPACE_NAMES
from ui.work import jobs, waiting

_FIELDS = {
    "pca": (),
    "umap": ("neighbours", "min_dist", "seed"),
    "tsne": ("lines_perplexity", "seed"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Screen:
    """What is drawn: a map with what it was made of."""

    collection: Collection
    head: int
    map: JointMap

    @property
    def place(self) -> str:
        """Whose map it is."""
        return f"Layer {self.collection.layer}, head {self.head}, {len(self.collection.tokens):,} sentences"


def method() -> None:
    """What places the points."""
    st.segmented_control(
        "Method",
        JOINT_METHODS,
        required=True,
        format_func=METHOD_NAMES.__getitem__,
        help="PCA keeps large distances and is quickest; UMAP and t-SNE keep neighbours and form groups.",
        **widgets.field("lines_method"),
    )


def parameters(selection: Selection) -> None:
    """What the method is fed with, and its parameters."""
    st.selectbox(
        "Vectors",
        SPACES,
        format_func=SPACE_NAMES.__getitem__,
        help="What the method is fed with; each choice keeps the weights within a sentence, as is said below the map.",
        **widgets.field("lines_space"),
    )
    for field, name in _fields(selection):
        number = NUMBERS[field]
        title, said = PARAMETERS[name]
        kind: Any = int if number.whole else float
        st.number_input(
            title,
            min_value=kind(number.lowest),
            max_value=kind(number.highest),
            step={"lines_perplexity": 5.0, "neighbours": 5, "min_dist": 0.05}.get(field, 1),
            format="%g" if kind is float else None,
            help=said,
            **widgets.field(field),
        )


def _fields(selection: Selection) -> list[tuple[str, str]]:
    """Fields of the selection that the method takes, each with what it is there."""
    return [(field, field.removeprefix("lines_")) for field in _FIELDS[selection.joint.method]]


def lay_out(view: View, text: str, collection: Collection) -> Screen | None:
    """The map of the picked head, made by another process; None while it is not there."""
    selection = view.selection
    settings: dict[str, Any] = {"method": selection.joint.method, "space": selection.joint.space}
    settings |= {name: getattr(selection, field) for field, name in _fields(selection)}
    key = (selection.model, digest(text), selection.layer, view.kind, selection.head, *settings.values())

    def calls() -> list[jobs.Call]:
        vectors = collection.vectors(selection.head)
        scores = [collection.scores(one, selection.head) for one in range(len(collection.tokens))]
        return [(joint_map, (*vectors, scores), settings | {"progress": None})]

    job = jobs.job("joint_map", key, calls)
    if job.finished:
        return Screen(collection=collection, head=selection.head, map=job.results[0])

    def draw() -> None:
        waiting.progress(
            job, "Laying out the map …", "The map was not laid out to its end.", "Lay it out", key="map_act"
        )

    waiting.watched(job, draw)
    return None
