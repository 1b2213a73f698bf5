"""The steps of `attnviz.maps.tsne`, compiled by numba: seconds the first time, then read from its cache.

It compiles no annotations that are checked.
"""

from collections.abc import Callable
from typing import Any, no_type_check

import numpy as np
from jaxtyping import Float
from numba import njit

Points = Float[np.ndarray, "point 2"]
Pairs = Float[np.ndarray, "point point"]


def _compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    try:
        compiled: Callable[..., Any] = njit(cache=True, nogil=True)(function)
    except RuntimeError:  # there is no folder to keep it in
        compiled = njit(nogil=True)(function)
    return compiled


@_compiled
@no_type_check
def descend(points: Points, wanted: Pairs, rate: float, momentum: float, first: int, stop: int) -> int:
    """Moves the points downhill, from this step on; returns the step at which it ended."""
    uphill, moved, gains = np.zeros_like(points), np.zeros_like(points), np.ones_like(points)
    lowest, lowest_at = np.inf, first
    for step in range(first, stop):
        gradient(points, wanted, uphill)
        steepest = 0.0
        for point in range(len(points)):
            for axis in range(2):
                is_back = moved[point, axis] * uphill[point, axis] < 0
                gain = gains[point, axis] + 0.2 if is_back else gains[point, axis] * 0.8
                gains[point, axis] = max(gain, 0.01)
                slope = gains[point, axis] * uphill[point, axis]
                steepest += slope * slope
                moved[point, axis] = momentum * moved[point, axis] - rate * slope
        if step % 50 == 49:
            loss = divergence(points, wanted)
            if loss < lowest:
                lowest, lowest_at = loss, step
        points += moved
        if step % 50 == 49 and (step - lowest_at > 300 or np.sqrt(steepest) <= 1e-7):
            return step
    return stop


@_compiled
@no_type_check
def gradient(points: Points, wanted: Pairs, uphill: Points) -> None:
    """Fills ``uphill`` with 4 sum_j (p_ij - q_ij) (y_i - y_j) / (1 + |y_i - y_j|^2), equation 5."""
    near, total = nearness(points)
    uphill[:] = 0
    for point in range(len(points)):
        for other in range(point):
            force = 4 * (wanted[point, other] - near[point, other] / total) * near[point, other]
            for axis in range(2):
                pull = force * (points[point, axis] - points[other, axis])
                uphill[point, axis] += pull
                uphill[other, axis] -= pull


@_compiled
@no_type_check
def divergence(points: Points, wanted: Pairs) -> float:
    """sum_ij p_ij log(p_ij / q_ij), equation 2."""
    near, total = nearness(points)
    loss = 0.0
    for point in range(len(points)):
        for other in range(point):
            if wanted[point, other] > 0:
                loss += 2 * wanted[point, other] * np.log(wanted[point, other] * total / near[point, other])
    return loss


@_compiled
@no_type_check
def nearness(points: Points) -> tuple[Pairs, float]:
    """1 / (1 + |y_i - y_j|^2) of each pair once, below the diagonal, and their sum over all ordered pairs (equation 4)."""
    near, total = np.zeros((len(points), len(points))), 0.0
    for point in range(len(points)):
        for other in range(point):
            across, along = points[point, 0] - points[other, 0], points[point, 1] - points[other, 1]
            near[point, other] = 1 / (1 + across * across + along * along)
            total += 2 * near[point, other]
    return near, total
