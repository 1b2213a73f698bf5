"""Which state moves the outcome most, in words, and what is saved of the states."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from attnviz.effects.attribution_patching import compared
from attnviz.effects.patching import PatchEffects, PathEnd
from attnviz.records import Head
from tests.hand_made import tokens
from ui.rooms.compare.patching.shares import error_words, finding, note, picked_place

SCREEN: Any = SimpleNamespace(
    tokens=(tokens(["[CLS]", "door", "it"]), tokens(["[CLS]", "box", "it"])),
    measured="similarity",
    differing=(1,),
    differing_in_encoder=(),
    is_shifted=False,
    view=SimpleNamespace(
        trace=SimpleNamespace(attention=lambda layer, kind: SimpleNamespace(shares_keys=layer == 0))
    ),
)


def effects(**changes) -> PatchEffects:
    """Outcomes from 0.2, of the text, to 0.7, of the other; layer 0 accounts for 98% at "door"."""
    given = {
        "kind": "encoder",
        "receiver_tokens": SCREEN.tokens[0],
        "donor_tokens": SCREEN.tokens[1],
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
            {"carried": "before"},
            "Swapping in the residual stream before layer 1 at “door” accounts for 100% of the difference",
        ),
        (
            {"carried": "mlp"},
            "Swapping in the MLP output of layer 1 at “door” accounts for 100% of the difference",
        ),
        (
            {"carried": "heads"},
            "Swapping in the output of layer 1, head 1 accounts for 100% of the difference",
        ),
        (
            {"carried": "pattern", "position": 2},
            "Swapping in the attention pattern of layer 1, head 1 at “it” accounts for 100% of the difference",
        ),
        (
            {"carried": "key"},
            "Swapping in the keys of layer 1, key-value head 1 accounts for 100% of the difference",
        ),
        (
            {"carried": "value", "layer": 3},
            "Swapping in the values of layer 3, key-value head 1 at “door” accounts for 100% of the difference",
        ),
        (
            {"carried": "heads", "end": PathEnd()},
            "Swapping in the path from layer 1, head 1 directly to the outcome accounts for 100% of the difference",
        ),
        (
            {"carried": "heads", "position": 0, "end": PathEnd(head=Head(4, 2), role="key")},
            "Swapping in the path from layer 1, head 1 at “[CLS]” to the keys of layer 4, head 2 accounts for 100% of the difference",
        ),
        (
            {"outcomes": outcomes([0.2, 0.3, 0.8], [0.2, 0.3, 0.4])},
            "Swapping in the residual stream after layer 0 at “it” overshoots: the outcome moves by 120% of the "
            "difference, beyond sentence B’s",
        ),
        (
            {"outcomes": outcomes([0.2, 0.3, -0.05], [0, 0, 0])},
            "Swapping in the residual stream after layer 0 at “it” moves the outcome away from sentence B’s, by 50% of the "
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
        ({"donor": 0.2}, "The two sentences have the same outcome, so there is no difference to explain"),
        (
            {"base": 0.387, "donor": 0.395, "outcomes": outcomes([0.387, 0.449, 0.38], [0.36, 0.4, 0.39])},
            "The outcomes of the two sentences are only 0.00800 apart, and single states move the outcome beyond them (standard "
            "deviation 0.0273): shares of so small a difference mean nothing",
        ),
        (
            {"base": float("nan")},
            "The outcomes of the two sentences are not numbers, so there is no difference to explain",
        ),
    ],
    ids=str,
)
def test_the_finding(changes, words):
    assert finding(SCREEN.tokens[0], effects(**changes)) == words


def test_what_is_said_of_shares_is_said_where_there_are_shares():
    shared, refused = note(SCREEN, effects()), note(SCREEN, effects(donor=0.2))
    assert "Share" in shared and "leaves out the last layer" in shared
    assert "Share" not in refused and "change of the outcome" in refused and "last layer" not in refused
    assert "last layer" not in note(SCREEN, effects(carried="attention"))


def test_the_csv_has_the_tokens_of_both_sentences():
    header, *rows = effects().csv().decode("utf-8-sig").splitlines()
    assert header == "layer,position,token,other token,outcome,share"
    assert [row.split(",")[2:4] for row in rows] == [
        ["0 [CLS]", "0 [CLS]"],
        ["1 door", "1 box"],
        ["2 it", "2 it"],
    ] * 2
    layer, position, _, _, outcome, share = rows[1].split(",")
    assert (layer, position) == ("0", "1")
    assert (float(outcome), float(share)) == (pytest.approx(0.69), pytest.approx(0.98))


def test_the_csv_of_heads_has_no_tokens():
    """The layers that were not asked for are left out; what the gradient gives stands beside."""
    known = outcomes([0.2, 0.69, 0.3], [np.nan, np.nan, np.nan])
    patched = effects(carried="heads", outcomes=known)
    header, *rows = patched.csv(effects(carried="heads")).decode("utf-8-sig").splitlines()
    assert header == "layer,head,outcome,share,outcome by gradient"
    assert [row.split(",")[:2] for row in rows] == [["0", "0"], ["0", "1"], ["0", "2"]]
    assert float(rows[1].split(",")[2]) == float(rows[1].split(",")[4]) == pytest.approx(0.69)
    assert effects(carried="value").csv().decode("utf-8-sig").startswith("layer,key-value head,")


def test_what_a_path_and_shared_keys_are_is_said_where_they_are():
    assert "One path at a time" in note(SCREEN, effects(carried="heads", end=PathEnd()))
    assert "Several heads read the same keys" in note(SCREEN, effects(carried="key"))
    words = note(SCREEN, effects(carried="query"))
    assert "path" not in words and "Several heads" not in words


@pytest.mark.parametrize(
    ("changes", "place"),
    [
        ({}, {"layer": 1, "query": 2}),
        ({"carried": "heads"}, {"layer": 1, "head": 2}),
        ({"carried": "heads", "layer": 3}, {"head": 1, "query": 2}),
        ({"carried": "key"}, {"layer": 1}),
        ({"carried": "key", "layer": 3}, {"query": 2}),
    ],
)
def test_what_a_click_selects(changes, place):
    assert picked_place(effects(**changes), 1, 2) == place


def test_the_error_of_the_gradient_in_words():
    """Off by 0, 0.02 and 0.1 in the first row, the second was not patched; changes 0, .5, .1 and 0, .48, .2."""
    exact = effects(carried="heads", outcomes=outcomes([0.2, 0.7, 0.3], [np.nan] * 3))
    estimate = effects(carried="heads", outcomes=outcomes([0.2, 0.68, 0.4], [9, 9, 9]))
    error = compared(exact, estimate)
    assert error is not None and (error.n_cell, error.worst) == (3, (0, 2))
    assert (error.mean, error.largest) == (pytest.approx(0.04), pytest.approx(0.1))
    assert error.correlation == pytest.approx(np.corrcoef([0, 0.5, 0.1], [0, 0.48, 0.2])[0, 1])
    words = error_words(exact, error)
    assert (
        "On the 3 cells that were patched, it is off by 0.0400 of the outcome on average and by 0.100 at most (layer 0, head 2)"
        in words
    )
    assert f"maps have a correlation of {error.correlation:.2f}" in words
    assert compared(effects(outcomes=outcomes([np.nan] * 3, [np.nan] * 3)), estimate) is None


@pytest.mark.parametrize(
    ("changes", "worst"),
    [
        ({}, "layer 0, token 2"),
        ({"carried": "heads", "layer": 3}, "layer 3, head 0, token 2"),
        ({"carried": "value", "layer": 3}, "layer 3, key-value head 0, token 2"),
        ({"carried": "key"}, "layer 0, key-value head 2"),
    ],
    ids=str,
)
def test_where_the_gradient_is_off_most(changes, worst):
    exact = effects(outcomes=outcomes([0.2, 0.7, 0.3], [np.nan] * 3), **changes)
    error = compared(exact, effects(outcomes=outcomes([0.2, 0.68, 0.4], [9, 9, 9]), **changes))
    assert error is not None and f"0.100 at most ({worst})." in error_words(exact, error)


@pytest.mark.parametrize("end", [None, PathEnd(), PathEnd(head=Head(4, 2), role="key")])
@pytest.mark.parametrize("differing", [(), (1,)])
@pytest.mark.parametrize("differing_in_encoder", [(), (2,)])
def test_where_paths_lead_and_where_the_sentences_differ(end, differing, differing_in_encoder):
    encoder = tokens(["[CLS]", "door", "it"]), tokens(["[CLS]", "door", "box"])
    trace = SimpleNamespace(tokens=encoder[0], **vars(SCREEN.view.trace))
    changes = {"differing": differing, "differing_in_encoder": differing_in_encoder}
    changes |= {"view": SimpleNamespace(trace=trace), "donor": SimpleNamespace(tokens=encoder[1])}
    words = note(SimpleNamespace(**vars(SCREEN) | changes), effects(carried="heads", end=end)).replace(
        "\\", ""
    )
    assert ("From hatched heads" in words) == (end is not None and end.head is not None)
    assert ("“door” → “box”" in words) == bool(differing)
    assert ("The encoder's sentences differ: “it” → “box”." in words) == bool(differing_in_encoder)
    assert ("have the same tokens" in words) == (not differing and not differing_in_encoder)
