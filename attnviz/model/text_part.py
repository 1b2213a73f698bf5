"""The part of a network that reads text, where the network reads images or sounds as well.

Source: ``MODEL_MAPPING`` and ``text_config`` of transformers 5.23.0.
"""

from typing import Any

import torch
from torch import Tensor, nn
from transformers import MODEL_MAPPING, PreTrainedModel

from attnviz.errors import UnsupportedArchitectureError
from attnviz.model.configuration import text_config
from attnviz.model.forward import forward

_N_PROBE = 3
"""Tokens that the part is tested on, alone and within the whole."""


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
        [[number for number in range(len(numbers) + _N_PROBE) if number not in numbers][:_N_PROBE]]
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
