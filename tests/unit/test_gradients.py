"""Attributions from gradients, against answers worked out on paper."""

from functools import reduce

import numpy as np
import pytest
import torch

from attnviz.maths import gradients
from attnviz.maths.gradients import (
    FIRST_PANELS,
    MOST_POINTS,
    NODES,
    PathIntegral,
    gradient_times_input,
    integrated_gradients,
)


def linear(weight):
    """f(x) = the sum of all w_td x_td, plus 7."""
    return lambda vectors: (vectors * weight).sum(dim=(1, 2)) + 7


@pytest.fixture
def drawn():
    torch.manual_seed(0)
    return torch.randn(3, 4), torch.randn(3, 4), torch.randn(3, 4)


def test_of_a_linear_function_every_method_gives_its_terms(drawn):
    weight, inputs, baseline = drawn
    terms = gradient_times_input(linear(weight), inputs)
    np.testing.assert_allclose(terms, (weight * inputs).sum(dim=1), rtol=1e-5)
    integral = integrated_gradients(linear(weight), inputs, baseline)
    expected = (weight * (inputs - baseline)).sum(dim=1)
    np.testing.assert_allclose(integral.values, expected, rtol=1e-5)
    assert integral.difference == pytest.approx(float(expected.sum()), rel=1e-5)
    assert integral.converged and integral.error < 1e-5 and integral.n_points == FIRST_PANELS * NODES


def test_of_a_product_each_factor_gets_half():
    """f = x y from (0, 0) to (3, 4): the integral of 4 a da is 2, times 3; of 3 a da 1.5, times 4. From (1, 0) to (3, 4):
    the integral of 4 a is 2, times 2 is 4; of 1 + 2 a it is 2, times 4 is 8; f rises by 12.
    """

    def product(vectors):
        return vectors[:, 0, 0] * vectors[:, 1, 0]

    ends = torch.tensor([[3.0], [4.0]]), torch.tensor([[0.0], [0.0]])
    np.testing.assert_allclose(integrated_gradients(product, *ends).values, [6, 6], rtol=1e-6)
    ends = ends[0], torch.tensor([[1.0], [0.0]])
    np.testing.assert_allclose(integrated_gradients(product, *ends).values, [4, 8], rtol=1e-6)
    np.testing.assert_allclose(gradient_times_input(product, ends[0]), [12, 12], rtol=1e-6)


def test_of_a_saturated_function_only_the_integral_says_what_it_depends_on():
    """Sundararajan et al. 2017, section 2.1: f(x) = 1 - relu(1 - x) from 0 to 2, where the gradient at 2 is 0."""

    def saturated(vectors):
        return 1 - torch.relu(1 - vectors[:, 0, 0])

    ends = torch.tensor([[2.0]]), torch.tensor([[0.0]])
    assert gradient_times_input(saturated, ends[0]) == [0]
    np.testing.assert_allclose(integrated_gradients(saturated, *ends).values, [1], atol=1e-2)


def step(width):
    """f = 1 / (1 + exp(-(x + y - 0.345) / width)), which rises from 0 to 1 near one place, by 1 / (4 width) there."""
    return lambda vectors: torch.sigmoid((vectors.double().sum(dim=(1, 2)) - 0.345) / width)


@pytest.mark.parametrize("width", [0.1, 0.01, 1e-3, 1e-4])
def test_points_are_placed_where_the_function_rises(width):
    """From (0, 0) to (0.25, 0.75) the gradients of both are equal, so x gets a quarter of the rise and y the rest."""
    ends = torch.tensor([[0.25], [0.75]]), torch.zeros(2, 1)
    rise = float(step(width)(ends[0][None]) - step(width)(ends[1][None]))
    integral = integrated_gradients(step(width), *ends)
    assert integral.converged and integral.difference == pytest.approx(rise, abs=1e-6)
    np.testing.assert_allclose(integral.values, [0.25 * rise, 0.75 * rise], atol=0.02 * rise)
    assert integral.n_points < 300


def test_points_stay_below_the_most():
    ends = torch.tensor([[0.25], [0.75]]), torch.zeros(2, 1)
    told = []
    integral = integrated_gradients(
        step(1e-3), *ends, most_points=(FIRST_PANELS + 3) * NODES - 1, progress=told.append
    )
    assert (
        integral.n_points == (FIRST_PANELS + 2) * NODES and not integral.converged and integral.error > 0.02
    )
    assert told == pytest.approx([40 / 54, 50 / 54])


@pytest.mark.parametrize("n_part", [1, 3])
def test_a_part_of_the_path_has_its_share_of_the_points(n_part):
    """A wave of 800 periods never converges."""
    told = []
    integral = integrated_gradients(
        lambda vectors: (5000 * vectors[:, 0, 0]).sin(),
        torch.ones(1, 1),
        torch.zeros(1, 1),
        part=(0, n_part),
        progress=told.append,
    )
    assert integral.n_points == MOST_POINTS // n_part and not integral.converged
    assert told[-1] == max(told) == 1.0


def test_the_share_of_the_points_that_is_told_is_at_most_the_whole():
    told = []
    integrated_gradients(
        lambda vectors: vectors[:, 0, 0].sin(),
        torch.ones(1, 1),
        torch.zeros(1, 1),
        most_points=FIRST_PANELS * NODES // 2,
        progress=told.append,
    )
    assert told == [1.0]


@pytest.mark.parametrize(
    ("values", "difference", "error", "converged"),
    [
        ([-4.0, 1.0], 0.5, 0.04, True),  # 0.01 of the largest value, whatever its sign
        ([-4.0, 1.0], 0.5, 0.0401, False),
        ([0.25, 1.0], -10.0, 0.1, True),  # of the difference, which is larger
        ([0.25, 1.0], -10.0, 0.1001, False),
        ([0.0], 0.0, 1e-6, True),  # rounding
        ([0.0], 0.0, 1.1e-6, False),
        ([], 0.0, 1e-6, True),
    ],
)
def test_an_integral_has_converged_where_its_error_is_small_beside_it(values, difference, error, converged):
    integral = PathIntegral(values=np.array(values), difference=difference, error=error, n_points=5)
    assert integral.converged is converged


def test_a_jump_is_not_integrated_and_that_is_said():
    """f = x, plus 10 above 0.345: where it exists the gradient is 1, so the sum is 10 below the difference."""

    def jumping(vectors):
        return vectors[:, 0, 0] + 10 * (vectors[:, 0, 0] > 0.345)

    integral = integrated_gradients(jumping, torch.ones(1, 1), torch.zeros(1, 1), most_points=2000)
    assert not integral.converged and integral.n_points < 1000
    assert integral.values == pytest.approx([1], abs=1e-4)
    assert integral.difference == pytest.approx(11) and integral.error == pytest.approx(10, abs=1e-3)


def test_errors_of_panels_do_not_cancel():
    """f = sin 109 x + 3 x goes up and down 17 times: panels err in both directions, so their sum may be right by chance."""

    def wave(vectors):
        return (109 * vectors[:, 0, 0]).sin() + 3 * vectors[:, 0, 0]

    rise = np.sin(109) + 3
    few = integrated_gradients(wave, torch.ones(1, 1), torch.zeros(1, 1), most_points=1)
    integral = integrated_gradients(wave, torch.ones(1, 1), torch.zeros(1, 1))
    assert not few.converged and few.error > abs(float(few.values.sum()) - rise)
    assert integral.converged and abs(float(integral.values.sum()) - rise) <= integral.error + 1e-5
    assert integral.values == pytest.approx([rise], abs=0.02 * rise)


def test_points_in_several_batches_are_the_same_integral(drawn, monkeypatch):
    _, *ends = drawn
    whole = integrated_gradients(lambda vectors: vectors.sin().prod(dim=2).sum(dim=1), *ends)
    monkeypatch.setattr(gradients, "MOST_VECTORS", 9)  # 3 points at a time
    told = []
    parts = integrated_gradients(
        lambda vectors: vectors.sin().prod(dim=2).sum(dim=1), *ends, progress=told.append
    )
    assert told[:2] == pytest.approx([3 / 480, 6 / 480]) and told == sorted(told)
    np.testing.assert_allclose(parts.values, whole.values, atol=1e-6)
    assert parts.n_points == whole.n_points


@pytest.mark.parametrize("n_part", [2, 3])
def test_parts_of_the_path_are_the_whole(n_part):
    ends = torch.tensor([[0.25], [0.75]]), torch.zeros(2, 1)
    parts = [integrated_gradients(step(0.01), *ends, part=(number, n_part)) for number in range(n_part)]
    rise = parts[0].difference
    for number, part in enumerate(parts):  # what f rises by within each
        first, last = (float(step(0.01)(ends[0][None] * (number + side) / n_part)) for side in (0, 1))
        assert part.values.sum() == pytest.approx(last - first, abs=0.02 * rise / n_part)
        assert part.difference == pytest.approx(rise) and part.converged
    whole = reduce(PathIntegral.joined, parts)
    np.testing.assert_allclose(whole.values, [0.25 * rise, 0.75 * rise], atol=0.02 * rise)
    assert whole.converged and whole.error == pytest.approx(sum(part.error for part in parts))
    assert whole.n_points == sum(part.n_points for part in parts)
