"""The glossary on every page: a drawer with a search for terms."""

import streamlit as st

from ui.choice import state
from ui.shell.navigation import link_to
from ui.words.glossary import TERMS, Term, matching
from ui.words.literal import literal


def glossary_search() -> None:
    """The button that opens the drawer."""
    if st.button(
        "Glossary",
        icon=":material/dictionary:",
        on_click=state.hold,
        key="open_glossary",
        help=f"Explains {len(TERMS)} terms, with a search.",
    ):
        _drawer()


@st.dialog("Glossary", width="medium")
def _drawer() -> None:
    searched = st.text_input(
        "Search",
        key="glossary_search",
        placeholder="A term, or a word of its meaning",
        help="Lists the terms that have these words in their name or their meaning.",
    )
    terms = matching(searched)
    if not terms:
        st.markdown(f"No term has “{literal(searched)}” in its name or its meaning.")
    for term in terms:
        _entry(term)
    link_to("Glossary", label="All terms, with the numbers of your sentence")


def _entry(term: Term) -> None:
    st.markdown(f"**{literal(term.name)}:** {literal(term.means)}")
    if term.formula:
        st.latex(term.formula)
    if term.source:
        st.caption(literal(term.source))
