"""Which tokens the methods rank first, of numbers that are written down here."""

import numpy as np
import pytest

from attnviz.effects.input_attribution import InputAttribution
from attnviz.maths.gradients import PathIntegral
from ui.rooms.cause.inputs.attributions import first_tokens

NAN = float("nan")
ALL = np.ones(4, dtype=bool)


def of(method, values, difference=None, error=0.0):
    integral = None
    numbers = np.array(values, dtype=np.float32)
    if difference is not None:
        integral = PathIntegral(values=numbers, difference=difference, error=error, n_points=40)
    return InputAttribution(method=method, values=numbers, integral=integral)


GRADIENT = of("gradient_times_input", [1, -4, 3, 2])
REPLACED = of("token_replaced", [2, -1, 3, -3])
MASKED = of("keys_masked", [0, -4, 2, 1])
NORMS = of("norms", [9, 1, 1, 1])  # it knows nothing of the outcome


@pytest.mark.parametrize(
    ("difference", "direction", "tokens", "n_same"),
    [
        (6.0, 1, (2,), 4),  # 3, 3, 2 and 7 are the largest
        (-6.0, -1, (1,), 3),  # -4, -4 and -5 are the smallest; of one method -3
        (0.0, 0, (2,), 4),
    ],
)
def test_the_first_token_is_that_which_moves_the_outcome_most_in_the_direction_of_all(
    difference, direction, tokens, n_same
):
    integrated = of("integrated_gradients", [1, -5, 7, 0], difference)
    first = first_tokens([GRADIENT, integrated, REPLACED, MASKED, NORMS], ALL)
    assert (first.direction, first.tokens, first.n_same) == (direction, tokens, n_same)
    assert (first.n_token, first.n_method, first.n_undecided) == (4, 4, 0)


def test_without_integrated_gradients_no_direction_is_known():
    first = first_tokens([GRADIENT, REPLACED, MASKED], ALL)
    assert (first.direction, first.tokens, first.n_same) == (0, (2,), 3)


def test_tokens_that_may_not_be_deleted_are_not_ranked():
    first = first_tokens([GRADIENT, MASKED, REPLACED], np.array([True, True, False, False]))
    assert (first.n_token, first.tokens, first.n_same) == (2, (0,), 3)


def test_integrated_gradients_that_did_not_converge_only_tell_the_direction():
    """An error of 0.3 of 6 is more than the tolerated 2%."""
    integrated = of("integrated_gradients", [1, -5, 7, 0], -6.0, error=0.3)
    first = first_tokens([GRADIENT, integrated, REPLACED], ALL)
    assert (first.direction, first.n_method) == (-1, 2)
    assert (first.tokens, first.n_same) == ((1, 3), 1)  # tied


def test_methods_without_a_single_first_token_are_undecided():
    tied, none = of("keys_masked", [2, 2, 1, 0]), of("token_replaced", [NAN] * 4)
    first = first_tokens([GRADIENT, tied, none], ALL)
    assert (first.n_method, first.n_undecided, first.tokens, first.n_same) == (3, 2, (2,), 1)
    neither = first_tokens([tied, none], ALL)
    assert (neither.n_undecided, neither.tokens, neither.n_same) == (2, (), 0)


def test_the_correlation_of_two_orders():
    """Spearman's 1 - 6 Σd² / n(n² - 1) of the ranks 3 1 4 2 and 1 2 4 3: Σd² = 6, so 1 - 36 / 60."""
    orders = of("keys_masked", [7, 1, 9, 3]), of("token_replaced", [-1, 0, 8, 5])
    assert first_tokens(orders, ALL).correlation == pytest.approx(0.4)
    three = np.array([True, True, True, False])
    assert first_tokens(orders, three).correlation == pytest.approx(0.5)  # ranks 2 1 3 and 1 2 3: Σd² = 2
    assert first_tokens(orders, np.array([True, True, False, False])).correlation is None  # of two tokens
    assert first_tokens(orders[:1], ALL).correlation is None
    assert first_tokens([orders[0], of("token_replaced", [1, 1, 1, 1])], ALL).correlation is None
    assert first_tokens([orders[0], of("token_replaced", [1, NAN, 2, 3])], ALL).correlation is None
