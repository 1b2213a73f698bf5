"""What a head links beyond what frequencies give, counted pair by pair; and labels as spaCy gives them."""

import sys
from collections import Counter
from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest

from attnviz.corpus.labels import Labels, spacy_labels
from attnviz.corpus.running import labeller
from attnviz.corpus.texts import Entry
from attnviz.corpus.writing import Pairs
from attnviz.errors import CorpusError
from attnviz.model.tokenization import tokenize

TEXTS = ["it opened .", "the cat sat on the mat", "the door opened the mat .", "a cat , a mat"]


@pytest.mark.parametrize("name", ["bert", "gpt2", "bart"])
def test_tokens_that_a_head_links(name, tiny_model):
    model, pairs = tiny_model(name), Pairs()
    traces = [model.trace(text) for text in TEXTS]
    for trace in traces:
        pairs.add(trace)
    links = list(pairs.of_tokens())
    places = [(kind, head) for kind in traces[0].kinds for head in traces[0].heads(kind)]
    assert len(links) == len(places)
    for of_head, (kind, head) in zip(links, places, strict=True):
        mass, n = Counter(), Counter()
        for trace in traces:
            weights = trace.weights(*head, kind)
            queries, keys = trace.query_tokens(kind), trace.key_tokens(kind)
            for query in np.flatnonzero(~queries.is_added):
                key = int(weights[query].argmax())
                pair = queries.labels[query], keys.labels[key]
                mass[pair] += float(weights[query, key])
                n[pair] += 1
        total = sum(mass.values())
        of_query, of_key = Counter(), Counter()
        for (query, key), weight in mass.items():
            of_query[query] += weight
            of_key[key] += weight
        expected = {pair: of_query[pair[0]] * of_key[pair[1]] / total for pair in mass}
        beyond = {pair: mass[pair] - expected[pair] for pair in mass if mass[pair] > expected[pair] + 1e-9}
        assert len([link for link in of_head if link.mass - link.expected > 1e-9]) == min(len(beyond), 20)
        amounts = [link.mass - link.expected for link in of_head]
        assert amounts == sorted(amounts, reverse=True)
        for link in of_head:
            pair = link.query, link.key
            assert link.n == n[pair]
            assert (link.mass, link.expected) == pytest.approx((mass[pair], expected[pair]), abs=1e-5)


def test_parts_of_speech_that_a_head_links(tiny_model):
    model, pairs = tiny_model("bert"), Pairs()
    labels = [
        Labels(
            spans=np.array([(0, 2), (3, 9), (10, 11)]),
            heads=np.array([1, -1, 1]),
            relations=("nsubj", "root", "punct"),
            parts=("PRON", "VERB", "PUNCT"),
        ),
        Labels(
            spans=np.array([(0, 3), (4, 7), (8, 11)]),
            heads=np.array([1, 2, -1]),
            relations=("det", "nsubj", "root"),
            parts=("DET", "NOUN", "VERB"),
        ),
    ]
    traces = [model.trace("it opened ."), model.trace("the cat sat")]
    for trace, text_labels in zip(traces, labels, strict=True):
        pairs.add(trace, text_labels)
    for of_head, head in zip(pairs.of_parts(), traces[0].heads(), strict=True):
        mass = Counter()
        for trace, text_labels in zip(traces, labels, strict=True):
            words, weights = text_labels.word_of(trace.tokens), trace.weights(*head)
            for query, key in np.argwhere((words[:, None] >= 0) & (words >= 0)):
                mass[text_labels.parts[words[query]], text_labels.parts[words[key]]] += float(
                    weights[query, key]
                )
        total = sum(mass.values())
        of_query, of_key = Counter(), Counter()
        for (query, key), weight in mass.items():
            of_query[query] += weight
            of_key[key] += weight
        expected = {pair: of_query[pair[0]] * of_key[pair[1]] / total for pair in product(of_query, of_key)}
        beyond = {pair: mass[pair] - expected[pair] for pair in expected if mass[pair] > expected[pair]}
        assert [(pair.query, pair.key) for pair in of_head] == sorted(beyond, key=lambda pair: -beyond[pair])
        for pair in of_head:
            assert pair.mass == pytest.approx(mass[pair.query, pair.key], rel=1e-5)
            assert pair.expected == pytest.approx(expected[pair.query, pair.key], rel=1e-5)


class Word(SimpleNamespace):
    """A token as spaCy has it."""

    def __len__(self):
        return len(self.text)


def test_labels_of_a_pipeline():
    """A document as spaCy has it: its head is the token itself for a root, and space is a token."""

    words = [
        Word(i=0, text="It", idx=0, dep_="nsubj", pos_="PRON", is_space=False),
        Word(i=1, text="  ", idx=3, dep_="dep", pos_="SPACE", is_space=True),
        Word(i=2, text="opened", idx=5, dep_="ROOT", pos_="VERB", is_space=False),
        Word(i=3, text=".", idx=11, dep_="punct", pos_="PUNCT", is_space=False),
    ]
    for word, head in zip(words, (2, 0, 2, 2), strict=True):
        word.head = words[head]
    [labels] = spacy_labels(SimpleNamespace(pipe=lambda texts: [words]), ["It   opened."])
    assert labels.spans.tolist() == [[0, 2], [5, 11], [11, 12]]
    assert labels.heads.tolist() == [1, -1, 1]
    assert labels.relations == ("nsubj", "ROOT", "punct") and labels.parts == ("PRON", "VERB", "PUNCT")


def test_which_pipeline_labels_which_texts(monkeypatch):
    """The small English one by its short name, any other by its own; texts that bring labels keep them."""
    loaded = []

    def load(name):
        loaded.append(name)
        token = Word(i=0, text="a", idx=0, dep_="ROOT", pos_="X", is_space=False)
        token.head = token
        return SimpleNamespace(pipe=lambda texts: [[token] for _ in texts])

    monkeypatch.setitem(sys.modules, "spacy", SimpleNamespace(load=load))
    own = Labels(spans=np.array([[0, 1]]), heads=np.array([-1]), relations=("own",), parts=("NOUN",))
    entries = [Entry(source="", place=1, text="a"), Entry(source="", place=2, text="b", labels=own)]
    for label, name in (("spacy", "en_core_web_sm"), ("de_core_news_sm", "de_core_news_sm")):
        labelled = labeller(label)(entries)
        assert loaded[-1] == name
        assert [entry.labels.relations for entry in labelled] == [("ROOT",), ("own",)]
        assert [(entry.place, entry.text) for entry in labelled] == [(1, "a"), (2, "b")]
    assert labeller(None)(entries) is entries

    def missing(name):
        raise OSError(name)

    monkeypatch.setitem(sys.modules, "spacy", SimpleNamespace(load=missing))
    with pytest.raises(CorpusError, match="The spaCy pipeline en_core_web_sm was to label the texts"):
        labeller("spacy")


def test_words_of_labels_are_those_of_the_first_text_even_where_it_is_cut(tiny_model):
    text = "it opened . the cat sat"
    tokens = tokenize(tiny_model("bert").tokenizer, text, "the cat", max_tokens=8, cut=True)
    assert tokens.n_cut == (3, 0)
    ends = np.cumsum([len(word) + 1 for word in text.split()])
    labels = Labels(
        spans=np.column_stack([ends - [len(word) + 1 for word in text.split()], ends - 1]),
        heads=np.array([1, -1, 1, 4, 5, 1]),
        relations=("nsubj", "root", "punct", "det", "nsubj", "conj"),
        parts=("PRON", "VERB", "PUNCT", "DET", "NOUN", "VERB"),
    )
    words = labels.word_of(tokens)
    assert words[~tokens.is_added & (tokens.segment == 0)].tolist() == [0, 1, 2]
    assert (words[tokens.segment == 1] == -1).all()


def test_a_special_token_that_the_text_spells_links_as_others_do(tiny_model):
    model, pairs = tiny_model("bert"), Pairs()
    trace = model.trace("the [SEP] cat [SEP] sat")
    assert trace.tokens.in_text
    pairs.add(trace)
    of_query = {link.query for of_head in pairs.of_tokens() for link in of_head}
    assert "[SEP]" in of_query and "[CLS]" not in of_query
