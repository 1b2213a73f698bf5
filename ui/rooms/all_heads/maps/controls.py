"""The settings of the maps of all heads."""

from dataclasses import dataclass

import streamlit as st

from ui.choice import state, widgets
from ui.choice.selection import Selection
from ui.rooms.explore import map_controls as map_settings
from ui.rooms.explore.other_maps.choices import MapSettings
from ui.session import of_session
from ui.shell.view import View
from ui.streamlit_fixes.stale_values import tie


def controls(view: View) -> None:
    """The controls for the maps' settings and their order."""
    selection = view.selection
    with st.container(horizontal=True, vertical_alignment="bottom"):
        map_settings.method_and_vectors(view)
        st.segmented_control(**widgets.field("order", required=True))
        with st.popover("More", icon=":material/tune:", key="maps_more"):
            map_settings.parameters(view, _n_point(view))
            alignment(selection)


def in_words(view: View) -> str:
    """The settings of every map, and the meaning of its number."""
    made_with = map_settings.in_words(view, _n_point(view))
    return f"{made_with}. Each number is a map's correlation of distance and score (−1 is perfect)"


def _n_point(view: View) -> int:
    return len(view.query_tokens) + len(view.key_tokens)


def alignment(selection: Selection) -> None:
    """The control that aligns all maps with one head's map."""
    like = selection.of(MapSettings).aligned_with

    def choose(on: bool) -> None:
        state.change(aligned_with=selection.place if on else None)

    st.toggle(
        f"Align all with {(like or selection.place).words}",
        help="Rotates and mirrors every map as a whole, to lie as close to this head's map as it can.",
        value=like is not None,
        **tie("maps_aligned", like is not None, choose),
    )


@dataclass(slots=True)
class Entered:
    """Whether a head was just entered, so that its page must be opened."""

    now: bool = False


def enter(layer: int, head: int) -> None:
    """Selects a head everywhere; the page then goes to its map."""
    state.change(layer=layer, head=head)
    of_session(Entered).now = True
