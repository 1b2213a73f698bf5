"""Which names and marks a head has, and on what they were found."""

import numpy as np
import pytest

from attnviz.corpus.naming import HeadName
from attnviz.heads.probes import PROBES, HeadProbes
from attnviz.records import Head
from tests import small_records
from tests.app.screen import facts
from tests.hand_made import tokens
from ui.words import findings, head_names

PLAIN, NAMED, BOTH, FIRST = Head(0, 0), Head(0, 1), Head(1, 0), Head(1, 1)


def named(called, share=0.75, *, relation=""):
    """A head's name; one of a relation that the best fixed distance finds half of the time."""
    alone = {"direction": "attends to", "position_alone": 0.5} if relation else {}
    return HeadName(called=called, share=share, low=share, high=share, relation=relation, **alone)


NAMES = head_names.HeadNames(
    of_head={
        PLAIN: (),
        NAMED: (named("induction", 0.914),),
        BOTH: (
            named("first token", 0.512),
            named("subject", relation="nsubj"),
            named("object", relation="dobj"),
        ),
        FIRST: (named("first token", 0.875),),
    },
    where="in the profile of many texts",
    briefly="over many texts",
    note="a note.",
    in_english=False,
    marked=("induction",),
)
LABELS = {
    "previous": np.array([[False, True], [True, False]]),
    "broad": np.array([[False, False], [True, False]]),
}
WORDS = {"previous": "to the previous token", "broad": "broadly"}


@pytest.mark.parametrize(
    ("name", "statistic", "called"),
    [
        ("probe_induction", "induction", "induction"),
        ("probe_duplicate", "same_token", "duplicate token"),
        ("probe_previous", "previous", "previous token"),
        ("probe_first", "first", "first token"),
    ],
)
def test_a_probe_measures_what_heads_are_called_by_it(name, statistic, called):
    assert (PROBES[name].statistic, PROBES[name].called) == (statistic, called)


def test_names_by_random_tokens_are_those_above_half():
    """Each head is above half in one probe alone, in the order of the list above; the last in none."""
    means = np.full((5, 4), 0.25, dtype=np.float32)
    means[range(4), range(4)] = 0.75
    probes = HeadProbes(
        kind="encoder",
        means={name: means[:, [number]].copy() for number, name in enumerate(PROBES)},
        spreads={name: np.zeros((5, 1), dtype=np.float32) for name in PROBES},
        n_token=50,
        n_text=8,
        provenance=small_records.PROVENANCE,
    )
    names = head_names.names_of_probes(probes)
    called = ["induction", "duplicate token", "previous token", "first token"]
    for number, word in enumerate(called):
        [own] = names.of_head[Head(number, 0)]
        assert (own.called, own.share, own.relation) == (word, 0.75, "")
    assert names.of_head[Head(4, 0)] == ()
    assert "50%" in names.note and "50 repeated" in names.note and "8 such texts" in names.note
    assert names.marked == ("induction", "duplicate token", "previous token")
    marks = [head_names.mark_of(names, Head(number, 0)) for number in range(5)]
    assert marks == ["I", "D", "←", "", ""]
    assert head_names.marks_of(names, [Head(number, 0) for number in range(2)]) == [["I"], ["D"]]


def test_the_patterns_of_a_text_are_called_what_they_are():
    words = findings.ATTENDS
    assert ["previous" in words["previous"], "next" in words["next"], "same" in words["self"]] == [True] * 3
    assert [name for name, called in words.items() if name in called] == ["previous", "next", "[CLS]", "[SEP]", "punctuation", "broad"]  # fmt: skip
    assert findings.MARKS == {
        **{"previous": "←", "next": "→", "self": "=", "[CLS]": "C", "[SEP]": "S"},
        **{"punctuation": "P", "broad": "~"},
    }


@pytest.mark.parametrize(
    ("labels", "first", "after"),
    [
        (["[CLS]", "a", "[SEP]"], "[CLS]", "[SEP]"),
        (["<s>", "a", "</s>"], "<s>", "</s>"),
        (["[CLS]", "a", "[SEP]", "b", "[SEP]"], "[CLS]", "[SEP]"),
        (["<s>", "a", "</s>", "<pad>"], "<s>", "the special tokens after the first"),
        (["a", "</s>"], "[CLS]", "</s>"),  # none at the beginning: as they are
        (["<s>", "a"], "<s>", "[SEP]"),
    ],
)
def test_special_tokens_are_called_as_the_text_has_them(labels, first, after):
    words = head_names.attending(tokens(labels))
    assert words["[CLS]"].endswith(first) and words["[SEP]"].endswith(after)
    assert words["previous"] == findings.ATTENDS["previous"]


def parts(line):
    """Whether a line says how the head attends on this text, and what it is called elsewhere."""
    return "attends" in line.lower() and "this text" in line, NAMES.briefly in line.lower()


def test_what_is_known_of_each_head():
    """Neither without the other: a pattern on this text, and names over many."""
    heads = [PLAIN, NAMED, BOTH, FIRST]
    [[plain, of_named], [both, first]] = head_names.heads_said(heads, LABELS, WORDS, NAMES)
    assert [parts(line) for line in (plain, of_named, both, first)] == [
        *((False, False), (True, True), (True, True), (False, True))
    ]
    assert [facts(line).heads for line in (plain, of_named, both, first)] == [
        ((0, 0),),
        ((0, 1),),
        ((1, 0),),
        ((1, 1),),
    ]
    assert (
        "induction" in of_named.split(NAMES.briefly)[1]
        and "previous token" in of_named.split(NAMES.briefly)[0]
    )
    assert "subject" in both.split(NAMES.briefly)[1] and "broadly" in both.split(NAMES.briefly)[0]
    [[_, without], _] = head_names.heads_said(heads, LABELS, WORDS, None)
    assert parts(without) == (True, False)


def test_names_with_their_numbers():
    assert head_names.names_said(NAMES, NAMED) == "induction 0.914"
    assert head_names.names_said(NAMES, Head(5, 5)) == head_names.names_said(None, NAMED) == ""
    of_named = head_names.with_names("It is so", NAMES, NAMED)
    assert (
        of_named.startswith("It is so") and NAMES.where in of_named and of_named.endswith("induction 0.914")
    )
    assert (
        head_names.with_names("It is so", NAMES, PLAIN)
        == head_names.with_names("It is so", None, NAMED)
        == "It is so"
    )


@pytest.mark.parametrize(
    ("attends", "names", "head", "knows_text", "on_text", "elsewhere", "is_none"),
    [
        ("broadly", NAMES, NAMED, True, True, True, False),
        ("broadly", NAMES, PLAIN, True, True, False, False),
        ("broadly", None, NAMED, True, True, False, False),
        ("", NAMES, NAMED, True, False, True, False),
        ("", NAMES, PLAIN, True, True, True, True),
        ("", NAMES, PLAIN, False, False, True, True),
        ("", None, PLAIN, True, True, False, True),
        ("", None, PLAIN, False, False, False, False),
    ],
)
def test_the_line_of_a_head(attends, names, head, knows_text, on_text, elsewhere, is_none):
    """What was found, or where nothing was; empty if nothing was looked at."""
    line = head_names.head_words(attends, names, head, knows_text=knows_text, is_done_here=lambda _: True)
    assert ("this text" in line, NAMES.briefly in line.lower()) == (on_text, elsewhere)
    assert ("No known" in line) == is_none and ("induction" in line) == (head == NAMED and names is NAMES)
    assert ("broadly" in line) == bool(attends)
    assert bool(line) == (on_text or elsewhere)


def test_a_name_of_what_a_head_does_not_do_here_is_left_out():
    def done(name):
        return name.called == "first token"

    line = head_names.head_words("", NAMES, BOTH, knows_text=True, is_done_here=done)
    assert "first token" in line and "subject" not in line
    assert head_names.head_words("", NAMES, NAMED, knows_text=False, is_done_here=done) == ""


def test_the_first_token_is_left_out_beside_other_names_and_further_names_are_counted():
    often = "often {} (75%; position alone: 50%)".format
    assert head_names.called_words(NAMES, BOTH) == f"{often('subject')}, {often('object')}"
    assert head_names.called_words(NAMES, FIRST) == "first token"
    many = head_names.HeadNames(
        of_head={PLAIN: tuple(named(name, relation=name) for name in "abcd")},
        where="", briefly="", note="", in_english=False, marked=(),
    )  # fmt: skip
    assert head_names.called_words(many, PLAIN) == f"{often('a')}, {often('b')} and 2 more"
    assert head_names.mark_of(many, PLAIN) == "R"
