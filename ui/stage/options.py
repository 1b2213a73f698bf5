"""What the stage shows beside its default: which part fills it, and one drawer for the rest."""

import streamlit as st

from ui.choice import widgets
from ui.page import controls
from ui.sections.pair import pick_key
from ui.stage.matrix import cells
from ui.stage.query_key_map import layout
from ui.stage.screen import Screen


def options(screen: Screen) -> None:
    """Which part fills the stage, and the drawer."""
    view = screen.view
    st.segmented_control(**widgets.field("filled", required=True))
    with st.popover("Options", icon=":material/tune:", key="stage_options"):
        controls.place(view)
        pick_key(view, screen.key)
        cells(view)
        controls.entries(view)
        layout()
