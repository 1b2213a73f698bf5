"""How far each head reaches in a text: the weight on the first token by position, and the weight by distance."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from attnviz.arguments import typed
from attnviz.maths.quotients import quotients
from attnviz.records import Head, Kind, Result, heads_in
from attnviz.records.table import Table

if TYPE_CHECKING:
    from attnviz.model.trace import Trace

MOST_POSITIONS = 16
"""Most bins of positions: of 8,192 tokens each has 512."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BinnedShares(Result):
    """A share of attention of every head, by position of the query or by distance of query and key."""

    kind: Kind
    over: Literal["position", "distance"]
    """What the bins are of, in tokens."""
    bins: Int[np.ndarray, "bin 2"]
    """The first position or distance of each bin, and its last."""
    shares: Float[np.ndarray, "layer head bin"]
    """NaN where a layer has no such head, or a bin no query that counts."""
    counts: Int[np.ndarray, "layer head bin"]
    """Number of queries whose mean a share is; by distance, all that have weight. 0 where the share is NaN."""

    @property
    def heads(self) -> tuple[Head, ...]:
        """The heads, layer by layer."""
        return tuple(heads_in(np.where(np.isnan(self.shares).all(axis=2), np.nan, 0.0)))

    @property
    def names(self) -> tuple[str, ...]:
        """The bins in words: "1", "2–3", "1,024–2,047"."""
        return tuple(
            f"{first:,}" if first == last else f"{first:,}–{last:,}" for first, last in self.bins.tolist()
        )

    def _table(self) -> Table:
        """A row for each head, with a column for each bin."""
        rows = [
            [*head, *("" if np.isnan(share) else share for share in self.shares[head])] for head in self.heads
        ]
        return ["layer", "head", *self.names], rows


class Reach(NamedTuple):
    """What `reach` measures."""

    sinks: BinnedShares
    """The share of its weight that a query gives to the first token, mean over the queries of each of up to `MOST_POSITIONS` equal
    parts of the text. A query that may not see the first token, as beyond a sliding window, does not count.

    Source: Xiao et al. 2023 (arXiv:2309.17453), attention sinks.
    """
    distances: BinnedShares | None
    """The share of weight at distances 0, 1, 2–3, 4–7 and so on, mean over the queries; the bins of a head sum to 1. None for
    cross-attention, whose queries and keys are of two texts."""


@typed
def reach(trace: "Trace", *, kind: Kind | None = None) -> Reach:
    """How much weight every head puts on the first token, by the query's position, and how its weight falls with distance.

    Raises:
        SelectionError: no such kind.
    """
    n_query, n_key = len(trace.query_tokens(kind)), len(trace.key_tokens(kind))
    is_one_text = trace.query_tokens(kind) is trace.key_tokens(kind)
    edges = np.linspace(0, n_query, min(MOST_POSITIONS, n_query) + 1).round().astype(np.int64)
    doubling = np.array([0, *(1 << power for power in range((n_key - 1).bit_length()))], dtype=np.int64)
    sink_counts, profile_counts = (
        np.zeros((*trace.shape(kind), len(of) - less), dtype=np.int64)
        for of, less in ((edges, 1), (doubling, 0))
    )
    sinks = np.full((*trace.shape(kind), len(edges) - 1), np.nan, dtype=np.float32)
    profile = np.full((*trace.shape(kind), len(doubling)), np.nan, dtype=np.float32)
    for layer in range(trace.n_layers(kind)):
        n_head = trace.n_heads(layer, kind)
        on_first = np.zeros((n_head, n_query))
        by_distance = np.zeros((n_head, n_key))
        n_weighted = np.zeros(n_head, dtype=np.int64)
        for rows, weights in trace.blocks(layer, kind):
            on_first[:, rows] = weights[:, :, 0]
            if is_one_text:
                n_weighted += weights.any(axis=2).sum(axis=1)
                for query, row in zip(range(rows.start, rows.stop), weights.swapaxes(0, 1), strict=True):
                    by_distance[:, : query + 1] += row[:, query::-1]
                    by_distance[:, 1 : n_key - query] += row[:, query + 1 :]
        counts = np.broadcast_to(_sees_first(trace, layer, kind), on_first.shape)
        sums, n_counting = (np.add.reduceat(of, edges[:-1], axis=1) for of in (on_first, counts * 1))
        sinks[layer, :n_head], sink_counts[layer, :n_head] = quotients(sums, n_counting), n_counting
        profile_counts[layer, :n_head] = n_weighted[:, None]
        profile[layer, :n_head] = quotients(
            np.add.reduceat(by_distance, doubling, axis=1), n_weighted[:, None]
        )
    of_kind = kind or trace.kinds[0]
    parts, doubled = (
        np.column_stack([starts, [*starts[1:] - 1, last]])
        for starts, last in ((edges[:-1], n_query - 1), (doubling, n_key - 1))
    )
    return Reach(
        sinks=BinnedShares(kind=of_kind, over="position", bins=parts, shares=sinks, counts=sink_counts),
        distances=BinnedShares(
            kind=of_kind, over="distance", bins=doubled, shares=profile, counts=profile_counts
        )
        if is_one_text
        else None,
    )


def _sees_first(trace: "Trace", layer: int, kind: Kind | None) -> Bool[np.ndarray, "#head #query"]:
    allowed = trace.attention(layer, kind).allowed
    return np.ones((1, 1), dtype=bool) if allowed is None else allowed[:, :, 0]
