"""Sums over texts: their means and intervals against numpy and scipy, and that neither order nor shards change them."""

import numpy as np
import pytest
from scipy import stats

from attnviz.corpus.sums import N_REPLICATE, Sums, draws, text_hash

RANDOM = np.random.default_rng(0)
TEXTS = [f"text {number}" for number in range(400)]
HASHES = [text_hash(text) for text in TEXTS]
NUMBERS = RANDOM.normal(3, 2, (400, 4, 3)).astype(np.float32)
NUMBERS[RANDOM.random(NUMBERS.shape) < 0.2] = np.nan
NUMBERS[:, 3, 2] = np.nan


def summed(order, *, n_shard):
    sums = Sums.none(4, 3)
    for shard in np.array_split(np.asarray(order), n_shard):
        sums.add(NUMBERS[shard], draws([HASHES[text] for text in shard]))
    return sums


def test_means_are_those_of_the_texts_that_have_a_number():
    means = summed(range(400), n_shard=1).means()[0]
    with np.errstate(all="ignore"):
        expected = np.nanmean(NUMBERS[:, :3].astype(np.float64), axis=0)
    np.testing.assert_allclose(means[:3], expected, rtol=1e-12)
    assert np.isnan(means[3, 2])


def test_order_and_shards_change_nothing():
    whole, other = summed(range(400), n_shard=1), summed(RANDOM.permutation(400), n_shard=7)
    np.testing.assert_allclose(whole.means(), other.means(), rtol=1e-9)
    for ours, theirs in zip(whole.intervals(), other.intervals(), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9)


def test_an_interval_is_about_as_long_as_the_theory_says():
    """The percentile interval of a mean of many independent numbers is near the normal one."""
    low, high = summed(range(400), n_shard=3).intervals()
    for head, column in np.ndindex(3, 3):
        there = NUMBERS[:, head, column][np.isfinite(NUMBERS[:, head, column])]
        half = stats.norm.ppf(0.975) * there.std(ddof=1) / np.sqrt(len(there))
        assert high[head, column] - low[head, column] == pytest.approx(2 * half, rel=0.25)
        assert low[head, column] < there.mean() < high[head, column]


def test_a_text_counts_once_and_in_replicates_as_a_poisson_draw_says():
    times = draws(HASHES)
    assert times.shape == (N_REPLICATE + 1, 400)
    assert (times[0] == 1).all()
    assert times[1:].mean() == pytest.approx(1, abs=0.02)
    assert times[1:].var() == pytest.approx(1, abs=0.02)
    np.testing.assert_array_equal(times[:, 5], draws([HASHES[5]])[:, 0])


def test_a_hash_is_of_the_text_alone():
    assert text_hash("a") == int("ca978112ca1bbdca", 16)  # the beginning of SHA-256 of "a" (FIPS 180-4)
    assert len(set(HASHES)) == 400
