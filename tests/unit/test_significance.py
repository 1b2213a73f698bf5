"""p-values from random draws, and their correction: how often methods whose orders are random pass."""

from fractions import Fraction

import numpy as np
import pytest

from attnviz.effects.attribution_methods import METHODS
from attnviz.effects.deletion import LEVEL, N_ORDERS
from attnviz.maths.significance import holm, p_value

N_TEXT = 2000


def test_a_p_value_counts_the_number_itself():
    assert [p_value(number, 199) for number in (0, 9, 199)] == [0.005, 0.05, 1]


@pytest.mark.parametrize(
    ("p_values", "passed"),
    [
        (
            [0.01, 0.04, 0.03],
            [True, False, False],
        ),  # 0.03 is above 0.05 / 2, and so 0.04 does not pass either
        ([0.01, 0.04, 0.02], [True, True, True]),
        ([0.02], [True]),
        ([0.02, 0.5, 0.5], [False, False, False]),
        ([float("nan"), 0.02], [False, True]),
        ([], []),
    ],
)
def test_holm_on_paper(p_values, passed):
    assert holm(p_values, 0.05).tolist() == passed


def test_at_the_level_itself_a_test_passes():
    """Quotients are rounded: each p-value of the random orders is compared as the fraction that it is."""
    for n_test in range(1, len(METHODS) + 1):
        for n_as_good in range(N_ORDERS + 1):
            passed = holm([p_value(n_as_good, N_ORDERS)] * n_test, 0.05)
            assert passed.all() == (Fraction(1 + n_as_good, 1 + N_ORDERS) <= Fraction(5, 100) / n_test)
            assert passed.all() == passed.any()


def test_the_random_orders_are_enough_for_one_method_to_pass():
    assert holm([p_value(0, N_ORDERS), *[1.0] * (len(METHODS) - 1)], LEVEL).any()


@pytest.mark.parametrize("n_value", [None, 40], ids=["continuous", "with ties"])
def test_random_methods_pass_in_at_most_one_text_of_twenty(n_value):
    """Seven methods that order tokens at random, in 2,000 texts; the 95th percentile for each passes in more than a fifth."""
    random = np.random.default_rng(3)

    def draw(count):
        return random.random(count) if n_value is None else random.integers(n_value, size=count)

    n_holm = n_percentile = 0
    for _ in range(N_TEXT):
        by_chance, areas = draw(N_ORDERS), draw(len(METHODS))
        as_good = [int((by_chance >= area).sum()) for area in areas]
        n_holm += holm([p_value(count, N_ORDERS) for count in as_good], LEVEL).any()
        n_percentile += (areas > np.percentile(by_chance, 95)).any()
    least = 0.05 + 3 * (0.05 * 0.95 / N_TEXT) ** 0.5  # three standard errors
    assert n_holm / N_TEXT < least
    assert n_percentile / N_TEXT > 0.2
