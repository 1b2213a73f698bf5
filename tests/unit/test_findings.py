"""Findings in words, of numbers that are written down here."""

from dataclasses import replace

import numpy as np
import pytest

from attnviz.records import Axis, Faithfulness
from tests.hand_made import tokens
from tests.small_records import pattern, projection
from ui.words import findings
from ui.words.judgement import READ

AXIS = Axis.of(tokens(["[CLS]", "the", "door", "it"]))
WEIGHTS = [
    [0.1, 0.2, 0.3, 0.4],
    [0.7, 0.1, 0.1, 0.1],
    [0.25, 0.25, 0.25, 0.25],
    [0.484, 0.041, 0.475, 0.0],
]


def of(weights=WEIGHTS, axis=AXIS, **changes):
    return pattern(weights, queries=axis, keys=axis, layer=3, head=1, **changes)


@pytest.mark.parametrize(
    ("changes", "place"),
    [
        ({}, "Layer 3, head 1"),
        ({"head": None}, "Layer 3, all heads"),
        ({"head": None, "measure": "rollout"}, "Layers 0 to 3, all heads"),
        ({"head": None, "measure": "rollout", "layer": 0}, "Layer 0, all heads"),
    ],
)
def test_a_place(changes, place):
    assert findings.place(pattern(WEIGHTS, **{"layer": 3, "head": 1} | changes)) == place


class TestAPair:
    @pytest.mark.parametrize(
        ("measure", "words"),
        [
            ("weights", "“it” gives 47.5% of its attention to “door”; most, 48.4%, goes to “[CLS]”."),
            (
                "norms",
                "the norm-based weight from “it” to “door” is 0.475; the largest, 0.484, is to “[CLS]”.",
            ),
            ("rollout", "rollout attributes 47.5% of “it” to “door”; most, 48.4%, to “[CLS]”."),
        ],
    )
    def test_that_is_not_the_strongest(self, measure, words):
        head = None if measure == "rollout" else 1
        assert findings.finding(of(measure=measure) if head else _rollout(), 3, 2) == words

    @pytest.mark.parametrize(
        ("measure", "words"),
        [
            ("weights", "“it” gives 48.4% of its attention to “[CLS]”."),
            ("norms", "the norm-based weight from “it” to “[CLS]” is 0.484."),
        ],
    )
    def test_that_is_the_strongest(self, measure, words):
        assert findings.finding(of(measure=measure), 3, 0) == words

    def test_whose_token_is_left_out(self):
        without_special = AXIS.without_special()
        arranged = of().arranged(without_special, without_special)
        assert findings.finding(arranged, 0, 2) == "“[CLS]” is not shown."
        assert findings.finding(arranged, 3, 0) == "“[CLS]” is not shown."
        assert findings.key_finding(arranged, 0) == "“[CLS]” is not shown."

    def test_of_equal_tokens_has_their_positions(self):
        axis = Axis.of(tokens(["[CLS]", "door", "door", "it"]))
        assert findings.finding(of(axis=axis), 3, 2) == (
            "“it” gives 47.5% of its attention to “door” (token 2); most, 48.4%, goes to “[CLS]”."
        )

    def test_from_its_key(self):
        assert (
            findings.key_finding(of(), 2) == "Of all queries “it” gives “door” most of its attention, 47.5%."
        )


def _rollout():
    return pattern(WEIGHTS, queries=AXIS, keys=AXIS, layer=3, head=None, measure="rollout")


class TestASpecialToken:
    NORMS = ([[1, 1, 1, 1]] * 3) + [[0.25, 0.4, 1, 0.1]]

    def test_that_adds_less_than_the_selected_key(self):
        assert findings.special_note(of(), of(self.NORMS, measure="norms"), 3, 2) == (
            "A large weight need not mean a large effect: by norm-based weight, “[CLS]” adds only 25% as much as “door”. "
        )

    def test_that_is_the_selected_key_is_compared_with_the_word_that_adds_most(self):
        norms = [[1, 1, 1, 1]] * 3 + [[0.25, 0.5, 0.3, 0.1]]
        note = findings.special_note(of(), of(norms, measure="norms"), 3, 0)
        assert note.endswith("“[CLS]” adds only 50% as much as “the”. ")

    def test_that_adds_as_much_or_has_not_the_largest_weight_is_not_mentioned(self):
        assert findings.special_note(of(), of([[1, 1, 1, 1]] * 4, measure="norms"), 3, 2) == ""
        assert findings.special_note(of(), of(self.NORMS, measure="norms"), 0, 2) == ""


class TestThePairInEveryHead:
    GIVEN = np.array([[0.1, 0.475, 0.2], [0.331, 0.0, 0.05]])

    @pytest.mark.parametrize(
        ("head", "words"),
        [
            ((0, 1), "Layer 0, head 1 gives 47.5% from “it” to “door”, more than any other of the 6 heads."),
            (
                (0, 2),
                "Layer 0, head 2 gives 20.0% from “it” to “door”, rank 3 of 6 heads; "
                "layer 0, head 1 gives the most, 47.5%.",
            ),
        ],
    )
    def test_has_a_rank(self, head, words):
        assert findings.pair_finding(self.GIVEN, head, ("“it”", "“door”"), "weights") == words

    def test_of_another_measure_is_no_share(self):
        words = findings.pair_finding(self.GIVEN, (0, 1), ("“it”", "“door”"), "norms")
        assert words == "Layer 0, head 1 gives 0.475 from “it” to “door”, more than any other of the 6 heads."

    def test_may_have_no_weight_at_all(self):
        words = findings.pair_finding(np.zeros((2, 3)), (0, 0), ("“e”", "“a”"), "weights")
        assert words == "No head gives anything from “e” to “a”."


class TestAMap:
    def test_says_how_it_was_made(self):
        used = {"metric": "euclidean", "perplexity": 3.5, "iterations": 750, "seed": 11}
        assert findings.map_settings(projection(parameters=used, remark="Lowered.")) == (
            "t-SNE, euclidean distance, perplexity 3.5, 750 iterations, seed 11. Lowered."
        )
        used = {"metric": "euclidean", "neighbours": 6, "min_dist": 0.1, "seed": 3}
        assert findings.map_settings(projection(method="umap", parameters=used)) == (
            "UMAP, euclidean distance, 6 neighbours, least distance 0.1, seed 3."
        )

    def test_says_how_reliable_it_is_and_what_that_means(self):
        figures = Faithfulness(
            n_query=3, order_correlation=-0.31, worst_correlation=-0.1, nearest_agreement=0.73
        )
        note = findings.map_note(projection(in_map=figures))
        assert note.endswith(
            "Reliability: for 73% of the 3 queries the nearest key has the largest weight; mean correlation of distance and "
            "score −0.31 (−1 is perfect). With the key points permuted (999 permutations), at most one map in twenty exceeds "
            f"25% (p = 0.001), and at most one has a correlation below −0.50 (p = 0.001). {READ['rough']}"
        )

    def test_names_the_queries_that_its_figures_are_over(self):
        figures = replace(projection().in_map, n_query=2)
        assert "100% of the 2 queries that see two keys or more" in findings.map_note(
            projection(in_map=figures)
        )

    def test_that_cannot_be_judged_has_no_figures_of_chance(self):
        few = replace(projection().chance, n_permutations=5, correlation=float("nan"), nearest=float("nan"))
        note = findings.map_note(projection(chance=few))
        assert note.endswith(READ["unknown"])
        assert "permut" not in note
        none = replace(projection().in_map, n_query=0)
        assert "Reliability" not in findings.map_note(projection(in_map=none, chance=few))

    @pytest.mark.parametrize(
        ("shown", "words"),
        [
            ("weights", "Lines are attention weights: the thicker, the larger."),
            ("scores", "Lines are attention weights, not the scores of the matrix: the thicker, the larger."),
            (
                "norms",
                "Lines are attention weights, not the norm-based weights of the matrix: the thicker, the larger.",
            ),
            (
                "rollout",
                "Lines are attention weights, not the rollout of the matrix: the thicker, the larger.",
            ),
        ],
    )
    def test_says_what_its_lines_are(self, shown, words):
        assert findings.lines_note(shown) == words
