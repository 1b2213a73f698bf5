"""Which tokens and numbers findings name, where queries and keys are of two texts; whatever the sentences are."""

import numpy as np
import pytest

from attnviz.heads.facts import Received, headline, received, small_addition, strongest_link
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
    """The second query sees no key."""
    allowed = np.ones((4, 6), dtype=bool)
    allowed[1] = False
    return pattern(weights, queries=WRITTEN, keys=READ, kind="cross", allowed=allowed, **changes)


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


def test_a_key_that_is_not_shown_is_named_by_its_own_text():
    without = cross().arranged(WRITTEN, READ.without_special())
    assert facts(findings.key_finding(without, 0)).quoted == ("[CLS]",)


def test_of_rows_divided_by_what_is_shown_norms_are_shares_too():
    """Of “porte” (1 + 2 + 5 + 1 + 1), “door” has 5 of the 9 that are not to [CLS]."""
    shown = cross(NORMS, measure="norms").arranged(WRITTEN, READ.without_special(), renormalise=True)
    assert "55.6%" in facts(findings.key_finding(shown, 2)).numbers
    assert "5.00" in facts(findings.key_finding(cross(NORMS, measure="norms"), 2)).numbers


@pytest.mark.parametrize("measure", ["weights", "norms"])
def test_what_is_hidden_stands_in_the_words_of_a_key(measure):
    """Of all queries, or of those that are shown; and of rows that are divided by what is shown."""
    whole = cross(measure=measure)
    shown = whole.arranged(WRITTEN.without_special(), READ)
    hidden_keys = whole.arranged(WRITTEN, READ.without_special())
    shown_of_keys = whole.arranged(WRITTEN, READ.without_special(), renormalise=True)
    for arranged, is_part in ((whole, False), (shown, True), (hidden_keys, False), (shown_of_keys, True)):
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


@pytest.mark.stand_ins
def test_what_a_query_receives_by_weight_and_by_norm():
    weights, norms = cross(), cross(NORMS, measure="norms")
    both = received(weights, norms, 2)
    assert (both.heaviest, both.weight, both.longest, both.norm, both.norm_of_heaviest) == (
        (0,), 0.5, (4,), 6.0, 1.5,
    )  # fmt: skip
    words = facts(findings.received_words(cross(), 2, both, ""))
    assert (
        {"[CLS]", "door"} <= {*words.quoted}
        and words.has("50.0%")
        and words.has("6.00")
        and words.has("1.50")
    )
    same = received(weights, norms, 3)
    assert same.heaviest == same.longest == (2,)
    assert facts(findings.received_words(cross(), 3, same, "")).quoted[-1] == "door"
    none = received(weights, norms, 1)
    assert (none.heaviest, none.longest, none.norm) == ((), (), None)
    assert facts(findings.received_words(cross(), 1, none, "")).numbers == ()


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


def longest_of(**changes):
    """The words of a query whose heaviest key is [CLS]."""
    given = {"weight": 0.5, "heaviest": (0,), "norm": 6.0, "longest": (4,), "norm_of_heaviest": 1.5}
    return findings.received_words(cross(), 2, Received(**given | changes), "")


def test_norms_are_named_with_the_keys_that_have_them():
    """Of [CLS] beside "door"; not of [CLS] twice where it is among those that add most, nor where no key adds anything."""
    numbers = [number for number in facts(longest_of()).numbers if "." in number]
    assert numbers == ["50.0%", "6.00", "1.50"]
    assert "each" not in longest_of()
    among = longest_of(longest=(0, 4), norm_of_heaviest=6.0)
    assert [number for number in facts(among).numbers if "." in number] == ["50.0%", "6.00"]
    assert "6.00 each" in among and "50.0% each" not in among
    several = longest_of(heaviest=(0, 4), longest=(4,))
    assert "50.0% each" in several and "6.00 each" not in several
    for nothing in (
        longest_of(norm=0.0, longest=(), norm_of_heaviest=0.0),
        longest_of(norm=None, longest=(), norm_of_heaviest=None),
    ):
        assert facts(nothing).numbers[-1] == "50.0%" and facts(nothing).quoted[-1] == "[CLS]"


def test_a_hidden_token_that_occurs_twice_has_its_position():
    words = Axis.of(tokens(["[CLS]", "door", "it", "door"]))
    only_it = words.where(np.array([False, False, True, False]))
    assert findings.name(only_it, 3).endswith("(token 3)")
    assert "token" not in findings.name(only_it, 2)


@pytest.mark.parametrize(
    ("correlation", "text"), [(-0.794, "−0.79"), (0.123, "+0.12"), (float("nan"), "none"), (0.0, "+0.00")]
)
def test_a_correlation_has_a_sign(correlation, text):
    assert findings.correlation_text(correlation) == text


@pytest.mark.parametrize(
    ("weights", "named"),
    [
        ([0.5, 0.125, 0.125, 0.125, 0.125], ()),  # half is not more than half
        ([0.5625, 0.125, 0.125, 0.125, 0.0625], (0,)),
        ([0.25, 0.0625, 0.25, 0.0625, 0.25, 0.0625, 0.0625], (0, 2, 4)),
        ([0.1875, 0.0625, 0.1875, 0.0625, 0.1875, 0.0625, 0.0625, 0.1875], ()),  # four equal ones
        ([0.375, 0.3125, 0.1875, 0.125], (0, 1)),  # the second has twice the mean of the others
        ([0.375, 0.25, 0.1875, 0.1875], ()),  # 1.33 times
        ([0.25, 0.25, 0.25, 0.25], ()),
        ([1.0], (0,)),
    ],
)
def test_a_headline_names_at_most_three_keys_that_hold_more_than_half(weights, named):
    axis = Axis.of(tokens([f"w{number}" for number in range(len(weights))]))
    rows = np.tile(weights, (len(weights), 1)).tolist()
    fact = headline(pattern(rows, queries=axis, keys=axis), 0)
    assert (fact.named, fact.n_seen) == (named, len(weights))
    assert fact.equal == pytest.approx(1 / len(weights))


def test_hidden_attention_counts_for_what_more_than_half_is():
    """Half of the row is on a key that is not shown; of what is shown the other has all."""
    axis = Axis.of(tokens(["w0", "w1", "w2"]))
    whole = pattern([[0.5, 0.5, 0.0]] * 3, queries=axis, keys=axis)
    shown = axis.where(np.array([True, False, True]))
    assert headline(whole.arranged(axis, shown), 0).named == ()
    assert headline(whole.arranged(axis, shown, renormalise=True), 0).named == (0,)


def test_a_query_that_sees_no_key_has_no_headline():
    fact = headline(cross(), 1)
    assert (fact.named, fact.n_seen, fact.equal) == ((), 0, 0.0)
