"""Deletion curves: their ends, their areas written out, and how often chance is inside its own band."""

from fractions import Fraction
from functools import reduce
from math import ceil
from typing import get_args

import numpy as np
import pytest

import attnviz
from attnviz.effects.deletion import Deletion, RandomOrders, deletion_curves, random_orders
from attnviz.effects.input_attribution import InputAttribution, attribute_inputs
from attnviz.effects.outcome import Similarity, TokenState
from attnviz.effects.token_removal import TokenRemoval, outcomes_without
from tests.hand_made import tokens

TEXT, OTHER = "I was watching the door when it opened", Similarity(text="the cat sat on a mat")
TOLERANCE = 2e-5  # float32, rows of a batch summed in another order than one alone


def given(values):
    """An attribution with these numbers; they may be any."""
    return InputAttribution(
        method="integrated_gradients", tokens=tokens(["a"]), values=np.asarray(values, dtype=np.float32)
    )


def deleted(model, trace, outcome, attributions, *, progress=None, **of_chance) -> Deletion:
    """The curves of these attributions, beside random orders that run as a whole."""
    chance = random_orders(model, trace, outcome, **of_chance)
    return deletion_curves(model, trace, outcome, attributions, chance, progress=progress)


def is_in(tokens, positions):
    return np.isin(np.arange(len(tokens)), positions)


@pytest.mark.parametrize("removal", get_args(TokenRemoval))
@pytest.mark.parametrize("outcome", [OTHER, TokenState(position=4)])
@pytest.mark.parametrize("name", ["bert", "llama"])
def test_every_point_is_a_run_of_its_own(tiny_model, name, outcome, removal):
    model = tiny_model(name)
    trace = model.trace(TEXT if name == "bert" else "a door")
    tokens = trace.tokens
    values = np.random.default_rng(0).normal(size=len(tokens))
    deletions = deleted(model, trace, outcome, [given(values)], removal=removal, n_orders=3)
    (curve,) = deletions.curves
    words = np.flatnonzero(~tokens.is_special)
    assert curve.order.tolist() == sorted(words, key=lambda position: -values[position] * deletions.direction)
    assert deletions.counts[0] == 0 and deletions.counts[-1] == len(words)

    def alone(positions):
        return outcomes_without(model, trace, outcome, is_in(tokens, positions)[None], removal)[0]

    for point, count in enumerate(deletions.counts):
        assert curve.removed[point] == pytest.approx(alone(curve.order[:count]), abs=TOLERANCE)
        assert curve.kept[point] == pytest.approx(alone(curve.order[count:]), abs=TOLERANCE)
    for band in (deletions.chance.removed, deletions.chance.kept):
        assert (band[0] <= band[1]).all()
    unchanged, nothing = alone([]), alone(words)
    assert (curve.removed[0], curve.removed[-1]) == pytest.approx((unchanged, nothing), abs=TOLERANCE)
    assert (curve.kept[0], curve.kept[-1]) == pytest.approx((nothing, unchanged), abs=TOLERANCE)
    assert (deletions.base, deletions.end) == pytest.approx((unchanged, nothing), abs=TOLERANCE)
    assert deletions.direction == (1 if unchanged >= nothing else -1)


@pytest.mark.parametrize("outcome", [OTHER, TokenState(position=4)])
def test_areas_are_means_over_the_five_bins(tiny_model, outcome):
    """8 words: 1%, 5% and 10% are one word, 20% two and 50% four; each bin counts."""
    bert = tiny_model("bert")
    trace = bert.trace(TEXT)
    deletions = deleted(bert, trace, outcome, [given(np.arange(10.0))], n_orders=3)
    assert deletions.bins.tolist() == [1, 1, 1, 2, 4]
    (curve,) = deletions.curves
    places = [deletions.counts.tolist().index(count) for count in (1, 1, 1, 2, 4)]
    drop = [deletions.direction * (deletions.base - curve.removed[place]) for place in places]
    left = [deletions.direction * (deletions.base - curve.kept[place]) for place in places]
    assert curve.comprehensiveness == pytest.approx(np.mean(drop), abs=1e-6)
    assert curve.sufficiency == pytest.approx(np.mean(left), abs=1e-6)
    assert deletions.direction == (
        1 if isinstance(outcome, Similarity) and deletions.base >= deletions.end else -1
    )


def test_bins_are_whole_tokens_rounded_up():
    """0.07 x 100 is 7.000000000000001 in floating point, and still 7 tokens."""
    from attnviz.effects.deletion import BINS, _of_bins

    # 1%, 5%, 10%, 20% and 50%: DeYoung et al. 2020 (arXiv:1911.03429), section 4.2
    assert _of_bins(1000, BINS).tolist() == [10, 50, 100, 200, 500]

    shares = (0.01, 0.05, 0.1, 0.2, 0.5, 0.07)
    for n_word in range(1, 513):
        expected = [max(1, ceil(Fraction(str(share)) * n_word)) for share in shares]
        assert _of_bins(n_word, shares).tolist() == expected


def test_parts_of_the_random_orders_are_the_whole(tiny_model):
    bert = tiny_model("bert")
    trace = bert.trace(TEXT)
    whole = random_orders(bert, trace, OTHER, n_orders=7, seed=2)
    parts = [random_orders(bert, trace, OTHER, n_orders=7, seed=2, part=(number, 3)) for number in range(3)]
    joined = reduce(RandomOrders.joined, parts)
    assert whole.orders.shape == joined.orders.shape == (7, 8)
    assert sorted(map(tuple, joined.orders)) == sorted(map(tuple, whole.orders))
    by_order = {tuple(order): removed for order, removed in zip(joined.orders, joined.removed, strict=True)}
    for order, removed in zip(whole.orders, whole.removed, strict=True):
        np.testing.assert_allclose(by_order[tuple(order)], removed, atol=TOLERANCE)


def test_random_orders_run_only_where_their_areas_need_them(tiny_model):
    """8 words: bins of 1, 2 and 4 tokens, all but as many, none and all."""
    bert = tiny_model("bert")
    orders = random_orders(bert, bert.trace(TEXT), OTHER, n_orders=3)
    assert orders.counts.tolist() == [0, 1, 2, 4, 6, 7, 8] and orders.bins.tolist() == [1, 1, 1, 2, 4]


def test_an_order_is_as_good_as_itself_whatever_rounding_does(tiny_model, monkeypatch):
    """Outcomes are rounded anew at every call: an order that is also a method is still as good as itself."""
    from attnviz.effects import deletion

    random = np.random.default_rng(0)
    real = deletion.outcomes_without

    def rounding(model, trace, outcome, removed, *rest, **named):
        outcomes = real(model, trace, outcome, removed, *rest, **named)
        return (outcomes + random.uniform(-1e-6, 1e-6, outcomes.shape)).astype(np.float32)

    monkeypatch.setattr(deletion, "outcomes_without", rounding)
    bert = tiny_model("bert")
    trace = bert.trace("the cat")  # two orders
    chance = random_orders(bert, trace, OTHER, n_orders=40)
    words = np.flatnonzero(~trace.tokens.is_special)
    for first in words:
        direction = 1 if chance.removed[0, 0] >= chance.removed[0, -1] else -1
        values = direction * (np.arange(len(trace.tokens)) == first)
        (curve,) = deletion_curves(bert, trace, OTHER, [given(values)], chance).curves
        assert curve.n_as_good >= (chance.orders[:, 0] == first).sum() > 5


def test_random_orders_of_another_text(tiny_model):
    bert = tiny_model("bert")
    chance = random_orders(bert, bert.trace("the cat"), OTHER, n_orders=3)
    with pytest.raises(
        attnviz.ShapeError,
        match="A text of 8 tokens that may be taken away was to be compared with random orders of 2",
    ):
        deletion_curves(bert, bert.trace(TEXT), OTHER, [], chance)


def test_random_orders_that_are_as_good_are_counted(tiny_model):
    """The same random orders again as attributions, so that the comprehensiveness of each is known."""
    bert = tiny_model("bert")
    trace = bert.trace(TEXT)
    words = np.flatnonzero(~trace.tokens.is_special)
    random, drawn = np.random.default_rng(5), []
    for _ in range(30):
        ranks = np.zeros(len(trace.tokens))
        ranks[random.permutation(words)] = np.arange(len(words), 0, -1)
        drawn.append(given(ranks))
    turned = deleted(bert, trace, OTHER, [], n_orders=1).direction  # for -1 the least is first
    attributions = [given(attribution.values * turned) for attribution in drawn]
    deletions = deleted(bert, trace, OTHER, attributions, n_orders=30, seed=5)
    areas = [curve.comprehensiveness for curve in deletions.curves]
    assert len(set(areas)) > 5
    for curve in deletions.curves:
        assert curve.n_as_good == sum(other >= curve.comprehensiveness for other in areas)


def test_outcomes_that_are_no_numbers_are_no_better_than_chance(tiny_model, monkeypatch):
    from attnviz.effects import deletion

    monkeypatch.setattr(
        deletion,
        "outcomes_without",
        lambda model, trace, outcome, removed, *_, **__: np.full(len(removed), np.nan, dtype=np.float32),
    )
    bert = tiny_model("bert")
    deletions = deleted(bert, bert.trace(TEXT), OTHER, [given(np.arange(10.0))], n_orders=199)
    assert deletions.curves[0].n_as_good == 199 and deletions.better == ()


@pytest.mark.parametrize("n_word", [1, 2, 7, 23, 100])
def test_counts_go_from_none_to_all(n_word):
    from attnviz.effects.deletion import _counts

    bins = np.array([1, max(1, n_word // 2)])
    counts = _counts(n_word, 10, bins)
    assert counts[0] == 0 and counts[-1] == n_word and set(bins) <= set(counts)
    assert (np.diff(counts) > 0).all() and counts.tolist() == (n_word - counts)[::-1].tolist()
    assert len(counts) <= 11 + 2 * len(bins)


def test_chance_is_inside_its_band_nine_times_of_ten(tiny_model):
    """Random orders other than the band's: at every point about 90% are inside, and so are their areas."""
    bert = tiny_model("bert")
    trace = bert.trace("I was watching the door when it opened , the cat sat on a mat")
    random = np.random.default_rng(7)
    drawn = [given(random.permutation(len(trace.tokens))) for _ in range(200)]
    deletions = deleted(bert, trace, OTHER, drawn, n_orders=400, seed=1)
    at_band = np.isin(deletions.counts, deletions.chance.counts)
    between = slice(
        2, -2
    )  # with all words but one there are only 14 sets, whose outcomes are the percentiles
    for name in ("removed", "kept"):
        low, high = getattr(deletions.chance, name)
        curves = np.stack([getattr(curve, name) for curve in deletions.curves])[:, at_band]
        inside = ((low - 1e-6 <= curves) & (curves <= high + 1e-6)).mean(axis=0)
        assert (inside[between] > 0.8).all() and (inside[between] < 0.98).all()
    for name in ("comprehensiveness", "sufficiency"):
        low, high = getattr(deletions.chance, name)
        inside = np.mean([low <= getattr(curve, name) <= high for curve in deletions.curves])
        assert 0.82 < inside < 0.97


def test_the_same_seed_is_the_same_band(tiny_model):
    bert = tiny_model("bert")
    trace = bert.trace(TEXT)
    band, same, other = (
        deleted(bert, trace, OTHER, [], n_orders=5, seed=seed).chance.removed for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(band, same)
    assert (band != other).any()


@pytest.mark.parametrize(
    ("outcome", "largest"),
    [(Similarity(text="The door swung open while I looked on."), 1), (TokenState(position=5), -1)],
)
def test_parts_are_judged_in_their_order(embedded, door_trace, outcome, largest):
    """What a token gives raises a similarity and lowers the change of a state: the largest part is taken away first."""
    methods = ("decompx", "alti", "value_zeroing")
    attributions = attribute_inputs(embedded, door_trace, outcome, methods=methods)
    found = attnviz.decompx(embedded, door_trace, outcome).values
    deletions = deleted(embedded, door_trace, outcome, attributions, n_orders=5)
    assert deletions.direction == largest
    words = np.flatnonzero(~door_trace.tokens.is_special)
    for curve, numbers in zip(
        deletions.curves, (found, *(each.values for each in attributions[1:])), strict=True
    ):
        assert curve.order.tolist() == sorted(words, key=lambda position: -numbers[position])


def test_a_good_order_is_above_chance_and_its_reverse_below(embedded, door_trace):
    """On the bundled model, where replacing "door" and "opened" first costs the most similarity."""
    outcome = Similarity(text="The door swung open while I looked on.")
    (good,) = attribute_inputs(embedded, door_trace, outcome, methods=["integrated_gradients"])
    told = []
    deletions = deleted(embedded, door_trace, outcome, [good, given(-good.values)], progress=told.append)
    best, worst = deletions.curves
    assert best.comprehensiveness > deletions.chance.comprehensiveness[1]
    assert best.sufficiency < deletions.chance.sufficiency[0]
    assert worst.comprehensiveness < deletions.chance.comprehensiveness[0]
    assert worst.sufficiency > deletions.chance.sufficiency[1]
    assert told == sorted(told) and told[-1] == 1
    assert (deletions.removal, deletions.direction, deletions.chance.n_orders) == ("token_replaced", 1, 239)


def test_a_text_without_words(tiny_model):
    from dataclasses import replace

    bert = tiny_model("bert")
    trace = bert.trace("a")
    tokens = replace(trace.tokens, is_special=np.ones(len(trace.tokens), dtype=bool))
    with pytest.raises(attnviz.SelectionError, match="special tokens and masks alone"):
        deleted(bert, replace(trace, tokens=tokens), OTHER, [])
