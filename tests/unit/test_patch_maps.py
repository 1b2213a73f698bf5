"""Every kind of patch against hooks of this file in float64, on transformers' own attention: Llama, whose heads share keys, and GPT-2."""

from functools import cache

import numpy as np
import pytest
import torch

from attnviz.effects.attribution_patching import attribute_patches
from attnviz.effects.patching import CARRIED, OF_HEADS, patch
from tests.hooked import Hooked, put

TEXT, OTHER = "the cat sat on a mat", "the dog ran on a cot"
FAMILIES = ("llama", "gpt2")
TOLERANCE = 2e-4
"""float32 beside float64; outcomes are of size 1 to 10."""


def outcome(states):
    return states[:, -1, :4].sum(dim=1)


class Pair:
    """Two texts of a tiny model, by attnviz and by hooks."""

    def __init__(self, model, folder):
        self.model, self.hooked = model, Hooked(folder)
        self.receiver, self.donor = model.trace(TEXT), model.trace(OTHER)
        self.ids, self.other_ids = self.receiver.tokens.ids, self.donor.tokens.ids
        assert len(self.ids) == len(self.other_ids)

    def measured(self, edits=()):
        last, _ = self.hooked.run(self.ids, edits)
        return outcome(last[None])[0]

    def n_columns(self, carried):
        return self.hooked.n_kv_head if carried in ("key", "value") else self.hooked.n_head

    def edits(self, carried, layer, head, positions):
        """What carries the donor's state there."""
        if carried != "pattern":
            site = self.hooked.site(carried, layer, head)
            with torch.no_grad():
                _, [state] = self.hooked.run(self.other_ids, reads=[site])
            return [(site, put(state, positions))]
        mixed = self.hooked.weights(self.ids, layer)[head].clone()
        at = slice(None) if positions is None else list(positions)
        mixed[at] = self.hooked.weights(self.other_ids, layer)[head][at]
        shared = head * self.hooked.n_kv_head // self.hooked.n_head
        with torch.no_grad():
            _, [values] = self.hooked.run(self.ids, reads=[self.hooked.site("value", layer, shared)])
        return [(self.hooked.site("heads", layer, head), put(mixed @ values))]


@pytest.fixture
def pairs(tiny_model, checkpoint):
    return cache(lambda family: Pair(tiny_model(family), checkpoint(family)))


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("carried", CARRIED)
def test_every_kind_of_state(pairs, family, carried):
    pair = pairs(family)
    n_token = len(pair.ids)
    found = patch(pair.model, pair.receiver, pair.donor, outcome, carried=carried)
    is_of_heads = carried in OF_HEADS
    n_column = pair.n_columns(carried) if is_of_heads else n_token
    assert (found.rows, found.columns) == ("layer", "head" if is_of_heads else "token")
    assert found.outcomes.shape == (pair.hooked.n_layer, n_column)
    assert found.base == pytest.approx(pair.measured().item(), abs=TOLERANCE)
    for layer in range(pair.hooked.n_layer):
        for column in range(n_column) if is_of_heads else (2, n_token - 1):
            head, positions = (column, None) if is_of_heads else (0, (column,))
            expected = pair.measured(pair.edits(carried, layer, head, positions)).item()
            assert found.outcomes[layer, column] == pytest.approx(expected, abs=TOLERANCE)
    assert np.abs(found.changes).max() > 0.05


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("carried", OF_HEADS)
def test_what_a_head_has_at_one_token(pairs, family, carried):
    """As a map of all heads at that token, and as a row of the map of the heads of one layer."""
    pair = pairs(family)
    layer, at = 1, 5
    of_all = patch(pair.model, pair.receiver, pair.donor, outcome, carried=carried, position=at, rows=[layer])
    of_layer = patch(pair.model, pair.receiver, pair.donor, outcome, carried=carried, layer=layer)
    assert (of_layer.rows, of_layer.columns) == ("head", "token")
    assert of_layer.outcomes.shape == (pair.n_columns(carried), len(pair.ids))
    assert np.isnan(np.delete(of_all.outcomes, layer, axis=0)).all() and of_all.position == at
    for head in range(pair.n_columns(carried)):
        expected = pair.measured(pair.edits(carried, layer, head, (at,))).item()
        assert of_all.outcomes[layer, head] == pytest.approx(expected, abs=TOLERANCE)
        assert of_layer.outcomes[head, at] == pytest.approx(expected, abs=TOLERANCE)


def derivative(pair, carried, layer, head, positions=None):
    """(a' - a) · ∂f/∂a, with the derivative by torch of the outcome with something added there."""
    [(site, carry)] = pair.edits(carried, layer, head, positions)
    with torch.no_grad():
        _, [own] = pair.hooked.run(pair.ids, reads=[site])
    added = torch.zeros_like(own, requires_grad=True)
    (gradient,) = torch.autograd.grad(pair.measured([(site, lambda states: states + added)]), added)
    return float(((carry(own) - own) * gradient).sum())


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("carried", CARRIED)
def test_the_gradient_s_patches_are_those_of_torch_s_autograd(pairs, family, carried):
    pair = pairs(family)
    found = attribute_patches(pair.model, pair.receiver, pair.donor, outcome, carried=carried)
    is_of_heads = carried in OF_HEADS
    columns = range(found.outcomes.shape[1]) if is_of_heads else (2, len(pair.ids) - 1)
    for layer in range(pair.hooked.n_layer):
        for column in columns:
            head, positions = (column, None) if is_of_heads else (0, (column,))
            expected = derivative(pair, carried, layer, head, positions)
            assert found.changes[layer, column] == pytest.approx(expected, abs=TOLERANCE, rel=1e-3)
    assert np.abs(found.changes).max() > 0.05


@pytest.mark.parametrize("carried", OF_HEADS)
def test_the_gradient_s_patches_at_one_token(pairs, carried):
    pair = pairs("llama")
    given = pair.model, pair.receiver, pair.donor, outcome
    of_all = attribute_patches(*given, carried=carried, position=5)
    of_layer = attribute_patches(*given, carried=carried, layer=1)
    for head in range(pair.n_columns(carried)):
        expected = derivative(pair, carried, 1, head, (5,))
        assert of_all.changes[1, head] == pytest.approx(expected, abs=TOLERANCE, rel=1e-3)
        assert of_layer.changes[head, 5] == pytest.approx(expected, abs=TOLERANCE, rel=1e-3)
    together = attribute_patches(*given, carried=carried)
    np.testing.assert_allclose(of_layer.changes.sum(axis=1), together.changes[1], atol=TOLERANCE)
