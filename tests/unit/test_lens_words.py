"""What the page Lens says of its facts."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from attnviz.effects.lens import FollowedTokens, LayerSimilarities, Lens
from attnviz.effects.logit_attribution import DirectEffects
from attnviz.effects.outcome import TokenAnswer
from tests.app.screen import unescaped
from tests.hand_made import tokens
from ui.rooms.cause.lens import PART
from ui.rooms.cause.lens import added_parts as heads
from ui.rooms.cause.lens.answers import finding, followed_finding, note

TOKENS = tokens(["[CLS]", "door", "it"])


def screen(answers, kind="encoder") -> Any:
    view = SimpleNamespace(last_query=1, trace=SimpleNamespace(kinds=(kind,)))
    return SimpleNamespace(tokens=TOKENS, view=view, answers=answers)


def lens(ranks) -> Lens:
    n_layer = len(ranks)
    numbers = np.full((n_layer, 3), 0.25, dtype=np.float32)
    return Lens(
        kind="encoder",
        tokens=TOKENS,
        ids=np.zeros((n_layer, 3, 1), dtype=int),
        labels=((("a",),) * 3,) * n_layer,
        probabilities=numbers[:, :, None].copy(),
        answers=("a", "*gate*", "b"),
        answer_probabilities=numbers,
        answer_ranks=np.array([[0, rank, 0] for rank in ranks]),
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
    assert unescaped(finding(screen(lens(ranks)))) == words
    assert r"\*gate\*" in finding(screen(lens(ranks)))
    assert unescaped(finding(screen(lens(ranks), "decoder"))).startswith("After “door”")


@pytest.mark.parametrize(
    ("similar", "words"),
    [
        ([0.25, 0.4, 0.5, 1], "a cosine of 0.250; the first layer to reach 0.5 is 2"),
        ([0.25, 0.4, 0.4, 1], "a cosine of 0.250; before the last layer none reaches 0.5"),
        ([0.75, 0.4, 0.4, 1], "a cosine of 0.750"),
    ],
)
def test_without_a_head(similar, words):
    similarities = LayerSimilarities(
        kind="encoder",
        tokens=TOKENS,
        similarities=np.array([[0, similarity, 0] for similarity in similar], dtype=np.float32),
    )
    assert unescaped(finding(screen(similarities))) == (
        f"The vectors of “door” after layer 0 and after the last have {words}"
    )


def test_only_answers_are_the_logit_lens():
    similar = LayerSimilarities(kind="encoder", tokens=TOKENS, similarities=np.ones((2, 3), dtype=np.float32))
    assert "nostalgebraist" in note(lens([0]))
    assert "nostalgebraist" not in note(similar) and "not the logit lens" in note(similar)
    assert ["Logit lens" in sheet.terms for sheet in PART.sheets] == [True, False, True]


@pytest.mark.parametrize(
    ("adds", "words"),
    [
        (
            [[0.5, -1.5]],
            "Of all heads, layer 0, head 1 has the largest direct effect on the logit: −1.50; it is 4.0",
        ),
        (
            [[1.5, -1.5, 1.5]],
            "Of all heads, layer 0, head 0 has the largest direct effect on the logit (2 others are as large): 1.50; it is 4.0",
        ),
        ([[np.nan]], "No head’s direct effect on the logit is a number; it is 4.0"),
    ],
    ids=str,
)
def test_the_largest_direct_effect(adds, words):
    effects = replace(parts(4.0), heads=np.array(adds, dtype=np.float32))
    assert heads.finding(effects, "the logit", "it is 4.0") == words


def parts(total) -> DirectEffects:
    none = np.zeros(2, dtype=np.float32)
    return DirectEffects(
        kind="decoder",
        position=1,
        unit="logit",
        total=total,
        embedding=1.0,
        heads=np.array([[2.0], [0.5]], dtype=np.float32),
        sources=(np.array([[2.0, 0.0]]), np.array([[0.25, 0.25]])),
        mlps=none.copy(),
        biases=none.copy(),
        bias=0.5,
    )


def test_parts_sum_to_the_logit_only_where_they_do():
    gate = TokenAnswer(position=1, token="gate")
    assert "sum to the logit, 4.00, within 0." in heads.note(parts(4.0), gate, has_head=True)
    assert "do not sum to the logit, 5.00: they are off by 1, which" in heads.note(
        parts(5.0), gate, has_head=True
    )
    of_two = TokenAnswer(position=1, token="gate", against="door")
    assert "sum to the difference, 4.00, within 0." in heads.note(parts(4.0), of_two, has_head=True)


def test_the_sum_beside_the_models_own_number():
    assert heads.total(parts(4.0)) == "Sum of all parts **4** · the model’s own **4** · difference **0**"
    assert (
        heads.total(parts(-4.5)) == "Sum of all parts **4** · the model’s own **−4.5** · difference **8.5**"
    )


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (TokenAnswer(position=1, token="␣gate"), "the logit of “␣gate”"),
        (
            TokenAnswer(position=1, token=" gate", against="door"),
            "the logit of “␣gate” minus that of “door”",
        ),
    ],
)
def test_what_is_taken_apart(answer, words):
    assert unescaped(heads.answer_words(answer)).replace("\u2068", "").replace("\u2069", "") == words


@pytest.mark.parametrize(
    ("shown", "words"),
    [
        ((2, 2), "Weight times the value of the token, "),
        ((8, 1200), "The largest 8 of 1,200 tokens. Weight times "),
    ],
)
def test_the_note_of_the_sources(shown, words):
    of_sources = heads.sources_note(*shown, 2.5)
    assert of_sources.startswith(words) and of_sources.endswith("they sum to what the head adds, 2.50.")


@pytest.mark.parametrize(
    ("logits", "ranks", "words"),
    [
        (
            [[0, 1], [1, 1], [2, 1], [2, 1]],  # in a tie neither is ahead
            [1, 2, 2, 1],
            "a is ahead of b from layer 2 on; it is the most likely token only after the last layer, 3",
        ),
        ([[1, 0], [1, 0]], [1, 1200], "a is ahead of b after every layer; it ends at rank 1,200"),
        ([[1, 0], [1, 1]], [1, 2], "a is not ahead of b after the last layer; it ends at rank 2"),
        ([[0], [1], [1]], [2, 1, 1], "a is the most likely token from layer 1 on"),
    ],
    ids=str,
)
def test_since_when_a_chosen_token_is_ahead(logits, ranks, words):
    tokens = FollowedTokens(
        kind="decoder",
        position=1,
        labels=("a", "b")[: len(logits[0])],
        logits=np.array(logits, dtype=np.float32),
        probabilities=np.zeros(np.shape(logits), dtype=np.float32),
        ranks=np.array([[rank] * len(logits[0]) for rank in ranks]),
    )
    said = unescaped(followed_finding(tokens))
    assert said.replace("\u2068", "").replace("\u2069", "").replace("“", "").replace("”", "") == words
