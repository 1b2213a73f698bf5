"""One cell of a head masked at a time, against a trace with that cell masked."""

import numpy as np
import pytest
from scipy.stats import rankdata

from attnviz.effects.cell_effects import CellEffects, mask_cells
from attnviz.model.interventions import MaskedKeys
from tests.hand_made import tokens

TEXT = "the cat sat on a mat"
TOLERANCE = 2e-5


def outcome(states):
    return states[:, :, :4].mean(dim=(1, 2))


def of_trace(trace):
    return float(trace.last_hidden_state[:, :4].mean())


def test_every_cell(tiny_model):
    bert = tiny_model("bert")
    trace = bert.trace(TEXT)
    n = len(trace.tokens)
    effects = mask_cells(bert, trace, outcome, 1, 0)
    assert effects.n_cell == len(effects.outcomes) == n * n
    assert list(zip(effects.queries, effects.keys, strict=True)) == list(np.ndindex(n, n))
    for cell in range(0, n * n, 7):
        allowed = np.ones((n, n), dtype=bool)
        allowed[effects.queries[cell], effects.keys[cell]] = False
        changed = bert.trace(TEXT, interventions=[MaskedKeys(allowed=allowed, layer=1, head=0)])
        assert effects.outcomes[cell] == pytest.approx(of_trace(changed), abs=TOLERANCE)
        np.testing.assert_allclose(changed.weights(1, 0).sum(axis=1), 1, atol=1e-6)  # rows are renormalised
    np.testing.assert_array_equal(effects.weights.reshape(n, n), trace.weights(1, 0))
    norms = trace.pattern(1, 0, measure="norms").weights
    np.testing.assert_array_equal(effects.norms.reshape(n, n), norms)
    np.testing.assert_allclose(effects.effects, effects.outcomes - of_trace(trace), atol=1e-4)


def test_only_cells_that_the_model_allows_and_the_same_draw_for_the_same_seed(tiny_model):
    gpt2 = tiny_model("gpt2")
    trace = gpt2.trace("the cat")
    n = len(trace.tokens)
    whole = mask_cells(gpt2, trace, outcome, 0, 1)
    assert whole.n_cell == len(whole.outcomes) == n * (n + 1) // 2
    assert (whole.keys <= whole.queries).all()
    assert np.isfinite(whole.outcomes).all()  # the first token's only key is masked too
    some, again = (mask_cells(gpt2, trace, outcome, 0, 1, most=5, seed=3) for _ in range(2))
    assert len(some.outcomes) == 5 and some.n_cell == whole.n_cell
    np.testing.assert_array_equal(some.keys, again.keys)
    most = mask_cells(gpt2, trace, outcome, 0, 1, most=whole.n_cell - 1)
    assert len({*zip(most.queries, most.keys, strict=True)}) == whole.n_cell - 1  # none is drawn twice
    cells = {
        (query, key): number
        for query, key, number in zip(whole.queries, whole.keys, whole.outcomes, strict=True)
    }
    for query, key, number in zip(some.queries, some.keys, some.outcomes, strict=True):
        assert number == pytest.approx(cells[query, key], abs=TOLERANCE)


def test_no_norms_where_the_output_map_is_not_known(tiny_model):
    model = tiny_model("bitnet")
    effects = mask_cells(model, model.trace("the cat"), outcome, 0, 0, most=3)
    assert effects.norms is None and np.isnan(effects.rank_correlation("norms"))


def cells(weights, outcomes, norms=None):
    count = len(weights)
    return CellEffects(
        query_tokens=tokens(["a"]),
        key_tokens=tokens(["a"]),
        layer=0,
        head=0,
        kind="encoder",
        base=1.0,
        queries=np.zeros(count, dtype=int),
        keys=np.arange(count),
        weights=np.array(weights, dtype=np.float32),
        norms=None if norms is None else np.array(norms, dtype=np.float32),
        outcomes=np.array(outcomes, dtype=np.float32),
        n_cell=count,
    )


def test_the_rank_correlation_is_of_sizes():
    """An effect downwards is as large as one upwards; ties share their rank (by hand: Pearson's of the ranks)."""
    effects = cells([0.1, 0.2, 0.3, 0.4], [1.01, 0.98, 1.02, 0.5], [4, 3, 2, 1])
    expected = np.corrcoef([1, 2, 3, 4], rankdata(np.abs(effects.effects)))[0, 1]
    assert effects.rank_correlation() == pytest.approx(expected)
    assert effects.rank_correlation("norms") == pytest.approx(-expected)
    assert np.isnan(cells([0.5, 0.5, 0.5], [1, 2, 3]).rank_correlation())
    assert np.isnan(cells([0.1, 0.9], [1, 2]).rank_correlation())
