"""A trace: shapes, kinds, what it computes on demand, what it refuses, and what it keeps in memory."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from attnviz.errors import AttnvizError, SelectionError, ShapeError
from attnviz.model.trace import Trace
from attnviz.records import LayerAttention
from tests import numpy_attention
from tests.findings import assert_none
from tests.small_records import PROVENANCE, tokens

OF_ONE_HEAD = ("query", "key", "value", "scores", "weights", "output", "pattern")
TEXT, TARGET = "I was watching the door", "it opened ."


@pytest.fixture(params=["bert", "llama", "t5"], ids=["one kind", "grouped heads", "three kinds"])
def trace(request, tiny_model) -> Trace:
    return tiny_model(request.param).trace(TEXT, TARGET if request.param == "t5" else None)


class TestEmbedded:
    def test_axes(self, door_trace):
        n_token, d_head = 11, 32
        assert len(door_trace.tokens) == n_token
        assert (door_trace.kinds, door_trace.n_layers(), door_trace.n_heads(5)) == (("encoder",), 6, 12)
        for name in ("query", "key", "value", "output"):
            assert getattr(door_trace, name)(5, 11).shape == (n_token, d_head)
        for name in ("scores", "weights"):
            assert getattr(door_trace, name)(5, 11).shape == (n_token, n_token)
        assert door_trace.last_hidden_state.shape == (n_token, 12 * d_head)

    def test_provenance(self, door_trace):
        assert door_trace.provenance.model == "all-MiniLM-L6-v2"
        assert door_trace.provenance.dtype == "float32"
        assert {"attnviz", "torch", "transformers"} <= set(door_trace.provenance.versions)


class TestOfOneHead:
    def test_what_is_computed_is_attention_on_what_is_recorded(self, trace):
        for kind in trace.kinds:
            for head in range(trace.n_heads(2, kind)):
                call = trace.attention(2, kind)
                mask = {
                    name: None if matrix is None else matrix[head if len(matrix) > 1 else 0]
                    for name, matrix in (("allowed", call.allowed), ("bias", call.bias))
                }
                query, key, value = (
                    getattr(trace, name)(2, head, kind) for name in ("query", "key", "value")
                )
                weights = numpy_attention.weights(query, key, call.scale, **mask)
                np.testing.assert_allclose(trace.weights(2, head, kind), weights, atol=1e-5)  # float32
                np.testing.assert_allclose(
                    trace.output(2, head, kind), weights @ value, atol=1e-5, rtol=1e-5
                )  # float32

    def test_pattern_holds_the_same_numbers_and_their_tokens(self, trace):
        for kind in trace.kinds:
            pattern = trace.pattern(1, 1, kind)
            assert (pattern.kind, pattern.layer, pattern.head) == (kind, 1, 1)
            assert np.array_equal(pattern.scores, trace.scores(1, 1, kind))
            assert np.array_equal(pattern.weights, trace.weights(1, 1, kind))
            assert pattern.queries.tokens is trace.query_tokens(kind)
            assert pattern.keys.tokens is trace.key_tokens(kind)
            assert pattern.weights.shape == (len(pattern.queries), len(pattern.keys))
            assert not pattern.hidden_weight.any()

    def test_the_first_kind_is_the_default(self, trace):
        for name in OF_ONE_HEAD[:-1]:
            method = getattr(trace, name)
            assert np.array_equal(method(1, 1), method(1, 1, trace.kinds[0])), name

    def test_nothing_can_be_written_to(self, trace):
        for name in OF_ONE_HEAD[:-1]:
            with pytest.raises(ValueError, match="read-only"):
                getattr(trace, name)(0, 0)[...] = 0
        with pytest.raises(TypeError):
            trace.layers["encoder"] = ()


def not_refused(trace: Trace, name: str, asked: tuple, message: str) -> Iterator[str]:
    """What a method answers where it has to raise a SelectionError that begins with these words."""
    call = f"{name}({', '.join(map(repr, asked))})"
    try:
        getattr(trace, name)(*asked)
    except SelectionError as error:
        if not str(error).startswith(message):
            yield f"{call} says: {error}"
    else:
        yield f"{call} is not refused"


class TestOutOfRange:
    def test_layer_and_head(self, tiny_model):
        trace = tiny_model("bert").trace(TEXT)
        assert_none(
            finding
            for name in OF_ONE_HEAD
            for asked, message in [
                ((3, 0), "Layer 3 was asked for; bert has layers 0 to 2"),
                ((-1, 0), "Layer -1 was asked for"),
                ((0, 2), "Head 2 was asked for; layer 0 of bert has heads 0 to 1"),
                ((0, -1), "Head -1 was asked for"),
            ]
            for finding in not_refused(trace, name, asked, message)
        )

    def test_a_head_of_a_group_is_counted_as_a_query_head(self, tiny_model):
        trace = tiny_model("llama").trace(TEXT)
        shared = trace.attention(0)
        for head, kv_head in enumerate([0, 0, 0, 1, 1, 1]):
            assert np.array_equal(trace.key(0, head), shared.key[kv_head])
            assert np.array_equal(trace.value(0, head), shared.value[kv_head])
        with pytest.raises(SelectionError, match="heads 0 to 5"):
            trace.key(0, 6)

    def test_kind(self, tiny_model):
        trace = tiny_model("bert").trace(TEXT)
        message = "Attention of kind 'cross' was asked for; bert has encoder"
        assert_none(
            finding for name in OF_ONE_HEAD for finding in not_refused(trace, name, (0, 0, "cross"), message)
        )

    def test_kind_of_the_whole(self, tiny_model):
        trace = tiny_model("gpt2").trace(TEXT)
        message = "Attention of kind 'encoder' was asked for; gpt2 has decoder"
        assert_none(
            finding
            for name in ("n_layers", "heads", "shape", "query_tokens", "key_tokens")
            for finding in not_refused(trace, name, ("encoder",), message)
        )

    def test_check_can_fail(self, tiny_model):
        trace = tiny_model("bert").trace(TEXT)
        assert list(not_refused(trace, "query", (0, 0), "Layer")) == ["query(0, 0) is not refused"]
        assert list(not_refused(trace, "query", (3, 0), "Head 3")) == [
            "query(3, 0) says: Layer 3 was asked for; bert has layers 0 to 2. Select one of those."
        ]

    def test_is_an_index_error_too(self, door_trace):
        with pytest.raises(IndexError) as caught:
            door_trace.weights(6, 0)
        assert isinstance(caught.value, AttnvizError)


@pytest.mark.parametrize(
    ("family", "ends"), [("bert", "tokens"), ("gpt2", "tokens"), ("t5", "target_tokens")]
)
def test_the_last_hidden_states_are_those_of_the_last_tokens(family, ends, tiny_model):
    model = tiny_model(family)
    trace = model.trace(TEXT, "a cat") if family == "t5" else model.trace(TEXT)
    assert trace.last_tokens is getattr(trace, ends)
    assert len(trace.last_hidden_state) == len(trace.last_tokens)


def test_the_shape_counts_layers_and_heads(tiny_model):
    trace = tiny_model("t5").trace(TEXT, "a cat")
    for kind in trace.kinds:
        assert trace.shape(kind) == (len(trace.layers[kind]), len(trace.layers[kind][0].query))


def test_layers_that_do_not_fit_the_tokens_are_refused(tiny_model):
    long, short = tiny_model("bert").trace(TEXT), tiny_model("bert").trace("a cat")
    with pytest.raises(ShapeError, match="7 queries and 7 keys for 4 and 4 tokens"):
        Trace(
            tokens=short.tokens,
            layers=long.layers,
            last_hidden_state=long.last_hidden_state,
            provenance=long.provenance,
        )


def test_it_is_said_which_sizes_do_not_fit(tiny_model):
    trace = tiny_model("t5").trace(TEXT, "a cat")  # 6 and 5 tokens
    other = tiny_model("t5").trace("a", "a door opened it")
    n_key, n_query = len(other.tokens), len(other.target_tokens)
    assert n_key != n_query
    message = (
        f"cross layer 0 has {n_query} queries and {n_key} keys for {len(trace.target_tokens)} and 6 tokens"
    )
    with pytest.raises(ShapeError, match=message):
        replace(trace, layers={**trace.layers, "cross": other.layers["cross"]})


class TestDrawn:
    """A decoder of two layers of 4 and 2 heads, the first of which share keys; all numbers are drawn, and W_O is known."""

    N, D_HEAD, D_VALUE, D_MODEL = 5, 3, 2, 7

    @pytest.fixture(scope="class")
    @classmethod
    def drawn(cls) -> Trace:
        rng = np.random.default_rng(0)

        def numbers(*shape: int) -> np.ndarray:
            return rng.standard_normal(shape).astype(np.float32)

        def layer(number: int, n_head: int, n_kv_head: int, **terms: np.ndarray) -> LayerAttention:
            return LayerAttention(
                kind="decoder",
                layer=number,
                query=numbers(n_head, cls.N, cls.D_HEAD),
                key=numbers(n_kv_head, cls.N, cls.D_HEAD),
                value=numbers(n_kv_head, cls.N, cls.D_VALUE),
                scale=0.8,
                output_weight=numbers(n_head, cls.D_VALUE, cls.D_MODEL),
                output_bias=numbers(cls.D_MODEL),
                **terms,
            )

        causal = np.tril(np.ones((cls.N, cls.N), dtype=bool))
        near = causal & ~np.tril(causal, -2)
        layers = (
            layer(0, 4, 2, allowed=np.stack([causal, near, near, causal]), bias=numbers(1, cls.N, cls.N)),
            layer(1, 2, 2, allowed=np.stack([near, near])),
        )
        return Trace(
            tokens=tokens(cls.N),
            layers={"decoder": layers},
            last_hidden_state=numbers(cls.N, cls.D_MODEL),
            provenance=PROVENANCE,
        )

    @staticmethod
    def weights(drawn: Trace, layer: int) -> np.ndarray:
        """[head query key] in float64."""
        call = drawn.layers["decoder"][layer]
        group = len(call.query) // len(call.key)
        return np.stack(
            [
                numpy_attention.weights(
                    query,
                    call.key[head // group],
                    0.8,
                    call.allowed[head],
                    None if call.bias is None else call.bias[0],
                )
                for head, query in enumerate(call.query)
            ]
        )

    @staticmethod
    def vectors(drawn: Trace, layer: int) -> np.ndarray:
        """v W_O [head key d_model] in float64."""
        call = drawn.layers["decoder"][layer]
        group = len(call.query) // len(call.key)
        maps = call.output_weight.astype(np.float64)
        return np.stack([call.value[head // group] @ w_o for head, w_o in enumerate(maps)])

    def test_counts(self, drawn):
        assert (drawn.n_layers(), drawn.n_heads(0), drawn.n_heads(1)) == (2, 4, 2)
        assert drawn.shape() == (2, 4)  # as wide as the layer with the most heads
        assert [tuple(head) for head in drawn.heads()] == [(0, 0), (0, 1), (0, 2), (0, 3), (1, 0), (1, 1)]
        assert drawn.measures() == ("weights", "norms", "rollout")
        with pytest.raises(SelectionError, match="layer 1 of m has heads 0 to 1"):
            drawn.head(1, 2)

    @pytest.mark.parametrize("layer", [0, 1])
    def test_heads(self, drawn, layer):
        weights, vectors = self.weights(drawn, layer), self.vectors(drawn, layer)
        lengths = np.sqrt((vectors**2).sum(axis=-1))
        norms = weights * lengths[:, None]
        call = drawn.layers["decoder"][layer]
        np.testing.assert_allclose(drawn.layer_weights(layer), weights, atol=1e-6)
        np.testing.assert_allclose(drawn.layer_weights(layer, measure="norms"), norms, atol=1e-5)
        np.testing.assert_allclose(drawn.value_lengths(layer), lengths, rtol=1e-5)
        products = np.einsum("gkd,hkd->ghk", vectors, vectors)
        np.testing.assert_allclose(drawn.value_products(layer), products, atol=1e-4)
        for head in range(len(weights)):
            of_weights = drawn.pattern(layer, head)
            np.testing.assert_allclose(of_weights.weights, weights[head], atol=1e-6)
            assert np.array_equal(np.isfinite(of_weights.scores), call.allowed[head])
            assert np.array_equal(of_weights.allowed, call.allowed[head])
            of_norms = drawn.pattern(layer, head, measure="norms")
            np.testing.assert_allclose(of_norms.weights, norms[head], atol=1e-5)
            assert (of_norms.measure, of_norms.scores) == ("norms", None)
            values = call.value[head * len(call.value) // len(call.query)]
            np.testing.assert_allclose(drawn.output(layer, head), weights[head] @ values, atol=1e-5)

    @pytest.mark.parametrize("layer", [0, 1])
    def test_all_heads_together(self, drawn, layer):
        weights, vectors = self.weights(drawn, layer), self.vectors(drawn, layer)
        mean = drawn.pattern(layer, None)
        assert (mean.layer, mean.head, mean.scores) == (layer, None, None)
        np.testing.assert_allclose(mean.weights, weights.mean(axis=0), atol=1e-6)
        assert np.array_equal(mean.allowed, drawn.layers["decoder"][layer].allowed.any(axis=0))
        summed = np.einsum("hqk,hkd->qkd", weights, vectors)  # before the norm: heads may cancel each other
        norms = drawn.pattern(layer, None, measure="norms").weights
        np.testing.assert_allclose(norms, np.sqrt((summed**2).sum(axis=-1)), atol=2e-3)

    def test_rollout(self, drawn):
        mixed = [(self.weights(drawn, layer).mean(axis=0) + np.eye(self.N)) / 2 for layer in (0, 1)]
        for layer, reached in ((0, mixed[0]), (1, mixed[1] @ mixed[0])):
            np.testing.assert_allclose(drawn.rollout(layer), reached, atol=1e-6)
            pattern = drawn.pattern(layer, 1, measure="rollout")
            np.testing.assert_allclose(pattern.weights, reached, atol=1e-6)
            assert (pattern.measure, pattern.head, pattern.layer) == ("rollout", None, layer)
        with pytest.raises(SelectionError, match=r"Rollout was asked for head by head"):
            drawn.layer_weights(0, measure="rollout")

    def test_another_layer_in_its_place(self, drawn):
        other = replace(drawn.attention(1), scale=2.0)
        changed = drawn.with_layer(other)
        assert changed.attention(1) is other and changed.attention(0) is drawn.attention(0)
        assert drawn.attention(1).scale == 0.8

    def test_without_w_o_there_are_no_norms(self, drawn):
        unknown = drawn
        for call in drawn.layers["decoder"]:
            unknown = unknown.with_layer(replace(call, output_weight=None, output_bias=None))
        assert unknown.measures() == ("weights", "rollout")
        for ask in (
            lambda: unknown.pattern(0, 1, measure="norms"),
            lambda: unknown.value_lengths(0),
            lambda: unknown.value_products(0),
        ):
            with pytest.raises(SelectionError, match="decoder attention of m has weights, rollout"):
                ask()

    def test_of_a_bundle_the_products_tell_the_lengths(self, drawn):
        call = replace(drawn.attention(0), output_weight=None, value_products=drawn.value_products(0))
        read = drawn.with_layer(call)
        np.testing.assert_array_equal(read.value_lengths(0), drawn.value_lengths(0))
        np.testing.assert_array_equal(
            read.pattern(0, 2, measure="norms").weights, drawn.pattern(0, 2, measure="norms").weights
        )


class TestMemory:
    """A trace of 512 tokens keeps queries, keys and values, and no matrix of 512 x 512."""

    @pytest.fixture(scope="class")
    @classmethod
    def long_trace(cls, embedded) -> Trace:
        return embedded.trace("door " * 510)

    def test_stays_in_the_budget(self, long_trace, kept_bytes):
        n_layer, n_token, d_model = 6, 512, 384
        assert len(long_trace.tokens) == n_token
        budget = 3 * n_layer * n_token * d_model * 4
        assert budget <= kept_bytes(long_trace) <= 1.1 * budget

    def test_computing_weights_adds_nothing(self, long_trace, kept_bytes):
        before = kept_bytes(long_trace)
        long_trace.pattern(3, 1)
        long_trace.output(3, 1)
        assert kept_bytes(long_trace) == before
        assert not hasattr(long_trace, "__dict__")  # no place to keep a thing that is not a field

    def test_no_array_has_an_entry_for_each_query_and_key(self, long_trace):
        for call in long_trace.layers["encoder"]:
            assert call.allowed is None
            assert call.bias is None
            assert call.query.shape == call.key.shape == call.value.shape == (12, 512, 32)


def test_its_repr_and_its_models_are_a_line(embedded):
    trace = embedded.trace("I was watching the door when it opened." * 4)
    for record in (trace, embedded):
        assert len(repr(record)) < 120
        assert "all-MiniLM-L6-v2" in repr(record)
    assert "38 tokens, encoder 6 x 12 heads" in repr(trace)
    assert "query=float32[12, 38, 32]" in repr(trace.attention(0))
    assert len(repr(trace.tokens)) < 400
