"""The t-SNE map of the head's queries and keys."""

import streamlit as st

from attnviz.errors import AttnvizError
from attnviz.figures import draw_projection
from attnviz.figures.projection import hides_labels
from attnviz.records import LONG, Projection
from ui.choice import widgets
from ui.components.plotly_figure.label_room import label_room
from ui.rooms.explore.map_settings import MapSettings
from ui.rooms.explore.pair import pick
from ui.rooms.explore.stage.screen import Screen
from ui.runtime import cache
from ui.shell import errors
from ui.shell.chart import chart
from ui.shell.view import View
from ui.words.findings import WITHOUT_ROOM, lines_note, map_note
from ui.words.reliability import reading_of, short


def layout() -> None:
    """The controls for the map's layout."""
    st.segmented_control(**widgets.field("metric", required=True))
    st.number_input(**widgets.field("perplexity"))
    st.number_input(**widgets.field("iterations"))
    st.number_input(
        **widgets.field(
            "seed",
            help="Seeds the noise that the points start with; on one machine the same seed gives the same picture, whatever the number of threads.",
        )
    )


def query_key_map(screen: Screen) -> None:
    """Draws the map, and says how it was made and how reliable it is."""
    selection, theme = screen.view.selection, screen.view.theme
    if (n_token := len(screen.view.query_tokens)) > LONG:
        st.caption(f"The map takes texts of up to {LONG:,} tokens; this one has {n_token:,}.")
        return
    with errors.explained():
        projection = _projection(screen.view)
        drawn_map = draw_projection(
            projection, picked=(screen.query, screen.key), is_square=False, theme=theme
        )
        note = map_note(projection)
        is_crowded = hides_labels(drawn_map)
        chart(
            drawn_map,
            key="map",
            alt=f"Map of the {len(projection.points)} query and key vectors of this head: {note}",
            on_pick=pick,
            name="Map of queries and keys; arrow keys walk through the points, Enter selects one",
            listeners=[label_room(note="" if is_crowded else WITHOUT_ROOM, theme=theme)],
        )
        reading = short(reading_of(projection.in_map, projection.chance))
        st.caption(
            f"t-SNE: {reading}" + f". {WITHOUT_ROOM}" * is_crowded,
            help=f"{note} {lines_note(selection.show)}",
        )


def notes_of_map(view: View) -> dict[str, str]:
    """How the map was made and how reliable it is, by its key; none if it cannot be laid out, or of a long text, which has none."""
    if view.trace.is_long(view.kind):
        return {}
    try:
        return {"map": map_note(_projection(view))}
    except AttnvizError:
        return {}


def _projection(view: View) -> Projection:
    selection, settings = view.selection, view.selection.of(MapSettings)
    return cache.projection(
        selection.source,
        *selection.place,
        view.kind,
        metric=settings.metric,
        perplexity=settings.perplexity,
        iterations=settings.iterations,
        seed=selection.seed,
    )
