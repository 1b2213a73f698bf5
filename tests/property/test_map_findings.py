"""Findings of the pages of maps: whatever the points, ties and masked keys, each claim is what a count by cells gives."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from attnviz.maps.chance import chance
from attnviz.maps.collection import Collection, sentences
from attnviz.maps.joint_map import joint_map
from attnviz.maps.ranking import MapChoice, RatedMap, best_first
from attnviz.maps.reliability import reliability
from attnviz.records import Head, Projection
from tests import hand_made, small_records
from ui.rooms.door_experiment.near import near
from ui.rooms.door_experiment.variation import strongest_heads
from ui.rooms.explore.other_maps.trusted import map_facts
from ui.rooms.many_texts.joint_map.drawn_map import N_LINES, links, note
from ui.rooms.many_texts.joint_map.laid_out import Screen
from ui.words.reliability import reading_of

pytestmark = pytest.mark.slow

settings.register_profile("attnviz", deadline=None, derandomize=True, max_examples=60)
settings.load_profile("attnviz")

N_QUERY, N_KEY = 4, 5
"""120 orders of the keys: few enough to go through all of them in a test."""
whole = st.integers(-2, 2).map(float)
"""Few numbers, so that many are equal."""
allowed = arrays.arrays(bool, (N_QUERY, N_KEY), elements=st.integers(0, 3).map(bool))


def points(n_point: int) -> st.SearchStrategy[np.ndarray]:
    return arrays.arrays(np.float32, (n_point, 2), elements=st.one_of(whole, st.floats(-2, 2, width=16)))


def numbers(*shape: int) -> st.SearchStrategy[np.ndarray]:
    return arrays.arrays(np.float32, shape, elements=st.one_of(whole, st.floats(-2, 2, width=16)))


def rows_of(
    queries: np.ndarray, keys: np.ndarray, scores: np.ndarray
) -> list[tuple[list[float], list[float]]]:
    """Distances and scores of each query that sees two keys."""
    rows = []
    for query, row in zip(queries.astype(float), scores, strict=True):
        seen = [at for at, score in enumerate(row) if score > -np.inf]
        if len(seen) >= 2:
            far = [math.dist(query, keys[at].astype(float)) for at in seen]
            rows.append((far, [float(row[at]) for at in seen]))
    return rows


def correlation(far: list[float], scores: list[float]) -> float:
    """Spearman's: how many numbers are smaller, and half of those that are equal, is a rank."""
    middle = (len(far) + 1) / 2
    first, other = (
        [sum(a < b for a in each) + (each.count(b) + 1) / 2 - middle for b in each] for each in (far, scores)
    )
    size = math.sqrt(sum(a * a for a in first) * sum(b * b for b in other))
    return sum(a * b for a, b in zip(first, other, strict=True)) / size if size else 0.0


def agreement(far: list[float], scores: list[float]) -> float:
    near = [score for distance, score in zip(far, scores, strict=True) if distance == min(far)]
    return sum(score == max(scores) for score in near) / len(near)


def mean(numbers: list[float]) -> float:
    return math.fsum(numbers) / len(numbers)


def map_of(queries: np.ndarray, keys: np.ndarray, scores: np.ndarray, **changes: object) -> Projection:
    n_query, n_key = scores.shape
    return small_records.projection(
        n_query + n_key,
        points=np.concatenate([queries, keys]),
        role=("query",) * n_query + ("key",) * n_key,
        position=np.array([*range(n_query), *range(n_key)]),
        query_tokens=small_records.tokens(n_query),
        key_tokens=small_records.tokens(n_key),
        weights=np.full((n_query, n_key), 1 / n_key, dtype=np.float32),
        in_map=reliability(queries, keys, scores),
        chance=chance((queries, keys, scores)),
        **changes,
    )


@given(points(N_QUERY), points(N_KEY), numbers(N_QUERY, N_KEY), allowed, st.booleans())
def test_the_verdict_on_a_map(queries, keys, scores, allowed, follows) -> None:
    """Each claim of `reliability.map_facts` and `judge`, by all orders of the keys that a judged query sees."""
    if follows:  # so that good maps are among them
        far = np.linalg.norm(queries[:, None].astype(float) - keys[None], axis=2)
        scores = (-far + 0.3 * scores).astype(np.float32)
    scores = np.where(allowed, scores, np.float32(-np.inf))
    map_ = map_of(queries, keys, scores, in_space=None)
    facts, rows = map_facts(map_), rows_of(queries, keys, scores)
    if not rows:
        assert facts.reading.order == "unknown"
        assert map_.in_map.n_query == 0
        return
    own, own_share = mean([correlation(*row) for row in rows]), mean([agreement(*row) for row in rows])
    assert map_.in_map.n_query == len(rows)
    assert map_.in_map.order_correlation == pytest.approx(own, abs=1e-9)
    assert map_.in_map.nearest_agreement == pytest.approx(own_share)

    judged = [query for query in range(N_QUERY) if np.isfinite(scores[query]).sum() >= 2]
    used = [key for key in range(N_KEY) if np.isfinite(scores[judged, key]).any()]
    orders = list(itertools.permutations(used))
    if len(orders) < 20:
        assert facts.reading.order == "unknown" and not facts.reading.nearest
        return
    by_chance, shares = [], []
    for order in orders:
        moved = keys.copy()
        moved[used] = keys[list(order)]
        here = rows_of(queries, moved, scores)
        by_chance.append(mean([correlation(*row) for row in here]))
        shares.append(mean([agreement(*row) for row in here]))
    p = mean([number <= own + 1e-9 for number in by_chance])
    assert facts.reading.nearest == (mean([share >= own_share - 1e-9 for share in shares]) <= 0.05)
    if abs(own) > 1e-9:  # otherwise its sign is rounding
        assert (facts.reading.order == "chance") == (p > 0.05 or own > 0)
    match facts.reading.order:
        case "weak":
            assert -0.3 - 1e-9 < own < 0
        case "rough":
            assert -0.7 - 1e-9 < own <= -0.3 + 1e-9
        case "fair":
            assert own <= -0.7 + 1e-9
            pairs = [
                [
                    (first[0] - other[0]) * (first[1] - other[1])
                    for first, other in itertools.combinations(zip(*row, strict=True), 2)
                ]
                for row in rows
            ]
            nearer_is_higher = mean([mean([product < 0 for product in row]) for row in pairs])
            assert nearer_is_higher > mean([mean([product > 0 for product in row]) for row in pairs])
    worst = [correlation(*row) for row in rows]
    if facts.worst_query is not None:
        assert facts.reading.order == "fair"
        assert worst[judged.index(facts.worst_query)] == pytest.approx(max(worst), abs=1e-9)
        assert max(worst) > -0.7 - 1e-9
    elif facts.reading.order == "fair":
        assert max(worst) <= -0.7 + 1e-9


correlations = st.one_of(st.just(float("nan")), st.sampled_from([-1.0, -0.5, 0.0, 0.25]), st.floats(-1, 1))


@given(st.lists(correlations, max_size=9))
def test_the_ranking_is_best_first(given_) -> None:
    rated = [
        RatedMap(
            choice=MapChoice(method="pca"),
            in_map=replace(small_records.PERFECT, order_correlation=coefficient),
            chance=small_records.BY_CHANCE,
            trustworthiness=1.0,
            divergence=None,
            duration_s=0.0,
        )
        for coefficient in given_
    ]
    coefficients = [map_.in_map.order_correlation for map_ in best_first(rated)]
    known = [result for result in coefficients if not math.isnan(result)]
    assert len(coefficients) == len(given_)
    assert sorted(known) == known == coefficients[: len(known)]


@given(points(N_QUERY), points(N_KEY), st.integers(0, N_QUERY - 1), st.integers(0, N_KEY - 1))
def test_how_many_keys_are_nearer(queries, keys, query, key) -> None:
    map_ = map_of(queries, keys, np.zeros((N_QUERY, N_KEY), dtype=np.float32))
    far = [float(np.linalg.norm(queries[query] - key)) for key in keys]
    assert near(map_, query, key).n_nearer == sum(distance < far[key] for distance in far)
    assert near(map_, query, key).n_key == N_KEY


weights_of_sentences = st.lists(
    st.integers(1, 7).flatmap(
        lambda n: arrays.arrays(np.float32, (n, n), elements=st.sampled_from([0.0, 0.25, 0.5, 1.0]))
    ),
    min_size=1,
    max_size=3,
)


def screen_of(weights: list[np.ndarray]) -> Screen:
    """Sentences with these weights, rows divided by their sums; nothing where a weight is 0 but for 1e-30."""
    traces = [
        hand_made.trace(
            (weight / weight.sum(axis=1, keepdims=True).clip(min=0.25))[None, None], ["a"] * len(weight)
        )
        for weight in weights
    ]
    calls = [trace.attention(0) for trace in traces]
    collection = Collection(
        tokens=tuple(trace.tokens for trace in traces),
        line=np.arange(1, 1 + len(traces)),
        attention=tuple(replace(call, value=call.value[..., :0].copy()) for call in calls),
        n_found=len(traces),
        provenance=traces[0].provenance,
    )
    scores = [collection.scores(number, 0) for number in range(len(traces))]
    width = max(map(len, weights))
    queries, keys = (
        np.concatenate(
            [np.pad(getattr(call, side)[0], ((0, 0), (0, width - call.query.shape[-1]))) for call in calls]
        )
        for side in ("query", "key")
    )
    return Screen(view=None, collection=collection, head=0, map=joint_map(queries, keys, scores))


@given(weights_of_sentences, st.data(), st.sampled_from(["query", "key"]))
def test_the_strongest_partners_of_a_token(weights, data, side) -> None:
    screen = screen_of(weights)
    number = data.draw(st.integers(0, len(weights) - 1))
    position = data.draw(st.integers(0, len(weights[number]) - 1))
    first = sum(map(len, weights[:number]))
    partners = links(screen, first + position, side)
    own = screen.collection.weights(number, 0)
    given_ = {
        first + at: float(own[position, at] if side == "query" else own[at, position])
        for at in range(len(own))
    }
    assert all(weight == given_[token] > 0 for token, weight in partners)
    assert [weight for _, weight in partners] == sorted((weight for _, weight in partners), reverse=True)
    named = {token for token, _ in partners}
    assert len(named) == len(partners) == min(N_LINES, sum(weight > 0 for weight in given_.values()))
    for token, weight in given_.items():
        assert token in named or all(weight <= other for _, other in partners)


@given(weights_of_sentences)
def test_what_is_said_of_a_joint_map(weights) -> None:
    screen = screen_of(weights)
    lengths = [len(weight) for weight in weights]
    n_query = sum(n for n in lengths if n >= 2)  # every query sees all keys of its sentence
    is_unknown = math.prod(math.factorial(n) for n in lengths if n >= 2) < 20
    noted = note(screen.map)
    assert ("Within each sentence" in noted) == (n_query > 0)
    assert (f"over the {n_query:,} queries" in noted) == (n_query > 0)
    assert ("that see two keys or more" in noted) == (n_query > 0 and min(lengths) < 2)
    assert ("points are permuted within their sentence" in noted) != is_unknown
    trustworthiness = screen.map.trustworthiness
    assert (f"Trustworthiness {trustworthiness:.2f}" in noted) != math.isnan(trustworthiness)
    points = screen.map.points.astype(float)
    n_token, first, rows = len(points) // 2, 0, []
    for number, n in enumerate(lengths):
        here = slice(first, first + n)
        keys = points[n_token:][here]
        of_sentence = rows_of(points[:n_token][here], keys, screen.collection.scores(number, 0))
        for far, _ in of_sentence:  # of keys that are as far but for rounding, either may come first
            order = np.argsort(far)
            is_near = np.diff(np.array(far)[order]) < 1e-5 * (1 + max(far))
            assume((keys[order][1:] == keys[order][:-1])[is_near].all())
        rows += of_sentence
        first += n
    if rows:
        own = mean([correlation(*row) for row in rows])
        assert screen.map.in_map.order_correlation == pytest.approx(own, abs=1e-6)
        assert screen.map.in_map.nearest_agreement == pytest.approx(mean([agreement(*row) for row in rows]))
        order = reading_of(screen.map.in_map, screen.map.chance).order
        assert (order == "unknown") == is_unknown
        assert order in ("unknown", "chance") or own < 0


@given(arrays.arrays(np.float32, (3, 4), elements=st.sampled_from([0.0, 0.25, 0.5])))
def test_the_heads_that_give_a_pair_the_largest_weight(weights) -> None:
    strongest = strongest_heads(weights)
    for layer, head in np.ndindex(3, 4):
        is_largest = weights[layer, head] > 0 and (weights[layer, head] >= weights).all()
        assert (Head(layer, head) in strongest) == is_largest
    assert bool(strongest) == bool((weights > 0).any())


@given(st.text(alphabet=st.sampled_from(list("a \t\n\r\x0b\x85\u2028")), max_size=20))
def test_sentences_are_the_lines_that_are_not_blank(text) -> None:
    lines, number, line = [], 1, ""
    for at, character in enumerate(text):
        if character == "\n" or character == "\r":
            if not (character == "\n" and at and text[at - 1] == "\r"):
                lines.append((number, line))
                number, line = number + 1, ""
        else:
            line += character
    lines.append((number, line))
    assert sentences(text) == [line for line in lines if line[1].strip()]
