"""The history of scaled dot-product attention: five published ways to combine many values into one vector per query.

The vectors are a transformer's; the networks of the earlier papers had other vectors, but the formulas apply to any.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from attnviz.maths.attention import attention_scores, softmax
from attnviz.maths.earlier_scores import additive_scores, multiplicative_scores
from attnviz.records import Kind, Record

if TYPE_CHECKING:
    from attnviz.model.trace import Trace

StepName = Literal["fixed", "additive", "general", "dot", "scaled"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Step(Record):
    """The result of one way for a query, the keys and the values."""

    name: StepName
    scores: Float[np.ndarray, " key"] | None
    """Before the softmax; minus infinity where the query may not see a key. None for the fixed vector."""
    weights: Float[np.ndarray, " key"]
    context: Float[np.ndarray, " d_value"]
    """The weighted mean of the values."""
    other_weights: Float[np.ndarray, " key"]
    """The weights of another query of the same text."""
    n_parameters: int
    """Learned parameters of the score, besides those that make the queries, keys and values."""
    n_multiplications: int
    """Those for the scores of all queries with all keys; tanh, softmax and the weighted mean are not counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleEffect:
    """What dividing by the square root of d_head does to a row."""

    scaled: float
    """The largest weight of the row with the scale."""
    unscaled: float
    """The largest weight without it: at least as large, for the scores are sqrt(d_head) times further apart."""
    largest_change: float
    """The largest change of any weight of the row."""


def scale_effect(scaled: Step, dot: Step) -> ScaleEffect:
    """The rows of the last two ways compared: the same products, with and without the scale."""
    return ScaleEffect(
        scaled=float(scaled.weights.max()),
        unscaled=float(dot.weights.max()),
        largest_change=float(np.abs(dot.weights - scaled.weights).max()),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Departure:
    """How the weights of a trace differ from those of the formula of 2017."""

    difference: float
    """The largest difference of any weight of the row."""
    scale: float | None
    """The trace's own scale, where it is not 1 / sqrt(d_head)."""
    softcap: float | None
    """The trace's own softcap, where it has one."""
    has_bias: bool
    """Whether the trace adds a bias to each score."""


def departure(
    trace: "Trace", layer: int, head: int, query: int, scaled: Step, kind: Kind | None = None
) -> Departure:
    """How the model's weights differ from those of the last way.

    Raises:
        SelectionError: no such layer, head or kind.
    """
    call = trace.attention(layer, kind)
    is_usual = bool(np.isclose(call.scale, call.query.shape[-1] ** -0.5))
    return Departure(
        difference=float(np.abs(trace.weights(layer, head, kind)[query] - scaled.weights).max()),
        scale=None if is_usual else call.scale,
        softcap=call.softcap,
        has_bias=call.bias is not None,
    )


def scoring_variants(
    trace: "Trace", layer: int, head: int, query: int, kind: Kind | None = None, *, other: int, seed: int = 0
) -> tuple[Step, ...]:
    """The five ways for the same query, keys and values, in the order in which they were published.

    - ``fixed``: the mean of all values, whatever the query. It stands in for the last state of a recurrent network,
      the one vector that Sutskever et al. 2014 (arXiv:1409.3215), section 2, and Cho et al. 2014 (arXiv:1406.1078),
      section 2.2, make from a sentence. Masked values are in it too: it was made from the whole sentence.
    - ``additive``: v . tanh(W q + U k), Bahdanau et al. 2015 (arXiv:1409.0473), appendix A.1.2.
    - ``general``: q W k, Luong et al. 2015 (arXiv:1508.04025), equation 8.
    - ``dot``: q . k, the same equation.
    - ``scaled``: q . k / sqrt(d_head), Vaswani et al. 2017 (arXiv:1706.03762), equation 1.

    W, U and v would be learned; here they are random with variance 1 / rows, so that scores are about as large as
    their terms, and the same for the same random seed. W and U map to d_head dimensions.

    Args:
        other: position of the query whose weights are compared.

    Raises:
        SelectionError: no such layer, head or kind.
    """
    call = trace.head(layer, head, kind)
    queries, keys, values = (torch.from_numpy(np.array(of)) for of in (call.query, call.key, call.value))
    seen = np.ones((len(queries), len(keys)), dtype=bool) if call.allowed is None else call.allowed
    allowed = torch.from_numpy(seen[[query, other]])
    pair = queries[[query, other]]
    (n_query, d_head), n_key = queries.shape, len(keys)
    generator = torch.Generator().manual_seed(seed)

    def random(*shape: int) -> Tensor:
        drawn: Tensor = torch.randn(*shape, generator=generator) / shape[0] ** 0.5
        return drawn

    query_weight, key_weight, combined = random(d_head, d_head), random(d_head, d_head), random(d_head)
    products = n_query * n_key * d_head
    scored: dict[StepName, tuple[Tensor | None, int, int]] = {
        "fixed": (None, 0, 0),
        "additive": (
            additive_scores(pair, keys, query_weight, key_weight, combined),
            (2 * d_head + 1) * d_head,
            (n_query + n_key) * d_head**2 + products,
        ),
        "general": (
            multiplicative_scores(pair, keys, query_weight),
            d_head**2,
            n_query * d_head**2 + products,
        ),
        "dot": (multiplicative_scores(pair, keys), 0, products),
        "scaled": (attention_scores(pair, keys, d_head**-0.5), 0, n_query * d_head + products),
    }
    steps = []
    for name, (scores, n_parameters, n_multiplications) in scored.items():
        if scores is None:
            weights = torch.full((2, n_key), 1 / n_key)
        else:
            scores = scores.masked_fill(~allowed, -torch.inf)
            weights = softmax(scores)
        steps.append(
            Step(
                name=name,
                scores=None if scores is None else scores[0].numpy(),
                weights=weights[0].numpy(),
                context=(weights[0] @ values).numpy(),
                other_weights=weights[1].numpy(),
                n_parameters=n_parameters,
                n_multiplications=n_multiplications,
            )
        )
    return tuple(steps)


road = scoring_variants
"""Its old name."""
