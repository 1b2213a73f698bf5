"""What the maps of all heads are made with."""

import streamlit as st

from ui.choice import map_settings, state, widgets
from ui.choice.selection import CHOICES
from ui.page.view import View


def controls(view: View) -> None:
    """What the maps are made with, and their order."""
    selection = view.selection
    with st.container(horizontal=True, vertical_alignment="bottom"):
        map_settings.method_and_vectors(view)
        st.segmented_control(
            "Order",
            CHOICES["maps_order"],
            required=True,
            format_func={"layer": "By layer", "belief": "Best map first"}.__getitem__,
            help="Puts the maps in layers and heads, or those first whose distances follow the scores best.",
            **widgets.field("maps_order"),
        )
        with st.popover("More", icon=":material/tune:", key="maps_more"):
            map_settings.parameters(
                view, len(view.trace.query_tokens(view.kind)) + len(view.trace.key_tokens(view.kind))
            )
            hold(f"{selection.layer}.{selection.head}", selection.maps.aligned_with)


def hold(picked: str, now: str) -> None:
    """Turns all maps to lie like one, or lets them go."""
    st.toggle(
        f"All lie like head {now or picked}",
        help="Turns and mirrors every map as a whole, so that its points lie as near to those of this head's map as "
        "they can.",
        **widgets.tie("maps_hold", bool(now), lambda on: state.change(held=picked if on else "")),
    )


def enter(layer: int, head: int) -> None:
    """Picks a head everywhere; the page then goes to its map."""
    state.change(layer=layer, head=head)
    st.session_state.enter_map = True
