"""What the page Effects says of its facts."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from attnviz.effects.ablation import HeadEffects
from attnviz.effects.cell_effects import CellEffects
from attnviz.effects.outcome import Similarity, TokenAnswer, TokenState
from attnviz.records import AllHeads, Head
from tests.app.screen import unescaped
from tests.hand_made import tokens
from ui.rooms.cause.heads_off.effects_of_heads import finding
from ui.rooms.cause.heads_off.further_effects import ablations_note, cells_note, group
from ui.rooms.cause.heads_off.switched_off import mean_words
from ui.rooms.cause.outcome import becomes

SCREEN: Any = SimpleNamespace(
    outcome=Similarity(text="A door."),
    view=SimpleNamespace(
        trace=SimpleNamespace(last_tokens=tokens(["door"])), selection=SimpleNamespace(place=Head(0, 0))
    ),
)


def effects(heads, base=0.5) -> HeadEffects:
    numbers = np.array(heads, dtype=np.float32)
    return HeadEffects(
        kind="encoder",
        ablation="zero",
        base=base,
        heads=numbers,
    )


@pytest.mark.parametrize(
    ("heads", "words"),
    [
        (
            [[0.5, 0.25], [0.625, 0.5]],
            "Largest effect: without layer 0, head 1 the similarity with “A door.” falls from 0.500 to 0.250; "
            "without L0 H0 it is 0.500",
        ),
        (
            [[0.125, 0.25], [0.75, 0.75]],  # the selected head is the largest
            "Largest effect: without layer 0, head 0 the similarity with “A door.” falls from 0.500 to 0.125",
        ),
        (
            [[np.nan, 0.25], [0.5, 0.5]],  # the selected head has not been computed
            "Largest effect: without layer 0, head 1 the similarity with “A door.” falls from 0.500 to 0.250",
        ),
        (
            [[0.5, 0.25], [0.75, 0.75]],
            "Largest effect (2 others are as large): without layer 0, head 1 the similarity with “A door.” falls from 0.500 to 0.250; "
            "without L0 H0 it is 0.500",
        ),
        ([[0.5, 0.5]], "No head changes the outcome, 0.500"),
    ],
    ids=str,
)
def test_the_finding(heads, words):
    assert unescaped(finding(SimpleNamespace(**vars(SCREEN), effects=effects(heads)))) == words


@pytest.mark.parametrize(
    ("outcome", "after", "words"),
    [
        (Similarity(text="A door."), 0.25, "it is 0.250"),
        (TokenAnswer(position=2, token="door", by="rank"), 1234.0, "it is 1,234"),
        (TokenAnswer(position=2, token="door"), 0.5, "it is 0.500"),
        (TokenState(position=2, by="turn"), 0.125, "by 0.125"),
    ],
    ids=str,
)
def test_an_outcome_that_has_been_named(outcome, after, words):
    assert becomes(outcome, after) == words


CELLS = "A cell is masked in this head alone, so that the rest of its row is renormalised to 1; a query with a single key then reads nothing."


def of_cells(weights, norms, outcomes, n_cell) -> CellEffects:
    return CellEffects(
        query_tokens=tokens(["a"]),
        key_tokens=tokens(["a"]),
        layer=0,
        head=0,
        kind="encoder",
        base=0.0,
        queries=np.zeros(len(weights), dtype=int),
        keys=np.arange(len(weights)),
        weights=np.array(weights, dtype=np.float32),
        norms=None if norms is None else np.array(norms, dtype=np.float32),
        outcomes=np.array(outcomes, dtype=np.float32),
        n_cell=n_cell,
    )


def test_each_correlation_is_of_the_measure_that_it_is_named_for():
    """Weights in the order of the effects, norm-based weights in the reverse."""
    assert cells_note(of_cells([0.1, 0.2, 0.7], [3.0, 2.0, 1.0], [0.1, -0.2, 0.3], 3)) == (
        "Rank correlation with the size of the effect: weight +1.00, norm-based weight −1.00. 1 would mean that weights and "
        f"effects have the same order; it says nothing about why. {CELLS}"
    )


def test_cells_without_an_order_that_are_drawn_at_random():
    assert cells_note(of_cells([0.5, 0.5], None, [0.0, 0.0], 1024)) == (
        f"Of 1,024 cells, 2 are drawn at random. {CELLS}"
    )


def test_the_note_of_both_ways():
    means = "its mean output at the same position of 4 own sentences"
    assert ablations_note(0.125, means).startswith("Rank correlation of the sizes: +0.12. Zeros take away")
    assert ablations_note(None, means).startswith("Zeros take away")
    assert f"in every sentence; {means} keeps that part" in ablations_note(None, means)


@pytest.mark.parametrize(
    ("n_text", "n_apart", "own", "words"),
    [
        (
            206,
            13,
            False,
            "its mean output at the same position of 206 bundled sentences (positions from 13 on share one mean, each special token has "
            "its own)",
        ),
        (1, 0, True, "its mean output over all positions of 1 own sentence"),
    ],
)
def test_which_means_these_are(n_text, n_apart, own, words):
    assert mean_words(n_text, n_apart, own=own) == words


@pytest.mark.parametrize(
    ("beside", "heads", "name"),
    [
        ((), [Head(1, head) for head in range(24)], "the first 24 heads of layer 1"),
        ((Head(0, 2), Head(1, 0), AllHeads(1), Head(0, 9)), [Head(1, 0), Head(0, 2)], "the picked heads"),
    ],
)
def test_the_heads_that_are_removed_together(beside, heads, name):
    """Those that are selected and there, each once; of the selected one alone the heads of its layer."""
    selection: Any = SimpleNamespace(
        place=Head(1, 0), layer=1, of=lambda record: SimpleNamespace(heads=beside)
    )
    there = tuple(Head(layer, head) for layer, n in ((0, 3), (1, 30)) for head in range(n))
    screen: Any = SimpleNamespace(view=SimpleNamespace(selection=selection), heads=there)
    assert group(screen) == (heads, name)
