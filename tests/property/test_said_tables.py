"""Rows of tables and lists, and the names that stand beside a finding: each cell is found again in what it is of, in plain Python.

Masks leave rows without a key, numbers are equal or 0, special tokens are hidden and words are merged.
"""

import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from attnviz.cost.streaming import stream_attention
from attnviz.effects.deletion import ChanceBand, Deletion, DeletionCurve
from attnviz.effects.input_attribution import METHODS
from attnviz.effects.logit_attribution import DirectParts, _of_sources
from attnviz.figures.numbers import number_text, share_text
from attnviz.heads.flow import Flow
from attnviz.lessons.history import Step
from attnviz.records import Axis, Head, bare
from tests import hand_made, small_records
from tests.app.screen import facts
from tests.drawing import MARKS, draw_few
from ui.rooms.all_heads.copying import copiers
from ui.rooms.cause.inputs.deletion import rows_of
from ui.rooms.cause.inputs.screen import NAMES
from ui.rooms.cause.lens.facts import strongest
from ui.rooms.cause.lens.heads import named_parts
from ui.rooms.door_experiment.near import other_query
from ui.rooms.explore.several_heads.lines import drawn_at_once
from ui.rooms.how_it_works.history import row_of
from ui.rooms.how_it_works.kinds_of_attention.tiles_and_sources import columns, off
from ui.rooms.many_texts.joint_map.picked_token import Link, in_words

pytestmark = MARKS
draw_few()

WORDS = ("cat", "door", "##s", "watching", "it")


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


@given(st.data(), st.permutations(range(1, 12)))
def test_the_table_of_deletion_curves(data, numbers):
    """Every cell of a method is the method's own, though methods are drawn in another order than they are ranked."""
    methods = data.draw(st.permutations(METHODS))[: data.draw(st.integers(1, 5))]
    areas = data.draw(st.lists(st.sampled_from([-0.5, 0.25, 0.75, 0.5]), min_size=5, max_size=5))
    none = np.zeros(2, dtype=np.float32)
    deletion = Deletion(
        removal="token_replaced",
        base=1.0,
        end=0.0,
        counts=np.arange(2),
        bins=np.ones(5, dtype=int),
        curves=tuple(
            DeletionCurve(
                method=method,
                order=np.arange(1),
                removed=none.copy(),
                kept=none.copy(),
                comprehensiveness=areas[at],
                sufficiency=numbers[at] / 16,
                n_as_good=numbers[at + 5],
            )
            for at, method in enumerate(methods)
        ),
        chance=ChanceBand(
            n_orders=199,
            seed=0,
            counts=np.arange(2),
            removed=np.zeros((2, 2), dtype=np.float32),
            kept=np.zeros((2, 2), dtype=np.float32),
            comprehensiveness=(-0.1, 0.2),
            sufficiency=(0.3, 0.4),
        ),
    )
    *rows, chance = rows_of(deletion)
    assert [float(row["comprehensiveness"].replace("−", "-")) for row in rows] == sorted(
        areas[: len(methods)], reverse=True
    )
    by_name = {NAMES[method]: at for at, method in enumerate(methods)}
    assert {row["method"] for row in rows} == {*by_name}
    for row in rows:
        at = by_name[row["method"]]
        assert row["comprehensiveness"] == number_text(areas[at])
        assert row["sufficiency"] == number_text(numbers[at] / 16)
        assert row["random orders as good"] == f"{numbers[at + 5]} of 199"
    assert (chance["comprehensiveness"], chance["sufficiency"]) == ("−0.100 to 0.200", "0.300 to 0.400")


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


@given(
    hnp.arrays(np.int64, (2, 3), elements=st.integers(1, 4), fill=st.nothing()),
    st.sampled_from(["fixed", "dot"]),
    st.booleans(),
    st.permutations([1234, 567]),
)
def test_the_row_of_a_way_to_attend(counts, way, alone, numbers):
    own, other = (counts / counts.sum(axis=1, keepdims=True)).astype(np.float32)
    step = Step(
        name=way,
        scores=None,
        weights=own,
        context=np.zeros(2, dtype=np.float32),
        other_weights=other,
        n_parameters=numbers[0],
        n_multiplications=numbers[1],
    )
    row = row_of(step, Axis.of(hand_made.tokens(["cat", "door", "it"])), alone=alone)
    strongest_keys = [
        f"“{label}”" for label, weight in zip(("cat", "door", "it"), own, strict=True) if weight == max(own)
    ]
    assert (
        row["strongest key"] == "all the same" if way == "fixed" else row["strongest key"] in strongest_keys
    )
    assert row["its weight"] == share_text(float(max(own)))
    changes = [abs(float(a) - float(b)) for a, b in zip(own, other, strict=True)]
    assert row["changes for the next query"] == ("–" if alone else share_text(max(changes)))
    assert (row["to learn"], row["multiplications"]) == tuple(f"{number:,}" for number in numbers)


@given(hnp.arrays(np.float32, (2, 3), elements=st.sampled_from([-0.5, 0.0, 0.5, 0.75, math.nan])))
def test_the_heads_that_copy(scores):
    known = {place: float(scores[place]) for place in np.ndindex(2, 3) if not math.isnan(scores[place])}
    copying = copiers(scores)
    if not known:
        assert copying is None
        return
    assert (copying.n_above, copying.n_head) == (sum(score > 0 for score in known.values()), len(known))
    assert copying.score == known[tuple(copying.most)] == max(known.values())
    assert copying.n_as_much == [*known.values()].count(max(known.values())) - 1


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


@given(st.data(), st.sampled_from(["query", "key"]))
def test_a_token_of_many_sentences_is_named_with_its_line(data, side):
    """Blank lines are counted as lines and are no sentences."""
    texts = data.draw(
        st.lists(st.lists(st.sampled_from(WORDS), min_size=2, max_size=3), min_size=2, max_size=3)
    )
    lines = sorted(data.draw(st.sets(st.integers(1, 9), min_size=len(texts), max_size=len(texts))))
    number = data.draw(st.integers(0, len(texts) - 1))
    collection = SimpleNamespace(
        tokens=[hand_made.tokens(text) for text in texts],
        line=np.array(lines),
        sentence=np.repeat(np.arange(len(texts)), [*map(len, texts)]),
        position=np.concatenate([np.arange(len(text)) for text in texts]),
    )
    first = sum(map(len, texts[:number]))
    own, other = data.draw(st.permutations(range(len(texts[number]))))[:2]
    stated = facts(in_words(collection, first + own, side, [Link(token=first + other, weight=0.375)]))
    assert stated.quoted == (texts[number][own], texts[number][other])
    assert stated.numbers[:2] == (str(number + 1), str(lines[number])) and stated.numbers[-1] == "37.5%"
    nobody = facts(in_words(collection, first + own, side, []))
    assert nobody.quoted == (texts[number][own],) and nobody.numbers[:2] == stated.numbers[:2]


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
        selection=SimpleNamespace(flow=SimpleNamespace(at_once=at_once)),
    )
    drawn = drawn_at_once(flow, view, 4 if key is None else key)
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


@given(whole(4, 3, 2), whole(2, 4, 2), whole(2, 4, 3), whole(4, 3), masks(1, 3, 4), st.integers(0, 2))
def test_what_a_head_adds_by_the_token_that_it_reads(queries, keys, values, along, allowed, position):
    """Weight times value along a direction; heads 0 and 1 share the first key and value, heads 2 and 3 the second."""
    allowed[..., 0] = True
    call = small_records.layer(query=queries, key=keys, value=values, scale=0.5, allowed=allowed)
    added = _of_sources(call, position, along.astype(np.float64))
    for head in range(4):
        group = head // 2
        counts = [
            math.exp(
                0.5
                * math.fsum(float(a) * float(b) for a, b in zip(queries[head, position], key, strict=True))
            )
            if allowed[0, position, at]
            else 0.0
            for at, key in enumerate(keys[group])
        ]
        for at, count in enumerate(counts):
            given_ = math.fsum(
                float(a) * float(b) for a, b in zip(values[group, at], along[head], strict=True)
            )
            assert added[head, at] == pytest.approx(count / math.fsum(counts) * given_, abs=1e-4)
