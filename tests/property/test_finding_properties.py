"""What the findings of a matrix state holds on any matrix, by loops over single tokens in plain Python.

Weights are small whole numbers divided by their row's sum, so that ties are frequent; cells are masked, word pieces merged,
special tokens or a sentence of a pair hidden, and rows divided by what remains.
"""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from attnviz.heads import facts
from attnviz.records import OF_LAYER, AttentionPattern, Axis
from tests.drawing import pieces_of_words
from tests.hand_made import tokens
from tests.small_records import pattern as small_pattern
from ui.words import findings

pytestmark = [
    pytest.mark.slow,
    # Where types are checked, beartype draws which items of a tuple it looks at, while records are made here too.
    pytest.mark.filterwarnings("ignore:Do not use the `random` module"),
]

settings.register_profile("attnviz", deadline=None, derandomize=True, max_examples=40)
settings.load_profile("attnviz")

ROUNDING = 1e-5  # float32: sums of at most 9 numbers of at most 4, with 6e-8 of each lost
Matrix = list[list[float]]


@dataclass(frozen=True, kw_only=True)
class Case:
    """A matrix of single tokens, and the same with other rows and columns."""

    whole: AttentionPattern
    cells: Matrix
    """Of the whole matrix."""
    shown: AttentionPattern

    def cell(self, row: int, column: int) -> float:
        """A cell of the shown matrix, token by token: queries of a group averaged, keys summed."""
        number = self._sum(row, self._tokens(self.shown.keys, column))
        if not self.shown.is_renormalised:
            return number
        total = sum(
            self._sum(row, self._tokens(self.shown.keys, number)) for number in range(len(self.shown.keys))
        )
        return number / total if total else 0.0

    def hidden(self, row: int) -> float:
        """What a row has on keys that are not shown."""
        shown = {
            token for number in range(len(self.shown.keys)) for token in self._tokens(self.shown.keys, number)
        }
        return self._sum(row, set(range(len(self.shown.keys.tokens))) - shown)

    def row(self, row: int) -> list[float]:
        return [self.cell(row, column) for column in range(len(self.shown.keys))]

    def column(self, column: int) -> list[float]:
        return [self.cell(row, column) for row in range(len(self.shown.queries))]

    def _sum(self, row: int, keys: set[int]) -> float:
        queries = self._tokens(self.shown.queries, row)
        return sum(self.cells[query][key] for query in queries for key in keys) / len(queries)

    @staticmethod
    def _tokens(axis: Axis, entry: int) -> set[int]:
        first, stop = axis.spans.tolist()[entry]
        return set(range(first, stop))


@st.composite
def texts(draw: st.DrawFn) -> Axis:
    """Tokens of a text or of a pair, with special tokens around them or without."""
    inner = draw(pieces_of_words(2, 4))
    labels = inner if draw(st.integers(0, 3)) == 3 else ["[CLS]", *inner, "[SEP]"]
    of_text = tokens(labels)
    if draw(st.booleans()) and len(labels) > 2:
        border = draw(st.integers(1, len(labels) - 1))
        of_text = replace(of_text, segment=(np.arange(len(labels)) >= border).astype(np.int64))
    return Axis.of(of_text)


@st.composite
def matrices(draw: st.DrawFn, axis: Axis) -> AttentionPattern:
    """Weights of single tokens with many ties; a query may see no key."""
    n = len(axis)
    allowed = (
        draw(hnp.arrays(np.bool_, (n, n), fill=st.nothing()))
        if draw(st.booleans())
        else np.ones((n, n), dtype=bool)
    )
    counts = draw(hnp.arrays(np.int64, (n, n), elements=st.integers(0, 4), fill=st.nothing())) * allowed
    measure = draw(st.sampled_from(("weights", "norms", *OF_LAYER)))
    sums = counts.sum(axis=1, keepdims=True) if measure != "norms" else np.ones((n, 1))
    cells = np.divide(counts, sums, out=np.zeros((n, n)), where=sums > 0)
    return small_pattern(
        cells.tolist(),
        allowed=allowed,
        queries=axis,
        keys=axis,
        measure=measure,
        head=None if measure in OF_LAYER else 1,
    )


@st.composite
def cases(draw: st.DrawFn) -> Case:
    axis = draw(texts())
    whole = draw(matrices(axis))
    queries = keys = Axis.of(axis.tokens, draw(st.sampled_from(("tokens", "words"))))
    if draw(st.booleans()) and not axis.tokens.is_special.all():
        queries, keys = queries.without_special(), keys.without_special()
    if len(set(axis.tokens.segment.tolist())) == 2 and draw(st.booleans()):
        picked = queries.of_segment(draw(st.integers(0, 1))), keys.of_segment(draw(st.integers(0, 1)))
        queries, keys = picked if all(map(len, picked)) else (queries, keys)
    shown = whole.arranged(queries, keys, renormalise=draw(st.booleans()))
    return Case(whole=whole, cells=whole.weights.tolist(), shown=shown)


def entry_of(axis: Axis, position: int) -> int:
    """The entry that begins at a position."""
    [index] = [entry for entry, (first, _) in enumerate(axis.spans.tolist()) if first == position]
    return index


def assert_all_with_the_largest(positions: tuple[int, ...], numbers: list[float], axis: Axis) -> None:
    """Each named entry has the largest number, and no other entry clearly has as much."""
    largest = max(numbers)
    named = [entry_of(axis, position) for position in positions]
    assert len(set(named)) == len(named)
    assert bool(named) == (largest > 0)
    assert all(numbers[entry] >= largest - ROUNDING for entry in named)


@given(cases(), st.integers(0, 9))
def test_the_strongest_key_of_a_query_that_is_not_shown_is_the_first_that_is(case, query):
    if case.shown.queries.index(query) is None:
        assert findings.strongest_key(case.shown, query) == case.shown.keys.positions[0]
    else:
        assert findings.strongest_key(case.shown, query) in case.shown.keys.positions


@given(cases())
def test_what_is_hidden_of_a_row_is_what_its_tokens_give_to_tokens_that_are_not_shown(case):
    for row in range(len(case.shown.queries)):
        assert case.shown.hidden_weight[row] == pytest.approx(case.hidden(row), abs=ROUNDING)
        np.testing.assert_allclose(case.shown.weights[row], case.row(row), atol=ROUNDING)


@given(cases())
def test_what_a_query_gives_a_key_and_where_most_goes(case):
    shown = case.shown
    for row, column in np.ndindex(shown.weights.shape):
        of_cell, numbers = facts.given(shown, row, column), case.row(row)
        assert of_cell.amount == pytest.approx(numbers[column], abs=ROUNDING)
        assert of_cell.largest == pytest.approx(max(numbers), abs=ROUNDING)
        assert_all_with_the_largest(of_cell.strongest, numbers, shown.keys)
        assert of_cell.is_strongest or numbers[column] < max(numbers) + ROUNDING
        assert not of_cell.is_strongest or numbers[column] > max(numbers) - ROUNDING
        assert of_cell.hidden == pytest.approx(case.hidden(row), abs=ROUNDING)
        n_shown = sum(stop - first for first, stop in shown.keys.spans.tolist())
        assert of_cell.hides_keys == (n_shown < len(shown.keys.tokens))
        assert of_cell.of_shown == shown.is_renormalised


@given(cases())
def test_ties_are_named_together_where_no_rounding_can_break_them(case):
    for row in range(len(case.whole.queries)):
        cells = case.whole.weights[row].tolist()
        ties = tuple(key for key, weight in enumerate(cells) if weight == max(cells) > 0)
        assert facts.given(case.whole, row, 0).strongest == ties


@given(cases())
@pytest.mark.stand_ins
def test_a_headline_names_the_fewest_keys_that_hold_more_than_half_where_they_stand_out(case):
    """Found by trying every number of keys; where none will do, the largest and an equal share are given."""
    shown = replace(case.shown, measure="weights", head=1)
    for row in range(len(shown.queries)):
        seen = [key for key in range(len(shown.keys)) if shown.allowed[row, key]]
        numbers = {key: float(shown.weights[row, key]) for key in seen}
        ranked = sorted(seen, key=lambda key: -numbers[key])
        hidden = 0.0 if shown.is_renormalised else float(shown.hidden_weight[row])
        half = (sum(numbers.values()) + hidden) / 2
        headline = facts.headline(shown, row)
        named = [entry_of(shown.keys, position) for position in headline.named]
        assert (headline.n_seen, headline.equal) == (
            len(seen),
            pytest.approx(sum(numbers.values()) / len(seen) if seen else 0.0, abs=ROUNDING),
        )
        if named:
            assert len(named) <= facts.MOST_NAMED
            assert [numbers[key] for key in named] == [numbers[key] for key in ranked[: len(named)]]
            assert sum(numbers[key] for key in named) > half - ROUNDING
            stronger = [numbers[key] for key in named if numbers[key] > numbers[named[-1]]]
            assert sum(stronger) < half + ROUNDING, "fewer would have been enough"
            others = [numbers[key] for key in seen if key not in named]
            assert all(numbers[key] < numbers[named[-1]] for key in set(seen) - set(named)), "a tie is broken"
            assert (
                len(seen) == 1 or numbers[named[-1]] >= facts.NOTABLE * sum(others) / len(others) - ROUNDING
            )
        else:
            candidates = [ranked[:n] for n in range(1, facts.MOST_NAMED + 1) if n <= len(ranked)]
            for keys in candidates:
                least, others = numbers[keys[-1]], [numbers[key] for key in seen if key not in keys]
                without_ties = not others or max(others) < least - ROUNDING
                is_fewest = sum(numbers[key] for key in keys if numbers[key] > least) < half - ROUNDING
                is_most = sum(numbers[key] for key in keys) > half + ROUNDING
                mean = sum(others) / len(others) if others else least
                is_notable = len(seen) == 1 or least > facts.NOTABLE * mean + ROUNDING
                assert not (without_ties and is_fewest and is_most and is_notable)


@given(cases(), st.sampled_from(("encoder", "decoder")))
def test_colours_end_at_the_largest_cell_between_words_where_a_resting_place_has_more(case, kind):
    """At the mean of all cells where that is larger."""
    shown = replace(case.shown, kind=kind)
    cells = {cell: shown.weights[cell] for cell in np.ndindex(shown.weights.shape)}
    ordinary = [
        weight
        for (row, column), weight in cells.items()
        if not shown.queries.is_special[row]
        and not shown.keys.is_special[column]
        and not (kind == "decoder" and shown.keys.positions[column] == 0)
    ]
    end = facts.colour_end(shown)
    if not ordinary:
        assert end is None
        return
    expected = max(*ordinary, sum(cells.values()) / len(cells))
    if end is None:
        assert max(cells.values()) <= expected + ROUNDING
    else:
        assert end == pytest.approx(expected, abs=ROUNDING)
        assert end < max(cells.values())
        of_special = [
            weight
            for (row, column), weight in cells.items()
            if shown.queries.is_special[row] or shown.keys.is_special[column]
        ]
        whose = "special tokens" if max(of_special, default=0) > end else "the first token"
        assert whose in findings.clipped_words(shown, end)


@given(cases())
def test_the_query_that_gives_a_key_most(case):
    shown = case.shown
    for column in range(len(shown.keys)):
        taken, numbers = facts.taken(shown, column), case.column(column)
        assert taken.amount == pytest.approx(max(numbers), abs=ROUNDING)
        assert_all_with_the_largest(taken.givers, numbers, shown.queries)
        n_shown = sum(stop - first for first, stop in shown.queries.spans.tolist())
        assert taken.hides_queries == (n_shown < len(shown.queries.tokens))


@given(cases())
def test_the_strongest_link_is_between_words_wherever_there_is_one(case):
    """Cell by cell: special tokens, a token itself and a decoder's first token are set aside, each while others are left."""
    shown, queries, keys = case.shown, case.shown.queries, case.shown.keys

    def aside(row: int, column: int) -> list[bool]:
        """The reasons against a cell, the weightiest first."""
        starts = keys.positions[column] == 0
        return [
            not shown.allowed[row, column],
            bool(queries.is_special[row]),
            bool(keys.is_special[column]),
            shown.kind != "cross" and queries.positions[row] == keys.positions[column],
            shown.kind == "decoder" and starts and not keys.is_special[column],
        ]

    def best(rows: list[int]) -> list[tuple[int, int]]:
        cells = [(row, column) for row in rows for column in range(len(keys))]
        least = min(aside(*cell) for cell in cells)
        left = [cell for cell in cells if aside(*cell) == least]
        most = max(shown.weights[cell] for cell in left)
        return [cell for cell in left if shown.weights[cell] == most]

    rows = list(range(len(queries)))
    for link, within in [
        (facts.strongest_link(shown), rows),
        *((facts.strongest_link(shown, row), [row]) for row in rows),
    ]:
        assert (entry_of(queries, link.query), entry_of(keys, link.key)) in best(within)
    for row in rows:
        query = int(queries.positions[row])
        assert entry_of(keys, findings.strongest_key(shown, query)) in [key for _, key in best([row])]


def link_of(labels, cells, kind="encoder", **changes):
    """The first link of a text, as labels."""
    axis = Axis.of(replace(tokens(labels), **changes))
    link = facts.first_link(small_pattern(cells, queries=axis, keys=axis, kind=kind))
    return labels[link.query], labels[link.key]


LABELS = ["[CLS]", "the", "bank", "said", "it", "rose", ".", "[SEP]"]


def weights_with(**cells: float) -> list[list[float]]:
    """Small weights everywhere, and these: ``it_bank=0.5``; "dot" is the full stop."""
    names = ["cls", "the", "bank", "said", "it", "rose", "dot", "sep"]
    weights = np.full((8, 8), 0.01)
    for pair, weight in cells.items():
        query, key = pair.split("_")
        weights[names.index(query), names.index(key)] = weight
    return weights.tolist()


@pytest.mark.parametrize(
    ("cells", "link"),
    [
        ({"it_bank": 0.3, "rose_bank": 0.9}, ("it", "bank")),  # a pronoun comes first, with less
        ({"it_bank": 0.09, "rose_bank": 0.2}, ("rose", "bank")),  # unless its weight is small
        ({"it_said": 0.5, "rose_bank": 0.2}, ("rose", "bank")),  # or its key is next to it
        (
            {"it_bank": 0.3, "it_dot": 0.5, "rose_bank": 0.2},
            ("rose", "bank"),
        ),  # or another key is its strongest
        (
            {"the_bank": 0.9, "dot_said": 0.9, "rose_bank": 0.2},
            ("rose", "bank"),
        ),  # no article, no punctuation
        ({"rose_the": 0.9, "said_bank": 0.2}, ("said", "bank")),  # on either side
        (
            {"it_cls": 0.9, "it_it": 0.8, "it_bank": 0.2},
            ("it", "bank"),
        ),  # resting places and itself are set aside
    ],
)
@pytest.mark.stand_ins
def test_where_a_reader_begins(cells, link):
    assert link_of(LABELS, weights_with(**cells)) == link


def test_where_a_reader_begins_if_no_two_words_say_something():
    even = np.full((4, 4), 0.25)
    assert link_of(["[CLS]", "Rain", ".", "[SEP]"], even.tolist())[0] == "Rain"
    assert link_of(["[CLS]", "the", ".", "[SEP]"], even.tolist())[0] in ("the", ".")
    assert link_of(["[CLS]", "😀", "😀", "[SEP]"], even.tolist()) == ("😀", "😀")


def test_pieces_of_one_word_are_no_link():
    cells = [[0.1, 0.8, 0.1], [0.8, 0.1, 0.1], [0.3, 0.1, 0.6]]
    assert link_of(["play", "##ing", "music"], cells, word=np.array([0, 0, 1])) == ("music", "play")


def test_a_decoder_s_first_token_is_a_resting_place_here_too():
    cells = [[1.0, 0.0, 0.0], [0.9, 0.1, 0.0], [0.6, 0.3, 0.1]]
    assert link_of(["Anna", "told", "Tom"], cells, kind="decoder") == ("Tom", "told")


@st.composite
def measured_twice(draw: st.DrawFn) -> tuple[AttentionPattern, AttentionPattern]:
    """Weights and norm-based weights of one head on the same rows and columns."""
    axis = draw(texts())
    weights = replace(draw(matrices(axis)), measure="weights", head=1)
    lengths = draw(hnp.arrays(np.int64, len(axis), elements=st.integers(0, 3), fill=st.nothing()))
    norms = replace(
        weights, weights=(weights.weights * lengths).astype(np.float32), scores=None, measure="norms"
    )
    shown = Axis.of(axis.tokens, draw(st.sampled_from(("tokens", "words"))))
    return weights.arranged(shown, shown), norms.arranged(shown, shown)


@given(measured_twice(), st.sampled_from(("encoder", "decoder")))
@pytest.mark.stand_ins
def test_a_resting_place_that_is_said_to_add_less_has_the_largest_weight_and_a_smaller_norm(patterns, kind):
    """A special token, or the first token of a decoder's text."""
    weights, norms = patterns
    weights, keys = replace(weights, kind=kind), weights.keys
    for row, column in np.ndindex(weights.weights.shape):
        by_weight, by_norm, special = (
            weights.weights[row].tolist(),
            norms.weights[row].tolist(),
            [
                is_special or (kind == "decoder" and at == 0)
                for is_special, at in zip(keys.is_special.tolist(), keys.positions.tolist(), strict=True)
            ],
        )
        first = by_weight.index(max(by_weight))
        addition = facts.small_addition(weights, norms, row, column)
        words = [number for number in range(len(keys)) if not special[number]]
        other = column if column != first else max(words, key=lambda word: by_norm[word]) if words else first
        assert (addition is not None) == (special[first] and by_norm[first] < by_norm[other])
        if addition is not None:
            assert entry_of(keys, addition.special) == first
            assert by_norm[entry_of(keys, addition.key)] == by_norm[other] > 0
            assert addition.share == pytest.approx(by_norm[first] / by_norm[other], rel=1e-6)
            assert addition.key == keys.positions[column] or column == first


@given(measured_twice())
@pytest.mark.stand_ins
def test_what_a_query_receives_by_weight_and_by_norm(patterns):
    weights, norms = patterns
    for row in range(len(weights.queries)):
        by_weight, by_norm = weights.weights[row].tolist(), norms.weights[row].tolist()
        for known in (norms, None):
            received = facts.received(weights, known, row)
            heaviest = [entry_of(weights.keys, position) for position in received.heaviest]
            assert received.weight == max(by_weight)
            assert heaviest == [key for key, weight in enumerate(by_weight) if weight == max(by_weight) > 0]
            if known is None or not heaviest:
                assert (received.norm, received.norm_of_heaviest, received.longest) == (None, None, ())
                continue
            assert received.norm == max(by_norm)
            assert received.norm_of_heaviest == by_norm[heaviest[0]]
            longest = [entry_of(weights.keys, position) for position in received.longest]
            assert longest == [key for key, norm in enumerate(by_norm) if norm == max(by_norm) > 0]


@st.composite
def numbers_of_heads(draw: st.DrawFn) -> np.ndarray:
    """A number of every head with many ties; some heads have none."""
    shape = draw(st.integers(1, 4)), draw(st.integers(1, 5))
    numbers = draw(hnp.arrays(np.int64, shape, elements=st.integers(0, 3), fill=st.nothing())) / np.float32(4)
    absent = (
        draw(hnp.arrays(np.bool_, shape, fill=st.nothing()))
        if draw(st.booleans())
        else np.zeros(shape, dtype=bool)
    )
    absent[draw(st.integers(0, shape[0] - 1)), draw(st.integers(0, shape[1] - 1))] = False
    return np.where(absent, np.float32(np.nan), numbers.astype(np.float32))


def by_head(numbers: np.ndarray) -> dict[tuple[int, int], float]:
    """Every head that has a number."""
    listed = numbers.tolist()
    return {
        (layer, head): number
        for layer, row in enumerate(listed)
        for head, number in enumerate(row)
        if number == number
    }


@given(numbers_of_heads(), st.data())
def test_the_rank_of_a_head(numbers, data):
    there = by_head(numbers)
    picked = data.draw(st.sampled_from(sorted(there)))
    rank = facts.rank(numbers, picked)
    assert rank.number == there[picked]
    assert rank.n_more == sum(number > there[picked] for number in there.values())
    assert rank.n_equal == sum(number == there[picked] for head, number in there.items() if head != picked)
    assert (rank.n_heads, rank.largest) == (len(there), max(there.values()))
    assert list(rank.leading) == [head for head, number in there.items() if number == max(there.values()) > 0]


@given(numbers_of_heads())
def test_the_ends_of_a_number_of_every_head(numbers):
    there = by_head(numbers)
    ends = facts.extremes(numbers)
    assert (ends.largest, ends.smallest) == (max(there.values()), min(there.values()))
    assert list(ends.most) == [head for head, number in there.items() if number == max(there.values())]
    assert list(ends.least) == [head for head, number in there.items() if number == min(there.values())]
