"""The joint map of many sentences: its settings, and its layout in the background while the page stays unchanged."""

from dataclasses import dataclass
from typing import Any

import streamlit as st

from attnviz.figures.numbers import counted
from attnviz.maps.collection import Collection
from attnviz.maps.joint_map import JointMap, joint_map
from ui.choice import widgets
from ui.choice.selection import Selection
from ui.rooms.many_texts.joint_map.choices import JointMapSettings
from ui.rooms.many_texts.joint_map.lines import digest
from ui.runtime import jobs
from ui.shell.view import View
from ui.shell.waiting import is_there

_FIELDS = {
    "pca": (),
    "umap": ("neighbours", "min_dist", "seed"),
    "tsne": ("joint_perplexity", "seed"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Screen:
    """What is drawn: a map and its input."""

    collection: Collection
    head: int
    map: JointMap

    @property
    def place(self) -> str:
        """Name of the map's head."""
        return f"Layer {self.collection.layer}, head {self.head}, {counted(len(self.collection.tokens), 'sentence')}"


@dataclass(slots=True)
class LastScreen:
    """The map that this visitor saw last, which stays until the next one is ready."""

    screen: Screen | None = None


def method() -> None:
    """The control for the method."""
    st.segmented_control(**widgets.field("joint_method", required=True))


def parameters(selection: Selection) -> None:
    """The controls for the method's input vectors and parameters."""
    st.selectbox(**widgets.field("joint_space"))
    for name in _FIELDS[selection.of(JointMapSettings).method]:
        st.number_input(**widgets.field(name))


def lay_out(view: View, text: str, collection: Collection) -> Screen | None:
    """The map of the selected head, computed by a worker process; None until it is ready.

    Raises:
        AttnvizError: one of `ui.shell.waiting.REFUSALS`.
    """
    selection = view.selection
    settings: dict[str, Any] = {
        "method": selection.of(JointMapSettings).method,
        "space": selection.of(JointMapSettings).space,
    }
    for name in _FIELDS[selection.of(JointMapSettings).method]:
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
    return Screen(collection=collection, head=selection.head, map=job.results[0])
