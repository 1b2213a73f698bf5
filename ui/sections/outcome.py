"""The outcome of experiments: read from the selection, and chosen in one place for all pages that have one."""

import streamlit as st

from attnviz.effects.outcome import Outcome, Similarity, TokenState, outcome_from
from attnviz.figures.theme import number_text
from attnviz.records import Tokens
from ui.choice import state
from ui.choice.exchanged import exchanged
from ui.page.view import View
from ui.streamlit_fixes.stale_values import tie
from ui.words.literal import quoted

_KINDS = {"similarity": "Similarity", "state": "Token state"}


def outcome_of(view: View) -> Outcome:
    """The outcome that is chosen; the similarity with the sentence in which one word is exchanged until one is.

    Raises:
        SelectionError: the link asks for an outcome that there is not.
    """
    written = view.selection.outcome.outcome
    return outcome_from(written) if written else Similarity(text=exchanged(view.selection.text))


def change(outcome: Outcome, tokens: Tokens, before: float, after: float) -> str:
    """What becomes of an outcome, as Markdown: "the similarity with “A door.” falls from 0.84 to 0.80"."""
    if isinstance(outcome, TokenState):
        return f"{quoted(tokens.labels[outcome.position])} (token {outcome.position}) turns by {number_text(after)}, as 1 − cosine"
    what = f"similarity with {quoted(outcome.text)}"
    first, last = number_text(before), number_text(after)
    if first == last:
        return f"the {what} stays at {first}"
    return f"the {what} {'falls' if after < before else 'rises'} from {first} to {last}"


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
        "the selected token turns.",
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
