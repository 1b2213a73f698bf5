"""The MLP of every layer: the module whose output a layer adds to the residual stream beside that of its attention.

A layer leaves s + m, or a norm of it, where m is the output of its MLP, or of the norm behind it (Gemma 2), and s a
vector that passed through the layer before: the stream after the attention; where attention and MLP stand side by side
(GPT-NeoX), the stream before both plus the output of W_O. A mixture of experts counts as one MLP. A layer that scales
what it adds (Granite) counts as having none.

Source: Vaswani et al. 2017 (arXiv:1706.03762), section 3.1, for norms after the sum; Xiong et al. 2020 (arXiv:2002.04745) for
norms before.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from attnviz.model.capture import recorded
from attnviz.model.forward import forward
from attnviz.model.normalisation import is_norm

if TYPE_CHECKING:
    from transformers import PreTrainedModel

_ROUNDING = 8
"""Rounding errors of a sum of two or three vectors and of a norm, in units of the dtype's."""


@dataclass(slots=True)
class _Layer:
    """What passed through one layer, [row, token, d_model] each."""

    given: Tensor
    left: Tensor | None = None
    attention: Tensor | None = None
    """The last output of a W_O."""
    calls: list[tuple[nn.Module, Tensor, Tensor]] = field(default_factory=list)
    """Modules that ran within the layer, with input and output, in the order in which they ended."""
    n_before: int = 0
    """Calls that ended before the layer's last attention."""


def find_mlps(
    network: "PreTrainedModel", layers: Sequence[nn.Module], output_maps: Iterable[nn.Module], **inputs: Any
) -> tuple[nn.Module, ...]:
    """The module of each layer's MLP, in the order of the layers; empty unless every layer has one.

    Args:
        network: runs on attnviz's attention. Hooks record one run of it, during which nothing else may use it.
        layers: as `attnviz.model.layer_modules.find_layers`.
        output_maps: W_O of every layer that has one.
        inputs: arguments of its forward; a batch of one.
    """
    layers_with_mlp: list[_Layer] = []
    outermost, joining = set(layers), set(output_maps)

    def enter(_: nn.Module, args: tuple[Any, ...], named: dict[str, Any]) -> None:
        state = next((value for value in (*args, *named.values()) if is_batch_of_states(value)), None)
        if state is not None:
            layers_with_mlp.append(_Layer(given=state))

    def leave(module: nn.Module, args: tuple[Any, ...], named: dict[str, Any], output: Any) -> None:
        made = output[0] if isinstance(output, tuple) and output else output
        if not layers_with_mlp or layers_with_mlp[-1].left is not None or not isinstance(made, Tensor):
            return
        layer = layers_with_mlp[-1]
        if module in outermost:
            layer.left = made
        elif made.numel() == layer.given.numel() and made.is_floating_point():
            shape = layer.given.shape
            given = next((value for value in (*args, *named.values()) if isinstance(value, Tensor)), made)
            given = given if given.numel() == made.numel() else made
            if module in joining:
                layer.attention, layer.n_before = made.reshape(shape), len(layer.calls)
            else:
                made = made.clone()  # a family may add to it in place, as Llama 4 to its shared expert's
                layer.calls.append((module, given.reshape(shape).clone(), made.reshape(shape)))

    within = dict.fromkeys(module for layer in layers for module in layer.modules())
    handles = [layer.register_forward_pre_hook(enter, with_kwargs=True) for layer in layers]
    handles += [module.register_forward_hook(leave, with_kwargs=True) for module in within]
    try:
        with recorded(network, keeps=False), torch.inference_mode():
            forward(network, **inputs)
    finally:
        for handle in handles:
            handle.remove()
    modules = [_mlp_of(layer) for layer in layers_with_mlp]
    return tuple(module for module in modules if module is not None) if None not in modules else ()


def _mlp_of(layer: _Layer) -> nn.Module | None:
    """The module whose output is the last that the layer adds; of several modules with this output the innermost."""
    if layer.attention is None or layer.left is None:
        return None
    sums = [layer.left]
    sums += [
        given for module, given, made in layer.calls if is_norm(module) and torch.equal(made, layer.left)
    ]
    streams = [layer.given + layer.attention]
    for number, (module, given, made) in enumerate(layer.calls):
        if number >= layer.n_before and any(
            _is_sum(total, stream, made) for total in sums for stream in streams
        ):
            return module
        streams += [given, made]  # what the MLP is added to exists before it
    return None


def _is_sum(total: Tensor, *terms: Tensor) -> bool:
    """Whether a tensor is the sum of two others within the rounding of its dtype, and neither of them is 0 or the whole sum."""
    first, second = (term.float() for term in terms)
    bound = _ROUNDING * torch.finfo(total.dtype).eps * (first.abs() + second.abs())
    fits = bool(((total.float() - first - second).abs() <= bound).all())
    return fits and bool(first.any()) and bool(second.any())


def is_batch_of_states(given: Any) -> bool:
    """Whether an argument of a layer is a vector for each row and token."""
    return isinstance(given, Tensor) and given.ndim == 3 and given.is_floating_point()
