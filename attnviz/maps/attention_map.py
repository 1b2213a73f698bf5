"""A map whose objective is the attention itself: distances that imply the model's own weights.

Queries y_i and keys z_j are placed so that softmax_j(-|y_i - z_j|^2) comes close to the row of attention weights
A_i: they minimise sum_i KL(A_i || softmax_j(-|y_i - z_j|^2)).

numpy and scipy only.

Source: Globerson, Chechik, Pereira and Tishby 2007, "Euclidean Embedding of Co-occurrence Data" (JMLR 8:2265),
section 3, the conditional model, with attention weights in the place of co-occurrences; the same objective as
Hinton and Roweis 2002, "Stochastic Neighbor Embedding" (NIPS 15), equation 3, with weights in the place of neighbours.
"""

import numpy as np
from jaxtyping import Bool, Float
from scipy.linalg import eigh
from threadpoolctl import threadpool_limits

from attnviz.records import Progress

RATE = 0.1
"""Step size: about the largest change of a coordinate in a step. 0.05 and 0.2 give the same divergence within 2%."""
_PRIOR = 1e-3
"""Penalty on a squared coordinate, in nats: a Gaussian prior with standard deviation sqrt(1 / 2e-3) = 22.

Without the penalty a weight of exactly 1 needs points at infinity. The penalty changes no figure of reliability by more
than 0.003. No point is farther out than sqrt(n_query log(n_key) / penalty), where the penalty equals the largest gain.
"""
_START_NOISE = 1e-2
"""Standard deviation of the random noise on the start: enough to leave a saddle point, too little to change the start."""

_LEAST_AXIS = 1e-6
"""Share of the largest singular value below which another is rounding: it is the square root of an eigenvalue in float64."""
_EVEN = 1e-5
"""Weights of a row that differ by less, as a share of the largest, are equal: float32 rounds scores of 100 by as much."""

_STEPS_TOLD = 25
_STEPS_TRIED, _LEAST_FALL = 100, 0.01
"""The descent ends once so many steps have lowered the divergence by less than this share.

On the ten texts of `benchmarks/maps.py` it ends after 400 steps instead of 1,000, and no figure of reliability
differs by more than 0.004. L-BFGS needs a third of these steps for short texts, but more for 512 tokens.
"""


def implied_weights(
    queries: Float[np.ndarray, "query axis"],
    keys: Float[np.ndarray, "key axis"],
    allowed: Bool[np.ndarray, "query key"],
) -> Float[np.ndarray, "query key"]:
    """The weights that the distances of a map imply: softmax over the keys a query may see of -|y_i - z_j|^2.

    Rows sum to 1; the row of a query that may see no key is zero.
    """
    logits = _logits(queries.astype(np.float64), keys.astype(np.float64))
    _softmax_in_place(logits, allowed)
    return logits.astype(np.float32)


def divergence(
    weights: Float[np.ndarray, "query key"], implied: Float[np.ndarray, "query key"]
) -> Float[np.ndarray, " query"]:
    """KL(A_i || implied_i) of each row, in nats; 0 for a row without keys.

    Implied weights that are rounded to 0 count as the smallest positive float32 number.
    """
    expected, drawn = weights.astype(np.float64), implied.astype(np.float64)
    logs = np.log(np.maximum(expected, _TINY)) - np.log(np.maximum(drawn, _TINY))
    return np.asarray((expected * logs).sum(axis=1))


def objective(
    queries: Float[np.ndarray, "query axis"],
    keys: Float[np.ndarray, "key axis"],
    weights: Float[np.ndarray, "query key"],
    allowed: Bool[np.ndarray, "query key"],
) -> tuple[float, Float[np.ndarray, "query axis"], Float[np.ndarray, "key axis"]]:
    """Cross-entropy of the weights and the implied ones, summed over the queries, and its gradients.

    It differs from the sum of divergences by the entropy of the weights, which does not depend on the points.
    With G = A - implied the gradients are 2 sum_j G_ij (y_i - z_j) for y_i and 2 sum_i G_ij (z_j - y_i) for z_j;
    the rows of G sum to 0.

    Args:
        weights: rows that sum to 1, or to 0 where no key is allowed.
    """
    # One matrix [query, key] is reused for logits, implied weights and the gap: for long texts, memory access
    # takes longer than the computation.
    matrix = _logits(queries, keys)
    expected = float(np.vdot(weights, matrix))
    log_total = _softmax_in_place(matrix, allowed)
    gap = np.subtract(weights, matrix, out=matrix)
    of_queries = -2 * (gap @ keys)
    of_keys = 2 * (gap.sum(axis=0)[:, None] * keys - gap.T @ queries)
    return float(log_total.sum()) - expected, of_queries, of_keys


def is_even(weights: Float[np.ndarray, "query key"], allowed: Bool[np.ndarray, "query key"]) -> bool:
    """Whether every query attends to all the keys that it may see alike, so that all points coincide."""
    lowest = np.where(allowed, weights, np.inf).min(axis=1, initial=np.inf)
    highest = np.where(allowed, weights, -np.inf).max(axis=1, initial=-np.inf)
    return bool((highest - lowest <= _EVEN * highest)[allowed.any(axis=1)].all())


def fit(
    weights: Float[np.ndarray, "query key"],
    allowed: Bool[np.ndarray, "query key"],
    *,
    dimensions: int = 2,
    iterations: int = 500,
    seed: int = 0,
    progress: Progress | None = None,
) -> tuple[Float[np.ndarray, "query axis"], Float[np.ndarray, "key axis"]]:
    """Queries and keys as points whose distances imply the weights; the same for the same arguments and any threads.

    All points are at zero where the weights are even (`is_even`).

    Args:
        iterations: most steps; the descent ends earlier when steps no longer lower the divergence.
        progress: called from time to time with the share of the steps that is done, 0 to 1.

    Source: Adam, Kingma and Ba 2015 (arXiv:1412.6980), algorithm 1 with its decays 0.9 and 0.999.
    """
    if is_even(weights, allowed):
        n_query, n_key = weights.shape
        return np.zeros((n_query, dimensions), np.float32), np.zeros((n_key, dimensions), np.float32)
    with threadpool_limits(1, user_api="blas"):  # sums over several threads differ in the last digits
        return _descend(weights, allowed, dimensions, iterations, seed, progress)


def _descend(
    weights: np.ndarray,
    allowed: np.ndarray,
    dimensions: int,
    iterations: int,
    seed: int,
    progress: Progress | None,
) -> tuple[np.ndarray, np.ndarray]:
    # In float64, since points would drift without limit where rows do not sum to exactly 1.
    rows = weights.astype(np.float64)
    total = rows.sum(axis=1, keepdims=True)
    rows = np.divide(rows, total, out=np.zeros_like(rows), where=total > 0)
    points = np.concatenate(_start(rows, allowed, dimensions, seed)).astype(np.float32)
    entropy = -float((rows * np.log(rows.clip(min=_TINY))).sum())
    rows = rows.astype(np.float32)
    n_query = len(rows)
    mean, square = np.zeros_like(points), np.zeros_like(points)
    lost_before = np.inf
    for step in range(1, iterations + 1):
        if progress is not None and step % _STEPS_TOLD == 0:
            progress(step / iterations)
        loss, of_queries, of_keys = objective(points[:n_query], points[n_query:], rows, allowed)
        if step % _STEPS_TRIED == 0:
            lost = loss - entropy
            if lost_before - lost < _LEAST_FALL * lost:
                break
            lost_before = lost
        gradient = np.concatenate([of_queries, of_keys]) + 2 * _PRIOR * points
        mean = 0.9 * mean + 0.1 * gradient
        square = 0.999 * square + 0.001 * gradient**2
        points = points - RATE * (mean / (1 - 0.9**step)) / (np.sqrt(square / (1 - 0.999**step)) + 1e-8)
    points -= points.mean(axis=0)
    return points[:n_query], points[n_query:]


def _start(
    rows: np.ndarray, allowed: np.ndarray, dimensions: int, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """The best plane for the logarithms of the weights as products of queries and keys, and a little noise.

    Started from random points, the same descent ends at a higher divergence: see `benchmarks/maps.py`.
    Source: Gabriel 1971, "The biplot graphic display of matrices" (Biometrika 58:453).
    """
    logs = np.log(rows.clip(min=_TINY))
    for axis in (1, 0):
        n_allowed = allowed.sum(axis=axis, keepdims=True).clip(min=1)
        logs = np.where(allowed, logs - (logs * allowed).sum(axis=axis, keepdims=True) / n_allowed, 0)
    n_query, n_key = rows.shape
    rng = np.random.default_rng(seed)
    queries = rng.normal(0, _START_NOISE, (n_query, dimensions))
    keys = rng.normal(0, _START_NOISE, (n_key, dimensions))
    # Only the largest singular vectors: for a long text five times as fast as all of them.
    n_axis = min(dimensions, n_query, n_key)
    squares, right = eigh(logs.T @ logs, subset_by_index=[n_key - n_axis, n_key - 1])
    singular = np.sqrt(squares.clip(min=0))
    # -|y - z|^2 contains 2 y . z, so each side is scaled by the square root of half a singular value.
    # An axis of rounding alone would be divided by next to nothing.
    is_kept = singular > _LEAST_AXIS * singular.max(initial=0.0)
    queries[:, :n_axis][:, is_kept] += (logs @ right / np.sqrt(2 * singular).clip(min=_TINY))[:, is_kept]
    keys[:, :n_axis][:, is_kept] += (right * np.sqrt(singular / 2))[:, is_kept]
    return queries, keys


def _logits(queries: np.ndarray, keys: np.ndarray) -> np.ndarray:
    """-|y_i - z_j|^2 without |y_i|^2, which does not change a softmax over the keys."""
    logits: np.ndarray = 2 * queries @ keys.T
    logits -= (keys**2).sum(axis=1)
    return logits


def _softmax_in_place(logits: np.ndarray, allowed: np.ndarray) -> np.ndarray:
    """The logarithm of the softmax denominator of each row; the logits are replaced by their softmax in place."""
    if not allowed.all():
        logits[~allowed] = -np.inf
    largest = logits.max(axis=1, keepdims=True)
    largest[~np.isfinite(largest)] = 0
    logits -= largest
    np.exp(logits, out=logits)
    total = logits.sum(axis=1, keepdims=True)
    total[total == 0] = 1
    logits /= total
    return np.asarray(np.log(total) + largest)[:, 0]


_TINY = float(np.finfo(np.float32).tiny)
