"""Unit roundoffs, against those of torch."""

import pytest
import torch

from attnviz.maths.rounding import is_exact_factor, unit_roundoff


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_is_half_of_the_distance_from_one_to_the_next_number(dtype):
    assert unit_roundoff(dtype) == torch.finfo(dtype).eps / 2


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("factor", [0.125, -0.5, 1.0, 4.0, 3.0, 32**-0.5, 0.1])
def test_a_factor_is_exact_where_no_product_is_rounded(factor, dtype):
    numbers = (1 + torch.randn(10_000, generator=torch.Generator().manual_seed(0)).abs()).to(dtype)
    held = torch.tensor(factor, dtype=dtype)
    is_exact = bool((numbers * held == numbers.double() * factor).all())
    assert is_exact_factor(factor, dtype) == is_exact


def test_a_factor_that_the_type_does_not_hold_is_not_exact():
    assert not is_exact_factor(2.0**-20, torch.float16)
    assert not is_exact_factor(2.0**20, torch.float16)
    assert not is_exact_factor(0.0, torch.float32)
