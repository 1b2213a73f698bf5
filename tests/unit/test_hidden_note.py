"""What is said of rows and columns that are left out or joined."""

from types import SimpleNamespace
from typing import Any

import pytest

from ui.shell.view import FIRST_HIDDEN, PIECES_MERGED, SPECIAL_HIDDEN, hidden_note


def view(
    *,
    unit="tokens",
    special="shown",
    without_first=False,
    sentences="all",
    hides_special=False,
    hides_first=False,
) -> Any:
    selection = SimpleNamespace(unit=unit, special=special, without_first=without_first, sentences=sentences)
    return SimpleNamespace(selection=selection, hides_special=hides_special, hides_first=hides_first)


@pytest.mark.parametrize(
    ("chosen", "note"),
    [
        ({}, ""),
        (
            {"unit": "words", "special": "hidden", "hides_special": True},
            f"{PIECES_MERGED} {SPECIAL_HIDDEN}",
        ),
        ({"special": "hidden"}, "Special tokens are shown: without them nothing would be left."),
        ({"without_first": True, "hides_first": True}, FIRST_HIDDEN),
        ({"without_first": True}, "The first token is shown: without it nothing would be left."),
        ({"sentences": "A → B"}, "Only queries of the first sentence and keys of the second are shown."),
        ({"sentences": "B → A"}, "Only queries of the second sentence and keys of the first are shown."),
    ],
    ids=str,
)
def test_the_note(chosen, note):
    assert hidden_note(view(**chosen)) == note
