"""How similar heads are."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from jaxtyping import Float

from attnviz.arguments import typed
from attnviz.errors import ShapeError
from attnviz.heads.cells import cells_in_blocks
from attnviz.records import Axis, Head, Kind, Result, check_index
from attnviz.records.table import Table

if TYPE_CHECKING:
    from attnviz.model.trace import Trace

MOST_COMPARED = 150_000_000
"""Most weights that `divergences` compares: pairs of heads x rows x keys; takes about a second."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Divergences(Result):
    """The distance of every two heads: the Jensen-Shannon divergence of their rows, in bits, mean over the rows.

    0 for identical heads, 1 for heads without shared keys.
    """

    _IS_MATRIX: ClassVar[bool] = True

    divergence: Float[np.ndarray, "head head"]
    heads: tuple[Head, ...]
    """The heads in the order of rows and columns, layer by layer."""
    n_rows: int
    """Queries whose rows were compared."""
    n_queries: int
    """Number of all queries."""

    def _table(self) -> Table:
        names = [head.short for head in self.heads]
        rows = [[name, *row] for name, row in zip(names, self.divergence, strict=True)]
        return ["head", *names], rows

    def nearest(self, layer: int, head: int, count: int) -> list[tuple[int, int, float]]:
        """The heads most similar to this head, nearest first: layer, head and divergence.

        Raises:
            SelectionError: no such layer or head.
        """
        check_index("layer", layer, self.heads[-1].layer + 1, "this model")
        check_index("head", head, sum(head.layer == layer for head in self.heads), f"layer {layer}")
        this = self.heads.index(Head(layer, head))
        row = self.divergence[this]
        order = [int(head) for head in np.argsort(row, kind="stable") if head != this]
        return [(*self.heads[other], float(row[other])) for other in order[:count]]

    def map(self) -> Float[np.ndarray, "head 2"]:
        """Heads as points in the plane, with similar heads close together; the same for the same divergences.

        Metric multidimensional scaling of the divergences (SMACOF, scikit-learn 1.9.1, MDS), started from
        classical scaling, so that nothing is random.

        Source: Clark et al. 2019 (arXiv:1906.04341), section 6 and figure 6.
        """
        if not self.divergence.any():  # one head, or all alike
            return np.zeros((len(self.divergence), 2), dtype=np.float32)
        from sklearn.manifold import MDS, ClassicalMDS  # slow to import
        from threadpoolctl import threadpool_limits

        distances = self.divergence.astype(np.float64)
        start = np.zeros((len(distances), 2))
        with np.errstate(invalid="ignore"):  # rounding may leave an eigenvalue slightly below 0
            axes = ClassicalMDS(metric="precomputed").fit_transform(distances)
        start[:, : axes.shape[1]] = np.nan_to_num(axes)
        scaling = MDS(metric="precomputed", init="random", n_init=1, max_iter=300, eps=1e-6)
        with threadpool_limits(1, user_api="openmp"):  # for the reason given in attnviz.maps.projection
            points: np.ndarray = scaling.fit_transform(distances, init=start)
        return points.astype(np.float32)


@typed
def divergences(
    trace: "Trace", kind: Kind | None, queries: Axis, keys: Axis, *, most_compared: int = MOST_COMPARED
) -> Divergences:
    """The divergence of every two heads of all layers on this text.

    Rows are divided by their sum over the shown keys. For a long text evenly spaced rows are compared, as many as
    ``most_compared`` allows; rows that see no shown key in some head are left out.

    Raises:
        ShapeError: no row sees a shown key in every head.

    Source: Clark et al. 2019 (arXiv:1906.04341), section 6: the sum over the tokens of JS(H_i(x), H_j(x));
    here their mean, so that texts of any length can be compared.
    """
    heads = trace.heads(kind)
    n_pairs = len(heads) * (len(heads) - 1) // 2
    n_rows = min(len(queries), max(1, most_compared // max(1, n_pairs * len(keys))))
    chosen = np.zeros(len(queries), dtype=bool)
    chosen[np.linspace(0, len(queries) - 1, n_rows).round().astype(int)] = True
    rows = np.concatenate(
        [
            np.concatenate(
                [cells for _, cells in cells_in_blocks(trace, layer, kind, queries.where(chosen), keys)],
                axis=1,
            )
            for layer in range(trace.n_layers(kind))
        ]
    )
    total = rows.sum(axis=-1, keepdims=True)  # [head, query, 1]
    compared = (total > 0).all(axis=(0, 2))
    if not compared.any():
        raise ShapeError("No query sees a key that is shown in every head; show more keys to compare heads.")
    rows = rows[:, compared] / total[:, compared]
    entropy = _bits(rows)  # [head]
    divergence = np.zeros((len(heads), len(heads)), dtype=np.float32)
    for row in range(len(heads) - 1):
        mixed = _bits(0.5 * (rows[row] + rows[row + 1 :]))
        divergence[row, row + 1 :] = mixed - 0.5 * (entropy[row] + entropy[row + 1 :])
    divergence = np.maximum(divergence + divergence.T, 0)  # rounding leaves numbers slightly below 0
    return Divergences(
        divergence=divergence,
        heads=heads,
        n_rows=int(compared.sum()),
        n_queries=len(queries),
    )


def _bits(rows: Float[np.ndarray, "*head query key"]) -> Float[np.ndarray, "*head"]:
    """Entropy of rows that sum to 1, in bits, mean over the rows."""
    logarithms = np.log2(np.maximum(rows, np.finfo(np.float32).tiny))
    means: np.ndarray = -np.einsum("...qk,...qk->...", rows, logarithms) / rows.shape[-2]
    return means
