"""What the page Step by step states of a row, a head and a comparison, of numbers that are written down here."""

import numpy as np
import pytest

from ui.rooms.how_it_works.step_by_step.to_output import head_lengths, row_ends, strongest_dimensions
from ui.rooms.how_it_works.step_by_step.walk import comparison, listed_keys, listed_note

HALVES = np.array([8, 1, 4, 1, 1, 2, 1, 1, 1, 1, 1, 1, 1, 3, 5], dtype=np.float32) / 32
"""15 keys, the strongest 0, 14, 2, 13 and 5; the others are equal."""


def test_of_a_short_row_all_keys_are_listed():
    listed = listed_keys(HALVES[:12], 3)
    assert listed.positions == tuple(range(12))
    assert (listed.n_others, listed.others_weight, listed.are_strongest) == (0, 0, True)
    assert listed_note(listed) == ""


def test_of_a_long_row_the_12_strongest_keys_are_listed():
    """Of those that are equal the first; the three that are not listed have 1/32 each."""
    listed = listed_keys(HALVES, 14)
    assert listed.positions == (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 13, 14)
    assert (listed.n_others, listed.others_weight, listed.are_strongest) == (3, 3 / 32, True)
    assert listed_note(listed) == "The 12 strongest keys; what is not listed, 3 keys, has 9.4% of the weight."


@pytest.mark.parametrize(("own", "are_strongest"), [(1, True), (0.5, False)])
def test_the_selected_key_takes_the_last_place(own, are_strongest):
    """It is among the strongest only if it is as strong as each key that is not listed."""
    row = HALVES.copy()
    row[12] = own / 32
    listed = listed_keys(row, 12)
    assert listed.positions == (0, 1, 2, 3, 4, 5, 6, 7, 8, 12, 13, 14)
    assert (listed.n_others, listed.others_weight) == (3, 3 / 32)
    assert listed.are_strongest is are_strongest
    which = "The 12 strongest keys" if are_strongest else "The 11 strongest keys and the selected one"
    assert listed_note(listed) == f"{which}; what is not listed, 3 keys, has 9.4% of the weight."


def test_the_ends_of_a_row():
    """Among the keys that the query may see; of those that are equal the first."""
    ends = row_ends(np.array([-np.inf, 2, -3, 5, 5, 5, -3], dtype=np.float32))
    assert ends is not None
    assert (ends.highest, ends.n_as_high, ends.lowest, ends.n_as_low) == (3, 2, 2, 1)
    assert row_ends(np.array([-np.inf, -np.inf], dtype=np.float32)) is None


def test_the_rank_of_a_head_by_the_length_that_it_adds():
    parts = np.array([[3, 4], [0, 6], [6, 0], [0, 1], [-4, 3]], dtype=np.float32)  # lengths 5, 6, 6, 1, 5
    ranks = {0: 3, 1: 1, 2: 1, 3: 5, 4: 3}
    for head, rank in ranks.items():
        lengths = head_lengths(parts, head)
        assert (lengths.longest, lengths.n_as_long, lengths.length, lengths.n_head) == (1, 1, 6, 5)
        assert (lengths.own, lengths.rank) == ([5, 6, 6, 1, 5][head], rank)


def test_the_strongest_dimensions_have_the_largest_products_of_either_sign():
    products = np.array([1, -5, 4, 5, -2, 0], dtype=np.float32)
    assert strongest_dimensions(products).tolist() == [1, 3, 2]
    assert strongest_dimensions(products, 2).tolist() == [1, 3]


@pytest.mark.parametrize(
    ("apart", "matches"), [(0, True), (0.0007, True), (-0.0007, True), (0.0009, False), (np.nan, False)]
)
def test_numbers_match_within_a_ten_thousandth_of_the_largest(apart, matches):
    """The verdict's tolerance for hidden states."""
    expected = np.array([1.0, -8.0, 2.0])
    result = comparison(np.array([1.0, -8.0, 2.0 + apart]), expected)
    assert result.matches is matches
    assert result.difference == pytest.approx(abs(apart), nan_ok=True)
    assert comparison(np.zeros(2), np.zeros(2)).matches
    assert not comparison(np.array([1e-15]), np.zeros(1)).matches
