"""Heads and maps that are named, kept or put first, and what a tour or a note says of rows: checked head by head and row by row."""

import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from attnviz.effects.ablation import HeadEffects
from attnviz.figures.numbers import number_text, signed_text
from attnviz.heads import LABELS, PROBES, strongest_pairs
from attnviz.heads.probes import HeadProbes
from attnviz.records import Axis, Head
from tests import hand_made, small_records
from tests.app.screen import facts
from tests.drawing import MARKS, draw_few
from tests.drawn_parts import PartOfView
from ui.rooms.all_heads.maps.layout import best_first
from ui.rooms.all_heads.screen import Screen
from ui.rooms.cause.heads_off.grid import said_of
from ui.rooms.compare.patching.heatmap import _exchanged
from ui.rooms.explore.other_maps.layout import points_of
from ui.rooms.explore.stage.tour import _cells
from ui.rooms.how_it_works.step_by_step.to_vectors import mean_and_spread, root
from ui.words.head_names import names_of_probes, names_said

pytestmark = MARKS
draw_few()

HEADS = [Head(*place) for place in np.ndindex(2, 3)]


def shares(*shape: int) -> st.SearchStrategy[np.ndarray]:
    """Shares of 1 on either side of a half."""
    elements = st.sampled_from([0.125, 0.375, 0.625, 0.875])
    return hnp.arrays(np.float32, shape, elements=elements, fill=st.nothing())


@given(st.data())
def test_what_a_head_is_called(data):
    """Each name stands with its own mean, which is more than half, and none is left out."""
    means = {name: data.draw(shares(2, 3)) for name in PROBES}
    probes = HeadProbes(
        kind="encoder",
        means=means,
        spreads={name: np.full((2, 3), 0.0625, dtype=np.float32) for name in PROBES},
        n_token=8,
        n_text=2,
        provenance=small_records.PROVENANCE,
    )
    for head in HEADS:
        expected = [
            f"{probe.called} {number_text(float(means[name][head]))}"
            for name, probe in PROBES.items()
            if means[name][head] > 0.5
        ]
        assert names_said(names_of_probes(probes), head) == ", ".join(expected)
    assert names_said(None, HEADS[0]) == ""


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
        selection=SimpleNamespace(all_heads=chosen),
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
    view = SimpleNamespace(
        selection=SimpleNamespace(maps=SimpleNamespace(order="best")),
        trace=SimpleNamespace(heads=lambda kind: tuple(HEADS)),
        kind="encoder",
    )
    ranked = best_first(maps, SimpleNamespace(results=results), view)
    assert sorted(ranked) == HEADS
    in_order = [correlations[HEADS.index(head)] for head in ranked]
    known = [
        correlation for correlation in in_order if correlation is not None and not math.isnan(correlation)
    ]
    assert known == sorted(known) == in_order[: len(known)]
    n_made = sum(correlation is not None for correlation in correlations)
    assert all(correlation is not None for correlation in in_order[:n_made])


@given(st.integers(1, 5), st.integers(1, 5), st.booleans())
def test_the_points_of_a_map(n_query, n_key, has_values):
    """A query for each query token; a key, and a value where they are drawn, for each key token."""
    view = PartOfView(
        kind="cross",
        trace=SimpleNamespace(query_tokens=lambda kind: range(n_query), key_tokens=lambda kind: range(n_key)),
    )
    assert points_of(view, {"values": has_values}) == n_query + n_key + has_values * n_key


@given(st.data(), st.booleans(), st.sampled_from(["weights", "norms"]))
def test_whether_rows_add_up_to_all(data, renormalise, measure):
    counts = data.draw(hnp.arrays(np.int64, (4, 4), elements=st.integers(0, 2), fill=st.nothing()))
    assume(counts[:, 1:3].sum(axis=1).all())  # each row has something left
    axis = Axis.of(hand_made.tokens(["[CLS]", "cat", "door", "[SEP]"]))
    whole = small_records.pattern(
        (counts / counts.sum(axis=1, keepdims=True)).tolist(),
        queries=axis,
        keys=axis,
        scores=None,
        measure=measure,
    )
    pattern = whole.arranged(axis.without_special(), axis.without_special(), renormalise=renormalise)
    sentence = _cells(pattern)
    are_whole = np.allclose(pattern.weights.sum(axis=1), 1)
    if measure == "norms" and not renormalise:
        assert "100%" not in sentence
    else:
        assert "100%" in sentence and ("with what is hidden" in sentence) == (not are_whole)


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


@given(shares(2, 3), st.sampled_from([0.25, 0.5]))
def test_what_is_said_of_a_head_that_is_off(heads, base):
    effects = HeadEffects(kind="encoder", ablation="zero", base=base, heads=heads)
    for head in HEADS:
        outcome = float(heads[head])
        assert facts(said_of(effects, head)).numbers == (signed_text(outcome - base), number_text(outcome))


@given(st.integers(1, 7))
def test_the_tokens_that_are_exchanged(n_differing):
    tokens = hand_made.tokens([f"a{at}" for at in range(7)]), hand_made.tokens([f"b{at}" for at in range(7)])
    stated = facts(_exchanged(*tokens, range(n_differing)))
    pairs = [*zip(stated.quoted[::2], stated.quoted[1::2], strict=True)]
    assert pairs == [(f"a{at}", f"b{at}") for at in range(len(pairs))]
    n_more = n_differing - len(pairs)
    assert stated.numbers == ((str(n_more),) if n_more else ())


@given(hnp.arrays(np.float64, 5, elements=st.integers(-4, 4).map(float), fill=st.nothing()))
def test_what_a_norm_takes_from_a_vector(vector):
    numbers = vector.tolist()
    mean = math.fsum(numbers) / 5
    spread = math.sqrt(math.fsum((number - mean) ** 2 for number in numbers) / 5)
    formula = mean_and_spread(vector, 3)
    assert formula.split(r", \quad ") == [
        rf"\mu_{{3}} \approx {number_text(mean)}",
        rf"\sigma_{{3}} \approx {number_text(spread)}",
    ]
    squares = math.sqrt(math.fsum(number * number for number in numbers) / 5)
    assert root(vector, 3).endswith(number_text(squares))
