"""The lines of the attention flow figure.

numpy only.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from attnviz.records import AllHeads, Axis, Head, Record
from attnviz.records.table import entry_names, table_csv

MOST_LINES = 2000
"""Most lines that are drawn for any text, about as many as for 100 tokens at a share of 70%. A browser draws
them in a tenth of a second; more lines would merge into a grey area."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Flow(Record):
    """Lines from queries to keys, the weakest first, so that strong lines are drawn on top."""

    matrix: Int[np.ndarray, " line"]
    """Index of the matrix that each line belongs to."""
    query: Int[np.ndarray, " line"]
    key: Int[np.ndarray, " line"]
    weight: Float[np.ndarray, " line"]
    n_left_out: int
    """Number of weaker lines above the threshold that are left out."""
    row_is_whole: bool
    """Whether none of the lines left out belongs to the query whose lines take precedence."""
    share: float
    """Share of the matrices' total weight that is on the lines; 0 if there is no weight."""

    def __len__(self) -> int:
        return len(self.weight)


def strongest_lines(
    matrices: Float[np.ndarray, "matrix query key"],
    above: Bool[np.ndarray, "matrix query key"],
    *,
    whole_row: int | None = None,
    most: int = MOST_LINES,
) -> Flow:
    """The strongest of the lines that are above a threshold, of all matrices together.

    Args:
        above: cells that `above_share` or `above_weight` keep.
        whole_row: a query whose lines take precedence over all others, such as the selected query.
    """
    weights = np.where(above, matrices, 0.0).astype(np.float32)
    ranks = weights.copy()
    if whole_row is not None:
        ranks[:, whole_row] += 2 * weights.max()
    candidates = np.flatnonzero(weights)
    drawn = candidates[np.argsort(-ranks.ravel()[candidates], kind="stable")[:most]]
    drawn = drawn[np.argsort(weights.ravel()[drawn], kind="stable")]
    matrix, query, key = np.unravel_index(drawn, weights.shape)
    n_row = 0 if whole_row is None else np.count_nonzero(weights[:, whole_row])
    weight = weights.ravel()[drawn]
    total = float(matrices.sum(dtype=np.float64))
    return Flow(
        matrix=matrix,
        query=query,
        key=key,
        weight=weight,
        n_left_out=len(candidates) - len(drawn),
        row_is_whole=bool(n_row == np.count_nonzero(query == whole_row)),
        share=float(weight.sum(dtype=np.float64)) / total if total > 0 else 0.0,
    )


def above_weight(
    matrices: Float[np.ndarray, "matrix query key"], least: float
) -> Bool[np.ndarray, "matrix query key"]:
    """True where a weight is at least ``least``, and not 0."""
    return np.asarray((matrices >= least) & (matrices > 0))


def above_share(
    matrices: Float[np.ndarray, "matrix query key"], share: float
) -> Bool[np.ndarray, "matrix query key"]:
    """True for the strongest keys of each query that together hold this share of its row.

    Keys as strong as the last of these keys are included too, so that equal keys are treated alike.

    Source: Hoover et al. 2020, "exBERT" (arXiv:1910.05276), whose default is 0.7; ``toEdges`` of its client.
    """
    falling = -np.sort(-matrices, axis=-1)
    held = np.cumsum(falling, axis=-1, dtype=np.float64)
    n_short = (held < share * held[..., -1:]).sum(axis=-1, keepdims=True)  # keys still below the share
    least = np.take_along_axis(falling, n_short, axis=-1)
    return np.asarray((matrices >= least) & (matrices > 0))


def lines_csv(flow: Flow, heads: Sequence[Head | AllHeads], queries: Axis, keys: Axis) -> bytes:
    """All lines as CSV, the strongest first; see `attnviz.records.table`.

    Args:
        heads: the head, or the layer for all heads together, of each matrix.
    """
    of_queries, of_keys = entry_names(queries), entry_names(keys)
    rows = []
    for line in reversed(range(len(flow))):
        of = heads[flow.matrix[line]]
        head = of.head if isinstance(of, Head) else "all"
        ends = of_queries[flow.query[line]], of_keys[flow.key[line]]
        rows.append([of.layer, head, *ends, str(flow.weight[line])])
    return table_csv(["layer", "head", "query", "key", "number"], rows)
