"""Facts for the findings of the page Inputs, before they are put into words."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from jaxtyping import Bool, Float

from attnviz.effects.deletion import Deletion
from attnviz.effects.input_attribution import AttributionMethod, InputAttribution
from attnviz.figures.numbers import number_text
from attnviz.maths.ranks import rank_correlations
from ui.words.extremes import places_of_largest

FEWEST_RANKED = 3
"""Fewest tokens whose order is worth comparing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstTokens:
    """The tokens, among those that may be deleted, that the methods using the outcome rank first."""

    n_token: int
    """Tokens that may be deleted."""
    n_method: int
    """Methods that use the outcome."""
    n_left_out: int
    """Integrated gradients that did not converge, and are not counted."""
    n_undecided: int
    """Of ``n_method``, methods without a single first token: several tokens tie, or none has a number."""
    tokens: tuple[int, ...]
    """Positions of the tokens that most methods rank first, alone; several if tied, empty if there is none."""
    n_same: int
    """Methods that rank each of these tokens first."""
    direction: int
    """1 if all tokens together raise the outcome, -1 if they lower it; the first token then does so most. 0 if neither; the
    first token then raises it most."""
    correlation: float | None
    """Mean rank correlation between the orders of any two of these methods; None if there are no two, or too few tokens."""


def first_tokens(attributions: Sequence[InputAttribution], among: Bool[np.ndarray, " token"]) -> FirstTokens:
    """What the methods agree on; integrated gradients' difference, known even without convergence, gives the direction.

    Args:
        among: true for tokens that may be deleted.
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
    places = [places_of_largest(value, number_text) for value in values]
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
    """The methods in whose order deleting tokens changes the outcome most, compared with random orders."""

    best: tuple[AttributionMethod, ...]
    """The methods with the largest comprehensiveness; several if tied, none if all are NaN."""
    better: tuple[AttributionMethod, ...]
    """Methods better than chance."""
    n_method: int
    n_orders: int
    """Number of random orders."""
    n_as_good: int
    """Random orders as good as the best method."""


def best_orders(deletion: Deletion) -> BestOrders:
    """The methods compared by comprehensiveness."""
    areas = np.array([curve.comprehensiveness for curve in deletion.curves], dtype=np.float64)
    places = [place[0] for place in places_of_largest(areas, number_text)]
    return BestOrders(
        best=tuple(deletion.curves[place].method for place in places),
        better=deletion.better,
        n_method=len(deletion.curves),
        n_orders=deletion.chance.n_orders,
        n_as_good=deletion.curves[places[0]].n_as_good if places else deletion.chance.n_orders,
    )
