"""Records: what they refuse, that they cannot be changed, and the arithmetic on them."""

import math
import pickle
from dataclasses import FrozenInstanceError, fields, replace

import numpy as np
import pytest

import attnviz
from attnviz.errors import SelectionError, ShapeError
from attnviz.records import (
    AttentionPattern,
    Axis,
    Check,
    Faithfulness,
    LayerAttention,
    Projection,
    Provenance,
    Tokens,
    VerificationReport,
    arrange,
    check_index,
)

PROVENANCE = Provenance(model="m", revision="r", dtype="float32", versions={"torch": "2"})


def tokens(n: int = 4, **changes) -> Tokens:
    """[CLS] 1 2 ... [SEP]"""
    given = {
        "text": "text",
        "ids": np.arange(n),
        "labels": tuple(map(str, range(n))),
        "is_special": np.array([True, *[False] * (n - 2), True]),
        "segment": np.zeros(n, dtype=int),
        "word": np.arange(n) - 1,
    }
    return Tokens(**given | changes)


def layer(**changes) -> LayerAttention:
    """6 heads on 2 shared keys and values, 3 queries, 5 keys."""
    given = {
        "kind": "cross",
        "layer": 0,
        "query": np.zeros((6, 3, 7), dtype=np.float32),
        "key": np.zeros((2, 5, 7), dtype=np.float32),
        "value": np.zeros((2, 5, 11), dtype=np.float32),
        "scale": 1.0,
    }
    return LayerAttention(**given | changes)


def pattern(weights: list[list[float]], **changes) -> AttentionPattern:
    n_query, n_key = np.shape(weights)
    given = {
        "kind": "encoder",
        "layer": 0,
        "head": 0,
        "scores": np.arange(n_query * n_key, dtype=np.float32).reshape(n_query, n_key),
        "weights": np.array(weights, dtype=np.float32),
        "allowed": np.ones((n_query, n_key), dtype=bool),
        "queries": Axis.of(tokens(n_query)),
        "keys": Axis.of(tokens(n_key)),
        "hidden_weight": np.zeros(n_query, dtype=np.float32),
        "provenance": PROVENANCE,
    }
    return AttentionPattern(**given | changes)


PERFECT = Faithfulness(order_correlation=-1.0, worst_correlation=-1.0, nearest_agreement=1.0)


def projection(n_point: int = 6, **changes) -> Projection:
    given = {
        "points": np.zeros((n_point, 2), dtype=np.float32),
        "role": ("query", "query", "query", "key", "key", "key"),
        "position": np.array([0, 1, 2, 0, 1, 2]),
        "query_tokens": tokens(3),
        "key_tokens": tokens(3),
        "kind": "encoder",
        "layer": 0,
        "head": 0,
        "method": "tsne",
        "space": "raw",
        "parameters": {"seed": 0},
        "in_map": PERFECT,
        "in_space": PERFECT,
        "trustworthiness": 1.0,
        "provenance": PROVENANCE,
    }
    return Projection(**given | changes)


def check(differences, tolerances=1e-5, name: str = "attention weights") -> Check:
    """A check of encoder layers x heads; one tolerance for all, or one each."""
    found = np.array(differences, dtype=np.float32)
    allowed = np.broadcast_to(np.array(tolerances, dtype=np.float32), found.shape).copy()
    return Check(
        name=name,
        differences={"encoder": found},
        tolerances={"encoder": allowed},
        unit="weight",
        reason="float32",
    )


def report(weights: float = 0.0, outputs: float = 0.0) -> VerificationReport:
    return VerificationReport(
        checks=(check([[0.0, weights]]), check([[outputs]], name="output after W_O")), provenance=PROVENANCE
    )


@pytest.mark.usefixtures("types_unchecked")
class TestFieldsThatDoNotFit:
    @pytest.mark.parametrize(
        ("field", "value"),
        [
            ("labels", ("a", "b", "c")),
            ("is_special", np.zeros(3, dtype=bool)),
            ("segment", np.zeros(5, dtype=int)),
            ("word", np.zeros(5, dtype=int)),
        ],
    )
    def test_tokens(self, field, value):
        with pytest.raises(ShapeError, match=f"4 ids, but {len(value)} entries in {field}"):
            tokens(**{field: value})

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"key": np.zeros((2, 5, 8), np.float32)}, "queries have d_head 7, keys 8"),
            ({"key": np.zeros((2, 5, 6), np.float32)}, "queries have d_head 7, keys 6"),
            ({"value": np.zeros((2, 4, 11), np.float32)}, "keys are 2 kv_head x 5 key, values 2 x 4"),
            ({"value": np.zeros((3, 5, 11), np.float32)}, "keys are 2 kv_head x 5 key, values 3 x 5"),
            ({"query": np.zeros((5, 3, 7), np.float32)}, "5 heads cannot share 2 key-value heads"),
            ({"allowed": np.ones((2, 3, 5), bool)}, "allowed is"),
            ({"allowed": np.ones((1, 5, 3), bool)}, "allowed is"),
            ({"bias": np.zeros((6, 3, 4), np.float32)}, "bias is"),
        ],
    )
    def test_a_layer(self, changes, message):
        with pytest.raises(ShapeError, match=message):
            layer(**changes)

    @pytest.mark.parametrize("shape", [(1, 1, 5), (1, 3, 5), (6, 1, 5), (6, 3, 5)], ids=str)
    def test_a_mask_may_be_shared_by_heads_and_queries(self, shape):
        assert layer(allowed=np.ones(shape, bool), bias=np.zeros(shape, np.float32)).bias.shape == shape

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"scores": np.zeros((3, 4), np.float32)}, r"query key are \(3, 3\), scores \(3, 4\)"),
            ({"allowed": np.ones((2, 3), bool)}, r"query key are \(3, 3\), allowed \(2, 3\)"),
            ({"queries": Axis.of(tokens(2))}, r"query key are \(2, 3\), weights \(3, 3\)"),
            ({"keys": Axis.of(tokens(2))}, r"query key are \(3, 2\), weights \(3, 3\)"),
            ({"hidden_weight": np.zeros(2, np.float32)}, "3 queries, but 2 hidden weights"),
        ],
    )
    def test_a_pattern(self, changes, message):
        with pytest.raises(ShapeError, match=message):
            pattern([[1.0, 0.0, 0.0]] * 3, **changes)

    @pytest.mark.parametrize(
        "changes",
        [{"role": ("query",)}, {"position": np.arange(5)}, {"points": np.zeros((5, 2), np.float32)}],
        ids=lambda changes: next(iter(changes)),
    )
    def test_a_projection(self, changes):
        with pytest.raises(ShapeError, match="points"):
            projection(**changes)

    def test_the_message_names_the_record(self):
        with pytest.raises(ShapeError, match=r"^Tokens: "):
            tokens(labels=())


class TestNothingCanBeChanged:
    @pytest.mark.parametrize(
        "array",
        [
            tokens().ids,
            tokens().is_special,
            layer().query,
            layer(allowed=np.ones((1, 3, 5), bool)).allowed,
            pattern([[1.0, 0.0]] * 2).weights,
            projection().points,
            report().checks[0].differences["encoder"],
            report().checks[0].tolerances["encoder"],
        ],
        ids=lambda array: f"{array.dtype}{array.shape}",
    )
    def test_arrays(self, array):
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0

    @pytest.mark.parametrize("record", [tokens(), layer(), projection(), report(), PROVENANCE], ids=type)
    def test_fields(self, record):
        with pytest.raises(FrozenInstanceError):
            setattr(record, fields(record)[0].name, None)

    @pytest.mark.parametrize(
        "mapping", [PROVENANCE.versions, projection().parameters, report().checks[0].differences], ids=list
    )
    def test_mappings(self, mapping):
        with pytest.raises(TypeError):
            mapping["new"] = 0

    def test_a_mapping_does_not_follow_the_one_it_was_made_from(self):
        versions = {"torch": "2"}
        made = Provenance(model="m", revision="r", dtype="float32", versions=versions)
        versions["torch"] = "3"
        assert made.versions == {"torch": "2"}


@pytest.mark.parametrize("make", [tokens, layer, projection, report, lambda: check([[0.0]])])
def test_a_record_is_equal_to_itself_alone(make):
    one, other = make(), make()
    assert one == one
    assert one != other
    assert len({one, other}) == 2


def test_numbers_of_equal_provenance_have_one_each():
    other = Provenance(model="m", revision="r", dtype="float32", versions={"torch": "2"})
    assert other != PROVENANCE
    assert len({other, PROVENANCE}) == 2


def without_special(whole: AttentionPattern, *, renormalise: bool) -> AttentionPattern:
    return whole.arranged(
        whole.queries.without_special(), whole.keys.without_special(), renormalise=renormalise
    )


class TestWithoutSpecial:
    weights = ((0.25, 0.5, 0.125, 0.125), (0.5, 0.25, 0.25, 0.0), (0.5, 0.0, 0.0, 0.5), (0.0, 0.0, 0.0, 1.0))

    def test_rows_and_columns_of_special_tokens_are_gone(self):
        shown = without_special(pattern(self.weights), renormalise=False)
        assert shown.weights.tolist() == [[0.25, 0.25], [0.0, 0.0]]
        assert shown.scores.tolist() == [[5.0, 6.0], [9.0, 10.0]]
        assert shown.queries.positions.tolist() == shown.keys.positions.tolist() == [1, 2]

    @pytest.mark.parametrize("renormalise", [False, True])
    def test_each_row_says_what_it_lost(self, renormalise):
        shown = without_special(pattern(self.weights), renormalise=renormalise)
        assert shown.hidden_weight.tolist() == [0.5, 1.0]

    def test_renormalised_rows_sum_to_one_and_a_row_that_lost_everything_is_zero(self):
        shown = without_special(pattern(self.weights), renormalise=True)
        assert shown.weights.tolist() == [[0.5, 0.5], [0.0, 0.0]]

    def test_a_row_that_is_not_a_number_is_not_taken_for_one_that_lost_everything(self):
        faulty = (0.0, np.nan, 1.0, 0.0)
        shown = without_special(pattern([faulty] * 4), renormalise=True)
        assert np.isnan(shown.weights).all()

    def test_renormalised_by_hand(self):
        first = (0.0, 0.0, 0.0, 0.0, 1.0)
        row = (0.2, 0.1, 0.3, 0.2, 0.2)
        shown = without_special(pattern([first, row, row, row, first]), renormalise=True)
        np.testing.assert_allclose(shown.weights, [[1 / 6, 3 / 6, 2 / 6]] * 3, rtol=1e-6)
        np.testing.assert_allclose(shown.hidden_weight, [0.4] * 3, rtol=1e-6)

    def test_queries_and_keys_may_be_of_different_texts(self):
        shown = without_special(pattern([[0.5, 0.5, 0.0, 0.0, 0.0]] * 3), renormalise=False)
        assert shown.weights.shape == (1, 3)
        assert shown.queries.positions.tolist() == [1]
        assert shown.keys.positions.tolist() == [1, 2, 3]

    def test_the_pattern_it_was_made_from_is_left_as_it_is(self):
        whole = pattern(self.weights)
        without_special(whole, renormalise=True)
        assert whole.weights.tolist() == [list(row) for row in self.weights]
        assert whole.hidden_weight.tolist() == [0.0] * 4

    def test_only_a_whole_matrix_can_be_arranged(self):
        shown = without_special(pattern(self.weights), renormalise=False)
        with pytest.raises(ShapeError, match="all single tokens"):
            shown.arranged(shown.queries, shown.keys)

    def test_axes_of_another_text_are_refused(self):
        other = replace(tokens(4), labels=("a", "b", "c", "another"))
        with pytest.raises(ShapeError, match="all single tokens"):
            pattern(self.weights).arranged(Axis.of(other), Axis.of(other))

    def test_axes_of_the_same_text_read_a_second_time_fit(self):
        here = pattern(self.weights)
        again = Axis.of(replace(here.queries.tokens, masked={}))
        assert again.tokens is not here.queries.tokens
        assert here.arranged(again, again).queries is again


PIECES = tokens(
    7,
    labels=("[CLS]", "un", "##like", "##ly", "[SEP]", "so", "[SEP]"),
    is_special=np.array([True, False, False, False, True, False, True]),
    segment=np.array([0, 0, 0, 0, 0, 1, 1]),
    word=np.array([-1, 0, 0, 0, -1, 0, -1]),
)


class TestWords:
    def test_pieces_are_joined_and_special_tokens_are_not(self):
        words = Axis.of(PIECES, "words")
        assert words.labels == ("[CLS]", "unlikely", "[SEP]", "so", "[SEP]")
        assert words.spans.tolist() == [[0, 1], [1, 4], [4, 5], [5, 6], [6, 7]]
        assert words.is_special.tolist() == [True, False, True, False, True]
        assert words.segment.tolist() == [0, 0, 0, 1, 1]
        assert words.is_merged
        assert not Axis.of(PIECES).is_merged

    def test_the_last_word_of_one_text_and_the_first_of_the_next_stay_two(self):
        halves = tokens(
            2,
            is_special=np.zeros(2, dtype=bool),
            word=np.array([0, 0]),
            segment=np.array([0, 1]),
        )
        assert len(Axis.of(halves, "words")) == 2

    def test_pieces_are_joined_in_every_word_of_both_texts(self):
        pair = tokens(
            8,
            labels=("[CLS]", "a", "door", "##way", "[SEP]", "win", "##dow", "[SEP]"),
            is_special=np.array([True, False, False, False, True, False, False, True]),
            segment=np.array([0, 0, 0, 0, 0, 1, 1, 1]),
            word=np.array([-1, 0, 1, 1, -1, 0, 0, -1]),
        )
        assert Axis.of(pair, "words").labels == ("[CLS]", "a", "doorway", "[SEP]", "window", "[SEP]")

    def test_an_axis_is_merged_where_an_entry_has_several_tokens_wherever_it_lies(self):
        assert Axis(tokens=PIECES, spans=np.array([[1, 4]])).is_merged
        assert not Axis(tokens=PIECES, spans=np.array([[0, 1], [5, 6]])).is_merged

    def test_a_text_of_special_tokens_alone_has_no_entry_without_them(self):
        empty = Axis.of(tokens(2)).without_special()
        assert len(empty) == 0
        assert empty.labels == ()
        assert not empty.is_merged
        assert empty.index(0) is None

    def test_the_entry_of_a_token(self):
        words = Axis.of(PIECES, "words")
        assert [words.index(position) for position in range(7)] == [0, 1, 1, 1, 2, 3, 4]
        assert words.without_special().index(4) is None
        assert words.of_segment(1).index(5) == 0

    def test_a_phrase_is_written_with_spaces_between_its_words(self):
        assert PIECES.label(1, 5) == "unlikely [SEP]"

    def test_columns_are_summed_and_rows_averaged(self):
        """By hand: three pieces of one word, whose rows are (0, .25, .25, .25, .25), (1, 0, ...), (0, 1, 0, ...)."""
        row = np.zeros((7, 7), dtype=np.float32)
        row[1, 1:5] = 0.25
        row[2, 0] = 1.0
        row[3, 1] = 1.0
        words = Axis.of(PIECES, "words")
        merged = arrange(row, words, words)
        np.testing.assert_allclose(merged[1], [1 / 3, 1.75 / 3, 0.25 / 3, 0, 0], rtol=1e-6)

    def test_rows_still_sum_to_one(self, embedded):
        trace = embedded.trace("Unbelievably antidisestablishmentarian.", "Notwithstanding.")
        words = Axis.of(trace.tokens, "words")
        merged = trace.pattern(2, 3).arranged(words, words)
        assert len(words) < len(trace.tokens)
        np.testing.assert_allclose(merged.weights.sum(axis=1), 1.0, rtol=1e-6)
        assert merged.scores is None
        assert merged.allowed.all()

    def test_leading_axes_are_left_alone(self):
        cells = np.random.default_rng(0).random((2, 3, 7, 7)).astype(np.float32)
        words = Axis.of(PIECES, "words")
        merged = arrange(cells, words, words.without_special())
        assert merged.shape == (2, 3, 5, 2)
        np.testing.assert_allclose(merged[1, 2], arrange(cells[1, 2], words, words.without_special()))

    def test_what_hidden_words_had_is_averaged_over_the_pieces(self):
        weights = np.zeros((7, 7), dtype=np.float32)
        weights[:, 0] = [1, 0, 0.5, 1, 1, 1, 1]
        weights[1, 5], weights[2, 5] = 1.0, 0.5
        whole = pattern(weights, queries=Axis.of(PIECES), keys=Axis.of(PIECES))
        words = Axis.of(PIECES, "words").without_special()
        same_keys = Axis(tokens=whole.keys.tokens, spans=words.spans)
        shown = whole.arranged(words, same_keys)
        np.testing.assert_allclose(shown.hidden_weight, [0.5, 1.0])
        np.testing.assert_allclose(shown.weights, [[0.0, 0.5], [0.0, 0.0]])

    @pytest.mark.usefixtures("types_unchecked")
    @pytest.mark.parametrize("spans", [[[0, 8]], [[2, 2]], [[2, 1]], [[0, 3], [2, 4]], [[-1, 1]]], ids=str)
    def test_groups_that_overlap_or_are_not_there_are_refused(self, spans):
        with pytest.raises(ShapeError, match="not groups of 7 tokens in order"):
            Axis(tokens=PIECES, spans=np.array(spans))


class TestReport:
    @pytest.mark.parametrize(
        ("difference", "passed"),
        [(0.0, True), (1e-5, True), (1.1e-5, False), (math.inf, False), (math.nan, False)],
    )
    def test_a_check_holds_up_to_its_tolerance(self, difference, passed):
        assert check([[0.0, difference]]).passed is passed
        assert report(weights=difference).passed is passed

    def test_every_place_has_a_tolerance_of_its_own(self):
        assert check([[1e-3, 1e-6]], [[1e-2, 1e-5]]).passed
        assert not check([[1e-3, 1e-4]], [[1e-2, 1e-5]]).passed

    def test_the_worst_place_is_the_largest_beside_its_tolerance(self):
        found = check([[1e-3, 1e-6], [2e-6, 0.0]], [[1e-2, 1e-6], [1e-6, 0.0]])
        assert found.worst == ("encoder", 1, 0)
        assert found.difference == pytest.approx(2e-6)
        assert found.tolerance == pytest.approx(1e-6)

    def test_the_worst_place_of_a_check_that_passed_is_nearest_to_its_tolerance(self):
        """Shares of the tolerances: 1/5, 1/2, 3/4 and 1/10."""
        found = check([[2e-6, 1e-6], [3e-6, 1e-6]], [[1e-5, 2e-6], [4e-6, 1e-5]])
        assert found.passed
        assert found.worst == ("encoder", 1, 0)

    def test_what_is_not_a_number_is_worse_than_anything(self):
        found = check([[1.0, math.nan]])
        assert found.worst == ("encoder", 0, 1)
        assert math.isnan(found.difference)

    def test_where_nothing_may_differ_the_smallest_difference_is_the_worst(self):
        found = check([[1e-3, 1.0]], [[1.0, 0.0]])
        assert found.worst == ("encoder", 0, 1)
        assert not found.passed

    def test_one_failed_check_fails_the_whole(self):
        assert report().passed
        assert report().failed == ()
        wrong = report(outputs=1.0)
        assert not wrong.passed
        assert [one.name for one in wrong.failed] == ["output after W_O"]

    def test_summary(self):
        found = report(weights=0.5)
        assert found.max_abs_error == 0.5
        assert found.weight_error.tolist() == [[0.0, 0.5]]
        assert found.check("output after W_O") is found.checks[1]
        with pytest.raises(KeyError):
            found.check("another")

    @pytest.mark.usefixtures("types_unchecked")
    def test_differences_and_tolerances_have_the_same_axes(self):
        with pytest.raises(ShapeError, match="attention weights: differences"):
            Check(
                name="attention weights",
                differences={"encoder": np.zeros((2, 3))},
                tolerances={"encoder": np.zeros((3, 2))},
                unit="weight",
                reason="float32",
            )


class TestUnknownTokens:
    def test_are_marked(self):
        assert tokens(unknown_id=2).is_unknown.tolist() == [False, False, True, False]

    def test_a_vocabulary_without_an_unknown_token_has_none(self):
        assert not tokens().is_unknown.any()


def test_projection_rows_of_a_role():
    assert projection().rows("query").tolist() == [0, 1, 2]
    assert projection().rows("key").tolist() == [3, 4, 5]


@pytest.mark.usefixtures("types_unchecked")
class TestCheckIndex:
    @pytest.mark.parametrize("found", [0, 2, np.int64(2)])
    def test_an_index_in_range_is_given_back_as_an_int(self, found):
        index = check_index("head", found, 3, "m")
        assert index == found
        assert type(index) is int

    @pytest.mark.parametrize("found", [-1, 3, 10**20])
    def test_one_out_of_range_is_refused_with_the_range(self, found):
        with pytest.raises(SelectionError, match=rf"^Head {found} was asked for; m has heads 0 to 2\."):
            check_index("head", found, 3, "m")

    @pytest.mark.parametrize("found", [1.0, "1", True, None])
    def test_what_is_no_whole_number_is_refused(self, found):
        with pytest.raises(SelectionError):
            check_index("head", found, 3, "m")


def test_a_record_comes_back_from_another_process_as_it_was(door_trace) -> None:
    projection = attnviz.project(door_trace, 3, 1, method="pca", values=True)
    back = pickle.loads(pickle.dumps(projection))
    np.testing.assert_array_equal(back.points, projection.points)
    assert back.parameters == projection.parameters
    assert back.provenance.versions == projection.provenance.versions
    assert back.query_tokens.labels == door_trace.tokens.labels
    assert back.in_map.order_correlation == projection.in_map.order_correlation
    with pytest.raises(ValueError, match="read-only"):
        back.points[0] = 1
    with pytest.raises(TypeError):
        back.parameters["seed"] = 2
