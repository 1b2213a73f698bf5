"""What a comparison says in words, of two matrices that are written down here."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from attnviz.heads.comparison import compare
from attnviz.records import Axis
from tests.app.screen import facts, unescaped
from tests.hand_made import tokens
from tests.small_records import pattern
from ui.choice.exchanged import exchanged, other_sentence
from ui.choice.selection import Selection
from ui.rooms.compare import side_by_side as largest
from ui.rooms.compare.differences import finding, heading, masked, places, side_b, summary, without_partner
from ui.rooms.compare.partner import other, start
from ui.rooms.door_experiment.variation import compared

LABELS = ["[CLS]", "door", "it"]
A = Selection(model="m", text="door it", layer=3, head=1)
FIRST = [[0.2, 0.3, 0.5], [0.1, 0.8, 0.1], [0.45, 0.475, 0.075]]
SECOND = [[0.2, 0.3, 0.5], [0.1, 0.8, 0.1], [0.883, 0.017, 0.1]]


def side(weights, labels=LABELS, masked=None, **changes):
    of_text = replace(tokens(labels), masked=masked or {})
    axis = Axis.of(of_text)
    return pattern(weights, queries=axis, keys=axis, **{"layer": 3, "head": 1} | changes)


def of_heads(first=FIRST, second=SECOND):
    return compare(side(first), side(second, head=2))


PAIR = (2, 1)


def test_a_weight_in_two_heads():
    assert summary(of_heads(), PAIR, A, other(A.but(other_head=2))) == (
        "“it” → “door”: 47.5% in L3 H1, 1.7% in L3 H2"
    )
    assert summary(of_heads(SECOND, FIRST), PAIR, A, other(A.but(other_head=2))) == (
        "“it” → “door”: 1.7% in L3 H1, 47.5% in L3 H2"
    )


@pytest.mark.parametrize(
    ("of_b", "b", "names"),
    [
        ({"layer": 5, "head": 2}, {"layer": 5, "head": 2}, ("L3 H1", "L5 H2")),
        ({"layer": 5}, {"layer": 5}, ("L3 H1", "L5 H1")),
        ({}, {"model": "n"}, ("m", "n")),
        ({}, {"text": "window it"}, ("A", "B")),
        ({"layer": 5}, {"layer": 5, "model": "n"}, ("A", "B")),
    ],
    ids=str,
)
def test_sides_are_named_by_what_alone_differs(of_b, b, names):
    both = compare(side(FIRST), side(SECOND, **of_b))
    assert places(A, replace(A, **b), both) == names
    words = summary(both, PAIR, A, replace(A, **b))
    assert f"in {names[0]}," in words and f"in {names[1]}" in words
    is_named = names != ("A", "B")
    assert ("B has another" in summary(both, PAIR, A, replace(A, **b))) != is_named


def test_a_weight_that_is_the_same():
    assert finding(of_heads(), (1, 1), ("A", "B")) == "“door” → “door” is 80.0% in A as in B"


def test_two_that_are_the_same():
    assert summary(of_heads(FIRST, FIRST), PAIR, A, A) == "A and B are the same. Change B to see a difference"


@pytest.mark.parametrize(
    ("b", "ending"),
    [
        ({"text": "window it"}, "B has another sentence"),
        ({"text": "window it", "head": 2}, "B has another head and sentence"),
        (
            {"text": "window it", "head": 2, "masked": (1,)},
            "B has another head, sentence and set of masked tokens",
        ),
    ],
    ids=str,
)
def test_another_word_and_all_that_differs(b, ending):
    comparison = compare(side(FIRST), side(SECOND, ["[CLS]", "window", "it"]))
    assert summary(comparison, PAIR, A, replace(A, **b)) == (
        f"“it” → “door” (in B “window”): 47.5% in A, 1.7% in B. {ending}"
    )


def test_a_token_without_a_partner():
    longer = side(np.eye(4).tolist(), ["[CLS]", "big", "window", "it"])
    assert finding(compare(side(FIRST), longer), PAIR, ("A", "B")) == (
        "“it” → “door”: “door” has no partner in B"
    )


@pytest.mark.parametrize(
    ("measure", "rest"),
    [
        ("weights", " On average 50.0% of A's attention and 25.0% of B's lies on them."),
        ("rollout", " On average 50.0% of A's rollout and 25.0% of B's lies on them."),
        ("norms", ""),
    ],
)
def test_tokens_without_a_partner_and_whose_share_lies_on_them(measure, rest):
    """A alone has "old" and "red", B alone "big"."""
    of_a, of_b = [0.25, 0.375, 0.125, 0.25], [0.25, 0.5, 0.25]
    a = side([of_a] * 4, ["[CLS]", "old", "red", "door"], measure=measure)
    b = side([of_b] * 3, ["[CLS]", "door", "big"], measure=measure)
    assert without_partner(compare(a, b)) == (
        f"2 tokens of A (−) and 1 token of B (+) have no partner; they are hatched where they are missing.{rest}"
    )
    assert without_partner(compare(a, a)) == ""


def test_tokens_that_one_side_alone_has():
    """Neither is left out of the sentence where the other is 0."""
    a = side([[0.25, 0.75]] * 2, ["[CLS]", "door"])
    longer = side([[0.25, 0.5, 0.25]] * 3, ["[CLS]", "door", "big"])
    assert facts(without_partner(compare(a, longer))).numbers == ("0", "1", "0.0%", "25.0%")
    assert facts(without_partner(compare(longer, a))).numbers == ("1", "0", "25.0%", "0.0%")


def crossed(weights, read, written):
    """Of a text that is read and one that is written."""
    axes = {"queries": Axis.of(tokens(written)), "keys": Axis.of(tokens(read))}
    return pattern(weights, **axes, kind="cross", layer=0, head=0)


READ, WRITTEN = ["[CLS]", "door", "it"], ["<s>", "la", "porte", "ici"]
BEFORE = crossed([[0.25, 0.25, 0.5]] * 3 + [[0.5, 0.375, 0.125]], READ, WRITTEN)


def test_queries_and_keys_are_named_by_the_text_that_they_are_of():
    """Of A's texts: position 1 is "la" among the queries and "door" among the keys."""
    other = crossed([[0.25, 0.25, 0.5]] * 3 + [[0.25, 0.625, 0.125]], READ, WRITTEN)
    words = finding(compare(BEFORE, other), (3, 1), ("A", "B"))
    assert facts(words).quoted == ("ici", "door") and facts(words).numbers == ("37.5%", "62.5%")


def test_what_has_no_partner_is_the_query_or_the_key():
    shorter = crossed([[0.25, 0.25, 0.5]] * 3, READ, WRITTEN[:3])
    words = finding(compare(BEFORE, shorter), (3, 1), ("A", "B"))
    assert facts(words).quoted == ("ici", "door", "ici") and "no partner" in words
    words = finding(compare(BEFORE, crossed([[0.5, 0.5]] * 4, READ[:2], WRITTEN)), (1, 2), ("A", "B"))
    assert facts(words).quoted == ("la", "it", "it") and "no partner" in words


@pytest.mark.parametrize(("picked", "named"), [((0, 1), "<s>"), ((1, 0), "[CLS]")])
def test_what_is_not_shown_is_the_query_or_the_key(picked, named):
    shown = BEFORE.arranged(BEFORE.queries.without_special(), BEFORE.keys.without_special())
    words = finding(compare(shown, shown), picked, ("A", "B"))
    assert facts(words).quoted == (named,) and "not shown" in words


def test_the_source_of_b_has_its_model_and_texts_where_they_differ():
    masked_b = side(SECOND, ["[CLS]", "[MASK]", "it"], {1: "door"}, layer=5)
    both = compare(side(FIRST, masked={2: "it"}), masked_b)
    assert side_b(A, replace(A, layer=5), both) == "layer 5, head 1"
    assert side_b(A, replace(A, model="n"), both) == "layer 5, head 1, n"
    assert side_b(A, replace(A, text="a b", second="c"), both) == "layer 5, head 1, “a b” / “c”"
    assert side_b(A, replace(A, second="c"), both) == "layer 5, head 1, “door it” / “c”"
    assert side_b(A, replace(A, masked=(1,)), both) == "layer 5, head 1, masked: door"
    back = compare(masked_b, side(FIRST))
    assert side_b(replace(A, masked=(1,)), A, back) == "layer 3, head 1, masked: nothing"


def test_masked_tokens_of_cross_attention_are_the_encoder_s():
    read, written = replace(tokens(["[MASK]", "it"]), masked={0: "door"}), tokens(["</s>", "la", "porte"])
    cross = pattern(
        np.full((3, 2), 0.5), queries=Axis.of(written), keys=Axis.of(read), kind="cross", layer=0, head=0
    )
    assert unescaped(masked(cross)) == "“door” masked"


def test_masked_tokens_are_named():
    with_mask = compare(side(FIRST, ["[CLS]", "[MASK]", "it"], {1: "door"}), side(SECOND))
    a, b = replace(A, masked=(1,)), A
    assert unescaped(summary(with_mask, PAIR, a, b)) == (
        "“it” → “[MASK]” (in B “door”): 47.5% in A (“door” masked), 1.7% in B (nothing masked)"
    )
    assert heading("first", a, b, with_mask) == "**A** · layer 3, head 1 · “door” masked"
    assert heading("second", a, b, with_mask) == "**B** · layer 3, head 1 · nothing masked"


@pytest.mark.parametrize(
    ("text", "other"),
    [
        ("The old door opened.", "The old window opened."),  # the first of the list, wherever it stands
        ("The old tree opened.", "The old tree closed."),
        ("THE DOOR SHUT", "THE WINDOW SHUT"),
        ("door", "window"),
        ("She said that the boats came.", "She said that the ships came."),
        ("I saw you", "We saw you"),  # and nobody sees themselves
        ("I ran.", "We ran."),
        ("Then I was there.", "Then she was there."),  # "we was" would be wrong
        ("You ran.", "We ran."),
        ("He saw her.", "John saw her."),
        ("She saw him leave.", "Mary saw him leave."),
        ("They saw the tree.", "We saw the tree."),
        ("The tree shook them.", "The tree shook us."),
        ("The tree helped her and fell.", "The tree helped him and fell."),
        ("Her tree fell on the road.", "His tree fell on the road."),
        ("The tree is his.", "The tree is hers."),
        ("An old tree fell.", "The old tree fell."),  # "an new" would be wrong
        ("The tree.", "My tree."),
    ],
)
def test_the_word_that_is_exchanged(text, other):
    """By hand: the right case of a pronoun, the right article, and two persons stay two."""
    assert exchanged(text) == other


@pytest.mark.parametrize(
    "text",
    [
        "Der Hund schlief.",
        "Was ist das?",
        "Man sieht in der Ferne den Mann.",
        "Le chat dort sur son lit.",
        "El capital de la empresa",
        "Hij liep door het huis.",
        "Windows shut and it rained.",
        "I am here",
        "Are you there?",
        "They saw us.",
        "Trees shut",
        "Rain.",
        "我看见你",
        "😀",
        "…",
        "",
    ],
)
def test_where_no_word_has_a_partner_that_fits_the_bundled_sentence_is_the_other(text):
    assert exchanged(text) == ""
    assert other_sentence(text) == "I was watching the door when it opened."


def test_another_sentence_begins_with_one_word_exchanged():
    view = SimpleNamespace(selection=A.but(second="Who?"), trace=None, kind="encoder")
    assert start("sentence", view, 1) == {"other_text": exchanged(A.text), "other_second": "Who?"}


@pytest.mark.parametrize(
    ("changes", "b"),
    [
        ({}, {"other_text": "window it"}),
        ({"head": 2}, {"other_head": 2}),
        ({"text": "It opened.", "layer": 0}, {"other_text": "It opened.", "other_layer": 0}),
        ({"second": "Who?"}, {"other_text": "door it", "other_second": "Who?"}),
        ({"masked": (1,)}, {"other_masked": (1,)}),
    ],
    ids=str,
)
def test_the_door_experiment_is_never_compared_with_itself(changes, b):
    assert compared(A.but(**changes), A) == A.but(**b)


def test_a_change_is_named_by_its_query_and_its_key(monkeypatch):
    listed = []
    monkeypatch.setattr(largest, "ranked_list", lambda rows, **_: listed.extend(rows))
    monkeypatch.setattr(largest, "st", SimpleNamespace(markdown=lambda _: None))
    other = crossed([[0.25, 0.25, 0.5]] * 3 + [[0.5, 0.125, 0.375]], READ, WRITTEN)
    view = SimpleNamespace(theme="light")
    largest.largest_changes(SimpleNamespace(view=view, comparison=compare(BEFORE, other), picked=(3, 2)))
    assert [(row.text, row.key, row.length, row.picked) for row in listed] == [
        ("ici·3", "door·1", 1.0, False),
        ("ici·3", "it·2", 1.0, True),
    ]
