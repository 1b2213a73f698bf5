"""Outcomes, against the formulas written out in numpy."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch

import attnviz
from attnviz.effects.outcome import (
    LAST,
    ClassAnswer,
    Similarity,
    TokenAnswer,
    TokenState,
    measured,
    outcome_from,
)
from attnviz.model.variants import measured_variants
from tests import small_records

TEXT, OTHER = "the cat sat on a mat", "a door opened"


def test_similarity_is_that_of_sentence_transformers(tiny_model):
    """Mean over all tokens, then normalised: the modules of all-MiniLM-L6-v2, written out."""
    bert = tiny_model("bert")
    trace = bert.trace(TEXT)
    measure = measured(bert, trace, Similarity(text=OTHER))
    own, other = (bert.trace(text).last_hidden_state.mean(axis=0) for text in (TEXT, OTHER))
    expected = own @ other / np.linalg.norm(own) / np.linalg.norm(other)
    assert measure.value == pytest.approx(expected, abs=1e-6)
    same = measured(bert, trace, Similarity(text=TEXT))
    assert same.value == pytest.approx(1, abs=1e-6)


def test_a_pair_is_compared_with_a_pair(tiny_model):
    bert = tiny_model("bert")
    trace = bert.trace(TEXT, "it opened .")
    assert measured(bert, trace, Similarity(text=TEXT)).value == pytest.approx(1, abs=1e-6)
    other = bert.trace(OTHER, "it opened .").last_hidden_state.mean(axis=0)
    own = trace.last_hidden_state.mean(axis=0)
    expected = own @ other / np.linalg.norm(own) / np.linalg.norm(other)
    assert measured(bert, trace, Similarity(text=OTHER)).value == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("target_text", [None, "", "it ran"])
@pytest.mark.parametrize("n_token", [5, 700])
@pytest.mark.stand_ins
def test_the_other_text_is_read_as_the_text_was(target_text, n_token):
    """With its second sentence or the decoder's text, its template and languages, and as long as the text where that is long."""
    asked = {}
    states = np.eye(2, dtype=np.float32)

    def read(*texts, **named):
        asked.update(named, texts=texts)
        return SimpleNamespace(refuse_given=lambda _: None, last_hidden_state=states)

    tokens = replace(small_records.tokens(n_token), text_pair="a pair", language="de", template="begin")
    target = (
        None if target_text is None else replace(small_records.tokens(3), text=target_text, language="fr")
    )
    trace = SimpleNamespace(
        refuse_given=lambda _: None,
        tokens=tokens,
        target_tokens=target,
        last_tokens=target or tokens,
        last_hidden_state=states,
    )
    measured(SimpleNamespace(trace=read), trace, Similarity(text=OTHER))
    assert asked == {
        "texts": (OTHER, "a pair" if target is None else target_text or None),
        "cut": True,
        "max_tokens": max(512, n_token),
        "source_language": "de",
        "template": "begin",
        "target_language": None if target is None else "fr",
    }


def test_the_other_text_is_cut_however_much_the_model_reads(tiny_model):
    t5 = tiny_model("t5")
    assert t5.max_tokens is None
    trace, long = t5.trace(OTHER), f"{TEXT} " * 200
    value = measured(t5, trace, Similarity(text=long)).value
    first = measured(t5, trace, Similarity(text=long + "opened " * 500)).value
    assert value == first


def test_the_state_of_a_token(tiny_model):
    bert = tiny_model("bert")
    trace = bert.trace(TEXT)
    measure = measured(bert, trace, TokenState(position=3))
    assert measure.value == pytest.approx(0, abs=1e-6)
    variants = torch.tensor(np.stack([trace.last_hidden_state, bert.trace(TEXT).last_hidden_state * -2]))
    np.testing.assert_allclose(measure(variants), [0, 2], atol=1e-6)
    moved = measured(bert, trace, TokenState(position=3, by="length"))
    expected = [0, 3 * np.linalg.norm(trace.last_hidden_state[3])]
    np.testing.assert_allclose(moved(variants), expected, rtol=1e-5, atol=1e-6)
    assert (measure.unit, moved.unit) == ("1 − cosine", "length")
    assert measured(bert, trace, Similarity(text=OTHER)).unit == "cosine"


@pytest.mark.parametrize(
    ("outcome", "written"),
    [
        (TokenState(position=7), "state:7"),
        (TokenState(position=7, by="length"), "length:7"),
        (Similarity(text="a: b, “c”"), "similarity:a: b, “c”"),
        (TokenAnswer(position=7, token="door"), "answer:7:door"),
        (TokenAnswer(position=7, token=" door", against="##ing"), "answer:7: door:##ing"),
        (TokenAnswer(position=0, token=":", against="100%"), "answer:0:%3A:100%25"),
        (TokenAnswer(position=0, token="%3A"), "answer:0:%253A"),
        (TokenAnswer(token=" door"), "answer:last: door"),
        (TokenAnswer(position=LAST, token="\u2423a", against="last"), "answer:last:\u2423a:last"),
        (TokenAnswer(position=7, token="a:b", by="rank"), "rank:7:a%3Ab"),
        (TokenState(), "state:last"),
        (ClassAnswer(label="LABEL_0"), "class:LABEL_0"),
        (ClassAnswer(label="a:b", against="c d"), "class:a%3Ab:c d"),
    ],
)
def test_written_and_read(outcome, written):
    assert str(outcome) == written
    assert outcome_from(written) == outcome


WRONG = ["", "state:", "state:x", "state:-1", "state:1:2", "similarity: ", "what:1", "class:", "class:a:b:c"]
WRONG += [
    "answer:7",
    "answer:door",
    "answer:7:",
    "answer:7::",
    "answer:7:a:b:c",
    "answer:x:door",
    "answer:1234567:a",
    "answer:last",
    "answer:last:",
    "answer:Last:a",
    "rank:7",
    "rank:7:a:b",
    "state:last:1",
]


@pytest.mark.parametrize("written", WRONG)
def test_what_is_no_outcome(written):
    with pytest.raises(attnviz.SelectionError, match="an outcome is written as"):
        outcome_from(written)


def test_the_last_token_stays_the_last_in_a_longer_text(tiny_model):
    bert = tiny_model("bert")
    for text in ("the cat", TEXT):
        trace = bert.trace(text)
        variants = torch.tensor(np.stack([trace.last_hidden_state] * len(trace.tokens)))
        for token in range(len(trace.tokens)):
            variants[token, token] *= 3  # each variant moves another token
        moved = measured(bert, trace, TokenState(by="length"))(variants)
        expected = np.zeros(len(trace.tokens))
        expected[-1] = 2 * np.linalg.norm(trace.last_hidden_state[-1])
        np.testing.assert_allclose(moved, expected, rtol=1e-5)


def test_a_rank_is_of_one_token():
    with pytest.raises(attnviz.SelectionError, match="a rank is of one token among all"):
        TokenAnswer(token="a", against="b", by="rank")


@pytest.mark.parametrize("outcome", [TokenState(position=9), TokenAnswer(position=9, token="door")])
def test_a_token_that_is_not_there(tiny_model, outcome):
    bert = tiny_model("bert")
    with pytest.raises(attnviz.SelectionError, match="Token 9"):
        measured(bert, bert.trace("the cat"), outcome)


@pytest.mark.parametrize(
    ("outcome", "words"),
    [
        (TokenState(position=2), "turn of the last hidden state of “cat” (token 2)"),
        (
            TokenState(position=2, by="length"),
            "length of the change of the last hidden state of “cat” (token 2)",
        ),
        (TokenAnswer(position=2, token="door"), "probability of “door” predicted at “cat” (token 2)"),
        (
            TokenAnswer(position=9, token="door", against=" mat"),
            "logit of “door” minus that of “\u2423mat” predicted at token 9",
        ),
        (
            TokenAnswer(token=" door", by="rank"),
            "rank of “\u2423door” among all tokens predicted at “[SEP]” (token 3)",
        ),
        (TokenState(position=LAST), "turn of the last hidden state of “[SEP]” (token 3)"),
        (ClassAnswer(label="GOOD"), "probability of “GOOD” as the class of the text"),
        (
            ClassAnswer(label="GOOD", against="BAD"),
            "logit of the class “GOOD” minus that of “BAD”",
        ),
    ],
)
def test_in_words(tiny_model, outcome, words):
    assert outcome.words(tiny_model("bert").tokenize("the cat")) == words


@pytest.mark.parametrize(
    ("outcome", "message"),
    [
        (
            TokenAnswer(position=1, token="door"),
            r"The answer “door” was asked for; .*bert \(BertModel\) has no language head",
        ),
        (
            ClassAnswer(label="GOOD"),
            r"The class “GOOD” was asked for; .*bert \(BertModel\) has no classifier",
        ),
    ],
)
def test_a_checkpoint_without_the_head_that_answers(tiny_model, outcome, message):
    bert = tiny_model("bert")
    with pytest.raises(attnviz.UnsupportedArchitectureError, match=message):
        measured(bert, bert.trace("the cat"), outcome)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize(("token", "rank"), [(12_344, 12_345), (69_998, 69_999), (256, 257)])
@pytest.mark.stand_ins
def test_a_rank_is_exact_whatever_the_model_computes_in(monkeypatch, dtype, token, rank):
    """bfloat16 has no 12,345, and float16 nothing above 65,504."""
    logits = -torch.arange(70_000.0)
    monkeypatch.setattr("attnviz.effects.outcome.answer_ids", lambda *_: (token, None))
    monkeypatch.setattr(
        "attnviz.effects.outcome.token_logits",
        lambda _, vectors: logits.expand(len(vectors), -1).to(vectors.dtype),
    )
    trace = SimpleNamespace(
        refuse_given=lambda _: None,
        last_hidden_state=np.ones((2, 3), np.float32),
        tokens=small_records.tokens(2),
        target_tokens=None,
    )
    measure = measured(None, trace, TokenAnswer(position=1, token="door", by="rank"))
    assert measure.value == rank
    assert measure(torch.ones(4, 2, 3, dtype=dtype)).tolist() == [rank] * 4


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_nothing_changed_is_no_effect_in_any_arithmetic(headed, classifying, dtype):
    for model, folder in (headed("gpt2"), classifying("bert")):
        coarse = attnviz.load_model(str(folder), dtype=dtype)
        trace = coarse.trace(TEXT)
        first, second = (model.name_of(int(number)) for number in trace.tokens.ids[1:3])
        outcomes = [Similarity(text=OTHER), TokenState(position=2), TokenState(position=2, by="length")]
        if model.language_head is not None:
            outcomes += [
                TokenAnswer(position=2, token=first),
                TokenAnswer(position=2, token=first, against=second),
                TokenAnswer(position=2, token=first, by="rank"),
            ]
        else:
            outcomes += [ClassAnswer(label="GOOD"), ClassAnswer(label="GOOD", against="BAD")]
        for outcome in outcomes:
            measure = measured(coarse, trace, outcome)
            [same] = measured_variants(coarse, trace, [[]], measure)
            assert same == measure.value, outcome


@pytest.mark.stand_ins
def test_how_far_a_state_without_direction_turns():
    """Two zero vectors are equal; a zero vector and another one are as far apart as two at a right angle."""
    states = np.array([[0, 0], [3, 4]], np.float32)
    trace = SimpleNamespace(
        refuse_given=lambda _: None,
        last_hidden_state=states,
        tokens=small_records.tokens(2),
        target_tokens=None,
    )
    now = torch.tensor([[[0.0, 0.0]] * 2, [[3.0, 4.0]] * 2, [[-4.0, 3.0]] * 2, [[-6.0, -8.0]] * 2])
    assert measured(None, trace, TokenState(position=0))(now).tolist() == [0, 1, 1, 1]
    turns = measured(None, trace, TokenState(position=1))(now).tolist()
    assert turns == pytest.approx([1, 0, 1, 2], abs=1e-6)
