"""Findings in words, of numbers that are written down here."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from attnviz.effects.context_mixing import ContextMixing
from attnviz.figures.numbers import share_text
from attnviz.heads.facts import extremes, rank, received
from attnviz.records import OF_LAYER, Axis, Head, Reliability
from tests.hand_made import tokens
from tests.small_records import PROVENANCE, pattern, projection
from ui.words import findings
from ui.words.reliability import READ

AXIS = Axis.of(tokens(["[CLS]", "the", "door", "it"]))
WEIGHTS = [
    [0.1, 0.2, 0.3, 0.4],
    [0.7, 0.1, 0.1, 0.1],
    [0.25, 0.25, 0.25, 0.25],
    [0.484, 0.041, 0.475, 0.0],
]


def of(weights=WEIGHTS, axis=AXIS, **changes):
    return pattern(weights, queries=axis, keys=axis, **{"layer": 3, "head": 1} | changes)


@pytest.mark.parametrize(
    ("changes", "place"),
    [
        ({}, "Layer 3, head 1"),
        ({"head": None}, "Layer 3, all heads"),
        ({"head": None, "measure": "rollout"}, "Layers 0 to 3, all heads"),
        ({"head": None, "measure": "rollout", "layer": 0}, "Layer 0, all heads"),
        ({"head": None, "measure": "alti"}, "Layer 3, all heads"),
    ],
)
def test_a_place(changes, place):
    assert findings.place(pattern(WEIGHTS, **{"layer": 3, "head": 1} | changes)) == place


@pytest.mark.parametrize(
    ("method", "gap", "words"),
    [
        (
            "alti",
            2e-7,
            "The parts of all tokens and the biases sum to the model's own vector, within 2.0\u00a0×\u00a010⁻⁷ of its length.",
        ),
        ("value_zeroing", 0.0, "With all values, the layer alone gives the model's own vector, exactly."),
        (
            "alti",
            0.25,
            "The parts of all tokens and the biases do not sum to the model's own vector: it is up to 0.25 of its length away, "
            "so these numbers are not the model's.",
        ),
        (
            "value_zeroing",
            float("nan"),
            "With all values, the layer alone does not give the model's own vector: it is not a number, so these numbers are "
            "not the model's.",
        ),
    ],
)
def test_whether_a_layer_gives_the_model_s_vector_back(method, gap, words):
    mixing = ContextMixing(
        method=method,
        kind="encoder",
        tokens=AXIS.tokens,
        layers=(3,),
        matrices=np.array([WEIGHTS], dtype=np.float32),
        allowed=np.ones((1, 4, 4), dtype=bool),
        gap=gap,
        provenance=PROVENANCE,
    )
    assert findings.identity_words(mixing) == words


class TestAPair:
    @pytest.mark.parametrize(
        ("measure", "words"),
        [
            (
                "weights",
                "“it” gives 47.5% of its attention to “door”; the largest share, 48.4%, goes to “[CLS]”.",
            ),
            (
                "norms",
                "the norm-based weight from “it” to “door” is 0.475; the largest, 0.484, is to “[CLS]”.",
            ),
            ("rollout", "rollout attributes 47.5% of “it” to “door”; the largest share, 48.4%, to “[CLS]”."),
            (
                "alti",
                "by ALTI, 47.5% of what this layer mixes into “it” is from “door”; the largest share, 48.4%, is from “[CLS]”.",
            ),
            (
                "value_zeroing",
                "by value zeroing, 47.5% of what this layer mixes into “it” is from “door”; the largest share, 48.4%, is from “[CLS]”.",
            ),
        ],
    )
    def test_that_is_not_the_strongest(self, measure, words):
        head = None if measure in OF_LAYER else 1
        assert findings.finding(of(measure=measure, head=head), 3, 2) == words

    @pytest.mark.parametrize(
        ("measure", "words"),
        [
            ("weights", "“it” gives 48.4% of its attention to “[CLS]”."),
            ("norms", "the norm-based weight from “it” to “[CLS]” is 0.484."),
        ],
    )
    def test_that_is_the_strongest(self, measure, words):
        assert findings.finding(of(measure=measure), 3, 0) == words

    def test_that_two_other_keys_or_more_share_the_most(self):
        weights = [*WEIGHTS[:3], [0.375, 0.25, 0.375, 0.0]]
        assert findings.finding(of(weights), 3, 1) == (
            "“it” gives 25.0% of its attention to “the”; the largest shares, 37.5% each, go to “[CLS]” and “door”."
        )
        assert findings.finding(of([*WEIGHTS[:3], [0.0, 0.4, 0.3, 0.3]]), 3, 0).endswith(
            "to “[CLS]”; the largest share, 40.0%, goes to “the”."
        )
        weights = [*WEIGHTS[:3], [0.1, 0.3, 0.3, 0.3]]
        assert findings.finding(of(weights), 3, 0).endswith(
            "the largest shares, 30.0% each, go to “the” and 2 others."
        )
        assert "largest" not in findings.finding(of(weights), 3, 2)

    @pytest.mark.parametrize(
        ("measure", "words"),
        [
            (
                "weights",
                "“it” gives 4.1% of its attention to “the”; of the shown keys, the largest share, 47.5%, goes to “door”; 48.4% of its "
                "attention goes to hidden keys.",
            ),
            (
                "norms",
                "the norm-based weight from “it” to “the” is 0.0410; of the shown keys, the largest, 0.475, is to “door”.",
            ),
            (
                "rollout",
                "rollout attributes 4.1% of “it” to “the”; of the shown keys, the largest share, 47.5%, to “door”; 48.4% to hidden tokens.",
            ),
            (
                "alti",
                "by ALTI, 4.1% of what this layer mixes into “it” is from “the”; of the shown keys, the largest share, 47.5%, is from “door”; "
                "48.4% from hidden tokens.",
            ),
        ],
    )
    def test_of_the_keys_that_are_shown(self, measure, words):
        shown = AXIS.without_special()
        arranged = of(measure=measure, head=None if measure in OF_LAYER else 1).arranged(shown, shown)
        assert findings.finding(arranged, 3, 1) == words

    @pytest.mark.parametrize(
        ("measure", "words"),
        [
            (
                "weights",
                "among the shown keys, “it” gives 7.9% of its attention to “the”; the largest share, 92.1%, goes to “door”; 48.4% of all its "
                "attention goes to hidden keys.",
            ),
            (
                "norms",
                "among the shown keys, “the” has 7.9% of the norm-based weights of “it”; the largest, 92.1%, is to “door”.",
            ),
            (
                "rollout",
                "among the shown keys, rollout attributes 7.9% of “it” to “the”; the largest share, 92.1%, to “door”; 48.4% of all to hidden "
                "tokens.",
            ),
        ],
    )
    def test_of_rows_that_are_divided_by_what_is_shown(self, measure, words):
        shown = AXIS.without_special()
        whole = of(measure=measure, head=None if measure == "rollout" else 1)
        assert findings.finding(whole.arranged(shown, shown, renormalise=True), 3, 1) == words

    def test_whose_token_is_left_out(self):
        without_special = AXIS.without_special()
        arranged = of().arranged(without_special, without_special)
        assert findings.finding(arranged, 0, 2) == "“[CLS]” is not shown."
        assert findings.finding(arranged, 3, 0) == "“[CLS]” is not shown."
        assert findings.key_finding(arranged, 0) == "“[CLS]” is not shown."

    def test_whose_rows_begin_later_than_its_columns(self):
        part = of().arranged(AXIS.without_special(), AXIS)
        assert findings.strongest_key(part, 3) == 2
        norms = of(TestASpecialToken.NORMS, measure="norms").arranged(AXIS.without_special(), AXIS)
        assert "“[CLS]” adds only 25% as much as “door”" in findings.special_note(part, norms, 3, 2)
        assert findings.special_note(part, norms, 0, 2) == ""
        columns = of().arranged(AXIS, AXIS.without_special())
        assert findings.strongest_key(columns, 3) == 2
        assert findings.special_note(columns, columns, 3, 0) == ""
        assert findings.key_finding(columns, 2) == "no other query gives “door” as much as “it” does (47.5%)."

    def test_of_equal_tokens_has_their_positions(self):
        axis = Axis.of(tokens(["[CLS]", "door", "door", "it"]))
        assert findings.finding(of(axis=axis), 3, 2) == (
            "“it” gives 47.5% of its attention to “door” (token 2); the largest share, 48.4%, goes to “[CLS]”."
        )

    def test_from_its_key(self):
        assert findings.key_finding(of(), 2) == ("no other query gives “door” as much as “it” does (47.5%).")
        assert findings.key_finding(of(measure="norms"), 2) == (
            "of all queries, the largest norm-based weight to “door”, 0.475, is from “it”."
        )
        read, written = Axis.of(tokens(["[CLS]", "door", "it"])), Axis.of(tokens(["</s>", "porte"]))
        cross = pattern([[0.1, 0.2, 0.7], [0.3, 0.6, 0.1]], queries=written, keys=read, kind="cross")
        assert findings.key_finding(cross, 1) == (
            "no other query gives “door” as much as “porte” does (60.0%)."
        )
        shown = AXIS.without_special()
        assert findings.key_finding(of().arranged(shown, AXIS, renormalise=True), 3) == (
            "among the shown keys, no other shown query gives “it” as much as “door” does (25.0%)."
        )
        tied = of([[0.25, 0.25, 0.25, 0.25]] * 4)
        assert findings.key_finding(tied, 2) == (
            "“[CLS]” and 3 others give “door” 25.0% of its attention each."
        )
        assert findings.key_finding(of([[1.0, 0.0, 0.0, 0.0]] * 4), 2) == "no query gives “door” anything."


def _rollout():
    return pattern(WEIGHTS, queries=AXIS, keys=AXIS, layer=3, head=None, measure="rollout")


class TestNumbersThatAreWrittenAlike:
    """None of them is the largest: 47.52% and 47.48% are both 47.5% to a reader."""

    ALIKE = (*WEIGHTS[:3], [0.4752, 0.041, 0.4748, 0.009])

    def test_of_keys(self):
        assert findings.finding(of([*self.ALIKE]), 3, 2) == "“it” gives 47.5% of its attention to “door”."
        assert findings.finding(of([*self.ALIKE]), 3, 1).endswith(
            "the largest shares, 47.5% each, go to “[CLS]” and “door”."
        )

    def test_of_queries(self):
        columns = of(
            [[0.4, 0.2, 0.2, 0.2], [0.4, 0.2, 0.2, 0.2], [0.1, 0.5, 0.2, 0.2], [0.3002, 0.3, 0.2, 0.1998]]
        )
        assert (
            findings.key_finding(columns, 1) == "no other query gives “the” as much as “door” does (50.0%)."
        )
        assert findings.key_finding(columns, 3).startswith("“[CLS]” and 3 others give “it” 20.0%")

    def test_of_heads(self):
        given = np.array([[0.5001, 0.4999, 0.1]])
        facts = rank(given, (0, 1), share_text)
        assert findings.pair_finding(facts, Head(0, 1), ("“it”", "“door”"), "weights") == (
            "Layer 0, head 1 gives 50.0% from “it” to “door”, the most of the 3 heads, tied with 1 other."
        )
        ends = extremes(np.array([[0.5001, 0.4999], [0.1, 0.2]]), share_text)
        assert len(ends.most) == 2 and len(ends.least) == 1


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

    def test_is_never_said_to_add_only_all_or_nothing(self):
        almost = [[1, 1, 1, 1]] * 3 + [[0.998, 0.4, 1, 0.1]]
        assert findings.special_note(of(), of(almost, measure="norms"), 3, 2) == ""
        for adds, words in ((0.001, "under 1%"), (0.0101, "1%"), (0.03, "3%"), (0.07, "7%")):
            norms = of([[1, 1, 1, 1]] * 3 + [[adds, 0.4, 1, 0.1]], measure="norms")
            assert f"adds only {words} as much as" in findings.special_note(of(), norms, 3, 2)


class TestWhatAQueryReceives:
    @pytest.mark.parametrize(
        ("weights", "norms", "words"),
        [
            (
                WEIGHTS[3],
                [0.092, 0.5, 1.468, 0],
                "“it” gives the largest weight, 48.4%, to “[CLS]”; the largest norm-based weight, 1.47, is to “door”, against 0.0920 "
                "to “[CLS]”.",
            ),
            (
                WEIGHTS[3],
                [1.5, 0.5, 0.2, 0],
                "“it” gives the largest weight, 48.4%, to “[CLS]”, which also has the largest norm-based weight, 1.50.",
            ),
            (WEIGHTS[3], None, "“it” gives the largest weight, 48.4%, to “[CLS]”."),
            (
                [0.4, 0.2, 0.4, 0],
                [1, 0.5, 2, 0],
                "“it” gives the largest weights, 40.0% each, to “[CLS]” and “door”; the largest norm-based weight, 2.00, is to “door”, "
                "against 1.00 to “[CLS]”.",
            ),
            (
                [0.4, 0.2, 0.4, 0],
                [2, 0.5, 2, 0],
                "“it” gives the largest weights, 40.0% each, to “[CLS]” and “door”, which also have the largest norm-based weights, 2.00 "
                "each.",
            ),
            ([0, 0, 0, 0], [0, 0, 0, 0], "No arrow reaches “it”: the mask leaves it no key."),
        ],
    )
    def test_by_weight_and_by_norm(self, weights, norms, words):
        known = None if norms is None else of([*WEIGHTS[:3], norms], measure="norms")
        reception = received(of([*WEIGHTS[:3], weights]), known, 3)
        assert findings.received_words(of(), 3, reception, "") == words
        under = findings.received_words(of(), 3, reception, "under the causal mask")
        assert under == f"Under the causal mask, {words[:1].lower()}{words[1:]}"


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
        assert self.words_of(self.GIVEN, head) == words

    @staticmethod
    def words_of(given, head, measure="weights"):
        return findings.pair_finding(rank(given, head), Head(*head), ("“it”", "“door”"), measure)

    @pytest.mark.parametrize(
        ("given", "head", "words"),
        [
            (
                [[0.5, 0.5, 0.1]],
                (0, 1),
                "Layer 0, head 1 gives 50.0% from “it” to “door”, the most of the 3 heads, tied with 1 other.",
            ),
            (
                [[0.5, 0.5, 0.1]],
                (0, 2),
                "Layer 0, head 2 gives 10.0% from “it” to “door”, rank 3 of 3 heads; layer 0, head 0 and layer 0, head 1 give the "
                "most, 50.0% each.",
            ),
            (
                [[0.5, 0.1, 0.1]],
                (0, 2),
                "Layer 0, head 2 gives 10.0% from “it” to “door”, rank 2 of 3 heads, tied with 1 other; layer 0, head 0 gives the "
                "most, 50.0%.",
            ),
            ([[0.5]], (0, 0), "Layer 0, head 0 gives 50.0% from “it” to “door”; there is no other head."),
        ],
    )
    def test_may_be_tied(self, given, head, words):
        assert self.words_of(np.array(given), head) == words

    def test_of_another_measure_is_no_share(self):
        words = self.words_of(self.GIVEN, (0, 1), "norms")
        assert words == "Layer 0, head 1 gives 0.475 from “it” to “door”, more than any other of the 6 heads."

    def test_may_have_no_weight_at_all(self):
        assert self.words_of(np.zeros((2, 3)), (0, 0)) == "No head gives anything from “it” to “door”."


def test_the_ends_of_a_number_of_every_head():
    words = partial(findings.extremes_words, "Entropy", amount=share_text)
    assert words(extremes(np.array([[0.5, 0.25], [0.75, 0.25]]))) == (
        "Entropy: most in layer 1, head 0, 75.0%; least in layer 0, head 1 and layer 1, head 1, 25.0%"
    )
    assert words(extremes(np.array([[0.5, 0.5]]))) == "Entropy: 50.0% in every head"


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
        figures = Reliability(
            n_query=3, order_correlation=-0.31, worst_correlation=-0.1, nearest_agreement=0.73
        )
        note = findings.map_note(projection(in_map=figures))
        assert note.endswith(
            "Reliability: for 73% of the 3 queries the nearest key has the largest weight (by chance up to 25%, p = 0.001); "
            "mean correlation of distance and score −0.31 (−1 is perfect; by chance down to −0.50, p = 0.001). "
            f"{READ['rough']} The nearest key has the largest weight for most queries, more often than by chance. By chance "
            "means: in 19 of 20 maps with the key points permuted (999 permutations)."
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
        assert "by chance up to" not in note
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


def test_a_word_that_is_there_twice_is_told_apart_and_one_that_shares_a_piece_is_not():
    of_text = tokens(["[CLS]", "door", "##s", "it", "door", "##s", "door", "##bell", "[SEP]"])
    singly, words = Axis.of(of_text), Axis.of(of_text, "words")
    assert [findings.name(words, at) for at in (1, 2, 4, 6, 7)] == [
        *("“doors” (token 1)", "“doors” (token 1)", "“doors” (token 4)", "“doorbell”", "“doorbell”"),
    ]
    assert [findings.name(singly, at) for at in (1, 6, 7)] == [
        "“door” (token 1)",
        "“door” (token 6)",
        "“##bell”",
    ]


def test_a_run_of_tokens_is_named_by_its_text_and_an_entry_as_elsewhere():
    of_text = tokens(["[CLS]", "door", "##s", "it", "door", "##s"])
    singly, words = Axis.of(of_text), Axis.of(of_text, "words")
    assert [findings.group_name(words, span) for span in ((1, 3), (3, 4), (3, 6), (0, 4))] == [
        *("“doors” (token 1)", "“it”", "“it doors”", "“[CLS] doors it”")
    ]
    assert [findings.group_name(singly, span) for span in ((1, 2), (1, 3), (5, 6))] == [
        *("“door” (token 1)", "“doors”", "“##s” (token 5)")
    ]


class TestColoursThatEndBelowTheLargestCell:
    AXIS = Axis.of(tokens(["the", "door", "it", "[SEP]"]))
    FIRST = ([1.0, 0, 0, 0], [0.9, 0.1, 0, 0], [0.5, 0.3, 0.2, 0])

    @pytest.mark.parametrize(
        ("last", "whose"),
        [
            ([0.3, 0.3, 0.2, 0.2], "the first token"),
            ([0.31, 0.25, 0.24, 0.2], "special tokens"),
            ([0.25, 0.25, 0.1, 0.4], "special tokens"),
        ],
    )
    def test_because_of_the_query_or_key_of_a_special_token_or_else_the_first(self, last, whose):
        shown = of([*self.FIRST, last], axis=self.AXIS, kind="decoder")
        assert findings.clipped_words(shown, 0.3) == f"Colours end at 30.0%: cells of {whose} hold more."
        assert findings.clipped_words(shown, None) == ""

    def test_because_of_a_special_key_alone(self):
        """The other text has its special token elsewhere."""
        queries = Axis.of(tokens(["the", "cat", "</s>"]))
        given = [[0.7, 0.1, 0.1, 0.1], [0.2, 0.3, 0.3, 0.2], [0.25, 0.25, 0.25, 0.25]]
        for special, whose in ((0, "special tokens"), (1, "the first token")):
            labels = ["a", "b", "c", "d"]
            labels[special] = "<s>"
            shown = pattern(given, queries=queries, keys=Axis.of(tokens(labels)), kind="cross")
            assert findings.clipped_words(shown, 0.3) == f"Colours end at 30.0%: cells of {whose} hold more."
