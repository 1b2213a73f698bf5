"""What becomes of an outcome, in words."""

import pytest

from attnviz.effects.outcome import ClassAnswer, Similarity, TokenAnswer, TokenState
from tests.app.screen import unescaped
from tests.hand_made import tokens
from ui.rooms.cause.outcome import change, words

TOKENS = tokens(["[CLS]", "door", "it"])


@pytest.mark.parametrize(
    ("outcome", "before", "after", "expected"),
    [
        (Similarity(text="A door."), 0.84, 0.8, "the similarity with “A door.” falls from 0.840 to 0.800"),
        (Similarity(text="A door."), 0.8, 0.84, "the similarity with “A door.” rises from 0.800 to 0.840"),
        (Similarity(text="A door."), 0.8, 0.8001, "the similarity with “A door.” stays at 0.800"),
        (
            TokenState(position=2),
            0.0,
            0.012,
            "the direction of the last hidden state of “it” (token 2) changes by 0.0120 (1 − cosine)",
        ),
        (
            TokenState(position=2, by="length"),
            0.0,
            3.0,
            "the last hidden state of “it” (token 2) moves by 3.00",
        ),
        (
            TokenState(),
            0.0,
            0.5,
            "the direction of the last hidden state of “it” (token 2) changes by 0.500 (1 − cosine)",
        ),
        (
            TokenAnswer(token=" door", by="rank"),
            1.0,
            1234.0,
            "the rank of “␣door” among all tokens predicted at “it” (token 2) changes from 1 to 1,234",
        ),
        (
            ClassAnswer(label="GOOD"),
            0.2,
            0.1,
            "the probability of “GOOD” as the class of the text falls from 0.200 to 0.100",
        ),
    ],
    ids=str,
)
def test_a_change(outcome, before, after, expected):
    assert unescaped(change(outcome, TOKENS, before, after)) == expected


def test_a_long_sentence_loses_its_middle():
    shortened = words(Similarity(text="door " * 40), TOKENS)
    assert shortened.startswith("similarity with “door door") and "…" in shortened
    assert len(shortened) < 100
