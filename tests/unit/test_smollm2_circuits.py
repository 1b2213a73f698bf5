"""Why heads of SmolLM2-135M-Instruct look where they do: the story of its induction head, on the real weights."""

import numpy as np
import pytest

from attnviz.effects.score_sources import score_sources

pytestmark = pytest.mark.slow


def test_an_induction_head_s_key_is_of_the_previous_token_head(smollm2):
    """Layer 18, head 6 looks for the token whose previous one is its own; layer 16, head 0 has told each key its previous one.

    Found independently by probes on random tokens that come twice: induction 18.6 .91, previous token 16.0 .90.
    """
    ids = np.random.default_rng(0).integers(1000, 40000, 8).tolist()
    trace = smollm2.trace(smollm2.tokenizer.decode(ids + ids))
    query = len(trace.tokens) - 3
    first = trace.tokens.ids[: query - 1].tolist().index(trace.tokens.ids[query])
    row = trace.weights(18, 6)[query]
    assert row.argmax() == first + 1
    found = score_sources(smollm2, trace, 18, 6, query, first + 1)
    assert found.passed
    own = float(trace.scores(18, 6)[query, first + 1])
    assert found.summed == pytest.approx(own, abs=1e-3)
    source = found.sources[int(found.of_key.argmax())]
    assert (source.name, source.layer, source.head) == ("head", 16, 0)
    assert found.of_key.max() > own / 2
