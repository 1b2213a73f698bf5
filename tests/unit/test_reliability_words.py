"""What is said of a map of queries and keys: its reliability, by numbers that are written down here."""

from dataclasses import replace

import numpy as np
import pytest

from attnviz.records import Projection, Reliability
from tests import small_records
from tests.app.screen import unescaped
from tests.hand_made import tokens
from tests.small_records import BY_CHANCE, PERFECT
from ui.rooms.explore.other_maps import reliability as reliability
from ui.words.findings import map_note
from ui.words.reliability import READ, Reading, listed, read, reading_of, short


def projection(
    mean: float,
    worst: float = -0.9,
    nearest: float = 1.0,
    before: float | None = None,
    p: float = 0.001,
    nearest_p: float = 0.001,
    **changes: object,
) -> Projection:
    """A map with these figures; its queries are "[CLS]", "door" and "*it*", of which the last has the worst."""
    three_tokens = tokens(["[CLS]", "door", "*it*"])

    def figures(correlation: float) -> Reliability:
        return Reliability(
            n_query=3,
            order_correlation=correlation,
            worst_correlation=worst,
            worst_query=2,
            nearest_agreement=nearest,
        )

    given = {
        "query_tokens": three_tokens,
        "key_tokens": three_tokens,
        "in_map": figures(mean),
        "chance": replace(BY_CHANCE, correlation_p=p, nearest_p=nearest_p),
        "in_space": None if before is None else figures(before),
    }
    return small_records.projection(**given | changes)


def conclusion(map_: Projection, *, has_bias: bool = False) -> str:
    return unescaped(reliability.conclusion(map_, has_bias=has_bias))


@pytest.mark.parametrize(
    ("mean", "p", "order"),
    [
        (-0.9, 0.051, "chance"),
        (-0.9, 0.05, "fair"),
        (0.6, 0.001, "chance"),  # a map against the scores is no better, whatever its p
        (-0.1, 0.05, "weak"),
        (-0.29, 0.001, "weak"),
        (-0.31, 0.001, "rough"),
        (-0.69, 0.001, "rough"),
        (-0.7, 0.001, "fair"),
        (-0.71, 0.001, "fair"),
        (-0.3, 0.001, "rough"),
    ],
)
def test_by_the_p_value_and_the_size_of_the_correlation(mean, p, order):
    map_ = projection(mean, p=p)
    assert reading_of(map_.in_map, map_.chance) == Reading(order=order, nearest=True, nearest_mostly=True)
    start = {
        "chance": ":red[**This t-SNE map cannot be told from chance.**]",
        "weak": "**This t-SNE map follows the scores only weakly.**",
        "rough": "**This t-SNE map is rough:**",
        "fair": "**This t-SNE map can be read:**",
    }
    assert conclusion(map_).startswith(start[order])
    assert READ[order] in map_note(map_)


def test_the_nearest_key_is_judged_by_its_own_p_value():
    for nearest_p, is_better in ((0.05, True), (0.051, False)):
        map_ = projection(-0.2, p=0.3, nearest_p=nearest_p)
        reading = reading_of(map_.in_map, map_.chance)
        assert reading == Reading(order="chance", nearest=is_better, nearest_mostly=True)
        assert reading.tells_nothing != is_better
        assert ("Still, the nearest key" in map_note(map_)) == is_better
        assert ("nearest key better than chance" in listed(reading)) == is_better
        assert ("Trust only its nearest keys." in conclusion(map_)) == is_better
        assert ("Do not read attention off its distances." in conclusion(map_)) != is_better
    assert not reading_of(
        projection(-0.8, nearest_p=0.9).in_map, projection(-0.8, p=0.9).chance
    ).tells_nothing


def test_too_few_orders_of_the_keys_are_no_test():
    few = replace(BY_CHANCE, n_permutations=18, correlation=float("nan"), nearest=float("nan"))
    assert reading_of(projection(-1.0).in_map, few).order == "unknown"
    assert reading_of(projection(-1.0).in_map, replace(few, n_permutations=19)).order == "fair"
    assert "too few keys" in conclusion(projection(-1.0, chance=few))
    assert "permuted" not in conclusion(projection(-1.0, chance=few))
    none = replace(PERFECT, n_query=0, order_correlation=float("nan"), nearest_agreement=float("nan"))
    assert "no query sees two keys" in conclusion(projection(-1.0, in_map=none, chance=few))


def test_both_figures_stand_beside_those_of_chance():
    sentences = conclusion(projection(-0.1, nearest=0.83, p=0.12, nearest_p=0.04))
    assert (
        "The mean correlation of distance and score is −0.10 (−1 is perfect); with the key points permuted, at most one "
        "map in twenty goes below −0.50 (p = 0.120)." in sentences
    )
    assert (
        "The nearest key has the largest weight for 83% of the 3 queries; permuted, at most one map in twenty exceeds 25% "
        "(p = 0.040)." in sentences
    )


def test_a_query_whose_order_is_not_fair_is_named():
    assert conclusion(projection(-0.8, worst=-0.2)).endswith(
        "The order is worst for the query “*it*” (−0.20)."
    )
    assert "worst" not in conclusion(projection(-0.8, worst=-0.71))
    assert "worst" not in conclusion(projection(-0.6, worst=-0.2))


def test_where_the_order_was_lost():
    lost = conclusion(projection(-0.1, before=-0.95))
    assert lost.endswith("the correlation is −0.95; this t-SNE map in 2 dimensions does not keep it.")
    either = conclusion(projection(-0.5, before=-0.3))
    assert either.endswith("no better than −0.30; among lifted vectors Euclidean distance follows the score.")
    assert "fed in" not in conclusion(projection(-0.1))
    assert "fed in" not in conclusion(projection(-0.8, before=-0.3))
    biased = conclusion(projection(-0.1, before=-0.3), has_bias=True)
    assert biased.endswith("Euclidean distance follows q·k, but not the bias that this layer adds to it.")
    lifted = conclusion(projection(-0.1, before=-0.3, space="lifted", parameters={"metric": "euclidean"}))
    assert lifted.endswith("the correlation is no better than −0.30.")
    cosine = conclusion(projection(-0.1, before=-0.3, space="lifted", parameters={"metric": "cosine"}))
    assert cosine.endswith("Euclidean distance follows the score.")


def test_share_of_pairs_in_order_is_as_its_constant_says():
    share = 0.5 + np.arcsin(2 * np.sin(np.pi * 0.7 / 6)) / np.pi
    random = np.random.default_rng(0)
    linear = 2 * np.sin(np.pi * 0.7 / 6)  # of normal numbers whose ranks correlate with 0.7
    first, other = random.multivariate_normal([0, 0], [[1, linear], [linear, 1]], size=(2, 50_000)).transpose(
        2, 0, 1
    )
    assert np.mean((first[0] < first[1]) == (other[0] < other[1])) == pytest.approx(share, abs=0.01)
    assert share == pytest.approx(0.75, abs=0.01)


@pytest.mark.parametrize(
    ("correlation", "correlation_p", "nearest_p", "is_added"),
    [(-0.2, 0.01, 0.01, True), (-0.2, 0.01, 0.2, False), (-0.2, 0.5, 0.01, True), (-0.8, 0.01, 0.01, False)],
)
def test_the_nearest_key_stands_out_where_the_order_says_little(
    correlation, correlation_p, nearest_p, is_added
):
    in_map = replace(PERFECT, order_correlation=correlation)
    chance = replace(BY_CHANCE, correlation_p=correlation_p, nearest_p=nearest_p)
    reading = reading_of(in_map, chance)
    assert ("Still, the nearest key" in read(reading)) == is_added
    assert (short(reading) == "read its lines and nearest keys, not other distances") == is_added


@pytest.mark.parametrize("nearest_p", [0.001, 0.9])
@pytest.mark.parametrize("mean", [-0.9, -0.5, -0.2, 0.2])
@pytest.mark.parametrize(("nearest", "is_most"), [(0.73, True), (0.51, True), (0.5, False), (0.38, False)])
def test_the_verdict_and_the_share_of_nearest_keys_do_not_contradict_each_other(
    mean, nearest, is_most, nearest_p
):
    """Where it says that distances mislead, 73% is no surprise; where it says that they can be read, 38% is none."""
    map_ = projection(mean, nearest=nearest, nearest_p=nearest_p)
    reading = reading_of(map_.in_map, map_.chance)
    beats_chance = nearest_p < 0.05
    misleads, can_be_read = mean > -0.3, mean <= -0.7
    assert ("nearest keys" in short(reading)) == (misleads and is_most and beats_chance)
    assert ("not the strongest" in short(reading)) == (can_be_read and not is_most)
    assert ("Trust only its nearest keys." in conclusion(map_)) == (misleads and is_most and beats_chance)
    assert ("the nearest key is often not the one" in conclusion(map_)) == (can_be_read and not is_most)
    note = map_note(map_)
    assert ("cannot be told from chance" in note.partition(READ[reading.order])[2]) != beats_chance
    assert ("for most queries" in note) == (beats_chance and is_most)
    assert ("no more than half of the queries" in note) == (beats_chance and not is_most)


@pytest.mark.parametrize(
    ("mean", "p", "nearest", "nearest_p", "expected"),
    [
        (0.0, 0.001, 1.0, 0.001, {"order": "chance", "nearest": True, "tells_nothing": False}),
        (-0.9, 0.2, 1.0, 0.2, {"order": "chance", "nearest": False, "tells_nothing": True}),
        (-0.9, 0.001, 1.0, 0.2, {"order": "fair", "nearest": False, "tells_nothing": False}),
        (-0.1, 0.001, 0.5, 0.001, {"order": "weak", "nearest_mostly": False, "only_nearest": False}),
        (-0.1, 0.001, 0.75, 0.001, {"order": "weak", "nearest_mostly": True, "only_nearest": True}),
        (-0.9, 0.001, 0.5, 0.001, {"order": "fair", "but_nearest": True, "is_of_nearest": False}),
        (-0.9, 0.001, 0.75, 0.001, {"order": "fair", "but_nearest": False, "is_of_nearest": False}),
        (-0.5, 0.001, 0.5, 0.001, {"order": "rough", "but_nearest": False, "only_nearest": False}),
    ],
)
def test_what_can_be_read_off_a_map(mean, p, nearest, nearest_p, expected):
    made = projection(mean, p=p, nearest=nearest, nearest_p=nearest_p)
    reading = reading_of(made.in_map, made.chance)
    assert {name: getattr(reading, name) for name in expected} == expected


def test_that_the_nearest_key_says_something_else_begins_with_but():
    assert read(Reading(order="fair", nearest=True, nearest_mostly=False)).count(". But ") == 1
    assert " But " not in read(Reading(order="fair", nearest=True, nearest_mostly=True))
    assert read(Reading(order="weak", nearest=True, nearest_mostly=True)).count(". Still, ") == 1
