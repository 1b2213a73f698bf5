"""The strongest tenth of the cells of each head of a layer."""

import numpy as np
from jaxtyping import Float

from attnviz.heads.layer_cells import Cells, LayerCells
from attnviz.maths.quotients import quotients

_KEPT = 0.125
"""Share of the cells that is above the weight from which on they are kept: a tenth and a margin for the rows not looked at."""


class StrongestTenth:
    """The strongest tenth of the allowed cells of each head, found while all rows pass by.

    Of a layer that is not held, only cells are kept whose weight is above one that an eighth of the cells of some rows exceeds, so
    that an eighth is in memory. Where that proves too few for a head, its rows pass by again and twice as many are kept.
    """

    def __init__(self, layer: LayerCells) -> None:
        self._layer = layer
        self._share = 1.0 if layer.is_held else _KEPT
        self._heads = [*range(layer.n_head)]
        self._least = self._least_kept()
        self._kept: list[list[np.ndarray]] = [[] for _ in self._heads]
        self._n_allowed, self._total = np.zeros(layer.n_head, dtype=np.int64), np.zeros(layer.n_head)

    def add(self, cells: Cells) -> None:
        """Takes the next rows."""
        self._n_allowed += cells.n_allowed.sum(axis=-1)
        self._total += cells.totals.sum(axis=-1, dtype=np.float64)
        self._keep(cells)

    def numbers(self) -> Float[np.ndarray, " head"]:
        """Share of the weight of each head; NaN where it has none."""
        strongest = np.zeros(self._layer.n_head)
        counts = -(-self._n_allowed // 10)
        while self._heads:
            too_few = []
            for head in self._heads:
                kept, count = np.concatenate(self._kept[head]), int(counts[head])
                self._kept[head] = []
                if len(kept) < count and self._least[head] > 0:
                    too_few.append(head)
                elif count := min(count, len(kept)):  # cells of weight 0 add nothing
                    strongest[head] = np.partition(kept, len(kept) - count)[len(kept) - count :].sum(
                        dtype=np.float64
                    )
            self._heads = too_few
            if too_few:
                self._share *= 2
                self._least = self._least_kept()
                for cells in self._layer.blocks():
                    self._keep(cells)
        return quotients(strongest, self._total)

    def _keep(self, cells: Cells) -> None:
        for head in self._heads:
            of_head = cells.weights[head]
            self._kept[head].append(of_head[of_head > self._least[head]])

    def _least_kept(self) -> Float[np.ndarray, " head"]:
        """The weight of each head that so large a share of its allowed cells exceeds; below any for all of them."""
        least = np.full(self._layer.n_head, -np.inf, dtype=np.float32)
        if self._share < 1:
            rows = [*self._layer.some_rows()]
            n_kept = self._share * sum(np.count_nonzero(allowed, axis=(1, 2)) for _, allowed in rows)
            for head, count in enumerate(np.broadcast_to(n_kept, len(least)).astype(int)):
                falling = -np.sort(-np.concatenate([weights[head].ravel() for weights, _ in rows]))
                least[head] = falling[count]
        return least
