"""Which differences rounding explains, between two computations of one model's attention.

Vectors of two runs of one network differ by the rounding errors of the layers below. The results of attention may then
differ by the effect of these measured differences, and by attention's own rounding errors, whose bounds always hold. So
a tolerance grows with the scores; a difference beyond its own tolerance is an error and widens no other tolerance.

Sources: Higham 2002, "Accuracy and Stability of Numerical Algorithms", 2nd edition, equation 3.5 (`dot_bound`); Higham
and Mary 2019, "A New Approach to Probabilistic Rounding Error Analysis" (SIAM J. Sci. Comput. 41:A2815), section 2
(`likely_bound`). A softmax moves by at most half as far as its scores: the absolute entries of row i of its Jacobian
sum to 2 w_i (1 - w_i).
"""

from copy import copy
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float

from attnviz.maths.rounding import dot_bound, likely_bound, unit_roundoff
from attnviz.records import FILE

_PRODUCTS, _ROUNDINGS = 12, 12
"""For a transformer layer, in units of d_model: lengths of the sums in W_Q, W_O and a feed-forward part of four times
the width; and how often a number is rounded in sums, norms and activations."""

_CAP_ROUNDINGS = 4
"""Roundings in a softcap: a division, a hyperbolic tangent (within 2 roundings), and a product."""

UNITS = {
    FILE: "files",
    "tokens": "tokens",
    "labels": "tokens",
    "queries": "share of the largest number",
    "keys": "share of the largest number",
    "values": "share of the largest number",
    "scale": "share",
    "attention mask": "cells",
    "score bias": "share of the largest bias",
    "scores": "share of the largest score",
    "attention weights": "weight",
    "norm-based weights": "share of the longest vector",
    "head outputs": "share of the largest value",
    "output after W_O": "share of the largest number",
    "last hidden state": "share of the largest number",
}
"""The unit of differences, by check, in the order in which a forward pass computes the numbers."""

_SAME = "Both computations use the same numbers, so they must be equal."
_DRIFT = (
    "The {dtype} rounding errors of all layers below add up; the tolerance is a bound that they exceed with negligible probability "
    "(Higham and Mary 2019), or, in a model that amplifies rounding errors, 8 times the difference between the model in "
    "{dtype} and in float64."
)
REASONS = {
    "tokens": "Ids are whole numbers: the tokenizer gives the same ones again.",
    "labels": "Each label is looked up in the tokenizer's vocabulary again.",
    "queries": _DRIFT,
    "keys": _DRIFT,
    "values": _DRIFT,
    "scale": _SAME,
    "attention mask": _SAME,
    "score bias": "What depends on positions alone must be equal. What is made of queries or keys, as in DeBERTa, has their rounding "
    "errors.",
    "scores": "What the model's own softmax gets. The change that the measured differences of query, key and bias explain, and {dtype} "
    "roundings of the sum of products (Higham 2002, equation 3.5).",
    "attention weights": (
        "Half of the largest change of a score: from the measured difference of its query and key, and from {dtype} roundings of its "
        "sum of products (Higham 2002, equation 3.5), so more where scores are large."
    ),
    "norm-based weights": "The tolerance of the weights, and {dtype} roundings of v W_O and of its length.",
    "head outputs": (
        "How far a weight error within tolerance can shift the mean of the values, the measured difference of the values, and {dtype} "
        "roundings of the sum."
    ),
    "output after W_O": "What the measured difference of the heads' outputs becomes, and {dtype} roundings of the sum.",
    "last hidden state": _DRIFT,
}
"""Why the tolerance of each check is what it is, where {dtype} stands for the dtype; for the file, what became of its tensors."""


class Distance:
    """How far vectors are from the reference's, and how long the reference's are; each number for each head."""

    def __init__(
        self, ours: Float[np.ndarray, "head token d"], theirs: Float[np.ndarray, "head token d"]
    ) -> None:
        apart, tiny = ours - theirs, np.finfo(np.float32).tiny
        self.width = theirs.shape[2]
        """Numbers in a vector."""
        self.difference = np.abs(apart).max(axis=(1, 2))
        """Largest difference of two numbers."""
        self.largest = np.maximum(np.abs(theirs).max(axis=(1, 2)), tiny)
        """Largest number."""
        self.moved = np.linalg.norm(apart, axis=2).max(axis=1)
        """Largest distance of two vectors."""
        self.longest = np.linalg.norm(theirs, axis=2).max(axis=1)
        """Length of the longest vector."""

    @property
    def share(self) -> Float[np.ndarray, " head"]:
        """The largest difference as a share of the largest number."""
        return np.asarray(self.difference / self.largest)

    def capped(self, share: 'float | Float[np.ndarray, " head"]') -> "Distance":
        """The same, limited to vectors whose numbers differ by at most this share of the largest one.

        A difference beyond its own tolerance is an error, and widens no later tolerance.
        """
        capped = copy(self)
        capped.difference = np.minimum(self.difference, share * self.largest)
        capped.moved = np.minimum(self.moved, share * self.largest * self.width**0.5)
        return capped

    def joined(self, output_weight: Float[np.ndarray, "head d_value d_model"], dtype: torch.dtype) -> float:
        """How far the outputs of W_O may be apart, given these outputs of heads."""
        column = np.linalg.norm(output_weight.reshape(-1, output_weight.shape[-1]), axis=0).max()
        moved, longest = (np.linalg.norm(vector) for vector in (self.moved, self.longest))
        n_term = output_weight.shape[0] * output_weight.shape[1] + 1
        return float(column * (moved + 2 * dot_bound(n_term, dtype) * longest))


@dataclass(frozen=True, kw_only=True)
class Tolerances:
    """How far the weights of one layer, and what is computed from them, may be apart; each number for each head."""

    query: Distance
    key: Distance
    value: Distance
    bias: Distance
    scale: float
    softcap: float | None = None
    n_key: int
    dtype: torch.dtype
    """In which the model computes; attnviz' own numbers are float32."""

    @property
    def scores(self) -> Float[np.ndarray, " head"]:
        """How far scores may be apart: by Cauchy and Schwarz no score is larger than scale |q| |k|.

        A softcap moves no score by more than its input moves, since the derivative of tanh is at most 1.
        """
        query, key, scale = self.query, self.key, abs(self.scale)
        moved = query.moved * key.longest + query.longest * key.moved + query.moved * key.moved
        largest = scale * query.longest * key.longest + self.bias.largest.max()
        n_term = (
            2 * query.width + 4
        )  # of both computations; scale, bias, mask and row maximum take one rounding each
        n_rounding = 4 if self.softcap is None else 4 + 2 * _CAP_ROUNDINGS
        rounded = dot_bound(n_term, self.dtype) + n_rounding * unit_roundoff(self.dtype)
        return np.asarray(scale * moved + self.bias.difference + rounded * largest)

    @property
    def weights(self) -> Float[np.ndarray, " head"]:
        """How far weights may be apart."""
        return np.asarray(self.scores / 2 + self._sum)

    @property
    def outputs(self) -> Float[np.ndarray, " head"]:
        """How far outputs of heads may be apart, as a share of the largest value.

        All weights of a row together may move by up to twice as much as its scores.
        """
        return np.asarray(2 * self.scores + 2 * self._sum + self.value.share)

    def norms(
        self, stretch: Float[np.ndarray, " head"], d_value: int, d_model: int
    ) -> Float[np.ndarray, " head"]:
        """How far norm-based weights may be apart, as a share of the longest vector v W_O.

        Args:
            stretch: Frobenius norm of each head's W_O, divided by the length of that vector.
        """
        vectors = self.value.moved + 2 * dot_bound(d_value) * self.value.longest
        return np.asarray(self.weights + stretch * vectors + 2 * dot_bound(d_model))

    @property
    def _sum(self) -> float:
        """Roundings of the exponentials and of a sum over the keys, in both computations."""
        return 2 * dot_bound(self.n_key + 8, self.dtype)


def drift(n_calls: int, *, d_model: int, n_key: int, dtype: torch.dtype) -> float:
    """How far vectors of two runs of one network may be apart after some layers, as a share of the largest number.

    Layers that amplify their input, as large random weights do, can carry them further apart.

    Args:
        n_calls: attention calls up to these vectors, their own included.
    """
    n_product = n_calls * (_PRODUCTS * d_model + n_key)
    return likely_bound(n_product) + likely_bound(_ROUNDINGS * n_calls, dtype)
