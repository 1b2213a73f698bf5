"""One head: its own part of the masks, the keys that it shares, and its scores, on numbers worked out by hand."""

import numpy as np
import pytest

from attnviz.model.head_attention import HeadAttention
from attnviz.records import LayerAttention

# Four heads over two key-value heads; two queries, three keys, d_head 1: a product is a score.
QUERY = np.array([[[1.0], [2.0]], [[3.0], [4.0]], [[5.0], [6.0]], [[7.0], [8.0]]], dtype=np.float32)
KEY = np.array([[[1.0], [0.0], [2.0]], [[0.0], [1.0], [-1.0]]], dtype=np.float32)
VALUE = np.stack([KEY[0, :, :], 10 + KEY[1, :, :]])


def layer(**changes) -> LayerAttention:
    return LayerAttention(
        **{"kind": "encoder", "layer": 0, "query": QUERY, "key": KEY, "value": VALUE, "scale": 0.5} | changes
    )


def test_heads_of_one_group_share_their_keys_and_values():
    for head, shared in enumerate((0, 0, 1, 1)):
        attention = HeadAttention.of(layer(), head)
        np.testing.assert_array_equal(attention.query, QUERY[head])
        np.testing.assert_array_equal(attention.key, KEY[shared])
        np.testing.assert_array_equal(attention.value, VALUE[shared])


def test_scores_are_products_times_the_scale_plus_the_bias():
    bias = np.arange(24, dtype=np.float32).reshape(4, 2, 3)
    attention = HeadAttention.of(layer(bias=bias), 2)
    # queries 5 and 6, keys 0, 1 and -1, half of it; the third head's bias begins at 12
    np.testing.assert_array_equal(attention.scores(), [[12.0, 15.5, 11.5], [15.0, 19.0, 14.0]])


@pytest.mark.parametrize("n_mask", [1, 4])
def test_a_mask_is_the_heads_own_or_that_of_all(n_mask):
    allowed = np.ones((n_mask, 1, 3), dtype=bool)
    allowed[-1, 0, 2] = False
    attention = HeadAttention.of(layer(allowed=allowed), 3)
    assert attention.allowed is not None
    np.testing.assert_array_equal(attention.allowed, [[True, True, False]] * 2)  # a row for each query
    np.testing.assert_array_equal(attention.scores(), [[0.0, 3.5, -np.inf], [0.0, 4.0, -np.inf]])
    sigmoid = 1 / (1 + np.exp([3.5, 4.0]))  # the softmax of two scores, 0 and s
    np.testing.assert_allclose(attention.weights()[:, 0], sigmoid, rtol=1e-6)
    np.testing.assert_array_equal(attention.weights()[:, 2], 0)
    if n_mask > 1:
        other = HeadAttention.of(layer(allowed=allowed), 0).allowed
        assert other is not None and other.all()


def test_a_query_that_sees_nothing_has_weights_of_zero():
    attention = HeadAttention.of(layer(allowed=np.zeros((1, 2, 3), dtype=bool)), 0)
    assert not attention.weights().any()


def test_both_at_once_are_the_same():
    attention = HeadAttention.of(layer(), 1)
    scores, weights = attention.scores_and_weights()
    np.testing.assert_array_equal(scores, attention.scores())
    np.testing.assert_array_equal(weights, attention.weights())
    with pytest.raises(ValueError, match="read-only"):
        scores[0, 0] = 1.0


def test_each_of_two_heads_has_its_own_mask():
    allowed = np.array([[[True, True, False]], [[False, True, True]]])
    two = layer(query=QUERY[:2], key=KEY, value=VALUE, allowed=allowed)
    for head in (0, 1):
        np.testing.assert_array_equal(HeadAttention.of(two, head).allowed, [allowed[head, 0].tolist()] * 2)


class TestBiasOfDistance:
    """Three queries and four keys; a bias of T5's kind depends on the distance from query to key alone."""

    DISTANCE = np.arange(4)[None] - np.arange(3)[:, None]

    def of(self, bias: np.ndarray | None) -> bool:
        call = layer(
            query=np.ones((1, 3, 1), np.float32),
            key=np.ones((1, 4, 1), np.float32),
            value=np.ones((1, 4, 1), np.float32),
            bias=None if bias is None else bias[None].astype(np.float32),
        )
        return HeadAttention.of(call, 0).bias_is_of_distance

    def test_is_told_from_one_that_is_not_by_any_pair(self):
        bias = self.DISTANCE**3
        assert self.of(bias)
        for query, key in np.ndindex(3, 4):
            changed = bias.copy()
            changed[query, key] += 1
            alone = (query, key) in ((2, 0), (0, 3))  # no other pair is as far apart
            assert self.of(changed) is alone

    def test_none_is_one(self):
        assert self.of(None)
