"""What one layer makes of every token of some texts: its vectors, and what each head attends to there.

The network runs up to the end of the layer; the numbers are those of the text's trace, within rounding.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from attnviz.arguments import typed
from attnviz.corpus.measuring import Read, lengths_of
from attnviz.errors import ModelFailedError, UnsupportedArchitectureError
from attnviz.maths.attention import attention_weights, expand_heads
from attnviz.model.batch import padded
from attnviz.model.capture import AttentionCall, Recording, run_recorded
from attnviz.model.changes import Changes
from attnviz.model.configuration import layer_count
from attnviz.model.interventions import Place
from attnviz.records import Kind, Record, check_index

if TYPE_CHECKING:
    from attnviz.model.model import Model

Vectors = Literal["hidden", "query", "key"]
"""What tokens are compared by: ``hidden``, the residual stream after the layer; ``query`` and ``key``, a head's, as they are
multiplied, that is, after rotary positions."""
VECTORS: tuple[Vectors, ...] = get_args(Vectors)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Contexts(Record):
    """What a layer makes of each token of a text; of an encoder-decoder model, its encoder's."""

    kind: Kind
    """Kind of the layer's attention."""
    hidden: Float[np.ndarray, "token d_model"]
    query: Float[np.ndarray, "head token d_head"]
    key: Float[np.ndarray, "kv_head token d_head"]
    strongest: Int[np.ndarray, "head token"]
    """Position of the key with the largest weight; 0 where the token may see no key."""
    weight: Float[np.ndarray, "head token"]
    """Weight of that key."""

    def vectors(self, kind: Vectors) -> Float[np.ndarray, "group token d_vector"]:
        """The vectors of a kind: hidden states as a single group, queries of each head, keys of each head that has its own."""
        return {"hidden": self.hidden[None], "query": self.query, "key": self.key}[kind]


@typed
def contexts(model: "Model", texts: Sequence[Read], layer: int) -> list[Contexts]:
    """What a layer makes of each token of some texts, which run through the model as one batch.

    Raises:
        SelectionError: the model has no such layer.
        ModelFailedError, CaptureError, OutOfMemoryError: as `attnviz.model.capture.record_forward`; for a batch, without saying
            which text.
        UnsupportedArchitectureError: also where the layer's module is not known.
    """
    check_index("layer", layer, layer_count(model.network.config, "encoder"), model.name)
    states = _States(layer)
    recording = _OfLayer(model, texts, states, layer)
    with suppress(_Reached):
        run_recorded(
            model.network, recording, **padded(model.network, [model.inputs(*read) for read in texts])
        )
    if states.hidden is None or recording.numbers is None:
        raise UnsupportedArchitectureError(
            f"The hidden states of layer {layer} of {model.name} were asked for; attnviz does not know which module the layer is. "
            "Select a model of another family, such as BERT."
        )
    made = []
    for number, (tokens, _) in enumerate(texts):
        hidden = states.hidden[number, : len(tokens)]
        query, key, strongest, weight = (numbers[number, :, : len(tokens)] for numbers in recording.numbers)
        if not all(bool(torch.isfinite(vectors).all()) for vectors in (hidden, query, key)):
            raise ModelFailedError(
                f"Layer {layer} of {model.name} holds NaN or infinity for a text, so its tokens cannot be compared. Leave that text out."
            )
        made.append(
            Contexts(
                kind=recording.kind,
                hidden=hidden.float().cpu().numpy(),
                query=query.cpu().numpy(),
                key=key.cpu().numpy(),
                strongest=strongest.cpu().numpy(),
                weight=weight.cpu().numpy(),
            )
        )
    return made


def group_of(kind: Vectors, head: int, *, n_group: int, n_head: int) -> int:
    """Which group of vectors a head has: hidden states have one, and keys may be shared by several heads.

    Raises:
        SelectionError: there is no such head.
    """
    check_index("head", head, n_head, "the layer")
    return 0 if kind == "hidden" else head // (n_head // n_group)


class _Reached(BaseException):
    """Raised once the layer has run; not an Exception, so that no library catches it."""


class _States(Changes):
    """Changes nothing, and ends the pass with the hidden states after a layer."""

    def __init__(self, layer: int) -> None:
        super().__init__()
        self.is_asked = True
        self._layer = layer
        self.hidden: Tensor | None = None

    def changed_states(self, where: Place, kind: Kind, layer: int, states: Tensor) -> Tensor:
        """The same states, [text, token, d_model]."""
        if (
            where == "layer" and layer == self._layer
        ):  # of an encoder-decoder model the encoder's, which comes first
            self.hidden = states
            raise _Reached
        return states


class _OfLayer(Recording):
    """A recording that keeps the queries and keys of one layer, and the strongest key of each query."""

    kind: Kind

    def __init__(self, model: "Model", texts: Sequence[Read], states: _States, layer: int) -> None:
        super().__init__(model.network, states, lengths=lengths_of(texts))
        self._layer = layer
        self.numbers: tuple[Tensor, Tensor, Tensor, Tensor] | None = None
        """Queries, keys, and of each query the position and weight of its strongest key, [text, head, token, ...]."""

    def keep(self, call: AttentionCall) -> None:
        """Keeps `numbers` of the first call of the layer."""
        if call.layer != self._layer or self.numbers is not None:
            return
        self.kind = call.kind
        query, key = call.query.float(), call.key.float()
        bias = None if call.bias is None else call.bias.float()
        of_heads = expand_heads(key, query.shape[1])
        weights = attention_weights(
            query, of_heads, call.scale, softcap=call.softcap, allowed=call.allowed, bias=bias
        )
        weight, strongest = weights.max(dim=-1)  # [text, head, query]
        self.numbers = query, key, strongest, weight
