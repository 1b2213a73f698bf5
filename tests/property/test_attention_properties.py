"""What holds for attention on any numbers."""

from unittest import mock

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from attnviz.maths import blocks
from attnviz.maths.attention import attention_output, attention_scores, attention_weights, softmax
from attnviz.maths.masks import causal_mask

pytestmark = pytest.mark.slow

settings.register_profile("attnviz", deadline=None, derandomize=True, max_examples=100)
settings.load_profile("attnviz")

ROUNDING = 1e-5  # float32: sums of at most 9 terms of at most 10, with 6e-8 of each lost
LENGTHS = st.integers(1, 9)


def tensors(*shape: int, largest: float = 10.0) -> st.SearchStrategy[torch.Tensor]:
    numbers = st.floats(-largest, largest, width=32, allow_subnormal=False)
    return hnp.arrays(np.float32, shape, elements=numbers).map(torch.tensor)


@st.composite
def attentions(draw: st.DrawFn) -> dict[str, torch.Tensor]:
    """Queries, keys and values of one head, of any lengths."""
    n_query, n_key, d_head, d_value = draw(LENGTHS), draw(LENGTHS), draw(LENGTHS), draw(LENGTHS)
    return {
        "query": draw(tensors(n_query, d_head, largest=3.0)),
        "key": draw(tensors(n_key, d_head, largest=3.0)),
        "value": draw(tensors(n_key, d_value)),
    }


@st.composite
def masks(draw: st.DrawFn, n_query: int, n_key: int) -> dict[str, torch.Tensor]:
    """A mask, a bias, both or neither; rows without any allowed key included."""
    mask = {}
    if draw(st.booleans()):
        mask["allowed"] = draw(hnp.arrays(np.bool_, (n_query, n_key)).map(torch.tensor))
    if draw(st.booleans()):
        mask["bias"] = draw(tensors(n_query, n_key))
    return mask


@st.composite
def masked_attentions(draw: st.DrawFn) -> tuple[dict[str, torch.Tensor], dict[str, torch.Tensor]]:
    qkv = draw(attentions())
    return qkv, draw(masks(len(qkv["query"]), len(qkv["key"])))


@given(masked_attentions())
def test_rows_sum_to_one_or_to_zero_where_no_key_is_allowed(case):
    qkv, mask = case
    weights = attention_weights(qkv["query"], qkv["key"], 0.5, **mask)
    allowed = mask.get("allowed", torch.ones_like(weights, dtype=torch.bool))
    expected = allowed.any(dim=-1).float()
    torch.testing.assert_close(weights.sum(dim=-1), expected, atol=ROUNDING, rtol=0)
    assert ((weights >= 0) & (weights <= 1)).all()
    assert (weights[~allowed] == 0).all()


@given(LENGTHS.flatmap(lambda n: st.tuples(tensors(n, 3), tensors(n, 3))))
def test_causal_means_nothing_above_the_diagonal(case):
    query, key = case
    weights = attention_weights(query, key, 1.0, allowed=causal_mask(len(query), len(key)))
    assert torch.equal(weights, weights.tril())
    assert weights[0, 0] == 1  # the first token sees itself alone
    torch.testing.assert_close(weights.sum(dim=-1), torch.ones(len(query)), atol=ROUNDING, rtol=0)


@given(st.tuples(LENGTHS, LENGTHS).flatmap(lambda shape: tensors(*shape)), st.floats(-50, 50, width=32))
def test_softmax_does_not_see_a_shift_of_a_row(scores, shift):
    torch.testing.assert_close(softmax(scores + shift), softmax(scores), atol=ROUNDING, rtol=0)


@given(attentions(), st.randoms(use_true_random=False))
def test_keys_and_values_in_another_order_give_the_same_output(qkv, random):
    order = list(range(len(qkv["key"])))
    random.shuffle(order)
    shuffled = qkv | {"key": qkv["key"][order], "value": qkv["value"][order]}
    torch.testing.assert_close(
        attention_output(**shuffled, scale=0.5), attention_output(**qkv, scale=0.5), atol=1e-4, rtol=0
    )  # values of 10 in sums of another order, after exponentials of scores of up to 40


@given(masked_attentions(), st.randoms(use_true_random=False))
def test_queries_in_another_order_give_the_rows_in_that_order(case, random):
    qkv, mask = case
    order = list(range(len(qkv["query"])))
    random.shuffle(order)
    shuffled = {name: term[order] for name, term in mask.items()}
    torch.testing.assert_close(
        attention_weights(qkv["query"][order], qkv["key"], 0.5, **shuffled),
        attention_weights(qkv["query"], qkv["key"], 0.5, **mask)[order],
        atol=ROUNDING,
        rtol=0,
    )


@given(masked_attentions(), st.integers(1, 10))
def test_output_in_blocks_is_the_weights_times_the_values(case, block):
    qkv, mask = case
    direct = attention_weights(qkv["query"], qkv["key"], 0.5, **mask) @ qkv["value"]
    with mock.patch.object(blocks, "QUERY_BLOCK", block):
        blockwise = blocks.attention_output_in_blocks(**qkv, scale=0.5, **mask)
    torch.testing.assert_close(blockwise, direct, atol=1e-4, rtol=0)


@given(masked_attentions())
def test_weights_are_the_softmax_of_the_scores(case):
    qkv, mask = case
    scores = attention_scores(qkv["query"], qkv["key"], 0.5, **mask)
    torch.testing.assert_close(
        softmax(scores), attention_weights(qkv["query"], qkv["key"], 0.5, **mask), atol=ROUNDING, rtol=0
    )
