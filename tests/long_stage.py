"""A text of 1,300 tokens with two layers of attention made by hand, for tests of what is drawn of long texts."""

from dataclasses import replace

import numpy as np

from attnviz.model.trace import Trace

N = 1300
LINK = (1200, 37)
"""A query, and the key that head 1 of layer 1 sends it to with nearly all its weight."""


def long_trace() -> Trace:
    """A decoder's; layer 0 has a sliding window of 100 tokens. The words are numbered, and one is a needle."""
    made = np.random.default_rng(3)
    vectors = {
        name: made.normal(size=(2, 2, N, 8)).astype(np.float32) for name in ("queries", "keys", "values")
    }
    query, key = LINK
    for role, at in (("queries", query), ("keys", key)):  # a dimension that only these two have
        vectors[role][1, 1, :, 0] = 0.0
        vectors[role][1, 1, at, 0] = 8.0
    words = ["Once", *(f"␣word{at}" for at in range(1, N))]
    words[900] = "␣needle"
    trace = Trace.from_arrays(words, kind="decoder", **vectors)
    apart = np.arange(N)[:, None] - np.arange(N)
    for layer, allowed in enumerate([(apart >= 0) & (apart < 100), apart >= 0]):
        trace = trace.with_layer(replace(trace.attention(layer), allowed=allowed[None]))
    return trace
