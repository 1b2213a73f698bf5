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
    alignment = align(Axis.of(hand_made.tokens(first)), Axis.of(hand_made.tokens(second)))

    for side, labels in enumerate((first, second)):
        entries = [value for value in alignment.pairs[:, side].tolist() if value >= 0]
        assert entries == list(range(len(labels)))
    assert (alignment.pairs >= 0).any(axis=1).all()
    labels = entry_labels(alignment)
    assert len(set(labels)) == len(alignment) == len(labels)


@given(TEXTS, TEXTS)
def test_what_is_paired_is_equal_or_stands_in_a_stretch_in_which_nothing_is(first, second):
    pairs = align(Axis.of(hand_made.tokens(first)), Axis.of(hand_made.tokens(second))).pairs.tolist()
    equal = [here >= 0 and other >= 0 and first[here] == second[other] for here, other in pairs]
    start = 0
    for stop in [number for number, same in enumerate(equal) if same] + [len(pairs)]:
        between = pairs[start:stop]
        paired = [min(pair) >= 0 for pair in between]
        assert all(paired) or not any(paired)
        start = stop + 1


@given(TEXTS)
def test_a_text_is_aligned_with_itself_entry_by_entry(labels):
    axis = Axis.of(hand_made.tokens(labels))
    assert align(axis, axis).pairs.tolist() == [[number, number] for number in range(len(labels))]


@given(TEXTS, st.integers(0, 99))
def test_a_matrix_does_not_differ_from_itself(labels, seed):
    matrix = pattern(labels, seed)
    comparison = compare(matrix, matrix)

    np.testing.assert_array_equal(comparison.difference, np.zeros((len(labels), len(labels))))
    np.testing.assert_array_equal(comparison.row_change, np.zeros(len(labels)))
    assert comparison.largest(5) == ()


@given(TEXTS, TEXTS, st.integers(0, 99))
def test_no_number_is_lost_and_shares_are_shares(first, second, seed):
    a, b = pattern(first, seed), pattern(second, seed + 100)
    comparison = compare(a, b)

    for given_weights, laid_out in (
        (a.weights, comparison.first_weights),
        (b.weights, comparison.second_weights),
    ):
        assert sorted(laid_out[np.isfinite(laid_out)]) == sorted(given_weights.ravel())
    change = comparison.row_change[comparison.queries.is_paired]
    assert ((change >= 0) & (change <= 1 + ROUNDING)).all()
    assert np.isnan(comparison.row_change[~comparison.queries.is_paired]).all()


@given(TEXTS, TEXTS, st.integers(0, 99))
def test_largest_changes_are_the_difference_in_order(first, second, seed):
    comparison = compare(pattern(first, seed), pattern(second, seed + 100))
    listed = comparison.largest(comparison.difference.size)
    sizes = [abs(change.difference) for change in listed]

    np.testing.assert_allclose(sizes, sorted(sizes, reverse=True), atol=ROUNDING)
    assert len(listed) == int((np.nan_to_num(comparison.difference) != 0).sum())
    for change in listed:
        np.testing.assert_allclose(
            change.difference, comparison.difference[change.query, change.key], atol=ROUNDING
        )


@given(TEXTS, st.integers(0, 99))
def test_exchanging_two_matrices_changes_the_sign(labels, seed):
    a, b = pattern(labels, seed), pattern(labels, seed + 100)
    np.testing.assert_array_equal(compare(a, b).difference, -compare(b, a).difference)
    np.testing.assert_array_equal(compare(a, b).row_change, compare(b, a).row_change)
