"""attnviz's attention inside a transformers model, and a record of its inputs.

The function here is registered as an attention implementation of transformers under the name "attnviz", so that a model
loaded with it runs on `attnviz.maths`. Recordings are in a context variable, never on the model, since one process
serves many people.

Source: ``AttentionInterface`` and ``AttentionMaskInterface`` of transformers 5.23.0.
"""

import copy
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn
from transformers import AttentionInterface, AttentionMaskInterface, PreTrainedConfig
from transformers.masking_utils import sdpa_mask

from attnviz.errors import CaptureError, ModelFailedError, UnsupportedArchitectureError, failures_of
from attnviz.maths.attention import attention_output, expand_heads
from attnviz.maths.blocks import attention_output_in_blocks
from attnviz.model import storage
from attnviz.model.changes import Changes
from attnviz.model.configuration import call_count, layer_count
from attnviz.model.interventions import Intervention, check_layers
from attnviz.model.storage import Storage
from attnviz.records import Kind, LayerAttention, Progress

if TYPE_CHECKING:
    from transformers import PreTrainedModel

IMPLEMENTATION = "attnviz"

# Arguments of a family's attention that do not change the numbers, or are handled elsewhere:
# masks and positions are applied already, dropout is off, caches are not used.
_HARMLESS = frozenset(
    {
        "is_causal",
        "sliding_window",
        "position_ids",
        "cache_position",
        "deterministic",
        "output_attentions",
        "output_hidden_states",
        "use_cache",
        "return_dict",
        "cu_seq_lens_q",
        "cu_seq_lens_k",
        "max_length_q",
        "max_length_k",
        "num_items_in_batch",
    }
)

_OTHER_FORMULAS = {
    "s_aux": "gives a part of each row's weight to a learned sink (OpenAI 2025, arXiv:2508.10925)",
}
"""What a family that passes this argument computes instead of scaled dot-product attention."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Length:
    """Tokens of a text, without the padding that follows them in a batch."""

    read: int
    """Tokens that the encoder reads, or a decoder without an encoder."""
    written: int | None = None
    """Tokens that the decoder of an encoder-decoder model reads."""

    def of(self, kind: Kind) -> tuple[int, int]:
        """Number of queries and of keys."""
        written = self.read if self.written is None else self.written
        n_query = self.read if kind == "encoder" else written
        return n_query, written if kind == "decoder" else self.read


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionCall:
    """The inputs of one attention call of a batch, after the interventions; tensors are on the model's device."""

    kind: Kind
    layer: int
    query: Tensor
    """[batch, head, query, d_head], rotary positions applied."""
    key: Tensor
    """[batch, kv_head, key, d_head], rotary positions applied."""
    value: Tensor
    """[batch, kv_head, key, d_value]"""
    scale: float
    """Factor on q . k before the softmax."""
    softcap: float | None
    """c where scaled scores s become c tanh(s / c); None for no softcap."""
    allowed: Tensor | None
    """[1 or batch, 1 or head, query, key]: true where a query may see a key; None where every query sees every key."""
    bias: Tensor | None
    """[1 or batch, 1 or head, query, key], added to the scaled scores; None for no bias."""


class CallOrder:
    """The kind and layer of each attention call, by the order of the calls.

    Some families do not name the layer, and ALBERT calls the same module for every layer.
    """

    def __init__(self, network: "PreTrainedModel") -> None:
        self._encoder_modules: frozenset[int] | None = None
        if network.config.is_encoder_decoder:
            self._encoder_modules = frozenset(id(module) for module in network.get_encoder().modules())
        self.counts: Counter[Kind] = Counter()
        """Calls of each kind so far."""
        self.n_calls = 0
        """Calls of all kinds so far."""
        self.last: tuple[Kind, int] | None = None
        """Kind and layer of the last call."""

    def upcoming(self, module: nn.Module) -> tuple[Kind, int]:
        """Kind and layer of the next call."""
        kind = self._kind_of(module)
        return kind, self.counts[kind]

    def next(self, module: nn.Module) -> tuple[Kind, int]:
        """Kind and layer of the current call, which is counted."""
        self.last = kind, _ = self.upcoming(module)
        self.counts[kind] += 1
        self.n_calls += 1
        return self.last

    @property
    def n_layers(self) -> int:
        """Layers that have begun so far; a decoder's come after all of its encoder's."""
        return self.counts["encoder"] + self.counts["decoder"]

    def entering(self, layer: nn.Module) -> tuple[Kind, int]:
        """Kind and number of a layer that is about to run, by its module."""
        if self._encoder_modules is not None:
            kind: Kind = "encoder" if id(layer) in self._encoder_modules else "decoder"
        else:
            is_causal = any(getattr(module, "is_causal", False) for module in layer.modules())
            kind = "decoder" if is_causal else "encoder"
        return kind, self.counts[kind]

    def _kind_of(self, module: nn.Module) -> Kind:
        is_causal = bool(getattr(module, "is_causal", False))
        if self._encoder_modules is None:
            return "decoder" if is_causal else "encoder"
        if id(module) in self._encoder_modules:
            return "encoder"
        return "decoder" if is_causal else "cross"


class Recording:
    """The attention calls of one forward pass, in order.

    Args:
        changes: made in this pass; its rows are variants of one text.
        lengths: of each text of a batch; None for one text without padding.
        joins: how many layers run before each row of the changes joins, in ascending order: 0 for the first row, which all
            others copy. None where every layer runs on the rows of the inputs.
        keeps: whether the inputs of the calls are kept.
        after_call: called after each attention call with the number of calls so far.
        progress: called with the share of the calls that are done, as each begins.
        on_layer: called with the recorded inputs of each call of a text, before its output is computed.
    """

    def __init__(
        self,
        network: "PreTrainedModel",
        changes: Changes,
        *,
        lengths: Sequence[Length] | None = None,
        joins: Sequence[int] | None = None,
        keeps: bool = True,
        after_call: Callable[[int], None] | None = None,
        progress: Progress | None = None,
        on_layer: Callable[[LayerAttention], object] | None = None,
    ) -> None:
        self._config = network.config
        self.order = CallOrder(network)
        self.changes = changes
        self.texts: list[dict[Kind, list[LayerAttention]]] = [{} for _ in lengths or (None,)]
        """The calls of each text."""
        self.output: Tensor | None = None
        """Output of the last call, [batch, query, head, d_value]."""
        self.lengths = lengths
        self._joins, self._keeps, self._after_call = joins, keeps, after_call
        self._progress, self._on_layer = progress, on_layer
        self.storage: Storage | None = None
        """Where what is recorded is kept, from the first call on."""
        self._masks: dict[int, tuple[Tensor, Tensor | None, Tensor | None]] = {}
        self._arrays: dict[tuple[int, int], tuple[Tensor, np.ndarray | None]] = {}

    @property
    def row_counts(self) -> tuple[int, ...]:
        """Number of rows of each layer so far, and of the next one; empty where every layer runs on the rows of the inputs."""
        if self._joins is None:
            return ()
        return tuple(bisect_right(self._joins, layer) for layer in range(self.order.n_layers + 1))

    def split_mask(self, mask: Tensor) -> tuple[Tensor | None, Tensor | None]:
        """As `split_mask`, for a mask [batch, 1 or head, query, key], which all layers share, so that it is split and kept once."""
        if id(mask) not in self._masks:
            self._masks[id(mask)] = (mask, *split_mask(mask))  # keeping the mask keeps its id unique
        return self._masks[id(mask)][1:]

    def changed(self, module: nn.Module, query: Tensor, key: Tensor, allowed: Tensor | None) -> Tensor | None:
        """The mask of the current call, [batch, 1 or head, query, key], after the interventions.

        Args:
            query: [batch, head, query, d_head].
            key: [batch, kv_head, key, d_head].
            allowed: the mask before the interventions; None where every key is allowed.
        """
        kind, layer = self.order.upcoming(module)
        left = self.changes.allowed(kind, layer, (*query.shape[:3], key.shape[2]))
        if left is None:
            return allowed
        left = left.to(query.device)
        return left if allowed is None else allowed & left

    def add(self, module: nn.Module, call: AttentionCall) -> None:
        """Records the next call of the pass, which this module makes."""
        self.order.next(module)
        if self._after_call is not None:
            self._after_call(self.order.n_calls)
        if self._progress is not None:
            n_call = call_count(self._config, call.kind)
            self._progress(min(1.0, (self.order.n_calls - 1) / n_call))
        if self._keeps:
            self.keep(call)

    def keep(self, call: AttentionCall) -> None:
        """Keeps the inputs of a call: those of each text, without its padding."""
        n_text = len(self.texts)
        if len(call.query) != n_text:
            raise CaptureError(
                f"A batch of {len(call.query)} was being recorded as {n_text} text{'s' * (n_text > 1)}. Give the lengths of its texts."
            )
        if not any(self.texts):  # the first call tells how much comes
            n_number = sum(each.numel() for each in (call.query, call.key, call.value))
            n_bytes = 4 * n_number * call_count(self._config, call.kind)
            self.storage = Storage(n_bytes) if n_bytes > storage.IN_MEMORY else None
        for number, text in enumerate(self.texts):
            if self.lengths is None:
                n_query, n_key = call.query.shape[2], call.key.shape[2]
            else:
                n_query, n_key = self.lengths[number].of(call.kind)
            layer = LayerAttention(
                kind=call.kind,
                layer=call.layer,
                query=self._stored(_array(call.query[number, :, :n_query])),
                key=self._stored(_array(call.key[number, :, :n_key])),
                value=self._stored(_array(call.value[number, :, :n_key])),
                scale=call.scale,
                softcap=call.softcap,
                allowed=self._mask_of(number, call.allowed, n_query, n_key),
                bias=self._mask_of(number, call.bias, n_query, n_key),
            )
            text.setdefault(call.kind, []).append(layer)
            if self._on_layer is not None:
                self._on_layer(layer)

    def _stored(self, array: np.ndarray) -> np.ndarray:
        return array if self.storage is None else self.storage.keep(array)

    def _mask_of(self, number: int, mask: Tensor | None, n_query: int, n_key: int) -> np.ndarray | None:
        """A text's part of a mask, [1 or text, 1 or head, query, key]; None where it has no effect.

        Layers share their masks, so each part is made once: on a GPU and in half precision an array is a copy.
        """
        if mask is None:
            return None
        place = id(mask), number
        if place not in self._arrays:
            part = mask[number if len(mask) > 1 else 0, :, :n_query, :n_key]
            is_idle = bool(part.all()) if part.dtype == torch.bool else not bool(part.any())
            self._arrays[place] = (mask, None if is_idle else self._stored(_array(part)))
        return self._arrays[place][1]


current_recording: ContextVar[Recording | None] = ContextVar("attnviz_recording", default=None)
"""The recording of the current pass; None where nothing is recorded."""


def attnviz_attention(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    dropout: float = 0.0,
    position_bias: Tensor | None = None,
    softcap: float | None = None,
    **others: Any,
) -> tuple[Tensor, None]:
    """Attention as transformers calls it, computed by `attnviz.maths`.

    Args:
        query: [batch, head, query, d_head].
        key, value: [batch, kv_head, key, d_head].
        attention_mask: [batch, 1 or head, query, key], true where a key is allowed; or added to the scaled scores: 0 where it is
            allowed and the dtype's lowest number where not.
        scaling: factor on q . k; 1 / sqrt(d_head) when None.
        position_bias: [1 or batch, head, query, key], added to the scaled scores (T5).
        softcap: c where scaled scores s become c tanh(s / c) before the mask (Gemma 2); None for no softcap.

    Returns:
        [batch, query, head, d_value], and None in place of the weights.

    Raises:
        UnsupportedArchitectureError: the family adds a term that attnviz does not know, or uses dropout.
    """
    unknown = sorted(name for name, given in others.items() if given is not None and name not in _HARMLESS)
    if unknown or dropout:
        term = ", ".join(unknown) if unknown else f"dropout {dropout}"
        other = next((_OTHER_FORMULAS[term] for term in unknown if term in _OTHER_FORMULAS), None)
        reason = other or f"calls its attention with {term}, which attnviz does not know"
        raise UnsupportedArchitectureError(
            f"{type(module).__name__} {reason}; the numbers of scaled dot-product attention could differ from the "
            "model's. Select a model of another family.",
            reason=f"it {reason}",
        )
    scale = query.shape[-1] ** -0.5 if scaling is None else float(scaling)
    recording = current_recording.get()
    allowed, bias = None, None
    if position_bias is not None and bool(position_bias.any()):  # T5's is 0 between its two texts
        bias = position_bias
    if attention_mask is not None:
        split = split_mask if recording is None else recording.split_mask
        allowed, rest = split(attention_mask)
        if rest is not None:
            bias = rest if bias is None else bias + rest
    if recording is not None:
        kind, layer = recording.order.upcoming(module)
        if recording.changes.is_asked:
            query, key, value = recording.changes.changed_vectors(kind, layer, query, key, value)
            allowed = recording.changed(module, query, key, allowed)
        call = AttentionCall(
            kind=kind,
            layer=layer,
            query=query,
            key=key,
            value=value,
            scale=scale,
            softcap=softcap,
            allowed=allowed,
            bias=bias,
        )
        recording.add(module, call)
    n_head = query.shape[1]
    value = expand_heads(value, n_head)
    is_differentiated = torch.is_grad_enabled() and query.requires_grad
    attend = attention_output if is_differentiated else attention_output_in_blocks
    output = attend(
        query,
        expand_heads(key, n_head),
        value,
        scale,
        softcap=softcap,
        allowed=allowed,
        bias=bias,
    )
    if recording is not None and recording.changes.is_asked and recording.order.last is not None:
        recording.changes.change_outputs(*recording.order.last, output, value)
    output = output.transpose(1, 2).contiguous()
    if recording is not None:
        recording.output = output
    return output, None


def allowed_cells(*sizes: Any, **options: Any) -> Tensor | None:
    """The mask of a pass, [batch, 1, query, key], true where a query may see a key: a quarter of the bytes that eager attention adds.

    None where all may; a causal mask is never left out.
    """
    mask: Tensor | None = sdpa_mask(*sizes, **options | {"allow_is_causal_skip": False})
    return mask


AttentionInterface.register(IMPLEMENTATION, attnviz_attention)
AttentionMaskInterface.register(IMPLEMENTATION, allowed_cells)


def run_on(network: "PreTrainedModel", implementation: str) -> None:
    """Lets a network, and all networks within it, compute with a registered attention.

    Not by ``set_attn_implementation``, which only warns where the class of the network stands in a notebook.
    """
    for module in network.modules():
        if isinstance(config := getattr(module, "config", None), PreTrainedConfig):
            config._attn_implementation = implementation


def share_parameters(network: "PreTrainedModel") -> "PreTrainedModel":
    """A copy of a model that shares the model's parameters and buffers."""
    shared = {id(tensor): tensor for tensor in (*network.parameters(), *network.buffers())}
    return copy.deepcopy(network, shared)


def forward(network: nn.Module, **inputs: Any) -> Any:
    """The output of a network for these arguments of its forward.

    Raises:
        ModelFailedError: the family's code raised an error.
        OutOfMemoryError: the text is too long for the memory that is left.
        AttnvizError: whatever attnviz's attention and hooks raise inside the pass.
    """
    name = type(network).__name__
    with failures_of(f"{name} failed on this text", "Try another text, or select another model."):
        return network(**inputs)


@contextmanager
def recorded(
    network: "PreTrainedModel",
    changes: Changes | None = None,
    *,
    joins: Sequence[int] | None = None,
    keeps: bool = True,
    after_call: Callable[[int], None] | None = None,
) -> Iterator[Recording]:
    """A context whose attention calls are recorded, and changed by the interventions; arguments as for `Recording`."""
    recording = Recording(network, changes or Changes(), joins=joins, keeps=keeps, after_call=after_call)
    with recorded_in(recording):
        yield recording


@contextmanager
def recorded_in(recording: Recording) -> Iterator[Recording]:
    """A context whose attention calls go to a recording."""
    token = current_recording.set(recording)
    try:
        yield recording
    finally:
        current_recording.reset(token)


Recorded = tuple[dict[Kind, tuple[LayerAttention, ...]], Tensor]
"""The attention calls of a text by kind, in the order of the layers, and its last hidden state, [token, d_model]."""


def record_forward(
    network: "PreTrainedModel",
    interventions: Sequence[Intervention] = (),
    *,
    progress: Progress | None = None,
    on_layer: Callable[[LayerAttention], object] | None = None,
    **inputs: Any,
) -> Recorded:
    """Runs a model on one text and returns its attention calls by kind, and its last hidden state.

    Args:
        network: a model loaded with ``attn_implementation="attnviz"``, in evaluation mode.
        interventions: changes made in this pass only.
        progress: called with the share of the attention calls that are done.
        on_layer: called with each layer as soon as its queries, keys and values are recorded.
        inputs: arguments of the network's forward; a batch of one.

    Raises:
        CaptureError: the number of calls is not the number of layers.
        ModelFailedError: the network's own code raised an error, or its numbers are not finite.
        OutOfMemoryError: the text is too long for the memory that is left.
        SelectionError, ShapeError: an intervention that does not fit the model or the text.
        UnsupportedArchitectureError: the family does not call attnviz's attention, or calls it with terms
            that attnviz does not know.
    """
    recording = Recording(network, Changes([interventions]), progress=progress, on_layer=on_layer)
    [recorded] = _record(network, recording, inputs)
    return recorded


def record_batch(network: "PreTrainedModel", lengths: Sequence[Length], **inputs: Any) -> list[Recorded]:
    """As `record_forward`, for a batch of texts with padding after them; each text's result is as if it ran alone.

    Args:
        lengths: tokens of each text.
        inputs: include the masks that hide the padding.
    """
    return _record(network, Recording(network, Changes(), lengths=lengths), inputs)


def _record(network: "PreTrainedModel", recording: Recording, inputs: dict[str, Any]) -> list[Recorded]:
    try:
        return _recorded_texts(network, recording, inputs)
    except BaseException:
        if recording.storage is not None:
            recording.storage.delete()
        raise
    finally:
        if recording.storage is not None:
            recording.storage.end()


def _recorded_texts(
    network: "PreTrainedModel", recording: Recording, inputs: dict[str, Any]
) -> list[Recorded]:
    states = run_recorded(network, recording, **inputs)
    recorded: list[Recorded] = []
    for number, (text, of_text) in enumerate(zip(recording.texts, states, strict=True)):
        if recording.lengths is not None:
            length = recording.lengths[number]
            of_text = of_text[: length.read if length.written is None else length.written]
        if not bool(torch.isfinite(of_text).all()):
            other = "select another model" if network.dtype == torch.float32 else "load the model in float32"
            raise ModelFailedError(
                f"The last hidden states of {type(network).__name__} hold NaN or infinity for this text"
                f"{_first_not_finite(text)}, so there is nothing to show. Try another text, or {other}."
            )
        recorded.append(({kind: tuple(calls) for kind, calls in text.items()}, of_text))
    return recorded


def run_recorded(network: "PreTrainedModel", recording: Recording, **inputs: Any) -> Tensor:
    """The last hidden states of a pass, [text, token, d_model], whose attention calls go to a recording.

    Raises:
        As `record_forward`, except for numbers that are not finite.
    """
    with recorded_in(recording), torch.inference_mode():
        states: Tensor = forward(network, **inputs).last_hidden_state
    n_calls = recording.order.counts
    if not n_calls:
        raise UnsupportedArchitectureError(
            f"{type(network).__name__} does not let its attention be replaced, so attnviz cannot show "
            "or check it. Select a model of another family, such as BERT, RoBERTa or GPT-2."
        )
    for kind, n_call in n_calls.items():
        expected = layer_count(network.config, kind)
        if n_call != expected:
            raise CaptureError(
                f"{type(network).__name__} has {expected} layers with {kind} attention, but {n_call} passed "
                "through attnviz's attention. Report this model; its numbers are not shown."
            )
    check_layers([change for row in recording.changes.rows for change in row], n_calls)
    recording.changes.check_applied()
    return states


def _first_not_finite(text: dict[Kind, list[LayerAttention]]) -> str:
    """The first layer whose attention reads numbers that are not finite, for a sentence; empty where none does."""
    for kind, calls in text.items():
        for call in calls:
            if not all(np.isfinite(array).all() for array in (call.query, call.key, call.value)):
                return f", first in the queries, keys or values of {kind} layer {call.layer}"
    return ""


def split_mask(mask: Tensor) -> tuple[Tensor | None, Tensor | None]:
    """The cells that a mask allows, and the bias it adds to the scores; each None where the mask has no such effect.

    All are [batch, 1 or head, query, key].

    transformers writes "not allowed" as the dtype's lowest number; numbers near it count as not allowed too.
    """
    if mask.dtype == torch.bool:
        allowed, rest = mask, None
    else:
        allowed = mask > torch.finfo(mask.dtype).min / 2
        rest = mask.masked_fill(~allowed, 0.0)
    return (
        None if bool(allowed.all()) else allowed,
        None if rest is None or not bool(rest.any()) else rest,
    )


def _array(tensor: Tensor) -> np.ndarray:
    """A numpy array on the CPU, in float32 unless boolean.

    The array shares the tensor's memory, unless that memory holds more than the tensor: some families compute query,
    key and value in one product, and a view of the value would keep all three.
    """
    array = (tensor if tensor.dtype == torch.bool else tensor.float()).cpu()
    if array.untyped_storage().nbytes() > array.nbytes:
        array = array.clone()
    return array.numpy()
