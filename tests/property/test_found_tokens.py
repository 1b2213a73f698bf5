"""What is said of tokens that were found holds for any of them, counted one by one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnviz.corpus.token_index import FoundFacts, Nearest, found_facts
from tests.app.screen import facts as facts_of
from ui.words.found_tokens import found_words

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:Do not use the `random` module"),
]

LABELS = ("[CLS]", "door", "it", "the", "##s")


@st.composite
def nearest(draw):
    """A token of a short text."""
    labels = tuple(draw(st.lists(st.sampled_from(LABELS), min_size=1, max_size=5)))
    position = draw(st.integers(0, len(labels) - 1))
    return Nearest(
        similarity=draw(st.floats(-1, 1)),
        token=labels[position],
        text=" ".join(labels),
        position=position,
        part=draw(st.sampled_from((None, "NOUN", "PRON", "odd"))),
        labels=labels,
        key=draw(st.integers(0, len(labels) - 1)),
        weight=draw(st.floats(0, 1)),
    )


def attends(near, relation, token):
    """Whether a token attends most to what is named."""
    return {
        "itself": near.key == near.position,
        "previous": near.key == near.position - 1,
        "next": near.key == near.position + 1,
        "first": near.key == 0,
        "token": near.labels[near.key] == token,
    }[relation]


@given(st.lists(nearest(), max_size=8))
def test_facts_and_words(neighbours):
    facts = found_facts("door", neighbours)
    n_same = len([near for near in neighbours if near.token == "door"])
    assert (facts.n, facts.n_same) == (len(neighbours), n_same)
    if facts.other is not None:
        name, n = facts.other
        assert name != "door" and n == len([near for near in neighbours if near.token == name])
    counts = {
        label: len([near for near in neighbours if near.token == label])
        for label in LABELS
        if label != "door"
    }
    assert (0 if facts.other is None else facts.other[1]) == max(counts.values())
    parts = [near.part for near in neighbours if near.part is not None]
    assert facts.n_part == len(parts)
    assert (0 if facts.part is None else facts.part[1]) == max(map(parts.count, parts), default=0)
    ways = [
        ("itself", ""),
        ("previous", ""),
        ("next", ""),
        ("first", ""),
        *(("token", label) for label in LABELS),
    ]
    most = max(len([near for near in neighbours if attends(near, *way)]) for way in ways)
    if not neighbours:
        assert facts.attended is None
        return
    assert facts.attended.n == most
    assert (
        len([near for near in neighbours if attends(near, facts.attended.relation, facts.attended.token)])
        == most
    )
    assert (facts.lowest, facts.highest) == (
        min(near.similarity for near in neighbours),
        max(near.similarity for near in neighbours),
    )
    stated = facts_of(found_words("door", "query", facts))
    numbers = list(stated.numbers)
    assert numbers[0] == str(len(neighbours)) and stated.quoted[0] == "door"
    if 0 < n_same < len(neighbours):
        assert numbers[1] == str(n_same)
    if most < len(neighbours):
        assert numbers[-1] == str(most)


@pytest.mark.parametrize(
    ("ways", "named"),
    [
        (("previous", "next"), "previous"),
        (("next", "previous"), "previous"),
        (("itself", "previous"), "itself"),
        (("next", "first"), "next"),
    ],
)
def test_of_ways_that_are_as_frequent_the_first_of_an_order_is_named(ways, named):
    keys = {"itself": 3, "previous": 2, "next": 4, "first": 0}
    neighbours = [
        Nearest(
            similarity=0.5,
            token="d",
            text="",
            position=3,
            part=None,
            labels=tuple("abcde" if number else "vwxyz"),  # no token is named twice
            key=keys[way],
            weight=0.5,
        )
        for number, way in enumerate(ways)
    ]
    assert found_facts("door", neighbours).attended.relation == named


def test_words_of_some_facts():
    def near(token, part, key, position=2):
        return Nearest(
            similarity=0.5,
            token=token,
            text="",
            position=position,
            part=part,
            labels=("[CLS]", "the", token, "opened"),
            key=key,
            weight=0.5,
        )

    neighbours = [
        near("door", "NOUN", 0),
        near("house", "NOUN", 0),
        near("house", "NOUN", 1),
        near("it", "PRON", 0),
    ]
    assert (
        found_words("door", "hidden", found_facts("door", neighbours))
        == "of the 4 tokens nearest to “door” by hidden state, 1 is the same token, 2 are “house” and 3 are nouns; the head attends "
        "most to [CLS] from 3 of them"
    )
    assert (
        found_words("it", "key", found_facts("it", [near("it", None, 1)] * 2))
        == "of the 2 tokens nearest to “it” by key, all are the same token; the head attends most to the previous token from all of "
        "them"
    )
    assert "no other token" in found_words("it", "key", found_facts("it", []))


@pytest.mark.parametrize(
    ("counts", "words"),
    [
        # the same token, the most frequent other one, and the most frequent part of speech
        ((0, 1, 1), "none are the same token"),
        ((0, 2, 2), "none are the same token, 2 are “cat” and 2 are nouns"),
        ((1, 1, 2), "1 is the same token and 2 are nouns"),
        ((1, 2, 1), "1 is the same token and 2 are “cat”"),
        ((2, 2, 5), "2 are the same token and all are nouns"),
        ((2, 3, 0), "2 are the same token and 3 are “cat”"),
    ],
)
def test_what_occurs_once_or_less_often_than_the_token_is_not_mentioned(counts, words):
    n_same, n_other, n_noun = counts
    facts = FoundFacts(
        n=5,
        n_same=n_same,
        other=("cat", n_other),
        part=("NOUN", n_noun) if n_noun else None,
        n_part=5,
        attended=None,
        lowest=0.1,
        highest=0.5,
    )
    assert found_words("door", "key", facts) == f"of the 5 tokens nearest to “door” by key, {words}"
