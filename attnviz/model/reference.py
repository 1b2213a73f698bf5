"""The reference: the same model on its family's own attention, and the inputs and outputs of that attention.

One concept: the model's own numbers. A reference shares every parameter with the model that is traced. Its attention
is the function ``eager_attention_forward`` that transformers has for the family, called exactly as the family calls it.

Source: ``AttentionInterface`` and ``AttentionMaskInterface`` of transformers 5.23.0.
"""

import copy
import sys
from collections.abc import Callable, Iterable
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import torch
from torch import Tensor, nn
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.masking_utils import eager_mask

from attnviz.errors import UnsupportedArchitectureError
from attnviz.model.call_order import CallOrder
from attnviz.model.capture import share_parameters, split_mask
from attnviz.model.forward import forward
from attnviz.records import Kind

if TYPE_CHECKING:
    from transformers import PreTrainedModel

IMPLEMENTATION = "attnviz_reference"


@dataclass(slots=True, kw_only=True)
class ReferenceCall:
    """Inputs and outputs of one attention of the reference, as float32 tensors on the CPU."""

    kind: Kind
    layer: int
    query: Tensor
    """[head, query, d_head]"""
    key: Tensor
    """[kv_head, key, d_head]"""
    value: Tensor
    """[kv_head, key, d_value]"""
    scale: float
    allowed: Tensor | None
    """[1 or head, query, key]: true where a key may be seen; None where all may."""
    bias: Tensor | None
    """[1 or head, query, key], added to the scaled scores."""
    weights: Tensor
    """[head, query, key]"""
    output: Tensor
    """[head, query, d_value]"""


class ReferencePass:
    """One forward pass of a reference, handled call by call, so that no layer's weights are kept.

    Args:
        on_attention: called with every attention call.
        on_output: called with the kind and the layer of every attention call and the output of W_O,
            [query, d_model], where the reference's W_O is known: see `listen_to_outputs`.
    """

    def __init__(
        self,
        reference: "PreTrainedModel",
        on_attention: Callable[[ReferenceCall], None],
        on_output: Callable[[Kind, int, Tensor], None] = lambda kind, layer, output: None,
    ) -> None:
        self._reference = reference
        self._order = CallOrder(reference)
        self._on_attention, self._on_output = on_attention, on_output
        self._joined: tuple[Kind, int] | None = None

    def run(self, **inputs: Any) -> Tensor:
        """The last hidden state, [token, d_model], in float32 on the CPU.

        Args:
            inputs: arguments of the model's forward; a batch of one.

        Raises:
            ModelFailedError, OutOfMemoryError: as `attnviz.model.forward.forward`.
        """
        token = _pass.set(self)
        try:
            with torch.inference_mode():
                return _plain(forward(self._reference, **inputs).last_hidden_state)
        finally:
            _pass.reset(token)

    def attended(self, module: nn.Module, call: dict[str, Any]) -> None:
        """Tells of an attention call; ``call`` has the other fields of a `ReferenceCall`."""
        kind, layer = self._order.next(module)
        self._joined = None
        self._on_attention(ReferenceCall(kind=kind, layer=layer, **call))

    def joined(self, output: Tensor) -> None:
        """Tells of the output of a layer's W_O, [..., token, d_model], the first time after its attention call."""
        place = self._order.last
        if place is not None and place != self._joined:  # the first time after this attention call
            self._joined = place
            self._on_output(*place, _plain(output.reshape(1, -1, output.shape[-1])))


_pass: ContextVar[ReferencePass | None] = ContextVar("attnviz_reference_pass", default=None)


def family_attention(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    **terms: Any,
) -> tuple[Tensor, Tensor]:
    """The family's own eager attention with all its arguments, reported to the current pass.

    Args:
        query: [batch, head, query, d_head].
        key, value: [batch, kv_head, key, d_head].
        attention_mask: [batch, 1 or head, query, key].
        terms: what else the family passes.

    Returns:
        [batch, query, head, d_value], and the weights [batch, head, query, key].

    Raises:
        UnsupportedArchitectureError: the family's module has no ``eager_attention_forward``.
    """
    output, weights = family_function(module)(module, query, key, value, attention_mask, **terms)
    if (listening := _pass.get()) is not None:
        scale = terms.get("scaling")
        allowed, bias = (None, None) if attention_mask is None else split_mask(attention_mask)
        given = [one for one in (terms.get("position_bias"), bias) if one is not None]
        listening.attended(
            module,
            {
                "query": _plain(query),
                "key": _plain(key),
                "value": _plain(value),
                "scale": query.shape[-1] ** -0.5 if scale is None else float(scale),
                "allowed": None if allowed is None else allowed[0].cpu(),
                "bias": None if not given else _plain(sum(given[1:], start=given[0])),
                "weights": _plain(weights),
                "output": _plain(output).transpose(0, 1),
            },
        )
    return output, weights


def family_function(module: nn.Module) -> Callable[..., tuple[Tensor, Tensor]]:
    """The function ``eager_attention_forward`` beside the class of a family's attention module.

    Raises:
        UnsupportedArchitectureError: there is none.
    """
    for one in type(module).__mro__:
        found = getattr(sys.modules[one.__module__], "eager_attention_forward", None)
        if found is not None:
            return cast(Callable[..., tuple[Tensor, Tensor]], found)
    raise UnsupportedArchitectureError(
        f"transformers has no eager attention for {type(module).__name__} that attnviz could compare itself with. "
        "Select a model of another family, such as BERT, RoBERTa or GPT-2."
    )


AttentionInterface.register(IMPLEMENTATION, family_attention)
AttentionMaskInterface.register(IMPLEMENTATION, eager_mask)


def make_reference(network: "PreTrainedModel") -> "PreTrainedModel":
    """The same model on its family's own attention; parameters and buffers are shared, not copied."""
    reference = share_parameters(network)
    reference.set_attn_implementation(IMPLEMENTATION)
    return reference


def in_float64(reference: "PreTrainedModel") -> "PreTrainedModel":
    """A copy of a reference that computes in float64; it takes twice the memory of its float32 parameters."""
    return copy.deepcopy(reference).double()


def listen_to_outputs(reference: "PreTrainedModel", names: Iterable[str]) -> None:
    """Adds hooks that report the outputs of these modules, the W_O of the layers, to the current pass.

    The hooks stay: a pass gets only reports from its own context, so that one reference serves many people.
    """

    def tell(module: nn.Module, inputs: tuple[Any, ...], output: Tensor) -> None:
        if (listening := _pass.get()) is not None:
            listening.joined(output)

    for name in dict.fromkeys(names):
        reference.get_submodule(name).register_forward_hook(tell)


def _plain(tensor: Tensor) -> Tensor:
    """The one element of a batch, in float32 on the CPU."""
    return tensor[0].float().cpu()
