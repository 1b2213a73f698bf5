"""A decoder's forward pass in parts: each token is read once, with the keys and values of the earlier ones in a cache.

The inputs of attention are recorded as the tokens are read, and together make the trace of the whole text, since in a
causal model a token's row of attention does not depend on what follows.

Source: ``DynamicCache`` of transformers 5.23.0, with which its ``generate`` reads too.
"""

import inspect
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor
from transformers import DynamicCache, PreTrainedConfig, PreTrainedModel

from attnviz.model.capture import forward, record_forward
from attnviz.model.model import Model
from attnviz.model.trace import Trace
from attnviz.records import Kind, LayerAttention, Tokens

_OF_LENGTH = "longrope"
"""Rotary positions whose frequencies change in texts beyond a length, so that earlier keys are rotated anew (Ding et al. 2024,
arXiv:2402.13753). Dynamic NTK scaling begins only beyond the positions that attnviz lets a model read.

Source: ``dynamic_rope_update`` of transformers 5.23.0."""


@dataclass(frozen=True, slots=True)
class _Part:
    """A layer's attention in one pass: queries, keys and values of the tokens of this pass alone."""

    call: LayerAttention
    allowed: np.ndarray | None
    bias: np.ndarray | None
    n_seen: int
    """Number of keys in the masks: the last ones up to this pass, all of them unless attention has a window."""

    @classmethod
    def of(cls, call: LayerAttention) -> "_Part":
        new = slice(call.key.shape[1] - call.query.shape[1], None)
        alone = replace(
            call,
            key=call.key[:, new].copy(),  # a view would keep the keys of the whole cache
            value=call.value[:, new].copy(),
            allowed=None,
            bias=None,
        )
        return cls(alone, call.allowed, call.bias, call.key.shape[1])


class IncrementalPass:
    """Reads a text, then further tokens after it, and records the attention of all.

    Where a family keeps no `DynamicCache`, or rotates earlier keys anew as a text grows, the whole text is read each time.

    Args:
        tokens: read at once.

    Raises:
        As `Model.trace_tokens`.
    """

    def __init__(self, model: Model, tokens: Tokens) -> None:
        self._model, self._tokens = model, tokens
        self._ids: list[int] = []
        self._parts: list[list[_Part]] = []
        self._states: list[np.ndarray] = []
        self.kinds: tuple[Kind, ...] = ()
        """The kinds of attention that the model has; further tokens can be read where a decoder's is the only one."""
        self._given = model.inputs(tokens)
        self._cache = _cache_for(model.network)
        self._pass(tokens.ids.tolist())
        if self._cache is not None and self._cache.get_seq_length() != len(tokens):
            self._cache = None  # the family keeps no cache, or one of its own

    @property
    def last_state(self) -> Float[Tensor, "1 1 d_model"]:
        """The last hidden state of the last token, in the form that the model's head takes."""
        network = self._model.network
        return torch.tensor(self._states[-1][None, -1:], device=network.device, dtype=network.dtype)

    def read(self, token_id: int) -> None:
        """Reads one more token.

        Raises:
            CaptureError, ModelFailedError, OutOfMemoryError: as `attnviz.model.capture.record_forward`.
        """
        if self._cache is not None:
            self._pass([token_id])
        else:
            ids, self._ids = [*self._ids, token_id], []
            self._parts, self._states = [], []
            self._pass(ids)

    @property
    def cache_bytes(self) -> int:
        """Bytes of the keys and values of the text so far; 0 where the whole text is read each time."""
        layers: Any = () if self._cache is None else self._cache.layers
        return sum(int(layer.keys.nbytes + layer.values.nbytes) for layer in layers)

    def states_after(
        self, continuations: Int[Tensor, "continuation token"]
    ) -> Float[Tensor, "continuation token d_model"]:
        """Last hidden states of several continuations of the text so far, read at once; nothing of them is recorded.

        Raises:
            ModelFailedError, OutOfMemoryError: as `attnviz.model.capture.forward`.
        """
        n_row, device = len(continuations), self._model.network.device
        ids, n_read, cached = continuations.to(device), 0, dict[str, Any]()
        if self._cache is None:
            ids, n_read = (
                torch.cat([torch.tensor(self._ids, device=device).expand(n_row, -1), ids], dim=1),
                len(self._ids),
            )
        else:
            cache = deepcopy(self._cache)  # reading further tokens changes it
            cache.batch_repeat_interleave(n_row)
            cached = {"past_key_values": cache, "use_cache": True}
        inputs = self._given | {"input_ids": ids} | cached
        if "token_type_ids" in inputs:
            inputs["token_type_ids"] = torch.zeros_like(ids)
        states: Tensor = forward(self._model.network, **inputs).last_hidden_state
        return states[:, n_read:]

    def _pass(self, ids: list[int]) -> None:
        """Reads further tokens."""
        self._ids += ids
        device = self._model.network.device
        inputs: dict[str, Any] = self._given | {"input_ids": torch.tensor([ids], device=device)}
        if "token_type_ids" in inputs:
            segments = np.zeros(len(self._ids), dtype=np.int64)
            segments[: len(self._tokens)] = self._tokens.segment
            inputs["token_type_ids"] = torch.tensor(segments[None, -len(ids) :], device=device)
        if self._cache is not None:
            inputs |= {"past_key_values": self._cache, "use_cache": True}
        layers, states = record_forward(self._model.network, **inputs)
        self.kinds = tuple(layers)
        self._parts.append([_Part.of(call) for call in layers.get("decoder", ())])
        self._states.append(states.float().cpu().numpy())

    def trace(self, tokens: Tokens) -> Trace:
        """The trace of all tokens that were read.

        Args:
            tokens: those tokens, with their labels.
        """
        masks: dict[tuple[object, ...], tuple[np.ndarray | None, np.ndarray | None]] = {}
        calls = []
        for parts in zip(*self._parts, strict=True):
            shared = tuple((_address(part.allowed), _address(part.bias), part.n_seen) for part in parts)
            if shared not in masks:  # layers that share their masks share them in the trace too
                masks[shared] = _whole(parts, "allowed", bool), _whole(parts, "bias", np.float32)
            allowed, bias = masks[shared]
            query, key, value = (
                np.concatenate([getattr(part.call, name) for part in parts], axis=1)
                for name in ("query", "key", "value")
            )
            calls.append(
                replace(parts[0].call, query=query, key=key, value=value, allowed=allowed, bias=bias)
            )
        return Trace(
            tokens=tokens,
            layers={"decoder": self._model.structure.with_output_maps(calls)},
            last_hidden_state=np.concatenate(self._states),
            provenance=self._model.provenance,
        )


def _cache_for(network: PreTrainedModel) -> DynamicCache | None:
    """An empty cache; None where the network takes none, or rotates earlier keys anew."""
    config = network.config
    if "past_key_values" not in inspect.signature(network.forward).parameters or _is_of_length(config):
        return None
    return DynamicCache(config=config)


def _is_of_length(config: PreTrainedConfig) -> bool:
    """Whether the rotary positions of any layer are `_OF_LENGTH`."""
    given = getattr(config, "rope_parameters", None) or {}
    by_kind_of_layer = [value for value in given.values() if isinstance(value, dict)]
    return any(parameters.get("rope_type") == _OF_LENGTH for parameters in (given, *by_kind_of_layer))


def _whole(parts: Sequence[_Part], name: str, dtype: type) -> np.ndarray | None:
    """The masks or biases of the parts joined, [1 or head, query, key]; None where that would have no effect."""
    given = [getattr(part, name) for part in parts]
    n_token = sum(part.call.query.shape[1] for part in parts)
    if n_token == 1 or (dtype is not bool and all(array is None for array in given)):
        return None
    n_head = max((len(array) for array in given if array is not None), default=1)
    whole = np.zeros((n_head, n_token, n_token), dtype=dtype)
    stop = 0
    for part, matrix in zip(parts, given, strict=True):
        start, stop = stop, stop + part.call.query.shape[1]
        if matrix is not None:
            whole[:, start:stop, stop - part.n_seen : stop] = matrix
        elif dtype is bool:
            whole[:, start:stop, stop - part.n_seen : stop] = True
    return whole


def _address(matrix: np.ndarray | None) -> int | None:
    """Address of a matrix in memory; layers that share a mask share its address."""
    return None if matrix is None else int(matrix.__array_interface__["data"][0])
