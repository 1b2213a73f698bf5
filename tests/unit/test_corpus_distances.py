"""The weight of a long text at each distance and position, summed cell by cell into the bins that docs/corpus.md describes."""

import numpy as np
import pytest

import attnviz
from attnviz.corpus.columns import COLUMNS
from attnviz.corpus.measuring import measured
from tests import tiny

FARTHER = [range(11, 17), range(17, 33), range(33, 65), range(65, 129), range(129, 257), range(257, 400)]
"""Distances of the bins beyond 10, which share one: then up to 16, 32, 64, 128, 256, and beyond."""
BINS = [
    *(-np.array(bin_) for bin_ in reversed(FARTHER)),
    *(np.array([distance]) for distance in range(-10, 11)),
    *(np.array(bin_) for bin_ in FARTHER),
]
"""Key minus query in each of the 33 bins, from the farthest key before the query to the farthest after it."""


@pytest.fixture(scope="module")
def read(tmp_path_factory):
    """The trace of 300 tokens by an encoder whose layers see all of them or a window, and the numbers of its heads."""
    folder = tiny.save_with_head("modernbert", tmp_path_factory.mktemp("long"), max_position_embeddings=400)
    model = attnviz.load_model(str(folder))
    random = np.random.default_rng(0)
    tokens = model.tokenize(" ".join(random.choice(["it", "opened", "door", "the", "cat", "."], 298)))
    assert len(tokens) == 300
    [text] = measured(model, [(tokens, None)], COLUMNS)
    return model.trace_tokens(tokens), text.numbers


def test_distances(read):
    trace, numbers = read
    first = COLUMNS.index("distance_-16")
    apart = np.arange(300) - np.arange(300)[:, None]  # [query, key]
    for row, head in enumerate(trace.heads()):
        weights = trace.weights(*head)
        shares = [weights[np.isin(apart, bin_)].sum() / 300 for bin_ in BINS]
        np.testing.assert_allclose(numbers[row, first : first + 33], shares, atol=5e-5)  # float32
    assert np.ptp(numbers[:, first]) > 0.01  # windows have nothing beyond 256


def test_positions(read):
    trace, numbers = read
    first = COLUMNS.index("position_0")
    assert [name for name in COLUMNS if name.startswith("position_")][-1] == "position_31"
    for row, head in enumerate(trace.heads()):
        allowed = np.isfinite(trace.scores(*head)).sum(axis=0)
        means = trace.weights(*head).sum(axis=0) / allowed
        np.testing.assert_allclose(numbers[row, first : first + 32], means[:32], atol=5e-5)
