"""One score as the sum of its products, dimension by dimension.

numpy; torch only through the trace.

Source: Vaswani et al. 2017, "Attention Is All You Need" (arXiv:1706.03762), equation 1: the score of a query and a key
is the sum of the products of their dimensions, times a scale.
"""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float, Float64

from attnviz.arguments import typed
from attnviz.records import Kind, Result, check_index
from attnviz.records.table import Table

if TYPE_CHECKING:
    from attnviz.model.trace import Trace


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Score(Result):
    """The vectors of one query and one key, with the scale, bias and mask of their score."""

    query: Float[np.ndarray, " d_head"]
    key: Float[np.ndarray, " d_head"]
    scale: float
    """Factor on each product, 1 / sqrt(d_head) for most families."""
    softcap: float | None = None
    """c where the sum s of the products becomes c tanh(s / c), as in Gemma 2; None for most families."""
    bias: float
    """Added to the sum of the products, such as T5's relative positions; 0 for most families."""
    allowed: bool
    """Whether the query may see the key; if not, the model uses minus infinity in place of the score."""

    @property
    def terms(self) -> Float64[np.ndarray, " d_head"]:
        """The contribution of each dimension to the score: query times key times scale."""
        return np.asarray(self.query.astype(np.float64) * self.key * self.scale)

    @property
    def cap(self) -> float:
        """What the softcap adds to the sum of all terms, with the opposite sign; 0 without a softcap."""
        total = float(self.terms.sum())
        return 0.0 if self.softcap is None else self.softcap * math.tanh(total / self.softcap) - total

    @property
    def value(self) -> float:
        """The score: the sum of all terms, softcapped, and the bias, whether or not the mask allows the pair."""
        return float(self.terms.sum()) + self.cap + self.bias

    def _table(self) -> Table:
        """The dimensions in order, with the contribution of each and the sum so far; last the softcap and the bias, if any."""
        terms = self.terms
        rows: list[list[object]] = [
            [dimension, self.query[dimension], self.key[dimension], terms[dimension], so_far]
            for dimension, so_far in enumerate(terms.cumsum())
        ]
        if self.softcap is not None:
            rows.append(["softcap", "", "", self.cap, self.value - self.bias])
        if self.bias:
            rows.append(["bias", "", "", self.bias, self.value])
        return ["dimension", "query", "key", f"query x key x {self.scale:.6g}", "sum so far"], rows

    def largest_first(self) -> np.ndarray:
        """The dimensions, sorted by the absolute value of their terms."""
        return np.argsort(-np.abs(self.terms), kind="stable")


@typed
def score_of(
    trace: "Trace", layer: int, head: int, query: int, key: int, *, kind: Kind | None = None
) -> Score:
    """The score of one query and one key, split into its terms.

    Args:
        query: position of the query's token.
        key: position of the key's token.

    Raises:
        SelectionError: no such layer, head, kind, query or key.
    """
    trace.query(layer, head, kind)  # refuses a trace without
    call = trace.head(layer, head, kind)
    check_index("query token", query, len(call.query), "this text")
    check_index("key token", key, len(call.key), "this text")
    return Score(
        query=call.query[query].copy(),
        key=call.key[key].copy(),
        scale=call.scale,
        softcap=call.softcap,
        bias=0.0 if call.bias is None else float(call.bias[query, key]),
        allowed=call.allowed is None or bool(call.allowed[query, key]),
    )
