"""What an experiment has an effect on: one number of a forward pass, chosen, written and said in one place.

One concept: the Outcome. It is measured on the last hidden states of several variants of one text at once, and is
differentiable.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

from attnviz.errors import SelectionError
from attnviz.records import Record, Tokens, check_index

if TYPE_CHECKING:
    from attnviz.model.loading import Model
    from attnviz.model.trace import Trace


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenState(Record):
    """The last hidden state of one token: how far it turns from that of the unchanged run."""

    position: int

    def words(self, tokens: Tokens) -> str:
        """What is measured, as in a sentence."""
        if not 0 <= self.position < len(tokens):
            return f"change of token {self.position}"
        return f"change of “{tokens.labels[self.position]}” (token {self.position})"

    def __str__(self) -> str:
        return f"state:{self.position}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Similarity(Record):
    """The similarity of the text with another: the cosine of their mean last hidden states.

    Source: Reimers and Gurevych 2019, "Sentence-BERT" (arXiv:1908.10084), section 3, mean pooling; as the
    ``Pooling`` and ``Normalize`` modules of all-MiniLM-L6-v2.
    """

    text: str

    def words(self, tokens: Tokens) -> str:
        """What is measured, as in a sentence."""
        return f"similarity with “{self.text}”"

    def __str__(self) -> str:
        return f"similarity:{self.text}"


Outcome = TokenState | Similarity


def outcome_from(written: str) -> Outcome:
    """The outcome that `str` writes: ``state:7``, or ``similarity:The other sentence``.

    Raises:
        SelectionError: the text has another form.
    """
    what, _, rest = written.partition(":")
    if what == "state" and rest.isascii() and rest.isdigit() and len(rest) < 7:
        return TokenState(position=int(rest))
    if what == "similarity" and rest.strip():
        return Similarity(text=rest)
    raise SelectionError(
        f"The outcome “{written}” was asked for; an outcome is written as state:7 or similarity:another sentence."
    )


class MeasuredOutcome:
    """An outcome of one text; called with the last hidden states of variants of it.

    Args:
        states: of the unchanged run, [token, d_model].
        other: the normalised vector of the other text, for a similarity.
    """

    def __init__(self, outcome: Outcome, states: Tensor, other: Tensor | None = None) -> None:
        self.outcome = outcome
        self._states, self._other = states, other
        self.unit = "1 − cosine" if isinstance(outcome, TokenState) else "cosine"
        with torch.no_grad():
            self.value = float(self(states[None])[0])

    def __call__(self, hidden: Float[Tensor, "variant token d_model"]) -> Float[Tensor, " variant"]:
        if isinstance(self.outcome, TokenState):
            at = self.outcome.position
            now, own = (
                functional.normalize(one, dim=-1) for one in (hidden[:, at], self._states[at].to(hidden))
            )
            return (now - own).square().sum(
                dim=-1
            ) / 2  # 1 − cosine, and 0 for the same state, not what rounding leaves
        assert self._other is not None
        similarity: Tensor = sentence_vectors(hidden) @ self._other.to(hidden)
        return similarity

    def lengths(self, hidden: Float[Tensor, "variant token d_model"]) -> Float[Tensor, " variant"]:
        """Length of the change of the token's state.

        Raises:
            SelectionError: the outcome is not of one token.
        """
        if not isinstance(self.outcome, TokenState):
            raise SelectionError("The length of the change is of one token's state. Choose that outcome.")
        at = self.outcome.position
        length: Tensor = (hidden[:, at] - self._states[at].to(hidden)).norm(dim=-1)
        return length


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
        SelectionError: a position outside the text.
    """
    states = torch.tensor(trace.last_hidden_state)
    if isinstance(outcome, TokenState):
        read = trace.tokens if trace.target_tokens is None else trace.target_tokens
        check_index("token", outcome.position, len(read), "this text")
        return MeasuredOutcome(outcome, states)
    second = None if trace.target_tokens is None else trace.target_tokens.text or None
    other = model.trace(outcome.text, second, cut=True).last_hidden_state
    return MeasuredOutcome(outcome, states, sentence_vectors(torch.tensor(other)[None])[0])
