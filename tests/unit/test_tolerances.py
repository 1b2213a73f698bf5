"""What rounding explains, worked out on paper for one head of two numbers a vector."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from attnviz.model.tolerances import Distance, Tolerances, drift

U, HALF_U = 2.0**-24, 2.0**-8  # unit roundoffs of float32 and bfloat16


def vectors(*rows: tuple[float, ...]) -> np.ndarray:
    """One head."""
    return np.array([rows], dtype=np.float32)


QUERY = Distance(vectors((3, 4), (0, 1)), vectors((3, 4), (0, 2)))  # moved 1, longest 5
KEY = Distance(vectors((1, 0)), vectors((1.5, 0)))  # moved 0.5, longest 1.5
VALUE = Distance(vectors((1, 2), (4, 0)), vectors((1, 3), (4, 0)))  # one number off by 1, the largest is 4
BIAS = Distance(vectors((2,)), vectors((2,)))
APART = Tolerances(query=QUERY, key=KEY, value=VALUE, bias=BIAS, scale=0.5, n_key=3, dtype=torch.float32)
EQUAL = replace(
    APART,
    query=Distance(vectors((3, 4)), vectors((3, 4))),
    key=Distance(vectors((1.5, 0)), vectors((1.5, 0))),
    value=Distance(vectors((4, 0)), vectors((4, 0))),
)

# Cauchy and Schwarz: 0.5 (1 * 1.5 + 5 * 0.5 + 1 * 0.5)
MOVED = 2.25
# Scores are at most 0.5 * 5 * 1.5 + 2; two sums of two products and four more terms, one rounding to the type of each sum, and four more.
ROUNDED = 5.75 * (8 + 1 + 4) * U
# Exponentials and a sum over 3 keys, in both computations: twice 11 roundings and one to the type.
SUM = 2 * (11 + 1) * U


def test_scores_move_with_queries_and_keys_and_by_roundings():
    assert EQUAL.scores == pytest.approx([ROUNDED], rel=1e-5)
    assert APART.scores == pytest.approx([MOVED + ROUNDED], rel=1e-6)


def test_weights_move_by_half_of_what_scores_do():
    """The absolute entries of a row of the softmax's Jacobian sum to 2 w (1 - w), at most 1/2."""
    assert EQUAL.weights == pytest.approx([ROUNDED / 2 + SUM], rel=1e-5)
    assert APART.weights == pytest.approx([MOVED / 2 + ROUNDED / 2 + SUM], rel=1e-6)


def test_weights_in_half_precision_have_its_roundings():
    """Sums stay in float32, and each is rounded once."""
    rounded = 5.75 * (8 * U + HALF_U + 4 * HALF_U)
    total = 2 * (11 * U + HALF_U)
    half = replace(EQUAL, dtype=torch.bfloat16)
    assert half.weights == pytest.approx([rounded / 2 + total], rel=1e-5)


def test_outputs_move_by_twice_what_scores_do_and_with_the_values():
    assert EQUAL.outputs == pytest.approx([2 * ROUNDED + 2 * SUM], rel=1e-5)
    assert APART.outputs == pytest.approx([2 * MOVED + 2 * ROUNDED + 2 * SUM + 1 / 4], rel=1e-6)


def test_norms_move_with_the_weights_and_by_roundings_of_v_w_o():
    stretch = np.array([1.5])  # Frobenius norm of W_O over the length of the longest v W_O
    vectors_of = 2 * (2 + 1) * U * 4  # two numbers of a value, the longest of which is 4
    expected = ROUNDED / 2 + SUM + 1.5 * vectors_of + 2 * (7 + 1) * U
    assert EQUAL.norms(stretch, d_value=2, d_model=7) == pytest.approx([expected], rel=1e-5)


def test_heads_have_tolerances_of_their_own():
    two = replace(
        EQUAL,
        query=Distance(*[np.array([[[3, 4]], [[6, 8]]], dtype=np.float32)] * 2),
        key=Distance(*[np.array([[[1.5, 0]], [[1.5, 0]]], dtype=np.float32)] * 2),
    )
    assert two.scores == pytest.approx([ROUNDED, ROUNDED / 5.75 * (0.5 * 10 * 1.5 + 2)], rel=1e-5)


def test_a_softcap_rounds_four_times_more_in_each_computation():
    capped = replace(EQUAL, softcap=30.0)
    assert capped.scores == pytest.approx([5.75 * (8 + 1 + 12) * U], rel=1e-5)
    half = replace(EQUAL, softcap=30.0, dtype=torch.bfloat16)
    assert half.scores == pytest.approx([5.75 * (8 * U + HALF_U + 12 * HALF_U)], rel=1e-5)


def test_a_negative_scale_and_a_bias_that_differs():
    """Scores are then at most 0.5 * 5 * 1.5 + 3 in any head, and move by the bias of their own head."""
    bias = Distance(
        np.array([[[1, 2]], [[3, -1]]], dtype=np.float32),
        np.array([[[1, -2.5]], [[3, -1]]], dtype=np.float32),
    )
    two = {
        "query": Distance(*[np.array([[[3, 4]], [[3, 4]]], dtype=np.float32)] * 2),
        "key": Distance(*[np.array([[[1.5, 0]], [[1.5, 0]]], dtype=np.float32)] * 2),
    }
    rounded = (0.5 * 5 * 1.5 + 3) * (8 + 1 + 4) * U
    expected = [4.5 + rounded, rounded]
    assert replace(EQUAL, scale=-0.5, bias=bias, **two).scores == pytest.approx(expected, rel=1e-5)


class TestDistance:
    OURS = np.array([[[3, 4, 0], [0, 1, -9]], [[0, 0, 0], [0, 0, 0]]], dtype=np.float32)
    THEIRS = np.array([[[3, 4, 0], [2, 1, -6]], [[0, 0, 0], [0, -4, 0]]], dtype=np.float32)

    def test_is_worked_out_head_by_head(self):
        apart = Distance(self.OURS, self.THEIRS)
        assert apart.width == 3
        assert apart.difference.tolist() == [3, 4]
        assert apart.largest.tolist() == [6, 4]
        assert apart.share.tolist() == [0.5, 1]
        assert apart.moved == pytest.approx([13**0.5, 4])
        assert apart.longest == pytest.approx([41**0.5, 4])

    def test_of_zeros_from_zeros_is_none(self):
        none = Distance(np.zeros((1, 2, 3), dtype=np.float32), np.zeros((1, 2, 3), dtype=np.float32))
        assert none.share.tolist() == [0]

    def test_is_limited_to_a_share_of_the_largest_number(self):
        """No number of three differs by more than 0.25 of the largest, so no vector by more than that times sqrt(3)."""
        apart = Distance(self.OURS, self.THEIRS)
        capped = apart.capped(np.array([0.25, 2.0]))
        assert capped.difference.tolist() == [1.5, 4]
        assert capped.moved == pytest.approx([1.5 * 3**0.5, 4])
        assert (capped.largest.tolist(), capped.longest.tolist()) == ([6, 4], apart.longest.tolist())
        assert apart.difference.tolist() == [3, 4]

    def test_becomes_a_distance_of_the_outputs_of_w_o(self):
        """By Cauchy and Schwarz no output moves farther than the heads' outputs side by side, times the longest column."""
        weight = np.array([[[1, 0], [2, 0], [0, 0]], [[2, 3], [0, 0], [0, -1]]], dtype=np.float32)
        moved, longest, column = 29**0.5, 57**0.5, 10**0.5  # columns: 1 + 4 + 4 and 9 + 1
        rounded = 2 * (7 * U + U) * longest  # six products and a bias
        apart = Distance(self.OURS, self.THEIRS)
        assert apart.joined(weight, torch.float32) == pytest.approx(column * (moved + rounded), rel=1e-6)
        exact = Distance(self.THEIRS, self.THEIRS)
        assert exact.joined(weight, torch.float32) == pytest.approx(column * rounded, rel=1e-5)
        assert exact.joined(weight, torch.bfloat16) == pytest.approx(
            column * 2 * (7 * U + HALF_U) * longest, rel=1e-5
        )


def test_vectors_drift_apart_with_every_layer():
    """A layer of width 5 has sums of 12 times 5 products and of 3 keys; 12 roundings to the type. 8 is Higham and Mary's lambda."""
    products = 8 * (4 * 63) ** 0.5
    assert drift(4, d_model=5, n_key=3, dtype=torch.float32) == pytest.approx((products + 8 * 48**0.5) * U)
    assert drift(4, d_model=5, n_key=3, dtype=torch.bfloat16) == pytest.approx(
        products * U + 8 * 48**0.5 * HALF_U
    )
