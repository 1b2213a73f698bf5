"""t-SNE of few points in the plane, by every pair of them; `attnviz.maps.layouts` makes the start and picks the engine."""

import numpy as np
from jaxtyping import Float

try:
    from attnviz.maps.tsne_compiled import descend
except ImportError:  # numba, of the extra umap, is not installed
    from attnviz.maps.tsne_arrays import descend

Points = Float[np.ndarray, "point 2"]
Pairs = Float[np.ndarray, "point point"]


def exact_tsne(apart: Pairs, start: Points, perplexity: float, iterations: int) -> Points:
    """Points moved from ``start`` until those are near whose vectors are; ``apart`` are the vectors' squared distances.

    Source: van der Maaten and Hinton 2008 (JMLR 9:2579), algorithm 1 and section 3.4, with momentum 0.5, then 0.8, and gains.
    As scikit-learn 1.9.1, TSNE: 12 times the probabilities for 250 steps; a rate of n / 48, at least 50 (Belkina et al.
    2019, doi:10.1038/s41467-019-13055-y); every 50 steps, no progress for 300 or a gradient of at most 1e-7 ends it.
    """
    points, wanted = start.astype(np.float64), joint_probabilities(apart, perplexity)
    rate = max(len(start) / 48, 50.0)
    descend(points, 12 * wanted, rate, 0.5, 0, 250)
    descend(points, wanted, rate, 0.8, 250, iterations)
    return points


def joint_probabilities(apart: Pairs, perplexity: float) -> Pairs:
    """p_ij: Gaussians on squared distances, as wide as bisection finds for this perplexity, symmetrised (sections 2 and 3.1)."""
    others = ~np.eye(len(apart), dtype=bool)
    apart = np.where(others, apart - apart.min(axis=1, where=others, initial=np.inf, keepdims=True), 0.0)
    sharp = 1 / np.maximum(apart.mean(axis=1, keepdims=True), 1e-200)
    low, high = np.zeros_like(sharp), np.full_like(sharp, np.inf)
    for _ in range(100):
        shares = np.exp(-apart * sharp) * others
        total = shares.sum(axis=1, keepdims=True)
        shares /= total
        surplus = np.log(total) + sharp * (apart * shares).sum(axis=1, keepdims=True) - np.log(perplexity)
        if (np.abs(surplus) <= 1e-5).all():
            break
        low, high = np.where(surplus > 0, sharp, low), np.where(surplus > 0, high, sharp)
        sharp = np.where(np.isinf(high), 2 * sharp, (low + high) / 2)
    return np.asarray((shares + shares.T) / (2 * len(apart)))
