"""What a choice takes with it: what belongs to a text, a model or a phrase does not stay with another."""

import pytest

import ui.rooms  # noqa: F401  (which registers the choices)
from ui.choice import state
from ui.choice.presets import MEASURED
from ui.choice.selection import Selection, usual

BEFORE = Selection(model="all-MiniLM-L6-v2", text="The door opened.", second="Who opened it?").but(
    masked=(2,),
    other_masked=(1,),
    source_language="fr_XX",
    query=3,
    query_to=4,
    key=5,
    key_to=6,
    write_branch=1,
)
OF_THE_TEXT = {"masked", "other_masked", "write_branch"}
FORGOTTEN = {
    # `fit` selects query and key again where the other model has their tokens; tests/app/test_kept_tokens.py sees that.
    "model": (
        "SmolLM2-135M-Instruct",
        OF_THE_TEXT | {"source_language", "query", "query_to", "key", "key_to"},
    ),
    "text": ("A cat.", OF_THE_TEXT),
    "second": ("It sat.", OF_THE_TEXT),
    "template": ("chat", OF_THE_TEXT | {"query", "query_to", "key", "key_to"}),
    "other_model": ("SmolLM2-135M-Instruct", {"other_masked"}),
    "other_text": ("A cat.", {"other_masked"}),
    "other_second": ("It sat.", {"other_masked"}),
    "query": (1, {"query_to"}),
    "key": (1, {"key_to"}),
    "layer": (1, set()),
    "head": (1, set()),
    "masked": ((1,), set()),
}
"""By what is changed, to what, and the choices that go back to their usual values then."""


@pytest.mark.parametrize("name", FORGOTTEN)
def test_nothing_of_before_stays_where_it_does_not_belong(name, monkeypatch):
    here = state.Chosen(selection=BEFORE)
    monkeypatch.setattr(state, "of_session", lambda kind: here)
    value, forgotten = FORGOTTEN[name]
    state.change(**{name: value})
    expected = BEFORE.but(**{name: usual(name) for name in forgotten}, **{name: value})
    assert here.selection == expected
    assert forgotten == {field for field in forgotten if BEFORE.value(field) != usual(field)}, (
        "each was there before"
    )


def test_an_example_with_its_head_is_read_as_it_was_measured(monkeypatch):
    preset = MEASURED[0]
    here = state.Chosen(selection=Selection(model=preset.model, text="A cat.", template="chat"))
    monkeypatch.setattr(state, "of_session", lambda kind: here)
    state.choose_preset(preset)
    assert here.selection.template == "plain"
    assert (here.selection.query, here.selection.key) == preset.at
