"""A trace of 8,192 tokens of the bundled language model, cut to three layers, against float64 without attnviz."""

import numpy as np
import pytest
from transformers import AutoModel, AutoTokenizer

import attnviz
from attnviz.model.catalogue import SMOLLM2

pytestmark = pytest.mark.nightly

N_TOKEN, N_LAYER = 8192, 3


def test_random_rows_of_random_heads_are_the_softmax_in_float64():
    folder = attnviz.load_model(SMOLLM2).folder
    network = AutoModel.from_pretrained(folder).eval()
    del network.layers[N_LAYER:]
    network.config.num_hidden_layers = N_LAYER
    model = attnviz.wrap(network, AutoTokenizer.from_pretrained(folder))
    order = np.random.default_rng(0)
    text = " ".join(
        order.choice(["the", "river", "rose", "over", "bridges", "and", "nobody", "fell"], size=9000)
    )
    trace = model.trace(text, cut=True, max_tokens=N_TOKEN)
    assert len(trace.tokens) == N_TOKEN
    for layer, head in zip(order.integers(N_LAYER, size=5), order.integers(9, size=5), strict=True):
        query = trace.query(int(layer), int(head)).astype(np.float64)
        key, value = (
            getattr(trace, name)(int(layer), int(head)).astype(np.float64) for name in ("key", "value")
        )
        output = trace.output(int(layer), int(head))
        for row in order.integers(N_TOKEN, size=20).tolist():
            scores = key[: row + 1] @ query[row] / 8  # d_head is 64
            weights = np.exp(scores - scores.max())
            weights /= weights.sum()
            [(_, shown)] = trace.blocks(int(layer), head=int(head), rows=slice(row, row + 1))
            np.testing.assert_allclose(shown[0, 0, : row + 1], weights, atol=2e-6)
            assert not shown[0, 0, row + 1 :].any()
            np.testing.assert_allclose(output[row], weights @ value[: row + 1], atol=1e-5)
