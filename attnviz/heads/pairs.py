"""Which heads link a pair of tokens, and which pairs a head links most."""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from attnviz.arguments import typed
from attnviz.heads.cells import distances, layer_cells
from attnviz.records import AttentionPattern, Axis, Kind, Measure, head_table, known

if TYPE_CHECKING:
    from attnviz.model.trace import Trace


@typed
def pair_weights(
    trace: "Trace",
    kind: Kind | None,
    query: tuple[int, int],
    key: tuple[int, int],
    *,
    measure: Measure = "weights",
) -> Float[np.ndarray, "layer head"]:
    """The weight of every head from one group of tokens to another: the mean over queries of the sum over keys.

    NaN where a layer has no such head.

    Args:
        query: position of the group's first token, and the position after its last; (7, 8) for token 7.
        key: the same for the keys.

    Raises:
        ShapeError: a group is empty or not within the text.
        SelectionError: no such kind or measure, or rollout, which has no number for a head.

    Source: Clark et al. 2019, "What Does BERT Look At?" (arXiv:1906.04341), section 4.1.
    """
    queries = Axis(tokens=trace.query_tokens(kind), spans=np.array([query]))
    keys = Axis(tokens=trace.key_tokens(kind), spans=np.array([key]))
    weights = head_table(cells[:, 0, 0] for cells in layer_cells(trace, kind, queries, keys, measure))
    weights.flags.writeable = False
    return weights


@typed
def ranked(
    numbers: Float[np.ndarray, "layer head"], *, largest_first: bool = True
) -> Int[np.ndarray, "rank 2"]:
    """Layer and head of every head with a number, sorted by the number; equal heads from the lowest layer up."""
    flat = -numbers.ravel() if largest_first else numbers.ravel()
    order = np.argsort(flat, kind="stable")[: len(known(numbers))]  # NaN is sorted to the end
    return np.column_stack(np.unravel_index(order, numbers.shape))


class Pair(NamedTuple):
    """A cell of a pattern: its row, its column and its value."""

    row: int
    column: int
    weight: float


@typed
def strongest_pairs(
    pattern: AttentionPattern, count: int, *, special: bool = True, itself: bool = True
) -> list[Pair]:
    """The cells of a pattern with the largest values, largest first; cells without weight are left out.

    Args:
        special: whether special tokens such as [CLS] and [SEP] count, on either side.
        itself: whether a token's or word's weight on itself counts.
    """
    weights = pattern.weights.copy()
    if not special:
        weights[pattern.queries.is_special] = 0
        weights[:, pattern.keys.is_special] = 0
    if not itself and pattern.queries.tokens is pattern.keys.tokens:
        weights[distances(pattern.queries, pattern.keys) == 0] = 0
    order = np.argsort(-weights, axis=None, kind="stable")[:count]
    cells = zip(*np.unravel_index(order, weights.shape), strict=True)
    return [
        Pair(int(row), int(column), float(weights[row, column]))
        for row, column in cells
        if weights[row, column] > 0
    ]
