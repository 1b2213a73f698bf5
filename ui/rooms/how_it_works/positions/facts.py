"""Facts for the findings of the page Positions, before they are put into words."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from sklearn.metrics.pairwise import cosine_similarity

from attnviz.lessons.order import Shuffle

STEPS = (1, 5, 20)
"""Distances between positions that are named."""
PAIRS = ((0, 1), (0, 10), (20, 30))
"""Pairs of positions whose cosine is named."""
NO_CHANGE = 1e-3
"""1 - cosine below which a token's vector counts as unchanged: float32 leaves up to 1e-6, and a shuffle changes more than 0.01."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OfDistance:
    """The dot products of all pairs of positions ``apart`` from each other."""

    apart: int
    first: float
    """Dot product of position 0 and position ``apart``."""
    least: float
    most: float


def dot_products(table: Float[np.ndarray, "position d_model"]) -> tuple[OfDistance, ...]:
    """The dot products at each distance of `STEPS` that fits in the table."""
    products = table.astype(np.float64) @ table.T
    return tuple(
        OfDistance(
            apart=apart,
            first=float(products[0, apart]),
            least=float(products.diagonal(apart).min()),
            most=float(products.diagonal(apart).max()),
        )
        for apart in STEPS
        if apart < len(table)
    )


def cosines(table: Float[np.ndarray, "position d_model"]) -> tuple[tuple[int, int, float], ...]:
    """Two positions and their cosine, for each of `PAIRS` that the table has."""
    return tuple(
        (first, other, float(cosine_similarity(table[[first]], table[[other]]).item()))
        for first, other in PAIRS
        if max(first, other) < len(table)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderMatters:
    """The effect of another order of the words on a model."""

    is_own_order: bool
    """Whether the new order is the text's own, so that nothing can change."""
    with_positions: bool
    """Whether any token's vector changes direction."""
    without_positions: bool
    """Whether any does without position vectors."""


def order_matters(shuffle: Shuffle) -> OrderMatters:
    """Whether a shuffle changes any token, with and without position vectors."""
    return OrderMatters(
        is_own_order=bool((shuffle.order == np.arange(len(shuffle.order))).all()),
        with_positions=bool((shuffle.with_positions >= NO_CHANGE).any()),
        without_positions=bool((shuffle.without_positions >= NO_CHANGE).any()),
    )
