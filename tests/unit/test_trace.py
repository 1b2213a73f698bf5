"""A trace: shapes, kinds, what it computes on demand, what it refuses, and what it keeps in memory."""

from collections.abc import Iterator

import numpy as np
import pytest

from attnviz.errors import AttnvizError, SelectionError, ShapeError
from attnviz.model.trace import Trace
from tests import numpy_attention
from tests.findings import assert_none

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
