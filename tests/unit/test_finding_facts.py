"""Which tokens and numbers findings name, where queries and keys are of two texts; whatever the sentences are."""

import numpy as np
import pytest

from attnviz.heads.facts import received, small_addition, strongest_link
from attnviz.records import Axis
from tests.app.screen import facts
from tests.hand_made import tokens
from tests.small_records import pattern
from ui.words import findings
from ui.words.headline import headline_words

READ = Axis.of(tokens(["[CLS]", "the", "door", "opened", "door", "[SEP]"]))
WRITTEN = Axis.of(tokens(["<s>", "la", "porte", "porte"]))
WEIGHTS = [
    [0.0, 0.125, 0.125, 0.5, 0.125, 0.125],
    [0.0, 0.0, 0.0, 0.0, 0.0, 0.0],
    [0.5, 0.0625, 0.0625, 0.0, 0.25, 0.125],
    [0.25, 0.25, 0.375, 0.0625, 0.0625, 0.0],
]
NORMS = [
    [0.0, 1.0, 1.0, 2.0, 1.0, 1.0],
    [0.0, 0.0, 0.0, 0.0, 0.0, 0.0],
    [1.5, 1.0, 1.0, 0.0, 6.0, 4.5],
    [1.0, 2.0, 5.0, 1.0, 1.0, 0.0],
]


def cross(weights=WEIGHTS, **changes):
    return pattern(weights, queries=WRITTEN, keys=READ, kind="cross", **changes)


def test_a_finding_names_the_query_by_its_text_and_the_key_by_the_other():
    named = facts(findings.finding(cross(), 2, 4))
    assert named.quoted == ("porte", "door", "[CLS]")
    assert findings.finding(cross(), 2, 4).count("(token ") == 2  # which "porte" and which "door"
    assert facts(findings.finding(cross(), 2, 3)).quoted == ("porte", "opened", "[CLS]")
    assert facts(findings.finding(cross(), 3, 2)).quoted == ("porte", "door")


def test_a_row_without_any_weight_has_no_strongest_key():
    assert facts(findings.finding(cross(), 1, 3)).quoted == ("la", "opened")
    assert facts(headline_words(cross(), 1, 3)).quoted == ("la",)


@pytest.mark.parametrize("words", [findings.finding, headline_words])
def test_a_token_that_is_not_shown_is_named_by_the_text_that_it_is_of(words):
    """Position 2 is "porte" among the queries and "door" among the keys."""
    without = cross().arranged(Axis.of(WRITTEN.tokens).without_special(), READ)
    assert facts(words(without, 0, 4)).quoted == ("<s>",)
    without = cross().arranged(WRITTEN, Axis.of(READ.tokens).without_special())
    assert facts(words(without, 2, 0)).quoted == ("[CLS]",)
    assert facts(words(without, 2, 5)).quoted == ("[SEP]",)


def test_the_key_that_a_query_begins_with():
    assert findings.strongest_key(cross(), 0) == 3
    without = cross().arranged(WRITTEN.without_special(), READ.without_special())
    assert findings.strongest_key(without, 0) == 1  # <s> is not shown: the first key that is
    assert findings.strongest_key(without, 2) == 4


def test_a_query_that_gives_a_key_most_is_named_with_its_own_share():
    named = facts(findings.key_finding(cross(), 4))
    assert {*named.quoted} == {"porte", "door"} and "25.0%" in named.numbers
    assert "(token 2)" in findings.key_finding(cross(), 4)


@pytest.mark.parametrize("measure", ["weights", "norms"])
def test_what_is_hidden_stands_in_the_words_of_a_key(measure):
    """Of all queries, or of those that are shown."""
    whole = cross(measure=measure)
    shown = whole.arranged(WRITTEN.without_special(), READ)
    hidden_keys = whole.arranged(WRITTEN, READ.without_special())
    shown_of_keys = whole.arranged(WRITTEN, READ.without_special(), renormalise=True)
    for arranged, is_part in ((whole, False), (shown, True), (hidden_keys, False), (shown_of_keys, False)):
        words = findings.key_finding(arranged, 2).partition(",")[0]
        assert ("shown" in words) == is_part


def test_a_special_token_that_adds_less_is_named_beside_the_key():
    """“porte” gives [CLS] 50.0%, which adds 1.5, and “door” 25.0%, which adds 6: a quarter."""
    weights, norms = cross(), cross(NORMS, measure="norms")
    note = facts(findings.special_note(weights, norms, 2, 4))
    assert note.quoted == ("[CLS]", "door") and "25%" in note.numbers
    without_key = weights.arranged(WRITTEN, READ.without_special())
    assert findings.special_note(without_key, norms, 2, 0) == ""
    without_query = weights.arranged(WRITTEN.without_special(), READ)
    assert findings.special_note(without_query, norms, 0, 2) == ""


def test_the_special_token_itself_is_compared_with_the_word_that_adds_most():
    """With [CLS] selected: "door" adds 6, [SEP], another resting place, 4.5."""
    weights, norms = cross(), cross(NORMS, measure="norms")
    small = small_addition(weights, norms, 2, 0)
    assert small is not None and (small.special, small.key, small.share) == (0, 4, 0.25)
    assert small_addition(weights, norms, 0, 2) is None  # "opened" is no resting place
    as_much = np.array(NORMS)
    as_much[2, 4] = 1.5
    assert small_addition(weights, cross(as_much.tolist(), measure="norms"), 2, 4) is None


def test_what_a_query_receives_by_weight_and_by_norm():
    weights, norms = cross(), cross(NORMS, measure="norms")
    both = received(weights, norms, 2)
    assert (both.heaviest, both.weight, both.longest, both.norm, both.norm_of_heaviest) == (
        (0,), 0.5, (4,), 6.0, 1.5,
    )  # fmt: skip
    words = facts(findings.received_words(READ, "a", both))
    assert (
        {*words.quoted} == {"[CLS]", "door"}
        and words.has("50.0%")
        and words.has("6.00")
        and words.has("1.50")
    )
    same = received(weights, norms, 3)
    assert same.heaviest == same.longest == (2,)
    assert facts(findings.received_words(READ, "a", same)).quoted == ("door",)
    none = received(weights, norms, 1)
    assert (none.heaviest, none.longest, none.norm) == ((), (), None)
    assert facts(findings.received_words(READ, "a", none)).quoted == ()


def test_the_strongest_link_sets_aside_what_says_little():
    """Special queries and keys; a token's own weight and a decoder's first token only within one text."""
    link = strongest_link(cross())
    assert (link.query, link.key) == (3, 2)  # 0.375; 0.5 are of <s> and to [CLS]
    assert strongest_link(cross(), 2).key == 4
    own = Axis.of(tokens(["[CLS]", "the", "door", "it"]))
    weights = [[0.1, 0.1, 0.4, 0.4], [0.1, 0.6, 0.2, 0.1], [0.3, 0.2, 0.5, 0.0], [0.5, 0.2, 0.3, 0.0]]
    link = strongest_link(pattern(weights, queries=own, keys=own))
    assert (link.query, link.key) == (3, 2)
    words = Axis.of(tokens(["the", "door", "opened", "it"]))
    causal = [
        [1.0, 0.0, 0.0, 0.0],
        [0.75, 0.25, 0.0, 0.0],
        [0.5, 0.375, 0.125, 0.0],
        [0.375, 0.25, 0.25, 0.125],
    ]
    link = strongest_link(
        pattern(causal, queries=words, keys=words, kind="decoder", allowed=np.tri(4, dtype=bool))
    )
    assert (link.query, link.key) == (2, 1)
