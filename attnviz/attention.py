"""Scaled dot-product attention, written out: scores, softmax, weights, output, heads, masks.

The mathematics alone: torch, and nothing of transformers. Every function works on the last axes
and takes any leading ones; axes are named ``head query key d_head``.

Source: Vaswani et al. 2017, "Attention Is All You Need" (arXiv:1706.03762), section 3.2.1,
equation 1: ``Attention(Q, K, V) = softmax(Q K^T / sqrt(d_k)) V``.
"""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

# Rows of the matrix that are computed at a time. 128 rows of 512 keys and 12 heads are 3 MB, which two cores
# keep in their caches; a whole matrix they do not.
QUERY_BLOCK = 128


def attention_scores(
    query: Float[Tensor, "*batch query d_head"],
    key: Float[Tensor, "*batch key d_head"],
    scale: float,
    *,
    allowed: Bool[Tensor, "*#batch #query key"] | None = None,
    bias: Float[Tensor, "*#batch #query key"] | None = None,
    out: Float[Tensor, "*batch query key"] | None = None,
) -> Float[Tensor, "*batch query key"]:
    """Scores ``scale * q_i . k_j + bias_ij``, with minus infinity where a key is not allowed.

    ``allowed`` is true where the query may see the key. ``bias`` is what some families add to the
    scaled score, such as T5's relative positions (Raffel et al. 2020, arXiv:1910.10683, section 2.1).
    The scores are written into ``out`` where it is given.

    >>> attention_scores(torch.tensor([[2.0, 0.0]]), torch.tensor([[3.0, 1.0], [0.0, 1.0]]), 0.5)
    tensor([[3., 0.]])
    """
    # There are fewer queries to scale than scores.
    scores = torch.matmul(query * scale, key.mT, out=out)  # [query, key]
    if bias is not None:
        scores.add_(bias)
    if allowed is not None:
        scores.masked_fill_(~allowed, -torch.inf)
    return scores


def softmax(scores: Float[Tensor, "*batch query key"]) -> Float[Tensor, "*batch query key"]:
    """Weights of each row: exponentials divided by their sum, so that a row sums to 1.

    The row's maximum is subtracted first, which changes nothing but the range of the exponentials.
    A row whose every score is minus infinity (no key allowed) yields zeros, not NaN.

    >>> softmax(torch.tensor([[0.0, 0.0, -torch.inf]]))
    tensor([[0.5000, 0.5000, 0.0000]])
    """
    exponentials, total = _exponentials_(scores.clone())
    return exponentials.div_(total)


def attention_weights(
    query: Float[Tensor, "*batch query d_head"],
    key: Float[Tensor, "*batch key d_head"],
    scale: float,
    *,
    allowed: Bool[Tensor, "*#batch #query key"] | None = None,
    bias: Float[Tensor, "*#batch #query key"] | None = None,
) -> Float[Tensor, "*batch query key"]:
    """Softmax of the scores: how each query spreads its attention over the keys."""
    exponentials, total = _exponentials_(attention_scores(query, key, scale, allowed=allowed, bias=bias))
    return exponentials.div_(total)


def attention_output(
    query: Float[Tensor, "*batch query d_head"],
    key: Float[Tensor, "*batch key d_head"],
    value: Float[Tensor, "*batch key d_value"],
    scale: float,
    *,
    allowed: Bool[Tensor, "*#batch #query key"] | None = None,
    bias: Float[Tensor, "*#batch #query key"] | None = None,
) -> Float[Tensor, "*batch query d_value"]:
    """Weighted mean of the values for each query; zeros for a query with no allowed key.

    Computed for `QUERY_BLOCK` queries at a time, and divided by the sum of exponentials after the
    product with the values instead of before: the same numbers but for rounding, with a whole
    matrix never held. It cannot be differentiated.

    >>> attention_output(torch.zeros(1, 2), torch.zeros(2, 2), torch.tensor([[1.0], [3.0]]), 1.0)
    tensor([[2.]])
    """
    *batch, n_query, _ = query.shape
    if batch:  # the heads of a query side by side in memory, as the layer that joins them reads them
        *outer, n_head = batch
        output = value.new_empty(*outer, n_query, n_head, value.shape[-1]).transpose(-3, -2)
    else:
        output = value.new_empty(n_query, value.shape[-1])
    block = query.new_empty(*batch, min(n_query, QUERY_BLOCK), key.shape[-2])  # one memory for all of them
    for start in range(0, n_query, QUERY_BLOCK):
        rows = slice(start, start + QUERY_BLOCK)
        scores = attention_scores(
            query[..., rows, :],
            key,
            scale,
            allowed=_rows(allowed, rows),
            bias=_rows(bias, rows),
            out=block[..., : n_query - start, :],
        )
        exponentials, total = _exponentials_(scores)
        output[..., rows, :] = torch.matmul(exponentials, value).div_(total)
    return output


def expand_heads(
    grouped: Float[Tensor, "*batch kv_head key d_head"], n_head: int
) -> Float[Tensor, "*batch head key d_head"]:
    """Keys or values with one entry a query head, from keys or values that several heads share.

    Head h reads key-value head ``h // (n_head / n_kv_head)``.

    Source: grouped-query attention, Ainslie et al. 2023 (arXiv:2305.13245), section 2.2; the order
    is that of ``repeat_kv`` in transformers 5.23.0.
    """
    n_kv_head = grouped.shape[-3]
    if n_kv_head == n_head:
        return grouped
    return grouped.repeat_interleave(n_head // n_kv_head, dim=-3)


def multi_head_attention(
    hidden: Float[Tensor, "*batch query d_model"],
    sources: Float[Tensor, "*batch key d_source"],
    query_weight: Float[Tensor, "head d_model d_head"],
    key_weight: Float[Tensor, "head d_source d_head"],
    value_weight: Float[Tensor, "head d_source d_value"],
    output_weight: Float[Tensor, "head d_value d_out"],
    *,
    query_bias: Float[Tensor, "head d_head"] | None = None,
    key_bias: Float[Tensor, "head d_head"] | None = None,
    value_bias: Float[Tensor, "head d_value"] | None = None,
    output_bias: Float[Tensor, " d_out"] | None = None,
    allowed: Bool[Tensor, "*#batch #query key"] | None = None,
) -> Float[Tensor, "*batch query d_out"]:
    """The output of a whole layer: every head's weighted mean of values, through W_O, summed over the heads.

    That sum is the same as laying the heads' outputs side by side and multiplying by one tall W_O.

    Args:
        hidden: what the queries are made from.
        sources: what the keys and values are made from: the same as ``hidden`` in self-attention, the encoder's
            output in cross-attention.

    Source: Vaswani et al. 2017 (arXiv:1706.03762), section 3.2.2, with the biases of BERT.
    """

    def projected(of: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        vectors = torch.matmul(of.unsqueeze(-3), weight)  # [head, token, d]
        return vectors if bias is None else vectors + bias.unsqueeze(-2)

    query = projected(hidden, query_weight, query_bias)
    key, value = projected(sources, key_weight, key_bias), projected(sources, value_weight, value_bias)
    heads = attention_output(
        query,
        key,
        value,
        query.shape[-1] ** -0.5,
        allowed=None if allowed is None else allowed.unsqueeze(-3),
    )
    output = torch.matmul(heads, output_weight).sum(dim=-3)
    return output if output_bias is None else output + output_bias


def additive_scores(
    query: Float[Tensor, "*batch query d_query"],
    key: Float[Tensor, "*batch key d_key"],
    query_weight: Float[Tensor, "d_query d_hidden"],
    key_weight: Float[Tensor, "d_key d_hidden"],
    combined: Float[Tensor, " d_hidden"],
) -> Float[Tensor, "*batch query key"]:
    """Scores of a small network: ``v . tanh(W q_i + U k_j)``; a softmax of them gives the weights.

    Source: Bahdanau et al. 2015 (arXiv:1409.0473), section 3.1 and appendix A.1.2.

    >>> one = torch.ones(1, 1)
    >>> additive_scores(one, 2 * one, one, -one, torch.tensor([3.0])).item()  # 3 tanh(1 - 2)
    -2.2847...
    """
    hidden = torch.matmul(query, query_weight).unsqueeze(-2) + torch.matmul(key, key_weight).unsqueeze(-3)
    return torch.matmul(torch.tanh(hidden), combined)


def multiplicative_scores(
    query: Float[Tensor, "*batch query d_query"],
    key: Float[Tensor, "*batch key d_key"],
    weight: Float[Tensor, "d_query d_key"] | None = None,
) -> Float[Tensor, "*batch query key"]:
    """Scores ``q_i W k_j`` ("general"), or ``q_i . k_j`` without a weight ("dot"); not scaled.

    Source: Luong et al. 2015 (arXiv:1508.04025), section 3.1, equation 8.

    >>> multiplicative_scores(torch.tensor([[1.0, 2.0]]), torch.tensor([[3.0, 4.0]])).item()
    11.0
    """
    return torch.matmul(query if weight is None else torch.matmul(query, weight), key.mT)


def causal_mask(n_query: int, n_key: int) -> Bool[Tensor, "query key"]:
    """True where a token may look when it sees itself and earlier ones only.

    With fewer queries than keys the queries are the last tokens, as when a text is continued.

    >>> causal_mask(2, 3)
    tensor([[ True,  True, False],
            [ True,  True,  True]])
    """
    return torch.ones(n_query, n_key, dtype=torch.bool).tril(diagonal=n_key - n_query)


def window_mask(n_query: int, n_key: int, reach: int, *, causal: bool = False) -> Bool[Tensor, "query key"]:
    """True where a key is at most ``reach`` positions away; of earlier ones and itself only where ``causal``.

    With fewer queries than keys the queries are the last tokens. A row has at most ``2 reach + 1`` keys, or
    ``reach + 1`` causal ones.

    Source: Beltagy et al. 2020, Longformer (arXiv:2004.05150), section 3.1, whose window w is 2 reach; causal:
    Jiang et al. 2023, Mistral 7B (arXiv:2310.06825), section 2, whose window W is reach + 1.

    >>> window_mask(3, 3, 1)
    tensor([[ True,  True, False],
            [ True,  True,  True],
            [False,  True,  True]])
    """
    apart = torch.arange(n_key) - (torch.arange(n_query) + n_key - n_query)[:, None]
    near = apart.abs() <= reach
    return near & (apart <= 0) if causal else near


def segment_mask(
    query_segment: Int[Tensor, " query"], key_segment: Int[Tensor, " key"]
) -> Bool[Tensor, "query key"]:
    """True where query and key are of the same segment, such as one sentence of a pair.

    >>> segment_mask(torch.tensor([0, 1]), torch.tensor([0, 0, 1]))
    tensor([[ True,  True, False],
            [False, False,  True]])
    """
    return query_segment[:, None] == key_segment


def _exponentials_(
    scores: Float[Tensor, "*batch query key"],
) -> tuple[Float[Tensor, "*batch query key"], Float[Tensor, "*batch query 1"]]:
    """exp(score - row maximum), written over the scores, and each row's sum (1 where nothing is allowed)."""
    row_maximum = scores.amax(dim=-1, keepdim=True)
    row_maximum.masked_fill_(row_maximum == -torch.inf, 0.0)  # -inf minus -inf would be NaN
    exponentials = scores.sub_(row_maximum).exp_()
    total = exponentials.sum(dim=-1, keepdim=True)
    return exponentials, total.masked_fill_(total == 0.0, 1.0)


def _rows(matrix: Tensor | None, rows: slice) -> Tensor | None:
    """The rows of a mask or bias; one that has a single row for all queries is left as it is."""
    if matrix is None or matrix.shape[-2] == 1:
        return matrix
    return matrix[..., rows, :]
