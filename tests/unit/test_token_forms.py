"""The form of a token with its space or without, and which one a model was probably asked for."""

from dataclasses import replace

import numpy as np
import pytest
import torch

import attnviz
from attnviz.effects.outcome import LAST, TokenAnswer, measured, own_answer
from attnviz.model import answers
from attnviz.model.answers import likelier_form, other_forms
from tests import tiny_tokenizers

MARY = "When Mary and John went to the store, John gave a drink to"


def ids(model, *tokens: str) -> tuple[int, ...]:
    """Of entries as the vocabulary spells them."""
    return tuple(model.tokenizer.convert_tokens_to_ids(list(tokens)))


def test_the_space_is_the_difference(smollm2):
    without, with_space = ids(smollm2, "Mary", "\u0120Mary")
    assert other_forms(smollm2, without) == (with_space,)
    assert other_forms(smollm2, with_space) == (without,)
    newline, space = ids(smollm2, "\u010a", "\u0120")
    assert other_forms(smollm2, newline) == other_forms(smollm2, space) == ()


@pytest.fixture
def pieces(tiny_model):
    """A tiny Llama whose tokenizer writes a space as SentencePiece does."""
    return replace(tiny_model("llama"), tokenizer=tiny_tokenizers.tokenizer("sentencepiece"))


def test_of_sentencepiece_and_of_word_pieces(pieces, tiny_model):
    without, with_space = ids(pieces, "a", "\u2581a")
    assert other_forms(pieces, without) == (with_space,)
    bert = tiny_model("bert")
    assert other_forms(bert, *ids(bert, "play")) == ()


def test_mary_has_a_space(smollm2):
    """The issue's numbers, found with transformers: 0.92 with the space, 3.5e-5 without; logit differences 6.12 and 5.06."""
    trace = smollm2.trace(MARY)
    likelier = likelier_form(smollm2, trace, len(trace.tokens) - 1, "Mary")
    assert likelier is not None
    assert (likelier.asked, likelier.token) == ("Mary", "␣Mary")
    assert likelier.probability == pytest.approx(0.923, abs=0.001)
    assert likelier.asked_probability == pytest.approx(3.5e-5, rel=0.02)
    assert likelier_form(smollm2, trace, len(trace.tokens) - 1, " Mary") is None
    for tokens, difference in {(" Mary", " John"): 6.12, ("Mary", "John"): 5.06}.items():
        outcome = measured(smollm2, trace, TokenAnswer(token=tokens[0], against=tokens[1]))
        assert outcome.value == pytest.approx(difference, abs=0.005)
    own = own_answer(smollm2, trace)
    assert (own.position, own.token, own.against) == (LAST, "␣Mary", "␣the")


@pytest.mark.parametrize(("times", "is_offered"), [(9.9, False), (10.1, True)])
def test_another_form_is_offered_from_ten_times_as_likely_on(times, is_offered, pieces, monkeypatch):
    without, with_space = ids(pieces, "a", "\u2581a")
    logits = torch.full((300,), -20.0)
    logits[without], logits[with_space] = 1.0, 1.0 + np.log(times)
    monkeypatch.setattr(answers, "token_logits", lambda *_: logits)
    likelier = likelier_form(pieces, pieces.trace("a"), 0, "a")
    assert (likelier is not None) == is_offered
    if likelier is not None:
        assert likelier.probability / likelier.asked_probability == pytest.approx(times, rel=1e-5)


def test_no_such_token_or_place(smollm2):
    trace = smollm2.trace("Mary")
    with pytest.raises(attnviz.SelectionError, match="Token 5"):
        likelier_form(smollm2, trace, 5, "Mary")
    with pytest.raises(attnviz.SelectionError, match="Choose a token"):
        likelier_form(smollm2, trace, 0, "Mary gave")
