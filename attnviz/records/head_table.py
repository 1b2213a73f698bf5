"""A number for every head of a model, whose layers may have different numbers of heads.

The table [layer head] is as wide as the layer with the most heads, with NaN where a layer has no such head.
"""

from collections.abc import Iterable, Sequence
from itertools import groupby

import numpy as np
from jaxtyping import Float

from attnviz.records.head import Head


def head_table(
    layers: Iterable[Sequence[float] | Float[np.ndarray, " _"]],
) -> Float[np.ndarray, "layer head"]:
    """The numbers of the heads of each layer as one table.

    >>> head_table([[0.5, 0.25], [1.0]])
    array([[0.5 , 0.25],
           [1.  ,  nan]], dtype=float32)
    """
    rows = list(layers)
    table = np.full((len(rows), max(map(len, rows), default=0)), np.nan, dtype=np.float32)
    for row, numbers in zip(table, rows, strict=True):
        row[: len(numbers)] = numbers
    return table


def by_layer(heads: Iterable[Head]) -> list[list[Head]]:
    """Heads that are in the order of their layers, as one list for each layer."""
    return [list(of_layer) for _, of_layer in groupby(heads, key=lambda head: head.layer)]


def known(table: Float[np.ndarray, "*axes"]) -> Float[np.ndarray, " head"]:
    """The numbers of a table, or of one of its rows, that are not NaN, layer by layer.

    >>> known(head_table([[0.5, 0.25], [1.0]]))
    array([0.5 , 0.25, 1.  ], dtype=float32)
    """
    return np.asarray(table[~np.isnan(table)])


def heads_in(table: Float[np.ndarray, "layer head"]) -> list[Head]:
    """The heads whose number in a table is not NaN, layer by layer.

    >>> [str(head) for head in heads_in(head_table([[0.5, 0.25], [1.0]]))]
    ['0.0', '0.1', '1.0']
    """
    return [Head(*place) for place in np.argwhere(~np.isnan(table)).tolist()]
