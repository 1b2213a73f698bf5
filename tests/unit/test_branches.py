"""Where texts part, on paper, and what a branch becomes in a link."""

import math

import numpy as np
import pytest

from ui.rooms.generate.step import log_probability, parting


@pytest.mark.parametrize(
    ("ids", "others", "expected"),
    [
        ([1, 2, 3], [[1, 2, 4]], 2),
        ([1, 2, 3], [[9, 2, 3], [1, 9, 3], [1, 8, 3]], 1),
        ([5, 2], [[1, 2]], 0),
        ([1, 2, 3], [[1, 2, 3, 4]], None),
        ([1, 2, 3], [[1, 2]], None),
        ([1, 2, 3], [[1, 2], [1, 9, 3]], None),
        ([1, 2, 3], [], None),
    ],
)
def test_a_text_parts_from_the_one_with_the_longest_common_beginning(ids, others, expected):
    assert parting(ids, others) == expected


def test_the_log_probability_is_that_of_all_tokens_together():
    class Found:
        probabilities = np.array([0.5, 0.25, 0.125], dtype=np.float32)

    assert log_probability(Found()) == pytest.approx(math.log(1 / 64))
