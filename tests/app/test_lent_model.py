"""Rooms about predictions begin with the bundled language model where the visitor's own model makes none; elsewhere it stays."""

import pytest

from attnviz.model.catalogue import EMBEDDED, SMOLLM2
from tests.app.screen import (
    DOOR,
    assert_no_exception,
    captions,
    errors,
    open_page,
    shown,
    type_text,
    until_drawn,
)

LENS, GENERATE, EXPLORE = "pages/lens.py", "pages/generation.py", "attention.py"
HERE = {"text": DOOR, "layer": 3, "head": 1, "query": 7, "key": 5}


def opened_then(page, **asked):
    """The first screen with the visitor's model, then another page of the menu."""
    at = open_page(EXPLORE, **(HERE | asked))
    return go_to(at, page)


def go_to(at, page):
    at.switch_page(page).run()
    assert_no_exception(at)
    return at


@pytest.mark.parametrize("page", [LENS, GENERATE])
def test_is_shown_there_and_said(page):
    at = until_drawn(opened_then(page, write_tokens=2))
    assert errors(at) == []
    assert shown(at)["model"] == SMOLLM2 and at.selectbox(key="field_model").value == SMOLLM2
    assert f"so this page shows {SMOLLM2}. The other rooms keep {EMBEDDED}." in captions(at)
    assert int(shown(at)["query"]) == 6  # "it", one token earlier without [CLS]


@pytest.mark.parametrize("page", [LENS, GENERATE])
def test_the_visitor_s_model_head_and_pair_are_there_again_elsewhere(page):
    at = go_to(opened_then(page, write_tokens=2), EXPLORE)
    assert {name: shown(at)[name] for name in ("model", "text", "layer", "head", "query", "key")} == {
        "model": EMBEDDED,
        **{name: str(value) for name, value in HERE.items()},
    }
    assert "The other rooms keep" not in captions(at)


def test_from_one_such_room_to_the_other_it_is_lent_again():
    at = go_to(opened_then(LENS, write_tokens=2), GENERATE)
    assert shown(at)["model"] == SMOLLM2
    assert shown(go_to(at, EXPLORE))["model"] == EMBEDDED


def test_a_sentence_typed_there_is_kept_and_its_query_chosen_anew():
    at = opened_then(LENS)
    type_text(at, "The cat slept because it was tired.")
    at = go_to(at, EXPLORE)
    assert shown(at)["model"] == EMBEDDED and shown(at)["text"] == "The cat slept because it was tired."
    assert (shown(at)["layer"], shown(at)["head"]) == ("3", "1")


def test_a_model_chosen_there_stays():
    at = opened_then(LENS)
    at.selectbox(key="field_model").set_value(EMBEDDED).run()
    assert shown(at)["model"] == EMBEDDED and "The other rooms keep" not in captions(at)
    at.selectbox(key="field_model").set_value(SMOLLM2).run()
    assert shown(go_to(at, EXPLORE))["model"] == SMOLLM2


def test_a_link_that_names_a_model_opens_it():
    at = until_drawn(open_page(LENS, model=EMBEDDED, **HERE))
    assert_no_exception(at)
    assert shown(at)["model"] == EMBEDDED


def test_a_model_that_predicts_is_not_replaced():
    assert "The other rooms keep" not in captions(
        until_drawn(open_page(LENS, model=SMOLLM2, text=DOOR, layer=3, head=1))
    )
