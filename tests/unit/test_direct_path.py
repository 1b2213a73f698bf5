"""Directions carried back through a layer: their products with what enters and what is added are that with what leaves."""

import itertools

import numpy as np
import pytest
import torch

from attnviz.model.direct_path import FrozenNorm, LayerPath, carried_back, frozen_norm
from attnviz.model.normalisation import Normalisation
from attnviz.model.output_maps import OutputMap

D_MODEL, N_DIRECTION = 5, 3


def a_norm(random):
    return FrozenNorm(
        gain=random.normal(size=D_MODEL),
        is_centred=bool(random.integers(2)),
        bias=random.normal(size=D_MODEL),
    )


def normed(norm, vector):
    """By the formula of `FrozenNorm`."""
    if norm is None:
        return vector
    centred = vector - vector.sum() / len(vector) if norm.is_centred else vector
    return norm.gain * centred + norm.bias


@pytest.mark.parametrize("there", [*itertools.product((False, True), repeat=4)])
def test_products_sum_to_that_with_what_leaves_the_layer(there):
    """For every choice of norms, and with and without a bias of W_O."""
    random = np.random.default_rng(sum(2**place for place, is_there in enumerate(there) if is_there))
    of_attention, after_attention, after_rest = (
        a_norm(random) if is_there else None for is_there in there[:3]
    )
    bias = random.normal(size=D_MODEL) if there[3] else None
    entered, of_heads, rest = random.normal(size=(3, D_MODEL))
    attention = of_heads if bias is None else of_heads + bias
    middle = normed(after_attention, entered + normed(of_attention, attention))
    left = normed(after_rest, middle + rest)
    path = LayerPath(
        rest=rest, of_attention=of_attention, after_attention=after_attention, after_rest=after_rest
    )
    output_map = OutputMap(name="w_o", weight=np.zeros((1, 1, D_MODEL), dtype=np.float32), bias=bias)
    directions = random.normal(size=(N_DIRECTION, D_MODEL))
    back = carried_back(path, output_map, directions)
    parts = (back.entering @ entered, back.of_attention @ of_heads, back.rest, back.biases)
    np.testing.assert_allclose(sum(parts), directions @ left, rtol=1e-12, atol=1e-12)
    assert {part.shape for part in parts} == {(N_DIRECTION,)}


@pytest.mark.parametrize("method", ["layer", "rms"])
def test_a_frozen_norm_is_the_norm_for_its_vector(method):
    """Torch's own, with an epsilon that counts."""
    random = np.random.default_rng(0)
    vector, weight, bias = random.normal(size=(3, D_MODEL))
    given, gain = torch.tensor(vector), torch.tensor(weight)
    if method == "layer":
        expected = torch.nn.functional.layer_norm(given, (D_MODEL,), gain, torch.tensor(bias), eps=0.5)
    else:
        expected, bias = torch.nn.functional.rms_norm(given, (D_MODEL,), gain, eps=0.5), None
    norm = frozen_norm(
        Normalisation(method=method, weight=weight, bias=bias, eps=0.5, made=vector[None]), vector
    )
    np.testing.assert_allclose(normed(norm, vector), expected.numpy(), rtol=1e-12)
    direction = random.normal(size=(2, D_MODEL))
    np.testing.assert_allclose(
        norm.before(direction) @ vector, direction @ (expected.numpy() - norm.bias), rtol=1e-10
    )
