"""Norm-based weights and rollout against their papers' definitions, written out in float64 loops."""

import numpy as np
import pytest
import torch

from attnviz.errors import SelectionError
from attnviz.maths import attribution
from attnviz.model.trace import Trace
from tests import tiny

KV_HEADS, HEADS, QUERIES, KEYS, D_VALUE, D_MODEL = 2, 6, 5, 7, 3, 11
# float32, numbers of about 1; sums of up to 11 x 3 products
CLOSE = {"atol": 1e-5, "rtol": 1e-5}


@pytest.fixture
def weights():
    drawn = np.random.default_rng(0).dirichlet(np.full(KEYS, 0.4), size=(HEADS, QUERIES))
    return drawn.astype(np.float32)


@pytest.fixture
def value():
    return np.random.default_rng(1).normal(size=(KV_HEADS, KEYS, D_VALUE)).astype(np.float32)


@pytest.fixture
def output_weight():
    return np.random.default_rng(2).normal(size=(HEADS, D_VALUE, D_MODEL)).astype(np.float32)


def vector(value, output_weight, head, key):
    """v_j W_O^h in float64; six heads share two values by threes."""
    of_head = value[head // (HEADS // KV_HEADS), key].astype(np.float64)
    return sum(of_head[d] * output_weight[head, d].astype(np.float64) for d in range(D_VALUE))


def test_value_products_are_dot_products_of_what_the_heads_make_of_a_token(value, output_weight):
    products = attribution.value_products(value, output_weight)
    assert products.shape == (HEADS, HEADS, KEYS)
    for h in range(HEADS):
        for g in range(HEADS):
            for j in range(KEYS):
                expected = vector(value, output_weight, h, j) @ vector(value, output_weight, g, j)
                np.testing.assert_allclose(products[h, g, j], expected, **CLOSE)


def test_norms_of_a_head_are_lengths_of_weighted_vectors(weights, value, output_weight):
    norms = attribution.head_norms(weights, attribution.value_lengths(value, output_weight))
    for h in range(HEADS):
        for i in range(QUERIES):
            for j in range(KEYS):
                brought = weights[h, i, j] * vector(value, output_weight, h, j)
                np.testing.assert_allclose(norms[h, i, j], np.linalg.norm(brought), **CLOSE)


def test_norms_of_a_layer_sum_the_heads_vectors_before_the_norm(weights, value, output_weight):
    products = attribution.value_products(value, output_weight)
    norms = attribution.layer_norms(weights, products)
    assert norms.shape == (QUERIES, KEYS)
    for i in range(QUERIES):
        for j in range(KEYS):
            brought = sum(weights[h, i, j] * vector(value, output_weight, h, j) for h in range(HEADS))
            np.testing.assert_allclose(norms[i, j], np.linalg.norm(brought), **CLOSE)
    of_heads = attribution.head_norms(weights, attribution.lengths_of(products)).sum(axis=0)
    assert (norms <= of_heads + 1e-5).all()
    assert (norms < 0.9 * of_heads).any()  # summing the norms instead would show


def test_heads_that_bring_opposite_vectors_cancel():
    weights = np.full((2, 3, 3), 1 / 3, dtype=np.float32)
    value = np.array([[[2.0, 1.0]] * 3] * 2, dtype=np.float32)
    output_weight = np.stack([np.eye(2), -np.eye(2)]).astype(np.float32)
    products = attribution.value_products(value, output_weight)
    np.testing.assert_allclose(
        attribution.head_norms(weights, attribution.lengths_of(products)), np.sqrt(5) / 3, rtol=1e-6
    )
    assert not attribution.layer_norms(weights, products).any()


class TestRollout:
    def test_of_two_layers_on_paper(self):
        """The first layer moves everything to token 0, the second lets token 0 look at token 2."""
        first = np.array([[1, 0, 0], [1, 0, 0], [1, 0, 0]], dtype=np.float32)
        second = np.array([[0, 0, 1], [0, 1, 0], [0, 0, 1]], dtype=np.float32)
        # 0.5 W + 0.5 I: first (1 0 0 | .5 .5 0 | .5 0 .5), second (.5 0 .5 | 0 1 0 | 0 0 1).
        # Row 0 of the product: .5 (1 0 0) + .5 (.5 0 .5).
        expected = [[0.75, 0, 0.25], [0.5, 0.5, 0], [0.5, 0, 0.5]]
        assert attribution.rollout([first, second]).tolist() == expected
        assert attribution.rollout([second, first]).tolist() != expected  # the later one is on the left

    def test_of_one_layer_is_half_the_layer_and_half_the_token_itself(self, weights):
        layer = weights[0][:, :QUERIES]
        np.testing.assert_allclose(attribution.rollout([layer]), 0.5 * layer + 0.5 * np.eye(QUERIES))

    def test_is_the_sum_over_all_paths(self):
        """Abnar and Zuidema read it off paths: the products of the edges, summed over all paths to a token."""
        n_token = 5
        drawn = np.random.default_rng(3).dirichlet(np.full(n_token, 0.5), size=(3, n_token))
        layers = drawn.astype(np.float32)
        edges = [
            [[0.5 * w[i, j] + 0.5 * (i == j) for j in range(n_token)] for i in range(n_token)] for w in drawn
        ]
        for top in range(n_token):
            for bottom in range(n_token):
                reached = sum(
                    edges[2][top][a] * edges[1][a][b] * edges[0][b][bottom]
                    for a in range(n_token)
                    for b in range(n_token)
                )
                np.testing.assert_allclose(attribution.rollout(layers)[top, bottom], reached, **CLOSE)

    def test_of_no_layer_is_nothing(self):
        with pytest.raises(ValueError, match="at least one layer"):
            attribution.rollout([])


@pytest.fixture(scope="module")
def theirs(embedded, door_trace):
    with torch.inference_mode():
        output = embedded.reference(**embedded.inputs(door_trace.tokens), output_attentions=True)
    return np.stack(
        [attention[0].double().numpy() for attention in output.attentions]
    )  # [layer, head, query, key]


class TestOfATrace:
    """What a trace gives for a measure, from weights that the library's eager attention returns."""

    @pytest.mark.parametrize("layer", [0, 3, 5])
    def test_rollout(self, layer, theirs, door_trace):
        n_token = theirs.shape[-1]
        expected = np.eye(n_token)
        for their in theirs[: layer + 1]:
            expected = (0.5 * their.mean(axis=0) + 0.5 * np.eye(n_token)) @ expected
        pattern = door_trace.pattern(layer, 7, measure="rollout")
        np.testing.assert_allclose(pattern.weights, expected, atol=1e-6)
        np.testing.assert_allclose(pattern.weights.sum(axis=1), 1, atol=1e-6)
        assert (pattern.head, pattern.measure, pattern.scores) == (None, "rollout", None)

    @pytest.mark.parametrize("layer", [0, 5])
    def test_norms(self, layer, theirs, door_trace, embedded):
        block = embedded.reference.encoder.layer[layer].attention
        d_head, together = 32, 0
        with torch.inference_mode():
            hidden = embedded.reference(**embedded.inputs(door_trace.tokens), output_hidden_states=True)
            value = block.self.value(hidden.hidden_states[layer][0]).double().numpy()  # with its bias
        output_weight = block.output.dense.weight.detach().double().numpy()  # [d_model, head x d_head]
        for head in range(12):
            of_head = slice(head * d_head, (head + 1) * d_head)
            vectors = value[:, of_head] @ output_weight[:, of_head].T  # [key, d_model]
            brought = theirs[layer, head][:, :, None] * vectors  # [query, key, d_model]
            together = together + brought
            np.testing.assert_allclose(
                door_trace.pattern(layer, head, measure="norms").weights,
                np.linalg.norm(brought, axis=-1),
                **CLOSE,
            )
        np.testing.assert_allclose(
            door_trace.pattern(layer, None, measure="norms").weights,
            np.linalg.norm(together, axis=-1),
            atol=1e-4,
        )

    def test_all_heads_together_are_the_mean_of_their_weights(self, theirs, door_trace):
        pattern = door_trace.pattern(3, None)
        np.testing.assert_allclose(pattern.weights, theirs[3].mean(axis=0), atol=1e-6)
        assert (pattern.head, pattern.scores) == (None, None)

    def test_every_head_of_a_layer_at_once_is_each_head_alone(self, door_trace):
        for measure in ("weights", "norms"):
            at_once = door_trace.layer_weights(2, measure=measure)
            for head in range(12):
                alone = door_trace.pattern(2, head, measure=measure).weights
                np.testing.assert_allclose(at_once[head], alone, atol=1e-6)

    def test_rollout_of_causal_attention_looks_back_only(self, tiny_model):
        trace = tiny_model("gpt2").trace("the cat sat")
        rollout = trace.rollout(tiny.ENCODER_LAYERS - 1)
        assert np.array_equal(rollout, np.tril(rollout))
        np.testing.assert_allclose(rollout.sum(axis=1), 1, atol=1e-6)


class TestRefused:
    @pytest.fixture
    def trace(self, tiny_model) -> Trace:
        return tiny_model("bart").trace("the cat sat", "it opened")

    def test_rollout_of_cross_attention(self, trace):
        assert trace.measures("cross") == ("weights", "norms")
        assert trace.measures("encoder") == trace.measures("decoder") == ("weights", "norms", "rollout")
        for ask in (
            lambda: trace.rollout(0, "cross"),
            lambda: trace.pattern(0, 0, "cross", measure="rollout"),
        ):
            with pytest.raises(SelectionError, match="cross attention of bart has weights, norms"):
                ask()

    def test_rollout_head_by_head(self, trace):
        with pytest.raises(SelectionError, match="all heads of a layer together"):
            trace.layer_weights(0, "encoder", measure="rollout")

    def test_a_layer_that_is_not_there(self, trace):
        with pytest.raises(SelectionError, match="layers 0 to 2"):
            trace.rollout(3)
        with pytest.raises(SelectionError, match="layers 0 to 2"):
            trace.pattern(3, None, measure="norms")
