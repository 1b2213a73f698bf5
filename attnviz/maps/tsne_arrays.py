"""The steps of `attnviz.maps.tsne` where numba is not installed: the same arithmetic by arrays, in ten to thirty times as long.

Sums differ by rounding from those of `attnviz.maps.tsne_compiled`, and so may pictures, as between two machines.
"""

import numpy as np
from jaxtyping import Float
from scipy.special import rel_entr

Points = Float[np.ndarray, "point 2"]
Pairs = Float[np.ndarray, "point point"]


def descend(points: Points, wanted: Pairs, rate: float, momentum: float, first: int, stop: int) -> int:
    """Moves the points downhill, from this step on; returns the step at which it ended."""
    uphill, moved, gains = np.zeros_like(points), np.zeros_like(points), np.ones_like(points)
    lowest, lowest_at = np.inf, first
    for step in range(first, stop):
        gradient(points, wanted, uphill)
        gains = np.maximum(np.where(moved * uphill < 0, gains + 0.2, gains * 0.8), 0.01)
        slope = gains * uphill
        moved = momentum * moved - rate * slope
        if step % 50 == 49:
            loss = divergence(points, wanted)
            if loss < lowest:
                lowest, lowest_at = loss, step
        points += moved
        if step % 50 == 49 and (step - lowest_at > 300 or np.linalg.norm(slope) <= 1e-7):
            return step
    return stop


def gradient(points: Points, wanted: Pairs, uphill: Points) -> None:
    """Fills ``uphill`` with 4 sum_j (p_ij - q_ij) (y_i - y_j) / (1 + |y_i - y_j|^2), equation 5."""
    near = nearness(points)
    force = (wanted - near / near.sum()) * near
    np.multiply(4, force.sum(axis=1, keepdims=True) * points - force @ points, out=uphill)


def divergence(points: Points, wanted: Pairs) -> float:
    """sum_ij p_ij log(p_ij / q_ij), equation 2."""
    near = nearness(points)
    return float(rel_entr(wanted, near / near.sum()).sum())


def nearness(points: Points) -> Pairs:
    """1 / (1 + |y_i - y_j|^2) of all ordered pairs, 0 for a point and itself (equation 4)."""
    squares = (points * points).sum(axis=1)
    near: np.ndarray = 1 / (1 + squares[:, None] + squares - 2 * (points @ points.T))
    np.fill_diagonal(near, 0)
    return near
