"""Masks by name, cell by cell; what a mask does to the output, on paper."""

from dataclasses import replace

import numpy as np
import pytest

import attnviz
from attnviz.cost.streaming import stream_head
from attnviz.effects.masking import cosine_change
from attnviz.effects.masks import make_mask
from tests import hand_made

THREE = replace(hand_made.tokens(("a", "b", "c")), segment=np.array([0, 0, 0]))
FIVE = replace(hand_made.tokens(("a", "b", "c", "d", "e")), segment=np.array([0, 0, 0, 1, 1]))


@pytest.mark.parametrize(
    ("name", "sees"),
    [
        ("none", lambda query, key: True),
        ("causal", lambda query, key: key <= query),
        ("window", lambda query, key: abs(key - query) <= 1),
        ("sentences", lambda query, key: (query < 3) == (key < 3)),
    ],
)
def test_every_cell(name, sees):
    mask = make_mask(FIVE, FIVE, name, reach=1)
    assert mask.tolist() == [[sees(query, key) for key in range(5)] for query in range(5)]


@pytest.mark.parametrize(
    ("name", "sees"),
    [
        ("none", lambda apart: True),
        ("causal", lambda apart: apart <= 0),
        ("window", lambda apart: abs(apart) <= 1),
    ],
)
def test_the_last_query_stands_where_the_last_key_does(name, sees):
    """Where there are more keys than queries, or fewer."""
    for queries, keys in ((THREE, FIVE), (FIVE, THREE)):
        later = len(keys) - len(queries)
        mask = make_mask(queries, keys, name, reach=1)
        assert mask.tolist() == [
            [sees(key - query - later) for key in range(len(keys))] for query in range(len(queries))
        ]


def test_the_first_key_and_cell_are_hidden_and_painted_too():
    mask = make_mask(FIVE, THREE, hidden=[0], flipped=[(0, 0), (4, 2), (2, 0)])
    assert mask.tolist() == [
        [True, True, True],
        [False, True, True],
        [True, True, True],
        [False, True, True],
        [False, True, False],
    ]


def test_hidden_keys_and_painted_cells():
    mask = make_mask(FIVE, FIVE, "causal", hidden=[1], flipped=[(4, 1), (0, 4), (3, 3)])
    expected = np.tril(np.ones((5, 5), dtype=bool))
    expected[:, 1] = False
    expected[4, 1], expected[0, 4], expected[3, 3] = True, True, False
    np.testing.assert_array_equal(mask, expected)


@pytest.mark.parametrize(
    "asked", [{"name": "diagonal"}, {"hidden": [5]}, {"hidden": [-1]}, {"flipped": [(0, 5)]}]
)
def test_what_is_not_there(asked):
    with pytest.raises(attnviz.SelectionError, match="Select one of those"):
        make_mask(FIVE, FIVE, **asked)


def test_how_far_vectors_turn_on_paper():
    before = np.array([[1, 0], [3, 4], [2, 0], [1, 0]], dtype=np.float32)
    after = np.array([[0, 2], [6, 8], [-1, 0], [1, 1]], dtype=np.float32)
    np.testing.assert_allclose(cosine_change(before, after), [1, 0, 2, 1 - 0.5**0.5], atol=1e-7)


@pytest.mark.parametrize("length", [1.0, 1e-30, 1e30, 1e-44])
def test_vectors_of_any_length_turn_as_far(length):
    before = np.array([[0, 0], [0, 0], [1, 0], [1, 0], [1, 1], [1, 0]], dtype=np.float64) * length
    after = np.array([[0, 0], [1, 0], [0, 0], [1, 0], [1, 1], [-1, 0]], dtype=np.float64) * length
    turned = cosine_change(before.astype(np.float32), after.astype(np.float32))
    np.testing.assert_allclose(turned, [0, 1, 1, 0, 0, 2], atol=1e-7)


@pytest.mark.parametrize("family", ["bert", "gpt2", "llama", "t5"])
@pytest.mark.parametrize("tile", [1, 3, 50])
def test_a_head_streamed_is_the_head(tiny_model, family, tile):
    trace = tiny_model(family).trace("the cat sat", "a door" if family == "t5" else None)
    for kind in trace.kinds:
        for head in range(trace.n_heads(1, kind)):
            last = stream_head(trace, 1, head, kind, tile=tile)[-1]
            np.testing.assert_allclose(last.output, trace.output(1, head, kind), atol=2e-6)  # float32
