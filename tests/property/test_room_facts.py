"""Facts of the rooms that no record holds: orders, ties, selections and sums, each found again in plain Python.

Masks leave rows without a key, numbers are equal or 0, and queries and keys are of different texts.
"""

import math
from dataclasses import replace
from fractions import Fraction
from statistics import mean
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from attnviz.cost.streaming import stream_attention
from attnviz.effects.ablation import HeadEffects
from attnviz.effects.logit_attribution import DirectParts
from attnviz.figures.numbers import (
    cell_text,
    number_text,
)
from attnviz.heads import LABELS, strongest_pairs
from attnviz.heads.comparison import compare
from attnviz.heads.flow import Flow
from attnviz.maths.rounding import dot_bound
from attnviz.records import Axis, Head, bare
from tests import hand_made, small_records
from tests.drawing import MARKS, draw_few
from ui.components.head_film import darkest_from
from ui.components.head_grid import _colour
from ui.components.plotly_figure.heatmap_events import _cell, _normalisers, _picked
from ui.rooms.all_heads.heads_shown import Screen
from ui.rooms.all_heads.maps import best_first
from ui.rooms.cause.heads_off.further_effects import removal_orders
from ui.rooms.cause.lens.added_parts import named_parts, strongest
from ui.rooms.compare.side_by_side import most_changed, rows_note
from ui.rooms.door_experiment.near import other_query
from ui.rooms.explore.other_maps.trusted import lost_by_equal_weights
from ui.rooms.explore.several_heads import Screen as SeveralHeads
from ui.rooms.generate.step import candidate_rows
from ui.rooms.how_it_works.kinds_of_attention.tiles_and_sources import columns, off

pytestmark = MARKS
draw_few()


def masks(*shape: int) -> st.SearchStrategy[np.ndarray]:
    return hnp.arrays(np.bool_, shape, elements=st.integers(0, 2).map(bool), fill=st.nothing())


def whole(*shape: int, most: int = 3) -> st.SearchStrategy[np.ndarray]:
    """Few numbers, so that many are equal, some 0 and some negative."""
    return hnp.arrays(np.float32, shape, elements=st.integers(-most, most).map(float), fill=st.nothing())


@given(st.data(), st.integers(1, 5), st.integers(1, 3))
def test_a_softmax_that_is_read_tile_by_tile(data, n_key, tile):
    """Each column is the softmax over the keys that have been read, written out; a query may see none of them."""
    scores, values = data.draw(whole(3, n_key)), data.draw(whole(n_key, 2))
    allowed, row = data.draw(masks(3, n_key)), data.draw(st.integers(0, 2))
    tiles = list(
        stream_attention(
            torch.from_numpy(scores),
            torch.eye(n_key),
            torch.from_numpy(values),
            1.0,
            tile=tile,
            allowed=torch.from_numpy(allowed),
        )
    )

    def mean(query: int, stop: int) -> list[float]:
        """The mean of the values of the first keys, each counted by the exponential of its score."""
        seen = [key for key in range(stop) if allowed[query, key]]
        counts = [math.exp(float(scores[query, key])) for key in seen]
        return [
            math.fsum(count * float(values[key, at]) for count, key in zip(counts, seen, strict=True))
            / (math.fsum(counts) or 1.0)
            for at in range(2)
        ]

    direct = np.array([mean(query, n_key) for query in range(3)])
    before = -math.inf
    expected: list[list[float]] = []
    for start in range(0, n_key, tile):
        stop = min(start + tile, n_key)
        here = [float(scores[row, key]) for key in range(start, stop) if allowed[row, key]]
        so_far = [float(scores[row, key]) for key in range(stop) if allowed[row, key]]
        highest = max(so_far, default=-math.inf)
        expected.append(
            [
                max(here, default=-math.inf),
                highest,
                0.0 if before == -math.inf else math.exp(before - highest),
                math.fsum(math.exp(score - highest) for score in so_far),
                max(abs(a - b) for a, b in zip(mean(row, stop), direct[row], strict=True)),
            ]
        )
        before = highest
    n_read = data.draw(st.integers(1, len(tiles)))
    table = columns(tiles[:n_read], row, direct)
    for column, numbers in zip(table, zip(*expected[:n_read], strict=True), strict=True):
        assert column == pytest.approx(list(numbers), abs=1e-5)
    stop = min(n_read * tile, n_key)
    apart = max(
        abs(a - b) for query in range(3) for a, b in zip(mean(query, stop), direct[query], strict=True)
    )
    assert off(tiles[n_read - 1], direct) == pytest.approx(apart, abs=1e-5)


@given(st.integers(1, 9).flatmap(whole), st.integers(1, 9))
def test_the_parts_that_add_or_subtract_most(adds, most):
    largest = strongest(adds, most)
    sizes = [abs(float(adds[result])) for result in largest]
    assert sizes == sorted(sizes, reverse=True)
    assert len({*largest}) == len(largest) == min(most, sum(value != 0 for value in adds.tolist()))
    for place, value in enumerate(adds.tolist()):
        assert place in largest or value == 0 or all(abs(value) <= size for size in sizes)
        assert place not in largest or value != 0


@given(whole(2, 3), whole(2), whole(2), st.booleans())
def test_every_part_of_a_logit_has_its_own_name(heads, mlps, biases, is_ragged):
    if is_ragged:
        heads[1, 2] = np.nan
    parts = DirectParts(
        unit="logit", total=0.0, embedding=7.0, heads=heads, mlps=mlps, biases=biases, bias=8.0
    )
    named = named_parts(parts)
    assert named[0][:2] == ("Embedding", 7.0) and named[-1][:2] == ("Final biases", 8.0)
    by_title = {title: (adds, head) for title, adds, head in named}
    n_head = [3, 2 if is_ragged else 3]
    assert len(named) == len(by_title) == 2 + 2 * 2 + sum(n_head)
    for layer in range(2):
        assert by_title[f"Layer {layer}, MLP"] == (mlps[layer], None)
        assert by_title[f"Layer {layer}, biases"] == (biases[layer], None)
        for head in range(n_head[layer]):
            assert by_title[Head(layer, head).title] == (heads[layer, head], (layer, head))


@settings(max_examples=120)
@given(st.data(), st.sampled_from(["words", "tokens"]), st.booleans())
def test_the_query_beside_the_experiments_own(data, unit, hides_special):
    """It is "watching", or the query that gives the key least; never the selected word, whichever piece is selected."""
    labels = [
        "[CLS]",
        *data.draw(
            st.lists(st.sampled_from(("cat", "##s", "##ing", "it", "watching")), min_size=2, max_size=5)
        ),
        "[SEP]",
    ]
    n, keys = len(labels), ["[CLS]", "chat", "porte", "[SEP]"]
    is_cross = data.draw(st.booleans())
    keys = keys if is_cross else labels
    counts = data.draw(hnp.arrays(np.int64, (n, len(keys)), elements=st.integers(0, 3), fill=st.nothing()))
    axes = [Axis.of(hand_made.tokens(side)) for side in (labels, keys)]
    whole_matrix = small_records.pattern(
        (counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)).tolist(),
        queries=axes[0],
        keys=axes[1],
        kind="cross" if is_cross else "encoder",
    )
    shown = [Axis.of(axis.tokens, unit) for axis in axes]
    if hides_special:
        shown = [value.without_special() for value in shown]
    pattern = whole_matrix.arranged(*shown)
    query = data.draw(st.integers(1, n - 2))
    key = data.draw(st.sampled_from(pattern.keys.positions.tolist()))
    beside = other_query(pattern, query, key)
    written = [*map(bare, labels)]
    if "watching" in written and written.index("watching") != query:
        assert beside == written.index("watching")
        return
    own = next(span for span in pattern.queries.spans.tolist() if span[0] <= query < span[1])
    column = pattern.keys.positions.tolist().index(key)
    given_ = {
        span[0]: float(pattern.weights[row, column])
        for row, span in enumerate(pattern.queries.spans.tolist())
        if span != own and not labels[span[0]].startswith("[")
    }
    assume(given_)
    assert given_[beside] == min(given_.values())


@given(st.data(), st.integers(0, 6))
def test_the_lines_that_are_drawn_at_once(data, at_once):
    """All of the selected pair, and of the others the strongest; lines stand weakest first."""
    cells = data.draw(hnp.arrays(np.int64, (3, 4), elements=st.integers(0, 4), fill=st.nothing()))
    order = sorted(((int(cells[at]), at) for at in np.ndindex(3, 4) if cells[at]), key=lambda entry: entry[0])
    query, key = data.draw(st.sampled_from([None, 0, 1, 2])), data.draw(st.sampled_from([None, 0, 3]))
    flow = Flow(
        matrix=np.zeros(len(order), dtype=np.int64),
        query=np.array([at[0] for _, at in order], dtype=np.int64),
        key=np.array([at[1] for _, at in order], dtype=np.int64),
        weight=np.array([count for count, _ in order], dtype=np.float32),
        n_left_out=0,
        row_is_whole=True,
        share=1.0,
    )
    sides = [Axis.of(hand_made.tokens(["a", "b", "c", "d", "e"][:n])) for n in (4, 5)]
    shown = [side.where(np.arange(len(side)) < len(side) - 1) for side in sides]  # the last token is hidden
    view = SimpleNamespace(
        queries=shown[0],
        keys=shown[1],
        query=3 if query is None else query,
        key=4 if key is None else key,
    )
    drawn = SeveralHeads.drawn.func(SimpleNamespace(view=view, flow=flow, at_once=at_once))
    others = []
    for (weight, at), is_drawn in zip(order, drawn.tolist(), strict=True):
        if at[0] == query or at[1] == key:
            assert is_drawn
        else:
            others.append((weight, is_drawn))
    assert sum(is_drawn for _, is_drawn in others) == min(at_once, len(others))
    left_out = max((weight for weight, is_drawn in others if not is_drawn), default=0)
    assert all(weight >= left_out for weight, is_drawn in others if is_drawn)


@given(masks(2, 3, 3))
def test_a_key_is_seen_by_all_heads_together_where_any_head_sees_it(allowed):
    trace = hand_made.trace(np.full((1, 2, 3, 3), 1 / 3), ["cat", "door", "it"])
    layers = {"encoder": (replace(trace.layers["encoder"][0], allowed=allowed),)}
    trace = replace(trace, layers=layers)
    for query, key in np.ndindex(3, 3):
        seen = [bool(allowed[head, query, key]) for head in range(2)]
        assert [trace.pattern(0, head).allowed[query, key] for head in range(2)] == seen
        assert trace.pattern(0, None).allowed[query, key] == any(seen)


@given(hnp.arrays(np.float32, (2, 3), elements=st.integers(-40, 40).map(float), unique=True))
def test_heads_are_removed_by_the_size_of_their_effects(effects):
    orders = removal_orders(HeadEffects(kind="encoder", ablation="zero", base=0.0, heads=effects))
    for name, way in (("smallest effect first", 1), ("largest effect first", -1)):
        sizes = [way * abs(float(effects[head])) for head in orders[name]]
        assert sizes == sorted(sizes)
        assert {*orders[name]} == {Head(*place) for place in np.ndindex(2, 3)}


@given(masks(3, 4), hnp.arrays(np.int64, (3, 4), elements=st.integers(1, 9), fill=st.nothing()))
def test_what_equal_weights_lose(allowed, counts):
    """KL(A || equal weights over the keys that a query may see), row by row."""
    counts = np.where(allowed, counts, 0)
    weights = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    lost = []
    for row, seen in zip(weights.tolist(), allowed.tolist(), strict=True):
        equal = 1 / max(sum(seen), 1)
        lost.append(sum(value * math.log(value / equal) for value in row if value))
    loss = lost_by_equal_weights(small_records.pattern(weights.tolist(), allowed=allowed))
    assert loss == pytest.approx(mean(lost), abs=1e-6)


@st.composite
def two_texts(draw: st.DrawFn):
    """Matrices of two texts with some words in common, queries apart from keys or not."""
    sides = []
    for _ in range(2):
        rows, columns = (
            draw(st.lists(st.sampled_from(("cat", "door", "it", "box")), min_size=1, max_size=4, unique=True))
            for _ in range(2)
        )
        counts = draw(
            hnp.arrays(np.int64, (len(rows), len(columns)), elements=st.integers(1, 5), fill=st.nothing())
        )
        axes = [Axis.of(hand_made.tokens(labels)) for labels in (rows, columns)]
        cells = counts / counts.sum(axis=1, keepdims=True)
        sides.append(small_records.pattern(cells.tolist(), queries=axes[0], keys=axes[1], kind="cross"))
    return sides


@given(two_texts(), st.data(), st.booleans(), st.sampled_from(["weights", "norms"]))
def test_the_queries_whose_rows_differ_most(sides, data, renormalise, measured):
    """Half the sum of a row's differences; a share of attention only where rows of both sum to 1."""
    shown = []
    for side in sides:
        keep = data.draw(st.lists(st.booleans(), min_size=len(side.keys), max_size=len(side.keys)))
        keys = side.keys.where(np.array([True, *keep[1:]]))
        shown.append(replace(side, measure=measured).arranged(side.queries, keys, renormalise=renormalise))
    comparison = compare(*shown)
    changes = {}
    for row, (first, second) in enumerate(comparison.queries.pairs.tolist()):
        cells = [
            (
                float(shown[0].weights[first, a]) if a >= 0 else 0.0,
                float(shown[1].weights[second, b]) if b >= 0 else 0.0,
            )
            for a, b in comparison.keys.pairs.tolist()
        ]
        if min(first, second) >= 0:
            changes[row] = sum(abs(a - b) for a, b in cells) / 2
    order = most_changed(comparison)
    assert {*order} >= {row for row, change in changes.items() if change > 1e-6}
    assert [changes[row] for row in order] == pytest.approx(
        sorted((changes[row] for row in order), reverse=True), abs=1e-6
    )
    are_whole = all(np.allclose(value.weights.sum(axis=1), 1) for value in shown)
    assert ("share of its attention" in rows_note(comparison)) == (are_whole and measured == "weights")


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


HEADS = [Head(*place) for place in np.ndindex(2, 3)]


def shares(*shape: int) -> st.SearchStrategy[np.ndarray]:
    """Shares of 1 on either side of a half."""
    elements = st.sampled_from([0.125, 0.375, 0.625, 0.875])
    return hnp.arrays(np.float32, shape, elements=elements, fill=st.nothing())


@settings(max_examples=90)
@given(st.data(), st.sampled_from(["none", "previous", "cls", "entropy", "all", "next"]))
def test_the_heads_that_are_kept(data, label):
    """Those that bear the label, or none at all, and whose number is in the range; of layers with fewer heads only those there are."""
    marks = [LABELS[name] for name in ("previous", "cls", "entropy")]
    borne = {mark: data.draw(hnp.arrays(np.bool_, (2, 3), fill=st.nothing())) for mark in marks}
    numbers = data.draw(shares(2, 3))
    low, high = data.draw(st.sampled_from([None, 0.25, 0.5])), data.draw(st.sampled_from([None, 0.75]))
    heads = tuple(HEADS[: data.draw(st.sampled_from([5, 6]))])
    chosen = SimpleNamespace(grid="entropy", label=label, lowest=low, highest=high)
    view = SimpleNamespace(
        selection=SimpleNamespace(of=lambda record: chosen),
        trace=SimpleNamespace(shape=lambda kind: (2, 3), heads=lambda kind: heads),
        kind="encoder",
    )
    screen = Screen(view=view, cells=None, numbers={"entropy": numbers}, labels=borne, names=None)
    for head in HEADS:
        bears = [mark for mark in marks if borne[mark][head]]
        is_asked = label == "all" or (not bears if label == "none" else LABELS[label] in bears)
        number = float(numbers[head])
        is_within = (low is None or number >= low) and (high is None or number <= high)
        assert screen.is_kept[head] == (head in heads and is_asked and is_within)


@given(st.lists(st.sampled_from([-0.5, -0.25, 0.0, 0.25, math.nan, None]), min_size=6, max_size=6))
def test_the_maps_that_stand_first(correlations):
    """The lowest correlation first, then maps without one, then maps that are not made."""
    results = [
        None
        if correlation is None
        else SimpleNamespace(in_map=replace(small_records.PERFECT, order_correlation=correlation))
        for correlation in correlations
    ]
    maps = [
        [SimpleNamespace(points=None if correlations[3 * layer + head] is None else 0) for head in range(3)]
        for layer in range(2)
    ]
    placed = {head: result for head, result in zip(HEADS, results, strict=True) if result is not None}
    screen = SimpleNamespace(settings=SimpleNamespace(order="best"), heads=HEADS, placed=placed)
    ranked = best_first(screen, maps)
    assert sorted(ranked) == HEADS
    in_order = [correlations[HEADS.index(head)] for head in ranked]
    known = [
        correlation for correlation in in_order if correlation is not None and not math.isnan(correlation)
    ]
    assert known == sorted(known) == in_order[: len(known)]
    n_made = sum(correlation is not None for correlation in correlations)
    assert all(correlation is not None for correlation in in_order[:n_made])


@given(st.data(), st.booleans(), st.booleans())
def test_the_strongest_pairs_of_a_head(data, special, itself):
    labels = ["[CLS]", "cat", "door", "[SEP]"]
    counts = data.draw(hnp.arrays(np.int64, (4, 4), elements=st.integers(0, 3), fill=st.nothing()))
    axis = Axis.of(hand_made.tokens(labels))
    pattern = small_records.pattern((counts / 12).tolist(), queries=axis, keys=axis)
    count = data.draw(st.integers(1, 16))
    pairs = strongest_pairs(pattern, count, special=special, itself=itself)
    counted = {
        (row, column): float(pattern.weights[row, column])
        for row, column in np.ndindex(4, 4)
        if counts[row, column] and (special or not {row, column} & {0, 3}) and (itself or row != column)
    }
    assert len(pairs) == min(count, len(counted))
    left_out = [weight for place, weight in counted.items() if place not in {pair[:2] for pair in pairs}]
    for row, column, weight in pairs:
        assert counted[row, column] == weight >= max(left_out, default=0)
    assert [pair.weight for pair in pairs] == sorted((pair.weight for pair in pairs), reverse=True)


def softmax(scores: list[float]) -> list[float]:
    """Shares of the exponentials; 0 for minus infinity, and everywhere where nothing may be seen."""
    counts = [math.exp(score) for score in scores]
    return [count / (math.fsum(counts) or 1.0) for count in counts]


@given(st.lists(whole(50, most=20), min_size=1, max_size=2))
def test_one_number_in_a_hundred_is_beyond_the_darkest_tone(vectors):
    sizes = sorted(abs(float(number)) for vector in vectors for number in vector)
    limit = darkest_from([None, *vectors])
    beyond = sum(size > limit for size in sizes)
    assert beyond <= math.ceil(0.01 * len(sizes))
    assert limit >= sizes[math.floor(0.99 * (len(sizes) - 1))] or limit == 1.0


@given(st.data(), st.permutations([0.5, 0.25, 0.125, 0.0625]))
def test_the_candidates_of_a_step(data, chances):
    """The written token is among them, or is added with its own probability, and is the one that is marked."""
    listed = data.draw(st.permutations([10, 11, 12, 13]))[:3]
    written = data.draw(st.sampled_from([10, 11, 12, 13]))
    step = data.draw(st.integers(0, 1))
    ids = [[90, 91, 92], [93, 94, 95]]
    ids[step] = listed
    labels = [tuple(f"t{value}" for value in row) for row in ids]
    written_all = [96, 97]
    written_all[step] = written
    probabilities = np.array([0.01, 0.02])
    continuation = SimpleNamespace(
        tokens=SimpleNamespace(ids=np.array([1, 2, *written_all])),
        n_read=2,
        written=tuple(f"t{token_id}" for token_id in written_all),
        probabilities=probabilities,
        candidate_ids=np.array(ids),
        candidates=tuple(labels),
        candidate_probabilities=np.array([chances[:3], chances[:3]]),
    )
    text = SimpleNamespace(continuation=continuation, ids=written_all)
    row_ids, rows = candidate_rows(text, step)
    expected = dict(zip(listed, chances[:3], strict=True))
    expected.setdefault(written, float(probabilities[step]))
    assert dict(zip(row_ids, [row.length for row in rows], strict=True)) == expected
    assert [row.amount for row in rows] == [number_text(expected[row_id]) for row_id in row_ids]
    assert [row.text for row in rows] == [f"t{row_id}" for row_id in row_ids]
    assert [token_id for token_id, row in zip(row_ids, rows, strict=True) if row.picked] == [written]


@given(whole(2, 3), st.booleans(), st.booleans())
def test_colours_and_numbers_of_a_grid_of_heads(numbers, signed, is_ragged):
    """A signed scale has 0 in its middle and ends as far below as above; another goes from 0, or lower, to the largest."""
    if is_ragged:
        numbers[1, 2] = np.nan
    cells: list[list[dict[str, object]]] = [[{} for _ in range(3)] for _ in range(2)]
    legend = _colour(cells, numbers, "light", signed=signed)
    known = [float(value) for value in numbers.ravel() if not math.isnan(value)]
    low, high = min([0.0, *known]), max([0.0, *known])
    if signed:
        high = max(map(abs, known))
        low = -high
    assert legend["low"] == ("0" if low == 0 else cell_text(low)) and legend["high"] == cell_text(high)
    steps = legend["steps"]
    for layer, head in np.ndindex(2, 3):
        number, cell = float(numbers[layer, head]), cells[layer][head]
        assert cell["label"] == ("–" if math.isnan(number) else cell_text(number))
        if high > low and number in (low, high):
            assert cell["fill"] == steps[0 if number == low else -1]
        if signed and high > low and number == 0:
            assert cell["fill"] == steps[len(steps) // 2]


@given(whole(3, 4), masks(3, 4), st.integers(0, 2), st.integers(0, 3))
def test_what_turns_a_weight_into_its_score(scores, allowed, query, key):
    """score - ln(weight) is the logarithm of the row's sum of exponentials."""
    rows = [
        [float(score) if seen else -math.inf for score, seen in zip(*both, strict=True)]
        for both in zip(scores, allowed, strict=True)
    ]
    pattern = small_records.pattern(
        [softmax(row) for row in rows],
        scores=np.array(rows, dtype=np.float32),
        allowed=allowed,
        kind="cross",
    )
    normalisers = _normalisers(pattern)
    for row, normaliser in zip(rows, normalisers, strict=True):
        total = math.fsum(math.exp(score) for score in row)
        assert normaliser == (pytest.approx(math.log(total), abs=1e-5) if total else None)
    sentence = _picked(pattern, _cell(pattern, (query, key)))
    assert number_text(float(pattern.weights[query, key])) in sentence.split(", score")[0]
    assert sentence.endswith(f"score {number_text(rows[query][key])}")
