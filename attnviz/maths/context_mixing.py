"""How much of each token is in a vector that is a sum of a part from each: ALTI's closeness, and rows as shares of 1.

numpy, and torch for one product.
"""

import numpy as np
from jaxtyping import Float, Float64


def mixed_vectors(
    weights: Float[np.ndarray, "head query key"], vectors: Float[np.ndarray, "head key d_model"]
) -> Float64[np.ndarray, "query key d_model"]:
    """What each query gets from each key, summed over the heads: sum over h of a_ij v_j W_O^h.

    Args:
        vectors: each head's values through its part of W_O.
    """
    import torch  # here, so that opening a page does not load it

    by_key = torch.tensor(weights, dtype=torch.float64).permute(2, 1, 0)  # [key, query, head]
    products = by_key @ torch.tensor(vectors, dtype=torch.float64).transpose(0, 1)  # [key, query, d_model]
    return np.asarray(products.transpose(0, 1).numpy())


def closeness(
    parts: Float[np.ndarray, "query key d_model"], wholes: Float[np.ndarray, "query d_model"]
) -> Float[np.ndarray, "query key"]:
    """How close each part is to the vector that it is a part of: max(0, |y_i|_1 - |y_i - T_ij|_1), with sums of absolute values.

    Source: Ferrando et al. 2022, "Measuring the Mixing of Contextual Information in the Transformer" (arXiv:2203.04212),
    section 3.2; the distance of Manhattan as there.
    """
    lengths = np.abs(wholes).sum(axis=-1)[:, None]
    return np.asarray(np.maximum(0.0, lengths - np.abs(wholes[:, None] - parts).sum(axis=-1)))


def as_shares(numbers: Float[np.ndarray, "query key"]) -> Float[np.ndarray, "query key"]:
    """Rows that sum to 1; a row of zeros, in which no key counts, is left to the query's own token."""
    sums = numbers.sum(axis=1, keepdims=True)
    shares: np.ndarray = np.divide(numbers, sums, out=np.zeros_like(numbers), where=sums > 0)
    shares[np.diag_indices(len(shares))] += sums[:, 0] <= 0
    return shares
