"""The parts of a checkpoint's network: the one that reads text, and the language head or the classifier above it.

A head is run alone; it may share parameters with the network.

Source: the Auto classes and their mappings of transformers 5.23.0, and its ``text_config``.
"""

from typing import Any

import torch
from torch import Tensor, nn
from transformers import (
    MODEL_FOR_CAUSAL_LM_MAPPING,
    MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING,
    MODEL_FOR_MASKED_LM_MAPPING,
    MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING,
    MODEL_MAPPING,
    AutoModelForCausalLM,
    AutoModelForImageTextToText,
    AutoModelForMaskedLM,
    AutoModelForSequenceClassification,
    PreTrainedConfig,
    PreTrainedModel,
)
from transformers.modeling_outputs import BaseModelOutputWithPoolingAndCrossAttentions

from attnviz.errors import UnsupportedArchitectureError
from attnviz.model.capture import forward
from attnviz.model.configuration import text_config

_N_PROBE = 3
"""Tokens that a part is tested on, alone and within the whole."""
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


def modules_of_head(head: PreTrainedModel) -> list[nn.Module]:
    """The modules that may run when a head of `split_head` is called: its own, and those of the network whose pooler it reads."""
    own = list(head.modules())
    return own + [module for given in own if isinstance(given, _Given) for module in given._of[0].modules()]


def class_with_classifier(config: PreTrainedConfig) -> Any:
    """The Auto class that loads a checkpoint with its classifier; None where the checkpoint names none."""
    if config.is_encoder_decoder or type(config) not in MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING:
        return None
    named = any(class_name.endswith("ForSequenceClassification") for class_name in config.architectures or ())
    return AutoModelForSequenceClassification if named else None


def split_classifier(whole: PreTrainedModel) -> tuple[PreTrainedModel, PreTrainedModel | None]:
    """The network of a model, and its classifier alone, called like the head of `split_head`.

    The classifier is None unless, for three tokens, it gives the whole model's logits from the last hidden states alone.
    BERT's and ALBERT's read the pooler of the network, which then runs on the given states.
    """
    padding = getattr(text_config(whole.config), "pad_token_id", None)
    ids = torch.tensor(
        [[number for number in range(_N_PROBE + 1) if number != padding][:_N_PROBE]], device=whole.device
    )
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


def text_part(network: PreTrainedModel) -> PreTrainedModel:
    """The module that reads text; the network itself where it reads nothing else.

    Raises:
        UnsupportedArchitectureError: no such module, or one that cannot run alone or then gives other states.
    """
    text = text_config(network.config)
    if text is network.config:
        return network
    path = text_path(network)
    part = None if path is None else network.get_submodule(path)
    if isinstance(part, PreTrainedModel) and _is_alone_as_within(network, part):
        return part
    family = network.config.model_type
    reason = "it reads images or sounds beside text, and its part for text does not run alone as it does within the whole"
    raise UnsupportedArchitectureError(
        f"This model is of the family {family}, which attnviz cannot show: {reason}. Select a model that reads text only, "
        "such as BERT, Llama or Gemma 3 1B.",
        reason=reason,
    )


def text_path(network: PreTrainedModel) -> str | None:
    """Where in a network the module that reads text is; "" for the network itself, None for nowhere."""
    text = text_config(network.config)
    if text is network.config:
        return ""
    wanted: Any = MODEL_MAPPING.get(type(text), None)
    return next((path for path, module in network.named_modules() if type(module) is wanted), None)


def _is_alone_as_within(network: PreTrainedModel, part: PreTrainedModel) -> bool:
    """Whether the part gives the same last hidden state of three tokens alone as it does when the whole reads them."""
    numbers = {
        value for value in network.config.to_dict().values() if isinstance(value, int)
    }  # ids of images among them
    ids = torch.tensor(
        [[number for number in range(len(numbers) + _N_PROBE) if number not in numbers][:_N_PROBE]],
        device=network.device,
    )
    within: list[Tensor] = []

    def note(_: nn.Module, __: Any, output: Any) -> None:
        within.append(output.last_hidden_state)

    handle = part.register_forward_hook(note)
    try:
        with torch.inference_mode():
            forward(network, input_ids=ids, use_cache=False)
            forward(part, input_ids=ids, use_cache=False)
    except Exception:  # noqa: BLE001  (a family's own code, given text alone, raises whatever it raises)
        return False
    finally:
        handle.remove()
    return len(within) == 2 and torch.allclose(within[0].float(), within[1].float(), rtol=1e-3, atol=1e-5)
