"""Attributions from gradients, against answers worked out on paper."""

import numpy as np
import pytest
import torch

from attnviz.maths import gradients
from attnviz.maths.gradients import completeness_gap, gradient_times_input, integrated_gradients


def linear(weight):
    """f(x) = sum of all w_td x_td, and 7."""
    return lambda vectors: (vectors * weight).sum(dim=(1, 2)) + 7


@pytest.fixture
def drawn():
    torch.manual_seed(0)
    return torch.randn(3, 4), torch.randn(3, 4), torch.randn(3, 4)


def test_of_a_linear_function_every_method_gives_its_terms(drawn):
    weight, inputs, baseline = drawn
    terms = gradient_times_input(linear(weight), inputs)
    np.testing.assert_allclose(terms, (weight * inputs).sum(dim=1), rtol=1e-5)
    for steps in (1, 2, 7):
        found = integrated_gradients(linear(weight), inputs, baseline, steps=steps)
        np.testing.assert_allclose(found, (weight * (inputs - baseline)).sum(dim=1), rtol=1e-5)
        assert abs(completeness_gap(found, linear(weight), inputs, baseline)) < 1e-5


def test_of_a_product_each_factor_gets_half():
    """f = x y from (0, 0) to (3, 4): the integral of 4 a da is 2, times 3; of 3 a da 1.5, times 4. From (1, 0) to (3, 4):
    the integral of 4 a is 2, times 2 is 4; of 1 + 2 a it is 2, times 4 is 8; f rises by 12.
    """

    def product(vectors):
        return vectors[:, 0, 0] * vectors[:, 1, 0]

    ends = torch.tensor([[3.0], [4.0]]), torch.tensor([[0.0], [0.0]])
    np.testing.assert_allclose(integrated_gradients(product, *ends, steps=1), [6, 6], rtol=1e-6)
    ends = ends[0], torch.tensor([[1.0], [0.0]])
    np.testing.assert_allclose(integrated_gradients(product, *ends, steps=1), [4, 8], rtol=1e-6)
    np.testing.assert_allclose(gradient_times_input(product, ends[0]), [12, 12], rtol=1e-6)


def test_of_a_saturated_function_only_the_integral_says_what_it_depends_on():
    """Sundararajan et al. 2017, section 2.1: f(x) = 1 - relu(1 - x) from 0 to 2, where the gradient at 2 is 0."""

    def saturated(vectors):
        return 1 - torch.relu(1 - vectors[:, 0, 0])

    ends = torch.tensor([[2.0]]), torch.tensor([[0.0]])
    assert gradient_times_input(saturated, ends[0]) == [0]
    np.testing.assert_allclose(integrated_gradients(saturated, *ends, steps=200), [1], atol=1e-2)


def test_the_gap_is_the_error_of_the_integral_and_shrinks():
    """f = x^4 from 0 to 1 has the gradient 4 x^3, which 2 points integrate exactly; 1 point, at 1/2, gives 1/2."""
    ends = torch.ones(1, 1), torch.zeros(1, 1)
    gaps = {}
    for steps in (1, 2):
        found = integrated_gradients(lambda vectors: vectors[:, 0, 0] ** 4, *ends, steps=steps)
        gaps[steps] = completeness_gap(found, lambda vectors: vectors[:, 0, 0] ** 4, *ends)
    assert gaps == pytest.approx({1: -0.5, 2: 0}, abs=1e-6)


def test_steps_in_several_batches_are_the_same_integral(drawn, monkeypatch):
    _, *ends = drawn
    whole = integrated_gradients(lambda vectors: vectors.sin().prod(dim=2).sum(dim=1), *ends, steps=20)
    monkeypatch.setattr(gradients, "MOST_VECTORS", 9)  # 3 of the 20 at a time
    told = []
    parts = integrated_gradients(
        lambda vectors: vectors.sin().prod(dim=2).sum(dim=1), *ends, steps=20, progress=told.append
    )
    np.testing.assert_allclose(parts, whole, atol=1e-6)
    assert len(told) == 7 and told[-1] == 1 and told == sorted(told)
