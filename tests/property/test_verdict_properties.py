"""What pages state of all heads, of a mask, of two matrices and of the drawn lines, by loops in plain Python."""

from dataclasses import replace
from statistics import mean, median

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.stats import spearmanr

from attnviz.effects.masking import mask_effect
from attnviz.heads import claim_facts
from attnviz.heads.claims import Claims, measure
from attnviz.heads.comparison import compare
from attnviz.heads.flow import above_share, above_weight, strongest_lines
from attnviz.heads.head_statistics import matched
from attnviz.records import Axis
from tests import hand_made
from tests.drawing import pieces_of_words
from tests.small_records import pattern as small_pattern

pytestmark = [
    pytest.mark.slow,
    # Where types are checked, beartype draws which items of a tuple it looks at, while records are made here too.
    pytest.mark.filterwarnings("ignore:Do not use the `random` module"),
]

settings.register_profile("attnviz", deadline=None, derandomize=True, max_examples=60)
settings.load_profile("attnviz")

ROUNDING = 1e-5  # float32: sums of at most 64 shares, with 6e-8 of each lost
WORDS = ("cat", "door", "##s", ",", "##ing", "it")
SHAPES = st.tuples(st.integers(1, 4), st.integers(1, 5))


def twentieths(shape: tuple[int, ...], most: int = 20) -> st.SearchStrategy[np.ndarray]:
    """Shares in steps of 0.05, so that the limits of verdicts are hit."""
    return hnp.arrays(np.int64, shape, elements=st.integers(0, most), fill=st.nothing()).map(
        lambda whole: (whole / np.float64(20)).astype(np.float32)
    )


@st.composite
def measured_claims(draw: st.DrawFn) -> Claims:
    """Any numbers of every head."""
    shape = draw(SHAPES)
    numbers = {name: draw(twentieths(shape)) for name in Claims.__dataclass_fields__}
    own, special = numbers["on_itself"], numbers["on_special"]
    first, rest = numbers["on_first"], (1 - own) * (1 - special)
    numbers |= {
        "on_special": special * (1 - own),
        "on_first": first * rest,
        "on_neighbour": numbers["on_neighbour"] * rest * (1 - first),
    }
    if draw(st.booleans()):
        numbers |= {"seen": np.ones(shape, dtype=np.float32)}
    if draw(st.booleans()):
        numbers |= {"positive": np.ones(shape, dtype=np.float32)}
    numbers["seen"] = np.maximum(numbers["seen"], np.float32(0.05))
    if draw(st.booleans()):  # as under a causal mask
        nothing = np.full(shape, np.nan, dtype=np.float32)
        numbers |= {"score_asymmetry": nothing, "tied_asymmetry": nothing.copy()}
    has_norms = draw(st.booleans())
    if draw(st.booleans()):  # layers with fewer heads
        n_heads = draw(st.lists(st.integers(1, shape[1]), min_size=shape[0], max_size=shape[0]))
        is_head = np.arange(shape[1]) < np.array(n_heads)[:, None]
        numbers = {name: np.where(is_head, array, np.float32(np.nan)) for name, array in numbers.items()}
    return Claims(
        **{
            name: array if has_norms or name not in ("other_strongest", "rank_agreement") else None
            for name, array in numbers.items()
        }
    )


def assert_counted(showing: claim_facts.Showing, shows: list[bool]) -> None:
    """Heads are counted: a claim holds from two in three on, and not up to one in three."""
    assert (showing.n_showing, showing.n_heads) == (sum(shows), len(shows))
    share = sum(shows) / len(shows)
    expected = "holds" if share >= 2 / 3 else "does not hold" if share <= 1 / 3 else "half true"
    assert showing.standing == expected


@given(measured_claims(), st.booleans())
def test_verdicts_follow_from_the_numbers_of_the_heads(claims, has_special):
    is_head = ~np.isnan(claims.positive)
    numbers = {
        name: None if (table := getattr(claims, name)) is None else table[is_head].astype(float).tolist()
        for name in Claims.__dataclass_fields__
    }
    apart = numbers["weight_asymmetry"]
    symmetry = claim_facts.symmetry(claims)
    assert_counted(symmetry.heads, [asymmetry < 0.05 + 1e-6 for asymmetry in apart])
    assert symmetry.n_far == sum(asymmetry > 0.3 - 1e-6 for asymmetry in apart)
    assert symmetry.median == pytest.approx(median(apart), abs=1e-6)
    if np.isnan(numbers["score_asymmetry"]).all():
        assert symmetry.scores is symmetry.tied is None
    else:
        assert symmetry.scores == pytest.approx(median(numbers["score_asymmetry"]), abs=1e-6)
        assert symmetry.tied == pytest.approx(median(numbers["tied_asymmetry"]), abs=1e-6)

    on = claim_facts.diagonal(claims, has_special=has_special, rests_on_first=not has_special)
    assert_counted(on.heads, [number > 0.5 + 1e-6 for number in numbers["on_itself"]])
    assert on.own == pytest.approx(mean(numbers["on_itself"]), abs=1e-6)
    assert on.neighbour == pytest.approx(mean(numbers["on_neighbour"]), abs=1e-6)
    assert (on.special is None) == (not has_special)
    of_special = mean(numbers["on_special"])
    assert on.special is None or on.special == pytest.approx(of_special, abs=1e-6)
    assert (on.first is None) == has_special
    of_first = mean(numbers["on_first"])
    assert on.first is None or on.first == pytest.approx(of_first, abs=1e-6)
    assert on.other == pytest.approx(1 - on.own - of_special - of_first - on.neighbour, abs=1e-6)

    filled = claim_facts.filling(claims)
    seen, positive = numbers["seen"], numbers["positive"]
    assert filled.masked == pytest.approx(1 - mean(seen), abs=1e-6)
    of_seen = sum(a * b for a, b in zip(seen, positive, strict=True)) / sum(seen)
    assert filled.rounded == pytest.approx(1 - of_seen, abs=1e-6)
    assert filled.is_full == (set(seen) == set(positive) == {1.0})
    assert filled.median == pytest.approx(median(numbers["cells_for_most"]), abs=1e-6)
    assert filled.least == min(numbers["cells_for_most"])

    adds = claim_facts.contribution(claims)
    assert (adds is None) == (numbers["other_strongest"] is None)
    if adds is not None:
        pairs = list(zip(numbers["other_strongest"], numbers["rank_agreement"], strict=True))
        assert_counted(adds.heads, [other < 0.1 - 1e-6 and order > 0.9 + 1e-6 for other, order in pairs])
        assert adds.differing == pytest.approx(mean(numbers["other_strongest"]), abs=1e-6)
        assert adds.correlation == pytest.approx(mean(numbers["rank_agreement"]), abs=1e-6)


@st.composite
def attentions(draw: st.DrawFn) -> dict[str, np.ndarray | list[str]]:
    """Weights of 2 layers x 3 heads with ties, under a mask or not, and the lengths of the values after W_O."""
    labels = ["[CLS]", *draw(pieces_of_words(1, 3)), "[SEP]"]
    n = len(labels)
    allowed = draw(hnp.arrays(np.bool_, (n, n), fill=st.nothing())) | np.eye(n, dtype=bool)
    counts = draw(hnp.arrays(np.int64, (2, 3, n, n), elements=st.integers(1, 4), fill=st.nothing())) * allowed
    lengths = draw(hnp.arrays(np.int64, (2, 3, n), elements=st.integers(1, 4), fill=st.nothing()))
    return {
        "weights": counts / counts.sum(axis=-1, keepdims=True),
        "labels": labels,
        "allowed": allowed,
        "lengths": lengths.astype(np.float32),
    }


@given(attentions())
def test_claims_are_measured_head_by_head(attention):
    trace = hand_made.trace(**attention)
    claims = measure(trace)
    special, allowed = trace.tokens.is_special.tolist(), attention["allowed"]
    assert claims.other_strongest is not None and claims.rank_agreement is not None
    for place in np.ndindex(2, 3):
        weights = trace.weights(*place)
        norms = trace.pattern(*place, measure="norms").weights
        counted = {"itself": 0, "special": 0, "neighbour": 0, "other": 0, "differs": 0}
        correlations = []
        for query, row in enumerate(weights.tolist()):
            key = row.index(max(row))
            near = "neighbour" if abs(key - query) == 1 else "other"
            counted["itself" if key == query else "special" if special[key] else near] += 1
            counted["differs"] += norms[query].tolist().index(norms[query].max()) != key
            seen = np.flatnonzero(allowed[query])
            if len(seen) > 1:
                pair = weights[query, seen], norms[query, seen]
                has_order = all(len(set(side.tolist())) > 1 for side in pair)
                correlations.append(spearmanr(*pair).statistic if has_order else 0.0)
        n = len(weights)
        assert claims.on_itself[place] == pytest.approx(counted["itself"] / n)
        assert claims.on_special[place] == pytest.approx(counted["special"] / n)
        assert claims.on_neighbour[place] == pytest.approx(counted["neighbour"] / n)
        assert claims.other_strongest[place] == pytest.approx(counted["differs"] / n)
        expected = mean(correlations) if correlations else 1.0
        assert claims.rank_agreement[place] == pytest.approx(expected, abs=ROUNDING)
        assert claims.seen[place] == pytest.approx(allowed.mean())
        assert claims.positive[place] == 1
        cells = sorted(weights[allowed].tolist(), reverse=True)
        held = next(
            count for count in range(1, len(cells) + 1) if sum(cells[:count]) >= 0.9 * sum(cells) - 1e-6
        )
        assert (
            abs(claims.cells_for_most[place] * len(cells) - held) < 1 + ROUNDING
        )  # where 90% is hit exactly


@given(st.dictionaries(st.sampled_from(WORDS), hnp.arrays(np.bool_, (3, 4))))
def test_heads_that_match_patterns_are_counted(borne):
    counted = matched(borne)
    marked = {
        label: {tuple(value) for value in np.argwhere(bears).tolist()} for label, bears in borne.items()
    }
    assert counted.n_matched == len(set().union(*marked.values()))
    assert dict(counted.counts) == {label: len(heads) for label, heads in marked.items() if heads}
    assert [n for _, n in counted.counts] == sorted((n for _, n in counted.counts), reverse=True)


@st.composite
def masked_runs(draw: st.DrawFn):
    """Two layers of two heads with masks of their own or one for all heads, a mask, and last hidden states before and after."""
    n = draw(st.integers(1, 5))
    weights = np.full((2, 2, n, n), 1 / n)
    trace = hand_made.trace(weights, ["a"] * n)
    own = []
    for layer in range(2):
        shape = (draw(st.sampled_from((1, 2))), n, n)
        own.append(draw(st.none() | hnp.arrays(np.bool_, shape, fill=st.nothing())))
        trace = trace.with_layer(replace(trace.attention(layer), allowed=own[-1]))
    states = hnp.arrays(np.int64, (n, 2), elements=st.integers(-2, 2), fill=st.nothing()).map(
        lambda integers: integers.astype(np.float32)
    )
    before, after = draw(states), draw(states)
    if draw(st.booleans()):
        after = before
    layer = draw(st.none() | st.integers(0, 1))
    head = None if layer is None else draw(st.none() | st.integers(0, 1))
    allowed = draw(hnp.arrays(np.bool_, (n, n), fill=st.nothing()))
    return (
        replace(trace, last_hidden_state=before),
        replace(trace, last_hidden_state=after),
        allowed,
        layer,
        head,
    )


@given(masked_runs())
def test_the_cells_that_a_mask_takes_and_the_token_that_turns_most(run):
    trace, changed, allowed, layer, head = run
    effect = mask_effect(trace, changed, allowed, layer=layer, head=head)
    n = len(allowed)
    taken = set()
    for of_layer in range(2) if layer is None else [layer]:
        own = trace.attention(of_layer).allowed
        for of_head in range(2) if head is None else [head]:
            for cell in np.ndindex(n, n):
                is_seen = own is None or own[min(of_head, len(own) - 1)][cell]
                if is_seen and not allowed[cell]:
                    taken.add(cell)
    assert effect.n_masked == len(taken)
    turns = []
    for a, b in zip(trace.last_hidden_state.tolist(), changed.last_hidden_state.tolist(), strict=True):
        lengths = (a[0] ** 2 + a[1] ** 2) ** 0.5 * (b[0] ** 2 + b[1] ** 2) ** 0.5
        turns.append(1 - (a[0] * b[0] + a[1] * b[1]) / lengths if lengths else float(a != b))
    np.testing.assert_allclose(effect.change, turns, atol=ROUNDING)
    assert effect.mean == pytest.approx(mean(turns), abs=ROUNDING)
    assert effect.largest == pytest.approx(max(turns), abs=ROUNDING)
    assert all(turns[token] >= max(turns) - ROUNDING for token in effect.most)
    assert effect.most or max(turns) < ROUNDING
    assert effect.is_unchanged == (trace.last_hidden_state.tolist() == changed.last_hidden_state.tolist())


@st.composite
def two_patterns(draw: st.DrawFn):
    """Matrices of two texts that share words, with equal cells and special tokens hidden or not."""
    sides = []
    for _ in range(2):
        labels = draw(
            st.lists(st.sampled_from(("[CLS]", "cat", "door", "it")), min_size=1, max_size=5, unique=True)
        )
        n = len(labels)
        counts = draw(hnp.arrays(np.int64, (n, n), elements=st.integers(1, 2), fill=st.nothing()))
        axis = Axis.of(hand_made.tokens(labels))
        cells = counts / counts.sum(axis=1, keepdims=True)
        sides.append(small_pattern(cells.tolist(), queries=axis, keys=axis))
    if draw(st.booleans()):
        sides[1] = replace(sides[0], head=1)
    if draw(st.booleans()) and not any(side.keys.is_special.all() for side in sides):
        renormalise = draw(st.booleans())
        sides = [
            side.arranged(
                side.queries.without_special(), side.keys.without_special(), renormalise=renormalise
            )
            for side in sides
        ]
    return sides


@given(two_patterns())
def test_what_two_matrices_share(sides):
    first, second = sides
    comparison = compare(first, second)
    labels = [list(side.keys.labels) for side in sides]
    partners = {
        side: {int(pair[side]) for pair in comparison.keys.pairs if min(pair) >= 0} for side in (0, 1)
    }
    for side, (alone, of_side) in enumerate(zip(comparison.unpaired, sides, strict=True)):
        without = [key for key in range(len(labels[side])) if key not in partners[side]]
        assert alone.n_keys == len(without)
        shares = [sum(row[key] for key in without) for row in of_side.weights.astype(float).tolist()]
        assert alone.share == pytest.approx(mean(shares), abs=ROUNDING)
    same_axes = all(len(partners[side]) == len(labels[side]) for side in (0, 1))
    assert comparison.is_same == (same_axes and first.weights.tolist() == second.weights.tolist())
    sums = [float(row.sum()) for side in sides for row in side.weights]
    assert comparison.rows_are_whole == all(total == pytest.approx(1, abs=ROUNDING) for total in sums)


@given(
    hnp.arrays(np.int64, (2, 3, 4), elements=st.integers(0, 4), fill=st.nothing()),
    st.none() | st.integers(0, 2),
    st.integers(1, 24),
    st.sampled_from(("share", "weight")),
    st.integers(0, 20),
)
def test_the_drawn_lines(counts, row, most, threshold, limit):
    matrices = (counts / np.float32(4)).astype(np.float32)
    above = above_share(matrices, limit / 20) if threshold == "share" else above_weight(matrices, limit / 20)
    flow = strongest_lines(matrices, above, whole_row=row, most=most)
    asked = {cell for cell in np.ndindex(matrices.shape) if above[cell] and matrices[cell] > 0}
    drawn = list(zip(flow.matrix.tolist(), flow.query.tolist(), flow.key.tolist(), strict=True))
    assert len(set(drawn)) == len(drawn) == min(most, len(asked)) and set(drawn) <= asked
    left = asked - set(drawn)
    assert flow.n_left_out == len(left)
    assert flow.row_is_whole == (not any(query == row for _, query, _ in left))
    if not flow.row_is_whole:
        assert all(query == row for _, query, _ in drawn)
    others = [matrices[cell] for cell in drawn if cell[1] != row]
    assert all(matrices[cell] <= min(others) for cell in left if cell[1] != row and others)
    total = sum(map(float, matrices.ravel()))
    held = sum(float(matrices[cell]) for cell in drawn)
    assert flow.share == pytest.approx(held / total if total else 0.0)
