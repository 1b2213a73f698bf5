"""Scaled dot-product attention on one page: from Q, K and V to the output of a layer.

The comment after each line names the last axes; any axes may come before them. `attnviz.maths.blocks`, which models
run on, computes the same in blocks of queries.

Source: Vaswani et al. 2017, "Attention Is All You Need" (arXiv:1706.03762), section 3.2.1, equation 1:
``Attention(Q, K, V) = softmax(Q K^T / sqrt(d_k)) V``, and section 3.2.2 for several heads.
"""

import torch
from jaxtyping import Bool, Float
from torch import Tensor


def attention_scores(
    query: Float[Tensor, "*batch query d_head"],
    key: Float[Tensor, "*batch key d_head"],
    scale: float,
    *,
    softcap: float | None = None,
    allowed: Bool[Tensor, "*#batch #query key"] | None = None,
    bias: Float[Tensor, "*#batch #query key"] | None = None,
    out: Float[Tensor, "*batch query key"] | None = None,
) -> Float[Tensor, "*batch query key"]:
    """Scores ``scale * q_i . k_j + bias_ij``, and minus infinity where ``allowed`` is false.

    ``bias`` is what some families add to the scaled score, such as T5's relative positions (Raffel et al. 2020,
    arXiv:1910.10683, section 2.1) and DeBERTa's terms of a content and a position (He et al. 2021, arXiv:2006.03654,
    equation 4). With a ``softcap`` c the scaled score s is first replaced by ``c tanh(s / c)``, which lies between -c and
    c (Gemma Team 2024, arXiv:2408.00118, section 2). The scores are written into ``out`` where it is given.

    >>> attention_scores(torch.tensor([[2.0, 0.0]]), torch.tensor([[3.0, 1.0], [0.0, 1.0]]), 0.5)
    tensor([[3., 0.]])
    >>> attention_scores(torch.tensor([[2.0, 0.0]]), torch.tensor([[3.0, 1.0], [0.0, 1.0]]), 0.5, softcap=2.0)
    tensor([[1.8103, 0.0000]])
    """
    scores = torch.matmul(query * scale, key.mT, out=out)  # [query, d_head] x [d_head, key] -> [query, key]
    if softcap is not None and scores.requires_grad:  # the backward pass reuses the tanh
        scores = scores.div(softcap).tanh().mul(softcap)  # [query, key]
    elif softcap is not None:
        scores.div_(softcap).tanh_().mul_(softcap)  # [query, key]
    if bias is not None:
        scores.add_(bias)  # [query, key]
    if allowed is not None:
        scores.masked_fill_(~allowed, -torch.inf)  # [query, key]
    return scores


def softmax(
    scores: Float[Tensor, "*batch query key"], *, out: Float[Tensor, "*batch query key"] | None = None
) -> Float[Tensor, "*batch query key"]:
    """Attention weights of each row: exponentials divided by their sum, so that a row sums to 1.

    A row whose every score is minus infinity (no key allowed) becomes zeros, not NaN. The weights are written into
    ``out`` where it is given, which may be ``scores``.

    >>> softmax(torch.tensor([[0.0, 0.0, -torch.inf]]))
    tensor([[0.5000, 0.5000, 0.0000]])
    """
    is_empty = scores[..., :1] == -torch.inf  # [query, 1]
    if not is_empty.any():  # every row sees its first key: no further pass over the matrix
        return torch.softmax(scores, dim=-1, out=out)  # [query, key]
    is_empty = scores.amax(dim=-1, keepdim=True) == -torch.inf  # [query, 1]
    if scores.requires_grad:
        return torch.softmax(scores, dim=-1).masked_fill(is_empty, 0.0)  # [query, key]
    return torch.softmax(scores, dim=-1, out=out).masked_fill_(is_empty, 0.0)  # [query, key]


def attention_weights(
    query: Float[Tensor, "*batch query d_head"],
    key: Float[Tensor, "*batch key d_head"],
    scale: float,
    *,
    softcap: float | None = None,
    allowed: Bool[Tensor, "*#batch #query key"] | None = None,
    bias: Float[Tensor, "*#batch #query key"] | None = None,
) -> Float[Tensor, "*batch query key"]:
    """Softmax of the scores: how each query spreads its attention over the keys."""
    scores = attention_scores(query, key, scale, softcap=softcap, allowed=allowed, bias=bias)  # [query, key]
    return softmax(scores, out=None if scores.requires_grad else scores)  # [query, key]


def attention_output(
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

    >>> attention_output(torch.zeros(1, 2), torch.zeros(2, 2), torch.tensor([[1.0], [3.0]]), 1.0)
    tensor([[2.]])
    """
    weights = attention_weights(
        query, key, scale, softcap=softcap, allowed=allowed, bias=bias
    )  # [query, key]
    return torch.matmul(weights, value)  # [query, key] x [key, d_value] -> [query, d_value]


def expand_heads(
    grouped: Float[Tensor, "*batch kv_head key d_head"], n_head: int
) -> Float[Tensor, "*batch head key d_head"]:
    """Keys or values with one entry per query head, from keys or values that several heads share.

    Head h reads key-value head ``h // (n_head / n_kv_head)``.

    Source: grouped-query attention, Ainslie et al. 2023 (arXiv:2305.13245), section 2.2; the order is that of
    ``repeat_kv`` in transformers 5.23.0.
    """
    n_kv_head = grouped.shape[-3]
    if n_kv_head == n_head:
        return grouped
    return grouped.repeat_interleave(n_head // n_kv_head, dim=-3)  # [head, key, d_head]


def join_heads(
    output: Float[Tensor, "*batch head query d_value"],
    output_weight: Float[Tensor, "head d_value d_model"],
    output_bias: Float[Tensor, " d_model"] | None = None,
) -> Float[Tensor, "*batch query d_model"]:
    """The output of a layer: the heads' outputs side by side, multiplied by one tall W_O, plus its bias.

    This equals every head's output multiplied by its own part of W_O, summed over the heads.

    >>> join_heads(torch.ones(2, 1, 1), torch.tensor([[[1.0]], [[2.0]]]))
    tensor([[3.]])
    """
    side_by_side = output.transpose(-3, -2).flatten(-2)  # [head, query, d_value] -> [query, head x d_value]
    joined = torch.matmul(side_by_side, output_weight.flatten(0, 1))  # x [head x d_value, d_model]
    return joined if output_bias is None else joined + output_bias  # [query, d_model]


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
    """The output of a layer from the vectors that enter it: Q, K and V of every head, attention, and W_O.

    Args:
        hidden: vectors that the queries are made from.
        sources: vectors that the keys and values are made from: ``hidden`` in self-attention, the encoder's output in
            cross-attention.

    Source: Vaswani et al. 2017 (arXiv:1706.03762), section 3.2.2, with the biases of BERT.
    """

    def project(vectors: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        made = torch.matmul(vectors.unsqueeze(-3), weight)  # [1, token, d] x [head, d, d_head]
        return made if bias is None else made + bias.unsqueeze(-2)  # [head, token, d_head]

    query = project(hidden, query_weight, query_bias)  # [head, query, d_head]
    key = project(sources, key_weight, key_bias)  # [head, key, d_head]
    value = project(sources, value_weight, value_bias)  # [head, key, d_value]
    scale = query.shape[-1] ** -0.5
    of_heads = None if allowed is None else allowed.unsqueeze(-3)  # [1, query, key]
    output = attention_output(query, key, value, scale, allowed=of_heads)  # [head, query, d_value]
    return join_heads(output, output_weight, output_bias)  # [query, d_out]
