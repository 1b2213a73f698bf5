"""One query's path through a head: its vectors, its row of scores and weights, and its output.

Scores, weights and output are those of the trace; only the products before the scale, and the exponentials, are
computed here, in float64.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from attnviz.arguments import typed
from attnviz.model.trace import Trace
from attnviz.records import Kind, Record, check_index


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class QueryPath(Record):
    """Everything that one head computes for one query, in the order in which it is computed."""

    query: Float[np.ndarray, " d_head"]
    """As the attention gets it, after rotary positions."""
    key: Float[np.ndarray, "key d_head"]
    value: Float[np.ndarray, "key d_value"]
    products: Float[np.ndarray, " key"]
    """q · k of every key, before scale, bias and mask."""
    scale: float
    """Factor on the products, 1 / sqrt(d_head) for most families."""
    softcap: float | None
    """c where scaled products s become c tanh(s / c), as in Gemma 2; None for most families."""
    bias: Float[np.ndarray, " key"] | None
    """Added to the scaled products, such as T5's relative positions; None for most families."""
    bias_is_of_distance: bool
    """Whether the bias is the same for all pairs of tokens that are equally far apart."""
    scores: Float[np.ndarray, " key"]
    """``scale * products``, softcapped, plus the bias, and minus infinity where the query may not see the key."""
    weights: Float[np.ndarray, " key"]
    output: Float[np.ndarray, " d_value"]

    @property
    def divides_by_root(self) -> bool:
        """Whether the scale is 1 / sqrt(d_head), as in Vaswani et al. 2017."""
        return bool(np.isclose(self.scale, len(self.query) ** -0.5))

    @property
    def exponentials(self) -> Float[np.ndarray, " key"]:
        """e^(score - largest score): the weights before they are divided by their sum; 0 where masked.

        The largest is subtracted as in Blanchard et al. 2021 (arXiv:1909.03469), equation 1.2.
        """
        largest = float(self.scores.max())
        shifted = self.scores.astype(np.float64) - (largest if np.isfinite(largest) else 0.0)
        return np.asarray(np.exp(shifted))

    def others(self, shown: np.ndarray) -> tuple[float, Float[np.ndarray, " d_value"]]:
        """The total weight of all keys that are not shown, and the weighted mean of their values.

        Weight times mean is what these keys add to the output.
        """
        hidden = np.ones(len(self.weights), dtype=bool)
        hidden[shown] = False
        weights = self.weights[hidden].astype(np.float64)
        total = float(weights.sum())
        summed = weights @ self.value[hidden]
        return total, summed / total if total else summed


@typed
def query_path(trace: Trace, position: int, layer: int, head: int, kind: Kind | None = None) -> QueryPath:
    """What one head computes for the query at this position.

    Raises:
        SelectionError: no such layer, head, kind or query.
    """
    call = trace.head(layer, head, kind)
    check_index("query", position, len(call.query), "this text")
    scores, weights = call.some(slice(position, position + 1)).scores_and_weights()
    return QueryPath(
        query=call.query[position],
        key=call.key,
        value=call.value,
        products=call.key.astype(np.float64) @ call.query[position],
        scale=call.scale,
        softcap=call.softcap,
        bias_is_of_distance=call.bias_is_of_distance,
        bias=None if call.bias is None else call.bias[position],
        scores=scores[0],
        weights=weights[0],
        output=trace.output(layer, head, kind)[position],
    )
