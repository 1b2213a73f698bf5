"""What the maps of all heads are made with."""

import streamlit as st

from ui.choice import map_settings, state, widgets
from ui.choice.selection import Selection
from ui.page.view import View


def controls(view: View) -> None:
    """What the maps are made with, and their order."""
    selection = view.selection
    with st.container(horizontal=True, vertical_alignment="bottom"):
        map_settings.method_and_vectors(view)
        st.segmented_control(**widgets.field("order"), required=True)
        with st.popover("More", icon=":material/tune:", key="maps_more"):
            map_settings.parameters(
                view, len(view.trace.query_tokens(view.kind)) + len(view.trace.key_tokens(view.kind))
            )
            alignment(selection)


def alignment(selection: Selection) -> None:
    """Aligns all maps with that of one head, or stops that."""
    like = selection.maps.aligned_with

    def choose(on: bool) -> None:
        state.change(aligned_with=selection.place if on else None)

    st.toggle(
        f"Align all with {(like or selection.place).words}",
        help="Rotates and mirrors every map as a whole, to lie as close to this head's map as it can.",
        **widgets.tie("maps_aligned", like is not None, choose),
    )


def enter(layer: int, head: int) -> None:
    """Picks a head everywhere; the page then goes to its map."""
    state.change(layer=layer, head=head)
    st.session_state.enter_map = True
