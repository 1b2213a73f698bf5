"""What the page Lens says of its facts."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from attnviz.effects.lens import LayerSimilarities, Lens
from attnviz.effects.logit_attribution import DirectEffects
from attnviz.records import Head
from tests.app.screen import unescaped
from tests.hand_made import tokens
from ui.sections.lens import heads
from ui.sections.lens.answers import finding, note, terms_of
from ui.sections.lens.facts import LargestPart


def screen(*, predicts_next=False) -> Any:
    return SimpleNamespace(
        tokens=tokens(["[CLS]", "door", "it"]),
        view=SimpleNamespace(last_query=1),
        predicts_next=predicts_next,
    )


def lens(ranks) -> Lens:
    n_layer = len(ranks)
    numbers = np.full((n_layer, 3), 0.25, dtype=np.float32)
    return Lens(
        kind="encoder",
        ids=np.zeros((n_layer, 3, 1), dtype=int),
        labels=((("a",),) * 3,) * n_layer,
        probabilities=numbers[:, :, None].copy(),
        answers=("a", "*gate*", "b"),
        answer_probabilities=numbers,
        answer_ranks=np.array([[0, one, 0] for one in ranks]),
    )


@pytest.mark.parametrize(
    ("ranks", "words"),
    [
        ([0, 1, 0, 0], "At “door” the model predicts “*gate*” (25.0%), which comes first from layer 2 on"),
        (
            [0, 0, 1, 0],
            "At “door” the model predicts “*gate*” (25.0%), which comes first only after the last layer, 3",
        ),
    ],
)
def test_an_answer(ranks, words):
    assert unescaped(finding(screen(), lens(ranks))) == f"**{words}**"
    assert r"\*gate\*" in finding(screen(), lens(ranks))
    assert unescaped(finding(screen(predicts_next=True), lens(ranks))).startswith("**After “door”")


@pytest.mark.parametrize(
    ("similar", "words"),
    [
        ([0.25, 0.4, 0.5, 1], "a cosine of 0.250; the first layer to reach 0.5 is 2"),
        ([0.25, 0.4, 0.4, 1], "a cosine of 0.250; before the last layer none reaches 0.5"),
        ([0.75, 0.4, 0.4, 1], "a cosine of 0.750"),
    ],
)
def test_without_a_head(similar, words):
    found = LayerSimilarities(
        kind="encoder", similarities=np.array([[0, one, 0] for one in similar], dtype=np.float32)
    )
    assert unescaped(finding(screen(), found)) == (
        f"**The vectors of “door” after layer 0 and after the last have {words}**"
    )


def test_only_answers_are_the_logit_lens():
    similar = LayerSimilarities(kind="encoder", similarities=np.ones((2, 3), dtype=np.float32))
    assert "nostalgebraist" in note(lens([0])) and terms_of(lens([0])) == ("Logit lens",)
    assert "nostalgebraist" not in note(similar) and "not the logit lens" in note(similar)
    assert "Logit lens" not in terms_of(similar)


@pytest.mark.parametrize(
    ("largest", "words"),
    [
        (
            LargestPart(head=Head(3, 1), n_equal=0, adds=-1.5),
            "Of all heads layer 3, head 1 has the largest direct effect on the logit: −1.50; it is 4.0",
        ),
        (
            LargestPart(head=Head(3, 1), n_equal=2, adds=-1.5),
            "Of all heads layer 3, head 1 has the largest direct effect on the logit (2 others are as large): −1.50; it is 4.0",
        ),
        (None, "No head’s direct effect on the logit is a number; it is 4.0"),
    ],
    ids=str,
)
def test_the_largest_direct_effect(largest, words):
    assert heads.finding(largest, "the logit", "it is 4.0") == words


def parts(total) -> DirectEffects:
    none = np.zeros(2, dtype=np.float32)
    return DirectEffects(
        kind="decoder",
        position=1,
        unit="logit",
        total=total,
        embedding=1.0,
        heads=np.array([[2.0], [0.5]], dtype=np.float32),
        mlps=none.copy(),
        biases=none.copy(),
        bias=0.5,
    )


def test_parts_sum_to_the_logit_only_where_they_do():
    at: Any = SimpleNamespace()
    assert "sum to the logit, 4.00, within 0." in heads._note(at, "gate", parts(4.0))
    assert "do not sum to the logit, 5.00: they are off by 1, which" in heads._note(at, "gate", parts(5.0))
