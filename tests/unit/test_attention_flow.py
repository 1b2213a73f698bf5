"""Attention flow, against networkx's maximum flow and an answer worked out on paper. networkx comes with torch."""

import networkx
import numpy as np
import pytest

from attnviz.maths.attention_flow import attention_flow


def by_networkx(layers, query, key):
    """The same graph edge by edge, with float capacities, solved by another library's preflow-push."""
    graph = networkx.DiGraph()
    for number, weights in enumerate(layers):
        for i in range(len(weights)):
            for j in range(len(weights)):
                capacity = 0.5 * float(weights[i, j]) + 0.5 * (i == j)
                if capacity:
                    graph.add_edge((number + 1, i), (number, j), capacity=capacity)
    if (0, key) not in graph:
        return 0.0
    return networkx.maximum_flow_value(graph, (len(layers), query), (0, key))


@pytest.mark.parametrize(
    ("n_token", "n_layer", "seed"), [(2, 1, 0), (3, 2, 1), (5, 3, 2), (7, 4, 3), (12, 6, 4)]
)
@pytest.mark.parametrize("is_causal", [False, True])
def test_equals_networkx(n_token, n_layer, seed, is_causal):
    drawn = np.random.default_rng(seed).dirichlet(np.full(n_token, 0.1), size=(n_layer, n_token))
    if is_causal:
        drawn = np.tril(drawn + 1e-3)
        drawn /= drawn.sum(axis=-1, keepdims=True)
    layers = list(drawn.astype(np.float32))
    for query in {0, n_token // 2, n_token - 1}:
        flow = attention_flow(layers, query)
        expected = [by_networkx(layers, query, key) for key in range(n_token)]
        np.testing.assert_allclose(flow, expected, atol=1e-6)
        assert (flow[query + 1 :] == 0).all() or not is_causal
        assert (flow >= 0).all() and (flow <= 1 + 1e-6).all()


def test_on_paper():
    """Two tokens, two layers, W = [[1, 0], [0.4, 0.6]] below and [[0.2, 0.8], [0.5, 0.5]] above.

    Capacities: below [[1, 0], [0.2, 0.8]], above [[0.6, 0.4], [0.25, 0.75]]. From token 0 at the top to token 0: 0.6 through
    token 0 and min(0.4, 0.2) through token 1, 0.8; to token 1: nothing through token 0, min(0.4, 0.8) through token 1.
    From token 1: to token 0 0.25 + min(0.75, 0.2); to token 1 min(0.75, 0.8). Rollout gives 0.6 + 0.4 x 0.2 for the first.
    """
    layers = [np.array([[1, 0], [0.4, 0.6]]), np.array([[0.2, 0.8], [0.5, 0.5]])]
    np.testing.assert_allclose(attention_flow(layers, 0), [0.8, 0.4], atol=1e-7)
    np.testing.assert_allclose(attention_flow(layers, 1), [0.45, 0.75], atol=1e-7)


def test_of_one_layer_is_its_capacity():
    weights = np.array([[0.2, 0.8], [0.5, 0.5]])
    np.testing.assert_allclose(attention_flow([weights], 0), [0.6, 0.4], atol=1e-8)


def test_of_no_layer():
    with pytest.raises(ValueError, match="at least one layer"):
        attention_flow([], 0)
