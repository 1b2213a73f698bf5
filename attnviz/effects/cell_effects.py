"""Do weights predict effects? The effects of masking single cells of a head, beside their weights.

Masking a cell sets its score to minus infinity, so that the row's other weights grow and still sum to 1. A query whose
only key is masked gets zeros.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float, Int
from scipy.stats import spearmanr

from attnviz.arguments import typed
from attnviz.effects.outcome import AnyOutcome, measured, unchanged
from attnviz.model.interventions import MaskedKeys
from attnviz.model.variants import measured_variants
from attnviz.records import Axis, Kind, Measure, Progress, Result, Tokens
from attnviz.records.table import Table, entry_names

if TYPE_CHECKING:
    from attnviz.model.model import Model
    from attnviz.model.trace import Trace

MOST_CELLS = 256
"""Most cells that are masked; of a larger matrix they are drawn at random."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CellEffects(Result):
    """Cells of one head: where they are, their weights, and the outcome without each of them."""

    layer: int
    head: int
    kind: Kind
    query_tokens: Tokens
    key_tokens: Tokens
    base: float
    """The outcome of the unchanged run."""
    queries: Int[np.ndarray, " cell"]
    keys: Int[np.ndarray, " cell"]
    weights: Float[np.ndarray, " cell"]
    """Attention weights."""
    norms: Float[np.ndarray, " cell"] | None
    """Norm-based weights; None where W_O is not known."""
    outcomes: Float[np.ndarray, " cell"]
    """The outcome while the cell is masked."""
    n_cell: int
    """Cells of the matrix that a query may see; more than those above where these were drawn."""

    @property
    def effects(self) -> Float[np.ndarray, " cell"]:
        """Change of the outcome when each cell is masked."""
        return np.asarray(self.outcomes - self.base, dtype=np.float32)

    def _table(self) -> Table:
        """A row for each cell."""
        of_queries, of_keys = (
            entry_names(Axis.of(tokens)) for tokens in (self.query_tokens, self.key_tokens)
        )
        norms = [""] * len(self.weights) if self.norms is None else self.norms
        numbers = zip(self.weights, norms, self.outcomes, self.effects, strict=True)
        rows = [
            [of_queries[query], of_keys[key], *of_cell]
            for query, key, of_cell in zip(self.queries, self.keys, numbers, strict=True)
        ]
        return ["query", "key", "weight", "norm-based weight", "outcome", "effect"], rows

    def rank_correlation(self, measure: Measure = "weights") -> float:
        """Spearman's correlation of the weights, or the norm-based weights, with the sizes of the effects.

        NaN for fewer than 3 cells, or where all numbers are equal.

        Source: Spearman 1904; ``scipy.stats.spearmanr`` of SciPy 1.17.1.
        """
        sizes, numbers = np.abs(self.effects), self.norms if measure == "norms" else self.weights
        if numbers is None or len(numbers) < 3 or not np.ptp(numbers) or not np.ptp(sizes):
            return float("nan")
        return float(spearmanr(numbers, sizes).statistic)


@typed
def mask_cells(
    model: "Model",
    trace: "Trace",
    outcome: AnyOutcome,
    layer: int,
    head: int,
    *,
    kind: Kind | None = None,
    most: int = MOST_CELLS,
    seed: int = 0,
    progress: Progress | None = None,
) -> CellEffects:
    """The outcome without each cell of a head in turn.

    Args:
        trace: of the text without interventions.
        most: most cells to mask; of more, so many are drawn with the seed.

    Raises:
        CaptureError, OutOfMemoryError: as `attnviz.model.variants.states_of_variants`.
        SelectionError: no such layer, head or kind.
    """
    measure = measured(model, trace, outcome)
    pattern = trace.pattern(layer, head, kind)
    cells = np.argwhere(pattern.allowed)
    n_cell = len(cells)
    if n_cell > most:
        drawn = np.random.default_rng(seed).choice(n_cell, size=most, replace=False)
        cells = cells[np.sort(drawn)]
    queries, keys = cells[:, 0], cells[:, 1]
    variants = []
    for query, key in cells:
        allowed = np.ones(pattern.allowed.shape, dtype=bool)
        allowed[query, key] = False
        variants.append([MaskedKeys(kind=pattern.kind, layer=layer, head=head, allowed=allowed)])
    has_norms = "norms" in trace.measures(kind)
    norms = trace.pattern(layer, head, kind, measure="norms").weights if has_norms else None
    return CellEffects(
        layer=layer,
        head=head,
        kind=pattern.kind,
        query_tokens=trace.query_tokens(kind),
        key_tokens=trace.key_tokens(kind),
        base=unchanged(trace, measure),
        queries=queries,
        keys=keys,
        weights=np.array(pattern.weights[queries, keys]),
        norms=None if norms is None else np.array(norms[queries, keys]),
        outcomes=measured_variants(model, trace, variants, measure, progress=progress),
        n_cell=n_cell,
    )
