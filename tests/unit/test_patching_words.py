"""Which state moves the outcome most, in words; and what is saved of all of them."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from attnviz.effects.patching import PatchEffects
from tests.hand_made import tokens
from ui.sections.patching.heatmap import as_csv, finding, note

SCREEN: Any = SimpleNamespace(
    tokens=(tokens(["[CLS]", "door", "it"]), tokens(["[CLS]", "box", "it"])),
    measured="similarity",
    differing=(1,),
    differing_in_encoder=(),
    is_shifted=False,
)


def effects(**changes) -> PatchEffects:
    """Outcomes from 0.2, of the text, to 0.7, of the other; layer 0 accounts for 98% at "door"."""
    given = {
        "kind": "encoder",
        "carried": "layer",
        "layer": None,
        "base": 0.2,
        "donor": 0.7,
        "outcomes": np.array([[0.2, 0.69, 0.3], [0.25, 0.7, 0.4]], dtype=np.float32),
    }
    return PatchEffects(**given | changes)


def outcomes(*rows) -> np.ndarray:
    return np.array(rows, dtype=np.float32)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {},  # without the last layer, whose states the outcome reads
            "Swapping in the residual stream after layer 0 at “door” accounts for 98% of the difference",
        ),
        (
            {"carried": "attention"},
            "Swapping in the attention output of layer 1 at “door” accounts for 100% of the difference",
        ),
        (
            {"carried": "heads", "layer": 3},
            "Swapping in the output of layer 3, head 1 at “door” accounts for 100% of the difference",
        ),
        (
            {"outcomes": outcomes([0.2, 0.3, 0.8], [0.2, 0.3, 0.4])},
            "Swapping in the residual stream after layer 0 at “it” moves the outcome beyond the other sentence’s, by 120% of the "
            "difference in all",
        ),
        (
            {"outcomes": outcomes([0.2, 0.3, -0.05], [0, 0, 0])},
            "Swapping in the residual stream after layer 0 at “it” moves the outcome away from the other sentence’s, by 50% of the "
            "difference",
        ),
        (
            {"outcomes": outcomes([0.2, 0.45, 0.45], [0, 0, 0])},
            "Swapping in the residual stream after layer 0 at “door” (1 other is as large) accounts for 50% of the difference",
        ),
        (
            {"outcomes": outcomes([0.2, 0.201, 0.2], [0, 0, 0])},
            "No single state accounts for even 1% of the difference",
        ),
        ({"donor": 0.2}, "The two sentences have the same outcome: there is no difference to carry over"),
        (
            {"base": 0.387, "donor": 0.395, "outcomes": outcomes([0.387, 0.449, 0.38], [0.36, 0.4, 0.39])},
            "The outcomes of the two sentences are only 0.00800 apart, and single states move the outcome beyond them (standard "
            "deviation 0.0273): shares of so small a difference mean nothing",
        ),
        (
            {"base": float("nan")},
            "The outcomes of the two sentences are not numbers: there is no difference to share out",
        ),
    ],
    ids=str,
)
def test_the_finding(changes, words):
    assert finding(SCREEN, effects(**changes)) == words


def test_what_is_said_of_shares_is_said_where_there_are_shares():
    shared, refused = note(SCREEN, effects()), note(SCREEN, effects(donor=0.2))
    assert "Share" in shared and "leaves out the last layer" in shared
    assert "Share" not in refused and "change of the outcome" in refused and "last layer" not in refused
    assert "last layer" not in note(SCREEN, effects(carried="attention"))


def test_the_csv_has_the_tokens_of_both_sentences():
    header, *rows = as_csv(SCREEN, effects()).decode("utf-8-sig").splitlines()
    assert header == "layer,position,token,other token,outcome,share"
    assert [row.split(",")[2:4] for row in rows] == [
        ["0 [CLS]", "0 [CLS]"],
        ["1 door", "1 box"],
        ["2 it", "2 it"],
    ] * 2
    layer, position, _, _, outcome, share = rows[1].split(",")
    assert (layer, position) == ("0", "1")
    assert (float(outcome), float(share)) == (pytest.approx(0.69), pytest.approx(0.98))
