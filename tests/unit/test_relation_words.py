"""Grammatical relations in plain words, and on which texts a head's name is said."""

from dataclasses import replace

import numpy as np
import pytest

from attnviz.corpus.columns import DIRECTIONS
from attnviz.corpus.naming import RELATIONS, HeadName, could_relate, is_done_here, linked_words
from attnviz.records import Axis
from tests.hand_made import tokens
from tests.small_records import pattern


@pytest.mark.parametrize(
    ("relation", "direction", "words"),
    [
        ("pobj", "attended by", "a preposition to its noun"),
        ("pobj", "attends to", "a noun to its preposition"),
        ("aux", "attends to", "an auxiliary verb to its main verb"),
        ("cop", "attends to", "a form of “be” to its complement"),
        ("nsubj:pass", "attends to", "a subject to its verb"),  # a treebank's subtype
        ("sb", "attended by", "a verb to its subject"),  # of a German pipeline
        ("odd", "attends to", "a word to the word that it depends on (odd)"),
        ("odd", "attended by", "a word to the word that depends on it (odd)"),
    ],
)
def test_what_is_linked_from_query_to_key(relation, direction, words):
    assert linked_words(relation, direction) == words


def test_every_relation_of_the_bundled_sentences_and_of_treebanks_has_words():
    """spaCy's English pipelines, and Universal Dependencies without punctuation and the relations that only hold a place."""
    english = "acl acomp advcl advmod agent amod appos attr aux auxpass case cc ccomp compound conj csubj csubjpass dative det dobj expl"
    english += " intj mark neg nmod npadvmod nsubj nsubjpass nummod oprd parataxis pcomp pobj poss preconj predet prep prt punct quantmod"
    universal = "acl advcl advmod amod appos aux case cc ccomp clf compound conj cop csubj det discourse dislocated expl fixed flat goeswith"
    universal += " iobj mark nmod nsubj nummod obj obl parataxis punct reparandum vocative xcomp"
    assert {*english.split(), *universal.split(), "relcl", "xcomp"} <= {*RELATIONS}
    said = [linked_words(relation, direction) for relation in RELATIONS for direction in DIRECTIONS]
    assert not [words for words in said if "(" in words]


@pytest.mark.parametrize(
    ("relation", "dependent", "parent", "could"),
    [
        ("pobj", "river", "of", True),
        ("pobj", "river", "bank", False),
        ("pobj", "of", "of", False),
        ("dobj", "them", "saw", True),
        ("amod", "them", "saw", False),
        ("aux", "was", "watching", True),
        ("aux", "dog", "watching", False),
    ],
)
def test_which_two_words_could_be_so_related(relation, dependent, parent, could):
    assert could_relate(relation, dependent, parent) is could


def on(labels, rows, direction="attended by", relation="pobj", **how):
    """Whether a head with these weights is said to link a preposition to its noun."""
    name = HeadName(
        called="", share=0.6, low=0.55, high=0.65, relation=relation, direction=direction, position_alone=0.5
    )
    axis = Axis.of(tokens(labels))
    return is_done_here(name, pattern(rows, queries=axis, keys=axis), **{"in_english": True} | how)


@pytest.mark.stand_ins
def test_a_name_is_said_where_a_word_of_the_kind_has_a_partner_that_stands_out():
    """Special tokens and punctuation do not count, however much they get; the column of "river" is largest in the row of "of"."""
    labels = ["[CLS]", "the", "bank", "of", "river", "."]
    rows = np.full((6, 6), 0.02)
    rows[:, 0] = 0.9
    rows[3, 4] = 0.2
    assert on(labels, rows)
    assert not on(labels, rows, relation="aux")  # there is no auxiliary
    assert not on(labels, np.full((6, 6), 1 / 6))  # nothing stands out
    assert on(labels, rows.T, direction="attends to")
    other = HeadName(called="previous token", share=0.6, low=0.55, high=0.65)
    axis = Axis.of(tokens(labels))
    flat = pattern(np.full((6, 6), 1 / 6), queries=axis, keys=axis)
    assert is_done_here(other, flat, in_english=True)
    assert is_done_here(replace(other, relation="pobj"), replace(flat, kind="cross"), in_english=True)


@pytest.mark.parametrize(
    "labels", [["rain", "."], ["😀", "😀"], ["der", "hund", "in"], ["我", "在", "家"], ["."]]
)
def test_a_name_is_not_said_of_a_text_without_two_such_words(labels):
    rows = np.eye(len(labels))[::-1] * 0.9 + 0.01
    assert not on(labels, rows) and not on(labels, rows.T)
    assert not on(labels, rows, relation="dobj")


def test_in_other_languages_no_list_of_words_tells():
    rows = np.array([[0.1, 0.1, 0.8], [0.1, 0.1, 0.8], [0.8, 0.1, 0.1]])
    assert on(["der", "hund", "in"], rows, direction="attends to", in_english=False)
