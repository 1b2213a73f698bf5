"""The answer of a checkpoint's own head to last hidden states: the logits of all tokens, or of all classes; the likeliest tokens.

Logits are differentiable with respect to the hidden states.

"␣Mary" and "Mary" are two entries of most vocabularies and mean different things to a model, which within a sentence
predicts the one with the space: the forms of a token.

Source: Devlin et al. 2019, arXiv:1810.04805, section 3.1 (masked language model); Radford et al. 2019, "Language Models
are Unsupervised Multitask Learners", section 2 (the next token).
"""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor
from transformers import PreTrainedModel

from attnviz.arguments import typed
from attnviz.errors import SelectionError, UnsupportedArchitectureError
from attnviz.model.capture import forward
from attnviz.model.configuration import text_config
from attnviz.model.model import Model
from attnviz.model.token_labels import labels_of
from attnviz.model.trace import Trace
from attnviz.records import SPACE, Record, Result, bare, check_index
from attnviz.records.table import Table

_MOST_NAMED = 8
"""Most classes that an error names."""
CLEARLY_LIKELIER = 10
"""Another form is probably meant if it is at least this many times as likely."""


def language_head(model: Model, asked: str) -> PreTrainedModel:
    """The model's language head.

    Args:
        asked: what was asked for, as in "the answer “door”".

    Raises:
        UnsupportedArchitectureError: the checkpoint has no language head.
    """
    if model.language_head is None:
        raise UnsupportedArchitectureError(
            f"{_capital(asked)} was asked for; {_checkpoint(model)} has no language head that attnviz can run. "
            "Select a model that has one, such as bert-base-uncased or gpt2."
        )
    return model.language_head


def token_logits(
    model: Model, vectors: Float[Tensor, "*place d_model"]
) -> Float[Tensor, "*place vocabulary"]:
    """The logits of all tokens for last hidden states, in float32 where the states are.

    Raises:
        UnsupportedArchitectureError: as `language_head`.
        ModelFailedError, OutOfMemoryError: as `attnviz.model.capture.forward`.
    """
    head = language_head(model, "an answer")
    rows = vectors.reshape(-1, 1, vectors.shape[-1]).to(model.network.device, model.network.dtype)
    # torch multiplies rows that are not contiguous with the whole vocabulary one at a time
    rows = rows.contiguous()
    logits: Tensor = forward(head, inputs_embeds=rows).logits
    return logits.to(vectors.dtype).reshape(*vectors.shape[:-1], -1)


def class_logits(
    model: Model, hidden: Float[Tensor, "variant token d_model"]
) -> Float[Tensor, "variant class"]:
    """The logits of all classes for the last hidden states of variants of one text.

    Raises:
        UnsupportedArchitectureError: the checkpoint has no classifier.
        ModelFailedError, OutOfMemoryError: as `attnviz.model.capture.forward`.
    """
    classifier = _classifier(model, "the class of a text")
    given = hidden.to(model.network.device, model.network.dtype)
    padding = getattr(text_config(classifier.config), "pad_token_id", None)
    if padding is None:  # transformers 5.23.0 then refuses several rows
        logits = torch.cat([forward(classifier, inputs_embeds=row[None]).logits for row in given])
    else:
        logits = forward(classifier, inputs_embeds=given).logits
    return logits.to(hidden.dtype)


def class_probabilities(
    model: Model, hidden: Float[Tensor, "variant token d_model"]
) -> Float[Tensor, "variant class"]:
    """Probabilities of all classes: a softmax over them, or a sigmoid of each where there is one class or several may hold.

    Source: ``TextClassificationPipeline`` of transformers 5.23.0.

    Raises:
        UnsupportedArchitectureError: the checkpoint has no classifier, or one that predicts a number and no class.
    """
    check_classes(model)
    problem = _classifier(model, "the class of a text").config.problem_type
    logits = class_logits(model, hidden)
    if problem == "multi_label_classification" or logits.shape[-1] == 1:
        return logits.sigmoid()
    return logits.softmax(dim=-1)


def check_classes(model: Model) -> None:
    """Raises UnsupportedArchitectureError where the classifier predicts numbers and no classes."""
    if _classifier(model, "the class of a text").config.problem_type == "regression":
        raise UnsupportedArchitectureError(
            f"A class of the text was asked for; the classifier of {model.name} predicts numbers, not classes. Select "
            "a model that classifies, such as distilbert-base-uncased-finetuned-sst-2-english."
        )


def token_id(model: Model, token: str) -> int:
    """The id of a token: an entry of the vocabulary, spelled as there, or a text that the tokenizer reads as one token.

    The entry comes first: for GPT-2 "door" is the entry without a space, and "␣door", " door" or "Ġdoor" the one with it.

    Raises:
        SelectionError: the text is no single token of the vocabulary.
    """
    ids = model.read_as(token)
    unknown = model.tokenizer.unk_token_id
    if len(ids) == 1 and ids[0] < model.network.config.vocab_size:
        if ids[0] != unknown or token == model.tokenizer.unk_token:
            return ids[0]
        reason = f"its tokenizer reads it as {model.tokenizer.unk_token}"
    else:
        pieces = " ".join(labels_of(model.tokenizer, ids))
        reason = f"its tokenizer reads it as {len(ids)} tokens" + (f": {pieces}" if pieces else "")
    raise SelectionError(
        f"The token “{token}” was asked for; the vocabulary of {model.name} has none that is written so, and {reason}. "
        "Choose a token of its vocabulary."
    )


def class_number(model: Model, label: str) -> int:
    """The number of a class by its label in the checkpoint's ``id2label``.

    Raises:
        SelectionError: no class has that label.
        UnsupportedArchitectureError: the checkpoint has no classifier.
    """
    classifier = _classifier(model, f"the class “{label}”")
    labels = {str(name): int(number) for number, name in (classifier.config.id2label or {}).items()}
    if label not in labels:
        named = ", ".join(list(labels)[:_MOST_NAMED]) + (" and more" if len(labels) > _MOST_NAMED else "")
        raise SelectionError(
            f"The class “{label}” was asked for; the classes of {model.name} are {named}. Select one of those."
        )
    return labels[label]


def _classifier(model: Model, asked: str) -> PreTrainedModel:
    if model.classifier is None:
        raise UnsupportedArchitectureError(
            f"{_capital(asked)} was asked for; {_checkpoint(model)} has no classifier that attnviz can run. Select a model "
            "that has one, such as distilbert-base-uncased-finetuned-sst-2-english."
        )
    return model.classifier


def _checkpoint(model: Model) -> str:
    """What the checkpoint is, according to its configuration."""
    named = ", ".join(model.network.config.architectures or ()) or type(model.network).__name__
    return f"the checkpoint of {model.name} ({named})"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Predictions(Result):
    """The most likely tokens, most likely first."""

    position: int
    """Position of the predicted token; for a causal model, the position of the token before it."""
    ids: Int[np.ndarray, " token"]
    labels: tuple[str, ...]
    probabilities: Float[np.ndarray, " token"]
    """Probabilities of these tokens: the softmax over the whole vocabulary."""

    def _table(self) -> Table:
        """A row for each token."""
        rows = zip(self.ids.tolist(), self.labels, self.probabilities, strict=True)
        return ["rank", "id", "token", "probability"], [[rank, *row] for rank, row in enumerate(rows, 1)]


@typed
def predict(model: Model, trace: Trace, position: int, *, top: int = 5) -> Predictions:
    """The tokens that the model's own head predicts at a position of a trace, most likely first.

    A masked language model predicts the token at the position, a causal model the next token. Interventions in the
    trace also affect the predictions.

    Raises:
        SelectionError: no such position, or fewer than one token asked for.
        UnsupportedArchitectureError: the checkpoint holds no language head.
        ModelFailedError, OutOfMemoryError: as `attnviz.model.capture.forward`.
    """
    trace.refuse_given("a prediction")
    if model.language_head is None:
        raise UnsupportedArchitectureError(
            f"A prediction of {model.name} at token {position} was asked for; its checkpoint has no language head. "
            "Select a model that has one, such as bert-base-uncased."
        )
    check_index("token", position, len(trace.last_hidden_state), "this text")
    if top < 1:
        raise SelectionError(f"The {top} most likely tokens were asked for. Ask for one or more.")
    vector = torch.tensor(trace.last_hidden_state[position]).to(model.network.device, model.network.dtype)
    with torch.inference_mode():
        logits = forward(model.language_head, inputs_embeds=vector[None, None]).logits[0, 0]
    likeliest = logits.float().softmax(dim=-1).topk(min(top, len(logits)))
    return Predictions(
        position=position,
        ids=likeliest.indices.cpu().numpy(),
        labels=labels_of(model.tokenizer, likeliest.indices.tolist()),
        probabilities=likeliest.values.cpu().numpy(),
    )


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
        ModelFailedError, OutOfMemoryError: as `attnviz.model.capture.forward`.
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
