"""What the map is made with and what is drawn on it."""

from dataclasses import replace

import streamlit as st

from attnviz.figures.projection import N_LINES
from ui.choice import map_settings, state, widgets
from ui.choice.selection import CHOICES, Selection
from ui.page.view import View
from ui.sections.space.layout import points_of, settings_of, side_of
from ui.words import findings as written


def controls(view: View) -> None:
    """What places the points, what it is fed with, how many axes, and under More all the rest."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        map_settings.method_and_vectors(view)
        st.segmented_control(
            "Dimensions",
            (2, 3),
            required=True,
            format_func="{}-D".format,
            help="Lays the points out in the plane, or in space, where they can be turned.",
            **widgets.field("dimensions"),
        )
        with st.popover("More", icon=":material/tune:", key="space_more"):
            more(view)


def more(view: View) -> None:
    """The method's parameters, each in the range that it has for this many points, and what the picture shows."""
    selection = view.selection
    map_settings.parameters(view, points_of(view, settings_of(selection)))
    st.toggle(
        "Values as a third cloud",
        help="Adds the value vectors as squares; the attention map, fitted to weights, has no place for them.",
        disabled=selection.maps.method == "attention",
        **widgets.field("values"),
    )
    st.selectbox(
        "Coloured by",
        CHOICES["tint"],
        format_func=written.TINT_NAMES.__getitem__,
        help="What the colours of the points stand for; their shapes tell queries, keys and values apart always.",
        **widgets.field("tint"),
    )
    st.segmented_control(
        "Lines of the picked",
        ("query", "key"),
        required=True,
        format_func=str.capitalize,
        help=f"Joins the picked query to its {N_LINES} strongest keys, or the picked key to its strongest queries.",
        **widgets.field("kept", selection.but(kept=side_of(selection))),
    )
    hold(selection)


def hold(selection: Selection) -> None:
    """Keeps the map lying as it does while heads change, or lets it go."""
    here = f"{selection.layer}.{selection.head}"
    if selection.maps.aligned_with:
        st.button(
            f"Let go of the layout of head {selection.maps.aligned_with}",
            icon=":material/lock_open:",
            key="let_go",
            on_click=state.change,
            kwargs={"held": ""},
            help="Shows each head's map as it comes.",
        )
    else:
        st.button(
            "Hold this layout",
            icon=":material/lock:",
            key="hold",
            on_click=state.change,
            kwargs={"held": here},
            help="Turns and mirrors the maps of other heads as wholes, so that they lie as much like this one as "
            "they can.",
        )
