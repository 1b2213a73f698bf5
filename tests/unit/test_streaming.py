"""Attention tile by tile, against the direct one in float64 numpy, and its running figures against paper."""

import math

import numpy as np
import pytest
import torch

from attnviz.cost.streaming import stream_attention, streaming_attention
from tests import numpy_attention

N_HEAD, N_QUERY, N_KEY, D_HEAD, D_VALUE = 3, 7, 23, 5, 11


def drawn(*shape: int, seed: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@pytest.fixture
def vectors():
    return (
        3 * drawn(N_HEAD, N_QUERY, D_HEAD, seed=0),
        3 * drawn(N_HEAD, N_KEY, D_HEAD, seed=1),
        drawn(N_HEAD, N_KEY, D_VALUE, seed=2),
    )


@pytest.mark.parametrize("tile", [1, 2, 5, 22, 23, 24, 1000])
def test_any_tile_gives_the_direct_result(vectors, tile):
    output = streaming_attention(*vectors, 0.3, tile=tile)
    expected = numpy_attention.output(*(vector.numpy() for vector in vectors), 0.3)
    np.testing.assert_allclose(output.numpy(), expected, rtol=0, atol=1e-13)  # float64, sums of 23 terms


@pytest.mark.parametrize("tile", [1, 4, 23])
def test_with_a_mask_and_a_bias(vectors, tile):
    random = np.random.default_rng(3)
    allowed = random.random((N_HEAD, N_QUERY, N_KEY)) < 0.4
    allowed[0, 2] = False  # a row that sees nothing
    allowed[1, :, 4:8] = False  # a tile that no query sees
    allowed[2, :, :9] = False  # tiles before anything is seen
    bias = random.normal(size=(1, N_QUERY, N_KEY))
    output = streaming_attention(
        *vectors, 0.3, tile=tile, allowed=torch.from_numpy(allowed), bias=torch.from_numpy(bias)
    )
    expected = numpy_attention.output(
        *(vector.numpy() for vector in vectors), 0.3, allowed=allowed, bias=bias
    )
    np.testing.assert_allclose(output.numpy(), expected, rtol=0, atol=1e-13)
    assert output[0, 2].tolist() == [0.0] * D_VALUE


def test_one_token():
    vector = torch.tensor([[2.0]])
    assert streaming_attention(vector, vector, torch.tensor([[7.0]]), 1.0, tile=4).tolist() == [[7.0]]


def test_scores_of_ten_thousand():
    query, key = torch.tensor([[100.0]]), torch.tensor([[-100.0], [100.0], [99.0]])
    assert streaming_attention(query, key, torch.tensor([[1.0], [2.0], [3.0]]), 1.0, tile=1).tolist() == [
        [2.0]
    ]


def test_the_running_figures_on_paper():
    """Scores 0, ln 2 | ln 4: the second tile brings a new maximum, and the old sum of 3 / 2 shrinks to 3 / 4."""
    key = torch.tensor([[0.0], [math.log(2.0)], [math.log(4.0)]])
    value = torch.tensor([[1.0], [4.0], [10.0]])
    first, second = stream_attention(torch.ones(1, 1), key, value, 1.0, tile=2)
    assert (first.start, first.stop, second.start, second.stop) == (0, 2, 2, 3)
    torch.testing.assert_close(first.scores, key[:2].T)
    torch.testing.assert_close(first.maximum, torch.tensor([math.log(2.0)]))
    torch.testing.assert_close(first.total, torch.tensor([1.5]))
    torch.testing.assert_close(first.output, torch.tensor([[3.0]]))  # (1 x 1 + 4 x 2) / 3
    torch.testing.assert_close(second.maximum, torch.tensor([math.log(4.0)]))
    torch.testing.assert_close(second.total, torch.tensor([1.75]))
    torch.testing.assert_close(second.output, torch.tensor([[7.0]]))  # (1 + 8 + 40) / 7


def test_before_anything_is_seen_there_are_zeros():
    allowed = torch.tensor([[False, True]])
    first, second = stream_attention(
        torch.ones(1, 1), torch.ones(2, 1), torch.tensor([[3.0], [5.0]]), 1.0, tile=1, allowed=allowed
    )
    assert (first.maximum.item(), first.total.item(), first.output.item()) == (-math.inf, 0.0, 0.0)
    assert (second.maximum.item(), second.total.item(), second.output.item()) == (1.0, 1.0, 5.0)
