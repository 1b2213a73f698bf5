"""What a scale does to scores and to a row of weights: the numbers and their words."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from attnviz.figures.numbers import counted, number_text, share_text
from attnviz.figures.scaling import variance_text
from attnviz.lessons.scaling import Products, exponentials, sharpness
from ui.words.findings import power

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


def norm_text(norm: float | np.ndarray) -> str:
    """A norm as text; in powers of ten if it would round to 0."""
    number = float(norm)
    return f"{number:.3f}" if number == 0 or number >= 0.01 else power(number)


def ratio(first: float, second: float) -> str:
    """A second norm compared with a first, in words."""
    facts = ratio_of(first, second)
    if facts is None:
        return "which leaves nothing to compare"
    if facts.is_alike:
        return "about the same"
    times = facts.times
    number = f"{times:.3g}" if times < 999.5 else f"{times:,.0f}" if times < 1e6 else power(times)
    return f"{number} times {'less' if facts.is_less else 'more'}"


def lines_of(products: Products, query: int, scales: Mapping[str, float]) -> list[str]:
    """How sharp a row is under each of these scales, compared with equal weights; a line each."""
    sentences = []
    for name, scale in scales.items():
        row = sharpness(products.row(query, scale))
        sentences.append(
            f"- **{name}, scale {scale:.3g}:** entropy {share_text(float(row.entropy))} of ln n, largest weight "
            f"{share_text(float(row.largest))}, norm of the Jacobian {norm_text(row.jacobian)}"
        )
    even = sharpness(np.zeros(int(products.allowed[query].sum())))
    equal = (
        f"- **Equal weights:** entropy {share_text(float(even.entropy))} of ln n, each weight "
        f"{share_text(float(even.largest))}, norm of the Jacobian {norm_text(even.jacobian)}"
    )
    return [*sentences, equal]


def mean_norm(products: Products, scale: float) -> float:
    """Norm of the Jacobian under a scale, averaged over the queries that see a key."""
    looking = products.allowed.any(axis=1)
    return float(sharpness(products.scores(scale)[looking]).jacobian.mean())


def of_random(products: Float[np.ndarray, "query key"], d_k: int, scale: float, *, seed: int) -> str:
    """Variance of random vectors' dot products, before and after scaling, compared with the formula."""
    drawn = spread_of(products.ravel(), scale)
    return (
        f"{products.shape[0]} queries and {products.shape[1]:,} keys, seed {seed}. Variance "
        f"{variance_text(drawn.variance)} where the formula says {d_k:,}; the products times {scale:.3g} have variance "
        f"{variance_text(drawn.scaled_variance)}, where the formula says {d_k:,} × {scale:.3g}² = "
        f"{variance_text(d_k * scale**2)}. The curve is the normal distribution of that variance, which a sum of "
        "many products comes near."
    )


def of_model(
    products: Float[np.ndarray, " pair"],
    scale: float,
    queries: Float[np.ndarray, "query d_head"],
    keys: Float[np.ndarray, "key d_head"],
) -> str:
    """Variance of a head's dot products, before and after scaling, and how well its vectors meet the formula's assumptions."""
    own = spread_of(products, scale)
    return (
        f"{own.n_product:,} pairs of a query and a key that it may see, {counted(queries.shape[1], 'dimension')}. Variance "
        f"{variance_text(own.variance)}; the products times {scale:.3g} have variance {variance_text(own.scaled_variance)}, "
        f"{scale:.3g}² times as much. The formula is for independent numbers with mean 0 and variance 1, and the mean of their dot "
        f"products is 0: the numbers of these queries have variance {number_text(float(queries.var()))}, those of the keys "
        f"{number_text(float(keys.var()))}, and the mean of the dot products is {number_text(own.mean)}."
    )


def from_scale(scale: float | None) -> str:
    """The scale from which the row's largest score exceeds a limit, in words."""
    return "under no scale" if scale is None else f"from scale {scale:.3g} on"


def written(number: np.floating) -> str:
    """A floating-point number: inf and nan as such, very large and very small ones in powers of ten."""
    value = float(number)
    if not np.isfinite(value) or value == 0 or 1e-3 <= abs(value) < 1e5:
        return f"{value:,.4f}" if np.isfinite(value) else str(value)
    return power(value)
