"""The ladder: it passes on what the model computes, and a trace that is wrong anywhere fails it."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

import attnviz
from attnviz.errors import SelectionError, VerificationError
from attnviz.records import LayerAttention
from attnviz.trace import Trace
from attnviz.verification import make_reference, reference_weights


def with_layers(trace: Trace, change: Callable[[list[LayerAttention]], None]) -> Trace:
    """The trace with its first kind's layers changed in place of a copy."""
    kind = trace.kinds[0]
    layers = list(trace.layers[kind])
    change(layers)
    return replace(trace, layers={**trace.layers, kind: tuple(layers)})


def with_layer(trace: Trace, layer: int, **fields: object) -> Trace:
    def change(layers: list[LayerAttention]) -> None:
        layers[layer] = replace(layers[layer], **fields)

    return with_layers(trace, change)


def swapped(array: np.ndarray, one: int, other: int, axis: int) -> np.ndarray:
    order = np.arange(array.shape[axis])
    order[[one, other]] = other, one
    return array.take(order, axis)


def swap_keys_of_two_layers(trace: Trace) -> Trace:
    first, second = (trace.attention(layer).key for layer in (1, 2))
    return with_layer(with_layer(trace, 1, key=second), 2, key=first)


def swap_two_layers(trace: Trace) -> Trace:
    def change(layers: list[LayerAttention]) -> None:
        layers[1], layers[2] = layers[2], layers[1]

    return with_layers(trace, change)


def one_number_off(trace: Trace) -> Trace:
    query = trace.attention(4).query.copy()
    query[7, 5, 3] += 0.1
    return with_layer(trace, 4, query=query)


def one_not_a_number(trace: Trace) -> Trace:
    key = trace.attention(4).key.copy()
    key[7, 5, 3] = np.nan
    return with_layer(trace, 4, key=key)


WRONG = {
    "keys of two layers swapped": swap_keys_of_two_layers,
    "two layers swapped": swap_two_layers,
    "keys of two heads swapped": lambda trace: with_layer(
        trace, 3, key=swapped(trace.attention(3).key, 1, 2, axis=0)
    ),
    "keys of two tokens swapped": lambda trace: with_layer(
        trace, 3, key=swapped(trace.attention(3).key, 4, 5, axis=1)
    ),
    "queries and keys swapped, which transposes the scores": lambda trace: with_layer(
        trace, 3, query=trace.attention(3).key, key=trace.attention(3).query
    ),
    "scale off by 1 %": lambda trace: with_layer(trace, 3, scale=1.01 * trace.attention(3).scale),
    "scale forgotten": lambda trace: with_layer(trace, 0, scale=1.0),
    "last key masked": lambda trace: with_layer(
        trace, 5, allowed=np.arange(len(trace.tokens))[None, None] < len(trace.tokens) - 1
    ),
    "a bias that the model has not": lambda trace: with_layer(
        trace, 5, bias=np.eye(len(trace.tokens), dtype=np.float32)[None]
    ),
    "one number of one query off": one_number_off,
    "one key not a number": one_not_a_number,
}


class TestPasses:
    def test_on_the_embedded_model(self, embedded, door_trace):
        report = attnviz.verify(embedded, door_trace)
        assert report.passed
        assert all(rung.passed for rung in report.rungs)
        assert report.max_abs_error == report.weight_error.max() < 2e-6  # float32; 2.4e-7 when tried
        assert report.weight_error.shape == report.output_errors["encoder"].shape == (6, 12)
        assert report.provenance is door_trace.provenance

    def test_on_a_pair(self, embedded):
        assert attnviz.verify(embedded, embedded.trace("the door opened", "it was open")).passed

    @pytest.mark.parametrize(
        "text", ["a", "[MASK]", "\N{GRINNING FACE}", "door " * 510], ids=lambda text: text[:8]
    )
    def test_on_short_long_and_unknown_texts(self, text, embedded):
        assert attnviz.verify(embedded, embedded.trace(text)).passed

    def test_every_rung_says_why_its_tolerance_is_what_it_is(self, embedded, door_trace):
        for rung in attnviz.verify(embedded, door_trace).rungs:
            assert "float32" in rung.reason
            assert 0 < rung.tolerance <= 1e-4


class TestFails:
    @pytest.mark.parametrize("wrong", WRONG.values(), ids=list(WRONG))
    def test_when_the_weights_are_not_the_model_s(self, wrong, embedded, door_trace):
        report = attnviz.verify(embedded, wrong(door_trace))
        assert not report.weight_rung.passed
        assert not report.passed

    def test_and_points_at_the_layer_and_the_head(self, embedded, door_trace):
        errors = attnviz.verify(embedded, one_number_off(door_trace)).weight_error
        wrong = np.argwhere(errors > 1e-5)
        assert wrong.tolist() == [[4, 7]]

    def test_when_the_last_hidden_state_is_not_the_model_s(self, embedded, door_trace):
        hidden = door_trace.last_hidden_state.copy()
        hidden[5, 100] += 0.01
        report = attnviz.verify(embedded, replace(door_trace, last_hidden_state=hidden))
        assert report.weight_rung.passed
        assert report.output_rung.passed
        assert not report.hidden_rung.passed
        assert not report.passed

    def test_when_the_last_hidden_state_is_not_a_number(self, embedded, door_trace):
        hidden = door_trace.last_hidden_state.copy()
        hidden[0, 0] = np.nan
        assert not attnviz.verify(embedded, replace(door_trace, last_hidden_state=hidden)).passed

    def test_when_the_output_is_not_that_of_torch(self, embedded, door_trace, monkeypatch):
        right = Trace.outputs
        monkeypatch.setattr(Trace, "outputs", lambda *args, **kwargs: 1.001 * right(*args, **kwargs))
        report = attnviz.verify(embedded, door_trace)
        assert report.weight_rung.passed
        assert not report.output_rung.passed

    def test_when_values_are_not_a_number(self, embedded, door_trace):
        value = door_trace.attention(2).value.copy()
        value[0, 0, 0] = np.nan
        assert not attnviz.verify(embedded, with_layer(door_trace, 2, value=value)).passed

    def test_when_the_causal_mask_is_missed(self, tiny_model):
        model = tiny_model("gpt2")
        trace = model.trace("the door")
        assert attnviz.verify(model, trace).passed
        assert not attnviz.verify(model, with_layer(trace, 1, allowed=None)).weight_rung.passed

    def test_when_a_position_bias_is_missed(self, tiny_model):
        model = tiny_model("t5")
        trace = model.trace("I was watching the door")
        assert attnviz.verify(model, trace).passed
        assert not attnviz.verify(model, with_layer(trace, 1, bias=None)).weight_rung.passed

    def test_when_the_trace_is_of_other_weights(self, embedded, door_trace):
        """A trace of the same shape, of another text."""
        other = embedded.trace("I was watching the cat when it opened.")
        assert not attnviz.verify(embedded, replace(door_trace, layers=other.layers)).passed

    def test_loudly_when_there_is_nothing_to_compare_with(self, embedded, tiny_model):
        trace = tiny_model("bert").trace("the door")  # 3 layers of 2 heads
        with pytest.raises(
            VerificationError, match=r"6 x 12 x 4, attnviz recorded 3 x 2 x 4; they cannot be"
        ):
            attnviz.verify(embedded, trace)


class TestReference:
    def test_shares_every_parameter_and_buffer(self, embedded):
        ours, theirs = embedded.network, embedded.reference
        assert theirs is not ours
        for of in ("named_parameters", "named_buffers"):
            shared = {name: one.data_ptr() for name, one in getattr(ours, of)()}
            assert {name: one.data_ptr() for name, one in getattr(theirs, of)()} == shared
        assert len(shared) > 0
        assert len(dict(ours.named_parameters())) > 90

    def test_the_traced_model_keeps_its_own_implementation(self, embedded):
        implementations = (
            embedded.network.config._attn_implementation,
            embedded.reference.config._attn_implementation,
        )
        assert implementations == ("attnviz", "eager")
        make_reference(embedded.network)
        assert embedded.network.config._attn_implementation == "attnviz"
        for module in embedded.network.modules():
            if hasattr(module, "config"):
                assert module.config._attn_implementation == "attnviz"
        for module in embedded.reference.modules():
            if hasattr(module, "config"):
                assert module.config._attn_implementation == "eager"

    def test_a_verification_leaves_the_model_as_it_was(self, embedded, door_trace):
        attnviz.verify(embedded, door_trace)
        again = embedded.trace(door_trace.tokens.text)
        assert np.array_equal(again.weights(3, 1), door_trace.weights(3, 1))

    def test_is_in_evaluation_mode(self, embedded):
        assert not embedded.network.training
        assert not embedded.reference.training

    def test_weights_of_one_layer(self, embedded, door_trace):
        theirs = reference_weights(embedded, door_trace, 3)
        for head in range(12):
            np.testing.assert_allclose(theirs[head], door_trace.weights(3, head), atol=2e-6)  # float32
        assert not np.allclose(theirs[1], door_trace.weights(3, 2), atol=2e-6)

    def test_weights_of_a_layer_that_is_not_there(self, embedded, door_trace):
        with pytest.raises(SelectionError):
            reference_weights(embedded, door_trace, 6)
