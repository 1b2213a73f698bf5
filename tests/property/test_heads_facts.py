"""Places of words, segments and parts of two texts, and probes over several texts: found again in plain Python.

Queries and keys are of different texts, or different parts of one, so that mixing them up is noticed.
"""

from dataclasses import replace
from statistics import mean, pstdev
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from attnviz.heads import probes
from attnviz.heads.cells import on_both_axes, places, whole_axis
from attnviz.heads.comparison import compare
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
def test_where_entries_stand(given_):
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

        patch.setattr(probes, "statistics_on", statistics)
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
