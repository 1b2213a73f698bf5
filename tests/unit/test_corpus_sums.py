"""Sums over texts: their means against numpy, their intervals against the papers' equations solved by root finding, how often these
hold what they are intervals of, and that neither order nor shards nor copies change them."""

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import brentq

from attnviz.corpus.sums import FEWEST_TEXTS, N_GROUP, Sums, text_hash

RANDOM = np.random.default_rng(0)
TEXTS = [f"text {number}" for number in range(400)]
HASHES = [text_hash(text) for text in TEXTS]
NUMBERS = RANDOM.normal(3, 2, (400, 4, 3)).astype(np.float32)
NUMBERS[RANDOM.random(NUMBERS.shape) < 0.2] = np.nan
NUMBERS[:, 3, 2] = np.nan
ALONE = list({hash_ % N_GROUP: hash_ for hash_ in HASHES}.values())
"""Hashes of texts that share a group with no other."""


def summed(order, *, n_shard):
    sums = Sums.none(4, 3)
    for shard in np.array_split(np.asarray(order), n_shard):
        sums.add(NUMBERS[shard], [HASHES[text] for text in shard])
    return sums


def of_one(numbers, hashes=ALONE):
    """The mean and interval of some numbers, a text each."""
    sums = Sums.none(1, 1)
    sums.add(np.asarray(numbers, dtype=float)[:, None, None], hashes[: len(numbers)])
    return tuple(float(end[0, 0]) for end in (sums.means(), *sums.mean_intervals()))


def share_of(found, words, hashes=ALONE):
    """The share of words and its interval."""
    sums = Sums.none(1, 1, of_words=True)
    sums.add(np.asarray(found)[:, None, None], hashes[: len(found)], np.asarray(words).tolist())
    return tuple(float(end[0, 0]) for end in (sums.means(), *sums.share_intervals()))


def test_means_are_those_of_the_texts_that_have_a_number():
    means = summed(range(400), n_shard=1).means()
    with np.errstate(all="ignore"):
        expected = np.nanmean(NUMBERS[:, :3].astype(np.float64), axis=0)
    np.testing.assert_allclose(means[:3], expected, rtol=1e-12)
    assert np.isnan(means[3, 2])


def test_order_and_shards_change_nothing():
    whole, other = summed(range(400), n_shard=1), summed(RANDOM.permutation(400), n_shard=7)
    np.testing.assert_allclose(whole.means(), other.means(), rtol=1e-9)
    for ours, theirs in zip(whole.mean_intervals(), other.mean_intervals(), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9)


@pytest.mark.parametrize("n_text", [20, 33, 150])
@pytest.mark.parametrize(
    "draw", [stats.expon.rvs, stats.beta(0.3, 3).rvs, stats.beta(5, 1).rvs, stats.norm.rvs]
)
def test_an_interval_is_where_halls_statistic_reaches_students_t(draw, n_text):
    """Hall 1992: T + k T^2 / 3 + k^2 T^3 / 27 + k / 6 with k the skewness over the root of n, solved by halving."""
    numbers = draw(size=n_text, random_state=n_text)
    error, k = stats.sem(numbers), stats.skew(numbers) / np.sqrt(n_text)

    def beyond(mean, quantile):
        t = (numbers.mean() - mean) / error
        return t + k * t**2 / 3 + k**2 * t**3 / 27 + k / 6 - quantile

    expected = [
        brentq(beyond, numbers.mean() - 50 * error, numbers.mean() + 50 * error, args=(quantile,))
        for quantile in stats.t.ppf((0.975, 0.025), n_text - 1)
    ]
    assert of_one(numbers) == pytest.approx((numbers.mean(), *expected), rel=1e-9)


def test_of_numbers_without_skewness_it_is_students_t():
    numbers = np.repeat([2.0, 5.0], 12)
    expected = stats.t.interval(0.95, 23, loc=3.5, scale=stats.sem(numbers))
    assert of_one(numbers) == pytest.approx((3.5, *expected))


@pytest.mark.parametrize("n_text", [20, 150])
@pytest.mark.parametrize("share", [0.1, 0.5, 0.95])
def test_the_interval_of_a_share_is_wilsons_of_words_as_uncertain_as_the_texts(share, n_text):
    """The shares from which the measured one is as far as Student's t allows with the variance of that share, for as many independent
    words as have the variance of the ratio (a jackknife over texts, at most all words)."""
    random = np.random.default_rng(n_text)
    words = 1 + random.poisson(2, n_text)
    found = random.binomial(words, random.beta(2 * share, 2 * (1 - share), n_text))
    measured = found.sum() / words.sum()
    residuals = found - measured * words
    variance = n_text * residuals.var(ddof=1) / words.sum() ** 2
    n = min(measured * (1 - measured) / variance, words.sum())

    def beyond(true, sign):
        return measured - true - sign * stats.t.ppf(0.975, n_text - 1) * np.sqrt(true * (1 - true) / n)

    expected = brentq(beyond, 0, measured, args=(1,)), brentq(beyond, measured, 1, args=(-1,))
    assert share_of(found, words) == pytest.approx((measured, *expected), rel=1e-9)


def test_where_every_word_is_found_it_is_of_as_many_words_as_texts():
    """Wilson 1927: n / (n + t^2) to 1."""
    square = stats.t.ppf(0.975, 24) ** 2
    assert share_of([3] * 25, [3] * 25) == pytest.approx((1.0, 25 / (25 + square), 1.0))
    assert share_of([0] * 25, [3] * 25) == pytest.approx((0.0, 0.0, square / (25 + square)))


def test_texts_of_equal_shares_are_of_all_their_words():
    """One of two words in each of 25 texts, which differ in nothing: Wilson's interval of 25 of 50 words."""
    low, high = (
        0.5 + sign * 0.5 * np.sqrt((t2 := stats.t.ppf(0.975, 24) ** 2) / (50 + t2)) for sign in (-1, 1)
    )
    assert share_of([1] * 25, [2] * 25) == pytest.approx((0.5, low, high))


def test_equal_texts_weigh_together():
    """Each of 30 texts ten times: the interval of 30 means, not that of 300 numbers."""
    numbers = RANDOM.gamma(1, 1, 30)
    once = of_one(numbers)
    ten_times = of_one(np.repeat(numbers, 10), np.repeat(np.array(ALONE[:30], dtype=object), 10).tolist())
    assert ten_times == pytest.approx(once)


@pytest.mark.parametrize("seed", range(20))
def test_which_numbers_have_an_interval_depends_on_the_number_of_texts_alone(seed):
    """Whatever the texts are, 20 have an interval and 19 none; a number that is missing in some counts without these."""
    hashes = [text_hash(f"{seed} {number}") for number in range(40)]
    numbers = np.random.default_rng(seed).random((40, 1, 2))
    numbers[20:, 0, 0] = np.nan
    numbers[:21, 0, 1] = np.nan
    sums = Sums.none(1, 2)
    sums.add(numbers, hashes)
    for end in sums.mean_intervals():
        assert np.isfinite(end).tolist() == [[True, False]]
    assert FEWEST_TEXTS == 20
    assert np.isfinite(share_of([1] * 20, [2] * 20, hashes)).all()
    assert np.isnan(share_of([1] * 19, [2] * 19, hashes)[1:]).all()


def test_copies_of_one_text_have_no_interval():
    assert np.isnan(of_one([0.5] * 100, [HASHES[0]] * 100)[1:]).all()


DISTRIBUTIONS = {
    "Beta(0.3, 3)": (stats.beta(0.3, 3), 1 / 11),
    "Beta(0.5, 0.5)": (stats.beta(0.5, 0.5), 0.5),
    "Beta(6, 0.5)": (stats.beta(6, 0.5), 12 / 13),
    "exponential": (stats.expon, 1.0),
    "normal": (stats.norm(3, 1), 3.0),
}


@pytest.mark.parametrize("n_text", [20, 50, 300])
@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_of_100_intervals_about_95_hold_the_mean(name, n_text):
    """Two thousand runs, each with texts of its own; three standard errors are 1.5%, and 1.5% is the error of the method."""
    distribution, mean = DISTRIBUTIONS[name]
    random = np.random.default_rng(n_text)
    held = []
    for texts in range(40):
        sums = Sums.none(1, 50)
        hashes = [text_hash(f"{texts} {number}") for number in range(n_text)]
        sums.add(distribution.rvs(size=(n_text, 1, 50), random_state=random), hashes)
        low, high = sums.mean_intervals()
        held.append((low <= mean) & (mean <= high))
    assert 0.92 < np.mean(held) < 0.985


@pytest.mark.parametrize("share", [0.03, 0.5, 0.9])
def test_of_100_intervals_of_shares_about_95_hold_the_share(share):
    """A thousand runs of 25 texts; texts differ, and a share of 3% is often of no word found."""
    random = np.random.default_rng(1)
    held = []
    for _ in range(1000):
        words = 1 + random.poisson(2, 25)
        found = random.binomial(words, random.beta(9 * share, 9 * (1 - share), 25))
        _, low, high = share_of(found, words)
        held.append(low <= share <= high)
    assert 0.93 < np.mean(held) < 0.99


def test_a_hash_is_of_the_text_alone():
    assert text_hash("a") == int("ca978112ca1bbdca", 16)  # the beginning of SHA-256 of "a" (FIPS 180-4)
    assert len(set(HASHES)) == 400
