"""The map beside its matrix, with its note."""

from typing import Any, cast

import numpy as np
import streamlit as st
from plotly.graph_objects import Figure

from attnviz.figures import draw_pattern, draw_projection
from attnviz.figures.projection import CONTOURS, Side, hides_labels
from attnviz.maps.spaces import Space
from attnviz.records import Projection
from ui.choice import state
from ui.components.plotly_figure.heatmap_events import heatmap_events
from ui.components.plotly_figure.label_room import label_room
from ui.rooms.explore.other_maps import reliability as reliability
from ui.rooms.explore.other_maps.choices import MapSettings
from ui.rooms.explore.other_maps.layout import side_of
from ui.shell.chart import chart
from ui.shell.view import RENORMALISED, View, hidden_note
from ui.words import findings as written
from ui.words.literal import literal

HEIGHT = 520  # px of the map

EVERY_TOKEN = "The map shows every token, even where rows and columns show words or leave tokens out."


def pick(clicked: Any) -> None:
    """Selects the token of a clicked point, a query or a key, whose lines are then drawn."""
    match clicked:
        case ["query", int(position)]:
            state.change(query=position, key=None, lines_of="query")
        case ["key" | "value", int(position)]:
            state.change(key=position, lines_of="key")
        case _:
            state.hold()


def lengths(view: View, projection: Projection) -> np.ndarray:
    """Length of each raw vector, in the order of the points."""
    at = projection.layer, projection.head, view.kind
    sides = {"query": view.trace.query, "key": view.trace.key, "value": view.trace.value}
    return np.concatenate(
        [np.linalg.norm(vectors(*at), axis=1) for role, vectors in sides.items() if role in projection.role]
    )


def map_figure(view: View, projection: Projection, picked: tuple[int, int]) -> Figure:
    """The map with its lines."""
    return draw_projection(
        projection,
        view.trace.weights(projection.layer, projection.head, view.kind),
        picked=picked,
        side=side_of(view.selection),
        tint=view.selection.of(MapSettings).tint,
        lengths=lengths(view, projection) if view.selection.of(MapSettings).tint == "norm" else None,
        height=HEIGHT,
        theme=view.theme,
    )


def figures(view: View, projection: Projection, picked: tuple[int, int]) -> dict[str, Figure | str]:
    """The page's figures for a bundle, by title."""
    return {"Map of queries and keys": map_figure(view, projection, picked)}


def draw_map(view: View, projection: Projection, picked: tuple[int, int]) -> None:
    """Draws the map with its lines; clicks select."""
    side = side_of(view.selection)
    drawn = map_figure(view, projection, picked)
    note = map_note(view, projection, side)
    is_crowded = hides_labels(drawn)
    if is_crowded:
        note += f" {written.WITHOUT_ROOM}"
    chart(
        drawn,
        key="space_map",
        alt=f"Map of the {len(projection.points):,} vectors of this head: {note}",
        on_pick=pick,
        name="Map of queries and keys; arrow keys walk through the points, Enter selects one",
        listeners=[label_room(note="" if is_crowded else written.WITHOUT_ROOM, theme=view.theme)],
    )
    st.caption(literal(note))


def map_note(view: View, projection: Projection, side: Side) -> str:
    """How the map was made and what its symbols mean."""
    selection = view.selection
    sentences = [written.map_settings(projection)]
    if projection.divergence is None and not projection.remark:
        sentences.append(written.SPACE_WORDS[cast(Space, projection.space)])
    if projection.divergence is None and reliability.is_biased(
        view.trace.attention(projection.layer, view.kind)
    ):
        sentences.append(written.BIASED)
    like = selection.of(MapSettings).aligned_with
    if like is not None and like != (projection.layer, projection.head):
        sentences.append(f"Aligned with the map of {like.words}.")
    if projection.method == "attention" and projection.points.shape[1] == 2 and side == "query":
        shares = list(CONTOURS)
        sentences.append(
            f"On the dashed circles a key has {', '.join(shares[:-1])} or {shares[-1]} of the weight that the map gives "
            "to the nearest key of the selected query."
        )
    if selection.unit == "words" or view.hides_special or view.hides_first or selection.sentences != "all":
        sentences.append(EVERY_TOKEN)
    return " ".join(sentences)


def draw_matrix(view: View, picked: tuple[int, int], caption: str) -> None:
    """The weights, with the row of the selected query or the column of the selected key."""
    shown = view.pattern()
    chart(
        draw_pattern(
            shown,
            colour=view.selection.colour,
            picked=picked,
            side=side_of(view.selection),
            largest=view.colour_end(shown),
            theme=view.theme,
        ),
        key="matrix",
        alt=f"Attention matrix, {written.place(shown)}: {caption}",
        listeners=[
            heatmap_events(
                shown,
                show="weights",
                picked=picked,
                on_pick=lambda query, key: state.change(query=query, key=key, lines_of="query"),
                on_label=lambda *clicked: pick(list(clicked)),
                theme=view.theme,
            )
        ],
    )
    notes = (
        hidden_note(view),
        RENORMALISED * view.is_renormalised,
        written.clipped_words(shown, view.colour_end(shown)),
    )
    if note := " ".join(filter(None, notes)):
        st.caption(note)
