"""Attention in blocks of queries, so that a whole matrix of weights is never held; models run on this.

The same numbers as `attnviz.maths.attention.attention_output`, row by row. Keys that no query of a block may see, as those
after it under a causal mask and those before a sliding window, take no part in its product and softmax.
"""

import math
from collections.abc import Iterator

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from attnviz.maths.attention import attention_scores, softmax

# 128 rows of 512 keys and 12 heads are 3 MB, which fit into the caches of two cores; a whole matrix does not.
QUERY_BLOCK = 128


def weights_in_blocks(
    query: Float[Tensor, "*batch query d_head"],
    key: Float[Tensor, "*batch key d_head"],
    scale: float,
    *,
    softcap: float | None = None,
    allowed: Bool[Tensor, "*#batch #query #key"] | None = None,
    bias: Float[Tensor, "*#batch #query #key"] | None = None,
) -> Iterator[tuple[slice, Float[Tensor, "*batch row key"]]]:
    """The weights of `attnviz.maths.attention.attention_weights`, some queries at a time, each with its place among all queries."""
    n_query = query.shape[-2]
    for start in range(0, n_query, QUERY_BLOCK):
        block = slice(start, min(n_query, start + QUERY_BLOCK))
        keys, scores = _scores(
            query, key, scale, block, softcap=softcap, allowed=allowed, bias=bias
        )  # [row, seen]
        weights = softmax(scores, out=scores)  # [row, seen]
        if scores.shape[-1] < key.shape[-2]:
            weights = query.new_zeros(*scores.shape[:-1], key.shape[-2])  # [row, key]
            weights[..., keys] = scores
        yield block, weights


def scores_and_weights_of(
    query: Float[Tensor, "*batch query d_head"],
    key: Float[Tensor, "*batch key d_head"],
    scale: float,
    *,
    softcap: float | None = None,
    allowed: Bool[Tensor, "*#batch #query #key"] | None = None,
    bias: Float[Tensor, "*#batch #query #key"] | None = None,
) -> tuple[Float[Tensor, "*batch query key"], Float[Tensor, "*batch query key"]]:
    """The scores and weights of a block of queries on all keys, of which those that no query may see take no time."""
    keys, scores = _scores(query, key, scale, slice(None), softcap=softcap, allowed=allowed, bias=bias)
    weights = softmax(scores)  # [query, seen]
    beside = keys.start, key.shape[-2] - keys.stop
    if not any(beside):
        return scores, weights
    return torch.nn.functional.pad(scores, beside, value=-math.inf), torch.nn.functional.pad(weights, beside)


def attention_output_in_blocks(
    query: Float[Tensor, "*batch query d_head"],
    key: Float[Tensor, "*batch key d_head"],
    value: Float[Tensor, "*batch key d_value"],
    scale: float,
    *,
    softcap: float | None = None,
    allowed: Bool[Tensor, "*#batch #query key"] | None = None,
    bias: Float[Tensor, "*#batch #query key"] | None = None,
) -> Float[Tensor, "*batch query d_value"]:
    """Weighted mean of the values for each query; zeros for a query with no allowed key.

    Not differentiable: all scores and weights are written to the same block of memory.
    """
    *batch, n_query, _ = query.shape
    if batch:  # the heads of a query side by side in memory, as the layer that joins them reads them
        *outer, n_head = batch
        output = value.new_empty(*outer, n_query, n_head, value.shape[-1]).transpose(-3, -2)
    else:
        output = value.new_empty(n_query, value.shape[-1])
    space = query.new_empty(math.prod(batch) * min(n_query, QUERY_BLOCK) * key.shape[-2])
    for start in range(0, n_query, QUERY_BLOCK):
        rows = slice(start, min(n_query, start + QUERY_BLOCK))
        keys, scores = _scores(
            query, key, scale, rows, softcap=softcap, allowed=allowed, bias=bias, space=space
        )  # [rows, seen]
        weights = softmax(scores, out=scores)  # [rows, seen]
        output[..., rows, :] = torch.matmul(weights, value[..., keys, :])  # [rows, d_value]
    return output


def _scores(
    query: Tensor,
    key: Tensor,
    scale: float,
    rows: slice,
    *,
    softcap: float | None,
    allowed: Tensor | None,
    bias: Tensor | None,
    space: Tensor | None = None,
) -> tuple[slice, Tensor]:
    """The keys that some of these queries may see, and their scores.

    Args:
        space: memory that the scores are written to; None for memory of their own.
    """
    keys, mixed = _seen(allowed, rows, key.shape[-2])
    part, seen = query[..., rows, :], key[..., keys, :]
    out = None
    if space is not None:
        shape = (*query.shape[:-2], part.shape[-2], seen.shape[-2])
        out = space[: math.prod(shape)].view(shape)
    scores = attention_scores(
        part, seen, scale, softcap=softcap, bias=None if bias is None else _cells(bias, rows, keys), out=out
    )
    if allowed is not None:
        within = slice(mixed.start - keys.start, mixed.stop - keys.start)
        scores[..., within].masked_fill_(~_cells(allowed, rows, mixed), -torch.inf)
    return keys, scores


def _seen(allowed: Tensor | None, rows: slice, n_key: int) -> tuple[slice, slice]:
    """The keys from the first to the last one that some row of a block may see, and those of them that not every row may see.

    In a text of one block these are all keys, so that it is computed as on the page of `attnviz.maths.attention`.
    """
    every = slice(0, n_key)
    if allowed is None or n_key <= QUERY_BLOCK or allowed.shape[-1] == 1:
        return every, every
    cells = (
        _cells(allowed, rows, every).flatten(0, -2).cpu().numpy()
    )  # [row, key]; numpy is ten times as fast here
    seen = np.flatnonzero(cells.any(axis=0))
    if not len(seen):
        return slice(0, 1), slice(0, 1)
    keys = slice(int(seen[0]), int(seen[-1]) + 1)
    mixed = keys.start + np.flatnonzero(~cells[:, keys].all(axis=0))
    if not len(mixed):
        return keys, slice(keys.start, keys.start)
    return keys, slice(int(mixed[0]), int(mixed[-1]) + 1)


def _cells(matrix: Tensor, rows: slice, keys: slice) -> Tensor:
    """A part of a mask or bias; a single row for all queries, or a single column for all keys, stays."""
    matrix = matrix if matrix.shape[-2] == 1 else matrix[..., rows, :]
    return matrix if matrix.shape[-1] == 1 else matrix[..., keys]
