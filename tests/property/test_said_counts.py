"""Counts, means and limits of captions and notes, and the thresholds that verdicts name: each counted again in plain Python."""

import math
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from statistics import mean, pvariance
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from attnviz.cost.counting import Layer
from attnviz.cost.measurement import Stop
from attnviz.effects.over_pairs import OverPairs
from attnviz.effects.score_sources import ScoreSources, Source
from attnviz.figures.cost import WAY_NAMES, quantity_text
from attnviz.figures.graph import strongest_edges
from attnviz.figures.numbers import number_text, power_text, share_text, signed_text, sum_text
from attnviz.figures.ranking import MOST_BARS
from attnviz.figures.scaling import variance_text
from attnviz.heads import claim_facts
from attnviz.heads.claims import Claims
from attnviz.heads.comparison import compare
from attnviz.heads.score import Score
from attnviz.maths.rounding import dot_bound
from attnviz.records import Axis
from tests import hand_made, small_records
from tests.app.screen import facts
from tests.drawing import MARKS, draw_few
from ui.rooms.cause import prompts
from ui.rooms.compare.zoom import zoom_note
from ui.rooms.explore.other_maps.picked_pair import _outcome, _sum
from ui.rooms.explore.other_maps.reliability import _missed
from ui.rooms.explore.other_maps.score_sources import note as note_of_split
from ui.rooms.explore.stage.matrix import listed_words
from ui.rooms.explore.stage.screen import hidden_words
from ui.rooms.how_it_works.cost import limits, symbols
from ui.rooms.how_it_works.cost.measured import _stopped
from ui.rooms.how_it_works.kinds_of_attention import drawn_words
from ui.rooms.how_it_works.positions import change_words, distances, likeness_words, table_words
from ui.rooms.how_it_works.scaling.in_numbers import of_model, of_random
from ui.rooms.myths import measured
from ui.rooms.verification import _largest

pytestmark = MARKS
draw_few()


def masks(*shape: int) -> st.SearchStrategy[np.ndarray]:
    return hnp.arrays(np.bool_, shape, elements=st.integers(0, 2).map(bool), fill=st.nothing())


def whole(*shape: int, most: int = 3) -> st.SearchStrategy[np.ndarray]:
    """Few numbers, so that many are equal, some 0 and some negative."""
    return hnp.arrays(np.float32, shape, elements=st.integers(-most, most).map(float), fill=st.nothing())


def read(written: str) -> float:
    """A number as it is written."""
    number = float(written.rstrip("%").replace("−", "-").replace(",", ""))
    return number / 100 if written.endswith("%") else number


@given(
    hnp.arrays(np.float32, (2, 3), elements=st.sampled_from([0.0, 0.05, 0.08, 0.12, 0.15, 0.5])),
    hnp.arrays(np.float32, (2, 3), elements=st.sampled_from([0.2, 0.85, 0.88, 0.92, 0.95, 1.0])),
)
def test_what_a_verdict_asks_of_a_head_is_what_the_heads_are_counted_by(differing, agreement):
    """The share and the correlation that the sentence names, applied to each head again."""
    nothing = np.zeros((2, 3), dtype=np.float32)
    numbers = {name: nothing.copy() for name in Claims.__dataclass_fields__}
    contribution = claim_facts.contribution(
        Claims(**numbers | {"other_strongest": differing, "rank_agreement": agreement})
    )
    stated = facts(measured(contribution)).numbers
    same, above = next((read(share), read(other)) for share, other in pairwise(stated) if share.endswith("%"))
    n_showing = sum(
        1 - float(other) > same + 1e-6 and float(order) > above + 1e-6
        for other, order in zip(differing.ravel(), agreement.ravel(), strict=True)
    )
    assert stated[:2] == (str(n_showing), "6")
    shares = share_text(mean(map(float, differing.ravel()))), f"+{mean(map(float, agreement.ravel())):.2f}"
    assert facts(measured(contribution)).has(*shares)


@given(whole(3, 4), st.sampled_from([0.5, 0.25, 2.0]), st.integers(2, 64), st.integers(0, 99))
def test_the_variance_of_products_with_and_without_the_scale(products, scale, d_k, seed):
    """Var(s x) = s² Var(x), of drawn products as of what the formula says: d_k and s² d_k."""
    numbers = [*map(float, products.ravel())]
    stated = facts(of_random(products, d_k, scale, seed=seed)).numbers
    factor = f"{scale:.3g}"
    assert stated[:4] == ("3", "4", str(seed), variance_text(pvariance(numbers)))
    assert stated[4:7] == (str(d_k), factor, variance_text(pvariance([scale * number for number in numbers])))
    assert stated[7] == str(d_k) and stated[-1] == variance_text(scale * scale * d_k)

    queries, keys = products[:2], products[1:, :3] + np.float32(0.5)
    own = facts(of_model(products.ravel(), scale, queries, keys)).numbers
    assert own[:3] == ("12", "4", variance_text(pvariance(numbers)))
    assert own[3:5] == (factor, variance_text(pvariance([scale * number for number in numbers])))
    assert own[-3:] == (
        *(number_text(pvariance([*map(float, side.ravel())])) for side in (queries, keys)),
        number_text(mean(numbers)),
    )


@given(st.integers(1, 30), st.integers(1, 12), st.booleans(), st.data())
def test_what_is_drawn_of_a_graph(n_query, n_key, is_cross, data):
    n_key = n_key if is_cross else n_query
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    allowed = rng.random((n_query, n_key)) < 0.6
    weights = rng.integers(0, 4, (n_query, n_key)) * allowed
    weights = weights / np.maximum(weights.sum(axis=1, keepdims=True), 1)
    pattern = small_records.pattern(
        weights.tolist(), allowed=allowed, kind="cross" if is_cross else "encoder"
    )
    edges = strongest_edges(pattern, data.draw(st.integers(0, n_query - 1)))
    drawn = [*zip(edges.query.tolist(), edges.key.tolist(), strict=True)]
    held = math.fsum(float(weights[cell]) for cell in drawn)
    total = math.fsum(weights.ravel())
    n_nodes = len({*edges.queries.tolist()}) + (len({*edges.keys.tolist()}) if is_cross else 0)
    n_tokens = n_query + n_key if is_cross else n_query
    stated = list(facts(drawn_words(edges, pattern)).numbers)
    if n_nodes < n_tokens:
        assert stated[:2] == [str(n_nodes), str(n_tokens)]
        del stated[:2]
    assert stated[:2] == [str(len({*drawn})), str(int(allowed.sum()))]
    assert stated[-1] == share_text(held / total if total else 0.0)


@given(st.data(), st.sampled_from(["tokens", "words"]))
def test_what_is_hidden_and_what_is_not_listed(data, unit):
    labels = [
        "[CLS]",
        *data.draw(st.lists(st.sampled_from(["cat", "##s", "door"]), min_size=1, max_size=12)),
        "[SEP]",
    ]
    n = len(labels)
    allowed = data.draw(masks(n, n)) | np.eye(n, dtype=bool)
    counts = np.where(allowed, data.draw(hnp.arrays(np.int64, (n, n), elements=st.integers(1, 4))), 0)
    axis = Axis.of(hand_made.tokens(labels))
    pattern = small_records.pattern(
        (counts / counts.sum(axis=1, keepdims=True)).tolist(), queries=axis, keys=axis, allowed=allowed
    )
    shown = Axis.of(axis.tokens, unit).without_special()
    hidden = pattern.arranged(shown, shown)
    left = [
        mean(math.fsum(float(pattern.weights[query, key]) for key in (0, n - 1)) for query in range(*span))
        for span in shown.spans.tolist()
    ]
    stated = facts(hidden_words(hidden)).numbers
    if max(left) > 0:  # to rounding: float32 may fall on the other side of half a last digit
        assert stated in {(share_text(mean(left) + nudge),) for nudge in (-1e-6, 0, 1e-6)}
    else:
        assert stated == ()
    assert hidden_words(pattern) == hidden_words(replace(hidden, measure="norms", scores=None)) == ""
    for row, of_query in enumerate(pattern.allowed.tolist()):
        listed = facts(listed_words(pattern, row))
        rest = sum(of_query) - MOST_BARS
        assert listed.quoted == (labels[row],)
        assert listed.numbers[-1:] == ((str(rest),) if rest > 0 else listed.numbers[-1:])
        assert ("not listed" in listed_words(pattern, row)) == (rest > 0)


@given(hnp.arrays(np.float32, st.integers(1, 5), elements=st.sampled_from([0.0, 0.25, 0.5, 1.75])))
def test_how_far_vectors_turn(change):
    numbers = [*map(float, change)]
    assert facts(change_words(change)).numbers[:2] == (number_text(mean(numbers)), number_text(max(numbers)))


@given(st.integers(2, 40), st.integers(0, 99), st.booleans())
def test_what_is_said_of_a_table_of_positions(n_position, seed, is_learned):
    table = np.random.default_rng(seed).integers(-3, 4, (n_position, 4)).astype(np.float32)
    table[:, 0] += 5 if seed % 2 else -5  # no vector is zero
    rows = [[*map(float, row)] for row in table]
    lengths = [math.hypot(*row) for row in rows]
    stated = facts(table_words(table)).numbers
    assert stated[:4] == (str(n_position), "4", number_text(min(lengths)), number_text(max(lengths)))
    assert stated[-1] == number_text(max(abs(value) for row in rows for value in row))

    def product(at: int, other: int) -> float:
        return math.fsum(a * b for a, b in zip(rows[at], rows[other], strict=True))

    likeness = facts(likeness_words(table, n_used=1)).numbers
    pairs = [(at, other) for at, other in ((0, 1), (0, 10), (20, 30)) if other < n_position]
    expected = [
        part
        for at, other in pairs
        for part in (str(at), str(other), number_text(product(at, other) / lengths[at] / lengths[other]))
    ]
    assert likeness == (*expected, "1")

    stated = facts(distances(table, table if is_learned else None)).numbers
    aparts = [number for number in (1, 5, 20) if number < n_position]
    of_pairs = {k: [product(p, p + k) for p in range(n_position - k)] for k in aparts}
    first = [part for k in aparts for part in (str(k), number_text(of_pairs[k][0]))]
    same = power_text(max(max(of_pairs[k]) - min(of_pairs[k]) for k in aparts))
    ends = [
        part
        for k in aparts
        for part in (str(k), number_text(min(of_pairs[k])), number_text(max(of_pairs[k])))
    ]
    assert stated == (*first, same, *(ends if is_learned else []))


LAYERS = st.builds(
    Layer,
    n_head=st.integers(2, 4),
    d_head=st.just(8),
    d_value=st.just(16),
    number_bytes=st.sampled_from([2, 4]),
    reach=st.integers(0, 3),
    causal=st.booleans(),
)


@given(
    LAYERS,
    st.integers(1, 6),
    st.integers(1, 6),
    st.sampled_from(["encoder", "decoder", "cross"]),
    st.sampled_from([None, 512]),
)
def test_the_limits_of_a_layer(layer, n_query, n_key, kind, limit):
    n_key = n_key if kind == "cross" else n_query
    view = SimpleNamespace(kind=kind, selection=SimpleNamespace(bundle=""))
    lines = limits(view, layer, n_query, n_key, limit)
    cells = [*np.ndindex(n_query, n_key)]
    if kind == "decoder":
        later = sum(key > query for query, key in cells)
        assert facts(lines[0]).numbers == (str(later), str(len(cells)))
    if kind == "cross":
        assert facts(lines[0]).numbers == (str(n_query), str(n_key), str(len(cells)))
    if limit is not None:
        held = quantity_text(layer.n_head * limit * limit * layer.number_bytes, "bytes")
        assert "512" in lines[-2] and held in lines[-2]
    of_one_head = 10**12 * layer.number_bytes
    assert lines[-1].index(quantity_text(of_one_head, "bytes")) < lines[-1].index(
        quantity_text(of_one_head * layer.n_head, "bytes")
    )


@given(LAYERS, st.sampled_from(["cells", "bytes", "multiplications"]))
def test_what_the_letters_of_the_formulas_stand_for(layer, quantity):
    stated = facts(symbols(quantity, layer, 7)).numbers
    width = sum(abs(key - 5) <= layer.reach and (key <= 5 or not layer.causal) for key in range(11))
    assert stated[:2] == (str(layer.n_head), str(width)) and stated[-1] == "7"
    assert ("8" in stated and "16" in stated) == (quantity == "multiplications")
    assert (str(layer.number_bytes) in symbols(quantity, layer, 7).split("$b$")[-1]) or quantity != "bytes"


@given(
    st.sampled_from(["memory", "time"]),
    st.permutations([3e6, 5e6]),
    st.sampled_from(["whole", "streaming", "rows"]),
)
def test_why_a_way_was_measured_no_further(reason, numbers, method):
    sentence = _stopped(
        Stop(method=method, n_token=2048, reason=reason, expected=numbers[0], granted=numbers[1])
    )
    unit = "bytes" if reason == "memory" else "seconds"
    expected, granted = (sentence.index(quantity_text(number, unit)) for number in numbers)
    assert sentence.startswith(WAY_NAMES[method]) and "2,048" in sentence and expected < granted


@given(st.integers(1, 300), st.sampled_from([torch.float32, torch.float16, torch.bfloat16]))
def test_the_bound_of_a_dot_product(n_term, dtype):
    """Higham's gamma in float32, and one rounding to the type: 1 + u lies between two numbers of the type, u from either."""
    u = Fraction(1, 2**24)
    own = Fraction(torch.finfo(dtype).eps) / 2
    gamma = n_term * u / (1 - n_term * u)
    assert dot_bound(n_term, dtype) == pytest.approx(float(gamma + own), rel=1e-12)
    number = torch.tensor(1 + float(own), dtype=torch.float64)
    off = abs(float(number.to(dtype)) - float(number)) / float(number)
    assert 0.9 * off <= float(own) <= dot_bound(1, dtype)


@given(whole(4), whole(4), st.sampled_from([0.0, 0.5, -1.25]), st.sampled_from([None, 2.0]), st.booleans())
def test_a_score_as_the_sum_that_it_is(query, key, bias, softcap, allowed):
    score = Score(query=query, key=key, scale=0.25, softcap=softcap, bias=bias, allowed=allowed)
    product = math.fsum(float(a) * float(b) for a, b in zip(query, key, strict=True))
    scaled = 0.25 * product
    value = (scaled if softcap is None else softcap * math.tanh(scaled / softcap)) + bias
    sentence = _sum(score)
    assert sentence.endswith(f"= {sum_text(value)}")
    assert f"{sum_text(product)} × 0.25" in sentence
    assert (sum_text(bias) in sentence.split("bias")[-1].split("=")[0]) if bias else ("bias" not in sentence)
    assert ("37.5%" in _outcome(score, 0.375)) == allowed


@given(
    hnp.arrays(np.int64, (4, 3), elements=st.integers(1, 4), fill=st.nothing()),
    hnp.arrays(np.int64, (4, 3), elements=st.integers(1, 4), fill=st.nothing()),
)
def test_the_query_whose_attention_a_map_misses_most(of_model_, of_map):
    labels = ["cat", "door", "it", "box"]
    axes = Axis.of(hand_made.tokens(labels)), Axis.of(hand_made.tokens(labels[:3]))
    first, second = (
        small_records.pattern(
            (counts / counts.sum(axis=1, keepdims=True)).tolist(), queries=axes[0], keys=axes[1]
        )
        for counts in (of_model_, of_map)
    )
    elsewhere = [
        math.fsum(max(0.0, float(b) - float(a)) for a, b in zip(*rows, strict=True))
        for rows in zip(first.weights, second.weights, strict=True)
    ]
    stated = facts(_missed(compare(first, second)))
    assert stated.numbers[0] == share_text(mean(elsewhere))
    if max(elsewhere) > 1e-6:
        assert elsewhere[labels.index(stated.quoted[0])] == pytest.approx(max(elsewhere), abs=1e-6)
        assert stated.numbers[-1] == share_text(max(elsewhere))


@pytest.mark.parametrize("n_tied", [1, 2, 4])
def test_queries_whose_attention_a_map_misses_as_much_are_counted(n_tied):
    axis = Axis.of(hand_made.tokens(["cat", "door", "it", "box"]))
    rows = [[0.25, 0.25, 0.25, 0.25]] * 4
    other = [[0.5, 0.5, 0.0, 0.0]] * n_tied + rows[n_tied:]
    first, second = (small_records.pattern(matrix, queries=axis, keys=axis) for matrix in (rows, other))
    sentence = _missed(compare(first, second))
    assert ("more" in sentence) == (n_tied > 1)
    assert f"“cat”{f' and {n_tied - 1} more' * (n_tied > 1)}, 50.0%" in sentence.replace("\\", "")


@given(
    whole(3, 2),
    whole(3, 2),
    st.sampled_from([0.0, 10.0]),
    st.sampled_from([None, 5.0]),
    st.sampled_from([0.0, 1.5]),
)
def test_what_the_parts_of_a_score_sum_to(of_query, of_key, gap, softcap, bias):
    names = ("token", "position", "biases")
    whole_query, whole_key = (vectors.astype(np.float64).sum(axis=0) for vectors in (of_query, of_key))
    summed = 0.5 * math.fsum(whole_query * whole_key)
    sentence = note_of_split(
        ScoreSources(
            kind="encoder",
            layer=0,
            head=0,
            query=0,
            key=1,
            sources=tuple(Source(name=name) for name in names),
            query_vectors=of_query.astype(np.float64),
            key_vectors=of_key.astype(np.float64),
            scale=0.5,
            product=summed + gap,
            softcap=softcap,
            bias=bias,
            allowed=gap == 0,
        )
    )
    numbers = [sum_text(summed), power_text(gap), sum_text(summed + gap)]
    first = sentence.split(" that the model used")[0]
    assert [first.index(numbers[0]), first.rindex(numbers[2])] == sorted(
        [first.index(numbers[0]), first.rindex(numbers[2])]
    )
    assert f"{numbers[1]} from the {numbers[2]}" in first
    assert ("more than rounding" in sentence) == (gap > 0)
    assert ("softcap of 5 " in sentence) == (softcap is not None)
    assert (f"bias of the two positions, {sum_text(bias)}" in sentence) == (bias > 0)
    assert ("may not see" in sentence) == (gap > 0)


@given(st.sampled_from([13, 40, 150, 300]), st.sampled_from([5, 140]), st.sampled_from([None, 12, 30, 200]))
def test_how_much_of_a_comparison_is_shown(n_query, n_key, around):
    """Parts have at most so many entries a side; from 129 entries on a cell is a block of as few as leave 128."""
    patterns = [small_records.pattern(np.full((n_query, n_key), 1 / n_key).tolist(), kind="cross")] * 2
    comparison = compare(*patterns)
    stated = list(facts(zoom_note(comparison, around)).numbers)
    is_part = around is not None and around < max(n_query, n_key)
    shown = [min(around, size) if is_part else size for size in (n_query, n_key)]
    if is_part:
        assert stated[:4] == [str(shown[0]), str(n_query), str(shown[1]), str(n_key)]
        del stated[:4]
    blocks = [next(n for n in range(1, 99) if n * 128 >= value) for value in shown]
    assert stated[:2] == ([*map(str, blocks)] if max(blocks) > 1 else [])


@given(st.lists(st.sampled_from([0.25, 0.5, -1.0, 4.0]), min_size=1, max_size=4))
def test_means_over_pairs_and_their_spread(numbers):
    averaged = OverPairs(pairs=np.array(numbers, dtype=np.float32))
    middle = mean(numbers)
    spread = None
    if len(numbers) > 1:
        spread = math.sqrt(sum((number - middle) ** 2 for number in numbers) / (len(numbers) - 1))
    written = "" if spread is None else f" ± {number_text(spread)}"
    assert prompts.mean_text(averaged) == f"{signed_text(middle)}{written}"
    assert f"{number_text(middle)}{written} for the clean prompts" in prompts.outcome_words(
        {"clean": averaged}
    )
    over = facts(prompts.over_words(len(numbers), math.nan if spread is None else spread)).numbers
    assert over == (str(len(numbers)), *([] if spread is None else [number_text(spread)]))


@given(
    hnp.arrays(np.float32, (2, 3), elements=st.sampled_from([1e-6, 3e-6, 1e-5])),
    hnp.arrays(np.float32, (2, 3), elements=st.sampled_from([1e-5, 1e-4])),
)
def test_the_difference_that_is_largest_beside_its_tolerance(differences, tolerances):
    sentence = _largest(small_records.check(differences, tolerances))
    parts = {place: float(differences[place]) / float(tolerances[place]) for place in np.ndindex(2, 3)}
    [place] = facts(sentence).heads
    assume(len({*parts.values()}) > 1)
    assert parts[place] == pytest.approx(max(parts.values()))
    assert sentence.startswith(power_text(float(differences[place])))
