"""What holds for the numbers of heads on any weights."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from attnviz import heads
from attnviz.records import Axis
from tests import hand_made
from tests.drawing import pieces_of_words

pytestmark = pytest.mark.slow

settings.register_profile("attnviz", deadline=None, derandomize=True, max_examples=50)
settings.load_profile("attnviz")

ROUNDING = 1e-5  # float32: sums of at most 49 weights, with 6e-8 of each lost
N_LAYER, N_HEAD = 2, 3


@st.composite
def attentions(draw: st.DrawFn) -> dict[str, Any]:
    """Any weights on any few tokens, with a mask or without; every query sees a key."""
    labels = ["[CLS]", *draw(pieces_of_words(1, 4)), "[SEP]"]
    shape = (N_LAYER, N_HEAD, len(labels), len(labels))
    numbers = hnp.arrays(np.float32, shape, elements=st.floats(0, 1, width=32, allow_subnormal=False))
    allowed = draw(hnp.arrays(np.bool_, shape[2:])) | np.eye(len(labels), dtype=bool)
    weights = draw(numbers) * allowed + 1e-3 * np.eye(len(labels))
    return {"weights": weights / weights.sum(axis=-1, keepdims=True), "labels": labels, "allowed": allowed}


UNITS = st.sampled_from(("tokens", "words"))


@given(attentions(), UNITS)
def test_shares_are_shares(attention, unit):
    trace = hand_made.trace(**attention)
    axis = Axis.of(trace.tokens, unit)
    tables = heads.statistics_on(trace, None, axis, axis)
    for name, numbers in tables.items():
        there = numbers[np.isfinite(numbers)]
        assert (there >= -ROUNDING).all(), name
        assert (there <= (len(axis) if name == "distance" else 1) + ROUNDING).all(), name


@given(attentions(), st.permutations(range(N_HEAD)))
def test_heads_in_another_order_have_the_same_numbers(attention, order):
    trace = hand_made.trace(**attention)
    axis = Axis.of(trace.tokens)
    shuffled = hand_made.trace(**attention | {"weights": attention["weights"][:, order]})
    own = heads.statistics_on(trace, None, axis, axis)
    other = heads.statistics_on(shuffled, None, Axis.of(shuffled.tokens), Axis.of(shuffled.tokens))
    assert set(own) == set(other)
    for name, numbers in own.items():
        np.testing.assert_allclose(numbers[:, order], other[name], atol=ROUNDING, err_msg=name)


@given(attentions(), UNITS)
def test_divergences_are_symmetric_bounded_and_their_roots_a_metric(attention, unit):
    trace = hand_made.trace(**attention)
    axis = Axis.of(trace.tokens, unit)
    divergence = heads.divergences(trace, None, axis, axis).divergence
    np.testing.assert_array_equal(divergence, divergence.T)
    assert not np.diag(divergence).any()
    assert ((divergence >= 0) & (divergence <= 1 + ROUNDING)).all()
    root = np.sqrt(divergence)
    assert (root[:, :, None] + root[None] >= root[:, None, :] - 0.01).all()  # the root of ROUNDING is .003


@given(attentions(), UNITS, st.data())
def test_the_weight_of_a_pair_of_entries_is_that_of_the_arranged_pattern(attention, unit, data):
    trace = hand_made.trace(**attention)
    axis = Axis.of(trace.tokens, unit)
    row, column = (data.draw(st.integers(0, len(axis) - 1)) for _ in range(2))
    query, key = (tuple(int(edge) for edge in axis.spans[entry]) for entry in (row, column))
    of_pair = heads.pair_weights(trace, None, query, key)
    for layer, head in np.ndindex(N_LAYER, N_HEAD):
        pattern = trace.pattern(layer, head).arranged(axis, axis)
        np.testing.assert_allclose(of_pair[layer, head], pattern.weights[row, column], atol=ROUNDING)


@given(attentions(), UNITS, st.integers(1, 60))
def test_the_strongest_pairs_are_the_largest_cells(attention, unit, count):
    trace = hand_made.trace(**attention)
    axis = Axis.of(trace.tokens, unit)
    pattern = trace.pattern(1, 2).arranged(axis, axis)
    pairs = heads.strongest_pairs(pattern, count)
    largest = np.sort(pattern.weights[pattern.weights > 0])[::-1][:count]
    np.testing.assert_array_equal([pair.weight for pair in pairs], largest)
    assert len({pair[:2] for pair in pairs}) == len(pairs)
    assert all(pattern.weights[pair.row, pair.column] == pair.weight for pair in pairs)
