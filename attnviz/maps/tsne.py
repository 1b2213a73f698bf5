"""t-SNE of few points in the plane, by every pair of them; `attnviz.maps.layouts` makes the start and picks the engine."""

import numpy as np
from jaxtyping import Float
from scipy.special import rel_entr

Points = Float[np.ndarray, "point 2"]
Pairs = Float[np.ndarray, "point point"]


def exact_tsne(apart: Pairs, start: Points, perplexity: float, iterations: int) -> Points:
    """Points moved from ``start`` until those are near whose vectors are; ``apart`` are the vectors' squared distances.

    Source: van der Maaten and Hinton 2008 (JMLR 9:2579), algorithm 1 and section 3.4, with momentum 0.5, then 0.8, and gains.
    As scikit-learn 1.9.1, TSNE: 12 times the probabilities for 250 steps; a rate of n / 48, at least 50 (Belkina et al.
    2019, doi:10.1038/s41467-019-13055-y); every 50 steps, no progress for 300 or a gradient of at most 1e-7 ends it.
    """
    points, rate = start.astype(np.float64), max(len(start) / 48, 50.0)
    wanted, descent = joint_probabilities(apart, perplexity), Descent(len(start))
    for first, stop, momentum in ((0, 250, 0.5), (250, iterations, 0.8)):
        asked, lowest, lowest_at = wanted * (12 if first == 0 else 1), np.inf, first
        moved, gains = np.zeros_like(points), np.ones_like(points)
        for step in range(first, stop):
            uphill = descent.gradient(points, asked)
            gains = np.maximum(np.where(moved * uphill < 0, gains + 0.2, gains * 0.8), 0.01)
            uphill *= gains
            moved = momentum * moved - rate * uphill
            points += moved
            if step % 50 == 49:
                if (loss := descent.divergence(asked)) < lowest:
                    lowest, lowest_at = loss, step
                if step - lowest_at > 300 or np.linalg.norm(uphill) <= 1e-7:
                    break
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


class Descent:
    """Where the loss rises, with room for its products that is made once: this takes a third of the time of a step."""

    def __init__(self, n_point: int) -> None:
        self._left, self._right = np.ones((2, n_point, 4))
        self._near, self._force = np.empty((2, n_point, n_point))

    def gradient(self, points: Points, wanted: Pairs) -> Points:
        """4 sum_j (p_ij - q_ij) (y_i - y_j) / (1 + |y_i - y_j|^2), equation 5; the squares by (-2 y, y^2, 1) (y, 1, y^2 + 1)."""
        left, right, near, force = self._left, self._right, self._near, self._force
        np.multiply(points, -2, out=left[:, :2])
        right[:, :2] = points
        np.add(np.vecdot(points, points, out=left[:, 2]), 1, out=right[:, 3])
        np.reciprocal(np.matmul(left, right.T, out=near), out=near)
        np.multiply(near, -1 / (near.sum() - len(points)), out=force)  # a point itself adds 1
        force += wanted
        force *= near
        pull = force @ right[:, :3]
        return np.asarray(4 * (pull[:, 2:] * points - pull[:, :2]))

    def divergence(self, wanted: Pairs) -> float:
        """sum_ij p_ij log(p_ij / q_ij), equation 2, at the points whose gradient was asked for last."""
        return float(rel_entr(wanted, self._near / (self._near.sum() - len(wanted))).sum())
