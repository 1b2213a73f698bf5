"""The link from a t-SNE map to the page of every method, whose verdict on the same head may be another.

One concept: where a reader of a map that is no good finds a better one.
"""

import streamlit as st

from ui.page.view import View


def other_maps(view: View) -> None:
    """The link below a map."""
    st.page_link(
        "pages/query_key_map.py",
        label="Other maps of these vectors, one fitted to the attention itself",
        icon=":material/scatter_plot:",
        query_params=view.selection.to_params(),
        help="Each map has a verdict of its own: where this one misleads, another may be reliable.",
    )
