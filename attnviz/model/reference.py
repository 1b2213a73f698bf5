"""The reference: the same model on its family's own attention, and the inputs and outputs of that attention.

A reference shares every parameter with the model that is traced. Its attention is the function
``eager_attention_forward`` that transformers has for the family, called exactly as the family calls it; for the
families of `attnviz.model.own_attention` it is the forward of their attention class, whose softmax is observed.

Source: ``AttentionInterface`` and ``AttentionMaskInterface`` of transformers 5.23.0; ``TorchFunctionMode`` of torch 2.13.
"""

import copy
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import nullcontext
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, cast

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.masking_utils import eager_mask

from attnviz.errors import UnsupportedArchitectureError
from attnviz.model.capture import CallOrder, forward, run_on, share_parameters, split_mask
from attnviz.model.own_attention import OwnAttention, given_back, subclass
from attnviz.records import LONG, Kind

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
    softcap: float | None
    """c where scaled scores s become c tanh(s / c)."""
    allowed: Tensor | None
    """[1 or head, query, key]: true where a key may be seen; None where all may."""
    bias: Tensor | None
    """[1 or head, query, key], added to the scaled scores."""
    has_scores: bool
    """Whether scores have a term of the family's own: a softcap, or what its attention class adds. If not, scale, mask, bias,
    queries and keys determine them."""
    blocks: Iterator["ReferenceBlock"]
    """What the attention computes, some queries at a time; to be read, as far as it is, while the call is reported."""


@dataclass(slots=True, kw_only=True)
class ReferenceBlock:
    """What one attention of the reference computes for some queries, as float32 tensors on the CPU."""

    rows: slice
    scores: Tensor | None
    """[head, row, key], the input of the family's softmax; None where the call has none."""
    weights: Tensor
    """[head, row, key]"""
    output: Tensor
    """[head, row, d_value]"""


WHOLE = LONG
"""Queries up to which a family's attention is called on all of them at once."""
ROWS = 128
"""Queries of a longer text that it is called on at a time, so that their weights are not held whole."""

_MASKS = 4
"""Masks of a pass that are kept: one for each kind of layer; some attention classes make their own in every layer."""


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
        self._masks: dict[int, tuple[Tensor, Tensor | None, Tensor | None]] = {}

    def run(self, **inputs: Any) -> Tensor:
        """The last hidden state, [token, d_model], in float32 on the CPU.

        Args:
            inputs: arguments of the model's forward; a batch of one.

        Raises:
            ModelFailedError, OutOfMemoryError: as `attnviz.model.capture.forward`.
        """
        token = _pass.set(self)
        try:
            with torch.inference_mode():
                return _plain(forward(self._reference, **inputs).last_hidden_state)
        finally:
            _pass.reset(token)

    def attended(self, module: nn.Module, call: dict[str, Any]) -> None:
        """Reports an attention call; ``call`` has what `_call` gives, and the blocks of a `ReferenceCall`."""
        kind, layer = self._order.next(module)
        self._joined = None
        mask = call.pop("mask")
        allowed, bias = (None, None) if mask is None else self._split(mask)
        given = [term for term in (call.pop("position_bias"), bias) if term is not None]
        call["allowed"] = allowed
        call["bias"] = _plain(sum(given[1:], start=given[0])) if given else None
        self._on_attention(ReferenceCall(kind=kind, layer=layer, **call))

    def _split(self, mask: Tensor) -> tuple[Tensor | None, Tensor | None]:
        """The cells that a mask allows, [1 or head, query, key] on the CPU, and its bias; layers share masks, so each is split once."""
        if id(mask) not in self._masks:
            if len(self._masks) == _MASKS:
                self._masks.clear()
            allowed, bias = split_mask(mask)
            allowed = None if allowed is None else allowed[0].cpu()
            self._masks[id(mask)] = mask, allowed, bias  # keeping the mask keeps its id unique
        return self._masks[id(mask)][1:]

    def joined(self, output: Tensor) -> None:
        """Reports the output of a layer's W_O, [..., token, d_model], the first time after its attention call."""
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
        terms: other arguments that the family passes.

    Returns:
        [batch, query, head, d_value], and the weights [batch, head, query, key].

    Raises:
        UnsupportedArchitectureError: the family's module has no ``eager_attention_forward``.
    """
    function, n_query, n_key = family_function(module), query.shape[2], key.shape[2]
    if (listening := _pass.get()) is None:
        return function(module, query, key, value, attention_mask, **terms)
    made: list[tuple[Tensor, Tensor]] = []

    def blocks() -> Iterator[ReferenceBlock]:
        size = n_query if n_query <= WHOLE else ROWS
        for start in range(0, n_query, size):
            rows = slice(start, min(n_query, start + size))
            mask = None if attention_mask is None else _rows_of(attention_mask, rows)
            stop = n_key if size == n_query else _last_seen(mask, n_key)  # later keys get no weight
            heard, of_rows = _Heard(), terms
            if (bias := terms.get("position_bias")) is not None:
                of_rows = terms | {"position_bias": _rows_of(bias, rows)[..., :stop]}
            mask = None if mask is None else mask[..., :stop]
            seen = key[:, :, :stop], value[:, :, :stop]
            with heard if terms.get("softcap") is not None else nullcontext():
                output, weights = function(module, query[:, :, rows], *seen, mask, **of_rows)
            made.append((output, weights if size == n_query else output.new_empty(0)))
            scores = None if heard.scores is None else _widened(heard.scores, n_key, -torch.inf)
            weights = _widened(weights, n_key, 0.0)
            yield _block(rows, scores=scores, weights=weights, output=output.transpose(1, 2))

    inputs = {"query": query, "key": key, "value": value, "attention_mask": attention_mask, **terms}
    rest = blocks()
    listening.attended(
        module, _call(inputs) | {"has_scores": terms.get("softcap") is not None, "blocks": rest}
    )
    for _ in rest:
        pass
    outputs = [output for output, _ in made]
    return outputs[0] if len(made) == 1 else torch.cat(outputs, dim=1), made[0][1]


def _last_seen(mask: Tensor | None, n_key: int) -> int:
    """The place after the last key that some query may see, by a mask that is added to the scores."""
    if mask is None or mask.shape[-1] != n_key:
        return n_key
    allowed = mask if mask.dtype == torch.bool else mask > torch.finfo(mask.dtype).min / 2
    seen = allowed.flatten(0, -2).any(dim=0).nonzero()
    return int(seen[-1]) + 1 if len(seen) else n_key


def _widened(matrix: Tensor, n_key: int, value: float) -> Tensor:
    """The matrix with a value for every later key."""
    missing = n_key - matrix.shape[-1]
    return nn.functional.pad(matrix, (0, missing), value=value) if missing else matrix


def _rows_of(matrix: Tensor, rows: slice) -> Tensor:
    """The rows of a mask or bias; a single row for all queries is returned as it is."""
    return matrix if matrix.shape[-2] == 1 else matrix[..., rows, :]


class _Heard(TorchFunctionMode):
    """Observes the first softmax of a context, and the first product after it.

    Args:
        on_product: called with the input and the result of the softmax, and the first product that follows it.
    """

    def __init__(self, on_product: Callable[[Tensor, Tensor, Tensor], None] = lambda *_: None) -> None:
        super().__init__()
        self._on_product: Callable[[Tensor, Tensor, Tensor], None] | None = on_product
        self.scores: Tensor | None = None
        """Input of the softmax."""
        self.weights: Tensor | None = None

    def __torch_function__(
        self, function: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        made = function(*args, **(kwargs or {}))
        if self.scores is None or self.weights is None:
            if function in _SOFTMAX:
                self.scores, self.weights = args[0], made
        elif function in _PRODUCTS and self._on_product is not None:
            tell, self._on_product = self._on_product, None
            tell(self.scores, self.weights, made)
        return made


_SOFTMAX = (nn.functional.softmax, torch.softmax)
_PRODUCTS = (torch.matmul, torch.bmm)


def _call(inputs: Mapping[str, Any]) -> dict[str, Any]:
    """What a `ReferenceCall` is made of but its place and blocks, from arguments of attention as transformers names them."""
    query, scale = inputs["query"], inputs.get("scaling")
    return {
        "query": _plain(query),
        "key": _plain(inputs["key"]),
        "value": _plain(inputs["value"]),
        "scale": query.shape[-1] ** -0.5 if scale is None else float(scale),
        "softcap": inputs.get("softcap"),
        "mask": inputs["attention_mask"],
        "position_bias": inputs.get("position_bias"),
    }


def _block(rows: slice, *, scores: Tensor | None, weights: Tensor, output: Tensor) -> ReferenceBlock:
    """The results of a batch of one, [batch, head, row, d]; some families join batch and heads."""
    n_row = rows.stop - rows.start

    def by_head(tensor: Tensor) -> Tensor:
        return _plain(tensor.reshape(1, -1, n_row, tensor.shape[-1]))

    return ReferenceBlock(
        rows=rows,
        scores=None if scores is None else by_head(scores),
        weights=by_head(weights),
        output=by_head(output),
    )


@cache
def _listening(family: Any, own: OwnAttention) -> type[nn.Module]:
    """The subclass of a family's attention class that reports what its forward computes to the current pass."""

    def forward(module: nn.Module, *args: Any, **named: Any) -> Any:
        listening = _pass.get()
        if listening is None:
            return family.forward(module, *args, **named)

        def tell(scores: Tensor, weights: Tensor, output: Tensor) -> None:
            # reported before W_O runs, which is part of MPNet's class
            inputs = own.inputs(module, *args, **named)
            rows = slice(0, inputs["query"].shape[2])
            block = _block(rows, scores=scores, weights=weights, output=output)
            listening.attended(module, _call(inputs) | {"has_scores": True, "blocks": iter([block])})

        with _Heard(tell):
            return family.forward(module, *args, **named)

    return subclass(family, own, forward)


def family_function(module: nn.Module) -> Callable[..., tuple[Tensor, Tensor]]:
    """The function ``eager_attention_forward`` beside the class of a family's attention module.

    Raises:
        UnsupportedArchitectureError: there is none.
    """
    for class_ in type(module).__mro__:
        function = getattr(sys.modules[class_.__module__], "eager_attention_forward", None)
        if function is not None:
            return cast(Callable[..., tuple[Tensor, Tensor]], function)
    raise UnsupportedArchitectureError(
        f"transformers has no eager attention for {type(module).__name__} that attnviz could compare itself with. "
        "Select a model of another family, such as BERT, RoBERTa or GPT-2."
    )


AttentionInterface.register(IMPLEMENTATION, family_attention)
AttentionMaskInterface.register(IMPLEMENTATION, eager_mask)


def make_reference(network: "PreTrainedModel") -> "PreTrainedModel":
    """The same model on its family's own attention; parameters and buffers are shared, not copied."""
    reference = share_parameters(network)
    own_classes = {module: own for module in reference.modules() if (own := given_back(module)) is not None}
    for module, own in own_classes.items():
        family: Any = type(module)
        module.__class__ = _listening(family, own)
    run_on(reference, IMPLEMENTATION)  # whose masks are added to scores; own classes ask for the masks alone
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
