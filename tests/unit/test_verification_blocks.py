"""The verification of a long text, some queries at a time: it compares every cell, and gives what the whole comparison gives."""

from dataclasses import replace

import numpy as np
import pytest
import torch

import attnviz
from attnviz.maths import blocks
from attnviz.model import reference, verification
from attnviz.model.head_attention import HeadAttention
from attnviz.model.reference import in_float64
from attnviz.model.trace import Trace
from attnviz.model.verification import reference_weights

TEXT = "the cat sat when it opened"
ROWS = 3
FAMILIES = ["bert", "llama", "gemma2", "t5", "mpnet"]
"""All keys seen; causal and grouped; softcap and window; bias and cross-attention; a class of its own, which is one block."""


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(reference, "WHOLE", ROWS)
    monkeypatch.setattr(reference, "ROWS", ROWS)
    monkeypatch.setattr(blocks, "QUERY_BLOCK", ROWS)


@pytest.mark.parametrize("name", FAMILIES)
def test_every_check_has_the_numbers_of_the_whole_comparison(name, tiny_model, monkeypatch, request):
    model = tiny_model(name)
    trace = model.trace(TEXT, "it opened ." if name == "t5" else None)
    whole = attnviz.verify(model, trace)
    request.getfixturevalue("small_blocks")
    sizes = []
    function = reference.family_function

    def counted(module: torch.nn.Module):
        return lambda *args, **named: sizes.append(args[1].shape[2]) or function(module)(*args, **named)

    monkeypatch.setattr(reference, "family_function", counted)
    in_blocks = attnviz.verify(model, trace)
    assert in_blocks.passed
    assert [check.name for check in in_blocks.checks] == [check.name for check in whole.checks]
    for check, expected in zip(in_blocks.checks, whole.checks, strict=True):
        for kind, tolerances in expected.tolerances.items():
            np.testing.assert_allclose(
                check.tolerances[kind], tolerances, rtol=0.5
            )  # these follow the measured differences
            np.testing.assert_allclose(check.differences[kind], expected.differences[kind], atol=5e-6)
    assert name == "mpnet" or (set(sizes) <= {1, 2, 3} and 3 in sizes)


def test_a_key_of_the_last_token_that_is_off_is_seen_in_the_last_tile(small_blocks, tiny_model):
    """The last query alone sees the last key."""
    model = tiny_model("llama")
    trace = model.trace(TEXT)
    key = trace.attention(2).key.copy()
    key[1, -1, 3] += 0.1
    layers = list(trace.layers["decoder"])
    layers[2] = replace(layers[2], key=key)
    check = attnviz.verify(model, replace(trace, layers={"decoder": tuple(layers)})).check(
        "attention weights"
    )
    assert not check.passed
    assert {tuple(place) for place in np.argwhere(check.differences["decoder"] > 1e-5).tolist()} <= {
        (2, 3),
        (2, 4),
        (2, 5),
    }  # the heads that share the key


@pytest.mark.parametrize("fault", [0.01, np.nan])
@pytest.mark.parametrize("at_once", [False, True])
def test_a_single_cell_of_the_last_tile_is_seen_in_either_computation(
    at_once, fault, small_blocks, tiny_model, monkeypatch
):
    model = tiny_model("llama")
    trace = model.trace(TEXT)
    last = len(trace.tokens) - 1
    if at_once:
        right_blocks = Trace._blocks

        def wrong_blocks(call, *args):
            for rows, weights in right_blocks(call, *args):
                if call.layer == 1 and rows.stop == last + 1:
                    weights[4, -1, -1] += fault
                yield rows, weights

        monkeypatch.setattr(Trace, "_blocks", staticmethod(wrong_blocks))
    else:
        right = HeadAttention.scores_and_weights
        wanted = trace.head(1, 4).query

        def wrong(self, rows=slice(None)):
            scores, weights = right(self, rows)
            if np.array_equal(self.query, wanted) and rows.stop == last + 1:
                weights = weights.copy()
                weights[-1, -1] += fault
            return scores, weights

        monkeypatch.setattr(HeadAttention, "scores_and_weights", wrong)
    check = attnviz.verify(model, trace).check("attention weights")
    assert not check.passed
    assert check.worst == ("decoder", 1, 4)


def test_a_score_of_the_last_tile_is_seen(small_blocks, tiny_model, monkeypatch):
    model = tiny_model("gemma2")
    trace = model.trace(TEXT)
    right = HeadAttention.scores_and_weights

    def wrong(self, rows=slice(None)):
        scores, weights = right(self, rows)
        scores = scores.copy()
        if rows.stop == len(trace.tokens):
            scores[-1, -1] += 0.01
        return scores, weights

    monkeypatch.setattr(HeadAttention, "scores_and_weights", wrong)
    assert [check.name for check in attnviz.verify(model, trace).failed] == ["scores"]


def test_rows_of_a_layer_s_reference(small_blocks, tiny_model):
    model = tiny_model("llama")
    trace = model.trace(TEXT)
    whole = reference_weights(model, trace, 1)
    assert whole.shape == (6, len(trace.tokens), len(trace.tokens))
    for rows in (slice(2, 7), slice(4, 5), slice(-2, None)):
        np.testing.assert_array_equal(reference_weights(model, trace, 1, rows=rows), whole[:, rows])
    np.testing.assert_allclose(whole, trace.layer_weights(1), atol=1e-5)


def test_rows_of_a_head(tiny_model):
    trace = tiny_model("t5").trace(TEXT, "it opened .")
    for kind in trace.kinds:
        head = trace.head(1, 1, kind)
        rows = slice(1, 3)
        for ours, whole in zip(head.scores_and_weights(rows), head.scores_and_weights(), strict=True):
            np.testing.assert_allclose(ours, whole[rows], atol=1e-6)
        np.testing.assert_allclose(head.scores(rows), head.scores()[rows], atol=1e-6)
        np.testing.assert_array_equal(head.weights(rows), head.scores_and_weights(rows)[1])


def test_progress_rises_to_the_end_also_where_it_is_compared_once_more(tiny_model, monkeypatch):
    model = tiny_model("bert")
    trace = model.trace(TEXT)
    told = []
    attnviz.verify(model, trace, progress=told.append)
    assert told == sorted(told) and told[-1] == 1.0 and len(told) == 4
    asked = []
    monkeypatch.setattr(verification, "in_float64", lambda network: asked.append(1) or in_float64(network))
    value = trace.attention(1).value.copy()
    value[0, 0, 0] += 1.0
    layers = list(trace.layers["encoder"])
    layers[1] = replace(layers[1], value=value)
    told.clear()
    attnviz.verify(model, replace(trace, layers={"encoder": tuple(layers)}), progress=told.append)
    assert asked
    assert told == sorted(told) and told[-1] == 1.0 and len(told) == 10


def test_what_progress_raises_ends_it(tiny_model):
    class Enough(BaseException):
        pass

    def stop(share: float) -> None:
        raise Enough

    model = tiny_model("bert")
    with pytest.raises(Enough):
        model.trace(TEXT, progress=stop)
    with pytest.raises(Enough):
        attnviz.verify(model, model.trace(TEXT), progress=stop)


def test_a_trace_hands_out_each_layer_as_it_is_recorded(tiny_model):
    model = tiny_model("t5")
    tokens, target = model.read(TEXT, "it opened .")
    layers, shares = [], []
    trace = model.trace_tokens(tokens, target, progress=shares.append, on_layer=layers.append)
    assert shares == [number / 11 for number in range(11)]
    assert len(layers) == 11
    for layer in layers:
        ours = trace.attention(layer.layer, layer.kind)
        np.testing.assert_array_equal(layer.query, ours.query)
        np.testing.assert_array_equal(layer.output_weight, ours.output_weight)
