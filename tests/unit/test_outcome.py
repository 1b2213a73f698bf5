"""Outcomes, against the formulas written out in numpy."""

import numpy as np
import pytest
import torch

import attnviz
from attnviz.effects.outcome import Similarity, TokenState, measured, outcome_from

TEXT, OTHER = "the cat sat on a mat", "a door opened"


def test_similarity_is_that_of_sentence_transformers(tiny_model):
    """Mean over all tokens, then normalised: the modules of all-MiniLM-L6-v2, written out."""
    bert = tiny_model("bert")
    trace = bert.trace(TEXT)
    found = measured(bert, trace, Similarity(text=OTHER))
    one, other = (bert.trace(text).last_hidden_state.mean(axis=0) for text in (TEXT, OTHER))
    expected = one @ other / np.linalg.norm(one) / np.linalg.norm(other)
    assert found.value == pytest.approx(expected, abs=1e-6)
    same = measured(bert, trace, Similarity(text=TEXT))
    assert same.value == pytest.approx(1, abs=1e-6)


def test_the_state_of_a_token(tiny_model):
    bert = tiny_model("bert")
    trace = bert.trace(TEXT)
    found = measured(bert, trace, TokenState(position=3))
    assert found.value == pytest.approx(0, abs=1e-6)
    variants = torch.tensor(np.stack([trace.last_hidden_state, bert.trace(TEXT).last_hidden_state * -2]))
    np.testing.assert_allclose(found(variants), [0, 2], atol=1e-6)
    np.testing.assert_allclose(
        found.lengths(variants), [0, 3 * np.linalg.norm(trace.last_hidden_state[3])], rtol=1e-5, atol=1e-6
    )


@pytest.mark.parametrize("outcome", [TokenState(position=7), Similarity(text="a: b, “c”")])
def test_written_and_read(outcome):
    assert outcome_from(str(outcome)) == outcome


@pytest.mark.parametrize("written", ["", "state:", "state:x", "state:-1", "similarity: ", "what:1"])
def test_what_is_no_outcome(written):
    with pytest.raises(attnviz.SelectionError, match="an outcome is written as"):
        outcome_from(written)


def test_a_token_that_is_not_there(tiny_model):
    bert = tiny_model("bert")
    with pytest.raises(attnviz.SelectionError, match="Token 9"):
        measured(bert, bert.trace("the cat"), TokenState(position=9))
