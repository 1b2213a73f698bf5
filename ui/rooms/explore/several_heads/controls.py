"""The controls for the lines' heads and threshold."""

import streamlit as st

from attnviz.figures.theme import LIGHT
from attnviz.records import AllHeads, Head
from ui.choice import widgets
from ui.rooms.explore.several_heads.choices import FlowSettings
from ui.rooms.explore.several_heads.lines import at_once
from ui.shell.view import View

MOST_HEADS = len(LIGHT.heads)  # one for each distinguishable colour


def controls(view: View, heads: list[Head | AllHeads]) -> None:
    """The controls for what is drawn, for which heads, and above which threshold."""
    trace, kind, selection = view.trace, view.kind, view.selection
    of_layers = [AllHeads(layer) for layer in range(trace.n_layers(kind))]
    options = of_layers if view.measure == "rollout" else [*trace.heads(kind), *of_layers]
    # On a tablet the three buttons of the first column need the space.
    left, middle, right = st.columns((1.45, 1.05, 1))
    left.segmented_control(
        **widgets.field(
            "show",
            selection.but(show=view.measure),
            label="Lines show",
            options=trace.measures(kind),
            required=True,
        ),
    )
    middle.multiselect(
        **widgets.field(
            "heads",
            selection.but(heads=tuple(heads[1:])),
            format_func=lambda heads: heads.title,
            options=[option for option in options if option != heads[0]],
        ),
        max_selections=MOST_HEADS - 1,
        select_all=False,  # it would add as many heads as allowed
        placeholder="More heads, each in its own colour",
    )
    with right.container(horizontal=True, vertical_alignment="bottom"):
        if selection.of(FlowSettings).threshold == "share":
            st.slider(**widgets.field("share", format="%d%%"))
        else:
            st.number_input(**widgets.field("weakest"))
        with st.popover("More", icon=":material/tune:", key="flow_more"):
            st.segmented_control(**widgets.field("threshold", required=True))
            st.number_input(**widgets.field("at_once", selection.but(at_once=at_once(view))))
