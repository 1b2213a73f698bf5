"""The attention of one head, from its input vectors to its scores, weights and output."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Bool, Float

from attnviz.records import LayerAttention, Record

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class HeadAttention(Record):
    """The inputs of the attention of one head, and the results of attnviz's own attention: float32 on the CPU."""

    query: Float[np.ndarray, "query d_head"]
    key: Float[np.ndarray, "key d_head"]
    value: Float[np.ndarray, "key d_value"]
    scale: float
    """Factor on q . k before the softmax, 1 / sqrt(d_head) for most families."""
    softcap: float | None = None
    """c where scaled scores s become c tanh(s / c), as in Gemma 2; None for most families."""
    allowed: Bool[np.ndarray, "query key"] | None
    """True where a query may see a key; None where every query sees every key."""
    bias: Float[np.ndarray, "query key"] | None
    """Added to the scaled scores, such as T5's relative positions; None for most families."""
    replaced: Float[np.ndarray, "query key"] | None = None
    """Weights that an intervention put in place of the softmax of the scores; None for the model's own."""

    @classmethod
    def of(
        cls, call: LayerAttention, head: int, *, replaced: Float[np.ndarray, "query key"] | None = None
    ) -> "HeadAttention":
        """One head of a layer; heads of one group share their keys and values."""
        shared = head // (len(call.query) // len(call.key))
        shape = call.query.shape[1], call.key.shape[1]

        def part(matrix: np.ndarray | None) -> np.ndarray | None:
            return None if matrix is None else np.broadcast_to(matrix[head if len(matrix) > 1 else 0], shape)

        return cls(
            query=call.query[head],
            key=call.key[shared],
            value=call.value[shared],
            scale=call.scale,
            softcap=call.softcap,
            allowed=part(call.allowed),
            bias=part(call.bias),
            replaced=None if replaced is None else np.broadcast_to(replaced, shape),
        )

    def some(self, rows: slice) -> "HeadAttention":
        """The same head with some of its queries."""
        parts = {name: getattr(self, name) for name in ("query", "allowed", "bias", "replaced")}
        return replace(self, **{name: part[rows] for name, part in parts.items() if part is not None})

    @property
    def bias_is_of_distance(self) -> bool:
        """Whether the bias is the same for all pairs of tokens that are equally far apart, as T5's; true without a bias."""
        if self.bias is None:
            return True
        first = 1 - len(self.bias)
        return all(bool(np.ptp(self.bias.diagonal(apart)) == 0) for apart in range(first, self.bias.shape[1]))

    def scores(self, rows: slice = slice(None)) -> Float[np.ndarray, "row key"]:
        """What the softmax gets: scaled, softcapped and biased scores, minus infinity where masked; of all queries, or some."""
        return read_only(self._scores(rows))

    def weights(self, rows: slice = slice(None)) -> Float[np.ndarray, "row key"]:
        """Attention weights: rows sum to 1, or to 0 where the query may see no key; of all queries, or some."""
        return self.scores_and_weights(rows)[1]

    def scores_and_weights(
        self, rows: slice = slice(None)
    ) -> tuple[Float[np.ndarray, "row key"], Float[np.ndarray, "row key"]]:
        """Scores and weights of all queries, or of some, from one product of queries and keys."""
        from attnviz.maths.attention import softmax  # torch is slow to import
        from attnviz.maths.blocks import scores_and_weights_of

        if rows != slice(None):
            scores, weights = scores_and_weights_of(**score_inputs(self, rows))
        else:
            scores = self._scores(rows)
            weights = softmax(scores)
        return read_only(scores), read_only(weights) if self.replaced is None else self.replaced[rows]

    def _scores(self, rows: slice) -> "Tensor":
        from attnviz.maths.attention import attention_scores

        return attention_scores(**score_inputs(self, rows))


def score_inputs(call: LayerAttention | HeadAttention, rows: slice = slice(None)) -> dict[str, Any]:
    """Everything that the scores of a layer or a head are made of, as tensors by their parameter names in `attnviz.maths`.

    The tensors share the memory of the records: nothing may be written into them. Heads of a layer that share keys get a copy each.

    Args:
        rows: the queries whose scores are asked for; all by default.
    """
    from attnviz.maths.attention import expand_heads

    def part(matrix: np.ndarray | None) -> "Tensor | None":
        if matrix is None:
            return None
        return _shared(matrix if matrix.shape[-2] == 1 else matrix[..., rows, :])

    key = _shared(call.key)
    return {
        "query": _shared(call.query[..., rows, :]),
        "key": expand_heads(key, len(call.query)) if isinstance(call, LayerAttention) else key,
        "scale": call.scale,
        "softcap": call.softcap,
        "allowed": part(call.allowed),
        "bias": part(call.bias),
    }


def read_only(tensor: "Tensor") -> np.ndarray:
    """A CPU tensor as a read-only array that shares its memory."""
    array = tensor.numpy()
    array.flags.writeable = False
    return array


def tensor_of(array: np.ndarray) -> "Tensor":
    """A copy of an array as a tensor, since torch has no read-only tensors."""
    import torch

    return torch.tensor(array)


class _Memory:
    """An array's memory, as numpy takes it from another library, and said to be writable: torch has no read-only tensors."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array
        self.__array_interface__ = array.__array_interface__ | {"data": (array.ctypes.data, False)}


def _shared(array: np.ndarray) -> "Tensor":
    """A tensor of the same memory, which nothing may be written into."""
    import torch

    if array.size and all(stride > 0 for stride in array.strides):
        return torch.from_numpy(np.asarray(_Memory(array)))
    return tensor_of(array)
