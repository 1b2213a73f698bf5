"""What the numbers of the page Inputs say, before it is put into words."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from jaxtyping import Bool, Float

from attnviz.effects.deletion import Deletion
from attnviz.effects.input_attribution import AttributionMethod, InputAttribution
from attnviz.maths.ranks import rank_correlations
from ui.words.extremes import places_of_largest

FEWEST_RANKED = 3
"""Tokens that have an order worth comparing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstTokens:
    """Which tokens the methods that use the outcome put first, of those that may be taken away."""

    n_token: int
    """Tokens that may be taken away."""
    n_method: int
    """Methods that use the outcome."""
    n_left_out: int
    """Integrated gradients that did not converge: their numbers are not counted."""
    n_undecided: int
    """Of these, methods that put no token first alone: their largest number is that of several tokens, or of none."""
    tokens: tuple[int, ...]
    """Positions of the tokens that most methods put first, alone; several where as many name each, empty where none is named."""
    n_same: int
    """Methods that put each of these tokens first."""
    direction: int
    """1 where all tokens together raise the outcome, -1 where they lower it, and the first token does so most; 0 where they do
    neither, and the first token raises it most."""
    correlation: float | None
    """Mean rank correlation of the orders of any two of these methods; None where there are no two, or too few tokens."""


def first_tokens(attributions: Sequence[InputAttribution], among: Bool[np.ndarray, " token"]) -> FirstTokens:
    """What the methods agree on; the outcome's direction is that of integrated gradients' difference, which is known whether or not they converge.

    Args:
        among: true for tokens that may be taken away.
    """
    positions = np.flatnonzero(among)
    whole = next(
        (attribution.integral.difference for attribution in attributions if attribution.integral is not None),
        0.0,
    )
    direction = int(np.nan_to_num(np.sign(whole)))
    left_out = [
        attribution
        for attribution in attributions
        if attribution.integral is not None and not attribution.integral.converged
    ]
    counted = [
        attribution for attribution in attributions if attribution.has_sign and attribution not in left_out
    ]
    values = [attribution.values[positions].astype(np.float64) * (direction or 1) for attribution in counted]
    places = [places_of_largest(value) for value in values]
    named = [int(positions[place[0]]) for place in places if len(place) == 1]
    n_same = max((named.count(token) for token in named), default=0)
    return FirstTokens(
        n_token=len(positions),
        n_method=len(values),
        n_left_out=len(left_out),
        n_undecided=len(values) - len(named),
        tokens=tuple(token for token in sorted(set(named)) if named.count(token) == n_same),
        n_same=n_same,
        direction=direction,
        correlation=_mean_correlation(values),
    )


def _mean_correlation(values: Sequence[Float[np.ndarray, " token"]]) -> float | None:
    ordered = [value for value in values if np.isfinite(value).all() and len(np.unique(value)) > 1]
    if len(ordered) < 2 or len(ordered[0]) < FEWEST_RANKED:
        return None
    pairs = list(combinations(ordered, 2))
    left, other = (np.stack([pair[side] for pair in pairs]) for side in (0, 1))
    return float(rank_correlations(left, other, np.ones(left.shape, dtype=bool)).mean())


@dataclass(frozen=True, slots=True, kw_only=True)
class BestOrders:
    """Which methods order the tokens so that taking them away changes the outcome most, beside random orders."""

    best: tuple[AttributionMethod, ...]
    """The methods with the largest comprehensiveness; several where it is equal, none where none is a number."""
    better: tuple[AttributionMethod, ...]
    """The methods that are better than chance."""
    n_method: int
    n_orders: int
    """Random orders."""
    n_as_good: int
    """Random orders that are as good as the best method."""


def best_orders(deletion: Deletion) -> BestOrders:
    """The methods compared by comprehensiveness."""
    areas = np.array([curve.comprehensiveness for curve in deletion.curves], dtype=np.float64)
    places = [place[0] for place in places_of_largest(areas)]
    return BestOrders(
        best=tuple(deletion.curves[place].method for place in places),
        better=deletion.better,
        n_method=len(deletion.curves),
        n_orders=deletion.chance.n_orders,
        n_as_good=deletion.curves[places[0]].n_as_good if places else deletion.chance.n_orders,
    )
