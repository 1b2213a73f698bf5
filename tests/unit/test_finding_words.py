"""The sentences of Claims, Kinds of attention, Token flow and All heads, of facts that are written down here."""

from functools import partial

import numpy as np
import pytest

from attnviz.corpus.naming import HeadName
from attnviz.effects.masking import MaskEffect
from attnviz.heads.claim_facts import Filling, Showing
from attnviz.heads.facts import extremes
from attnviz.heads.flow import Flow
from attnviz.heads.head_statistics import Matched
from attnviz.records import Axis, Head
from tests import small_records
from tests.hand_made import tokens
from ui.rooms.all_heads.pictures_and_numbers import matched_words
from ui.rooms.explore.several_heads import drawn_words
from ui.rooms.how_it_works.kinds_of_attention.output import UNCHANGED, effect_words
from ui.rooms.myths import ends_words, filled_words, heads_say
from ui.words.head_names import (
    HeadNames,
    attending,
    head_words,
    mark_of,
    marks_note,
    names_of_profile,
    with_names,
)


@pytest.mark.parametrize(
    ("n", "words"),
    [
        (48, "**Holds** here: 48 of 72 heads"),
        (47, "**Half true** here: 47 of 72 heads"),
        (25, "**Half true** here: 25 of 72 heads"),
        (24, "**Does not hold** here: 24 of 72 heads"),
    ],
)
def test_a_claim_holds_from_two_heads_in_three_on(n, words):
    assert heads_say(Showing(n_showing=n, n_heads=72)) == words


def test_the_largest_number_below_a_picture_of_all_heads():
    ends = extremes(np.array([[0.5, 0.25, 0.1], [0.75, 0.2, 0.3]]))
    assert ends_words(Head(0, 2), 0.1, ends) == (
        "The selected head, layer 0, head 2: 0.100; the largest, layer 1, head 0: 0.750."
    )


@pytest.mark.parametrize(
    ("masked", "rounded", "words"),
    [
        (0, 0, "**Literally true** here: no mask hides a cell, and each has a weight above 0."),
        (
            0,
            0.25,
            "**Not even literally true** here: no mask hides a cell, but the weight of 25.0% of them is so small that float32 "
            "rounds it to 0.",
        ),
        (
            0.5,
            0,
            "**Not even literally true** here: the mask hides 50.0% of the cells, whose weight is 0; each of the others has a "
            "weight above 0.",
        ),
        (
            0.5,
            0.25,
            "**Not even literally true** here: the mask hides 50.0% of the cells, whose weight is 0; of the others 25.0% are so "
            "small that float32 rounds them to 0.",
        ),
    ],
)
def test_whether_every_cell_is_filled(masked, rounded, words):
    assert filled_words(Filling(masked=float(masked), rounded=float(rounded), median=0.5, least=0.1)) == words


class TestAMask:
    TOKENS = Axis.of(tokens(["the", "door", "opened"]))

    def words(self, change, n_masked=2, is_unchanged=False):
        changes = np.array(change, dtype=np.float32)
        most = tuple(np.flatnonzero(changes == changes.max()).tolist()) if changes.any() else ()
        effect = MaskEffect(
            n_masked=n_masked,
            is_unchanged=is_unchanged,
            change=changes,
            mean=float(changes.mean()),
            largest=float(changes.max()),
            most=most,
        )
        return effect_words(effect, self.TOKENS, "this head")

    def test_that_takes_nothing_changes_nothing(self):
        assert self.words([0, 0, 0], 0, is_unchanged=True) == UNCHANGED

    def test_that_takes_cells_without_effect_does_not_say_that_none_is_masked(self):
        words = self.words([0, 0, 0], 1, is_unchanged=True)
        assert words == "1 cell is masked in this head, and yet no last hidden state changes its direction."
        assert self.words([0, 2e-16, 0], 1, is_unchanged=True) == words  # rounding of the cosine

    def test_turns_states(self):
        assert self.words([0.25, 0.5, 0.0]).endswith(
            "2 cells are masked in this head. The last hidden state of a token changes its direction by 0.250 on average (1 − cosine: "
            "0 is no change, 1 a right angle), most for “door”, by 0.500."
        )


class TestLines:
    def words(self, query, *, left=0, whole=True):
        zeros = np.zeros(3, dtype=np.int64)
        flow = Flow(
            matrix=zeros,
            query=zeros.copy(),
            key=zeros.copy(),
            weight=np.ones(3, dtype=np.float32),
            n_left_out=left,
            row_is_whole=whole,
            share=0.5,
        )
        return drawn_words(flow, "50% of the weight", query)

    def test_that_are_all_drawn(self):
        assert self.words("“it”") == "3 lines, 50% of the weight."

    def test_that_are_too_many(self):
        assert self.words(None, left=1200) == (
            "The 3 strongest lines, 50% of the weight; 1,200 weaker ones are left out."
        )
        assert self.words("“it”", left=7) == (
            "3 lines, 50% of the weight, and 7 left out: drawn are all of “it” and the strongest of the others."
        )
        assert self.words("“it”", left=7, whole=False) == (
            "3 lines, 50% of the weight, and 7 left out: drawn are the strongest of “it”."
        )


def test_heads_that_match_a_pattern():
    keys = small_records.tokens(3, labels=("[CLS]", "cat", "[SEP]"), is_special=np.array([True, False, True]))
    matched = Matched(n_matched=42, counts=(("[CLS]", 31), ("broad", 9), ("next", 1)))
    assert matched_words(matched, attending(keys), 72) == (
        "42 of 72 heads match a known pattern: 31 attend mostly to [CLS], 9 attend broadly, 1 attends to the next token"
    )
    assert (
        matched_words(Matched(n_matched=0, counts=()), attending(keys), 72)
        == "0 of 72 heads match a known pattern"
    )


@pytest.mark.parametrize(
    ("labels", "special", "words"),
    [
        (("<s>", "cat", "</s>"), (0, 2), ["mostly to <s>", "mostly to </s>"]),
        (("[CLS]", "cat", "[SEP]", "dog", "[SEP]"), (0, 2, 4), ["mostly to [CLS]", "mostly to [SEP]"]),
        (
            ("<|im_start|>", "user", "<|im_end|>", "<|im_start|>"),
            (0, 2, 3),
            ["mostly to <|im_start|>", "mostly to the special tokens after the first"],
        ),
    ],
    ids=lambda value: "-".join(map(str, value)),
)
def test_a_pattern_is_called_by_the_special_tokens_that_are_there(labels, special, words):
    is_special = np.isin(np.arange(len(labels)), special)
    said = attending(small_records.tokens(len(labels), labels=labels, is_special=is_special))
    assert [said["[CLS]"], said["[SEP]"]] == words
    assert said["previous"] == "to the previous token"


@pytest.mark.parametrize(
    ("attends", "called", "known", "words"),
    [
        ("to [CLS]", "", (True, True), "Attends to [CLS] on this text"),
        ("", "induction", (True, True), "On repeated random tokens: induction"),
        (
            "to [CLS]",
            "induction",
            (True, True),
            "Attends to [CLS] on this text · On repeated random tokens: induction",
        ),
        (
            "",
            "induction|previous token|duplicate token|first token",
            (True, True),
            "On repeated random tokens: induction, previous token and 1 more",
        ),
        ("", "", (True, True), "No known pattern on this text or on repeated random tokens"),
        ("", "", (True, False), "No known pattern on this text"),
        ("", "", (False, True), "No known pattern on repeated random tokens"),
        ("", "", (False, False), ""),
    ],
)
def test_a_head_without_a_name_is_said_to_have_none_where_that_is_known(attends, called, known, words):
    names = HeadNames(
        of_head={Head(1, 2): tuple(named(name) for name in filter(None, called.split("|")))},
        where="on repeated random tokens",
        briefly="on repeated random tokens",
        note="",
        in_english=False,
        marked=(),
    )
    named_so = head_words(
        attends, names if known[1] else None, Head(1, 2), knows_text=known[0], is_done_here=lambda name: True
    )
    assert named_so == words


def named(called, share=0.75):
    relation = {"relation": "pobj", "direction": "attended by", "position_alone": 0.515}
    return HeadName(
        called=called, share=share, low=share, high=share, **relation if called.startswith("links") else {}
    )


def test_names_of_a_profile_say_where_they_are_from():
    """“First token” is left out of a line with another name, and given where the head is hovered over."""
    names = names_of_profile(
        {
            Head(0, 1): (
                named("first token", 0.5123),
                named("links a preposition to its noun", 0.609),
            ),
            Head(1, 0): (named("first token"), named("[CLS]")),
        },
        "the bundled sentences",
        "many texts",
        206,
        is_bundled=True,
    )
    assert with_names("Layer 0, head 1", names, Head(0, 1)) == (
        "Layer 0, head 1; in the profile of the bundled sentences: first token 0.512, often links a preposition to its "
        "noun (61%; position alone: 52%)"
    )
    assert with_names("Layer 5, head 5", names, Head(5, 5)) == "Layer 5, head 5"
    of_head = partial(head_words, "", names, is_done_here=lambda name: True)
    assert of_head(Head(0, 1), knows_text=False) == (
        "Often links a preposition to its noun (61%; position alone: 52%)"
    )
    assert of_head(Head(1, 0), knows_text=False) == "Over many texts: first token, [CLS]"
    assert of_head(Head(2, 0), knows_text=True) == ("No known pattern on this text or over many texts")
    assert [mark_of(names, head) for head in (Head(0, 1), Head(1, 0))] == ["R", ""]
    assert "206 texts" in marks_note(names) and "R grammatical relation" in marks_note(names)
