"""What the stage shows beside its default, in one drawer."""

import streamlit as st

from ui.page import controls
from ui.sections.pair import pick_key
from ui.stage.matrix import cells
from ui.stage.query_key_map import layout
from ui.stage.screen import Screen


def options(screen: Screen) -> None:
    """The drawer."""
    view = screen.view
    with st.popover("Options", icon=":material/tune:", key="stage_options"):
        controls.place(view)
        controls.head(view)
        pick_key(view, screen.key)
        cells(view)
        controls.entries(view)
        layout()
