"""The outcome of experiments: read from the selection, and chosen in one place for all pages that have one."""

import streamlit as st

from attnviz.effects.outcome import Outcome, Similarity, TokenState, outcome_from
from ui.choice import state
from ui.choice.exchanged import exchanged
from ui.page.view import View
from ui.streamlit_fixes.stale_values import tie

_KINDS = {"similarity": "Similarity of two sentences", "state": "State of the selected token"}


def outcome_of(view: View) -> Outcome:
    """The outcome that is chosen; the similarity with the sentence in which one word is exchanged until one is.

    Raises:
        SelectionError: the link asks for an outcome that there is not.
    """
    written = view.selection.outcome.outcome
    return outcome_from(written) if written else Similarity(text=exchanged(view.selection.text))


def controls(view: View, outcome: Outcome) -> None:
    """What is measured, and of which sentence or token."""
    kind = "state" if isinstance(outcome, TokenState) else "similarity"

    def choose(picked: str) -> None:
        if picked == "state":
            state.change(outcome=str(TokenState(position=view.query)))
        else:
            state.change(outcome="")

    st.segmented_control(
        "Outcome",
        list(_KINDS),
        required=True,
        format_func=_KINDS.__getitem__,
        help="Sets the number that is measured: how similar the sentence is to another, or how far the last hidden state of "
        "one token turns.",
        default=kind,
        **tie("outcome_kind", kind, choose),
    )
    if isinstance(outcome, Similarity):
        st.text_input(
            "Similar to",
            help="Measures the similarity with this sentence: the cosine of the means of the last hidden states.",
            value=outcome.text,
            **tie("outcome_text", outcome.text, lambda text: state.change(outcome=_written(text))),
        )


def _written(text: str) -> str:
    return str(Similarity(text=text)) if text.strip() else ""
