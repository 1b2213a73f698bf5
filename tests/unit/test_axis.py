"""Rows and columns: special tokens left out, and words in place of their pieces."""

from dataclasses import replace

import numpy as np
import pytest

from attnviz.errors import ShapeError
from attnviz.records import (
    AttentionPattern,
    Axis,
    arrange,
)
from tests.small_records import pattern, tokens


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

    @pytest.mark.stand_ins
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
        some = again.without_special()
        assert here.arranged(again, again) is here and here.arranged(some, some).queries is some


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
        assert Axis(tokens=PIECES, spans=np.array([[0, 1], [1, 3]])).is_merged
        assert not Axis(tokens=PIECES, spans=np.array([[0, 1], [5, 6]])).is_merged

    def test_scores_are_of_single_tokens_alone(self):
        whole = pattern(np.full((7, 7), 1 / 7), queries=Axis.of(PIECES), keys=Axis.of(PIECES))
        plain, words = Axis.of(PIECES).without_special(), Axis.of(PIECES, "words")
        assert whole.arranged(plain, plain).scores is not None
        assert whole.arranged(words, plain).scores is None
        assert whole.arranged(plain, words).scores is None

    def test_the_first_token_alone_is_left_out_where_heads_rest_there(self):
        assert Axis.of(PIECES).without_first().positions.tolist() == [1, 2, 3, 4, 5, 6]
        assert Axis.of(PIECES, "words").without_first().positions.tolist() == [1, 4, 5, 6]

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
        assert PIECES.label(3, 6) == "##ly [SEP] so"

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
