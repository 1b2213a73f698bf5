"""How the figures of a map compare with those of maps that place the keys at random.

numpy and scipy only.

The key points of a map are permuted among the keys, and both figures of `attnviz.maps.reliability` are computed anew.
The scores, the mask and all points stay as they are; only which point belongs to which key is drawn. In the matrix of
distances [query, key] columns change places as wholes, so queries that order the keys alike stay alike.

Source: Mantel 1967, "The Detection of Disease Clustering and a Generalized Regression Approach" (Cancer Research
27:209), whose test permutes the objects of a distance matrix and not its cells; Dietz 1983, "Permutation Tests for
Association Between Two Distance Matrices" (Systematic Zoology 32:21), with ranks.
"""

from collections.abc import Iterator, Sequence
from itertools import permutations, product
from math import factorial, prod

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.spatial.distance import cdist

from attnviz.arguments import typed
from attnviz.maths.ranks import unit_ranks
from attnviz.records import Chance

LEVEL = 0.05
"""Largest p value of a figure that counts as better than chance: by convention (Fisher 1925) one in twenty.

Each figure is tested by itself, so a map that places its keys at random passes one of the two in at most one case of ten.
"""
N_PERMUTATIONS = 999
"""Random permutations. With 999, a p value of 0.05 has a standard error of 0.007, and `LEVEL` * (1 + 999) is a whole number."""
FEWEST_PERMUTATIONS = 199
"""Fewest permutations, for long texts with masked keys; a p value of 0.05 then has a standard error of 0.015."""
SEED = 0
"""Random seed of the permutations, so that the same map always has the same p values."""
_MOST_CELLS = 5_000_000
"""Most cells that are ranked anew where keys are masked; above about 70 tokens of a causal model, permutations become fewer."""
_CELLS_AT_ONCE = 250_000
_ROUNDING = 1e-9
"""Figures that differ by less count as equal: they are sums of at most 10,000 float64 numbers of at most 1, in any order."""


@typed
def chance(
    *texts: tuple[
        Float[np.ndarray, "_query axis"], Float[np.ndarray, "_key axis"], Float[np.ndarray, "_query _key"]
    ],
    seed: int = SEED,
) -> Chance:
    """The figures of a map whose key points are permuted, and how often they are as good as the map's own.

    Keys that no judged query sees are left out; a query is judged as in `attnviz.maps.reliability.reliability`. Where the
    keys can be ordered in no more than 1 + `N_PERMUTATIONS` ways, every other order is taken once.

    Args:
        texts: query points, key points and scores of each text on the map, the scores minus infinity where a query
            may not see a key; keys are permuted within their text.
        seed: random seed of the permutations.

    Source: p = (1 + count) / (1 + permutations), Phipson and Smyth 2010, "Permutation P-values Should Never Be Zero"
    (Statistical Applications in Genetics and Molecular Biology 9:39).
    """
    judged = [judged_text for text in texts if (judged_text := _judged(*text)) is not None]
    n_query = sum(len(scores) for _, scores, _ in judged)
    if not n_query:
        nan = float("nan")
        return Chance(n_permutations=0, correlation=nan, correlation_p=nan, nearest=nan, nearest_p=nan)
    ranked_anew = sum(seen.size for _, _, seen in judged if not seen.all())
    n_random = N_PERMUTATIONS
    if ranked_anew * N_PERMUTATIONS > _MOST_CELLS:
        n_random = max(FEWEST_PERMUTATIONS, _MOST_CELLS // ranked_anew)
    orders = _orders([seen.shape[1] for _, _, seen in judged], n_random, np.random.default_rng(seed))
    sums = [
        _all_seen(distances, scores, here) if seen.all() else _masked(distances, scores, seen, here)
        for (distances, scores, seen), here in zip(judged, orders, strict=True)
    ]
    correlations, shares = np.sum(sums, axis=0) / n_query
    limit, p = _lowest(correlations)
    share_limit, share_p = _lowest(-shares)
    return Chance(
        n_permutations=len(correlations) - 1,
        correlation=limit,
        correlation_p=p,
        nearest=-share_limit,
        nearest_p=share_p,
    )


def _lowest(figures: Float[np.ndarray, " order"]) -> tuple[float, float]:
    """The threshold that the first figure must fall below for a p value of at most `LEVEL`, and its own p value.

    At most a share `LEVEL` of the other figures is below the threshold, which is NaN if they are too few.
    """
    own, others = figures[0], np.sort(figures[1:])
    p = (1 + int((others <= own + _ROUNDING).sum())) / (1 + len(others))
    n_below = int(LEVEL * (1 + len(others)) + _ROUNDING)
    return float(others[n_below - 1]) if n_below else float("nan"), p


def _judged(
    queries: np.ndarray, keys: np.ndarray, scores: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    """Distances, scores and visible cells, of the queries that see two keys and the keys that any of these sees."""
    seen = np.isfinite(scores)
    rows = seen.sum(axis=1) >= 2
    columns = seen[rows].any(axis=0)
    if not rows.any():
        return None
    cells = np.ix_(rows, columns)
    return cdist(queries[rows], keys[columns]), scores[cells], seen[cells]


def _orders(
    n_keys: Sequence[int], n_random: int, rng: np.random.Generator
) -> Iterator[Int[np.ndarray, "order _key"]]:
    """For each text, the point of each key in each order; the first order is the map's own."""
    if prod(map(factorial, n_keys)) <= 1 + n_random:
        every = product(*(permutations(range(n_key)) for n_key in n_keys))
        yield from map(np.array, zip(*every, strict=True))
        return
    for n_key in n_keys:
        own = np.arange(n_key)[None]
        yield np.concatenate([own, rng.permuted(own.repeat(n_random, axis=0), axis=1)])


def _all_seen(
    distances: Float[np.ndarray, "query key"],
    scores: Float[np.ndarray, "query key"],
    orders: Int[np.ndarray, "order key"],
) -> Float[np.ndarray, "figure order"]:
    """Sum over the queries of the correlation, and of the nearest key's agreement, where every query sees every key.

    Ranks then go with their points, so one product holds what each key contributes with each point.
    """
    seen = np.ones(scores.shape, dtype=bool)
    nearest = distances == distances.min(axis=1, keepdims=True)
    strongest = (scores == scores.max(axis=1, keepdims=True)).astype(np.float64)
    correlation = unit_ranks(scores, seen).T @ unit_ranks(distances, seen)  # [key, point]
    agreement = strongest.T @ (nearest / nearest.sum(axis=1, keepdims=True))
    keys = np.arange(scores.shape[1])
    return np.stack([sums[keys, orders].sum(axis=1) for sums in (correlation, agreement)])


def _masked(
    distances: Float[np.ndarray, "query key"],
    scores: Float[np.ndarray, "query key"],
    seen: Bool[np.ndarray, "query key"],
    orders: Int[np.ndarray, "order key"],
) -> Float[np.ndarray, "figure order"]:
    """The same where queries see different keys: the distances that a query sees are ranked anew in each order.

    Points are sorted by distance once for each query. The rank of a point is then the number of points up to it whose
    keys are seen.
    """
    n_query, n_key = seen.shape
    by_distance = distances.argsort(axis=1, kind="stable")
    first, last = _tied(np.take_along_axis(distances, by_distance, axis=1))
    has_ties = bool((first != last).any())
    unit = unit_ranks(scores, seen).ravel()
    strongest = (seen & (scores == np.where(seen, scores, -np.inf).max(axis=1, keepdims=True))).ravel()
    n_seen = seen.sum(axis=1)
    row = np.arange(n_query)[:, None] * n_key
    masked_scores = []
    for some in _batches(orders, seen.size):
        of_point = np.argsort(some, axis=1)  # the key of each point
        cell = row + of_point[:, by_distance]  # [order, query, place]
        is_seen = seen.ravel()[cell]
        ranks = is_seen.cumsum(axis=2, dtype=np.float64)
        if has_ties:  # at their mean rank
            before, up_to = (ranks - is_seen)[:, row // n_key, first], ranks[:, row // n_key, last]
            ranks = (before + 1 + up_to) / 2
            squares = (ranks**2 * is_seen).sum(axis=2) - n_seen * ((n_seen + 1) / 2) ** 2
            lowest = np.where(is_seen, ranks, np.inf).min(axis=2, keepdims=True)
            is_nearest = is_seen & (ranks == lowest)
            agreements = (is_nearest & strongest[cell]).sum(axis=2) / is_nearest.sum(axis=2)
        else:
            squares = np.broadcast_to((n_seen**3 - n_seen) / 12, cell.shape[:2])
            nearest = is_seen.argmax(axis=2)
            agreements = strongest[np.take_along_axis(cell, nearest[..., None], axis=2)[..., 0]]
        # Unit ranks sum to 0 and are 0 where nothing is seen, so that the other ranks need not be centred.
        products = np.einsum("oqp,oqp->oq", unit[cell], ranks)
        correlations = np.where(squares > _ROUNDING, products / np.sqrt(squares.clip(min=_ROUNDING)), 0)
        masked_scores.append(np.stack([correlations.sum(axis=1), agreements.sum(axis=1)]))
    return np.concatenate(masked_scores, axis=1)


def _tied(
    ascending: Float[np.ndarray, "query place"],
) -> tuple[Int[np.ndarray, "query place"], Int[np.ndarray, "query place"]]:
    """For each place, the first and the last place with an equal number."""
    place = np.arange(ascending.shape[1])
    is_first = np.diff(ascending, axis=1, prepend=-np.inf) > 0
    is_last = np.concatenate([is_first[:, 1:], np.ones((len(ascending), 1), dtype=bool)], axis=1)
    first = np.maximum.accumulate(np.where(is_first, place, 0), axis=1)
    last = np.minimum.accumulate(np.where(is_last, place, len(place))[:, ::-1], axis=1)[:, ::-1]
    return first, last


def _batches(orders: np.ndarray, n_cell: int) -> Iterator[np.ndarray]:
    """The orders in batches that keep arrays small, of at least one order."""
    size = max(1, _CELLS_AT_ONCE // n_cell)
    return (orders[start : start + size] for start in range(0, len(orders), size))
