"""W_O of every layer: the linear map that joins the heads' outputs, found and checked by running the model.

A layer has an output map where a linear map takes the concatenated outputs of the heads, unchanged, and multiplies them
by its weight; a map after a norm or a gate (BitNet, Qwen3-Next) does not count.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn
from transformers.pytorch_utils import Conv1D

from attnviz.maths.rounding import dot_bound
from attnviz.model.capture import recorded
from attnviz.model.forward import forward
from attnviz.records import Kind, LayerAttention, Record

if TYPE_CHECKING:
    from transformers import PreTrainedModel

Linear = nn.Linear | Conv1D


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OutputMap(Record):
    """W_O of one layer; shares the memory of the model's parameters where these are float32 on the CPU."""

    name: str
    """Name of the module in the network, such as ``encoder.layer.0.attention.output.dense``."""
    weight: Float[np.ndarray, "head d_value d_model"]
    bias: Float[np.ndarray, " d_model"] | None


def with_output_maps(
    calls: Sequence[LayerAttention], maps: Sequence[OutputMap] | None
) -> tuple[LayerAttention, ...]:
    """The attention of every layer with its W_O; unchanged where W_O is not known."""
    if maps is None:
        return tuple(calls)
    return tuple(
        replace(call, output_weight=output_map.weight, output_bias=output_map.bias)
        for call, output_map in zip(calls, maps, strict=True)
    )


def find_output_maps(network: "PreTrainedModel", **inputs: Any) -> dict[Kind, tuple[OutputMap, ...]]:
    """The output map of every layer by kind of attention; a kind is left out unless all its layers have one.

    Args:
        network: runs on attnviz's attention. Hooks record one run of it, during which nothing else may use it.
        inputs: arguments of its forward; a batch of one.
    """
    names = {module: name for name, module in network.named_modules() if isinstance(module, Linear)}
    output_maps: dict[tuple[Kind, int], OutputMap] = {}
    with recorded(network) as recording:

        def listen(module: Linear, given: tuple[Any, ...], made: object) -> None:
            place, output = recording.order.last, recording.output
            if place is None or output is None or place in output_maps:
                return
            if not isinstance(made, Tensor):  # a router of experts gives scores and logits (Llama 4)
                return
            joined = output.flatten(-2)  # [batch, query, head x d_value]
            if given[0].numel() == joined.numel() and torch.equal(given[0].reshape(joined.shape), joined):
                weight, bias = linear_parameters(module)
                if _is_product(joined, weight, bias, made):
                    output_maps[place] = _output_map(names[module], weight, bias, n_head=output.shape[-2])

        handles = [module.register_forward_hook(listen) for module in names]
        try:
            with torch.inference_mode():
                forward(network, **inputs)
        finally:
            for handle in handles:
                handle.remove()
    return {
        kind: tuple(output_maps[kind, layer] for layer in range(len(calls)))
        for kind, calls in recording.texts[0].items()
        if all((kind, layer) in output_maps for layer in range(len(calls)))
    }


def linear_parameters(linear: Linear) -> tuple[Tensor, Tensor | None]:
    """Weight [d_in, d_out] and bias [d_out] of a linear map; a `Conv1D` keeps its weight transposed."""
    weight = linear.get_parameter("weight").detach()
    bias = getattr(linear, "bias", None)
    return weight if isinstance(linear, Conv1D) else weight.mT, None if bias is None else bias.detach()


def _is_product(given: Tensor, weight: Tensor, bias: Tensor | None, made: Tensor) -> bool:
    """Whether a module's output is its input times its weight, within the rounding of its dtype."""
    given, made = (array.reshape(-1, array.shape[-1]).double() for array in (given, made))
    expected, sizes = given @ weight.double(), given.abs() @ weight.double().abs()
    if bias is not None:
        expected, sizes = expected + bias.double(), sizes + bias.double().abs()
    return bool(((made - expected).abs() <= 2 * dot_bound(len(weight) + 1, weight.dtype) * sizes).all())


def _output_map(name: str, weight: Tensor, bias: Tensor | None, *, n_head: int) -> OutputMap:
    weight = weight.float().cpu()
    return OutputMap(
        name=name,
        weight=weight.reshape(n_head, -1, weight.shape[-1]).numpy(),
        bias=None if bias is None else bias.float().cpu().numpy(),
    )
