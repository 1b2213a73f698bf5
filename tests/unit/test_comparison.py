"""Two patterns on common axes: alignments worked out by hand, numbers written out in loops, and the real model."""

import csv
import io
import re
from dataclasses import replace

import numpy as np
import pytest

import attnviz
from attnviz.errors import SelectionError, ShapeError
from attnviz.figures.comparison import MOST_BLOCKS, MOST_CHANGES, draw_comparison, entry_labels
from attnviz.figures.theme import DARK, LIGHT, difference_scale
from attnviz.heads.comparison import align, compare, pair_positions
from attnviz.records import Axis
from tests import hand_made
from tests.colours import SEEN, linear, oklab, seen

ROUNDING = 1e-6  # float32: differences of weights up to 1, and sums of a dozen of them


def axis(text):
    whole = Axis.of(hand_made.tokens(text.split() or ["hidden"]))
    return whole.where(np.full(len(whole), bool(text)))


def pattern(weights, text):
    return hand_made.trace(np.array([[weights]]), text.split()).pattern(0, 0)


A, B = -1, -1  # where there is no partner, for A and for B

ALIGNED = {
    "equal": ("[CLS] the door [SEP]", "[CLS] the door [SEP]", [(0, 0), (1, 1), (2, 2), (3, 3)]),
    "inserted": ("the door", "the old big door", [(0, 0), (A, 1), (A, 2), (1, 3)]),
    "deleted": ("the old big door", "the door", [(0, 0), (1, B), (2, B), (3, 1)]),
    "one word exchanged": ("the door opened", "the window opened", [(0, 0), (1, 1), (2, 2)]),
    "two for two": ("a b c d", "a x y d", [(0, 0), (1, 1), (2, 2), (3, 3)]),
    "two for one": ("the door opened", "the win ##dow opened", [(0, 0), (1, B), (A, 1), (A, 2), (2, 3)]),
    "all differ, as many": ("a b", "x y", [(0, 0), (1, 1)]),
    "all differ, more": ("a b c", "x y", [(0, B), (1, B), (2, B), (A, 0), (A, 1)]),
    "the longest stretch first": ("a b c d", "b c d a", [(0, B), (1, 0), (2, 1), (3, 2), (A, 3)]),
    "nothing": ("a", "", [(0, B)]),
}


@pytest.mark.parametrize(
    ("first", "second", "pairs"),
    [
        ("a b c d", "b c d a", [(0, 0), (1, 1), (2, 2), (3, 3)]),
        ("a b c", "a x", [(0, 0), (1, 1), (2, B)]),
        ("a x", "a b c d", [(0, 0), (1, 1), (A, 2), (A, 3)]),
    ],
)
def test_positions_are_paired_whatever_stands_there(first, second, pairs):
    assert [tuple(value) for value in pair_positions(axis(first), axis(second)).pairs.tolist()] == pairs


def test_a_comparison_by_positions():
    first, second = pattern([[0.6, 0.4], [0.3, 0.7]], "a b"), pattern([[0.5, 0.5], [0.1, 0.9]], "b a")
    comparison = compare(first, second, pairing=pair_positions)
    np.testing.assert_allclose(comparison.difference, [[-0.1, 0.1], [-0.2, 0.2]], atol=ROUNDING)
    np.testing.assert_allclose(comparison.row_change, [0.1, 0.2], atol=ROUNDING)


@pytest.mark.parametrize(("first", "second", "pairs"), ALIGNED.values(), ids=list(ALIGNED))
def test_alignments_by_hand(first, second, pairs):
    alignment = align(axis(first), axis(second))
    assert [tuple(value) for value in alignment.pairs.tolist()] == pairs
    assert len(alignment) == len(pairs)
    assert alignment.is_paired.tolist() == [min(pair) >= 0 for pair in pairs]
    assert alignment.has(0).tolist() == [pair[0] >= 0 for pair in pairs]
    assert alignment.has(1).tolist() == [pair[1] >= 0 for pair in pairs]


def test_words_that_occur_often_are_aligned_too():
    # difflib's "autojunk" would drop words that make up more than 1% of 200 and more
    many = " ".join(["the", "door"] * 150)
    assert align(axis(many), axis(f"old {many}")).pairs.tolist() == [[-1, 0]] + [
        [n, n + 1] for n in range(300)
    ]


def test_positions_are_those_of_tokens_not_of_entries():
    words = Axis.of(hand_made.tokens(["[CLS]", "win", "##dow", "opened", "[SEP]"]), "words")
    alignment = align(words.without_special(), axis("[CLS] the window opened [SEP]").without_special())

    assert alignment.pairs.tolist() == [[-1, 0], [0, 1], [1, 2]]
    assert alignment.positions(0).tolist() == [-1, 1, 3]
    assert alignment.positions(1).tolist() == [1, 2, 3]
    assert [alignment.index(position) for position in range(5)] == [None, 1, 1, 2, None]


def test_pairs_that_leave_an_entry_out_are_refused():
    alignment = align(axis("a b"), axis("a b"))
    with pytest.raises(ShapeError, match="entries in order"):
        replace(alignment, pairs=alignment.pairs[:1])
    with pytest.raises(ShapeError, match="entries in order"):
        replace(alignment, pairs=alignment.pairs[::-1])


FIRST = np.array([[0.5, 0.3, 0.2], [0.1, 0.8, 0.1], [0.25, 0.25, 0.5]])  # the door opened
SECOND = np.array(  # the old window opened: "old" and "window" for "door"
    [[0.4, 0.1, 0.2, 0.3], [0.25, 0.25, 0.25, 0.25], [0.7, 0.1, 0.1, 0.1], [0.1, 0.6, 0.1, 0.2]]
)


@pytest.fixture
def longer():
    return compare(pattern(FIRST, "the door opened"), pattern(SECOND, "the old window opened"))


def test_numbers_by_hand(longer):
    none = np.nan
    # rows and columns: the, door (A), old (B), window (B), opened
    first = [[0.5, 0.3, none, none, 0.2], [0.1, 0.8, none, none, 0.1], [none] * 5, [none] * 5, [0.25, 0.25, none, none, 0.5]]  # fmt: skip
    second = [[0.4, none, 0.1, 0.2, 0.3], [none] * 5, [0.25, none, 0.25, 0.25, 0.25], [0.7, none, 0.1, 0.1, 0.1], [0.1, none, 0.6, 0.1, 0.2]]  # fmt: skip
    difference = [[-0.1, none, none, none, 0.1], [none] * 5, [none] * 5, [none] * 5, [-0.15, none, none, none, -0.3]]  # fmt: skip

    np.testing.assert_allclose(longer.first_weights, first, atol=ROUNDING)
    np.testing.assert_allclose(longer.second_weights, second, atol=ROUNDING)
    np.testing.assert_allclose(longer.difference, difference, atol=ROUNDING)
    # the: (0.1 + 0.3 + 0.1 + 0.2 + 0.1) / 2; opened: (0.15 + 0.25 + 0.6 + 0.1 + 0.3) / 2
    np.testing.assert_allclose(longer.row_change, [0.4, none, none, none, 0.7], atol=ROUNDING)


def test_the_largest_changes_come_first(longer):
    changes = [
        (change.query, change.key, round(change.first, 5), round(change.second, 5))
        for change in longer.largest(3)
    ]
    assert changes[:2] == [(4, 4, 0.5, 0.2), (4, 0, 0.25, 0.1)]
    assert changes[2] in [(0, 0, 0.5, 0.4), (0, 4, 0.2, 0.3)]  # equal but for rounding
    assert [abs(round(change.difference, 5)) for change in longer.largest(9)] == [0.3, 0.15, 0.1, 0.1]
    assert sorted(round(change.difference, 5) for change in longer.largest(9)) == [-0.3, -0.15, -0.1, 0.1]


def test_a_cell_without_a_partner_has_no_change(longer):
    with pytest.raises(SelectionError, match="does not have that cell"):
        longer.change(1, 0)
    with pytest.raises(SelectionError, match="does not have that cell"):
        longer.change(0, 2)
    assert longer.change(0, 0).difference == pytest.approx(-0.1, abs=ROUNDING)


def test_a_key_that_one_may_not_see_has_weight_0_and_one_that_neither_may_is_empty():
    allowed = np.tril(np.ones((3, 3), dtype=bool))
    causal = FIRST * allowed / (FIRST * allowed).sum(axis=1, keepdims=True)
    labels = ["the", "door", "opened"]
    sees_back = hand_made.trace(causal[None, None], labels, allowed=allowed).pattern(0, 0)
    sees_all = hand_made.trace(FIRST[None, None], labels).pattern(0, 0)

    comparison = compare(sees_all, sees_back)
    np.testing.assert_array_equal(np.isnan(comparison.second_weights), ~allowed)
    np.testing.assert_allclose(comparison.difference, causal - FIRST, atol=ROUNDING)
    assert comparison.change(0, 2).second == 0.0

    np.testing.assert_array_equal(np.isnan(compare(sees_back, sees_back).difference), ~allowed)


def test_different_measures_are_refused(door_trace):
    weights, norms = door_trace.pattern(3, 1), door_trace.pattern(3, 1, measure="norms")
    with pytest.raises(SelectionError, match="weights with norms"):
        compare(weights, norms)


def test_two_heads_of_the_model(door_trace):
    comparison = compare(door_trace.pattern(3, 1), door_trace.pattern(3, 2))
    expected = door_trace.weights(3, 2) - door_trace.weights(3, 1)

    np.testing.assert_array_equal(comparison.difference, expected)
    np.testing.assert_allclose(comparison.row_change, np.abs(expected).sum(axis=1) / 2, atol=ROUNDING)
    largest = comparison.largest(1)[0]
    assert (largest.query, largest.key) == np.unravel_index(np.abs(expected).argmax(), expected.shape)
    assert comparison.change(7, 5).first == pytest.approx(0.475, abs=1e-3)


def test_two_sentences_that_differ_in_a_word(embedded, door_trace):
    window = embedded.trace("I was watching the window when it opened.")
    comparison = compare(door_trace.pattern(3, 1), window.pattern(3, 1))

    np.testing.assert_array_equal(comparison.difference, window.weights(3, 1) - door_trace.weights(3, 1))
    assert entry_labels(comparison.queries)[5] == "door→window·5"
    assert comparison.queries.is_paired.all()


def test_the_border_between_the_texts_of_a_pair_is_drawn(embedded):
    """[CLS] the door opened . [SEP] it creaked . [SEP], and B has one token more before the border: 7 above it."""
    first = embedded.trace("The door opened.", "It creaked.").pattern(0, 0)
    second = embedded.trace("The old door opened.", "It creaked.").pattern(0, 0)
    lines = [
        shape
        for shape in draw_comparison(compare(first, second), "first").layout.shapes
        if shape.type == "line"
    ]
    assert sorted((line.x0, line.x1, line.y0, line.y1) for line in lines) == [
        (-0.5, 10.5, 6.5, 6.5),
        (6.5, 6.5, -0.5, 10.5),
    ]


def test_a_masked_token_is_paired_with_the_token_it_was(embedded, door_trace):
    masked = embedded.trace("I was watching the door when it opened.", masked=(5,))
    comparison = compare(door_trace.pattern(3, 1), masked.pattern(3, 1))
    assert comparison.keys.is_paired.all()
    assert entry_labels(comparison.keys)[5] == "door→[MASK]·5"
    assert not comparison.splits_differ

    other = embedded.trace("I was watching the door when it opened.", masked=(7,))
    comparison = compare(masked.pattern(3, 1), other.pattern(3, 1))  # two masks are not paired
    assert comparison.keys.pairs.tolist() == [[number, number] for number in range(11)]


def test_models_that_split_a_text_differently_are_aligned_by_label_and_it_is_known(embedded, tiny_model):
    text = "the doors opened"
    ours, theirs = embedded.trace(text).pattern(0, 0), tiny_model("bert").trace(text).pattern(0, 0)
    comparison = compare(ours, theirs)

    assert ours.queries.labels == ("[CLS]", "the", "doors", "opened", "[SEP]")
    assert theirs.queries.labels == ("[CLS]", "the", "door", "##s", "opened", "[SEP]")
    assert comparison.splits_differ
    assert comparison.queries.pairs.tolist() == [[0, 0], [1, 1], [2, -1], [-1, 2], [-1, 3], [3, 4], [4, 5]]
    assert not compare(ours, embedded.trace(text).pattern(1, 2)).splits_differ
    assert not compare(ours, embedded.trace("a window").pattern(0, 0)).splits_differ


def test_is_a_public_name(door_trace):
    assert isinstance(attnviz.compare(door_trace.pattern(3, 1), door_trace.pattern(3, 2)), attnviz.Comparison)


class TestCSV:
    def test_holds_every_cell(self, longer):
        rows = list(csv.reader(io.StringIO(longer.csv().decode("utf-8-sig"))))

        assert rows[0] == ["query A", "query B", "key A", "key B", "A", "B", "B - A"]
        assert len(rows) == 1 + 5 * 5
        by_place = {tuple(row[:4]): row[4:] for row in rows[1:]}
        assert by_place["0 the", "0 the", "1 door", ""][1:] == ["", ""]
        _, alone, none = by_place["", "2 window", "0 the", "0 the"]
        assert np.float32(alone) == longer.second_weights[3, 0]  # in full
        assert none == ""
        assert by_place["", "2 window", "1 door", ""] == ["", "", ""]
        opened = [*map(float, by_place["2 opened", "3 opened", "2 opened", "3 opened"])]
        assert opened == pytest.approx([0.5, 0.2, -0.3], abs=ROUNDING)


class TestFigures:
    def test_hold_the_numbers_on_common_axes(self, longer):
        figures = {part: draw_comparison(longer, part) for part in ("first", "second", "difference")}
        labels = ["the·0", "door·−1", "old·+1", "window·+2", "opened·2"]
        for part, cells in (
            ("first", longer.first_weights),
            ("second", longer.second_weights),
            ("difference", longer.difference),
        ):
            drawn = figures[part].data[0]
            np.testing.assert_array_equal(drawn.z, cells)
            assert list(drawn.x) == list(drawn.y) == labels

    def test_both_matrices_have_the_same_colours_and_the_difference_is_centred_at_0(self, longer):
        first, second, difference = (
            draw_comparison(longer, part).data[0] for part in ("first", "second", "difference")
        )
        assert (first.zmin, first.zmax) == (second.zmin, second.zmax) == (0, pytest.approx(0.8))
        assert (difference.zmin, difference.zmax) == (pytest.approx(-0.3), pytest.approx(0.3))
        assert first.colorscale == second.colorscale != difference.colorscale

    def test_a_scale_of_nothing_is_not_drawn(self, longer, door_trace):
        same = compare(door_trace.pattern(3, 1), door_trace.pattern(3, 1))
        assert not same.difference.any()
        drawn = {part: draw_comparison(same, part).data[0] for part in ("first", "second", "difference")}
        assert [drawn[part].showscale for part in drawn] == [True, True, False]
        assert draw_comparison(longer, "difference").data[0].showscale

    def test_the_numbers_of_a_scale_have_no_prefix_of_a_unit(self, longer):
        for part in ("first", "second", "difference"):
            assert draw_comparison(longer, part).data[0].colorbar.exponentformat == "power"

    @pytest.mark.parametrize(("n_token", "gap"), [(48, 1), (49, 0)])
    def test_up_to_48_rows_and_columns_have_gaps(self, n_token, gap):
        even = pattern(np.full((n_token, n_token), 1 / n_token), " ".join(f"w{at}" for at in range(n_token)))
        cells = draw_comparison(compare(even, even), "difference").data[0]
        assert (cells.xgap, cells.ygap) == (gap, gap)

    def test_all_three_have_the_same_edges(self, longer):
        for part in ("first", "second", "difference"):
            axes = draw_comparison(longer, part).layout
            assert (axes.xaxis.range, axes.yaxis.range) == ((-0.5, 4.5), (4.5, -0.5))

    def test_hover_text_has_both_numbers(self, longer):
        first, second, difference = (
            draw_comparison(longer, part).data[0] for part in ("first", "second", "difference")
        )
        assert "A: weight %{z:.3g}<br>B: weight %{text}" in first.hovertemplate
        assert "A: weight %{text}<br>B: weight %{z:.3g}" in second.hovertemplate
        assert (first.text[4][4], first.text[0][1], second.text[4][4]) == ("0.200", "no partner", "0.500")
        assert difference.text[4][4] == "0.500 → 0.200"

    def test_a_click_leads_to_positions_in_a(self, longer):
        places = draw_comparison(longer, "second").data[0].customdata
        assert places[4][0].tolist() == [2, 0]
        assert places[2][4].tolist() == [-1, 2]  # "old" is not in A

    def test_what_is_missing_is_hatched_and_nothing_else(self, longer):
        def hatched(part):
            shapes = [shape for shape in draw_comparison(longer, part).layout.shapes if shape.type == "path"]
            return shapes[0].path if shapes else ""

        def box(left, right, top, bottom):
            return f"M{left},{top}L{right},{top}L{right},{bottom}L{left},{bottom}Z"

        # "old" and "window" are rows and columns 2 and 3; "door" is 1
        assert hatched("first") == box(1.5, 3.5, -0.5, 1.5) + box(-0.5, 4.5, 1.5, 3.5) + box(
            1.5, 3.5, 3.5, 4.5
        )
        assert hatched("second") == box(0.5, 1.5, -0.5, 0.5) + box(-0.5, 4.5, 0.5, 1.5) + box(
            0.5, 1.5, 1.5, 4.5
        )
        both = box(0.5, 3.5, -0.5, 0.5) + box(-0.5, 4.5, 0.5, 3.5) + box(0.5, 3.5, 3.5, 4.5)
        assert hatched("difference") == both
        same = compare(longer.first, longer.first)
        assert draw_comparison(same, "difference").layout.shapes == ()

    def test_the_picked_row_and_cell_are_outlined(self, longer):
        for part in ("first", "second", "difference"):
            row, cell = (
                shape
                for shape in draw_comparison(longer, part, picked=(2, 0)).layout.shapes
                if shape.type == "rect"
            )
            assert (row.y0, row.y1, row.x0, row.x1) == (3.5, 4.5, -0.5, 4.5)
            assert (cell.x0, cell.x1) == (-0.5, 0.5)

    def test_triangles_are_on_the_largest_changes(self, longer):
        marks = draw_comparison(longer, "difference").data[1]
        triangles = list(zip(marks.y, marks.x, marks.marker.symbol, strict=True))
        assert triangles[:2] == [
            ("opened·2", "opened·2", "triangle-down"),
            ("opened·2", "the·0", "triangle-down"),
        ]
        assert set(triangles[2:]) == {
            ("the·0", "the·0", "triangle-down"),
            ("the·0", "opened·2", "triangle-up"),
        }
        assert len(draw_comparison(longer, "first").data) == 1

    def test_labels_are_shown_as_they_are_and_never_twice(self):
        first = axis("<b> door·5 $x$ same a")
        second = axis("<b> window same b +a a")
        alignment = align(first, second)
        labels = entry_labels(alignment)
        assert len(set(labels)) == len(labels)
        drawn = draw_comparison(
            compare(
                pattern(np.eye(5), "<b> door·5 $x$ same a"), pattern(np.eye(6), "<b> window same b +a a")
            ),
            "first",
        )
        assert drawn.data[0].x[0] == "&lt;b&gt;·0"
        assert not any("<" in label or "$" in label for label in drawn.data[0].x)


@pytest.fixture(scope="module")
def long():
    """512 tokens and 509 of them, with numbers that no two cells share."""
    weights = np.random.default_rng(3).dirichlet(np.full(512, 0.3), size=512)
    other = np.random.default_rng(4).dirichlet(np.full(509, 0.3), size=509)
    labels = [f"w{number}" for number in range(512)]
    return compare(pattern(weights, " ".join(labels)), pattern(other, " ".join(labels[:100] + labels[103:])))


class TestLongTexts:
    @pytest.mark.parametrize("part", ["first", "second", "difference"])
    def test_a_block_shows_its_strongest_cell_and_a_click_picks_it(self, long, part):
        cells = {"first": long.first_weights, "second": long.second_weights, "difference": long.difference}[
            part
        ]
        drawn = draw_comparison(long, part).data[0]
        length = 4  # 512 / 4 is the first that is not above 128

        assert drawn.z.shape == (128, 128)
        for row, column in ((0, 0), (127, 127), (25, 26), (26, 5), (90, 17), (126, 0)):
            block = cells[row * length : (row + 1) * length, column * length : (column + 1) * length]
            at = None
            for query, key in np.ndindex(block.shape):
                if np.isfinite(block[query, key]) and (at is None or abs(block[query, key]) > abs(block[at])):
                    at = query, key
            assert at is not None
            assert drawn.z[row, column] == block[at]
            assert drawn.customdata[row][column].tolist() == [row * length + at[0], column * length + at[1]]

    def test_a_block_is_hatched_where_all_of_its_entries_are_missing(self):
        labels = [f"w{number}" for number in range(300)]  # three entries a block
        even, other = np.full((300, 300), 1 / 300), np.full((292, 292), 1 / 292)
        cut = compare(pattern(even, " ".join(labels)), pattern(other, " ".join(labels[:10] + labels[18:])))
        hatched = next(
            shape for shape in draw_comparison(cut, "second").layout.shapes if shape.type == "path"
        )
        across = re.findall(r"M(-?[\d.]+),(-?[\d.]+)L(-?[\d.]+)", hatched.path)
        # blocks 4 and 5 hold entries 12 to 17; 10, 11 and 9 are of block 3, which has one that is there
        assert {(float(top), float(left), float(right)) for left, top, right in across} == {
            (-0.5, 3.5, 5.5),
            (3.5, -0.5, 99.5),
            (5.5, 3.5, 5.5),
        }

    def test_nothing_strong_disappears(self, long):
        drawn = draw_comparison(long, "difference").data[0]
        assert np.nanmax(np.abs(drawn.z)) == np.nanmax(np.abs(long.difference))
        assert drawn.z.shape[0] <= MOST_BLOCKS

    @pytest.mark.parametrize("around", [None, MOST_BLOCKS])
    def test_is_light(self, long, around):
        parts = ("first", "second", "difference")
        sent = sum(len(draw_comparison(long, part, around=around).to_json()) for part in parts)
        assert sent <= 1_500_000  # the budget of one heatmap of 512 tokens
        assert len(long.largest(MOST_CHANGES)) == MOST_CHANGES

    @pytest.mark.parametrize("part", ["first", "second", "difference"])
    def test_the_part_around_the_picked_pair_has_every_cell(self, long, part):
        cells = {"first": long.first_weights, "second": long.second_weights, "difference": long.difference}[
            part
        ]
        figure = draw_comparison(long, part, picked=(101, 300), around=17)
        drawn = figure.data[0]
        np.testing.assert_array_equal(drawn.z, cells[93:110, 292:309])
        assert list(drawn.x) == entry_labels(long.keys)[292:309]
        assert list(drawn.y) == entry_labels(long.queries)[93:110]
        assert "w100·−100" in drawn.y  # which B does not have
        assert drawn.customdata[8][8].tolist() == [101, 300]
        assert "largest of the block" not in drawn.hovertemplate
        [cell] = [shape for shape in figure.layout.shapes if shape.type == "rect" and shape.line.width == 3]
        assert (cell.x0, cell.x1, cell.y0, cell.y1) == (7.5, 8.5, 7.5, 8.5)

        whole = draw_comparison(long, part).data[0]
        assert (drawn.zmin, drawn.zmax) == (whole.zmin, whole.zmax)

    def test_a_part_stays_within_the_edges(self, long):
        for picked, rows, columns in (((0, 511), (0, 17), (495, 512)), ((509, 3), (495, 512), (0, 17))):
            part = long.around(*picked, 17)
            np.testing.assert_array_equal(
                part.first_weights, long.first_weights[slice(*rows), slice(*columns)]
            )
            assert part.queries.positions(0).tolist() == list(range(*rows))
            assert part.keys.positions(0).tolist() == list(range(*columns))
        assert long.around(5, 5, 600).difference.shape == long.difference.shape


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
class TestDifferenceScale:
    def test_goes_through_the_background(self, theme):
        scale = difference_scale(theme)
        places = [place for place, _ in scale]
        assert scale[0] == (0.0, theme.falls)
        assert scale[len(scale) // 2] == (0.5, theme.background)
        assert scale[-1] == (1.0, theme.grows)
        np.testing.assert_allclose(places, [1 - place for place in reversed(places)], atol=1e-12)

    def test_equal_differences_are_equally_strong_whatever_their_sign(self, theme):
        colours = np.array([oklab(linear(colour)) for _, colour in difference_scale(theme)])
        background = oklab(linear(theme.background))
        far = np.linalg.norm(colours - background, axis=1)
        middle = len(colours) // 2
        np.testing.assert_allclose(
            far[: middle + 1][::-1], far[middle:], atol=0.03
        )  # OKLab's unit: white is 1
        np.testing.assert_allclose(np.diff(far[middle:]), far[-1] / middle, atol=0.006)  # 8 bits a channel

    @pytest.mark.parametrize("eyes", SEEN)
    def test_signs_are_told_apart_with_any_colour_blindness(self, theme, eyes):
        falls, grows = seen(theme.falls, eyes), seen(theme.grows, eyes)
        assert np.linalg.norm(falls - grows) > 0.12  # six times the least that is noticed, 0.02
