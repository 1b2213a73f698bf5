"""What the pages Effects, Inputs, Patching, Lens, Scaling, Positions, Cost and Step by step conclude from any numbers.

Numbers are often equal, 0 or NaN. What is expected is found cell by cell in plain Python.
"""

import math
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from attnviz.cost.measurement import METHODS, Measurement, Series
from attnviz.effects.ablation import HeadEffects
from attnviz.effects.input_attribution import InputAttribution
from attnviz.effects.logit_attribution import DirectEffects
from attnviz.effects.patching import PatchEffects
from attnviz.figures.numbers import percent_text
from attnviz.lessons.order import Shuffle
from attnviz.lessons.scaling import Products
from attnviz.maths.gradients import PathIntegral
from tests.hand_made import tokens
from ui.rooms.cause.heads_off.effects_of_heads import largest_effect
from ui.rooms.cause.heads_off.further_effects import ablation_agreement
from ui.rooms.cause.inputs.attributions import first_tokens
from ui.rooms.cause.lens.added_parts import largest_part
from ui.rooms.compare.patching.shares import largest_share
from ui.rooms.how_it_works.cost.measured import longest_both
from ui.rooms.how_it_works.positions import cosines, dot_products, order_matters
from ui.rooms.how_it_works.scaling.in_numbers import breaks, ratio_of, spread_of
from ui.rooms.how_it_works.step_by_step.to_output import head_lengths, row_ends, strongest_dimensions
from ui.rooms.how_it_works.step_by_step.walk import MOST_KEYS, comparison, listed_keys
from ui.words.extremes import places_of_largest

pytestmark = pytest.mark.slow

settings.register_profile("attnviz", deadline=None, derandomize=True, max_examples=100)
settings.load_profile("attnviz")

EXACT = st.sampled_from([-2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 1.5, 4.0])
"""Few numbers, so that several are equal, whose differences float32 holds exactly."""
WITH_NAN = EXACT | st.just(math.nan)


def arrays(shape, elements=EXACT):
    return hnp.arrays(np.float32, shape, elements=elements)


SHAPES = st.tuples(st.integers(1, 3), st.integers(1, 4))
BASES = st.sampled_from([0.0, 0.5, 1.0])


def ranks(numbers):
    """Mean ranks by counting."""
    return [
        sum(other < number for other in numbers) + (sum(other == number for other in numbers) + 1) / 2
        for number in numbers
    ]


def spearman(values, other):
    """The correlation of mean ranks, written out; NaN where one has no order."""
    first, second = ranks(values), ranks(other)
    mean = (len(values) + 1) / 2
    top = sum((a - mean) * (b - mean) for a, b in zip(first, second, strict=True))
    sizes = math.sqrt(sum((a - mean) ** 2 for a in first) * sum((b - mean) ** 2 for b in second))
    return top / sizes if sizes else math.nan


@given(arrays(SHAPES, WITH_NAN))
def test_places_of_the_largest(numbers):
    places = places_of_largest(numbers)
    known = [place for place in np.ndindex(numbers.shape) if not math.isnan(numbers[place])]
    assert list(places) == [
        place for place in known if all(numbers[place] >= numbers[other] for other in known)
    ]


def head_effects(heads, base, ablation="zero"):
    return HeadEffects(
        kind="encoder",
        ablation=ablation,
        base=base,
        heads=heads,
    )


@given(arrays(SHAPES, WITH_NAN), BASES)
def test_the_head_with_the_largest_effect(heads, base):
    effect = largest_effect(head_effects(heads, base))
    sizes = {place: abs(heads[place] - base) for place in np.ndindex(heads.shape)}
    known = {place: size for place, size in sizes.items() if not math.isnan(size)}
    if effect is None:
        assert not any(known.values())
        return
    head, n_equal = effect
    assert known[tuple(head)] == max(known.values()) > 0
    assert n_equal == list(known.values()).count(max(known.values())) - 1


@given(st.data(), SHAPES)
def test_whether_zeros_and_means_order_the_heads_alike(data, shape):
    zero, mean = (data.draw(arrays(shape, WITH_NAN)) for _ in range(2))
    agreement = ablation_agreement(head_effects(zero, 0.5), head_effects(mean, 0.5, "mean"))
    pairs = [
        (abs(of_zero - 0.5), abs(other - 0.5))
        for of_zero, other in zip(zero.ravel().tolist(), mean.ravel().tolist(), strict=True)
        if not math.isnan(of_zero) and not math.isnan(other)
    ]
    expected = spearman(*zip(*pairs, strict=True)) if len(pairs) >= 3 else math.nan
    assert agreement is None if math.isnan(expected) else agreement == pytest.approx(expected)


@given(st.data(), st.integers(1, 6), st.sampled_from([-3.0, 0.0, 2.0]))
def test_the_tokens_that_most_methods_put_first(data, n_token, difference):
    among = data.draw(hnp.arrays(np.bool_, n_token))
    methods = [
        *("gradient_times_input", "integrated_gradients", "token_replaced", "keys_masked"),
        *("norms", "flow"),
    ]
    attributions = []
    for method in methods:
        values = data.draw(arrays(n_token, EXACT if method == "integrated_gradients" else WITH_NAN))
        integral = None
        if method == "integrated_gradients":
            largest = max([abs(difference), *(abs(value) for value in values.tolist())])
            error = data.draw(st.sampled_from([0.0, 0.01 * largest, 0.03 * largest + 1e-5]))
            integral = PathIntegral(values=values, difference=difference, error=error, n_points=40)
        attributions.append(
            InputAttribution(method=method, tokens=tokens(["a"]), values=values, integral=integral)
        )
    first = first_tokens(attributions, among)
    counted = [
        attribution
        for attribution in attributions[:4]
        if attribution.integral is None or attribution.integral.error <= 0.01 * largest
    ]
    sign = -1 if difference < 0 else 1
    words = [at for at in range(n_token) if among[at]]
    votes = {at: 0 for at in words}
    # norms and flow know nothing of the outcome, and an integral that is far off says little
    for attribution in counted:
        for at in words:
            others = [attribution.values[other] for other in words if other != at]
            if not math.isnan(attribution.values[at]) and not any(
                sign * other >= sign * attribution.values[at] for other in others
            ):
                votes[at] += 1
    most = max(votes.values(), default=0)
    assert first.direction == np.sign(difference)
    assert (first.n_token, first.n_method, first.n_same) == (len(words), len(counted), most)
    assert first.tokens == tuple(at for at in words if votes[at] == most > 0)
    assert first.n_undecided == len(counted) - sum(votes.values())


@given(st.data(), st.integers(1, 6))
def test_how_alike_the_orders_of_two_methods_are(data, n_token):
    rows = [data.draw(arrays(n_token)) for _ in range(3)]
    methods = ("gradient_times_input", "token_replaced", "keys_masked")
    first = first_tokens(
        [
            InputAttribution(method=name, tokens=tokens(["a"]), values=row)
            for name, row in zip(methods, rows, strict=True)
        ],
        np.ones(n_token, dtype=bool),
    )
    pairs = [spearman(row.tolist(), other.tolist()) for row, other in combinations(rows, 2)]
    pairs = [pair for pair in pairs if not math.isnan(pair)] if n_token >= 3 else []
    assert first.correlation == (pytest.approx(sum(pairs) / len(pairs)) if pairs else None)


N_ORDERS = 199


@given(st.data(), st.integers(1, 4), st.integers(1, 5), st.sampled_from(["layer", "attention", "heads"]))
def test_the_state_with_the_largest_share(data, n_row, n_token, carried):
    # Most differences that are drawn are small beside the spread of the outcomes; a far donor's is not.
    base, donor = data.draw(BASES), data.draw(st.sampled_from([-64.0, 64.0]) | WITH_NAN)
    outcomes = data.draw(arrays((n_row, n_token), WITH_NAN))
    effects = PatchEffects(
        receiver_tokens=tokens(["a"]),
        donor_tokens=tokens(["a"]),
        kind="encoder",
        carried=carried,
        layer=2 if carried == "heads" else None,
        base=base,
        donor=donor,
        outcomes=outcomes,
    )
    fact = largest_share(effects)
    known = [value for value in outcomes.ravel().tolist() if not math.isnan(value)]
    mean = sum(known) / len(known) if known else math.nan
    spread = math.sqrt(sum((outcome - mean) ** 2 for outcome in known) / len(known)) if known else math.nan
    last = n_row - 1 if carried == "layer" and n_row > 1 else n_row  # whose states the outcome reads
    asked = {at: outcomes[at] for at in np.ndindex(last, n_token) if not math.isnan(outcomes[at])}
    if fact is None:
        assert math.isnan(donor) or not asked or donor == base or abs(donor - base) < 2 * spread
        return
    assert donor != base and abs(donor - base) >= 2 * spread * (1 - 1e-5)
    shares = {at: (outcome - base) / (donor - base) for at, outcome in asked.items()}
    assert fact.share == pytest.approx(shares[fact.row, fact.column])
    assert abs(fact.share) == pytest.approx(max(map(abs, shares.values())))
    read = [percent_text(abs(np.float32(share))) for share in shares.values()]  # equal is what reads as equal
    assert fact.n_equal == read.count(percent_text(abs(fact.share))) - 1


@given(arrays(SHAPES, WITH_NAN))
def test_the_head_with_the_largest_direct_effect(heads):
    none = np.zeros(len(heads), dtype=np.float32)
    part = largest_part(
        DirectEffects(
            kind="encoder",
            position=0,
            unit="length",
            total=1.0,
            embedding=9.0,
            heads=heads,
            sources=(),
            mlps=none.copy(),
            biases=none.copy(),
            bias=0.0,
        )
    )
    sizes = {at: abs(heads[at]) for at in np.ndindex(heads.shape) if not math.isnan(heads[at])}
    if part is None:
        assert not sizes
        return
    head, n_equal = part
    assert sizes[tuple(head)] == max(sizes.values())
    assert n_equal == list(sizes.values()).count(max(sizes.values())) - 1


@given(arrays(st.integers(1, 20), st.floats(-50, 50, width=32)), st.sampled_from([0.125, 0.5, 1.0, 3.0]))
def test_the_variance_of_scaled_products(products, scale):
    spread = spread_of(products, scale)
    numbers = [Fraction(float(product)) for product in products]
    times = [Fraction(scale) * number for number in numbers]

    def variance(of):
        mean = sum(of) / len(of)
        return float(sum((number - mean) ** 2 for number in of) / len(of))

    assert spread.n_product == len(numbers)
    assert spread.mean == pytest.approx(float(sum(numbers) / len(numbers)), abs=1e-9)
    assert spread.variance == pytest.approx(variance(numbers), rel=1e-9, abs=1e-9)
    assert spread.scaled_variance == pytest.approx(variance(times), rel=1e-9, abs=1e-9)


@given(*(st.sampled_from([0.0, 1e-30, 0.5, 0.52, 1.0, 700.0, math.nan]),) * 2)
def test_a_second_number_beside_a_first(first, second):
    ratio = ratio_of(first, second)
    if ratio is None:
        assert not first or not second or math.isnan(first) or math.isnan(second)
        return
    assert ratio.is_less == (second < first)
    assert (first / ratio.times if ratio.is_less else first * ratio.times) == pytest.approx(second)
    assert ratio.is_alike == (ratio.times < 1.05)


@given(
    arrays(st.integers(1, 6), st.sampled_from([-8.0, -1.0, 0.0, 0.5, 3.0, 12.0])),
    st.sampled_from([-2.0, 0.0, 5.0]),
    st.data(),
)
def test_the_scale_from_which_on_an_exponential_is_too_large(products, bias, data):
    allowed = data.draw(hnp.arrays(np.bool_, products.shape))
    assume(allowed.any())
    row = Products(
        products=products[None],
        bias=np.full_like(products, bias)[None],
        allowed=allowed[None],
        scale=1.0,
    )
    limit = 11.0
    reached = row.scale_reaching(0, limit)

    def largest(scale):
        return max(
            scale * float(product) + bias for product, seen in zip(products, allowed, strict=True) if seen
        )

    if reached is None:
        assert largest(1e6) <= limit
    else:
        assert largest(reached * 1.001) > limit >= largest(reached * 0.999)


@given(arrays(st.integers(1, 5), st.sampled_from([-200.0, -3.0, 0.0, 11.0, 12.0, 90.0])))
def test_whether_a_softmax_without_the_subtraction_breaks(scores):
    for dtype, largest in ((np.float16, 65504.0), (np.float32, 3.4028235e38)):
        with np.errstate(all="ignore"):
            raised = [float(dtype(math.exp(value))) if value < 700 else math.inf for value in scores.tolist()]
            total = float(np.sum(np.array(raised, dtype=dtype), dtype=dtype))
        expected = total > largest or total == 0 or any(exponential > largest for exponential in raised)
        assert breaks(scores.astype(np.float64), dtype) == expected


@given(arrays(st.tuples(st.integers(1, 31), st.integers(1, 3)), st.sampled_from([-1.0, 0.5, 2.0])))
def test_positions_by_their_distance(table):
    expected = []
    for apart in (1, 5, 20):
        products = [
            sum(float(a) * float(b) for a, b in zip(table[at], table[at + apart], strict=True))
            for at in range(len(table) - apart)
        ]
        if products:
            expected.append((apart, products[0], min(products), max(products)))
    listed = [
        (dot_product.apart, dot_product.first, dot_product.least, dot_product.most)
        for dot_product in dot_products(table)
    ]
    assert listed == [pytest.approx(value) for value in expected]
    pairs = [pair for pair in ((0, 1), (0, 10), (20, 30)) if max(pair) < len(table)]
    assert [cosine[:2] for cosine in cosines(table)] == pairs
    for position, other, cosine in cosines(table):
        lengths = math.dist(table[position], table[position] * 0) * math.dist(table[other], table[other] * 0)
        assert cosine == pytest.approx(float(table[position] @ table[other]) / lengths, abs=1e-5)


@given(
    st.permutations(range(4)), *(arrays(4, st.sampled_from([0.0, 1e-6, float(np.float32(1e-3)), 1.5])),) * 2
)
def test_what_another_order_does(order, with_positions, without_positions):
    judged = order_matters(
        Shuffle(order=np.array(order), with_positions=with_positions, without_positions=without_positions)
    )
    assert judged.is_own_order == (order == [0, 1, 2, 3])
    assert judged.with_positions == any(value > 0.0009 for value in with_positions.tolist())
    assert judged.without_positions == any(value > 0.0009 for value in without_positions.tolist())


@given(st.tuples(*[st.integers(0, 4)] * 3))
def test_the_longest_text_that_was_measured_both_ways(last):
    measurements = tuple(
        Measurement(
            method=method, n_token=64 * 2**power, seconds=0.1 * power + number, n_bytes=power + 10 * number
        )
        for number, (method, end) in enumerate(zip(METHODS, last, strict=True))
        for power in range(end + 1)
    )
    differences = {64 * 2**power: power * 1e-7 for power in range(max(last) + 1)}
    longest = longest_both(Series(measurements=measurements, stops=(), differences=differences))
    both = min(last[0], last[2])
    assert longest.n_token == 64 * 2**both and longest.difference == both * 1e-7
    assert (longest.whole.n_bytes, longest.streaming.n_bytes) == (both, both + 20)


@given(arrays(st.integers(1, 6), WITH_NAN), st.sampled_from([0.0, 1e-6, 0.1, math.nan]))
def test_whether_numbers_match_the_models(expected, change):
    compared = comparison(expected + np.float32(change), expected)
    difference = max(
        (abs(float(np.float32(value + np.float32(change)) - value)) for value in expected), default=0
    )
    if math.isnan(change) or np.isnan(expected).any():
        assert not compared.matches and math.isnan(compared.difference)
    else:
        assert compared.difference == pytest.approx(difference, abs=1e-9)
        assert compared.matches == (difference <= 1e-4 * max(abs(expected).max(), 1e-12))


@given(arrays(st.integers(1, 6), EXACT | st.just(-math.inf)))
def test_the_ends_of_a_row_of_scores(row):
    ends = row_ends(row)
    seen = {at: score for at, score in enumerate(row.tolist()) if math.isfinite(score)}
    if ends is None:
        assert not seen
        return
    highest, lowest = max(seen.values()), min(seen.values())
    assert (seen[ends.highest], seen[ends.lowest]) == (highest, lowest)
    assert ends.n_as_high == list(seen.values()).count(highest) - 1
    assert ends.n_as_low == list(seen.values()).count(lowest) - 1


@given(arrays(st.integers(1, 20), st.sampled_from([0.0, 0.125, 0.25, 0.5])), st.data())
def test_the_keys_that_are_listed(weights, data):
    key = data.draw(st.integers(0, len(weights) - 1))
    keys = listed_keys(weights, key)
    assert len(keys.positions) == min(len(weights), MOST_KEYS) and key in keys.positions
    assert list(keys.positions) == sorted(set(keys.positions))
    others = [weight for at, weight in enumerate(weights.tolist()) if at not in keys.positions]
    assert keys.n_others == len(others) and keys.others_weight == sum(others)
    listed = [weight for at, weight in enumerate(weights.tolist()) if at in keys.positions]
    assert keys.are_strongest == all(weight >= other for weight in listed for other in others)
    beside = [weights[at] for at in keys.positions if at != key]
    assert all(weight >= other for weight in beside for other in others)


@given(arrays(st.tuples(st.integers(1, 4), st.integers(1, 3))), st.data())
def test_how_long_what_the_heads_give_is(parts, data):
    head = data.draw(st.integers(0, len(parts) - 1))
    lengths = head_lengths(parts, head)
    squares = [sum(float(value) ** 2 for value in row) for row in parts]
    assert squares[lengths.longest] == max(squares) == pytest.approx(lengths.length**2, abs=1e-5)
    assert squares[head] == pytest.approx(lengths.own**2, abs=1e-5)
    assert lengths.n_as_long == squares.count(max(squares)) - 1
    assert lengths.rank == 1 + sum(square > squares[head] for square in squares)
    assert lengths.n_head == len(parts)


@given(arrays(st.integers(1, 8)))
def test_the_dimensions_that_count_most(products):
    dimensions = strongest_dimensions(products.astype(np.float64)).tolist()
    assert dimensions == sorted(range(len(products)), key=lambda at: (-abs(products[at]), at))[:3]
