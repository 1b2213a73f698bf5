"""Which heads link a pair of tokens, and which pairs a head links most."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from attnviz.arguments import typed
from attnviz.heads.cells import cells_in_blocks, places
from attnviz.records import AttentionPattern, Axis, Kind, Measure, head_table, known

if TYPE_CHECKING:
    from attnviz.model.trace import Trace

_ROWS = 128
"""Rows whose cells are sorted at once."""


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
    weights = head_table(
        cells[:, 0, 0]
        for layer in range(trace.n_layers(kind))
        for _, cells in cells_in_blocks(trace, layer, kind, queries, keys, measure)
    )
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
    starts = range(0, len(pattern.queries), _ROWS)
    blocks = ((slice(start, start + _ROWS), pattern.weights[start : start + _ROWS]) for start in starts)
    return _strongest(blocks, pattern.queries, pattern.keys, count, special=special, itself=itself)


@typed
def strongest_pairs_of_head(
    trace: "Trace",
    layer: int,
    head: int,
    kind: Kind | None,
    queries: Axis,
    keys: Axis,
    count: int,
    *,
    measure: Measure = "weights",
    special: bool = True,
    itself: bool = True,
) -> list[Pair]:
    """As `strongest_pairs`, of a head whose matrix is computed some rows at a time and never held.

    Raises:
        SelectionError: no such layer, head, kind or measure, or rollout, which has no number for a head.
    """
    cells = cells_in_blocks(trace, layer, kind, queries, keys, measure, head=head)
    blocks = ((rows, of_head[0]) for rows, of_head in cells)
    return _strongest(blocks, queries, keys, count, special=special, itself=itself)


def _strongest(
    blocks: Iterable[tuple[slice, np.ndarray]],
    queries: Axis,
    keys: Axis,
    count: int,
    *,
    special: bool,
    itself: bool,
) -> list[Pair]:
    own, columns = places(queries, keys)
    is_own = not itself and queries.tokens is keys.tokens
    n_key = len(keys)
    strongest: list[Pair] = []
    least = 0.0  # of those that are still to come, only larger ones count
    for rows, cells in blocks:
        weights = cells.copy()
        if not special:
            weights[queries.is_special[rows]] = 0
            weights[:, keys.is_special] = 0
        if is_own:
            weights[own[rows, None] == columns] = 0
        flat = weights.ravel()
        candidates = np.flatnonzero(flat > least)
        largest = candidates[np.argsort(-flat[candidates], kind="stable")[:count]]
        strongest += [
            Pair(rows.start + int(cell) // n_key, int(cell) % n_key, float(flat[cell])) for cell in largest
        ]
        strongest = sorted(strongest, key=lambda pair: -pair.weight)[:count]
        if len(strongest) == count > 0:
            least = strongest[-1].weight
    return strongest
