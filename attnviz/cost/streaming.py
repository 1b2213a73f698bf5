"""Attention tile by tile, without ever holding the matrix: the online softmax of FlashAttention.

Source: Milakov and Gimelshein 2018, "Online normalizer calculation for softmax" (arXiv:1805.02867), algorithm 3,
and Dao et al. 2022, FlashAttention (arXiv:2205.14135), algorithm 1, here with all queries at once and the output
divided by the sum at the end, as in FlashAttention-2 (Dao 2023, arXiv:2307.08691), section 3.1.1.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from attnviz.arguments import typed
from attnviz.maths.attention import attention_scores
from attnviz.model.head_attention import score_inputs, tensor_of
from attnviz.records import Kind

if TYPE_CHECKING:
    from attnviz.model.trace import Trace


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Stream:
    """The state of every row after the keys from 0 up to ``stop``."""

    start: int
    """First key of the tile that was read last."""
    stop: int
    """The key after the last of that tile."""
    scores: Float[Tensor, "*batch query tile"]
    """Scores of that tile; minus infinity where a key is not allowed."""
    maximum: Float[Tensor, "*batch query"]
    """Largest score so far; minus infinity while no key was allowed."""
    total: Float[Tensor, "*batch query"]
    """Sum of exp(score - maximum) so far."""
    output: Float[Tensor, "*batch query d_value"]
    """Weighted mean of the values so far; zeros while no key was allowed."""


def stream_attention(
    query: Float[Tensor, "*batch query d_head"],
    key: Float[Tensor, "*batch key d_head"],
    value: Float[Tensor, "*batch key d_value"],
    scale: float,
    *,
    tile: int,
    softcap: float | None = None,
    allowed: Bool[Tensor, "*#batch #query key"] | None = None,
    bias: Float[Tensor, "*#batch #query key"] | None = None,
) -> Iterator[Stream]:
    """The state of every row after each tile of keys; the last one's output is the attention's.

    Sums so far are relative to the maximum so far; when a tile has a larger maximum, they are multiplied by
    exp(old maximum - new maximum), so that no earlier key has to be read again.

    Args:
        tile: number of keys read at a time, at least 1; the last tile may be smaller.
    """
    *batch, n_query, _ = query.shape
    n_key = key.shape[-2]
    maximum = query.new_full((*batch, n_query), -torch.inf)
    total = query.new_zeros((*batch, n_query))
    summed = value.new_zeros((*batch, n_query, value.shape[-1]))
    for start in range(0, n_key, tile):
        columns = slice(start, start + tile)
        scores = attention_scores(
            query,
            key[..., columns, :],
            scale,
            softcap=softcap,
            allowed=None if allowed is None else allowed[..., columns],
            bias=None if bias is None else bias[..., columns],
        )
        larger = torch.maximum(maximum, scores.amax(dim=-1))
        level = larger.masked_fill(larger == -torch.inf, 0.0)  # minus infinity minus itself would be NaN
        shrink = torch.exp(maximum - level)
        exponentials = torch.exp(scores - level.unsqueeze(-1))
        total = total * shrink + exponentials.sum(dim=-1)
        summed = summed * shrink.unsqueeze(-1) + torch.matmul(exponentials, value[..., columns, :])
        maximum = larger
        yield Stream(
            start=start,
            stop=min(start + tile, n_key),
            scores=scores,
            maximum=maximum,
            total=total,
            output=summed / total.masked_fill(total == 0.0, 1.0).unsqueeze(-1),
        )


def streaming_attention(
    query: Float[Tensor, "*batch query d_head"],
    key: Float[Tensor, "*batch key d_head"],
    value: Float[Tensor, "*batch key d_value"],
    scale: float,
    *,
    tile: int,
    softcap: float | None = None,
    allowed: Bool[Tensor, "*#batch #query key"] | None = None,
    bias: Float[Tensor, "*#batch #query key"] | None = None,
) -> Float[Tensor, "*batch query d_value"]:
    """The same as `attnviz.maths.attention.attention_output`, computed ``tile`` keys at a time."""
    states = stream_attention(
        query, key, value, scale, tile=tile, softcap=softcap, allowed=allowed, bias=bias
    )
    return (
        deque(states, maxlen=1).pop().output
    )  # a list of all would hold every tile's scores: the whole matrix


@typed
def stream_head(
    trace: "Trace",
    layer: int,
    head: int,
    kind: Kind | None = None,
    *,
    tile: int,
    rows: slice = slice(None),
) -> list[Stream]:
    """The states of one head of a trace, tile by tile; float32 on the CPU, as the model ran.

    Args:
        rows: the queries that are asked for; all by default.

    Raises:
        SelectionError: no such layer, head or kind.
    """
    call = trace.head(layer, head, kind)
    return list(stream_attention(**score_inputs(call, rows), value=tensor_of(call.value), tile=tile))
