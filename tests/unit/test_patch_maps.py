"""Every kind of patch against hooks of this file in float64, on transformers' own attention: Llama, whose heads share keys, and GPT-2."""

from functools import cache

import numpy as np
import pytest
import torch

from attnviz.effects.attribution_patching import attribute_patches
from attnviz.effects.outcome import TokenAnswer, TokenState, measured
from attnviz.effects.patching import CARRIED, OF_HEADS, patch
from attnviz.errors import SelectionError
from attnviz.model.interventions import ReplacedState, ScaledOutput
from attnviz.model.states import hidden_states
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
    patched = patch(pair.model, pair.receiver, pair.donor, outcome, carried=carried)
    is_of_heads = carried in OF_HEADS
    n_column = pair.n_columns(carried) if is_of_heads else n_token
    assert (patched.rows, patched.columns) == ("layer", "head" if is_of_heads else "token")
    assert patched.outcomes.shape == (pair.hooked.n_layer, n_column)
    assert patched.base == pytest.approx(pair.measured().item(), abs=TOLERANCE)
    for layer in range(pair.hooked.n_layer):
        for column in range(n_column) if is_of_heads else (2, n_token - 1):
            head, positions = (column, None) if is_of_heads else (0, (column,))
            expected = pair.measured(pair.edits(carried, layer, head, positions)).item()
            assert patched.outcomes[layer, column] == pytest.approx(expected, abs=TOLERANCE)
    assert np.abs(patched.changes).max() > 0.05


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
    estimate = attribute_patches(pair.model, pair.receiver, pair.donor, outcome, carried=carried)
    is_of_heads = carried in OF_HEADS
    columns = range(estimate.outcomes.shape[1]) if is_of_heads else (2, len(pair.ids) - 1)
    for layer in range(pair.hooked.n_layer):
        for column in columns:
            head, positions = (column, None) if is_of_heads else (0, (column,))
            expected = derivative(pair, carried, layer, head, positions)
            assert estimate.changes[layer, column] == pytest.approx(expected, abs=TOLERANCE, rel=1e-3)
    assert np.abs(estimate.changes).max() > 0.05


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


class TestSmolLM2:
    """Who is given the drink, on the bundled language model: the sentence with John as the giver, and the one with Mary."""

    GIVER = "When Mary and John went to the store, {} gave a drink to"

    @pytest.fixture
    def given(self, smollm2):
        receiver, donor = (smollm2.trace(self.GIVER.format(name)) for name in ("John", "Mary"))
        answer = TokenAnswer(position=len(receiver.tokens) - 1, token=" Mary", against=" John")
        return smollm2, receiver, donor, measured(smollm2, receiver, answer)

    def test_head_23_3_carries_most_of_it_and_24_4_works_against_it(self, given):
        patched = patch(*given, carried="heads", rows=[23, 24])
        assert patched.base > 5 and patched.donor < -5  # " Mary" after John, " John" after Mary
        order = np.argsort(-np.nan_to_num(patched.shares), axis=None)
        assert np.unravel_index(order[0], patched.shares.shape) == (23, 3)
        assert patched.shares[23, 3] > 0.5 and patched.shares[23, 0] > 0.05 and patched.shares[23, 7] > 0.03
        assert patched.shares[24, 4] < -0.1

    @pytest.mark.nightly
    def test_as_transformers_in_float64(self, given, smollm2):
        """The outcome with one head carried over, at all tokens and at the last, by hooks."""
        _, receiver, donor, measure = given
        hooked = Hooked(smollm2.folder)
        head = smollm2.network.get_input_embeddings().weight.detach().double()  # tied
        mary, john = (smollm2.read_as(name)[0] for name in (" Mary", " John"))
        last = len(receiver.tokens) - 1
        for carried, row, column, positions in (
            ("heads", 23, 3, None),
            ("query", 24, 4, (last,)),
            ("value", 23, 1, None),
        ):
            site = hooked.site(carried, row, column)
            with torch.no_grad():
                _, [state] = hooked.run(donor.tokens.ids, reads=[site])
                states, _ = hooked.run(receiver.tokens.ids, [(site, put(state, positions))])
            expected = float(states[-1] @ (head[mary] - head[john]))
            position = None if positions is None else last
            patched = patch(smollm2, receiver, donor, measure, carried=carried, rows=[row], position=position)
            assert patched.outcomes[row, column] == pytest.approx(expected, abs=2e-3)


@pytest.mark.parametrize("family", ["gemma2", "modernbert", "deberta-v2", "gpt-bigcode", "mixtral"])
def test_the_gradient_is_the_slope_of_small_patches(tiny_model, family):
    """Softcaps, windows, biases and experts are followed too: against the outcomes with a hundredth of the difference, up and down."""
    model = tiny_model(family)
    receiver, donor = model.trace("the cat sat on a mat"), model.trace("the door sat on a cat")
    if len(receiver.tokens) != len(donor.tokens):  # a tokenizer of bytes
        donor = model.trace("the dog ran on a cot")
    kind, step = receiver.kinds[0], 0.01
    estimate = attribute_patches(model, receiver, donor, outcome)
    mine, theirs = (hidden_states(model, trace).layers for trace in (receiver, donor))
    for layer in (0, 1):
        own, difference = mine[kind, layer], theirs[kind, layer] - mine[kind, layer]
        ends = []
        for sign in (1, -1):
            put_there = ReplacedState(states=own + sign * step * difference, kind=kind, layer=layer)
            changed = model.trace_tokens(receiver.tokens, interventions=[put_there])
            ends.append(float(changed.last_hidden_state[-1, :4].sum(dtype=np.float64)))
        slope = (ends[0] - ends[1]) / (2 * step)
        assert estimate.changes[layer].sum() == pytest.approx(slope, abs=0.01, rel=0.02)
    assert np.abs(estimate.changes[:2].sum(axis=1)).max() > 0.1


def test_an_outcome_without_a_gradient_is_refused(embedded):
    receiver, donor = embedded.trace("A cat sat."), embedded.trace("A dog sat.")
    measure = measured(embedded, receiver, TokenState(position=1))
    with pytest.raises(SelectionError, match="gradient of a change of a token's state was asked for"):
        attribute_patches(embedded, receiver, donor, measure)


@pytest.mark.parametrize("carry", [patch, attribute_patches])
def test_states_of_a_run_with_an_intervention_are_refused(embedded, carry):
    own = embedded.trace(TEXT)
    changed = embedded.trace(TEXT, interventions=[ScaledOutput(layer=0, head=0, factor=0.0)])
    for receiver, donor in ((own, changed), (changed, own)):
        with pytest.raises(SelectionError, match="Trace both texts without interventions"):
            carry(embedded, receiver, donor, outcome)
