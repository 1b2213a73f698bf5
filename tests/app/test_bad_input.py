"""Texts that cannot be shown, or only just: one sentence each, and nothing of another text is drawn."""

import re

import numpy as np
import pytest

from attnviz.errors import ModelNotAvailableError
from attnviz.viewer.data import cut_marks
from tests.app.screen import (
    assert_no_exception,
    assert_nothing_drawn,
    chips,
    document,
    errors,
    facts,
    finding,
    matrix,
    notices,
    open_page,
    shown,
    type_text,
    until_drawn,
)
from tests.small_records import tokens
from tests.tiers import first_gates
from ui.choice.presets import PRESETS
from ui.rooms import PAGES
from ui.runtime import cache
from ui.runtime.remembered import Store

MEGABYTE = "door " * 200_000

REFUSED: dict[str, tuple[str, list[str]]] = {
    "empty": ("", []),
    "blank": (" \n\t ", []),
    "control characters": ("\x00\x07", ["U+0000", "U+0007"]),
    "too long": ("door " * 600, ["602", "512"]),
    "a megabyte": (MEGABYTE, ["1,000,000", "100,000"]),
}
"""Texts, and what their errors name: how long they are and may be, or what they hold."""

READ = {
    "right to left": ("הדלת נפתחה", "Right-to-left"),
    "emoji": ("👋🏽 👨‍👩‍👧 🚪", "[UNK]"),
    "Chinese": ("中国", ""),
    "Chinese that the vocabulary lacks": ("门开了", "[UNK]"),
    "only unknown tokens": ("🚪🚪🚪", "[UNK]"),
    "control characters among others": ("the\x07 door", "U+0007"),
}
"""Texts, and what is remarked about them."""


def assert_refused(at, text, named):
    """One sentence, the text still in its field and its link, and nothing of the text before it."""
    type_text(at, text)

    assert_nothing_drawn(at)
    [error] = errors(at)
    assert re.findall(r"U\+\d+|\d[\d,]*\d", error) == named
    assert at.text_area(key="field_text").value == text  # it need not be typed again
    assert "creaked" not in str(at.main)
    assert shown(at).get("text", "") == ("" if text == MEGABYTE else text)  # too long for a link
    assert [element.key for element in at.button if element.key == "cut"] == ["cut"] * (len(text) >= 3000)


WITH_SENTENCE = [page.file for page in PAGES if "sentence" in page.asks]


@pytest.mark.parametrize("page", first_gates(*WITH_SENTENCE))
def test_a_refused_text_gets_one_sentence_and_nothing_is_drawn(page):
    at = until_drawn(type_text(open_page(page), "The old door creaked."))
    assert_refused(at, *REFUSED["blank"])


def test_every_reason_to_refuse_a_text_has_its_sentence():
    at = type_text(open_page(), "The old door creaked.")
    for text, named in REFUSED.values():
        assert_refused(at, text, named)


@pytest.mark.parametrize("page", first_gates(*WITH_SENTENCE))
def test_an_unusual_text_is_shown_with_what_there_is_to_know(page):
    at = type_text(open_page(page), " ".join(text for text, _ in READ.values()))

    assert_no_exception(at)
    assert errors(at) == []
    for remark in ("Right-to-left", "U+0007"):
        assert any(remark in notice for notice in notices(at))


@pytest.mark.parametrize(("text", "remark"), READ.values(), ids=list(READ))
def test_an_unusual_text_is_remarked_on(text, remark):
    at = type_text(open_page(), text)

    assert_no_exception(at)
    assert errors(at) == []
    assert shown(at)["text"] == text
    assert any(remark in notice for notice in notices(at)) if remark else notices(at) == []


def test_a_good_text_takes_the_message_away():
    at = type_text(open_page(), "")
    type_text(at, "The door is open.")

    assert errors(at) == []
    assert chips(at)[1:-1] == ["the", "door", "is", "open", "."]


def test_the_message_stays_while_other_things_change():
    at = type_text(open_page(), " ")
    at.run()

    assert len(errors(at)) == 1
    assert_nothing_drawn(at)


def test_a_long_text_is_cut_when_asked_and_marked_where():
    at = type_text(open_page(iterations=250), "door " * 600)
    at.button(key="cut").click().run()

    assert errors(at) == []
    assert shown(at)["cut"] == "1"
    assert matrix(at).shape == (512, 512)
    [(position, mark)] = document(at)["queries"]["cut"].items()
    assert (position, facts(mark).numbers) == ("510", ("90",))  # tokens that are not read
    assert ("90",) in [facts(notice).numbers for notice in notices(at)]


def test_the_cut_is_marked_behind_a_special_token_that_is_typed():
    cut = tokens(5, is_special=np.array([True, False, False, True, True]), in_text=(3,), n_cut=(7,))
    assert {at: facts(mark).numbers for at, mark in cut_marks(cut).items()} == {3: ("7",)}
    pair = tokens(5, segment=np.array([0, 0, 1, 1, 1]), n_cut=(7, 8))
    assert {at: facts(mark).numbers for at, mark in cut_marks(pair).items()} == {1: ("7",), 3: ("8",)}


def test_the_next_text_is_not_cut_unasked():
    at = type_text(open_page(iterations=250), "door " * 600)
    at.button(key="cut").click().run()
    type_text(at, "the " * 700)

    assert len(errors(at)) == 1
    assert "702" in facts(errors(at)[0]).numbers
    assert_nothing_drawn(at)


def test_a_preset_after_a_cut_text_is_not_marked_as_cut():
    at = open_page(text="door " * 600, cut=1, iterations=250)
    at.button_group(key="preset_choice").set_value(PRESETS[0]).run()

    assert "cut" not in shown(at)
    assert chips(at)[1:4] == ["i", "was", "watching"]


def test_a_bad_second_sentence_is_named():
    at = type_text(open_page(), "The door opened.", "\x00")

    [error] = errors(at)
    assert "second text" in error and "U+0000" in error
    assert at.text_area(key="field_second").value == "\x00"
    assert_nothing_drawn(at)


def test_a_refused_first_visit_draws_nothing_and_goes_on_where_the_link_led():
    at = open_page(text="   ", layer=2, head=5)

    [error] = errors(at)
    assert not facts(error).numbers
    assert_nothing_drawn(at)
    type_text(at, "The door opened.")
    assert errors(at) == []
    assert facts(finding(at)).heads == ((2, 5),)


def test_an_example_takes_the_place_of_a_text_that_is_refused():
    at = type_text(open_page(), "\x00\x07")
    at.button_group(key="preset_choice").set_value(PRESETS[0]).run()
    assert errors(at) == []
    assert facts(finding(at)).quoted[0] == "it"


def test_a_token_that_cannot_be_masked_draws_nothing():
    at = open_page(masked=99, text="The old door creaked.")
    [error] = errors(at)
    assert "99" in facts(error).numbers
    assert_nothing_drawn(at)
    assert at.text_area(key="field_text").value == "The old door creaked."


@pytest.mark.parametrize(
    "page",  # first the one that looks for a model before anything is drawn
    first_gates(*sorted((page.file for page in PAGES), key=lambda file: file != "pages/generation.py")),
)
def test_nothing_of_another_text_or_model_is_drawn_for_a_model_that_is_gone(page):
    at = open_page(page, text="The old door creaked.")
    at.query_params.update({"model": "gone", "text": "The door opened."})  # as following a link does
    at.run()

    [error] = errors(at)
    assert "gone" in error and "all-MiniLM-L6-v2" in error  # which can be selected instead
    assert_nothing_drawn(at)
    assert "creaked" not in str(at.main)
    assert at.text_area(key="field_text").value == "The door opened."  # also where it is asked for only now
    assert shown(at)["model"] == "gone"
    at.selectbox(key="field_model").set_value("all-MiniLM-L6-v2").run()
    assert errors(at) == []
    assert shown(at)["text"] == "The door opened."


def test_the_operator_may_allow_fewer_characters(monkeypatch):
    monkeypatch.setattr(cache, "CHARACTERS", 20)
    at = type_text(open_page(), "The door opened when nobody was there.")
    [error] = errors(at)
    assert facts(error).numbers == ("38", "20")


def test_a_model_that_takes_more_memory_than_the_operator_allows_is_refused(monkeypatch):
    monkeypatch.setattr(cache, "MODELS", Store(1))
    monkeypatch.setattr(cache, "MODELS_MB", 1)
    with pytest.raises(ModelNotAvailableError, match=r"\d+ MB .* allows 1 \(ATTNVIZ_MODELS_MB\)"):
        cache.model.__wrapped__("all-MiniLM-L6-v2")
