"""A Trace: what passed through every attention of a model while it read one text.

One concept: the queries, keys, values and masks of all layers, and the scores, weights and outputs
computed from them for the head that is asked for. torch is imported only when they are.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from attnviz.errors import SelectionError
from attnviz.records import (
    KINDS,
    AttentionPattern,
    Kind,
    LayerAttention,
    Provenance,
    Record,
    Tokens,
    check_index,
)

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Trace(Record):
    """Queries, keys, values, masks and scales of every layer for one text; not the weights.

    Weights would be layers x heads x query x key numbers. They are computed for one head at a time,
    by the functions that the model itself ran on. Layers and heads count from 0. Where a model has
    attention of several kinds, ``kind`` picks one; the default is its first, "encoder" for BERT.

    Every method that takes layer, head or kind raises SelectionError for one that is not there.
    """

    tokens: Tokens
    """The text that was read. For an encoder-decoder model, the text that the encoder read."""
    target_tokens: Tokens | None = None
    """The text that the decoder of an encoder-decoder model read; None for all other models."""
    layers: Mapping[Kind, tuple[LayerAttention, ...]]
    last_hidden_state: Float[np.ndarray, "token d_model"]
    provenance: Provenance

    def __post_init__(self) -> None:
        Record.__post_init__(self)
        ordered = {kind: self.layers[kind] for kind in KINDS if kind in self.layers}
        object.__setattr__(self, "layers", MappingProxyType(ordered))
        for kind, calls in ordered.items():
            n_query, n_key = len(self.query_tokens(kind)), len(self.key_tokens(kind))
            for call in calls:
                found = (call.query.shape[1], call.key.shape[1])
                self._require(
                    found == (n_query, n_key),
                    f"{kind} layer {call.layer} has {found[0]} queries and {found[1]} keys "
                    f"for {n_query} and {n_key} tokens",
                )

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """The kinds of attention that this model has."""
        return tuple(self.layers)

    def n_layers(self, kind: Kind | None = None) -> int:
        """Number of layers with this kind of attention."""
        return len(self._calls(kind))

    def n_heads(self, kind: Kind | None = None) -> int:
        """Number of query heads in a layer."""
        return int(self._calls(kind)[0].query.shape[0])

    def query_tokens(self, kind: Kind | None = None) -> Tokens:
        """The tokens that the queries of this kind belong to."""
        if self._kind(kind) == "encoder" or self.target_tokens is None:
            return self.tokens
        return self.target_tokens

    def key_tokens(self, kind: Kind | None = None) -> Tokens:
        """The tokens that the keys of this kind belong to."""
        return self.query_tokens(kind) if self._kind(kind) == "decoder" else self.tokens

    def attention(self, layer: int, kind: Kind | None = None) -> LayerAttention:
        """What went into the attention of one layer, all heads."""
        calls = self._calls(kind)
        return calls[check_index("layer", layer, len(calls), f"{self.provenance.model}")]

    def query(self, layer: int, head: int, kind: Kind | None = None) -> Float[np.ndarray, "query d_head"]:
        """Query vectors of one head."""
        call, head, _ = self._head(layer, head, kind)
        query: np.ndarray = call.query[head]
        return query

    def key(self, layer: int, head: int, kind: Kind | None = None) -> Float[np.ndarray, "key d_head"]:
        """Key vectors of one head; heads of one group share theirs."""
        call, _, kv_head = self._head(layer, head, kind)
        key: np.ndarray = call.key[kv_head]
        return key

    def value(self, layer: int, head: int, kind: Kind | None = None) -> Float[np.ndarray, "key d_value"]:
        """Value vectors of one head; heads of one group share theirs."""
        call, _, kv_head = self._head(layer, head, kind)
        value: np.ndarray = call.value[kv_head]
        return value

    def scores(self, layer: int, head: int, kind: Kind | None = None) -> Float[np.ndarray, "query key"]:
        """Scores before the softmax: scaled, with the family's bias, minus infinity where masked."""
        from attnviz.attention import attention_scores  # torch is slow to import

        call, head, kv_head = self._head(layer, head, kind)
        query, key = _tensor(call.query[head]), _tensor(call.key[kv_head])
        return _read_only(attention_scores(query, key, call.scale, **_mask(call, head)))

    def weights(self, layer: int, head: int, kind: Kind | None = None) -> Float[np.ndarray, "query key"]:
        """Attention weights: rows sum to 1, or to 0 where a query may see no key."""
        from attnviz.attention import attention_weights

        call, head, kv_head = self._head(layer, head, kind)
        query, key = _tensor(call.query[head]), _tensor(call.key[kv_head])
        return _read_only(attention_weights(query, key, call.scale, **_mask(call, head)))

    def output(self, layer: int, head: int, kind: Kind | None = None) -> Float[np.ndarray, "query d_value"]:
        """Output of one head: for each query the mean of the values, weighted by its attention."""
        _, head, _ = self._head(layer, head, kind)
        output: np.ndarray = self.outputs(layer, kind)[head]
        return output

    def outputs(self, layer: int, kind: Kind | None = None) -> Float[np.ndarray, "head query d_value"]:
        """Outputs of all heads of one layer, computed as they were in the model's own run."""
        from attnviz.attention import attention_output, expand_heads

        call = self.attention(layer, kind)
        n_head = len(call.query)
        output = attention_output(
            _tensor(call.query),
            expand_heads(_tensor(call.key), n_head),
            expand_heads(_tensor(call.value), n_head),
            call.scale,
            allowed=None if call.allowed is None else _tensor(call.allowed),
            bias=None if call.bias is None else _tensor(call.bias),
        )
        return _read_only(output)

    def pattern(self, layer: int, head: int, kind: Kind | None = None) -> AttentionPattern:
        """Scores and weights of one head with the tokens of their rows and columns."""
        from attnviz.attention import softmax

        scores = self.scores(layer, head, kind)
        n_query, n_key = scores.shape
        return AttentionPattern(
            kind=self._kind(kind),
            layer=layer,
            head=head,
            scores=scores,
            weights=_read_only(softmax(_tensor(scores))),
            query_tokens=self.query_tokens(kind),
            key_tokens=self.key_tokens(kind),
            query_position=np.arange(n_query),
            key_position=np.arange(n_key),
            hidden_weight=np.zeros(n_query, dtype=np.float32),
            provenance=self.provenance,
        )

    def _kind(self, kind: Kind | None) -> Kind:
        if kind is None:
            return self.kinds[0]
        if kind not in self.layers:
            raise SelectionError(
                f"Attention of kind {kind!r} was asked for; {self.provenance.model} has "
                f"{' and '.join(self.kinds)}. Pick one of those."
            )
        return kind

    def _calls(self, kind: Kind | None) -> tuple[LayerAttention, ...]:
        return self.layers[self._kind(kind)]

    def _head(self, layer: int, head: int, kind: Kind | None) -> tuple[LayerAttention, int, int]:
        call = self.attention(layer, kind)
        n_head, n_kv_head = call.query.shape[0], call.key.shape[0]
        head = check_index("head", head, n_head, f"layer {layer} of {self.provenance.model}")
        return call, head, head // (n_head // n_kv_head)


def _tensor(array: np.ndarray) -> "torch.Tensor":
    import torch

    return torch.tensor(array)  # a copy: torch has no read-only tensors


def _read_only(tensor: "torch.Tensor") -> np.ndarray:
    array = tensor.numpy()
    array.flags.writeable = False
    return array


def _mask(call: LayerAttention, head: int) -> dict[str, Any]:
    """Mask and bias of one head as tensors; a mask shared by all heads has one entry."""

    def of_head(matrix: np.ndarray | None) -> "torch.Tensor | None":
        return None if matrix is None else _tensor(matrix[head if len(matrix) > 1 else 0])

    return {"allowed": of_head(call.allowed), "bias": of_head(call.bias)}
