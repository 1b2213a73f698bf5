"""Texts that cannot be shown, or only just: one sentence each, and nothing that was on screen is lost."""

import pytest

from attnviz.errors import ModelNotAvailableError
from tests.app.screen import (
    DOOR,
    assert_no_exception,
    charts,
    chips,
    component,
    errors,
    figure,
    finding,
    matrix,
    notices,
    open_page,
    shown,
    type_text,
    until_drawn,
)
from tests.tiers import first_gates
from ui.page.navigation import PAGES
from ui.work import cache
from ui.work.remembered import Store

MEGABYTE = "door " * 200_000

REFUSED = {
    "empty": ("", "The text is empty. Type a sentence."),
    "blank": (" \n\t ", "The text is empty. Type a sentence."),
    "control characters": (
        "\x00\x07",
        "The text holds no token, only control characters (U+0000, U+0007). Type a sentence.",
    ),
    "too long": (
        "door " * 600,
        "This text is 602 tokens long; at most 512 can be read. Shorten it, or cut it there.",
    ),
    "a megabyte": (
        MEGABYTE,
        "The text is 1,000,000 characters long; attnviz takes at most 100,000. Paste a shorter passage.",
    ),
}

READ = {
    "right to left": ("הדלת נפתחה", "Right-to-left text is shown token by token"),
    "emoji": ("👋🏽 👨‍👩‍👧 🚪", "Every token of this text is [UNK]"),
    "Chinese": ("中国", ""),
    "Chinese that the vocabulary lacks": ("门开了", "Every token of this text is [UNK]"),
    "only unknown tokens": ("🚪🚪🚪", "Every token of this text is [UNK]"),
    "control characters among others": ("the\x07 door", "Control characters (U+0007) are in the text"),
}


def assert_refused(at, text, message):
    """One sentence, the text still in its field, and everything that was on screen still there."""
    before = charts(at)
    words = [one.value for one in at.markdown]

    type_text(at, text)

    assert_no_exception(at)
    assert errors(at) == [message]
    assert at.text_area(key="field_text").value == text  # which need not be typed again
    assert charts(at) == before
    assert [one.value for one in at.markdown] == words
    assert shown(at)["text"] == "The old door creaked."
    assert [one.key for one in at.button if one.key == "cut"] == ["cut"] * (text == "door " * 600)


@pytest.mark.parametrize("page", first_gates(*(page.file for page in PAGES)))
def test_a_refused_text_gets_one_sentence_and_the_picture_stays(page):
    at = until_drawn(type_text(open_page(page), "The old door creaked."))
    assert_refused(at, *REFUSED["blank"])


def test_every_reason_to_refuse_a_text_has_its_sentence():
    at = type_text(open_page(), "The old door creaked.")
    for text, message in REFUSED.values():
        assert_refused(at, text, message)


@pytest.mark.parametrize("page", first_gates(*(page.file for page in PAGES)))
def test_an_unusual_text_is_shown_with_what_there_is_to_know(page):
    at = type_text(open_page(page), " ".join(text for text, _ in READ.values()))

    assert_no_exception(at)
    assert errors(at) == []
    for remark in ("Right-to-left text is shown token by token", "Control characters (U+0007)"):
        assert any(remark in one for one in notices(at))


@pytest.mark.parametrize(("text", "remark"), READ.values(), ids=list(READ))
def test_an_unusual_text_is_remarked_on(text, remark):
    at = type_text(open_page(), text)

    assert_no_exception(at)
    assert errors(at) == []
    assert shown(at)["text"] == text
    assert any(remark in one for one in notices(at)) if remark else notices(at) == []


def test_a_good_text_takes_the_message_away():
    at = type_text(open_page(), "")
    type_text(at, "The door is open.")

    assert errors(at) == []
    assert chips(at)[1:-1] == ["the", "door", "is", "open", "."]


def test_the_message_stays_while_other_things_change():
    at = type_text(open_page(), " ")
    at.button(key="head_next").click().run()

    assert len(errors(at)) == 1
    assert finding(at).startswith("Layer 3, head 2: “it”")
    assert shown(at)["text"] == DOOR
    assert_no_exception(at)


def test_a_long_text_is_cut_when_asked_and_marked_where():
    at = type_text(open_page(iterations=250), "door " * 600)
    at.button(key="cut").click().run()

    assert errors(at) == []
    assert shown(at)["cut"] == "1"
    assert matrix(at).shape == (512, 512)
    marks = [one["cut"] for one in component(at, "token_strip")["tokens"]]
    assert marks[510] == "cut here: 90 more tokens not read"
    assert not any(marks[:510]) and not marks[511]
    assert any("90 tokens at its end are not read" in one for one in notices(at))


def test_the_next_text_is_not_cut_unasked():
    at = type_text(open_page(iterations=250), "door " * 600)
    at.button(key="cut").click().run()
    type_text(at, "the " * 700)

    assert len(errors(at)) == 1
    assert "702 tokens" in errors(at)[0]
    assert shown(at)["text"].startswith("door")


def test_a_preset_after_a_cut_text_is_not_marked_as_cut():
    at = open_page(text="door " * 600, cut=1, iterations=250)
    at.selectbox(key="preset_choice").select_index(0).run()

    assert "cut" not in shown(at)
    assert chips(at)[1:4] == ["i", "was", "watching"]


def test_a_bad_second_sentence_is_named():
    at = type_text(open_page(), "The door opened.", "\x00")

    assert errors(at) == [
        "The second text holds no token, only control characters (U+0000). Type a sentence."
    ]
    assert at.text_area(key="field_second").value == "\x00"
    assert finding(at).startswith("Layer 3, head 1: “it”")


def test_a_refused_first_visit_shows_the_first_screen_below_the_message():
    at = open_page(text="   ", layer=99)

    assert errors(at) == ["The text is empty. Type a sentence."]
    assert "“it”" in finding(at)
    assert finding(at).startswith("Layer 5, head 1")
    assert at.number_input(key="field_layer").value == 5  # what the picture shows, not what was asked
    assert_no_exception(at)


def test_a_text_that_is_refused_is_not_the_picture_s():
    at = type_text(open_page(), "\x00\x07")
    assert "\x00" not in str(figure(at, "matrix"))
    assert finding(at).startswith("Layer 3, head 1: “it”")


def test_the_operator_may_allow_fewer_characters(monkeypatch):
    monkeypatch.setattr(cache, "CHARACTERS", 20)
    at = type_text(open_page(), "The door opened when nobody was there.")
    assert errors(at) == [
        "The text is 38 characters long; attnviz takes at most 20. Paste a shorter passage."
    ]


def test_a_model_that_takes_more_memory_than_the_operator_allows_is_refused(monkeypatch):
    monkeypatch.setattr(cache, "MODELS", Store(1))
    monkeypatch.setattr(cache, "MODELS_MB", 1)
    with pytest.raises(
        ModelNotAvailableError, match=r"takes \d+ MB of memory; this server allows 1 \(ATTNVIZ_MODELS_MB\)"
    ):
        cache.model.__wrapped__("all-MiniLM-L6-v2")
