"""The controls for the map's settings and for what is drawn on it."""

import streamlit as st

from ui.choice import state, widgets
from ui.choice.selection import Selection
from ui.rooms.explore import map_controls as map_settings
from ui.rooms.explore.other_maps.choices import MapSettings
from ui.rooms.explore.other_maps.layout import points_of, settings_of, side_of
from ui.shell.view import View


def controls(view: View) -> None:
    """The controls for the method, its input vectors and the number of axes; under More all others."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        map_settings.method_and_vectors(view)
        st.segmented_control(
            **widgets.field("dimensions", format_func="{}-D".format, options=(2, 3), required=True)
        )
        with st.popover("More", icon=":material/tune:", key="space_more"):
            more(view)


def more(view: View) -> None:
    """The method's parameters, each with its range for this many points, and what the picture shows."""
    selection = view.selection
    map_settings.parameters(view, points_of(view, settings_of(selection)))
    st.toggle(**widgets.field("values"), disabled=selection.of(MapSettings).method == "attention")
    st.selectbox(**widgets.field("tint"))
    st.segmented_control(
        **widgets.field("lines_of", selection.but(lines_of=side_of(selection)), required=True)
    )
    alignment(selection)


def alignment(selection: Selection) -> None:
    """The control that aligns other heads' maps with this one when the head changes."""
    if like := selection.of(MapSettings).aligned_with:
        st.button(
            f"Stop aligning with {like.words}",
            icon=":material/lock_open:",
            key="stop_aligning",
            on_click=state.change,
            kwargs={"aligned_with": None},
            help="Shows each head's map as the method laid it out.",
        )
    else:
        st.button(
            "Align other heads with this",
            icon=":material/lock:",
            key="align",
            on_click=state.change,
            kwargs={"aligned_with": selection.place},
            help="Rotates and mirrors the maps of other heads as wholes, to lie as close to this one as they can.",
        )
