"""Integrated gradients and values of tokens that are replaced, against captum, which computes both on its own.

Source: captum 0.9.0, ``IntegratedGradients``, ``FeatureAblation`` and ``ShapleyValueSampling``.
"""

import numpy as np
import pytest
import torch

import attnviz
from attnviz.effects.shapley import sample_shapley
from attnviz.effects.token_embeddings import EmbeddedText

pytestmark = pytest.mark.nightly
TEXT = "I was watching the door when it opened."


@pytest.fixture(scope="module")
def attr():
    return pytest.importorskip(
        "captum.attr", reason="captum is installed by `make nightly-core` (requirements-nightly.txt)"
    )


@pytest.fixture(scope="module")
def given(embedded):
    """The text, and its outcome as a function of vectors: how alike its mean state is to that of another text."""
    trace, other = embedded.trace(TEXT), embedded.trace("The window was open.")
    mean = torch.nn.functional.normalize(torch.tensor(other.last_hidden_state).mean(dim=0), dim=-1)
    text = EmbeddedText(embedded, trace)

    def outcome(vectors):
        states = embedded.reference(inputs_embeds=vectors).last_hidden_state
        return torch.nn.functional.normalize(states.mean(dim=1), dim=-1) @ mean

    table = embedded.reference.get_input_embeddings()
    vectors, pad = table(torch.tensor(trace.tokens.ids)[None]), table(torch.tensor([[0]]))
    special = torch.tensor(trace.tokens.is_special)[None, :, None]
    return trace, outcome, vectors, torch.where(special, vectors, pad), text.baseline_label


def test_integrated_gradients(attr, given, embedded):
    trace, outcome, vectors, baseline, label = given
    assert label == "[PAD]"
    found = attnviz.attribute(
        embedded, trace, "similarity:The window was open.", methods=["integrated_gradients"]
    )["integrated_gradients"]
    theirs = attr.IntegratedGradients(outcome).attribute(vectors, baseline, n_steps=256).sum(dim=-1)[0]
    np.testing.assert_allclose(found.values, theirs.detach().numpy(), atol=2e-4)


def test_tokens_replaced(attr, given, embedded):
    trace, outcome, vectors, baseline, _ = given
    found = attnviz.attribute(embedded, trace, "similarity:The window was open.", methods=["token_replaced"])
    masks = torch.arange(vectors.shape[1])[None, :, None].expand_as(vectors)
    theirs = attr.FeatureAblation(outcome).attribute(vectors, baseline, feature_mask=masks)[0, :, 0]
    np.testing.assert_allclose(found["token_replaced"].values, theirs.detach().numpy(), atol=1e-5)


def test_shapley_values_of_the_same_orders(attr, given, embedded):
    trace, outcome, vectors, baseline, _ = given
    n_order = 8
    found = sample_shapley(embedded, trace, "similarity:The window was open.", n_permutations=n_order, seed=3)
    random, places = np.random.default_rng(3), np.flatnonzero(~trace.tokens.is_special)
    kept = np.flatnonzero(trace.tokens.is_special).tolist()
    orders = [kept + places[np.argsort(random.permutation(len(places)))].tolist() for _ in range(n_order)]
    theirs = attr.ShapleyValueSampling(outcome)
    theirs.permutation_generator = lambda n_feature, n_sample: iter(orders)
    masks = torch.arange(vectors.shape[1])[None, :, None].expand_as(vectors).contiguous()
    with torch.no_grad():
        values = theirs.attribute(vectors, baseline, feature_mask=masks, n_samples=n_order)[0, :, 0]
    np.testing.assert_allclose(found.values, values.numpy(), atol=2e-6)
