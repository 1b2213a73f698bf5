"""The mathematics, against answers from paper and against float64 numpy."""

import math

import numpy as np
import pytest
import torch

from attnviz.attention import (
    QUERY_BLOCK,
    attention_output,
    attention_scores,
    attention_weights,
    causal_mask,
    expand_heads,
    softmax,
)
from tests import numpy_attention

E = math.e
FLOAT32_TOLERANCE = 2e-6  # float32 has a unit roundoff of 6e-8; sums of some 150 terms


def drawn(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


class TestOnPaper:
    query = torch.tensor([[0.0, math.sqrt(2.0)]])
    key = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    scale = 1 / math.sqrt(2.0)

    def test_scores(self):
        torch.testing.assert_close(
            attention_scores(self.query, self.key, self.scale), torch.tensor([[0.0, 1.0]])
        )

    def test_weights(self):
        torch.testing.assert_close(
            attention_weights(self.query, self.key, self.scale),
            torch.tensor([[1 / (1 + E), E / (1 + E)]]),
        )

    def test_output(self):
        value = torch.tensor([[1.0, 0.0, 5.0], [0.0, 1.0, 5.0]])
        torch.testing.assert_close(
            attention_output(self.query, self.key, value, self.scale),
            torch.tensor([[1 / (1 + E), E / (1 + E), 5.0]]),
        )

    def test_bias_is_added_after_scaling(self):
        bias = torch.tensor([[1.0, 0.0]])  # lifts the first score to the second's 1
        torch.testing.assert_close(
            attention_scores(self.query, self.key, self.scale, bias=bias), torch.tensor([[1.0, 1.0]])
        )
        torch.testing.assert_close(
            attention_weights(self.query, self.key, self.scale, bias=bias), torch.tensor([[0.5, 0.5]])
        )

    def test_a_key_that_is_not_allowed_has_no_weight(self):
        allowed = torch.tensor([[True, False]])
        assert attention_scores(self.query, self.key, self.scale, allowed=allowed).tolist() == [
            [0.0, -torch.inf]
        ]
        assert attention_weights(self.query, self.key, self.scale, allowed=allowed).tolist() == [[1.0, 0.0]]

    def test_a_bias_does_not_bring_back_a_key_that_is_not_allowed(self):
        weights = attention_weights(
            self.query,
            self.key,
            self.scale,
            allowed=torch.tensor([[True, False]]),
            bias=torch.tensor([[0.0, 100.0]]),
        )
        assert weights.tolist() == [[1.0, 0.0]]

    def test_softmax_of_three(self):
        torch.testing.assert_close(
            softmax(torch.tensor([[0.0, math.log(2.0), math.log(5.0)]])),
            torch.tensor([[1 / 8, 2 / 8, 5 / 8]]),
        )

    def test_rows_are_queries_and_columns_are_keys(self):
        query, key = torch.tensor([[1.0], [2.0]]), torch.tensor([[3.0], [5.0], [7.0]])
        assert attention_scores(query, key, 1.0).tolist() == [[3.0, 5.0, 7.0], [6.0, 10.0, 14.0]]


class TestNoKeyAllowed:
    """A row whose every key is masked yields zeros, never NaN and never the mean of forbidden values."""

    allowed = torch.tensor([[True, True, False], [False, False, False]])

    def test_weights(self):
        weights = attention_weights(drawn(2, 5), drawn(3, 5, seed=1), 0.3, allowed=self.allowed)
        assert weights[1].tolist() == [0.0, 0.0, 0.0]
        assert weights[0].sum().item() == pytest.approx(1.0)

    def test_softmax(self):
        assert softmax(torch.full((1, 3), -torch.inf)).tolist() == [[0.0, 0.0, 0.0]]

    def test_output(self):
        output = attention_output(
            drawn(2, 5), drawn(3, 5, seed=1), 7 + drawn(3, 4, seed=2), 0.3, allowed=self.allowed
        )
        assert output[1].tolist() == [0.0] * 4
        assert (output[0] > 0).all()


class TestLargeScores:
    """Scores of 10,000, whose exponentials are no float32 and no float64."""

    query, key = torch.tensor([[100.0, 0.0], [-100.0, 0.0]]), torch.tensor([[100.0, 0.0], [0.0, 1.0]])

    def test_weights(self):
        assert attention_weights(self.query, self.key, 1.0).tolist() == [[1.0, 0.0], [0.0, 1.0]]

    def test_output(self):
        value = torch.tensor([[2.0], [3.0]])
        assert attention_output(self.query, self.key, value, 1.0).tolist() == [[2.0], [3.0]]

    def test_equal_large_scores_share(self):
        assert softmax(torch.full((1, 4), 1e4)).tolist() == [[0.25] * 4]


@pytest.mark.parametrize(
    "n_query", [1, QUERY_BLOCK - 1, QUERY_BLOCK, QUERY_BLOCK + 1, 2 * QUERY_BLOCK, 2 * QUERY_BLOCK + 3]
)
@pytest.mark.parametrize("terms", [(), ("allowed",), ("bias",), ("allowed", "bias")], ids="+".join)
def test_every_row_of_every_block_is_right(n_query, terms):
    n_head, n_key, d_head, d_value = 3, 53, 5, 7
    query = drawn(n_head, n_query, d_head)
    key = drawn(n_head, n_key, d_head, seed=1)
    value = drawn(n_head, n_key, d_value, seed=2)
    given = {
        "allowed": drawn(n_head, n_query, n_key, seed=3) > 0.3,
        "bias": drawn(n_head, n_query, n_key, seed=4),
    }
    mask = {name: given[name] for name in terms}
    expected = numpy_attention.output(
        query.numpy(), key.numpy(), value.numpy(), 0.7, **{name: one.numpy() for name, one in mask.items()}
    )

    output = attention_output(query, key, value, 0.7, **mask)

    assert output.shape == (n_head, n_query, d_value)
    np.testing.assert_allclose(output.numpy(), expected, atol=FLOAT32_TOLERANCE)


@pytest.mark.parametrize("shape", [(1, 1, 11), (1, QUERY_BLOCK + 1, 11), (2, 1, 11)], ids=str)
def test_a_mask_and_a_bias_are_shared_by_all_heads_and_rows_where_they_have_one(shape):
    n_query, n_key = QUERY_BLOCK + 1, 11
    query, key, value = drawn(2, n_query, 5), drawn(2, n_key, 5, seed=1), drawn(2, n_key, 3, seed=2)
    whole = (2, n_query, n_key)
    allowed, bias = drawn(*shape, seed=3) > 0, drawn(*shape, seed=4)
    expected = attention_output(
        query, key, value, 1.0, allowed=allowed.expand(whole).clone(), bias=bias.expand(whole).clone()
    )
    output = attention_output(query, key, value, 1.0, allowed=allowed, bias=bias)
    torch.testing.assert_close(output, expected)


def test_float64_stays_float64():
    query, key, value = drawn(3, 5).double(), drawn(7, 5, seed=1).double(), drawn(7, 2, seed=2).double()
    weights, output = attention_weights(query, key, 0.4), attention_output(query, key, value, 0.4)
    assert weights.dtype == output.dtype == torch.float64
    np.testing.assert_allclose(
        weights.numpy(), numpy_attention.weights(query.numpy(), key.numpy(), 0.4), atol=1e-15
    )
    np.testing.assert_allclose(
        output.numpy(), numpy_attention.output(query.numpy(), key.numpy(), value.numpy(), 0.4), atol=1e-14
    )


def test_inputs_are_left_as_they_are():
    given = {
        "query": drawn(3, 5),
        "key": drawn(7, 5, seed=1),
        "value": drawn(7, 2, seed=2),
        "allowed": drawn(3, 7, seed=3) > 0,
        "bias": drawn(3, 7, seed=4),
    }
    before = {name: one.clone() for name, one in given.items()}
    attention_output(**given, scale=0.4)
    scores = drawn(3, 7)
    before["scores"], given["scores"] = scores.clone(), scores
    softmax(scores)
    for name, one in given.items():
        assert torch.equal(one, before[name]), name


class TestGroupedHeads:
    def test_neighbouring_heads_share(self):
        grouped = drawn(1, 2, 3, 5)
        expanded = expand_heads(grouped, 6)
        assert expanded.shape == (1, 6, 3, 5)
        for head, kv_head in enumerate([0, 0, 0, 1, 1, 1]):
            assert torch.equal(expanded[:, head], grouped[:, kv_head])

    def test_one_key_value_head_for_each_head_is_left_as_it_is(self):
        grouped = drawn(1, 3, 2, 5)
        assert expand_heads(grouped, 3) is grouped


class TestCausalMask:
    def test_square(self):
        assert causal_mask(3, 3).tolist() == [[True, False, False], [True, True, False], [True, True, True]]

    def test_fewer_queries_than_keys_are_the_last_tokens(self):
        assert causal_mask(1, 4).tolist() == [[True] * 4]
        assert causal_mask(2, 3).tolist() == [[True, True, False], [True, True, True]]
