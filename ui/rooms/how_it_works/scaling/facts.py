"""What the numbers of the page Scaling say, before it is put into words."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from attnviz.lessons.scaling import exponentials

ALIKE = 1.05
"""Ratio up to which two norms count as the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """How dot products spread, before and after they are multiplied by a scale."""

    n_product: int
    mean: float
    variance: float
    scaled_variance: float
    """Of the products times the scale: the variance times the scale's square."""


def spread_of(products: Float[np.ndarray, " pair"], scale: float) -> Spread:
    """Mean and variance of some products, and the variance under a scale."""
    variance = float(products.var(dtype=np.float64))
    return Spread(
        n_product=products.size,
        mean=float(products.mean(dtype=np.float64)),
        variance=variance,
        scaled_variance=variance * scale**2,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratio:
    """What a second number is beside a first, both above 0."""

    times: float
    """The larger divided by the smaller."""
    is_less: bool
    """Whether the second is the smaller one."""

    @property
    def is_alike(self) -> bool:
        """Whether the two count as the same."""
        return self.times < ALIKE


def ratio_of(first: float, second: float) -> Ratio | None:
    """The ratio of two numbers that are not negative; None where one is 0 or not a number."""
    if not (first > 0 and second > 0):
        return None
    return Ratio(times=max(first / second, second / first), is_less=second < first)


def breaks(scores: Float[np.ndarray, " key"], dtype: type[np.floating]) -> bool:
    """Whether the softmax of a row without the subtraction has a number that is infinite or none in this type."""
    plain = exponentials(scores, dtype, subtract=False)
    return not (np.isfinite(plain.weights).all() and np.isfinite(plain.total))
