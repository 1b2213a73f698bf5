"""What an experiment has an effect on: one number of a forward pass, chosen, written and said in one place.

One concept: the Outcome. It is measured on the last hidden states of several variants of one text at once, and is
differentiable.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

from attnviz.errors import SelectionError
from attnviz.model.answers import (
    check_classes,
    class_logits,
    class_number,
    class_probabilities,
    language_head,
    token_id,
    token_logits,
)
from attnviz.records import Record, Tokens, check_index

if TYPE_CHECKING:
    from attnviz.model.loading import Model
    from attnviz.model.trace import Trace


MOST_COMPARED = 512
"""Tokens of the other text of a similarity, unless the text itself has more: it is cut there, whatever the model reads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenState(Record):
    """The last hidden state of one token: how far it turns from that of the unchanged run, or how far it moves."""

    position: int
    by: Literal["turn", "length"] = "turn"
    """``turn`` for 1 - cosine, ``length`` for the Euclidean length of the change."""

    def words(self, tokens: Tokens) -> str:
        """What is measured, as in a sentence."""
        where = f"token {self.position}"
        if 0 <= self.position < len(tokens):
            where = f"“{tokens.labels[self.position]}” ({where})"
        return (
            f"{'turn' if self.by == 'turn' else 'length of the change'} of the last hidden state of {where}"
        )

    def __str__(self) -> str:
        return f"{'state' if self.by == 'turn' else 'length'}:{self.position}"


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
class TokenAnswer(Record):
    """What the language head answers at a token: the probability of one token, or its log-odds against another.

    A masked language model answers for the token at the position, a causal model for the next token. The log-odds
    ln(p / q) are the difference of the two logits.

    Source: Wang et al. 2022, "Interpretability in the Wild" (arXiv:2211.00593), section 2.2, logit difference.
    """

    position: int
    token: str
    """Entry of the vocabulary, or a text that is read as one; see `attnviz.model.answers.token_id`."""
    against: str | None = None
    """Another token, for log-odds; None for a probability."""

    def words(self, tokens: Tokens) -> str:
        """What is measured, as in a sentence."""
        where = f"token {self.position}"
        if 0 <= self.position < len(tokens):
            where = f"“{tokens.labels[self.position]}” ({where})"
        said = f"probability of “{self.token}”"
        if self.against is not None:
            said = f"log-odds of “{self.token}” against “{self.against}”"
        return f"{said} predicted at {where}"

    def __str__(self) -> str:
        return _written("answer", str(self.position), self.token, self.against)


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


def outcome_from(written: str) -> Outcome:
    """The outcome that `str` writes, such as ``state:7``, ``length:7``, ``similarity:The other sentence`` or ``answer:7:door:window``.

    In a token or the label of a class, ":" is written "%3A" and "%" is written "%25".

    Raises:
        SelectionError: the text has another form.
    """
    what, _, rest = written.partition(":")
    parts = [one.replace("%3A", ":").replace("%25", "%") for one in rest.split(":")]
    if what == "similarity" and rest.strip():
        return Similarity(text=rest)
    if what == "class" and len(parts) <= 2 and all(parts):
        return ClassAnswer(label=parts[0], against=_second(parts[1:]))
    at = int(parts[0]) if parts[0].isascii() and parts[0].isdigit() and len(parts[0]) < 7 else None
    if what in ("state", "length") and at is not None and len(parts) == 1:
        return TokenState(position=at, by="turn" if what == "state" else "length")
    if what == "answer" and at is not None and len(parts) in (2, 3) and all(parts):
        return TokenAnswer(position=at, token=parts[1], against=_second(parts[2:]))
    raise SelectionError(
        f"The outcome “{written}” was asked for; an outcome is written as state:7, length:7, similarity:another sentence, "
        "answer:7:door, answer:7:door:window or class:POSITIVE. Write a colon in a token as %3A."
    )


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
        number: Tensor = self._number(hidden)
        return number


def sentence_vectors(hidden: Float[Tensor, "variant token d_model"]) -> Float[Tensor, "variant d_model"]:
    """The mean of the last hidden states of all tokens, special ones included, with length 1."""
    vectors: Tensor = functional.normalize(hidden.mean(dim=1), dim=-1)
    return vectors


def measured(model: "Model", trace: "Trace", outcome: Outcome) -> MeasuredOutcome:
    """The outcome of a text, ready to be measured on variants of it.

    Args:
        trace: of the text without interventions.

    Raises:
        EmptyTextError, TextTooLongError, InvalidTextError: of the other text of a similarity, as `Model.trace`.
        SelectionError: a position outside the text, no such token or class, or one against itself.
        UnsupportedArchitectureError: the checkpoint does not have the head that answers.
    """
    states = torch.tensor(trace.last_hidden_state)
    read = trace.tokens if trace.target_tokens is None else trace.target_tokens
    if isinstance(outcome, TokenState | TokenAnswer):
        check_index("token", outcome.position, len(read), "this text")
    match outcome:
        case TokenState():
            unit = "1 − cosine" if outcome.by == "turn" else "length"
            return MeasuredOutcome(outcome, states, _change(states[outcome.position], outcome), unit)
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
                target_language=trace.last_tokens.language if trace.target_tokens else None,
            ).last_hidden_state
            vector = sentence_vectors(torch.tensor(other)[None])[0]
            return MeasuredOutcome(
                outcome, states, lambda hidden: sentence_vectors(hidden) @ vector.to(hidden), "cosine"
            )
        case TokenAnswer():
            number, unit = _of_tokens(model, outcome)
        case ClassAnswer():
            number, unit = _of_classes(model, outcome)
    return MeasuredOutcome(outcome, states, number, unit)


def _change(own: Tensor, outcome: TokenState) -> Callable[[Tensor], Tensor]:
    """How far a token's state is from its own in the unchanged run, [d_model]; 0 for the same state."""

    def change(hidden: Tensor) -> Tensor:
        now, before = hidden[:, outcome.position], own.to(hidden)
        if outcome.by == "length":
            length: Tensor = (now - before).norm(dim=-1)
            return length
        now, before = (functional.normalize(one, dim=-1) for one in (now, before))
        return (now - before).square().sum(dim=-1) / 2  # 1 - cosine, without what rounding leaves of 1

    return change


def _of_tokens(model: "Model", outcome: TokenAnswer) -> tuple[Callable[[Tensor], Tensor], str]:
    language_head(model, f"the answer “{outcome.token}”")
    ids = [token_id(model, one) for one in (outcome.token, outcome.against) if one is not None]
    _check_apart(ids, "tokens", outcome.token, outcome.against)

    def number(hidden: Tensor) -> Tensor:
        logits = token_logits(model, hidden[:, outcome.position])
        return _number(logits, logits.softmax(dim=-1), ids).to(hidden.device)

    return number, "probability" if outcome.against is None else "log-odds"


def _of_classes(model: "Model", outcome: ClassAnswer) -> tuple[Callable[[Tensor], Tensor], str]:
    numbers = [class_number(model, one) for one in (outcome.label, outcome.against) if one is not None]
    _check_apart(numbers, "classes", outcome.label, outcome.against)
    check_classes(model)

    def number(hidden: Tensor) -> Tensor:
        made = class_probabilities(model, hidden) if len(numbers) == 1 else class_logits(model, hidden)
        return _number(made, made, numbers).to(hidden.device)

    return number, "probability" if outcome.against is None else "difference of logits"


def _number(logits: Tensor, probabilities: Tensor, chosen: list[int]) -> Tensor:
    """The probability of the one that is chosen, or the logit of the first minus that of the second."""
    if len(chosen) == 1:
        return probabilities[:, chosen[0]]
    return logits[:, chosen[0]] - logits[:, chosen[1]]


def _check_apart(chosen: list[int], what: str, first: str, second: str | None) -> None:
    if len(set(chosen)) < len(chosen):
        raise SelectionError(
            f"“{first}” was to be measured against “{second}”; they are the same, so the difference is always 0. "
            f"Choose two {what}."
        )


def _written(*parts: str | None) -> str:
    return ":".join(one.replace("%", "%25").replace(":", "%3A") for one in parts if one is not None)


def _second(parts: list[str]) -> str | None:
    return parts[0] if parts else None
