"""Every number of a caption is its own: the number of the sentence is found again in what it is said of, in plain Python.

Numbers of an example differ unless drawn equal, so that mixing them up is noticed.
"""

import math
from dataclasses import replace
from statistics import mean, stdev
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from attnviz.effects.ablation import HeadEffects
from attnviz.effects.input_attribution import InputAttribution
from attnviz.effects.over_pairs import mean_patches
from attnviz.effects.patching import PatchEffects
from attnviz.effects.score_sources import ScoreSources, Source
from attnviz.figures.numbers import number_text, percent_text, share_text
from attnviz.heads import claim_facts
from attnviz.heads.claims import measure
from attnviz.heads.comparison import compare
from attnviz.maths.gradients import PathIntegral
from attnviz.records import Axis, Chance, Head
from tests import hand_made, small_records
from tests.app.screen import facts
from ui.rooms.cause.heads_off.together import removal_orders
from ui.rooms.cause.inputs.sheet import sum_row
from ui.rooms.compare.largest import most_changed, rows_note
from ui.rooms.compare.patching.over_set import finding_of_set
from ui.rooms.compare.words import without_partner
from ui.rooms.explore.other_maps.reliability import lost_by_equal_weights
from ui.rooms.explore.other_maps.score_sources import leading
from ui.rooms.generate.branches import difference_words
from ui.rooms.how_it_works.kinds_of_attention import cells_left
from ui.rooms.myths import precedence
from ui.words import findings

pytestmark = [
    pytest.mark.slow,
    # Where types are checked, beartype draws which items of a tuple it looks at, while records are made here too.
    pytest.mark.filterwarnings("ignore:Do not use the `random` module"),
]

settings.register_profile("attnviz", deadline=None, derandomize=True, max_examples=30)
settings.load_profile("attnviz")


def masks(n_query: int, n_key: int) -> st.SearchStrategy[np.ndarray]:
    return hnp.arrays(np.bool_, (n_query, n_key))


@given(
    st.lists(st.sampled_from([["door", "##s"], ["cat", "##ing", "##s"], ["it"]]), min_size=1, max_size=4),
    st.sampled_from(["tokens", "words"]),
)
def test_a_name_has_the_first_position_of_its_entry_where_another_is_written_so(words, unit):
    labels = [piece for word in words for piece in word]
    axis = Axis.of(hand_made.tokens(labels), unit)
    groups = [list(range(first, stop)) for first, stop in axis.spans.tolist()]
    for group in groups:
        written = (
            "".join(labels[at].removeprefix("##") for at in group) if len(group) > 1 else labels[group[0]]
        )
        others = sum(label == written for label in axis.labels)
        for position in group:
            stated = facts(findings.name(axis, position))
            assert stated.quoted == (written,)
            assert stated.numbers == ((str(group[0]),) if others > 1 else ())


@given(st.integers(1, 5), st.integers(1, 5), st.integers(1, 5))
def test_the_queries_of_a_map_are_counted_among_all_queries(n_query, n_key, n_judged):
    assume(n_judged <= n_query)
    map_ = small_records.projection(
        n_query + n_key,
        role=("query",) * n_query + ("key",) * n_key,
        position=np.array([*range(n_query), *range(n_key)]),
        query_tokens=small_records.tokens(n_query),
        key_tokens=small_records.tokens(n_key),
        kind="cross",
        in_map=replace(small_records.PERFECT, n_query=n_judged),
    )
    sentence = findings.judged_queries(map_)
    assert facts(sentence).numbers == (str(n_judged),)
    assert ("two keys" in sentence) == (n_judged < n_query)


@given(st.permutations([0.125, 0.25, 0.375, 0.5]), st.integers(20, 999))
def test_each_figure_of_chance_has_its_own_p(numbers, n_permutations):
    correlation, correlation_p, nearest, nearest_p = numbers
    chance = Chance(
        n_permutations=n_permutations,
        correlation=-correlation,
        correlation_p=correlation_p,
        nearest=nearest,
        nearest_p=nearest_p,
    )
    of_nearest = percent_text(nearest), f"{nearest_p:.3f}"
    of_order = f"−{correlation:.2f}", f"{correlation_p:.3f}"
    assert facts(findings.by_chance(chance)).numbers == (str(n_permutations), *of_nearest, *of_order)
    figures = replace(small_records.PERFECT, order_correlation=-0.75, nearest_agreement=0.875)
    note = facts(findings.map_note(small_records.projection(in_map=figures, chance=chance)))
    assert note.has(percent_text(0.875), "3", *of_nearest, "−0.75")
    assert note.has("−1", *of_order)


@given(st.data())
def test_where_the_largest_weight_of_a_query_is_counted(data):
    """A query whose largest weight may count as two things counts as the one that is said first."""
    labels = data.draw(st.lists(st.sampled_from(("[CLS]", "cat", "door")), min_size=3, max_size=5))
    kind, n = data.draw(st.sampled_from(("encoder", "decoder"))), len(labels)
    strongest = [data.draw(st.integers(0, query if kind == "decoder" else n - 1)) for query in range(n)]
    allowed = np.tril(np.ones((n, n), dtype=bool)) if kind == "decoder" else np.ones((n, n), dtype=bool)
    weights = np.where(allowed, 1.0, 0.0)
    weights[np.arange(n), strongest] += 1
    weights /= weights.sum(axis=1, keepdims=True)
    trace = hand_made.trace(weights[None, None], labels, kind=kind, allowed=allowed)
    claims, special = measure(trace), trace.tokens.is_special
    rests = kind == "decoder" and not special[0]
    diagonal = claim_facts.diagonal(claims, has_special=bool(special.any()), rests_on_first=rests)
    fits = {
        "own token": lambda query, key: query == key,
        "special token": lambda query, key: bool(special[key]),
        "first token": lambda query, key: key == 0,
        "neighbour": lambda query, key: abs(query - key) == 1,
        "another": lambda query, key: True,
    }
    counted = dict.fromkeys(fits, 0)
    for query, key in enumerate(strongest):
        counted[next(what for what in precedence(diagonal) if fits[what](query, key))] += 1
    shares = diagonal.own, diagonal.special or 0, diagonal.first or 0, diagonal.neighbour, diagonal.other
    assert shares == pytest.approx([count / n for count in counted.values()], abs=1e-6)


@given(masks(3, 4))
def test_the_cells_that_are_left(allowed):
    weights = np.ones((3, 4)) / 4
    sentence = cells_left(small_records.pattern(weights.tolist(), allowed=allowed))
    rows = [sum(row) for row in allowed.tolist()]
    empty = rows.count(0)
    assert facts(sentence).numbers == (str(sum(rows)), "12", *([str(empty)] if empty else []))


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


@given(two_texts(), st.sampled_from(["weights", "norms"]))
def test_keys_without_a_partner_and_what_lies_on_them(sides, measured):
    first, second = (replace(side, measure=measured) for side in sides)
    comparison = compare(first, second)
    counts, shares = [], []
    for side, pattern in enumerate((first, second)):
        partners = {int(pair[side]) for pair in comparison.keys.pairs if min(pair) >= 0}
        alone = [key for key in range(len(pattern.keys)) if key not in partners]
        counts.append(str(len(alone)))
        shares.append(mean(float(sum(row[alone])) for row in pattern.weights.astype(float)))
    stated = facts(without_partner(comparison)).numbers
    if counts == ["0", "0"]:
        assert stated == ()
    elif measured == "norms":
        assert stated == tuple(counts)
    else:
        assert stated[:2] == tuple(counts)
        # To rounding: float32 may fall on the other side of half a last digit.
        for written, share in zip(stated[2:], shares, strict=True):
            assert written in {share_text(share + nudge) for nudge in (-1e-6, 0, 1e-6)}


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


@given(two_texts(), st.booleans(), st.booleans())
def test_matrices_are_the_same_only_where_rows_columns_and_cells_are(sides, same_rows, same_columns):
    """A key or a query that only one of them has is a difference, though every cell that both have is equal."""
    first = sides[0]
    keep = np.arange(len(first.queries)) > 0, np.arange(len(first.keys)) > 0
    rows = np.ones_like(keep[0]) if same_rows or len(keep[0]) == 1 else keep[0]
    columns = np.ones_like(keep[1]) if same_columns or len(keep[1]) == 1 else keep[1]
    second = first.arranged(first.queries.where(rows), first.keys.where(columns))
    assert compare(first, second).is_same == (bool(rows.all()) and bool(columns.all()))


@given(
    st.lists(st.sampled_from([0.5, 1.0, -2.0, 4.0]), min_size=1, max_size=4),
    st.sampled_from([0.25, -1.0, 3.0, 8.0]),
)
def test_a_sum_is_off_by_a_share_of_what_is_expected(values, expected):
    row = sum_row(
        InputAttribution(
            method="integrated_gradients",
            values=np.array(values, dtype=np.float32),
            integral=PathIntegral(
                values=np.array(values), difference=expected, error=abs(sum(values) - expected), n_points=40
            ),
        )
    )
    apart = abs(sum(values) - expected)
    assert (row["sum over the tokens"], row["expected sum"]) == (
        number_text(sum(values)),
        number_text(expected),
    )
    assert row["difference"] == f"{number_text(apart)} ({percent_text(apart / abs(expected))})"


@given(st.lists(st.sampled_from([0.25, 0.5, 0.75, 1.0]), min_size=2, max_size=4))
def test_the_spread_of_a_mean_share_is_a_share_too(moved):
    """The outcome of each pair goes from 3 to 5, and this far with the one carried state."""
    averaged = mean_patches(
        [
            PatchEffects(
                kind="encoder",
                carried="heads",
                base=3.0,
                donor=5.0,
                outcomes=np.array([[3.0 + share, 3.0]], dtype=np.float32),
            )
            for share in moved
        ]
    )
    sentence = finding_of_set(SimpleNamespace(tokens=hand_made.tokens(["cat"])), averaged)
    assert facts(sentence).numbers == (
        percent_text(mean(moved) / 2),
        str(len(moved)),
        percent_text(stdev(moved) / 2),
    )


@given(st.data())
def test_two_branches_read_the_same_tokens_up_to_where_they_part(data):
    """Step s is written after the tokens of the steps before it."""
    texts = [
        data.draw(st.lists(st.sampled_from("abc"), min_size=1, max_size=4), label=name) for name in ("A", "B")
    ]
    step = data.draw(st.integers(0, len(texts[0]) - 1))
    chances = [[0.5, 0.25, 0.125, 0.0625], [0.75, 0.375, 0.1875, 0.09375]]
    continuations = [
        SimpleNamespace(
            tokens=SimpleNamespace(ids=np.array([9, *map(ord, text)])),
            n_read=1,
            written=tuple(text),
            probabilities=np.array(chances[number][: len(text)]),
        )
        for number, text in enumerate(texts)
    ]
    axes = [Axis.of(hand_made.tokens([f"{side}{at}" for at in range(4)])) for side in "xy"]
    screen = SimpleNamespace(
        continuation=continuations[0], text=SimpleNamespace(name="own"), step=step, query=step, pattern=None
    )
    comparison = SimpleNamespace(
        row_change=np.array([0.11, 0.22, 0.33, 0.44]),
        first=SimpleNamespace(queries=axes[0]),
        second=SimpleNamespace(queries=axes[1]),
    )
    other = SimpleNamespace(name="branch", continuation=continuations[1])
    sentence = difference_words(screen, other, comparison)
    stated = facts(sentence)
    assert sentence.startswith("A (own) and B (branch) ")
    parts = next((at for at, pair in enumerate(zip(*texts, strict=False)) if pair[0] != pair[1]), None)
    if parts is None:
        assert stated.numbers == ()
        return
    assert stated.quoted[:2] == (texts[0][parts], texts[1][parts])
    told = str(parts + 1), share_text(chances[0][parts]), share_text(chances[1][parts]), str(step + 1)
    assert stated.numbers[:4] == told
    differently = texts[0][:step] != texts[1][:step] and step < len(texts[1])
    assert stated.numbers[4:] == ((share_text([0.11, 0.22, 0.33, 0.44][step]),) if differently else ())
    assert stated.quoted[2:] == ((f"x{step}", f"y{step}") if differently else ())


@given(hnp.arrays(np.float64, (2, 3, 2), elements=st.integers(-3, 3).map(float)), st.sampled_from([0.5, 1.0]))
def test_the_leading_sources_of_both_sides(vectors, scale):
    sources = (Source(name="token"), Source(name="position"), Source(name="biases"))
    leaders = leading(
        ScoreSources(
            kind="encoder",
            layer=0,
            head=0,
            query=0,
            key=1,
            sources=sources,
            query_vectors=vectors[0],
            key_vectors=vectors[1],
            scale=scale,
            product=7.0,
            softcap=None,
            bias=0.0,
            allowed=True,
        )
    )
    whole = [vectors[side].sum(axis=0) for side in (0, 1)]
    for side, source, part, n_equal in (
        (0, leaders.query, leaders.of_query, leaders.n_as_large_of_query),
        (1, leaders.key, leaders.of_key, leaders.n_as_large_of_key),
    ):
        parts = [scale * float(vector @ whole[1 - side]) for vector in vectors[side]]
        sizes = [abs(part) for part in parts]
        assert part == pytest.approx(parts[sources.index(source)])
        assert abs(part) == pytest.approx(max(sizes))
        assert n_equal == sizes.count(max(sizes)) - 1
    assert leaders.product == 7.0
