"""The forms of a token: with or without the space that belongs to it; and which of these a model predicts.

"␣Mary" and "Mary" are two entries of most vocabularies and mean different things to a model, which within a sentence
predicts the one with the space.
"""

from dataclasses import dataclass

import torch

from attnviz.model.answers import token_id, token_logits
from attnviz.model.model import Model
from attnviz.model.token_labels import labels_of
from attnviz.model.trace import Trace
from attnviz.records import SPACE, Record, bare, check_index

CLEARLY_LIKELIER = 10
"""Another form is probably meant if it is at least this many times as likely."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LikelierForm(Record):
    """Another form of a token, which a model finds clearly more likely."""

    token: str
    """As `attnviz.model.model.Model.name_of` writes it."""
    probability: float
    asked: str
    """The form that was asked for, written in the same way."""
    asked_probability: float


def other_forms(model: Model, number: int) -> tuple[int, ...]:
    """Ids of the tokens that differ from this one only by a space before or after it."""
    [label] = labels_of(model.tokenizer, [number])
    if not (word := bare(label)):
        return ()
    read = [model.read_as(form) for form in (word, SPACE + word, word + SPACE)]
    forms = dict.fromkeys(ids[0] for ids in read if len(ids) == 1 and ids[0] != number)
    labels = labels_of(model.tokenizer, list(forms))
    return tuple(number for number, its in zip(forms, labels, strict=True) if bare(its) == word)


def likelier_form(model: Model, trace: Trace, position: int, token: str) -> LikelierForm | None:
    """The likeliest other form of a token, if a model predicts it `CLEARLY_LIKELIER` times as often at a position as the token.

    Raises:
        SelectionError: no such token or position.
        UnsupportedArchitectureError: the checkpoint has no language head.
        ModelFailedError, OutOfMemoryError: as `attnviz.model.forward.forward`.
    """
    check_index("token", position, len(trace.last_hidden_state), "this text")
    asked = token_id(model, token)
    if not (others := other_forms(model, asked)):
        return None
    with torch.inference_mode():
        logits = token_logits(model, torch.tensor(trace.last_hidden_state[position]))
    chances = logits.double().softmax(dim=-1)
    likeliest = max(others, key=lambda number: float(chances[number]))
    if float(chances[likeliest]) < CLEARLY_LIKELIER * float(chances[asked]):
        return None
    return LikelierForm(
        token=model.name_of(likeliest),
        probability=float(chances[likeliest]),
        asked=model.name_of(asked),
        asked_probability=float(chances[asked]),
    )
