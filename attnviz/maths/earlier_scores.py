"""Attention scores older than scaled dot products: additive and multiplicative."""

import torch
from jaxtyping import Float
from torch import Tensor


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
