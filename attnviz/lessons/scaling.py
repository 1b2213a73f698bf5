"""Why scores are scaled: dot products grow with their dimension, and a softmax of large numbers is nearly one-hot.

numpy and scipy; torch only through the trace.

Source: Vaswani et al. 2017, "Attention Is All You Need" (arXiv:1706.03762), section 3.2.1 with its footnote 4.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Bool, Float, Float32, Float64, Shaped
from scipy.special import entr, softmax

from attnviz.records import Kind, Record

if TYPE_CHECKING:
    from attnviz.model.trace import Trace

RANDOM_VECTORS = 256
"""Number of random queries, and smallest number of random keys: the variance of their 65,536 products is within a
few percent of d_k."""
LARGEST_D_K = 1024
"""Most dimensions of random vectors; the heads of most models have 32 to 128."""
SCALES = tuple(2.0 ** (half / 2) for half in range(-16, 9))
"""Scales that are tried, from 1/256 to 16 in steps of the square root of 2, which include 1 / sqrt(d_k) for every d_k
that is a power of 2."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Products(Record):
    """The dot products of one head before they are scaled, with the softcap, the bias and the mask that follow."""

    products: Float32[np.ndarray, "query key"]
    """q . k, whether or not the query may see the key."""
    bias: Float32[np.ndarray, "query key"]
    """Added after the scaling, such as T5's relative positions; zeros for most families."""
    allowed: Bool[np.ndarray, "query key"]
    """True where a query may see a key."""
    scale: float
    """The model's own factor, 1 / sqrt(d_k) for most families."""
    softcap: float | None = None
    """c where scaled products s become c tanh(s / c) before the bias, as in Gemma 2; None for most families."""

    @property
    def seen(self) -> Float32[np.ndarray, " pair"]:
        """The products of all pairs that the mask allows."""
        return np.asarray(self.products[self.allowed])

    def scores(self, scale: float) -> Float64[np.ndarray, "query key"]:
        """All scores under a scale, minus infinity where a key is not allowed."""
        scores = self._capped(scale * self.products.astype(np.float64)) + self.bias
        return np.where(self.allowed, scores, -np.inf)

    def row(
        self, query: int, scale: float | Float64[np.ndarray, "*scale 1"]
    ) -> Float64[np.ndarray, "*scale seen"]:
        """Scores of one query with the keys it may see, under one scale or each of several."""
        seen = self.allowed[query]
        scores = self._capped(scale * self.products[query, seen].astype(np.float64)) + self.bias[query, seen]
        return np.asarray(scores)

    def scale_reaching(self, query: int, limit: float) -> float | None:
        """The smallest scale from which on a score of this query reaches a limit above 0; None if there is none.

        It is 0 where a bias reaches the limit alone.
        """
        seen = self.allowed[query]
        if (self.bias[query, seen] >= limit).any():
            return 0.0
        seen = seen & (self.products[query] > 0)
        needed = limit - self.bias[query, seen].astype(np.float64)
        if self.softcap is not None:  # the inverse of the softcap; infinite where no scaled product is enough
            with np.errstate(divide="ignore"):
                needed = self.softcap * np.arctanh(np.minimum(needed / self.softcap, 1.0))
        scales = needed / self.products[query, seen]
        return float(scales.min()) if np.isfinite(scales).any() else None

    def _capped(self, scaled: Float64[np.ndarray, "*axes"]) -> Float64[np.ndarray, "*axes"]:
        """Scaled products after the softcap, if any."""
        return scaled if self.softcap is None else self.softcap * np.tanh(scaled / self.softcap)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Sharpness(Record):
    """How close to one-hot rows of weights are, and how sensitive they are to the scores."""

    entropy: Float64[np.ndarray, "*row"]
    """Entropy as a share of ln n, the maximum for n keys: 1 for equal weights, 0 when one key has all weight or is the only one."""
    largest: Float64[np.ndarray, "*row"]
    """The largest weight."""
    jacobian: Float64[np.ndarray, "*row"]
    """Frobenius norm of the softmax's Jacobian, the derivatives of all weights by all scores."""

    def mean(self) -> "Sharpness":
        """The means over the rows of the last axis."""
        return Sharpness(
            entropy=self.entropy.mean(axis=-1),
            largest=self.largest.mean(axis=-1),
            jacobian=self.jacobian.mean(axis=-1),
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Exponentials(Record):
    """The steps of a softmax in one floating-point type: overflow gives infinity, and inf / inf is not a number."""

    scores: Shaped[np.ndarray, " key"]
    """The arguments of the exponential."""
    exponentials: Shaped[np.ndarray, " key"]
    total: np.floating
    """Sum of the exponentials."""
    weights: Shaped[np.ndarray, " key"]


def products_of(trace: "Trace", layer: int, head: int, kind: Kind | None = None) -> Products:
    """The dot products of one head, unscaled.

    Raises:
        SelectionError: no such layer, head or kind.
    """
    call = trace.head(layer, head, kind)
    products = call.query @ call.key.T
    return Products(
        products=products,
        bias=np.zeros_like(products) if call.bias is None else np.array(call.bias),
        allowed=np.ones(products.shape, dtype=bool) if call.allowed is None else np.array(call.allowed),
        scale=call.scale,
        softcap=call.softcap,
    )


def random_products(d_k: int, *, n_key: int = 0, seed: int = 0) -> Float32[np.ndarray, "query key"]:
    """Dot products of random vectors whose components are independent, with mean 0 and variance 1.

    Their variance is d_k: that of a sum of d_k independent products, each with variance 1.

    Args:
        n_key: number of keys needed; at least `RANDOM_VECTORS` are made.

    Source: Vaswani et al. 2017 (arXiv:1706.03762), footnote 4; the components are normal here.
    """
    generator = np.random.default_rng(seed)
    queries = generator.standard_normal((RANDOM_VECTORS, d_k), dtype=np.float32)
    keys = generator.standard_normal((max(RANDOM_VECTORS, n_key), d_k), dtype=np.float32)
    return queries @ keys.T


def sharpness(scores: Float64[np.ndarray, "*row key"]) -> Sharpness:
    """Entropy, largest weight and norm of the Jacobian of the softmax of each row, which needs a key that is seen.

    The Jacobian of w = softmax(s) is diag(w) - w w^T, since dw_i / ds_j = w_i ([i = j] - w_j) by the quotient rule
    (Martins and Astudillo 2016, arXiv:1602.02068, section 2.5). So the square of its Frobenius norm is the sum over i
    of w_i^2 ((1 - w_i)^2 + sum over j other than i of w_j^2). For the largest weight, 1 - w is computed as the sum of
    the others, since the subtraction would round to 0 in a row that is nearly one-hot.
    """
    weights = softmax(scores, axis=-1)
    nats = np.asarray(entr(weights).sum(axis=-1))
    largest_nats = np.log(np.isfinite(scores).sum(axis=-1))
    ordered = np.sort(weights, axis=-1)
    others, largest = ordered[..., :-1], ordered[..., -1]
    left, squares = others.sum(axis=-1), (others**2).sum(axis=-1)
    rest = (1 - others) ** 2 + (largest**2 + squares)[..., None] - others**2
    squared = largest**2 * (left**2 + squares) + (others**2 * rest).sum(axis=-1)
    return Sharpness(
        entropy=np.divide(nats, largest_nats, out=np.zeros_like(nats), where=largest_nats > 0),
        largest=np.asarray(largest),
        jacobian=np.asarray(np.sqrt(squared)),
    )


def largest_argument(dtype: type[np.floating]) -> float:
    """The number above which an exponential is too large for this type: 11.09 for float16, 88.72 for float32.

    Source: the logarithm of the largest finite number; Blanchard, Higham and Higham 2021, "Accurately computing the
    log-sum-exp and softmax functions" (arXiv:1909.03469), table 2.
    """
    return float(np.log(np.float64(np.finfo(dtype).max)))


def exponentials(
    scores: Float[np.ndarray, " key"], dtype: type[np.floating], *, subtract: bool
) -> Exponentials:
    """The softmax of one row with every step computed in this type.

    Args:
        subtract: whether the largest score is subtracted first, which cancels in the division.
    """
    with np.errstate(all="ignore"):  # overflow is to be shown
        given = scores.astype(dtype)
        given = given - given.max() if subtract else given
        raised = np.exp(given)
        total = raised.sum(dtype=dtype)
        return Exponentials(scores=given, exponentials=raised, total=total, weights=raised / total)
