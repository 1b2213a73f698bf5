"""What holds for aligning any two texts, and for comparing any two matrices."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attnviz.figures.comparison import entry_labels
from attnviz.heads.comparison import align, compare
from attnviz.records import Axis
from tests import hand_made

pytestmark = pytest.mark.slow

settings.register_profile("attnviz", deadline=None, derandomize=True, max_examples=50)
settings.load_profile("attnviz")

ROUNDING = 1e-5  # float32: sums of at most 20 weights, with 6e-8 of each lost

TEXTS = st.lists(st.sampled_from(["the", "door", "##s", "old", "·1", "→", "+1"]), min_size=1, max_size=9)


def pattern(labels, seed):
    weights = np.random.default_rng(seed).dirichlet(np.full(len(labels), 0.5), size=len(labels))
    return hand_made.trace(weights[None, None], labels).pattern(0, 0)


@given(TEXTS, TEXTS)
def test_every_entry_of_both_is_there_once_and_in_order(first, second):
    found = align(Axis.of(hand_made.tokens(first)), Axis.of(hand_made.tokens(second)))

    for side, labels in enumerate((first, second)):
        entries = [value for value in found.pairs[:, side].tolist() if value >= 0]
        assert entries == list(range(len(labels)))
    assert (found.pairs >= 0).any(axis=1).all()
    labels = entry_labels(found)
    assert len(set(labels)) == len(found) == len(labels)


@given(TEXTS, TEXTS)
def test_what_is_paired_is_equal_or_stands_in_a_stretch_in_which_nothing_is(first, second):
    pairs = align(Axis.of(hand_made.tokens(first)), Axis.of(hand_made.tokens(second))).pairs.tolist()
    equal = [one >= 0 and other >= 0 and first[one] == second[other] for one, other in pairs]
    start = 0
    for stop in [number for number, same in enumerate(equal) if same] + [len(pairs)]:
        between = pairs[start:stop]
        paired = [min(one) >= 0 for one in between]
        assert all(paired) or not any(paired)
        start = stop + 1


@given(TEXTS)
def test_a_text_is_aligned_with_itself_entry_by_entry(labels):
    axis = Axis.of(hand_made.tokens(labels))
    assert align(axis, axis).pairs.tolist() == [[number, number] for number in range(len(labels))]


@given(TEXTS, st.integers(0, 99))
def test_a_matrix_does_not_differ_from_itself(labels, seed):
    one = pattern(labels, seed)
    found = compare(one, one)

    np.testing.assert_array_equal(found.difference, np.zeros((len(labels), len(labels))))
    np.testing.assert_array_equal(found.row_change, np.zeros(len(labels)))
    assert found.largest(5) == ()


@given(TEXTS, TEXTS, st.integers(0, 99))
def test_no_number_is_lost_and_shares_are_shares(first, second, seed):
    a, b = pattern(first, seed), pattern(second, seed + 100)
    found = compare(a, b)

    for given_weights, laid_out in ((a.weights, found.first_weights), (b.weights, found.second_weights)):
        assert sorted(laid_out[np.isfinite(laid_out)]) == sorted(given_weights.ravel())
    change = found.row_change[found.queries.is_paired]
    assert ((change >= 0) & (change <= 1 + ROUNDING)).all()
    assert np.isnan(found.row_change[~found.queries.is_paired]).all()


@given(TEXTS, TEXTS, st.integers(0, 99))
def test_largest_changes_are_the_difference_in_order(first, second, seed):
    found = compare(pattern(first, seed), pattern(second, seed + 100))
    listed = found.largest(found.difference.size)
    sizes = [abs(one.difference) for one in listed]

    np.testing.assert_allclose(sizes, sorted(sizes, reverse=True), atol=ROUNDING)
    assert len(listed) == int((np.nan_to_num(found.difference) != 0).sum())
    for one in listed:
        np.testing.assert_allclose(one.difference, found.difference[one.query, one.key], atol=ROUNDING)


@given(TEXTS, st.integers(0, 99))
def test_exchanging_two_matrices_changes_the_sign(labels, seed):
    a, b = pattern(labels, seed), pattern(labels, seed + 100)
    np.testing.assert_array_equal(compare(a, b).difference, -compare(b, a).difference)
    np.testing.assert_array_equal(compare(a, b).row_change, compare(b, a).row_change)
