"""Sums over texts that do not depend on their order, and the interval of 95% of each mean and share.

The sums are kept by group: the hash of a text puts it into one of `N_GROUP`, so that equal texts weigh together
and any number of texts takes the same memory. A mean is the total over all groups divided by the count, and its
variance is that of what each group's total differs from the mean times the group's count. Nothing is drawn at random.
docs/corpus.md has the measured coverage.

Source: Cochran 1977, "Sampling Techniques", section 6.3, for the variance of a ratio; Wolter 2007, "Introduction to Variance
Estimation", chapter 2, for groups; the papers of the intervals are with them.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Float64, Int
from scipy.stats import t as students_t

from attnviz.maths.quotients import quotients

LEVEL = 0.95
"""The share of intervals that hold what they are an interval of."""
N_GROUP = 256
FEWEST_TEXTS = 20
"""Fewest texts with a number for which its mean has an interval; copies count, but weigh as one text."""

Ends = tuple[Float64[np.ndarray, "head column"], Float64[np.ndarray, "head column"]]


def text_hash(text: str) -> int:
    """A 64-bit hash of a text, the same on every machine."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")


@dataclass(slots=True)
class Sums:
    """Sums of some numbers over texts, by group of texts."""

    totals: Float64[np.ndarray, "group head column"]
    counts: Float64[np.ndarray, " group #head #column"]
    """Texts that have each number, or words that each is a count of."""
    texts: Int[np.ndarray, " #head #column"]
    """Texts that have each number."""

    @classmethod
    def none(cls, n_head: int, n_column: int, *, n_group: int = N_GROUP, of_words: bool = False) -> "Sums":
        """The sums of no text.

        Args:
            of_words: the numbers are counts of words, and all of a text are of the same words.
        """
        shape = (1, 1) if of_words else (n_head, n_column)
        return cls(
            np.zeros((n_group, n_head, n_column)),
            np.zeros((n_group, *shape)),
            np.zeros(shape, dtype=np.int64),
        )

    def add(
        self,
        numbers: Float[np.ndarray, "text head column"] | Int[np.ndarray, "text head column"],
        hashes: Sequence[int],
        n_words: Sequence[int] | None = None,
    ) -> None:
        """Adds texts; NaN is skipped.

        Args:
            hashes: of the texts; see `text_hash`.
            n_words: how many words of each text the numbers are counts of; None for numbers of the text.
        """
        groups = np.array([hash_ % len(self.totals) for hash_ in hashes], dtype=np.intp)
        is_there = np.isfinite(numbers)
        counts = is_there if n_words is None else np.reshape(n_words, (-1, 1, 1))
        np.add.at(self.totals, groups, np.where(is_there, numbers, 0).astype(np.float64))
        np.add.at(self.counts, groups, counts.astype(np.float64))
        self.texts += (counts > 0).sum(axis=0)

    def means(self) -> Float64[np.ndarray, "head column"]:
        """The mean over the texts that have a number, or the share of words; NaN where there are none."""
        totals, counts = self.totals.sum(axis=0), self.counts.sum(axis=0)
        return quotients(totals, counts)

    def mean_intervals(self) -> Ends:
        """The ends of each mean's interval; NaN where too few texts have the number.

        Student's t of the mean, with its skewness removed.

        Source: Hall 1992, "On the removal of skewness by transformation", Journal of the Royal Statistical Society B 54, with the
        quantiles of Student's t for the normal ones.
        """
        means, error, skew, quantile = self._errors()
        nearly_none = np.abs(skew) < 1e-6
        k = np.where(nearly_none, 1.0, skew)
        low, high = (
            means - error * np.where(nearly_none, q, 3 / k * (np.cbrt(1 + k * (q - k / 6)) - 1))
            for q in (quantile, -quantile)
        )
        return low, high

    def share_intervals(self) -> Ends:
        """The ends of the interval of each share of words; NaN where too few texts have such words.

        Wilson's, for as many independent words as would have the variance that is measured over texts, at most all words; where all or
        none are counted, for as many as there are texts.

        Source: Wilson 1927, Journal of the American Statistical Association 22; Korn and Graubard 1998, Survey Methodology 24, for
        the number of words and Student's t.
        """
        shares, error, _, quantile = self._errors()
        spread = shares * (1 - shares)
        n_words, n_group = self.counts.sum(axis=0), (self.counts > 0).sum(axis=0)
        with np.errstate(divide="ignore", invalid="ignore"):
            n = np.where(spread > 0, np.minimum(spread / error**2, n_words), n_group)
            widened = 1 + quantile**2 / n
            middle = (shares + quantile**2 / (2 * n)) / widened
            half = quantile / widened * np.sqrt(spread / n + quantile**2 / (4 * n**2))
        return middle - half, middle + half

    def _errors(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Means, their standard errors, the skewness of the means, and the quantile of Student's t; NaN where there are too few texts."""
        means, counts = self.means(), self.counts.sum(axis=0)
        n_group = (self.counts > 0).sum(axis=0)
        enough = (self.texts >= FEWEST_TEXTS) & (n_group > 1)
        rest = self.totals - np.nan_to_num(means) * self.counts  # [group, head, column]
        squares = (rest**2).sum(axis=0)
        with np.errstate(divide="ignore", invalid="ignore"):
            error = np.sqrt(squares * n_group / (n_group - 1)) / counts
            skew = np.where(squares > 0, (rest**3).sum(axis=0) / squares**1.5, 0.0)
        quantile = students_t.ppf((1 + LEVEL) / 2, np.where(enough, n_group - 1, np.nan))
        return means, error, skew, np.broadcast_to(quantile, means.shape)
