"""Facts for the findings of the page Scaling, before they are put into words."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from attnviz.lessons.scaling import exponentials

ALIKE = 1.05
"""Ratio up to which two norms count as equal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """Spread of dot products, before and after scaling."""

    n_product: int
    mean: float
    variance: float
    scaled_variance: float
    """Variance after scaling: the variance times the scale squared."""


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
    """A second number compared with a first, both positive."""

    times: float
    """The larger divided by the smaller."""
    is_less: bool
    """Whether the second is smaller."""

    @property
    def is_alike(self) -> bool:
        """Whether the two count as equal."""
        return self.times < ALIKE


def ratio_of(first: float, second: float) -> Ratio | None:
    """The ratio of two non-negative numbers; None if one is 0 or NaN."""
    if not (first > 0 and second > 0):
        return None
    return Ratio(times=max(first / second, second / first), is_less=second < first)


def breaks(scores: Float[np.ndarray, " key"], dtype: type[np.floating]) -> bool:
    """Whether a row's softmax without the subtraction has an infinity or NaN in this type."""
    plain = exponentials(scores, dtype, subtract=False)
    return not (np.isfinite(plain.weights).all() and np.isfinite(plain.total))
