"""What an experiment has an effect on: one number of a forward pass.

The Outcome is measured on the last hidden states of several variants of one text at once, and is differentiable.
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, overload

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

from attnviz.arguments import typed
from attnviz.errors import ArgumentError, SelectionError
from attnviz.maths.gradients import differentiable
from attnviz.model.answers import (
    check_classes,
    class_logits,
    class_number,
    class_probabilities,
    language_head,
    likelier_form,
    predict,
    token_id,
    token_logits,
)
from attnviz.model.variants import OutcomeMeasure
from attnviz.records import TEMPLATES, Record, Tokens, as_label, check_index

if TYPE_CHECKING:
    from attnviz.model.model import Model
    from attnviz.model.trace import Trace


MOST_COMPARED = 512
"""Most tokens of the other text of a similarity, or as many as the text itself has if more; the rest is cut."""


LAST = -1
"""Position of the last token of a text, however long the text is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _AtToken(Record):
    """An outcome that is read at one token."""

    position: int = LAST
    """Counted from 0; `LAST` for the last token."""

    def place(self, n_token: int) -> int:
        """The position in a text of so many tokens, counted from 0.

        Raises:
            SelectionError: the text has no such token.
        """
        return check_index(
            "token", n_token - 1 if self.position == LAST else self.position, n_token, "this text"
        )

    def _where(self, tokens: Tokens) -> str:
        at = len(tokens) - 1 if self.position == LAST else self.position
        return f"“{tokens.labels[at]}” (token {at})" if 0 <= at < len(tokens) else f"token {at}"

    @property
    def _written_place(self) -> str:
        return "last" if self.position == LAST else str(self.position)


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenState(_AtToken):
    """The last hidden state of one token: how far it turns from that of the unchanged run, or how far it moves."""

    by: Literal["turn", "length"] = "turn"
    """``turn`` for 1 - cosine, ``length`` for the Euclidean length of the change."""

    def words(self, tokens: Tokens) -> str:
        """What is measured, as in a sentence."""
        what = "turn" if self.by == "turn" else "length of the change"
        return f"{what} of the last hidden state of {self._where(tokens)}"

    def __str__(self) -> str:
        return f"{'state' if self.by == 'turn' else 'length'}:{self._written_place}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Similarity(Record):
    """The similarity of the text with another: the cosine of their mean last hidden states.

    Of a pair, the other text is read with the same second sentence; of an encoder-decoder model, with the decoder's text.

    Source: Reimers and Gurevych 2019, "Sentence-BERT" (arXiv:1908.10084), section 3, mean pooling; as the
    ``Pooling`` and ``Normalize`` modules of all-MiniLM-L6-v2.
    """

    text: str

    def words(self, tokens: Tokens) -> str:
        """What is measured, as in a sentence."""
        return f"similarity with “{self.text}”"

    def __str__(self) -> str:
        return f"similarity:{self.text}"


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenAnswer(_AtToken):
    """What the language head answers at a token: the logit of one token minus that of another, its probability, or its rank.

    A masked language model answers for the token at the position, a causal model for the next token. The difference of
    two logits is the log-odds ln(p / q) of their tokens.

    Source: Wang et al. 2022, "Interpretability in the Wild" (arXiv:2211.00593), section 2.2, logit difference.

    Raises:
        SelectionError: a rank against another token.
    """

    token: str
    """Entry of the vocabulary, or a text that is read as one; see `attnviz.model.answers.token_id`."""
    against: str | None = None
    """The token whose logit is subtracted; None for a probability or a rank."""
    by: Literal["probability", "rank"] = "probability"
    """What is measured without another token. The rank is 1 for the most likely token: 1 + the number of tokens with a
    larger logit."""

    def __post_init__(self) -> None:
        if self.by == "rank" and self.against is not None:
            raise SelectionError(
                f"The rank of “{self.token}” was to be measured against “{self.against}”; a rank is of one token among all. "
                "Leave out the second token, or measure the difference of logits."
            )

    @property
    def unit(self) -> str:
        """Unit of the number that is measured."""
        return self.by if self.against is None else "difference of logits"

    def words(self, tokens: Tokens) -> str:
        """What is measured, as in a sentence."""
        token = f"“{as_label(self.token)}”"
        if self.against is not None:
            name = f"logit of {token} minus that of “{as_label(self.against)}”"
        elif self.by == "probability":
            name = f"probability of {token}"
        else:
            name = f"rank of {token} among all tokens"
        return f"{name} predicted at {self._where(tokens)}"

    def __str__(self) -> str:
        what = "rank" if self.by == "rank" else "answer"
        return _written(what, self._written_place, self.token, self.against)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassAnswer(Record):
    """What the classifier answers for the text: the probability of one class, or its logit minus that of another."""

    label: str
    """Label of the class in the checkpoint's ``id2label``."""
    against: str | None = None
    """Another class, for the difference of the logits; None for a probability."""

    def words(self, tokens: Tokens) -> str:
        """What is measured, as in a sentence."""
        if self.against is not None:
            return f"logit of the class “{self.label}” minus that of “{self.against}”"
        return f"probability of “{self.label}” as the class of the text"

    def __str__(self) -> str:
        return _written("class", self.label, self.against)


Outcome = TokenState | Similarity | TokenAnswer | ClassAnswer
AnyOutcome = Outcome | str | OutcomeMeasure
"""An outcome, what `outcome_from` reads as one, or a function of the last hidden states."""


@typed
def outcome_from(written: str) -> Outcome:
    """The outcome that `str` writes, such as ``answer:last:door:window``, ``rank:7:door``, ``state:7`` or ``similarity:A text``.

    A position is counted from 0, or "last". In a token or the label of a class, ":" is written "%3A" and "%" is written "%25".

    Raises:
        SelectionError: the text has another form.
    """
    what, _, rest = written.partition(":")
    parts = [part.replace("%3A", ":").replace("%25", "%") for part in rest.split(":")]
    if what == "similarity" and rest.strip():
        return Similarity(text=rest)
    if what == "class" and len(parts) <= 2 and all(parts):
        return ClassAnswer(label=parts[0], against=_second(parts[1:]))
    is_number = parts[0].isascii() and parts[0].isdigit() and len(parts[0]) < 7
    at = LAST if parts[0] == "last" else int(parts[0]) if is_number else None
    if what in ("state", "length") and at is not None and len(parts) == 1:
        return TokenState(position=at, by="turn" if what == "state" else "length")
    if what == "answer" and at is not None and len(parts) in (2, 3) and all(parts):
        return TokenAnswer(position=at, token=parts[1], against=_second(parts[2:]))
    if what == "rank" and at is not None and len(parts) == 2 and all(parts):
        return TokenAnswer(position=at, token=parts[1], by="rank")
    raise SelectionError(
        f"The outcome “{written}” was asked for; an outcome is written as answer:last:door:window, answer:7:door, rank:7:door, "
        "state:7, length:7, similarity:another sentence or class:POSITIVE. Write a colon in a token as %3A."
    )


@typed
def own_answer(model: "Model", trace: "Trace", position: int | None = None) -> TokenAnswer | None:
    """What the model answers itself: the logit of its most likely token minus that of the second most likely.

    Args:
        position: None for the last token of a decoder, and the first mask token of a masked language model.

    Returns:
        None where the model has no language head, or the text no mask token.

    Raises:
        SelectionError: no such position.
        ModelFailedError, OutOfMemoryError: as `attnviz.model.capture.forward`.
    """
    tokens = trace.last_tokens
    if position is None:
        blanks = np.flatnonzero(tokens.ids == model.tokenizer.mask_token_id).tolist()
        position = LAST if "decoder" in trace.kinds else blanks[0] if blanks else None
    if model.language_head is None or position is None:
        return None
    answer = TokenAnswer(position=position, token="")
    first, second = predict(model, trace, answer.place(len(tokens)), top=2).ids.tolist()
    return replace(answer, token=model.name_of(first), against=model.name_of(second))


class MeasuredOutcome:
    """An outcome of one text; called with the last hidden states of variants of it.

    Args:
        states: of the unchanged run, [token, d_model].
        number: the outcome of each variant, [variant, token, d_model] -> [variant].
        unit: of that number.
    """

    def __init__(
        self, outcome: Outcome, states: Tensor, number: Callable[[Tensor], Tensor], unit: str
    ) -> None:
        self.outcome, self.unit, self._number = outcome, unit, number
        with torch.no_grad():
            self.value = float(self(states[None])[0])

    def __call__(self, hidden: Float[Tensor, "variant token d_model"]) -> Float[Tensor, " variant"]:
        # At least float32: bfloat16 has three digits of a rank, and float16 ends at 65,504.
        number: Tensor = self._number(hidden.to(torch.promote_types(hidden.dtype, torch.float32)))
        return number


def sentence_vectors(hidden: Float[Tensor, "variant token d_model"]) -> Float[Tensor, "variant d_model"]:
    """The mean of the last hidden states of all tokens, special ones included, with length 1."""
    vectors: Tensor = functional.normalize(hidden.mean(dim=1), dim=-1)
    return vectors


@overload
def measured(model: "Model", trace: "Trace", outcome: Outcome | str) -> MeasuredOutcome: ...


@overload
def measured(model: "Model", trace: "Trace", outcome: AnyOutcome) -> OutcomeMeasure: ...


@typed
@differentiable()
def measured(model: "Model", trace: "Trace", outcome: AnyOutcome) -> OutcomeMeasure:
    """The outcome of a text, ready to be measured on variants of it.

    Args:
        trace: of the text without interventions.
        outcome: such as ``"answer:last:door:window"``, the logit of "door" minus that of "window" at the last token, or ``"state:7"``
            (`outcome_from`); one of the records here; or a function of the last hidden states of some variants,
            [variant, token, d_model] -> [variant], which is taken as it is.

    Raises:
        EmptyTextError, TextTooLongError, InvalidTextError: of the other text of a similarity, as `Model.trace`.
        SelectionError: a position outside the text, no such token or class, or a token or class against itself.
        UnsupportedArchitectureError: the checkpoint does not have the head that answers.
    """
    trace.refuse_given("an outcome")
    if isinstance(outcome, str):
        outcome = outcome_from(outcome)
        _warn_of_likelier(model, trace, outcome)
    elif not isinstance(outcome, Outcome):
        return outcome
    states = torch.tensor(trace.last_hidden_state)
    read = trace.tokens if trace.target_tokens is None else trace.target_tokens
    match outcome:
        case TokenState():
            unit = "1 − cosine" if outcome.by == "turn" else "length"
            number = _change(states, outcome.place(len(read)), outcome.by)
        case Similarity():
            second = (
                trace.tokens.text_pair if trace.target_tokens is None else trace.target_tokens.text or None
            )
            longest = max(MOST_COMPARED, len(trace.tokens))
            other = model.trace(
                outcome.text,
                second,
                cut=True,
                max_tokens=longest,
                source_language=trace.tokens.language,
                template=trace.tokens.template if trace.tokens.template in TEMPLATES else "plain",
                target_language=trace.last_tokens.language if trace.target_tokens else None,
            ).last_hidden_state
            vector = sentence_vectors(torch.tensor(other)[None])[0]
            return MeasuredOutcome(
                outcome, states, lambda hidden: sentence_vectors(hidden) @ vector.to(hidden), "cosine"
            )
        case TokenAnswer():
            number, unit = _of_tokens(model, outcome, outcome.place(len(read))), outcome.unit
        case ClassAnswer():
            number, unit = _of_classes(model, outcome)
    return MeasuredOutcome(outcome, states, number, unit)


@typed
def unchanged(trace: "Trace", measure: OutcomeMeasure) -> float:
    """The outcome of the run without interventions.

    Raises:
        ArgumentError: ``measure`` does not give a tensor [variant]; so it is called before anything else runs.
    """
    with torch.inference_mode():
        numbers: object = measure(torch.tensor(trace.last_hidden_state)[None])
    if not isinstance(numbers, torch.Tensor) or numbers.shape != (1,):
        shape = f" {list(numbers.shape)}" if isinstance(numbers, torch.Tensor) else ""
        raise ArgumentError(
            f"An outcome gave a {type(numbers).__name__}{shape} for the states of one variant, [1, token, d_model]; it gives a Tensor "
            "[variant], one number for each. Return such a tensor, as in states[:, 0, 0], or give a text such as “answer:last:door”."
        )
    return float(numbers[0])


def refuse_no_gradient(trace: "Trace", measure: OutcomeMeasure, instead: str) -> None:
    """Refuses an outcome that has no gradient.

    Raises:
        ArgumentError: its number does not depend on the states by functions of torch that have a gradient.
    """
    if not measure(torch.tensor(trace.last_hidden_state)[None].requires_grad_()).requires_grad:
        raise ArgumentError(
            "The gradient of an outcome was asked for; its number does not depend on the states by functions of torch that have a "
            f"gradient. Compute it from the states without detach, numpy or argmax, or {instead}."
        )


def words_of(measure: OutcomeMeasure, trace: "Trace") -> str:
    """What is measured, as in a sentence; "" for a function."""
    return measure.outcome.words(trace.last_tokens) if isinstance(measure, MeasuredOutcome) else ""


def _warn_of_likelier(model: "Model", trace: "Trace", outcome: Outcome) -> None:
    """Warns where a token was typed without the space that the model predicts it with, or the other way round."""
    if not isinstance(outcome, TokenAnswer) or model.language_head is None:
        return
    at = outcome.place(len(trace.last_tokens))
    for token in filter(None, (outcome.token, outcome.against)):
        if (other := likelier_form(model, trace, at, token)) is not None:
            warnings.warn(
                f"“{as_label(token)}” is measured, with the probability {other.asked_probability:.2g}; the model predicts "
                f"“{as_label(other.token)}” with {other.probability:.2g}. A space before the token belongs to it, as in "
                "“answer:last: Mary: John”.",
                stacklevel=7,
            )


def _change(states: Tensor, at: int, by: Literal["turn", "length"]) -> Callable[[Tensor], Tensor]:
    """How far a token's state is from its own in the unchanged run, whose states are [token, d_model]; 0 for the same state."""

    def change(hidden: Tensor) -> Tensor:
        now, before = hidden[:, at], states[at].to(hidden)
        if by == "length":
            length: Tensor = (now - before).norm(dim=-1)
            return length
        is_zero = [(vectors == 0).all(dim=-1) for vectors in (now, before)]
        now, before = (functional.normalize(vectors, dim=-1) for vectors in (now, before))
        turn = (now - before).square().sum(dim=-1) / 2  # 1 - cosine, without cancellation
        return torch.where(is_zero[0] != is_zero[1], 1.0, turn)  # as in `attnviz.maths.directions`

    return change


@typed
def answer_ids(model: "Model", outcome: TokenAnswer) -> tuple[int, int | None]:
    """The id of the token, and of the token whose logit is subtracted, None if there is none.

    Raises:
        SelectionError: no such token, or a token against itself.
        UnsupportedArchitectureError: the checkpoint has no language head.
    """
    language_head(model, f"the answer “{outcome.token}”")
    ids = [token_id(model, token) for token in (outcome.token, outcome.against) if token is not None]
    _check_apart(ids, "tokens", outcome.token, outcome.against)
    return ids[0], ids[1] if len(ids) > 1 else None


def _of_tokens(model: "Model", outcome: TokenAnswer, at: int) -> Callable[[Tensor], Tensor]:
    chosen, against = answer_ids(model, outcome)

    def number(hidden: Tensor) -> Tensor:
        logits = token_logits(model, hidden[:, at])
        if against is not None:
            numbers = logits[:, chosen] - logits[:, against]
        elif outcome.by == "rank":
            numbers = 1 + (logits > logits[:, chosen, None]).sum(dim=-1)
        else:
            numbers = logits.softmax(dim=-1)[:, chosen]
        return numbers.to(hidden)

    return number


def _of_classes(model: "Model", outcome: ClassAnswer) -> tuple[Callable[[Tensor], Tensor], str]:
    numbers = [class_number(model, label) for label in (outcome.label, outcome.against) if label is not None]
    _check_apart(numbers, "classes", outcome.label, outcome.against)
    check_classes(model)

    def number(hidden: Tensor) -> Tensor:
        if len(numbers) == 1:
            return class_probabilities(model, hidden)[:, numbers[0]].to(hidden.device)
        logits = class_logits(model, hidden)
        return (logits[:, numbers[0]] - logits[:, numbers[1]]).to(hidden.device)

    return number, "probability" if outcome.against is None else "difference of logits"


def _check_apart(chosen: list[int], what: str, first: str, second: str | None) -> None:
    if len(set(chosen)) < len(chosen):
        raise SelectionError(
            f"“{first}” was to be measured against “{second}”; they are the same, so the difference is always 0. "
            f"Choose two {what}."
        )


def _written(*parts: str | None) -> str:
    return ":".join(part.replace("%", "%25").replace(":", "%3A") for part in parts if part is not None)


def _second(parts: list[str]) -> str | None:
    return parts[0] if parts else None
