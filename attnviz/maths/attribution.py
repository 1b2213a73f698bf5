"""Attention weights combined with values (norm-based weights) or with earlier layers (rollout).

Two measures, each a matrix [query, key]: norm-based weights, the norm of each weighted and transformed value vector,
and rollout, an estimate of how attention accumulates through the layers. numpy, and torch for one product.
"""

from collections.abc import Iterable

import numpy as np
from jaxtyping import Float

_KEY_BLOCK = 1024
"""Keys whose vectors v W_O of all heads are held at once."""


def value_products(
    value: Float[np.ndarray, "kv_head key d_value"], output_weight: Float[np.ndarray, "head d_value d_model"]
) -> Float[np.ndarray, "head head key"]:
    """For each token, the dot products of its transformed values in any two heads, v_j W_O^h with v_j W_O^g.

    Norm-based weights need nothing else from the values: the diagonal holds the squared lengths. Values include the bias
    of the layer's value projection; the bias of W_O belongs to no head.
    """
    n_head, n_key = len(output_weight), value.shape[1]
    products = np.empty((n_head, n_head, n_key), dtype=np.result_type(value, output_weight))
    for start in range(0, n_key, _KEY_BLOCK):
        keys = slice(start, start + _KEY_BLOCK)
        vectors = (
            np.repeat(value[:, keys], n_head // len(value), axis=0) @ output_weight
        )  # [head, key, d_model]
        by_key = vectors.transpose(1, 0, 2)  # [key, head, d_model]
        products[..., keys] = (by_key @ by_key.transpose(0, 2, 1)).transpose(1, 2, 0)
    # the root of a rounded square is exact, so that lengths from a bundle equal those of the trace
    products[np.arange(n_head), np.arange(n_head)] = value_lengths(value, output_weight) ** 2
    return products


def value_lengths(
    value: Float[np.ndarray, "kv_head key d_value"], output_weight: Float[np.ndarray, "head d_value d_model"]
) -> Float[np.ndarray, "head key"]:
    """For each head and token, the length of the token's transformed value, || v_j W_O^h ||.

    Its square is v (W_O W_O^T) v^T, computed in float64: with small matrices instead of long vectors.
    """
    import torch  # here, so that opening a page does not load it

    from attnviz.maths.attention import expand_heads

    # the threads of numpy's matrix products would take a core from torch between two layers
    weight = torch.tensor(output_weight, dtype=torch.float64)
    gram = weight @ weight.mT  # [head, d_value, d_value]
    vectors = expand_heads(torch.tensor(value, dtype=torch.float64), len(weight))  # [head, key, d_value]
    squares = (vectors @ gram * vectors).sum(dim=-1)  # [head, key]
    return np.asarray(squares.clamp(min=0.0).sqrt().float().numpy())


def lengths_of(products: Float[np.ndarray, "head head key"]) -> Float[np.ndarray, "head key"]:
    """The lengths of `value_lengths`, from the products of `value_products`."""
    return np.asarray(np.sqrt(np.maximum(np.einsum("hhk->hk", products), 0.0)))


def head_norms(
    weights: Float[np.ndarray, "*head query key"], lengths: Float[np.ndarray, "*head key"]
) -> Float[np.ndarray, "*head query key"]:
    """Norm-based weights: || a_ij v_j W_O ||, the weight times the length of the vector v_j W_O.

    Args:
        lengths: see `value_lengths`.

    Source: Kobayashi et al. 2020, "Attention is Not Only a Weight" (arXiv:2004.10102), section 3,
    equations 5 and 6: ``f(x) = (x W_V + b_V) W_O``.
    """
    return np.asarray(weights * lengths[..., None, :])


def layer_norms(
    weights: Float[np.ndarray, "head query key"], products: Float[np.ndarray, "head head key"]
) -> Float[np.ndarray, "query key"]:
    """Norm-based weights of a layer: || sum over heads of a_ij v_j W_O^h ||, vectors summed before the norm.

    Source: Kobayashi et al. 2020 (arXiv:2004.10102), section 3; heads can cancel each other, so this is
    at most the sum of their own norms.
    """
    squares = np.zeros(weights.shape[1:], dtype=np.float32)
    for head_weights, row in zip(weights, products, strict=True):  # one head's sum, [query, key], at a time
        squares += head_weights * np.einsum("gqk,gk->qk", weights, row)
    return np.sqrt(np.maximum(squares, 0.0))


def rollout(
    layers: Iterable[Float[np.ndarray, "query key"]], *, residual: float = 0.5
) -> Float[np.ndarray, "query key"]:
    """An estimate of how much of each token of the text a token holds after several layers; rows sum to 1.

    Args:
        layers: weights averaged over the heads, or other matrices whose rows sum to 1, from the lowest layer upwards.
        residual: share of each layer that is the residual connection: 0 for matrices that hold it already, such as ALTI's.

    Raises:
        ValueError: there is no layer.

    Source: Abnar and Zuidema 2020, "Quantifying Attention Flow in Transformers" (arXiv:2005.00928),
    section 3: it assumes that half of each layer is its weights and half the residual connection,
    ``A = 0.5 W + 0.5 I``, and multiplies a later layer on the left. W_V, W_O, norms and feed-forward networks are
    left out.
    """
    reached: np.ndarray | None = None
    for weights in layers:
        mixed = (1 - residual) * weights + residual * np.eye(len(weights), dtype=weights.dtype)
        reached = mixed if reached is None else mixed @ reached
    if reached is None:
        raise ValueError("rollout needs at least one layer")
    return reached
