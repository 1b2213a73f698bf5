"""The language head of a checkpoint: the layers above the network, which may share its parameters.

`attnviz.model.classifier` does the same.

Source: ``AutoModelForMaskedLM``, ``AutoModelForCausalLM`` and ``AutoModelForImageTextToText`` of transformers 5.23.0.
"""

from typing import Any

from torch import Tensor, nn
from transformers import (
    MODEL_FOR_CAUSAL_LM_MAPPING,
    MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING,
    MODEL_FOR_MASKED_LM_MAPPING,
    AutoModelForCausalLM,
    AutoModelForImageTextToText,
    AutoModelForMaskedLM,
    PreTrainedConfig,
    PreTrainedModel,
)
from transformers.modeling_outputs import BaseModelOutputWithPoolingAndCrossAttentions

from attnviz.model.text_part import text_part

_LOADERS = {
    "ForMaskedLM": (AutoModelForMaskedLM, MODEL_FOR_MASKED_LM_MAPPING),
    "ForPreTraining": (AutoModelForMaskedLM, MODEL_FOR_MASKED_LM_MAPPING),
    "ForCausalLM": (AutoModelForCausalLM, MODEL_FOR_CAUSAL_LM_MAPPING),
    "LMHeadModel": (AutoModelForCausalLM, MODEL_FOR_CAUSAL_LM_MAPPING),
    "ForConditionalGeneration": (AutoModelForImageTextToText, MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING),
}
"""Auto class that loads a checkpoint with its head, by the suffix of its ``architectures``."""


def class_with_head(config: PreTrainedConfig) -> Any:
    """The Auto class that loads a checkpoint with its language head; None where the checkpoint names no such head."""
    if config.is_encoder_decoder:
        return None
    for architecture in config.architectures or ():
        for ending, (loader, families) in _LOADERS.items():
            if architecture.endswith(ending) and type(config) in families:
                return loader
    return None


def fills_masks(head: PreTrainedModel) -> bool:
    """Whether a head predicts masked tokens, as BERT's does; otherwise it predicts the next token."""
    masked: Any = MODEL_FOR_MASKED_LM_MAPPING.get(type(head.config), None)
    return type(head) is masked


class _Output(BaseModelOutputWithPoolingAndCrossAttentions):
    """The last hidden state; all other outputs of a network, such as router logits of experts, are None."""

    def __getattr__(self, name: str) -> None:
        if name.startswith("__"):
            raise AttributeError(name)


class _Given(nn.Module):
    """A replacement for the network that returns the vectors that the head is called with.

    Some heads call a part of the network instead, as OPT's head calls the decoder, or read an attribute of it.
    """

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self._of = [network]  # in a list, so that the network is not a submodule of its head

    def __getattr__(self, name: str) -> Any:
        if name == "_of":
            raise AttributeError(name)
        value = getattr(self._of[0], name)
        return self if isinstance(value, PreTrainedModel) else value

    def forward(self, *_: Any, inputs_embeds: Tensor, **__: Any) -> _Output:
        return _Output(last_hidden_state=inputs_embeds, pooler_output=self._pooled(inputs_embeds))

    def _pooled(self, states: Tensor) -> Tensor | None:
        """Output of the network's own pooler, which classifiers read; None for a network without one."""
        pooler = getattr(self._of[0], "pooler", None)
        if pooler is None:
            return None
        if isinstance(pooler, nn.Linear):  # ALBERT and BigBird keep the parts of their pooler on the network
            activation = getattr(self._of[0], "pooler_activation", None) or self._of[0].activation
            return activation(pooler(states[:, 0]))  # type: ignore[no-any-return, operator]
        return pooler(states)  # type: ignore[no-any-return]


def split_head(whole: PreTrainedModel) -> tuple[PreTrainedModel, PreTrainedModel]:
    """The network of a model, and its head alone; parameters that both use, such as the embeddings, stay shared.

    The head is called like the whole model, with the network's last hidden state as ``inputs_embeds``.
    """
    network = text_part(whole.base_model)  # type: ignore[arg-type]
    setattr(whole, whole.base_model_prefix, _Given(network))
    return network, whole
