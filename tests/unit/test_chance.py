"""Figures of a map by chance: its key points permuted, against every order written out by the standard library."""

import itertools
import math

import numpy as np
import pytest
from scipy.spatial.distance import cdist

import attnviz
from attnviz.maps import chance as module
from attnviz.maps.chance import FEWEST_PERMUTATIONS, N_PERMUTATIONS, chance
from attnviz.maps.reliability import reliability
from attnviz.model.model import Model
from attnviz.records import Chance

CAUSAL = np.tri(6, dtype=bool)


def text(
    n_query: int, n_key: int, seed: int = 0, allowed: np.ndarray | None = None, noise: float = 1
) -> tuple:
    """Query points, key points, and scores that follow their distances roughly."""
    random = np.random.default_rng(seed)
    queries, keys = random.normal(size=(n_query, 2)), random.normal(size=(n_key, 2))
    scores = (-cdist(queries, keys) + random.normal(0, noise, (n_query, n_key))).astype(np.float32)
    return queries, keys, scores if allowed is None else np.where(allowed, scores, np.float32(-np.inf))


def figures(queries: np.ndarray, keys: np.ndarray, scores: np.ndarray) -> tuple[float, float, int]:
    """Sums over the queries of Spearman's correlation and of whether the nearest key is strongest, and their number.

    By the sum of squared differences of ranks, for numbers of which none are equal.
    """
    correlations, agreements = [], []
    for query, row in zip(queries, scores, strict=True):
        seen = [at for at, score in enumerate(row) if score > -np.inf]
        if len(seen) < 2:
            continue
        far = {at: math.dist(query, keys[at]) for at in seen}
        n = len(seen)
        by_distance, by_score = sorted(seen, key=far.__getitem__), sorted(seen, key=lambda at: row[at])
        squares = sum((by_distance.index(at) - by_score.index(at)) ** 2 for at in seen)
        correlations.append(1 - 6 * squares / (n**3 - n))
        agreements.append(min(far, key=far.__getitem__) == max(seen, key=lambda at: row[at]))
    return math.fsum(correlations), sum(agreements), len(correlations)


def of_every_order(*texts: tuple) -> Chance:
    """The same by `itertools`, for texts whose keys are all seen by a query that sees two."""
    results = []
    for orders in itertools.product(*(itertools.permutations(range(len(keys))) for _, keys, _ in texts)):
        parts = [figures(q, k[list(order)], s) for (q, k, s), order in zip(texts, orders, strict=True)]
        n_query = sum(part[2] for part in parts)
        results.append((sum(part[0] for part in parts) / n_query, sum(part[1] for part in parts) / n_query))
    (own, own_share), *others = results
    n_best = int(len(results) / 20 + 1e-9)
    low = sorted(correlation for correlation, _ in others)
    high = sorted((share for _, share in others), reverse=True)
    return Chance(
        n_permutations=len(others),
        correlation=low[n_best - 1] if n_best else math.nan,
        correlation_p=sum(correlation <= own + 1e-9 for correlation, _ in results) / len(results),
        nearest=high[n_best - 1] if n_best else math.nan,
        nearest_p=sum(share >= own_share - 1e-9 for _, share in results) / len(results),
    )


def values(by_chance: Chance) -> list[float]:
    return [
        by_chance.n_permutations,
        by_chance.correlation,
        by_chance.correlation_p,
        by_chance.nearest,
        by_chance.nearest_p,
    ]


@pytest.mark.parametrize(
    "texts",
    [
        [text(7, 4)],
        [text(3, 5, seed=1)],
        [text(6, 6, seed=2, allowed=CAUSAL)],
        [text(5, 6, seed=3, allowed=np.random.default_rng(3).random((5, 6)) < 0.7)],
        [text(4, 3, seed=4), text(5, 4, seed=5)],
        [text(3, 3, seed=6), text(4, 4, seed=7, allowed=np.tri(4, dtype=bool))],
    ],
    ids=["all seen", "more keys", "causal", "any mask", "two texts", "one of two masked"],
)
def test_few_keys_take_every_order(texts: list[tuple]) -> None:
    assert values(chance(*texts)) == pytest.approx(values(of_every_order(*texts)), nan_ok=True)


def test_equal_distances_and_scores_have_their_mean_rank() -> None:
    random = np.random.default_rng(0)
    for allowed in (np.ones((6, 5), dtype=bool), CAUSAL[:, :5]):
        queries, keys = (
            random.integers(-1, 2, (6, 1)).astype(float),
            random.integers(-2, 3, (5, 1)).astype(float),
        )
        scores = np.where(allowed, random.integers(0, 3, (6, 5)), -np.inf).astype(np.float32)
        by_chance = chance((queries, keys, scores))
        correlations, shares = [], []
        for order in itertools.permutations(range(5)):
            permuted = reliability(queries, keys[list(order)], scores)
            correlations.append(permuted.order_correlation)
            shares.append(permuted.nearest_agreement)
        assert by_chance.correlation == pytest.approx(
            sorted(correlations[1:])[5]
        )  # 120 orders: 6 are one in twenty
        assert by_chance.nearest == pytest.approx(sorted(shares[1:])[-6])
        assert by_chance.correlation_p == pytest.approx(
            np.mean(np.array(correlations) <= correlations[0] + 1e-9)
        )
        assert by_chance.nearest_p == pytest.approx(np.mean(np.array(shares) >= shares[0] - 1e-9))


@pytest.mark.parametrize("allowed", [None, np.tri(8, dtype=bool)], ids=["all seen", "causal"])
def test_many_keys_take_random_orders(allowed: np.ndarray | None) -> None:
    """999 of 40,320 orders: each p is within four standard errors of the mean of 20 seeds, and of the test's own."""
    sample = text(8, 8, seed=8, allowed=allowed, noise=6)
    by_chance = chance(sample)
    assert by_chance.n_permutations == N_PERMUTATIONS == 999
    more = [chance(sample, seed=seed) for seed in range(1, 21)]
    for name in ("correlation_p", "nearest_p"):
        exact = np.mean([getattr(each, name) for each in more])
        assert 0.01 < exact < 0.9
        assert getattr(by_chance, name) == pytest.approx(exact, abs=4 * np.sqrt(exact * (1 - exact) / 999))
    drawn = np.random.default_rng(5)
    queries, keys, scores = sample
    own = figures(*sample)
    shuffled = [figures(queries, keys[drawn.permutation(8)], scores) for _ in range(1000)]
    by_hand = np.mean([each[0] <= own[0] + 1e-9 for each in shuffled])
    assert by_chance.correlation_p == pytest.approx(
        by_hand, abs=4 * np.sqrt(2 * by_hand * (1 - by_hand) / 999)
    )
    limit = np.quantile([each[0] / own[2] for each in shuffled], 0.05)
    assert by_chance.correlation == pytest.approx(limit, abs=0.05)


def test_a_perfect_map_has_the_smallest_p_value() -> None:
    random = np.random.default_rng(0)
    queries, keys = random.normal(size=(2, 12, 2))
    by_chance = chance((queries, keys, -cdist(queries, keys).astype(np.float32)))
    assert (by_chance.correlation_p, by_chance.nearest_p) == (0.001, 0.001)
    reverse = chance((queries, keys, cdist(queries, keys).astype(np.float32)))
    assert reverse.correlation_p == 1


def test_the_same_seed_gives_the_same_and_another_another() -> None:
    sample = text(9, 9, seed=9)
    assert values(chance(sample)) == values(chance(sample))
    assert values(chance(sample)) != values(chance(sample, seed=1))


def test_a_limit_is_passed_exactly_where_p_is_at_most_one_in_twenty() -> None:
    both = set()
    for seed in range(60):
        sample = text(6, 7, seed=seed, noise=3)
        by_chance, own = chance(sample), reliability(*sample)
        assert (by_chance.correlation_p <= 0.05) == (own.order_correlation < by_chance.correlation - 1e-9)
        assert (by_chance.nearest_p <= 0.05) == (own.nearest_agreement > by_chance.nearest + 1e-9)
        both.add((by_chance.correlation_p <= 0.05, by_chance.nearest_p <= 0.05))
    assert len(both) == 4


def test_keys_that_no_judged_query_sees_are_left_out() -> None:
    queries, keys, scores = text(5, 5, seed=10)
    hidden = scores.copy()
    hidden[:, 4] = -np.inf
    assert values(chance((queries, keys, hidden))) == values(chance((queries, keys[:4], scores[:, :4])))
    hidden[4] = -np.inf
    hidden[4, 4] = 1  # a query that sees one key alone is not judged
    assert values(chance((queries, keys, hidden))) == values(chance((queries[:4], keys[:4], scores[:4, :4])))


def test_where_no_query_sees_two_keys_there_is_none() -> None:
    by_chance = chance((np.zeros((2, 2)), np.zeros((3, 2)), np.full((2, 3), -np.inf, dtype=np.float32)))
    assert by_chance.n_permutations == 0
    assert np.isnan(values(by_chance)[1:]).all()


def test_of_three_keys_no_map_is_better_than_chance() -> None:
    by_chance = chance(text(5, 3))
    assert by_chance.n_permutations == 5
    assert np.isnan([by_chance.correlation, by_chance.nearest]).all()
    assert min(by_chance.correlation_p, by_chance.nearest_p) >= 1 / 6


def test_long_texts_with_masked_keys_take_fewer_permutations(monkeypatch: pytest.MonkeyPatch) -> None:
    allowed = np.tri(40, dtype=bool)
    masked, whole = text(40, 40, allowed=allowed), text(40, 40)
    assert chance(masked).n_permutations == N_PERMUTATIONS
    monkeypatch.setattr(
        module, "_MOST_CELLS", 500 * 39 * 40
    )  # the first query sees one key and is not judged
    assert chance(masked).n_permutations == 500
    monkeypatch.setattr(module, "_MOST_CELLS", 1)
    assert chance(masked).n_permutations == FEWEST_PERMUTATIONS == 199
    assert chance(whole).n_permutations == N_PERMUTATIONS


def test_batches_do_not_change_a_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    sample = text(9, 9, allowed=np.tri(9, dtype=bool))
    before = values(chance(sample))
    monkeypatch.setattr(module, "_CELLS_AT_ONCE", 1)
    assert values(chance(sample)) == pytest.approx(before)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["I was watching the door when it opened.", "gpt2"])
def test_one_map_in_twenty_of_shuffled_keys_passes(name: str, embedded: Model, tiny_model) -> None:
    """Maps of the model whose key points are shuffled: at most 5% of them have a p value of 0.05 or less."""
    trace = tiny_model("gpt2").trace("a door sat") if name == "gpt2" else embedded.trace(name)
    map_ = attnviz.project(trace, 1, 1, method="pca")
    n, random = len(trace.tokens), np.random.default_rng(0)
    queries, keys, scores = map_.points[:n], map_.points[n:], trace.scores(1, 1)
    results = [chance((queries, keys[random.permutation(n)], scores)) for _ in range(300)]
    for p in ([result.correlation_p for result in results], [result.nearest_p for result in results]):
        assert np.mean(np.array(p) <= 0.05) <= 0.09  # three standard errors of 300 draws above 0.05
    assert np.mean([result.correlation_p <= 0.05 for result in results]) > 0.01


def test_it_tells_more_maps_from_chance_than_a_bound_for_all_of_them(door_trace) -> None:
    """The bound of any order of n keys, 1.73 / sqrt(n - 1), took maps for chance that are not."""
    maps = [attnviz.project(door_trace, 3, head, method="pca", space="raw") for head in range(12)]
    too_strict = [
        map_
        for map_ in maps
        if map_.in_map.order_correlation >= -1.73 / np.sqrt(10) and map_.chance.correlation_p <= 0.05
    ]
    assert too_strict
