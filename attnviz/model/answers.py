"""The answer of a checkpoint's own head to last hidden states: the logits of all tokens, or of all classes.

The answer is differentiable with respect to the hidden states.
"""

import torch
from jaxtyping import Float
from torch import Tensor
from transformers import PreTrainedModel

from attnviz.errors import SelectionError, UnsupportedArchitectureError
from attnviz.model.configuration import text_config
from attnviz.model.forward import forward
from attnviz.model.model import Model
from attnviz.model.token_labels import labels_of

_MOST_NAMED = 8
"""Most classes that an error names."""


def language_head(model: Model, asked: str) -> PreTrainedModel:
    """The model's language head.

    Args:
        asked: what was asked for, as in "the answer “door”".

    Raises:
        UnsupportedArchitectureError: the checkpoint has no language head.
    """
    if model.head is None:
        raise UnsupportedArchitectureError(
            f"{_capital(asked)} was asked for; {_checkpoint(model)} has no language head that attnviz can run. "
            "Select a model that has one, such as bert-base-uncased or gpt2."
        )
    return model.head


def token_logits(
    model: Model, vectors: Float[Tensor, "*place d_model"]
) -> Float[Tensor, "*place vocabulary"]:
    """The logits of all tokens for last hidden states, in float32 where the states are.

    Raises:
        UnsupportedArchitectureError: as `language_head`.
        ModelFailedError, OutOfMemoryError: as `attnviz.model.forward.forward`.
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
        ModelFailedError, OutOfMemoryError: as `attnviz.model.forward.forward`.
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
