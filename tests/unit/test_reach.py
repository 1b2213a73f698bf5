"""Weight on the first token by position and weight by distance, against loops over single cells in float64."""

import math
from itertools import pairwise

import numpy as np
import pytest

import attnviz
from attnviz.model.trace import Trace
from attnviz.records import Head
from tests import hand_made

N = 19
RANDOM = np.random.default_rng(5)


def attention(n: int, seen: np.ndarray) -> np.ndarray:
    """Random weights [layer head query key] where keys are seen; rows sum to 1."""
    weights = RANDOM.random((2, 3, n, n)) ** 3 * seen
    return weights / np.maximum(weights.sum(axis=3, keepdims=True), 1e-30)


def by_loops(trace: Trace, layer: int, head: int) -> tuple[list[float], list[float]]:
    weights = trace.pattern(layer, head).weights.astype(np.float64)
    allowed = trace.pattern(layer, head).allowed
    n = len(weights)
    edges = [round(part * n / min(16, n)) for part in range(min(16, n) + 1)]
    sinks = []
    for first, stop in pairwise(edges):
        on_first = [weights[query, 0] for query in range(first, stop) if allowed[query, 0]]
        sinks.append(sum(on_first) / len(on_first) if on_first else math.nan)
    at_distance = [0.0] * (1 + math.ceil(math.log2(n)))
    for query in range(n):
        for key in range(n):
            distance = abs(query - key)
            at_distance[0 if distance == 0 else 1 + int(math.log2(distance))] += weights[query, key]
    n_weighted = sum(any(row) for row in weights)
    return sinks, [share / n_weighted for share in at_distance]


def traces() -> dict[str, Trace]:
    labels = [f"w{at}" for at in range(N)]
    every = np.ones((N, N), dtype=bool)
    causal, near = np.tril(every), np.tril(every) & ~np.tril(every, k=-5)
    return {
        "encoder": hand_made.trace(attention(N, every), labels),
        "decoder": hand_made.trace(attention(N, causal), labels, kind="decoder", allowed=causal),
        "window": hand_made.trace(attention(N, near), labels, kind="decoder", allowed=near),
        "one": hand_made.trace(np.ones((1, 1, 1, 1)), ["a"], kind="decoder"),
    }


@pytest.mark.parametrize("name", ["encoder", "decoder", "window", "one"])
def test_of_every_head_by_loops(name):
    trace = traces()[name]
    sinks, distances = attnviz.reach(trace)
    assert (sinks.over, distances.over) == ("position", "distance")
    assert sinks.heads == distances.heads == trace.heads()
    for head in trace.heads():
        on_first, at_distance = by_loops(trace, *head)
        np.testing.assert_allclose(sinks.shares[head], on_first, atol=1e-6, equal_nan=True)
        np.testing.assert_allclose(distances.shares[head], at_distance, atol=1e-6)


def test_the_counted_queries_give_the_mean_of_a_whole_text_behind_a_window():
    trace = traces()["window"]
    sinks = attnviz.reach(trace).sinks
    for head in trace.heads():
        pattern = trace.pattern(*head)
        seeing = [
            weights[0] for weights, seen in zip(pattern.weights, pattern.allowed, strict=True) if seen[0]
        ]
        assert sinks.counts[head].sum() == len(seeing) == 5
        mean = np.nansum(sinks.shares[head] * sinks.counts[head]) / sinks.counts[head].sum()
        assert mean == pytest.approx(np.mean(seeing), abs=1e-6)


def test_across_the_blocks_of_a_longer_text(monkeypatch):
    trace = traces()["encoder"]
    sinks, distances = attnviz.reach(trace)
    monkeypatch.setattr("attnviz.maths.blocks.QUERY_BLOCK", 4)
    for whole, part in zip((sinks, distances), attnviz.reach(trace), strict=True):
        np.testing.assert_allclose(part.shares, whole.shares, atol=1e-6)


def test_bins_say_what_they_hold():
    sinks, distances = attnviz.reach(traces()["encoder"])
    assert distances.names == ("0", "1", "2–3", "4–7", "8–15", "16–18")
    assert sinks.bins[0].tolist() == [0, 0] and sinks.bins[-1, 1] == N - 1
    assert (sinks.bins[1:, 0] == sinks.bins[:-1, 1] + 1).all()


def test_the_bins_give_the_statistic_of_the_whole_text():
    trace = traces()["decoder"]
    sinks = attnviz.reach(trace).sinks
    n_query = sinks.bins[:, 1] - sinks.bins[:, 0] + 1
    first = attnviz.statistics(trace, names=["first"]).of("first")
    np.testing.assert_allclose((sinks.shares * n_query).sum(axis=2) / N, first, atol=1e-6)


def test_cross_attention_has_no_distance(tiny_model):
    trace = tiny_model("bart").trace("the cat sat", "on a mat")
    sinks, distances = attnviz.reach(trace, kind="cross")
    assert distances is None
    on_first = np.stack(
        [trace.layer_weights(layer, "cross")[:, :, 0] for layer in range(trace.n_layers("cross"))]
    )
    np.testing.assert_allclose(sinks.shares, on_first, atol=1e-6)  # a bin for each query


def test_one_head_as_bars_and_all_as_cells():
    sinks, _ = attnviz.reach(traces()["window"])
    bars = sinks.figure(head=Head(1, 2)).data[0]
    np.testing.assert_allclose(bars.y, np.nan_to_num(sinks.shares[1, 2]))
    cells = sinks.figure().data[0]
    np.testing.assert_allclose(np.array(cells.z, dtype=float)[:, 5], sinks.shares[1, 2], equal_nan=True)
    assert [*cells.customdata[0][5]] == [1, 2]
