"""The sequence classifier of a checkpoint: the layers above the network that assign a class to a whole text.

Source: ``AutoModelForSequenceClassification`` of transformers 5.23.0.
"""

from typing import Any

import torch
from torch import Tensor
from transformers import (
    MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING,
    AutoModelForSequenceClassification,
    PreTrainedConfig,
    PreTrainedModel,
)

from attnviz.model.configuration import text_config
from attnviz.model.language_head import split_head

_N_PROBE = 3
"""Tokens that a classifier is tested on."""


def class_with_classifier(config: PreTrainedConfig) -> Any:
    """The Auto class that loads a checkpoint with its classifier; None where the checkpoint names none."""
    if config.is_encoder_decoder or type(config) not in MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING:
        return None
    named = any(class_name.endswith("ForSequenceClassification") for class_name in config.architectures or ())
    return AutoModelForSequenceClassification if named else None


def split_classifier(whole: PreTrainedModel) -> tuple[PreTrainedModel, PreTrainedModel | None]:
    """The network of a model, and its classifier alone, called like the head of `attnviz.model.language_head.split_head`.

    The classifier is None unless, for three tokens, it gives the whole model's logits from the last hidden states alone.
    BERT's and ALBERT's read the pooler of the network, which then runs on the given states.
    """
    padding = getattr(text_config(whole.config), "pad_token_id", None)
    ids = torch.tensor([[number for number in range(_N_PROBE + 1) if number != padding][:_N_PROBE]])
    with torch.inference_mode():
        expected = whole(input_ids=ids).logits
        network, classifier = split_head(whole)
        logits = _logits(classifier, network(input_ids=ids).last_hidden_state)
    is_whole = logits is not None and torch.allclose(logits.float(), expected.float(), rtol=1e-3, atol=1e-6)
    return network, classifier if is_whole else None


def _logits(classifier: PreTrainedModel, hidden: Tensor) -> Tensor | None:
    """A classifier's logits for last hidden states; None where it reads anything else of the network."""
    try:
        logits: Tensor = classifier(inputs_embeds=hidden).logits
    except Exception:  # noqa: BLE001  (a family's own code, given less than it expects, raises whatever it raises)
        return None
    return logits
