"""The outcome of experiments: read from the selection, and chosen in one place for all pages that have one."""

from collections.abc import Callable
from dataclasses import replace
from typing import Literal

import streamlit as st

from attnviz.effects.outcome import (
    ClassAnswer,
    Outcome,
    Similarity,
    TokenAnswer,
    TokenState,
    outcome_from,
)
from attnviz.figures.labels import shortened
from attnviz.figures.numbers import number_text
from attnviz.model.loading import Model
from attnviz.model.predictions import predict
from attnviz.records import Tokens
from ui.choice import state
from ui.choice.exchanged import exchanged
from ui.page.view import View
from ui.streamlit_fixes.stale_values import tie
from ui.words.literal import LONGEST_QUOTED, literal, quoted
from ui.work import cache

OutcomeKind = Literal["similarity", "turn", "length", "answer", "class"]
_NAMES: dict[OutcomeKind, str] = {
    "similarity": "Similarity",
    "turn": "Direction change",
    "length": "Distance moved",
    "answer": "Prediction",
    "class": "Class",
}


def outcome_of(view: View) -> Outcome:
    """The outcome that is chosen; the similarity with the sentence in which one word is exchanged until one is.

    Raises:
        SelectionError: the link asks for an outcome that there is not.
    """
    written = view.selection.outcome.outcome
    return outcome_from(written) if written else Similarity(text=exchanged(view.selection.text))


def change(outcome: Outcome, tokens: Tokens, before: float, after: float) -> str:
    """What becomes of an outcome, as Markdown: "the similarity with “A door.” falls from 0.84 to 0.80"."""
    match outcome:
        case TokenState(by="turn"):
            what = f"{quoted(tokens.labels[outcome.position])} (token {outcome.position})"
            return f"{what} turns by {number_text(after)}, as 1 − cosine of its last hidden state"
        case TokenState():
            what = f"{quoted(tokens.labels[outcome.position])} (token {outcome.position})"
            return f"the last hidden state of {what} moves by {number_text(after)}"
        case Similarity():
            what = f"similarity with {quoted(outcome.text)}"
        case _:
            what = literal(outcome.words(tokens))
    first, last = number_text(before), number_text(after)
    if first == last:
        return f"the {what} stays at {first}"
    return f"the {what} {'falls' if after < before else 'rises'} from {first} to {last}"


def words(outcome: Outcome, tokens: Tokens) -> str:
    """The outcome in words, a long sentence shortened; plain text."""
    if isinstance(outcome, Similarity):
        return f"similarity with “{shortened(outcome.text, LONGEST_QUOTED)}”"
    return outcome.words(tokens)


def controls(view: View, outcome: Outcome) -> None:
    """What is measured, and of which sentence, token or class."""
    kind = _kind(outcome)
    st.segmented_control(
        "Outcome",
        [one for one in _NAMES if one == kind or _is_offered(view, one)],
        required=True,
        format_func=_NAMES.__getitem__,
        help="Sets the number that is measured: how similar the sentence is to another; how far the last hidden state of a "
        "token turns or moves; how likely the model's own head finds a token there, or a class of the text.",
        default=kind,
        **tie("outcome_kind", kind, lambda picked: state.change(outcome=_first(view, picked))),
    )
    if isinstance(outcome, TokenState | TokenAnswer):
        of_token, last = outcome, len(view.trace.last_tokens) - 1
        st.number_input(
            f"At token (0–{last})",
            0,
            last,
            value=(at := min(outcome.position, last)),  # the text may have become shorter
            width=150,
            help="Measures the outcome at this token, counted from 0.",
            **tie(
                "outcome_position", at, lambda at: state.change(outcome=str(replace(of_token, position=at)))
            ),
        )
    match outcome:
        case Similarity(text=other):
            _text(
                "Similar to",
                "outcome_text",
                other,
                "Measures the similarity with this sentence: the cosine of the means of the last hidden states.",
                lambda text: str(Similarity(text=text)) if text.strip() else "",
            )
        case TokenAnswer(position=at, token=token, against=against):
            _text(
                "Token",
                "outcome_token",
                token,
                "Measures how likely the model predicts this token of its vocabulary.",
                lambda text: str(TokenAnswer(position=at, token=text or token, against=against)),
            )
            _text(
                "Against",
                "outcome_against",
                against or "",
                "Measures the log-odds of the token against this one; empty for the probability of the token.",
                lambda text: str(TokenAnswer(position=at, token=token, against=text or None)),
            )
        case ClassAnswer(label=label):
            labels = _labels(view)
            st.selectbox(
                "Class of the text",
                labels if label in labels else [label, *labels],
                help="Measures the probability of this class.",
                **tie(
                    "outcome_class",
                    label,
                    lambda picked: state.change(outcome=str(ClassAnswer(label=picked))),
                    is_list=True,
                ),
            )


def _kind(outcome: Outcome) -> OutcomeKind:
    match outcome:
        case Similarity():
            return "similarity"
        case TokenState():
            return outcome.by
        case TokenAnswer():
            return "answer"
        case ClassAnswer():
            return "class"


def _is_offered(view: View, kind: OutcomeKind) -> bool:
    """Whether the model has what answers."""
    if kind not in ("answer", "class"):
        return True
    return (_model(view).head if kind == "answer" else _model(view).classifier) is not None


def _first(view: View, kind: OutcomeKind) -> str:
    """The outcome of a kind that is measured first, as it is written."""
    match kind:
        case "turn" | "length":
            return str(TokenState(position=view.last_query, by=kind))
        case "answer":
            blanks = [at for at, one in enumerate(view.trace.tokens.labels) if one == _model(view).mask_label]
            at = min(blanks, default=view.last_query)
            likeliest = predict(_model(view), view.trace, at, top=1).ids[0]
            return str(TokenAnswer(position=at, token=_model(view).name_of(int(likeliest))))
        case "class":
            return str(ClassAnswer(label=_labels(view)[0]))
        case _:
            return ""


def _text(title: str, key: str, value: str, said: str, written: Callable[[str], str]) -> None:
    """A field whose text becomes part of the outcome, as ``written`` writes that."""
    st.text_input(
        title,
        help=said,
        value=value,
        **tie(key, value, lambda text: state.change(outcome=written(text))),
    )


def _model(view: View) -> Model:
    return cache.model(view.selection.source.model)


def _labels(view: View) -> list[str]:
    """The classes of the model's classifier; none where it has no classifier."""
    classifier = _model(view).classifier
    return [] if classifier is None else [str(one) for one in (classifier.config.id2label or {}).values()]
