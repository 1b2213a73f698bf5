"""Which token the methods put first, in words."""

import numpy as np
import pytest

from attnviz.effects.input_attribution import InputAttribution
from attnviz.maths.gradients import PathIntegral
from tests.app.screen import unescaped
from tests.hand_made import tokens
from ui.rooms.cause.inputs.attributions import FirstTokens, agreement, finding, first_tokens, gap

TOKENS = tokens(["[CLS]", "door", "*it*", "ran"])


def first(**changes) -> FirstTokens:
    """Of 4 methods 3 put "door" first."""
    given = {
        "n_token": 3,
        "n_method": 4,
        "n_undecided": 0,
        "tokens": (1,),
        "n_same": 3,
        "direction": 1,
        "correlation": 0.625,
    }
    return FirstTokens(**given | changes)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, "Of the tokens that can be removed, 3 of 4 methods that use the outcome rank “door” first"),
        (
            {"n_same": 1},
            "Of the tokens that can be removed, 1 of 4 methods that use the outcome ranks “door” first",
        ),
        (
            {"n_same": 4},
            "Of the tokens that can be removed, all 4 methods that use the outcome rank “door” first",
        ),
        (
            {"n_same": 2, "n_undecided": 2},
            "Of the tokens that can be removed, 2 of 4 methods that use the outcome rank “door” first; 2 have no single first token",
        ),
        (
            {"n_token": 2, "n_same": 2, "n_undecided": 2},
            "Of the tokens that can be removed, 2 of 4 methods that use the outcome rank “door” first; 2 have no single first token",
        ),
        (
            {"n_same": 2, "tokens": (1, 3)},
            "Of the tokens that can be removed, “door” and “ran” are each ranked first by 2 of 4 methods that use the outcome",
        ),
        (
            {"n_same": 1, "tokens": (1, 2, 3), "n_undecided": 1},
            "Of the tokens that can be removed, “door”, “*it*” and “ran” are each ranked first by 1 of 4 methods that use the outcome; 1 has no single first token",
        ),
        (
            {"n_same": 0, "tokens": (), "n_undecided": 4},
            "Of the tokens that can be removed, none of 4 methods that use the outcome has a single first",
        ),
        (
            {"n_token": 1, "n_same": 4},
            "The text has one token that could be removed, so there is nothing to rank",
        ),
        (
            {"n_token": 1, "n_same": 3, "n_undecided": 1},
            "The text has one token that could be removed, so there is nothing to rank",
        ),
        (
            {"n_token": 0, "n_same": 0, "tokens": (), "n_undecided": 4},
            "The text has no token that could be removed",
        ),
    ],
    ids=str,
)
def test_the_finding(changes, words):
    assert unescaped(finding(first(**changes), TOKENS)) == words


def test_a_token_is_shown_as_it_is():
    assert r"“\*it\*”" in finding(first(tokens=(2,)), TOKENS)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {},
            "Of the tokens that can be removed, ranked first is the one that raises the outcome most, as all of them together do.",
        ),
        (
            {"direction": -1},
            "Of the tokens that can be removed, ranked first is the one that lowers the outcome most, as all of them together do.",
        ),
        (
            {"direction": 0},
            "Of the tokens that can be removed, ranked first is the one that raises the outcome most.",
        ),
    ],
    ids=str,
)
def test_what_the_first_token_does(changes, words):
    assert agreement(first(**changes)) == [
        words,
        "Methods can agree and be wrong together: the orders of any two that use the outcome have a rank correlation of +0.62 on average.",
    ]
    assert agreement(first(correlation=None, **changes)) == [words]
    assert agreement(first(n_token=2, correlation=None, **changes)) == [words]
    assert agreement(first(n_token=1, **changes)) == []


def of(method: str, values: list[float]) -> InputAttribution:
    return InputAttribution(method=method, tokens=TOKENS, values=np.array(values, dtype=np.float32))


def test_the_correlation_of_two_orders():
    """Spearman's 1 - 6 Σd² / n(n² - 1) of the ranks 3 1 4 2 and 1 2 4 3: Σd² = 6, so 1 - 36 / 60."""
    orders = of("keys_masked", [7, 1, 9, 3]), of("token_replaced", [-1, 0, 8, 5])
    assert first_tokens(orders, np.ones(4, dtype=bool)).correlation == pytest.approx(0.4)
    three = np.array([True, True, True, False])
    assert first_tokens(orders, three).correlation == pytest.approx(0.5)  # ranks 2 1 3 and 1 2 3: Σd² = 2
    assert first_tokens(orders, np.array([True, True, False, False])).correlation is None  # of two tokens
    assert first_tokens(orders[:1], np.ones(4, dtype=bool)).correlation is None
    assert (
        first_tokens([orders[0], of("token_replaced", [1, 1, 1, 1])], np.ones(4, dtype=bool)).correlation
        is None
    )
    assert (
        first_tokens([orders[0], of("token_replaced", [1, np.nan, 2, 3])], np.ones(4, dtype=bool)).correlation
        is None
    )


@pytest.mark.parametrize(
    ("difference", "error", "words"),
    [
        (-5.0, 0.1, "off by 2% of the difference of outcomes in all, and 1% is the most allowed"),
        (0.5, 0.12, "off by 3% of the largest value in all"),
    ],
)
def test_what_did_not_converge(difference, error, words):
    values = np.array([4.0, -3.5])
    integral = PathIntegral(values=values, difference=difference, error=error, n_points=470)
    attribution = InputAttribution(
        method="integrated_gradients", tokens=tokens(["a", "b"]), values=values, integral=integral
    )
    assert not attribution.converged and words in gap(attribution) and "470 points" in gap(attribution)
