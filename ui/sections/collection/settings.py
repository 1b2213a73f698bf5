"""Whose sentences the map is of, and how it is made and coloured."""

import streamlit as st

from attnviz.figures.collection import TINTS
from ui.choice import widgets
from ui.page.view import View
from ui.sections.collection import joint_map, lines

_TINT_NAMES = {"token": "Frequent tokens", "norm": "Length of vector", "special": "Special or not"}


def controls(view: View) -> None:
    """How the map is made and coloured, and the token that stands out."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        lines.own_lines()
        joint_map.method()
        st.selectbox(
            "Colour by",
            TINTS,
            format_func=lambda one: _TINT_NAMES.get(one, one.capitalize()),
            help="What the colour of a point says; its shape always says whether it is a query or a key.",
            width=190,
            **widgets.field("lines_tint"),
        )
        st.text_input(
            "Find a token",
            help="Lets every token or word that is exactly this stand out; upper and lower case are one.",
            width=190,
            **widgets.field("found"),
        )
        with st.popover("More", icon=":material/tune:", key="collection_more"):
            joint_map.parameters(view.selection)
