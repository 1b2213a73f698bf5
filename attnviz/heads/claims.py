"""Four common claims about attention, measured in every head: symmetric, diagonal, full, and that larger weights add more.

numpy only; only one layer's weights are in memory at a time.
"""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from attnviz.arguments import typed
from attnviz.errors import SelectionError
from attnviz.heads.head_statistics import asymmetry
from attnviz.maths.ranks import rank_correlations
from attnviz.records import Kind, Record

if TYPE_CHECKING:
    from attnviz.model.trace import Trace

MOST_WEIGHT = 0.9
"""Share of all weight; `Claims.cells_for_most` counts the fewest cells that hold it."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Claims(Record):
    """Numbers of every head [layer head] for one text; NaN where a layer has no such head."""

    weight_asymmetry: Float[np.ndarray, "layer head"]
    """Sum of |W - W^T| divided by the sum of W + W^T: 0 for a symmetric matrix, 1 where no token attends back."""
    score_asymmetry: Float[np.ndarray, "layer head"]
    """Sum of |S - S^T| divided by the sum of |S| + |S^T| of the scores before the softmax, over pairs of tokens that may
    see each other; NaN where no two different tokens may see each other, as under a causal mask."""
    tied_asymmetry: Float[np.ndarray, "layer head"]
    """Asymmetry of softmax(scale x K K^T), softcapped like the head's own scores: the weights if its queries were its keys,
    so that its scores were symmetric; NaN where ``score_asymmetry`` is NaN."""
    on_itself: Float[np.ndarray, "layer head"]
    """Share of the queries whose strongest key is their own token."""
    on_special: Float[np.ndarray, "layer head"]
    """Share of the queries whose strongest key is a special token such as [CLS] or [SEP], other than their own token."""
    on_first: Float[np.ndarray, "layer head"]
    """Share of the queries of a decoder whose strongest key is the first token, unless that is special or their own; heads
    rest on it in models that add no special token (Xiao et al. 2023, arXiv:2309.17453). 0 for an encoder."""
    on_neighbour: Float[np.ndarray, "layer head"]
    """Share of the queries whose strongest key is the previous or next token, unless that token counts for one of the two shares
    above."""
    seen: Float[np.ndarray, "layer head"]
    """Share of all cells that the mask allows."""
    positive: Float[np.ndarray, "layer head"]
    """Share of the cells a query may see whose weight is above 0."""
    cells_for_most: Float[np.ndarray, "layer head"]
    """Smallest share of the cells a query may see that holds `MOST_WEIGHT` of all weight."""
    other_strongest: Float[np.ndarray, "layer head"] | None
    """Share of the queries whose strongest key by weight is not their strongest key by norm-based weight, the length
    of weight x v_j W_O (Kobayashi et al. 2020, arXiv:2004.10102, section 3); None where W_O is not known."""
    rank_agreement: Float[np.ndarray, "layer head"] | None
    """Spearman correlation of weights and norm-based weights in a row, mean over the queries."""


@typed
def measure(trace: "Trace", kind: Kind | None = None) -> Claims:
    """The measurements of the four claims for one text, in every head.

    Raises:
        SelectionError: cross-attention, whose queries and keys are not the same tokens.
    """
    if trace.query_tokens(kind) is not trace.key_tokens(kind):
        raise SelectionError(
            "Cross-attention was asked for; its rows and columns are different texts, so it has no diagonal and "
            "cannot be symmetric. Select self-attention."
        )
    special = trace.key_tokens(kind).is_special
    n = len(special)
    shape = trace.shape(kind)
    is_decoder = trace.attention(0, kind).kind == "decoder"
    has_norms = "norms" in trace.measures(kind)
    numbers = {name: np.full(shape, np.nan, dtype=np.float32) for name in Claims.__dataclass_fields__}
    own = np.arange(n)
    for layer in range(shape[0]):
        weights = trace.layer_weights(layer, kind)
        norms = trace.layer_weights(layer, kind, measure="norms") if has_norms else None
        n_head = len(weights)
        numbers["weight_asymmetry"][layer, :n_head] = asymmetry(weights)
        numbers["tied_asymmetry"][layer, :n_head] = asymmetry(
            _tied(trace, layer, kind).layer_weights(layer, kind)
        )
        for head in range(n_head):
            row = weights[head].astype(np.float64)
            scores = trace.scores(layer, head, kind).astype(np.float64)
            seen = np.isfinite(scores)
            both = seen & seen.T
            at = layer, head
            numbers["score_asymmetry"][at] = asymmetry(np.where(both, scores, 0.0))
            if not (both & (own != own[:, None])).any():
                numbers["score_asymmetry"][at] = numbers["tied_asymmetry"][at] = np.nan
            looking = seen.any(axis=1)
            strongest = row.argmax(axis=1)
            itself, neighbour = strongest == own, np.abs(strongest - own) == 1
            first = (strongest == 0) & ~special[strongest] & ~itself & is_decoder
            numbers["on_itself"][at] = itself[looking].mean()
            numbers["on_special"][at] = (special[strongest] & ~itself)[looking].mean()
            numbers["on_first"][at] = first[looking].mean()
            numbers["on_neighbour"][at] = (neighbour & ~special[strongest] & ~first)[looking].mean()
            numbers["seen"][at] = seen.mean()
            numbers["positive"][at] = (row[seen] > 0).mean()
            ordered = np.sort(row[seen])[::-1].cumsum()
            numbers["cells_for_most"][at] = (
                np.searchsorted(ordered, MOST_WEIGHT * ordered[-1]) + 1
            ) / seen.sum()
            if norms is not None:
                lengths = norms[head].astype(np.float64)
                numbers["other_strongest"][at] = (lengths.argmax(axis=1) != strongest)[looking].mean()
                ordering = seen.sum(axis=1) > 1
                agreements = rank_correlations(row, lengths, seen)[ordering]
                numbers["rank_agreement"][at] = agreements.mean() if ordering.any() else 1.0
    of_norms: dict[str, Any] = {} if has_norms else {"other_strongest": None, "rank_agreement": None}
    return Claims(**{**numbers, **of_norms})


def _tied(trace: "Trace", layer: int, kind: Kind | None) -> "Trace":
    """The trace with one layer's queries replaced by its keys, and without bias, so that its scores are symmetric."""
    keys = [trace.key(layer, head, kind) for head in range(trace.n_heads(layer, kind))]
    return trace.with_layer(replace(trace.attention(layer, kind), query=np.stack(keys), bias=None))
