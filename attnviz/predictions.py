"""What a model would put in a place of its text: its own language head on the last hidden state of a trace.

One concept: the prediction. The head is what stands above the network in a checkpoint, and shares its parameters.

Source: ``AutoModelForMaskedLM`` and ``AutoModelForCausalLM`` of transformers 5.23.0; Devlin et al. 2019,
arXiv:1810.04805, section 3.1 (masked language model); Radford et al. 2019, "Language Models are Unsupervised Multitask
Learners", section 2 (the next token).
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn
from transformers import (
    MODEL_FOR_CAUSAL_LM_MAPPING,
    MODEL_FOR_MASKED_LM_MAPPING,
    AutoModelForCausalLM,
    AutoModelForMaskedLM,
    PreTrainedConfig,
    PreTrainedModel,
)
from transformers.modeling_outputs import BaseModelOutputWithPoolingAndCrossAttentions

from attnviz.errors import SelectionError, UnsupportedArchitectureError
from attnviz.records import Record, check_index
from attnviz.tokenization import labels_of

if TYPE_CHECKING:
    from attnviz.models import Model
    from attnviz.trace import Trace

_LOADERS = {
    "ForMaskedLM": (AutoModelForMaskedLM, MODEL_FOR_MASKED_LM_MAPPING),
    "ForPreTraining": (AutoModelForMaskedLM, MODEL_FOR_MASKED_LM_MAPPING),
    "ForCausalLM": (AutoModelForCausalLM, MODEL_FOR_CAUSAL_LM_MAPPING),
    "LMHeadModel": (AutoModelForCausalLM, MODEL_FOR_CAUSAL_LM_MAPPING),
}
"""What reads a checkpoint with its head, by how its ``architectures`` end."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Predictions(Record):
    """The likeliest tokens, likeliest first."""

    position: int
    """Where they would stand; for a model that reads from left to right, the token that they would follow."""
    labels: tuple[str, ...]
    probabilities: Float[np.ndarray, " token"]
    """Their shares of the softmax over the whole vocabulary."""


def predict(model: "Model", trace: "Trace", position: int, *, top: int = 5) -> Predictions:
    """The tokens that the model's own head finds likeliest at a position of a trace, likeliest first.

    A masked language model says what stands there, and a causal one what comes next. What an intervention changed in
    the trace is changed here too.

    Raises:
        SelectionError: no such position, or fewer than one token asked for.
        UnsupportedArchitectureError: the checkpoint holds no language head.
    """
    if model.head is None:
        raise UnsupportedArchitectureError(
            f"What {model.name} would put at token {position} was asked for; its checkpoint has no language head. "
            "Pick a model that has one, such as bert-base-uncased."
        )
    check_index("token", position, len(trace.last_hidden_state), "this text")
    if top < 1:
        raise SelectionError(f"The {top} likeliest tokens were asked for. Ask for one or more.")
    vector = torch.tensor(trace.last_hidden_state[position]).to(model.network.device, model.network.dtype)
    with torch.inference_mode():
        logits = model.head(inputs_embeds=vector[None, None]).logits[0, 0]
    found = logits.float().softmax(dim=-1).topk(min(top, len(logits)))
    return Predictions(
        position=position,
        labels=labels_of(model.tokenizer, found.indices.tolist()),
        probabilities=found.values.cpu().numpy(),
    )


def class_with_head(config: PreTrainedConfig) -> Any:
    """The Auto class that reads a checkpoint with its language head; None where it does not name one."""
    if config.is_encoder_decoder:
        return None
    for architecture in config.architectures or ():
        for ending, (loader, families) in _LOADERS.items():
            if architecture.endswith(ending) and type(config) in families:
                return loader
    return None


class _Output(BaseModelOutputWithPoolingAndCrossAttentions):
    """The last hidden state; whatever else a family's network gives, such as the choices of experts, is None."""

    def __getattr__(self, name: str) -> None:
        if name.startswith("__"):
            raise AttributeError(name)


class _Given(nn.Module):
    """Stands where the network was, and gives back the vectors that a head is called with.

    Some heads call a part of the network instead, as OPT's calls its decoder, or read a number of it.
    """

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self._of = [network]  # in a list, so that the network is no part of its head

    def __getattr__(self, name: str) -> Any:
        if name == "_of":
            raise AttributeError(name)
        found = getattr(self._of[0], name)
        return self if isinstance(found, PreTrainedModel) else found

    def forward(self, *_: Any, inputs_embeds: Tensor, **__: Any) -> _Output:
        return _Output(last_hidden_state=inputs_embeds)


def split_head(whole: PreTrainedModel) -> tuple[PreTrainedModel, PreTrainedModel]:
    """The network of a model, and its head alone; parameters that both use, such as the embeddings, stay shared.

    The head is called as the whole was, with the network's last hidden state as ``inputs_embeds``.
    """
    network = whole.base_model
    setattr(whole, whole.base_model_prefix, _Given(network))
    return network, whole  # type: ignore[return-value]
