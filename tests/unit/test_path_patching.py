"""Paths from head to head, against hooks of this file on transformers' own attention, with all other heads frozen."""

from functools import cache

import numpy as np
import pytest
import torch

import attnviz
from attnviz.effects.patching import PathEnd
from attnviz.effects.path_patching import patch_paths
from attnviz.records import Head
from tests.hooked import put
from tests.unit.test_patch_maps import FAMILIES, OTHER, TEXT, TOLERANCE, Pair, outcome


@pytest.fixture
def pairs(tiny_model, checkpoint):
    return cache(lambda family: Pair(tiny_model(family), checkpoint(family)))


def frozen(pair, layers, without=None):
    """Edits that keep the heads of some layers at what they give for the receiver's text."""
    edits = []
    for layer in layers:
        for head in range(pair.hooked.n_head):
            if (layer, head) != without:
                site = pair.hooked.site("heads", layer, head)
                with torch.no_grad():
                    _, [own] = pair.hooked.run(pair.ids, reads=[site])
                edits.append((site, put(own)))
    return edits


def by_hooks(pair, sender, end, positions=None):
    """The outcome with one path from the donor's text, one run after another."""
    first = [
        *frozen(pair, range(pair.hooked.n_layer), tuple(sender)),
        *pair.edits("heads", *sender, positions),
    ]
    if end.head is None:
        return pair.measured(first).item()
    layer, head = end.head
    n_shared = 1 if end.role == "query" else pair.hooked.n_head // pair.hooked.n_kv_head
    site = pair.hooked.site(end.role, layer, head // n_shared)
    with torch.no_grad():
        _, [reading] = pair.hooked.run(pair.ids, first, reads=[site])
    others = [
        edit
        for number, edit in enumerate(frozen(pair, [layer]))
        if number != head
        and number // n_shared == head // n_shared  # which share these keys and do not read the path
    ]
    return pair.measured([(site, put(reading)), *others]).item()


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("role", ["query", "key", "value", None])
def test_every_sender(pairs, family, role):
    pair = pairs(family)
    end = PathEnd() if role is None else PathEnd(head=Head(2, pair.hooked.n_head - 1), role=role)
    told = []
    patched = patch_paths(pair.model, pair.receiver, pair.donor, outcome, end, progress=told.append)
    assert patched.outcomes.shape == (3, pair.hooked.n_head) and patched.end == end
    assert np.isnan(patched.outcomes[2]).all() == (role is not None)
    assert told[-1] == pytest.approx(1) and told == sorted(told)
    for layer in range(3 if role is None else 2):
        for head in range(pair.hooked.n_head):
            expected = by_hooks(pair, Head(layer, head), end)
            assert patched.outcomes[layer, head] == pytest.approx(expected, abs=TOLERANCE)
    assert np.nanmax(np.abs(patched.changes)) > 0.02


@pytest.mark.parametrize("role", ["query", "value"])
def test_at_one_token_and_some_layers(pairs, role):
    pair = pairs("llama")
    end = PathEnd(head=Head(2, 3), role=role)
    patched = patch_paths(pair.model, pair.receiver, pair.donor, outcome, end, position=6, layers=[1, 2])
    assert np.isnan(patched.outcomes[[0, 2]]).all() and patched.position == 6
    for head in range(6):
        expected = by_hooks(pair, Head(1, head), end, (6,))
        assert patched.outcomes[1, head] == pytest.approx(expected, abs=TOLERANCE)


def test_a_path_is_not_all_that_a_head_does(pairs):
    """In layer 1 the path to the outcome leaves out what the heads of layer 2 make of it; in the last layer it is all."""
    from attnviz.effects.patching import patch

    pair = pairs("llama")
    direct = patch_paths(pair.model, pair.receiver, pair.donor, outcome, PathEnd())
    whole = patch(pair.model, pair.receiver, pair.donor, outcome, carried="heads")
    np.testing.assert_allclose(direct.outcomes[2], whole.outcomes[2], atol=1e-5)
    assert np.abs(direct.outcomes[1] - whole.outcomes[1]).max() > 0.01


@pytest.mark.parametrize("family", ["bert", "gpt-neox", "gpt-bigcode", "gemma2", "laguna"])
def test_other_families_run(tiny_model, family):
    model = tiny_model(family)
    n_layer = model.trace(TEXT).n_layers()
    end = PathEnd(head=Head(n_layer - 1, 0), role="key")
    patched = patch_paths(model, model.trace(TEXT), model.trace(TEXT.replace("mat", "cat")), outcome, end)
    known = patched.outcomes[: n_layer - 1]
    assert np.isfinite(known).any() and np.abs(known - patched.base)[np.isfinite(known)].max() > 1e-5


@pytest.mark.parametrize(
    ("end", "message"),
    [
        (PathEnd(head=Head(0, 1), role="key"), "heads that the keys of layer 0 read were asked for"),
        (PathEnd(head=Head(3, 1)), "Layer 3 was asked for"),
        (PathEnd(head=Head(2, 6)), "Head 6 was asked for"),
    ],
)
def test_ends_that_are_not_there(pairs, end, message):
    pair = pairs("llama")
    with pytest.raises(attnviz.SelectionError, match=message):
        patch_paths(pair.model, pair.receiver, pair.donor, outcome, end)


def test_two_streams_are_refused(tiny_model):
    bart = tiny_model("bart")
    receiver, donor = bart.trace("the cat sat", "a door on mat"), bart.trace("the mat sat", "a cat on mat")
    with pytest.raises(attnviz.UnsupportedArchitectureError, match="paths between heads"):
        patch_paths(bart, receiver, donor, outcome, PathEnd())
    assert OTHER != TEXT
