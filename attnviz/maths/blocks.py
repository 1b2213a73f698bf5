"""Attention in blocks of queries, so that a whole matrix of weights is never held; models run on this.

The same numbers as `attnviz.maths.attention.attention_output`, row by row.
"""

from collections.abc import Iterator

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from attnviz.maths.attention import attention_scores, attention_weights, softmax

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
    rows: slice = slice(None),
) -> Iterator[tuple[slice, Float[Tensor, "*batch row key"]]]:
    """The weights of `attnviz.maths.attention.attention_weights`, some queries at a time, each with its place among all queries.

    Args:
        rows: the queries that are asked for; all by default.
    """
    first, stop, _ = rows.indices(query.shape[-2])
    for start in range(first, stop, QUERY_BLOCK):
        block = slice(start, min(stop, start + QUERY_BLOCK))
        weights = attention_weights(
            query[..., block, :],
            key,
            scale,
            softcap=softcap,
            allowed=_rows(allowed, block),
            bias=_rows(bias, block),
        )
        yield block, weights


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
    block = query.new_empty(*batch, min(n_query, QUERY_BLOCK), key.shape[-2])
    for start in range(0, n_query, QUERY_BLOCK):
        rows = slice(start, start + QUERY_BLOCK)
        scores = attention_scores(
            query[..., rows, :],
            key,
            scale,
            softcap=softcap,
            allowed=_rows(allowed, rows),
            bias=_rows(bias, rows),
            out=block[..., : n_query - start, :],
        )  # [rows, key]
        output[..., rows, :] = torch.matmul(softmax(scores, out=scores), value)  # [rows, d_value]
    return output


def _rows(matrix: Tensor | None, rows: slice) -> Tensor | None:
    """The rows of a mask or bias; a single row for all queries is returned as it is."""
    if matrix is None or matrix.shape[-2] == 1:
        return matrix
    return matrix[..., rows, :]
