"""Functions of the weights of all heads of a trace; a page calls them, or a worker process for a large trace."""

import numpy as np

from attnviz.figures.cells import pool
from attnviz.model.trace import Trace
from attnviz.records import Axis, Kind, Measure, arrange


def pooled(
    trace: Trace, kind: Kind, queries: Axis, keys: Axis, *, measure: Measure, renormalise: bool
) -> tuple[np.ndarray, ...]:
    """The matrices of all heads [head, row, column] of each layer, small enough for a thumbnail each.

    Args:
        renormalise: whether each row is divided by its sum over the keys that are shown.
    """
    layers = []
    for layer in range(trace.n_layers(kind)):
        weights = arrange(trace.layer_weights(layer, kind, measure=measure), queries, keys)
        if renormalise:
            kept = weights.sum(axis=-1, keepdims=True)
            weights = np.divide(weights, kept, out=np.zeros_like(weights), where=kept > 0)
        layers.append(np.stack([pool(weight) for weight in weights]))
    return tuple(layers)


def rows(trace: Trace, kind: Kind, query: int) -> tuple[np.ndarray, ...]:
    """The weights of one query on each key in every head, [head, key] of each layer."""
    return tuple(
        weights[:, 0]
        for layer in range(trace.n_layers(kind))
        for _, weights in trace.blocks(layer, kind, rows=slice(query, query + 1))
    )
