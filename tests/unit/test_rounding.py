"""Unit roundoffs, against those of torch."""

import pytest
import torch

from attnviz.maths.rounding import unit_roundoff


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_is_half_of_the_distance_from_one_to_the_next_number(dtype):
    assert unit_roundoff(dtype) == torch.finfo(dtype).eps / 2
