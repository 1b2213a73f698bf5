"""Sums of parts on paper: ALTI's closeness, rows as shares, and the steps by which a network makes one vector of another."""

import math

import numpy as np
import pytest
import torch
from torch import nn

import attnviz
from attnviz.effects import context_mixing, decompx
from attnviz.effects.outcome import TokenState
from attnviz.maths.context_mixing import as_shares, closeness, mixed_vectors
from attnviz.maths.decomposition import shares_of_bias, through_map, with_bias
from attnviz.model.direct_path import Affine, FrozenNorm
from attnviz.model.linear_steps import Slopes, steps_between
from attnviz.model.stream import Call

TEXT = "the cat sat when it opened"


def test_a_part_counts_as_far_as_it_is_close():
    """Of (4, -2): itself counts 6, (4, 0) counts 6 - 2, (0, 1) and its opposite nothing."""
    parts = np.array([[[4.0, -2.0], [4.0, 0.0], [0.0, 1.0], [-4.0, 2.0]]])
    found = closeness(parts, np.array([[4.0, -2.0]]))
    assert found.tolist() == [[6.0, 4.0, 0.0, 0.0]]
    assert as_shares(np.array([[3.0, 1.0], [0.0, 0.0]])).tolist() == [[0.75, 0.25], [0.0, 1.0]]


def test_vectors_are_mixed_by_their_weights():
    """Two heads, one query, two keys: 2 (1, 0) + 3 (0, 1) of the first key."""
    weights = np.array([[[2.0, 0.5]], [[3.0, 0.0]]])
    vectors = np.array([[[1.0, 0.0], [4.0, 4.0]], [[0.0, 1.0], [9.0, 9.0]]])
    assert mixed_vectors(weights, vectors).tolist() == [[[2.0, 3.0], [2.0, 2.0]]]


def test_a_bias_is_divided_by_its_products():
    """(1, 1) has the products 3 and -1 with two parts: three quarters and a quarter; equal where all are 0."""
    parts, bias = torch.tensor([[2.0, 1.0], [-1.0, 0.0]]), torch.tensor([1.0, 1.0])
    assert with_bias(parts, bias).tolist() == [[2.75, 1.75], [-0.75, 0.25]]
    assert shares_of_bias(torch.zeros(4)).tolist() == [0.25] * 4
    weight, of_map = torch.tensor([[1.0, 0.0, 2.0], [1.0, 1.0, 0.0]]), torch.tensor([1.0, -1.0, 0.5])
    whole = through_map(parts, weight, of_map)
    torch.testing.assert_close(whole, with_bias(parts @ weight, of_map))
    torch.testing.assert_close(through_map(parts, weight, of_map, [2, 0]), whole[:, [2, 0]])


def called(module, given):
    made = module(given).detach()
    return Call(module=module, given=given.numpy(), made=made.numpy()), made


class TestSteps:
    def test_are_found_whether_an_activation_is_a_module_or_a_function(self):
        torch.manual_seed(0)
        start = torch.randn(3, 5)
        norm, first = called(nn.LayerNorm(5), start)
        inner, second = called(nn.Linear(5, 7), first)
        aside, _ = called(nn.Linear(5, 7), start)
        for function in (nn.GELU(), nn.Tanh(), nn.ReLU(), nn.SiLU()):
            active = function(second)
            module = Call(module=function, given=second.numpy(), made=active.numpy())
            outer, end = called(nn.Linear(7, 5, bias=False), active)
            for calls in ((aside, norm, inner, module, outer), (aside, norm, inner, outer)):
                steps = steps_between(start.numpy(), end.numpy(), calls)
                assert [type(step) for step in steps] == [FrozenNorm, Affine, Slopes, Affine]
                np.testing.assert_allclose(steps[2].slopes * second.numpy(), active.numpy(), atol=1e-6)
        assert steps_between(start.numpy(), start.numpy(), ()) == ()
        assert steps_between(start.numpy(), end.numpy(), (norm, inner)) is None

    def test_lead_through_no_gate(self):
        torch.manual_seed(0)
        start = torch.randn(3, 5)
        gate, first = called(nn.Linear(5, 7), start)
        up, second = called(nn.Linear(5, 7), start)
        down, end = called(nn.Linear(7, 5), nn.functional.silu(first) * second)
        assert steps_between(start.numpy(), end.numpy(), (gate, up, down)) is None


def test_some_queries_at_a_time_give_the_same(tiny_model, monkeypatch):
    model = tiny_model("bert")
    trace = model.trace(TEXT)
    functions = (attnviz.alti, attnviz.value_zeroing)
    whole = [function(model, trace).matrices for function in functions]
    values = attnviz.decompx(model, trace, TokenState(position=3)).values
    for module in (context_mixing, decompx):
        monkeypatch.setattr(module, "_MOST_NUMBERS", 1)
    monkeypatch.setattr(context_mixing, "most_rows", lambda _: 3)
    for function, matrices in zip(functions, whole, strict=True):
        np.testing.assert_allclose(function(model, trace).matrices, matrices, atol=1e-6)
    np.testing.assert_allclose(
        attnviz.decompx(model, trace, TokenState(position=3)).values, values, atol=1e-6
    )


@pytest.mark.parametrize(("gap", "passed"), [(9e-6, True), (1.1e-5, False), (math.nan, False)])
def test_a_gap_above_rounding_does_not_pass(gap, passed, tiny_model):
    model = tiny_model("bert")
    trace = model.trace("the cat")
    matrix = np.eye(len(trace.tokens), dtype=np.float32)[None]
    mixing = context_mixing.ContextMixing(
        method="alti",
        kind="encoder",
        tokens=trace.tokens,
        matrices=matrix,
        allowed=matrix > 0,
        gap=gap,
        provenance=trace.provenance,
    )
    assert mixing.passed is passed
