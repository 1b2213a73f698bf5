"""The outcome of experiments: read from the selection, and selected in one place for all pages that have one."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Literal

import streamlit as st

from attnviz.effects.outcome import (
    LAST,
    ClassAnswer,
    Outcome,
    Similarity,
    TokenAnswer,
    TokenState,
    outcome_from,
    own_answer,
)
from attnviz.errors import SelectionError
from attnviz.figures.labels import shortened
from attnviz.figures.numbers import number_text, share_text
from attnviz.model.answers import CLEARLY_LIKELIER, likelier_form, predict, token_id
from attnviz.model.model import Model
from attnviz.records import Tokens
from ui.choice import state
from ui.choice.exchanged import other_sentence
from ui.runtime import cache
from ui.shell.language_model import offer_language_model
from ui.shell.view import View
from ui.streamlit_fixes.stale_values import tie
from ui.words.literal import LONGEST_QUOTED, literal, quoted

OutcomeKind = Literal["similarity", "turn", "length", "answer", "class"]
_NAMES: dict[OutcomeKind, str] = {
    "similarity": "Similarity",
    "turn": "Direction change",
    "length": "Distance moved",
    "answer": "Prediction",
    "class": "Class",
}
Measured = Literal["difference", "probability", "rank"]
_MEASURED: dict[Measured, str] = {
    "difference": "Difference of logits",
    "probability": "Probability",
    "rank": "Rank",
}
_COMPLETIONS = 10
"""Number of completions that a token field offers: the model's most likely ones."""
_GAP = "\N{EM SPACE}"
"""Between a completion and its probability in a list. No token contains it, so the token is the part before it."""


def outcome_of(view: View) -> Outcome:
    """The selected outcome, the same in every room.

    By default it is the model's own answer (`own_answer`); without a language head or a blank to fill in, the similarity
    with the sentence in which one word is exchanged, or else the bundled one.

    Raises:
        SelectionError: the link asks for an outcome that does not exist.
    """
    if written := view.selection.outcome:
        return outcome_from(written)
    # An opened bundle's model may not be here; no room runs it again.
    own = None if view.selection.bundle else own_answer(_model(view), view.trace)
    return own or Similarity(text=other_sentence(view.selection.text))


def becomes(outcome: Outcome, after: float) -> str:
    """The value of an outcome named before, after another change: "it is 0.838"."""
    if isinstance(outcome, TokenState):
        return f"by {number_text(after)}"
    is_rank = isinstance(outcome, TokenAnswer) and outcome.by == "rank"
    return f"it is {after:,.0f}" if is_rank else f"it is {number_text(after)}"


def change(outcome: Outcome, tokens: Tokens, before: float, after: float) -> str:
    """How an outcome changes, as Markdown: "the similarity with “A door.” falls from 0.84 to 0.80"."""
    match outcome:
        case TokenState():
            at = outcome.place(len(tokens))
            what = f"{quoted(tokens.labels[at])} (token {at})"
            if outcome.by == "turn":
                return f"the direction of the last hidden state of {what} changes by {number_text(after)} (1 − cosine)"
            return f"the last hidden state of {what} moves by {number_text(after)}"
        case TokenAnswer(by="rank"):
            what, first, last = literal(outcome.words(tokens)), f"{before:,.0f}", f"{after:,.0f}"
            return (
                f"the {what} stays {first}" if first == last else f"the {what} changes from {first} to {last}"
            )
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
    """The controls for what is measured, and for which sentence, token or class."""
    kind = _kind(outcome)
    st.segmented_control(
        "Outcome",
        [name for name in _NAMES if name == kind or _is_offered(view, name)],
        required=True,
        format_func=_NAMES.__getitem__,
        help="Sets the number that is measured: how similar the sentence is to another; how far the last hidden state of a "
        "token changes its direction or moves; how likely the model's own head finds a token there, or a class of the text.",
        default=kind,
        **_tie("outcome_kind", kind, lambda picked: _first(view, picked)),
    )
    if isinstance(outcome, TokenState | TokenAnswer):
        of_token, last = outcome, len(view.trace.last_tokens) - 1
        # The text may have become shorter; its last token has no number, so that it is the last token of another text too.
        at = last if outcome.position == LAST else min(outcome.position, last)
        st.number_input(
            f"At token (0–{last})",
            0,
            last,
            value=at,
            width=150,
            help="Measures the outcome at this token, counted from 0; the last token stays the last when the text changes.",
            **_tie(
                "outcome_position",
                at,
                lambda place: replace(of_token, position=LAST if place == last else place),
            ),
        )
    match outcome:
        case Similarity(text=other):
            st.text_input(
                "Anchor sentence",
                value=other,
                help="Measures the similarity with this sentence: the cosine of the means of the last hidden states.",
                **_tie("outcome_text", other, lambda text: Similarity(text=text) if text.strip() else ""),
            )
        case TokenAnswer():
            _answer(view, outcome, at)
        case ClassAnswer(label=label):
            labels = _labels(view)
            st.selectbox(
                "Class of the text",
                labels if label in labels else [label, *labels],
                help="Measures the probability of this class.",
                **_tie("outcome_class", label, lambda picked: ClassAnswer(label=picked), is_list=True),
            )
    if _model(view).language_head is None:
        offer_language_model(
            view.selection,
            "has no language head, so no prediction can be measured.",
            key="use_language_model",
        )


def _answer(view: View, outcome: TokenAnswer, at: int) -> None:
    """The controls for what is measured of a prediction, and its tokens; the model's own are offered with probabilities."""
    model = _model(view)
    predicted = predict(model, view.trace, at, top=_COMPLETIONS)
    likely = {
        model.name_of(number): float(chance)
        for number, chance in zip(predicted.ids.tolist(), predicted.probabilities, strict=True)
    }
    measured: Measured = "difference" if outcome.against is not None else outcome.by
    token, against = _name(model, outcome.token), outcome.against and _name(model, outcome.against)

    def measure(picked: Measured) -> TokenAnswer:
        if picked != "difference":
            return TokenAnswer(position=outcome.position, token=token, by=picked)
        other = next(likely_token for likely_token in likely if likely_token != token)
        return TokenAnswer(position=outcome.position, token=token, against=other)

    st.segmented_control(
        "Measured",
        list(_MEASURED),
        required=True,
        format_func=_MEASURED.__getitem__,
        help="Measures how much larger one token’s logit is than another’s, a token’s probability, or its rank, 1 for the most likely.",
        default=measured,
        **_tie("outcome_measured", measured, measure),
    )

    def changed(field: str) -> Callable[[str], TokenAnswer]:
        def taken(written: str) -> TokenAnswer:
            name = _name(model, written)
            return replace(outcome, token=name) if field == "token" else replace(outcome, against=name)

        return taken

    tokens = {"token": token} if against is None else {"token": token, "against": against}
    for field, shown in tokens.items():
        _token({"token": "Token"}.get(field, "Minus"), f"outcome_{field}", shown, likely, changed(field))
    for field, shown in tokens.items():
        _offer_likelier(view, at, shown, changed(field), key=f"likelier_{field}")


def _token(
    title: str, key: str, token: str, likely: Mapping[str, float], changed: Callable[[str], TokenAnswer]
) -> None:
    """A field for a token, typed or picked from the model's most likely ones."""

    def shown(text: str) -> str:
        return f"{text}{_GAP}{share_text(likely[text])}" if text in likely else text

    def take(picked: str) -> None:
        if written := picked.partition(_GAP)[0]:
            state.change(outcome=str(changed(written)))

    options = list(dict.fromkeys([*likely, token]))
    st.selectbox(
        title,
        options,
        index=options.index(token),
        format_func=shown,
        accept_new_options=True,
        width=190,
        help="A token of the vocabulary: pick one that the model predicts here, or type another. ␣ is a space that belongs to it.",
        **tie(key, token, take, is_list=True),
    )


def _offer_likelier(
    view: View, at: int, token: str, changed: Callable[[str], TokenAnswer], *, key: str
) -> None:
    """Suggests the form of a token with or without its space, if that was probably meant."""
    try:
        likelier = likelier_form(_model(view), view.trace, at, token)
    except SelectionError:
        return  # no such token; the experiment reports that
    if likelier is None:
        return
    asked, other = quoted(likelier.asked), quoted(likelier.token)
    st.caption(
        f"{asked} has {share_text(likelier.asked_probability)} here, {other} {share_text(likelier.probability)}.",
        width="content",
    )
    st.button(
        f"Measure {other}",
        key=key,
        on_click=state.change,
        kwargs={"outcome": str(changed(likelier.token))},
        help="Measures the token with its space, or without it: offered where that form is at least "
        f"{CLEARLY_LIKELIER} times as likely.",
    )


def _name(model: Model, token: str) -> str:
    """A token as written in links and fields, "␣Mary" for " Mary"; as typed if it is not a token."""
    try:
        return model.name_of(token_id(model, token))
    except SelectionError:
        return token


def _tie(key: str, shown: Any, outcome: Callable[[Any], Outcome | str], **named: Any) -> dict[str, Any]:
    """As `tie`, for a widget whose value makes the outcome, or "" for the default one."""
    return tie(key, shown, lambda value: state.change(outcome=str(outcome(value))), **named)


def _kind(outcome: Outcome) -> OutcomeKind:
    match outcome:
        case TokenState():
            return outcome.by
        case TokenAnswer():
            return "answer"
    return "class" if isinstance(outcome, ClassAnswer) else "similarity"


def _is_offered(view: View, kind: OutcomeKind) -> bool:
    """Whether the model has the head that this outcome needs."""
    if kind not in ("answer", "class"):
        return True
    return (_model(view).language_head if kind == "answer" else _model(view).classifier) is not None


def _first(view: View, kind: OutcomeKind) -> Outcome | str:
    """The default outcome of a kind; empty for that of the page."""
    match kind:
        case "turn" | "length":
            return TokenState(position=view.last_query, by=kind)
        case "answer":
            model = _model(view)
            own = own_answer(model, view.trace) or own_answer(model, view.trace, view.last_query)
            return own or ""
        case "class":
            return ClassAnswer(label=_labels(view)[0])
    return ""


def _model(view: View) -> Model:
    return cache.model(view.selection.source.model)


def _labels(view: View) -> list[str]:
    """The classes of the model's classifier; none without a classifier."""
    classifier = _model(view).classifier
    return [] if classifier is None else [str(label) for label in (classifier.config.id2label or {}).values()]
