"""The mathematics, against answers from paper and against float64 numpy."""

import math

import numpy as np
import pytest
import torch

from attnviz.maths import blocks
from attnviz.maths.attention import (
    attention_output,
    attention_scores,
    attention_weights,
    expand_heads,
    join_heads,
    multi_head_attention,
    softmax,
)
from attnviz.maths.blocks import QUERY_BLOCK, attention_output_in_blocks, weights_in_blocks
from attnviz.maths.earlier_scores import additive_scores, multiplicative_scores
from attnviz.maths.masks import causal_mask, segment_mask, window_mask
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

    @pytest.mark.parametrize("compute", [attention_output, attention_output_in_blocks])
    def test_output(self, compute):
        output = compute(drawn(2, 5), drawn(3, 5, seed=1), 7 + drawn(3, 4, seed=2), 0.3, allowed=self.allowed)
        assert output[1].tolist() == [0.0] * 4
        assert (output[0] > 0).all()

    def test_a_row_without_its_first_key_alone_is_not_empty(self):
        """Only a row that has no key at all becomes zeros."""
        scores = torch.tensor([[-torch.inf, 0.0, 0.0], [-torch.inf] * 3])
        assert softmax(scores).tolist() == [[0.0, 0.5, 0.5], [0.0, 0.0, 0.0]]

    def test_what_is_not_a_number_stays_so(self):
        """A fault must not be taken for a row without a key."""
        scores = torch.tensor([[-torch.inf, torch.nan], [0.0, torch.nan]])
        assert softmax(scores).isnan().all()


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
        query.numpy(),
        key.numpy(),
        value.numpy(),
        0.7,
        **{name: tensor.numpy() for name, tensor in mask.items()},
    )

    for compute in (attention_output, attention_output_in_blocks):
        output = compute(query, key, value, 0.7, **mask)
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
    for compute in (attention_output, attention_output_in_blocks):
        torch.testing.assert_close(compute(query, key, value, 1.0, allowed=allowed, bias=bias), expected)


@pytest.mark.parametrize("softcap", [None, 1.5])
@pytest.mark.parametrize("hidden", ["no key", "the first key of a query", "all keys of a query"])
def test_it_is_differentiable_and_the_same_with_gradients(softcap, hidden):
    """The gradients are compared with finite differences."""
    query, key, value, bias = (
        drawn(*shape, seed=seed).double()
        for seed, shape in enumerate([(2, 3, 5), (2, 4, 5), (2, 4, 3), (2, 3, 4)])
    )
    allowed = torch.ones(2, 3, 4, dtype=torch.bool)
    allowed[:, 1, 0] = hidden == "no key"
    allowed[1, 2] = hidden != "all keys of a query"
    terms = {"softcap": softcap, "allowed": allowed, "bias": bias}
    inputs = [vectors.requires_grad_() for vectors in (query, key, value)]

    def attend(query, key, value):
        return attention_output(query, key, value, 0.7, **terms)

    arrays = {name: term.numpy() for name, term in terms.items() if name != "softcap"} | {"softcap": softcap}
    expected = numpy_attention.output(*(vectors.detach().numpy() for vectors in inputs), 0.7, **arrays)
    np.testing.assert_allclose(attend(*inputs).detach().numpy(), expected, rtol=0, atol=1e-13)
    assert torch.autograd.gradcheck(attend, inputs)


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
    before = {name: tensor.clone() for name, tensor in given.items()}
    attention_output(**given, scale=0.4)
    attention_output_in_blocks(**given, scale=0.4)
    scores = drawn(3, 7)
    before["scores"], given["scores"] = scores.clone(), scores
    softmax(scores)
    for name, tensor in given.items():
        assert torch.equal(tensor, before[name]), name


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


class TestMasks:
    @pytest.mark.parametrize(("n_query", "n_key"), [(7, 7), (3, 7), (1, 1)])
    @pytest.mark.parametrize("reach", [0, 2, 50])
    @pytest.mark.parametrize("causal", [False, True])
    def test_a_window_cell_by_cell(self, n_query, n_key, reach, causal):
        window = window_mask(n_query, n_key, reach, causal=causal)
        for query in range(n_query):
            at = query + n_key - n_query
            for key in range(n_key):
                expected = abs(key - at) <= reach and not (causal and key > at)
                assert bool(window[query, key]) == expected

    def test_a_wide_causal_window_is_the_causal_mask(self):
        assert torch.equal(window_mask(3, 5, 9, causal=True), causal_mask(3, 5))

    def test_a_window_has_as_many_cells_as_said(self):
        assert window_mask(100, 100, 3).sum(dim=1)[50] == 7
        assert window_mask(100, 100, 3, causal=True).sum(dim=1)[50] == 4

    def test_segments_see_themselves(self):
        mask = segment_mask(torch.tensor([1, 0, 0]), torch.tensor([0, 1]))
        assert mask.tolist() == [[False, True], [True, False], [True, False]]


class TestLayer:
    N_HEAD, D_HEAD, N_QUERY, N_KEY = 3, 5, 7, 11
    D_MODEL = N_HEAD * D_HEAD

    def weights_of(self, theirs: torch.nn.MultiheadAttention) -> dict[str, torch.Tensor]:
        """torch keeps W_Q, W_K and W_V one below the other, and multiplies by their transposes."""
        by_head = (self.N_HEAD, self.D_HEAD)
        given = {}
        for name, weight, bias in zip(
            ("query", "key", "value"),
            theirs.in_proj_weight.detach().chunk(3),
            theirs.in_proj_bias.detach().chunk(3),
            strict=True,
        ):
            given[f"{name}_weight"] = weight.unflatten(0, by_head).mT
            given[f"{name}_bias"] = bias.unflatten(0, by_head)
        given["output_weight"] = theirs.out_proj.weight.detach().T.unflatten(0, by_head)
        given["output_bias"] = theirs.out_proj.bias.detach()
        return given

    @pytest.fixture
    def theirs(self):
        layer = torch.nn.MultiheadAttention(self.D_MODEL, self.N_HEAD, batch_first=True)
        with torch.no_grad():
            for number, parameter in enumerate(layer.parameters()):
                parameter.copy_(drawn(*parameter.shape, seed=number))
        return layer.eval()

    @pytest.mark.parametrize("batch", [(), (2,)])
    @pytest.mark.parametrize("masked", [False, True])
    def test_against_torch(self, theirs, batch, masked):
        hidden = drawn(*batch, self.N_QUERY, self.D_MODEL, seed=20)
        sources = drawn(*batch, self.N_KEY, self.D_MODEL, seed=21)
        allowed = drawn(self.N_QUERY, self.N_KEY, seed=22) > -0.3 if masked else None
        assert allowed is None or allowed.any(dim=1).all()
        with torch.no_grad():
            expected, _ = theirs(
                hidden, sources, sources, attn_mask=None if allowed is None else ~allowed, need_weights=False
            )
        output = multi_head_attention(hidden, sources, **self.weights_of(theirs), allowed=allowed)
        torch.testing.assert_close(output, expected, rtol=0, atol=1e-4)  # outputs of some 30 in float32

    def test_each_text_of_a_batch_has_a_mask_of_its_own(self, theirs):
        hidden = drawn(3, self.N_QUERY, self.D_MODEL, seed=20)
        sources = drawn(3, self.N_KEY, self.D_MODEL, seed=21)
        allowed = drawn(3, self.N_QUERY, self.N_KEY, seed=22) > -0.3
        together = multi_head_attention(hidden, sources, **self.weights_of(theirs), allowed=allowed)
        for text in range(3):
            alone = multi_head_attention(
                hidden[text], sources[text], **self.weights_of(theirs), allowed=allowed[text]
            )
            torch.testing.assert_close(together[text], alone, rtol=0, atol=1e-4)

    def test_joining_heads_is_one_tall_product(self):
        outputs, weight, bias = drawn(3, 7, 5), drawn(3, 5, 11, seed=1), drawn(11, seed=2)
        side_by_side = np.concatenate(list(outputs.numpy()), axis=1)  # [query, head x d_value]
        expected = side_by_side @ weight.numpy().reshape(15, 11) + bias.numpy()
        np.testing.assert_allclose(join_heads(outputs, weight, bias), expected, atol=1e-5)


class TestScoresBeforeTransformers:
    def test_bahdanaus_network_written_out(self):
        query, key = drawn(3, 5), drawn(7, 2, seed=1)
        of_query, of_key, combined = drawn(5, 11, seed=2), drawn(2, 11, seed=3), drawn(11, seed=4)
        scores = additive_scores(query, key, of_query, of_key, combined)
        for i in range(3):
            for j in range(7):
                terms = [
                    float(combined[h])
                    * math.tanh(
                        sum(float(query[i, d] * of_query[d, h]) for d in range(5))
                        + sum(float(key[j, d] * of_key[d, h]) for d in range(2))
                    )
                    for h in range(11)
                ]
                assert scores[i, j].item() == pytest.approx(sum(terms), abs=1e-5)

    def test_luongs_general_and_dot(self):
        query, key, weight = drawn(3, 5), drawn(7, 2, seed=1), drawn(5, 2, seed=2)
        expected = np.einsum("qa,ab,kb->qk", query.numpy(), weight.numpy(), key.numpy())
        np.testing.assert_allclose(multiplicative_scores(query, key, weight), expected, atol=1e-5)
        alike = drawn(7, 5, seed=3)
        np.testing.assert_allclose(multiplicative_scores(query, alike), query @ alike.T, atol=1e-6)


N_LONG = 3 * QUERY_BLOCK + 5
_DISTANCE = torch.arange(N_LONG)[:, None] - torch.arange(N_LONG)
LONG_MASKS = {
    "causal": _DISTANCE >= 0,
    "sliding window": (_DISTANCE >= 0) & (_DISTANCE < 30),
    "window to both sides": _DISTANCE.abs() < 30,
    "a block that sees nothing": (_DISTANCE >= 0) & (torch.arange(N_LONG)[:, None] // QUERY_BLOCK != 1),
    "a gap": (_DISTANCE >= 0) & (torch.arange(N_LONG) % 7 != 3),
}


@pytest.mark.parametrize("with_bias", [False, True])
@pytest.mark.parametrize("mask", LONG_MASKS)
def test_of_a_long_text_blocks_leave_out_what_no_row_sees_and_give_the_same(mask, with_bias, monkeypatch):
    query, key = drawn(2, 3, N_LONG, 5), drawn(2, 3, N_LONG, 5, seed=1)
    value, bias = drawn(2, 3, N_LONG, 4, seed=2), drawn(1, 3, N_LONG, N_LONG, seed=3)
    given = {"allowed": LONG_MASKS[mask][None, None], "bias": bias if with_bias else None}
    widths = []
    scored = blocks.attention_scores
    monkeypatch.setattr(
        blocks,
        "attention_scores",
        lambda *args, **named: widths.append(args[1].shape[-2]) or scored(*args, **named),
    )
    expected = numpy_attention.output(
        query.numpy(),
        key.numpy(),
        value.numpy(),
        0.7,
        **{n: t.numpy() for n, t in given.items() if t is not None},
    )
    np.testing.assert_allclose(
        attention_output_in_blocks(query, key, value, 0.7, **given).numpy(), expected, atol=FLOAT32_TOLERANCE
    )
    assert min(widths) <= QUERY_BLOCK + 30  # of the first block, which has all its keys near it
    weights = torch.zeros(2, 3, N_LONG, N_LONG)
    for rows, part in weights_in_blocks(query, key, 0.7, **given):
        weights[..., rows, :] = part
    np.testing.assert_allclose((weights @ value).numpy(), expected, atol=FLOAT32_TOLERANCE)
    assert not weights.masked_fill(given["allowed"], 0.0).any()
