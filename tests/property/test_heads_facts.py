"""Places of words, segments and parts of two texts, and probes over several texts: found again in plain Python.

Queries and keys are of different texts, or different parts of one, so that mixing them up is noticed.
"""

import csv
import io
from dataclasses import replace
from statistics import mean, pstdev
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from attnviz.heads import probes
from attnviz.heads.cells import distances, on_both_axes, places, whole_axis
from attnviz.heads.comparison import compare, comparison_csv
from attnviz.records import Axis
from tests import hand_made, small_records
from tests.drawing import MARKS, draw_few, pieces_of_words

pytestmark = MARKS
draw_few(20)


@st.composite
def two_axes(draw: st.DrawFn):
    """Two axes of one text: tokens or words, each with some entries left out."""
    tokens = hand_made.tokens(["[CLS]", *draw(pieces_of_words(2, 4)), "[SEP]"])
    axes = []
    for _ in range(2):
        axis = Axis.of(tokens, draw(st.sampled_from(["tokens", "words"])))
        keep = np.array(draw(st.lists(st.booleans(), min_size=len(axis), max_size=len(axis))))
        keep[draw(st.integers(0, len(axis) - 1))] = True
        axes.append(axis.where(keep))
    return tokens, *axes


@given(two_axes())
def test_how_far_entries_are_apart(given_):
    """Counted in entries: tokens that an entry of either axis joins are one, all others one each."""
    tokens, queries, keys = given_
    joined: list[set[int]] = [{at} for at in range(len(tokens))]
    for first, stop in [*queries.spans.tolist(), *keys.spans.tolist()]:
        together = [group for group in joined if group & set(range(first, stop))]
        joined = [group for group in joined if group not in together] + [set().union(*together)]
    joined.sort(key=min)
    assert whole_axis(queries, keys).spans.tolist() == [[min(group), max(group) + 1] for group in joined]
    at = [
        [next(number for number, group in enumerate(joined) if int(p) in group) for p in axis.positions]
        for axis in (queries, keys)
    ]
    assert [place.tolist() for place in places(queries, keys)] == at
    assert distances(queries, keys).tolist() == [[abs(a - b) for b in at[1]] for a in at[0]]
    if len(set(at[0])) == len(at[0]) and len(set(at[1])) == len(at[1]):
        rows, columns = on_both_axes(queries, keys)
        expected = {(at[0].index(entry), at[1].index(entry)) for entry in {*at[0]} & {*at[1]}}
        assert {*zip(rows.tolist(), columns.tolist(), strict=True)} == expected


@given(
    st.lists(
        hnp.arrays(np.float32, (2, 3), elements=st.sampled_from([0.0, 0.25, 1.0]), fill=st.nothing()),
        min_size=3,
        max_size=3,
    )
)
@pytest.mark.stand_ins
def test_probes_are_means_over_the_texts(tables):
    """Of three texts, so that a mean is no median; each number with the spread of its own."""
    tokens = hand_made.tokens(["[CLS]", "a", "b", "a", "b"])
    trace = SimpleNamespace(
        tokens=tokens, kinds=("encoder", "cross"), query_tokens=lambda kind: tokens, shape=lambda kind: (2, 3)
    )
    texts = iter(tables)
    done: list[float] = []
    names = [probe.statistic for probe in probes.PROBES.values()]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(probes, "trace_repeated", lambda model, n_token, seed: trace)

        def statistics(trace, kind, queries, keys, *, names):
            assert kind == "encoder"
            table = next(texts)
            return {name: table / (number + 1) for number, name in enumerate(names[:-1])}

        patch.setattr(probes, "statistics", statistics)
        model = SimpleNamespace(provenance=small_records.PROVENANCE)
        by_kind = probes.probe_heads(model, seeds=(1, 2, 3), progress=done.append)
    assert list(by_kind) == ["encoder"] and done == pytest.approx([1 / 3, 2 / 3, 1])
    of = by_kind["encoder"]
    assert (of.n_token, of.n_text) == (2, 3)
    for number, name in enumerate(probes.PROBES):
        if number == len(names) - 1:
            assert np.isnan(of.means[name]).all()  # no head may see what it asks for
            continue
        for at in np.ndindex(2, 3):
            numbers = [float(table[at]) / (number + 1) for table in tables]
            assert of.means[name][at] == pytest.approx(mean(numbers), abs=1e-6)
            assert of.spreads[name][at] == pytest.approx(pstdev(numbers), abs=1e-6)


WORDS = ("cat", "door", "it", "box", "the")


@st.composite
def cross_sides(draw: st.DrawFn):
    patterns = []
    for _ in range(2):
        axes = []
        for _ in range(2):
            labels = draw(st.lists(st.sampled_from(WORDS), min_size=1, max_size=4, unique=True))
            border = draw(st.integers(0, len(labels)))
            segment = (np.arange(len(labels)) >= border).astype(np.int64)
            axes.append(Axis.of(replace(hand_made.tokens(labels), segment=segment)))
        counts = draw(
            hnp.arrays(np.int64, tuple(map(len, axes)), elements=st.integers(0, 6), fill=st.nothing())
        )
        allowed = draw(
            hnp.arrays(np.bool_, counts.shape, elements=st.integers(0, 3).map(bool), fill=st.nothing())
        )
        hidden = draw(st.sampled_from([0.0, 0.5]))
        lost = np.zeros(len(counts), dtype=np.float32)
        lost[-1] = hidden
        patterns.append(
            small_records.pattern(
                np.where(allowed, counts / 8, 0).tolist(),
                queries=axes[0],
                keys=axes[1],
                kind="cross",
                allowed=allowed,
                hidden_weight=lost,
                is_renormalised=draw(st.booleans()),
            )
        )
    return patterns


@given(cross_sides(), st.data())
@pytest.mark.stand_ins
def test_two_matrices_on_common_axes(both, data):
    first, second = both
    comparison = compare(first, second)
    for alignment, axes in (
        (comparison.queries, (first.queries, second.queries)),
        (comparison.keys, (first.keys, second.keys)),
    ):
        for (here, there), segment in zip(alignment.pairs.tolist(), alignment.segment.tolist(), strict=True):
            assert segment == int(axes[0].segment[here] if here >= 0 else axes[1].segment[there])
    whole = [not pattern.hidden_weight.any() for pattern in both]
    assert comparison.rows_are_whole == (all(whole) or all(pattern.is_renormalised for pattern in both))

    lines = [*csv.reader(io.StringIO(comparison_csv(comparison).decode("utf-8-sig")))]
    assert lines[0] == ["query A", "query B", "key A", "key B", "A", "B", "B - A"]
    cells = [(q, k) for q in comparison.queries.pairs.tolist() for k in comparison.keys.pairs.tolist()]
    assert len(lines) == 1 + len(cells)
    for (query, key), line in zip(cells, lines[1:], strict=True):
        names = []
        for pair, axes in ((query, (first.queries, second.queries)), (key, (first.keys, second.keys))):
            names += [
                f"{at} {axis.labels[at]}" if at >= 0 else "" for at, axis in zip(pair, axes, strict=True)
            ]
        assert line[:4] == names
        numbers = []
        for side, pattern in enumerate(both):
            at = query[side], key[side]
            numbers.append(float(pattern.weights[at]) if min(at) >= 0 and pattern.allowed[at] else None)
        assert [float(cell) if cell else None for cell in line[4:6]] == numbers
        has_both = min(*query, *key) >= 0 and numbers != [None, None]
        change = (numbers[1] or 0.0) - (numbers[0] or 0.0)
        assert (float(line[6]) == pytest.approx(change, abs=1e-6)) if has_both else (line[6] == "")

    row, column = (
        data.draw(st.integers(0, len(comparison.queries) - 1)),
        data.draw(st.integers(0, len(comparison.keys) - 1)),
    )
    length = data.draw(st.integers(1, 5))
    part = comparison.around(row, column, length)
    for of_part, of_whole, at in (
        (part.queries, comparison.queries, row),
        (part.keys, comparison.keys, column),
    ):
        assert len(of_part) == min(length, len(of_whole))
        firsts = [
            start
            for start in range(len(of_whole))
            if labels_of(of_whole)[start : start + len(of_part)] == labels_of(of_part)
        ]
        assert any(start <= at < start + len(of_part) for start in firsts)
    np.testing.assert_equal(part.first_weights.shape, (len(part.queries), len(part.keys)))
    assert len(part.row_change) == len(part.queries)


def labels_of(alignment) -> list[tuple[str, str]]:
    return [
        tuple(
            "" if at < 0 else axis.labels[at]
            for at, axis in zip(pair, (alignment.first, alignment.second), strict=True)
        )
        for pair in alignment.pairs.tolist()
    ]


def test_queries_and_keys_of_two_texts_are_paired_each_with_their_own():
    """Both texts have as many tokens, in both matrices."""
    first, second = (
        small_records.pattern(
            np.zeros((2, 2)).tolist(),
            queries=Axis.of(hand_made.tokens(["it", "ran"])),
            keys=Axis.of(hand_made.tokens(labels)),
            kind="cross",
        )
        for labels in (["cat", "door"], ["door", "box"])
    )
    comparison = compare(first, second)
    assert labels_of(comparison.queries) == [("it", "it"), ("ran", "ran")]
    assert labels_of(comparison.keys) == [("cat", ""), ("door", "door"), ("", "box")]


@pytest.mark.parametrize("side", ["queries", "keys", "neither"])
def test_texts_that_are_split_otherwise(side):
    """Where the queries' text is split otherwise, or the keys' alone."""
    sides = []
    for number in range(2):
        axes = []
        for name in ("queries", "keys"):
            splits = ["do", "##or"] if name == side and number else ["door"]
            axes.append(Axis.of(replace(hand_made.tokens(splits), text="door")))
        sides.append(
            small_records.pattern(
                np.zeros(tuple(map(len, axes))).tolist(), queries=axes[0], keys=axes[1], kind="cross"
            )
        )
    assert compare(*sides).splits_differ == compare(*sides[::-1]).splits_differ == (side != "neither")
