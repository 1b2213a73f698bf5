"""An example's outcome goes with its text: another text has one of its own, and a link or a text never one that it cannot have."""

import pytest

from tests.app.screen import assert_no_exception, errors, notices, open_page, type_text
from ui.choice.presets import first_preset, offered_presets
from ui.choice.selection import first_selection, from_params

MODEL = "SmolLM2-135M-Instruct"
OWN = first_preset(MODEL)
CAPITAL = "The capital of France is"


def test_another_text_drops_it():
    selection = first_selection(MODEL)
    assert selection.outcome == OWN.outcome != ""
    assert selection.but(text=CAPITAL).outcome == ""
    assert selection.but(second="Another.").outcome == ""
    assert selection.but(model="all-MiniLM-L6-v2").outcome == ""
    assert selection.alone(CAPITAL).outcome == ""
    assert selection.but(layer=2, text=OWN.text).outcome == OWN.outcome


def test_the_readers_own_stays():
    own = first_selection(MODEL).but(outcome="answer:last:␣Paris")
    assert own.but(text=CAPITAL).outcome == "answer:last:␣Paris"


def test_a_link_with_another_text_has_none():
    assert from_params({"model": MODEL, "text": CAPITAL})[0].outcome == ""
    assert from_params({"model": MODEL})[0].outcome == OWN.outcome
    assert (
        from_params({"model": MODEL, "text": CAPITAL, "outcome": "answer:4:␣Paris"})[0].outcome
        == "answer:4:␣Paris"
    )


def test_an_example_without_one_after_an_example_with_one():
    fact, induction = (
        next(preset for preset in offered_presets(MODEL, fills_blanks=False) if preset.called == name)
        for name in ("A fact", "Induction")
    )
    assert fact.outcome and not induction.outcome
    selection = first_selection(MODEL).but(text=fact.text, outcome=fact.outcome)
    assert selection.but(text=induction.text).outcome == ""


@pytest.mark.parametrize(
    "page",
    ["pages/lens.py", pytest.param("pages/effects.py", marks=pytest.mark.nightly)],  # all heads, for a minute
)
@pytest.mark.parametrize("asked", [OWN.outcome, "answer:13:␣Mary"], ids=["the example's", "the reader's"])
def test_a_shorter_text_measures_its_own(page, asked):
    at = open_page(page, model=MODEL, outcome=asked, text=OWN.text)
    type_text(at, CAPITAL)
    assert_no_exception(at)
    assert not errors(at)
    assert any("tokens 0 to 4" in notice for notice in notices(at)) == (asked != OWN.outcome)
    assert not any("Mary" in element.value for element in at.markdown)
