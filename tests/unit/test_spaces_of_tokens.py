"""A space that belongs to a token is shown: it makes it another token for the model, and the same word for readers."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import attnviz
from attnviz.figures.comparison import entry_labels
from attnviz.heads.comparison import align
from attnviz.heads.head_statistics import STATISTICS, _is_punctuation
from attnviz.heads.layer_cells import AxisPair
from attnviz.maps.collection import Collection
from attnviz.records import Axis, Tokens
from tests.small_records import tokens


def spoken(*labels: str, **changes) -> Tokens:
    n = len(labels)
    given = {"is_special": np.zeros(n, dtype=bool), "word": np.arange(n), "labels": labels}
    return tokens(n, **given | changes)


def test_the_same_token_is_one_of_the_same_id():
    axis = Axis.of(spoken("the", "␣cat", "␣the", "the", ids=np.array([5, 6, 7, 5])))
    assert np.argwhere(STATISTICS["same_token"].of(AxisPair(axis, axis, is_one_text=True))).tolist() == [
        [0, 3],
        [3, 0],
    ]


def test_punctuation_is_the_same_with_and_without_it():
    assert _is_punctuation("␣.") and _is_punctuation(".")
    assert not _is_punctuation("␣a")


def test_words_of_two_models_are_matched_by_what_is_written():
    alignment = align(Axis.of(spoken("the", "cat", "sat")), Axis.of(spoken("␣cat", "␣mat")))
    assert alignment.pairs.tolist() == [[0, -1], [1, 0], [2, 1]]
    assert entry_labels(alignment) == ["the·−0", "cat·1", "sat→␣mat·2"]


def test_a_masked_piece_is_matched_by_what_it_was():
    word = np.array([0, 1, 1])
    first = spoken("the", "play", "##ing", word=word)
    masked = spoken("the", "play", "[MASK]", word=word, masked={2: "##ing"}, pieces=("the", "play", "[MASK]"))
    assert align(Axis.of(first, "words"), Axis.of(masked, "words")).pairs.tolist() == [[0, 0], [1, 1]]
    other = replace(masked, masked={2: "##ed"})
    assert entry_labels(align(Axis.of(first, "words"), Axis.of(other, "words")))[1] == "playing→play[MASK]·1"


@pytest.mark.parametrize("wanted", ["door", "DOOR", "␣door", " door "])
def test_a_search_finds_both(wanted):
    read = SimpleNamespace(tokens=[spoken("door", "␣door", "␣doors", pieces=("door", " door", " doors"))])
    expected = [1] if wanted == "␣door" else [0, 1]
    assert Collection.find(read, wanted).tolist() == expected


@pytest.fixture(scope="module")
def gpt2(tiny_model):
    return tiny_model("gpt2")


def test_what_a_token_is_named_is_read_as_it(gpt2):
    [space], [letter] = gpt2.read_as("␣"), gpt2.read_as("a")
    assert gpt2.tokenizer.convert_ids_to_tokens([space, letter]) == ["Ġ", "a"]
    assert gpt2.name_of(space) == "␣"
    half = gpt2.tokenizer.convert_tokens_to_ids("Ã")  # a byte of "é" and others
    assert gpt2.name_of(half) == "Ã"
    assert gpt2.read_as(gpt2.name_of(half)) == [half]


def test_labels_that_are_another_token_s_are_found(gpt2):
    trace = gpt2.trace("a é\x10")
    assert trace.tokens.labels == ("a", "␣", "é 1/2", "é 2/2", "U+0010")
    assert attnviz.verify(gpt2, trace).passed
    for at, wrong in enumerate(("b", "␣a", "è 1/2", "á 2/2", "U+0011")):
        labels = list(trace.tokens.labels)
        labels[at] = wrong
        report = attnviz.verify(gpt2, replace(trace, tokens=replace(trace.tokens, labels=tuple(labels))))
        assert [check.name for check in report.failed] == ["labels"]
