"""The stage's options, in one drawer."""

import streamlit as st

from ui.choice import state
from ui.rooms.explore.pair import pick_key
from ui.shell import controls
from ui.stage.matrix import cells
from ui.stage.query_key_map import layout
from ui.stage.screen import Screen


def options(screen: Screen) -> None:
    """The drawer; its content is drawn only while it is open."""
    view = screen.view
    drawer = st.popover("Options", icon=":material/tune:", key="stage_options", on_change=state.hold)
    if not drawer.open:
        return
    with drawer:
        controls.place(view)
        controls.head(view)
        pick_key(view, screen.key)
        cells(view)
        controls.entries(view)
        layout()
