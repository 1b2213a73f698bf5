"""The controls for the map's sentences, and for how it is made and coloured."""

import streamlit as st

from ui.choice import widgets
from ui.rooms.many_texts.joint_map import joint_map, lines
from ui.shell.view import View


def controls(view: View) -> None:
    """The controls for how the map is made and coloured, and for the highlighted token."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        lines.own_lines()
        joint_map.method()
        st.selectbox(**widgets.field("joint_tint"), width=190)
        st.text_input(**widgets.field("joint_search"), width=190)
        with st.popover("More", icon=":material/tune:", key="joint_map_more"):
            joint_map.parameters(view.selection)
