"""Sinusoidal positions, against numbers from paper and against what the paper says of them."""

import math

import numpy as np
import pytest
import torch
from transformers.models.distilbert import modeling_distilbert
from transformers.models.marian import modeling_marian

from attnviz.maths.positions import shift, sinusoidal_order, sinusoidal_positions


def test_on_paper():
    table = sinusoidal_positions(3, 4)
    expected = [
        [0, 1, 0, 1],
        [math.sin(1), math.cos(1), math.sin(0.01), math.cos(0.01)],
        [math.sin(2), math.cos(2), math.sin(0.02), math.cos(0.02)],
    ]
    np.testing.assert_allclose(table, expected, atol=1e-7)
    assert sinusoidal_positions(5, 7).shape == (5, 7)


def test_the_dot_product_depends_on_the_distance_alone():
    positions = sinusoidal_positions(40, 64).astype(np.float64)
    products = positions @ positions.T
    for distance in range(40):
        along = np.diagonal(products, distance)
        assert np.ptp(along) < 1e-5  # float32
    assert products[0, 0] == pytest.approx(32)  # sin^2 + cos^2, once for each pair
    assert products[0, 1] > products[0, 5] > products[0, 20]


@pytest.mark.parametrize("k", [0, 1, 7, -3])
def test_a_shift_is_a_linear_map(k):
    positions = sinusoidal_positions(30, 10)
    moved = positions @ shift(k, 10)
    np.testing.assert_allclose(moved[3:20], positions[3 + k : 20 + k], atol=1e-5)


@pytest.mark.parametrize("d_model", [10, 7])
def test_the_tables_that_transformers_fixes_are_told_from_learned_ones(d_model):
    marian = modeling_marian.MarianSinusoidalPositionalEmbedding(37, d_model).create_weight()
    assert sinusoidal_order(marian.numpy()) == "sines first"
    assert sinusoidal_order(marian.half().float().numpy()) == "sines first"
    distilbert = torch.empty(37, d_model)
    modeling_distilbert.create_sinusoidal_embeddings(37, d_model, distilbert)
    assert sinusoidal_order(distilbert.numpy()) == "in turn"
    assert sinusoidal_order(marian.numpy() + np.float32(0.01)) is None
    assert sinusoidal_order(np.random.default_rng(0).normal(size=(37, d_model)).astype(np.float32)) is None


@pytest.mark.parametrize(("off", "known"), [(5e-4, True), (1.5e-3, False)])
def test_a_table_is_known_up_to_what_half_precision_rounds(off, known):
    table = sinusoidal_positions(6, 4)
    halves = table[:, [0, 2, 1, 3]]
    assert sinusoidal_order(table + np.float32(off)) == ("in turn" if known else None)
    assert sinusoidal_order(halves + np.float32(off)) == ("sines first" if known else None)
    table[2, 3] = halves[2, 3] = 0.9  # of cos 0.02
    assert sinusoidal_order(table) is sinusoidal_order(halves) is None


@pytest.mark.nightly
def test_the_longest_wave():
    last = sinusoidal_positions(63_000, 512)[:, 510]  # wavelength 2 pi x 10000^(510 / 512)
    length = 2 * math.pi * 10_000 ** (510 / 512)
    assert int(np.argmax(last)) == pytest.approx(length / 4, rel=1e-2)
