"""Sums over texts that do not depend on their order, with what the interval of each mean needs.

One concept: the sums. The interval of a mean is that of a Poisson bootstrap: in each of `N_REPLICATE` replicates every text counts
as often as a draw from a Poisson distribution with mean 1 says, and the quantiles of the replicates' means are its ends. The
draws of a text come from its own hash, so that they are the same wherever and whenever it is read, and equal texts share them.

Source: Hanley and MacGibbon 2006, "Creating non-parametric bootstrap samples using Poisson frequencies", Computer Methods and
Programs in Biomedicine 83; Efron and Tibshirani 1993, "An Introduction to the Bootstrap", chapter 13, for the percentile interval.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Float64

N_REPLICATE = 200
"""Replicates of the bootstrap: the ends of an interval then have a standard error of about a tenth of its length."""
INTERVAL = (0.025, 0.975)
"""Quantiles of the replicates' means: an interval of 95%."""


def text_hash(text: str) -> int:
    """A 64-bit hash of a text, the same on every machine."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")


def draws(hashes: Sequence[int]) -> Float[np.ndarray, "replicate text"]:
    """How often each text counts in each replicate; in the first row, which is no replicate, once."""
    drawn = np.ones((N_REPLICATE + 1, len(hashes)), dtype=np.float64)
    for column, hash_ in enumerate(hashes):
        drawn[1:, column] = np.random.default_rng(hash_).poisson(1.0, N_REPLICATE)
    return drawn


@dataclass(slots=True)
class Sums:
    """Sums of some numbers over texts, and how many texts have each."""

    totals: Float64[np.ndarray, "replicate head column"]
    counts: Float64[np.ndarray, "replicate head column"]

    @classmethod
    def none(cls, n_head: int, n_column: int, *, n_replicate: int = N_REPLICATE) -> "Sums":
        """The sums of no text."""
        shape = (n_replicate + 1, n_head, n_column)
        return cls(np.zeros(shape), np.zeros(shape))

    def add(
        self, numbers: Float[np.ndarray, "text head column"], times: Float[np.ndarray, "replicate text"]
    ) -> None:
        """Adds texts; NaN is skipped.

        Args:
            times: how often each text counts; see `draws`.
        """
        is_there = np.isfinite(numbers)
        flat = np.where(is_there, numbers, 0).reshape(len(numbers), -1).astype(np.float64)
        self.totals += (times @ flat).reshape(self.totals.shape)
        self.counts += (times @ is_there.reshape(len(numbers), -1).astype(np.float64)).reshape(
            self.counts.shape
        )

    def means(self) -> Float64[np.ndarray, "replicate head column"]:
        """The mean over the texts that have a number; NaN where none has."""
        none = np.full_like(self.totals, np.nan)
        return np.asarray(np.divide(self.totals, self.counts, out=none, where=self.counts > 0))

    def intervals(self) -> tuple[Float64[np.ndarray, "head column"], Float64[np.ndarray, "head column"]]:
        """The ends of each mean's interval; NaN where a replicate has no text with the number."""
        low, high = np.quantile(self.means()[1:], INTERVAL, axis=0)
        return low, high
