"""Which attribution is right for a text? Tokens are removed in the order of each, and in random orders.

Random orders do not depend on the methods, so that they can run separately, in parts.

Source: DeYoung et al. 2020, "ERASER: A Benchmark to Evaluate Rationalized NLP Models" (arXiv:1911.03429), section 4.2; the
areas as in their code (jayded/eraserbenchmark, ``rationale_benchmark/metrics.py``): every bin counts once, whatever its size.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Bool, Float, Int

from attnviz.arguments import typed
from attnviz.effects.attribution_methods import METHODS, AttributionMethod, titled
from attnviz.effects.input_attribution import InputAttribution
from attnviz.effects.outcome import Outcome
from attnviz.effects.token_embeddings import Baseline, removable
from attnviz.effects.token_removal import TokenRemoval, outcomes_without
from attnviz.errors import SelectionError, ShapeError
from attnviz.maths.significance import holm, p_value
from attnviz.records import Progress, Record, Result
from attnviz.records.table import Table

if TYPE_CHECKING:
    from attnviz.model.model import Model
    from attnviz.model.trace import Trace

BINS = (0.01, 0.05, 0.1, 0.2, 0.5)
"""Shares of the tokens that are a rationale. DeYoung et al. 2020 (arXiv:1911.03429), section 4.2."""

MOST_POINTS = 10
"""Even steps of a curve; in a longer text each step removes several tokens."""

LEVEL = 0.05
"""Probability that any method is called better than random if the orders of all methods are random."""

N_ORDERS = round(len(METHODS) / LEVEL) - 1
"""Fewest random orders whose least p-value, 1 / (N + 1), is at most `LEVEL` / m, so that one of all m methods can be better than
chance. The test keeps `LEVEL` with any number of orders."""

PERCENTILES = (5.0, 95.0)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DeletionCurve(Record):
    """The outcome as tokens are removed in one method's order, most important first."""

    method: AttributionMethod
    order: Int[np.ndarray, " step"]
    """Positions of the tokens, most important first; special tokens and masks are kept and not among them."""
    removed: Float[np.ndarray, " point"]
    """The outcome without the first tokens of the order, from none to all."""
    kept: Float[np.ndarray, " point"]
    """The outcome with the first tokens alone, from none to all."""
    comprehensiveness: float
    """Mean over the bins of direction x (outcome of the text - outcome without the first tokens): large if the outcome
    depends on the first tokens. Equation 1 and the area over its curve."""
    sufficiency: float
    """Mean over the bins of direction x (outcome of the text - outcome with the first tokens alone): small if these give
    the outcome by themselves. Equation 2 and the area over its curve."""
    n_as_good: int
    """Random orders whose comprehensiveness is at least that of this order."""
    converged: bool = True
    """False for the order of integrated gradients that did not converge: what the curve judges is not the method."""

    @property
    def title(self) -> str:
        """The method's name, with what is against it."""
        return titled(METHODS[self.method].title, self.converged)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ChanceBand(Record):
    """Where 90% of random orders are: the 5th and 95th percentiles, [2, point] and pairs."""

    n_orders: int
    seed: int
    counts: Int[np.ndarray, " point"]
    """Tokens that are removed or kept at each point: those of the bins, and the ends."""
    removed: Float[np.ndarray, "2 point"]
    kept: Float[np.ndarray, "2 point"]
    comprehensiveness: tuple[float, float]
    sufficiency: tuple[float, float]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RandomOrders(Record):
    """The outcome as tokens are removed in random orders, or part of these, with which methods are compared."""

    removal: TokenRemoval
    baseline: Baseline | None
    seed: int
    bins: Int[np.ndarray, " bin"]
    """Tokens of each bin. In a short text several bins have equally many, and each of them counts."""
    counts: Int[np.ndarray, " point"]
    """Tokens that are removed at each point: none, all, the count k of each bin, and all but k."""
    orders: Int[np.ndarray, "order step"]
    """Positions of the tokens that may be removed, in each order."""
    removed: Float[np.ndarray, "order point"]
    """The outcome without the first tokens of each order."""

    def joined(self, other: "RandomOrders") -> "RandomOrders":
        """These orders joined with others of the same text, outcome and seed."""
        return replace(
            self,
            orders=np.concatenate([self.orders, other.orders]),
            removed=np.concatenate([self.removed, other.removed]),
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Deletion(Result):
    """The deletion curves of several methods, and those of chance."""

    removal: TokenRemoval
    base: float
    """The outcome of the text."""
    end: float
    """The outcome when all removable tokens are removed."""
    counts: Int[np.ndarray, " point"]
    """Tokens that are removed or kept at each point, from 0 to all that may be removed."""
    bins: Int[np.ndarray, " bin"]
    """Tokens of each bin. In a short text several bins have equally many, and each of them counts."""
    curves: tuple[DeletionCurve, ...]
    chance: ChanceBand

    def _table(self) -> Table:
        """A row for each point of each curve."""
        rows = [
            [titled(curve.method, curve.converged), count, removed, kept]
            for curve in self.curves
            for count, removed, kept in zip(self.counts, curve.removed, curve.kept, strict=True)
        ]
        return ["method", "tokens", "outcome without them", "outcome with them alone"], rows

    @property
    def direction(self) -> int:
        """1 where the text's outcome is at least that without tokens, otherwise -1, as for the change of a state.

        With this sign, a large comprehensiveness and a small sufficiency are good for every outcome.
        """
        return 1 if self.base >= self.end else -1

    @property
    def better(self) -> tuple[AttributionMethod, ...]:
        """The methods whose orders are better than random ones by comprehensiveness.

        The p-value of a method is the share of the random orders, its own among them, that are at least as good. All methods
        are tested together: if their orders were random too, any of them would pass in at most `LEVEL` of texts
        (`attnviz.maths.significance.holm`).
        """
        p_values = [p_value(curve.n_as_good, self.chance.n_orders) for curve in self.curves]
        return tuple(
            curve.method for curve, passes in zip(self.curves, holm(p_values, LEVEL), strict=True) if passes
        )


@typed
def deletion_curves(
    model: "Model",
    trace: "Trace",
    outcome: Outcome,
    attributions: Sequence[InputAttribution],
    chance: RandomOrders,
    *,
    most_points: int = MOST_POINTS,
    progress: Progress | None = None,
) -> Deletion:
    """The outcome as tokens are removed in the order of each attribution, as in random orders.

    Args:
        trace: of the text without interventions.
        attributions: as `attnviz.effects.input_attribution.attribute_inputs` gives them, for the same text and outcome.
        chance: as `random_orders` gives it for the same text and outcome; it determines how tokens are removed.
        most_points: steps of a curve; bins add their own.
        progress: called with the share that is done, 0 to 1.

    Raises:
        As `random_orders`.
        ShapeError: the random orders are of a text with another number of words.
    """
    among, of_bins = removable(model, trace.tokens), chance.bins
    n_token = int(among.sum())
    if n_token != chance.counts[-1]:
        raise ShapeError(
            f"A text of {n_token} tokens that may be taken away was to be compared with random orders of {chance.counts[-1]}. Make the "
            "random orders of the same text."
        )
    base, end = chance.removed[0, 0], chance.removed[0, -1]
    direction = 1 if base >= end else -1
    orders = [attribution.order(among, direction) for attribution in attributions]
    counts = _counts(n_token, most_points, of_bins)
    sets = [_first(order, counts, among) for order in orders]
    sets += [among & ~removed_tokens for removed_tokens in sets]  # the first tokens alone

    # Every set of tokens is run once, whichever orders share it: two batches differ by rounding, which could make a method
    # better than a random order with the same sets.
    drawn = np.concatenate([_first(order, chance.counts, among) for order in chance.orders])
    distinct, first, place = np.unique(
        np.concatenate([drawn, *sets]), axis=0, return_index=True, return_inverse=True
    )
    is_known = first < len(drawn)
    numbers = np.zeros(len(distinct), dtype=np.float32)
    numbers[is_known] = chance.removed.reshape(-1)[first[is_known]]
    numbers[~is_known] = outcomes_without(
        model,
        trace,
        outcome,
        distinct[~is_known],
        chance.removal,
        baseline=chance.baseline,
        progress=progress,
    )
    outcomes = numbers[place.reshape(-1)]
    removed_by_chance = outcomes[: len(drawn)].reshape(chance.removed.shape)
    removed, kept = np.split(outcomes[len(drawn) :].reshape(len(sets), len(counts)), 2)

    def areas(
        curves: Float[np.ndarray, "order point"], counts: Int[np.ndarray, " point"]
    ) -> Float[np.ndarray, " order"]:
        drops = direction * (base - curves[:, np.searchsorted(counts, of_bins)])
        return np.asarray(drops.mean(axis=1))

    # removing the first k keeps the last n - k, which are the first n - k of the reversed order, as random as any
    kept_by_chance = removed_by_chance[:, ::-1]
    by_chance = areas(removed_by_chance, chance.counts)
    comprehensiveness, sufficiency = areas(removed, counts), areas(kept, counts)
    return Deletion(
        removal=chance.removal,
        base=float(base),
        end=float(end),
        counts=counts,
        bins=of_bins,
        curves=tuple(
            DeletionCurve(
                method=curve.method,
                order=orders[number],
                removed=removed[number].copy(),
                kept=kept[number].copy(),
                comprehensiveness=float(comprehensiveness[number]),
                sufficiency=float(sufficiency[number]),
                n_as_good=int((~(by_chance < comprehensiveness[number])).sum()),  # NaN is no better than any
                converged=curve.converged,
            )
            for number, curve in enumerate(attributions)
        ),
        chance=ChanceBand(
            n_orders=len(chance.removed),
            seed=chance.seed,
            counts=chance.counts,
            removed=_band(removed_by_chance),
            kept=_band(kept_by_chance),
            comprehensiveness=_pair(by_chance),
            sufficiency=_pair(areas(kept_by_chance, chance.counts)),
        ),
    )


@typed
def random_orders(
    model: "Model",
    trace: "Trace",
    outcome: Outcome,
    *,
    removal: TokenRemoval = "token_replaced",
    baseline: Baseline | None = None,
    bins: Sequence[float] = BINS,
    n_orders: int = N_ORDERS,
    seed: int = 0,
    part: tuple[int, int] = (0, 1),
    progress: Progress | None = None,
) -> RandomOrders:
    """The outcome as tokens are removed in random orders, at the points of the areas of `deletion_curves`.

    Tokens are replaced, not masked as keys, so that the last point is the baseline of integrated gradients and nothing is
    left of a removed token. With all keys masked the bundled model's similarity of 0.78 falls only to 0.48, since the
    mean over all tokens still reads their own states. Leave-one-out with the same removal has an advantage here:
    its first step is the best one by definition.

    Equal sets of tokens run once, and orders share their short beginnings and ends: on the bundled model a sentence of 11 words takes
    2.4 s of processor time, one of 34 words 13 s.

    Args:
        trace: of the text without interventions.
        baseline: what replaces a token; None for the model's own.
        bins: shares of the tokens, rounded up to whole tokens.
        n_orders: random orders of all parts together.
        part: index of a part, from 0, and the number of parts; join parts with `RandomOrders.joined`.
        progress: called with the share that is done, 0 to 1.

    Raises:
        As `attnviz.effects.token_removal.outcomes_without`.
        SelectionError: the text has only special and mask tokens.
    """
    among = removable(model, trace.tokens)
    n_token = int(among.sum())
    if not n_token:
        raise SelectionError(
            "Deletion curves were asked for; the text has special tokens and masks alone, which are kept. Give a text with a word."
        )
    of_bins = _of_bins(n_token, bins)
    counts = _counts(n_token, 1, of_bins)
    random = np.random.default_rng(seed)
    number, n_part = part
    drawn = [random.permutation(np.flatnonzero(among)) for _ in range(n_orders)]
    orders = drawn[number::n_part]
    sets = [_first(order, counts, among) for order in orders]
    outcomes = outcomes_without(
        model, trace, outcome, np.concatenate(sets), removal, baseline=baseline, progress=progress
    )
    return RandomOrders(
        removal=removal,
        baseline=baseline,
        seed=seed,
        bins=of_bins,
        counts=counts,
        orders=np.stack(orders),
        removed=outcomes.reshape(len(sets), len(counts)),
    )


def _of_bins(n_token: int, bins: Sequence[float]) -> Int[np.ndarray, " bin"]:
    """Tokens of each bin, at least one; products are rounded to 9 digits, or 0.07 of 100 tokens would be 8."""
    return np.array([min(n_token, max(1, ceil(round(share * n_token, 9)))) for share in bins])


def _counts(n_token: int, most_points: int, bins: Int[np.ndarray, " bin"]) -> Int[np.ndarray, " point"]:
    """Numbers of tokens from 0 to all, including those of the bins; with each k also n - k."""
    even = np.rint(np.linspace(0, n_token, min(n_token, most_points) + 1)).astype(np.int64)
    asked = np.concatenate([even, bins])
    return np.unique(np.concatenate([asked, n_token - asked]))


def _first(
    order: Int[np.ndarray, " step"], counts: Int[np.ndarray, " point"], among: Bool[np.ndarray, " token"]
) -> Bool[np.ndarray, "point token"]:
    """True for the first tokens of an order, as many as each count."""
    rank = np.full(len(among), len(among))
    rank[order] = np.arange(len(order))
    return np.asarray(rank < counts[:, None])


def _band(curves: Float[np.ndarray, "order point"]) -> Float[np.ndarray, "2 point"]:
    return np.asarray(np.percentile(curves, PERCENTILES, axis=0), dtype=np.float32)


def _pair(areas: Float[np.ndarray, " order"]) -> tuple[float, float]:
    low, high = np.percentile(areas, PERCENTILES)
    return float(low), float(high)
