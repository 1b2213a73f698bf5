"""Links: everything that is chosen, and what happens to values that do not exist."""

import pytest

from attnviz.model import loading
from tests.app.screen import (
    DOOR,
    assert_no_exception,
    chips,
    errors,
    figure,
    finding,
    matrix,
    notices,
    open_page,
    picked,
    shown,
)
from tests.tiers import first_gates
from ui.page.navigation import PAGES

EVERYTHING = {
    "model": "all-MiniLM-L6-v2",
    "text": "The door opened.",
    "second": "Who opened it?",
    "layer": "2",
    "head": "5",
    "query": "3",
    "key": "2",
    "show": "scores",
    "colour": "logarithmic",
    "special": "hidden",
    "metric": "euclidean",
    "perplexity": "3",
    "iterations": "500",
    "seed": "9",
}

# wrong value -> (what is shown instead, None for the usual; words of the notice)
WRONG = {
    ("layer", "6"): ("5", "There is no layer 6: all-MiniLM-L6-v2 has layers 0 to 5. Layer 5 is shown."),
    ("layer", "-1"): ("0", "The link asks for layer -1; 0 is the nearest there is."),
    ("layer", "two"): ("3", "The link asks for layer “two”, which is no number; the usual one is shown."),
    ("layer", "1.5"): ("3", "The link asks for layer “1.5”, which is no number; the usual one is shown."),
    ("layer", "nan"): ("3", "The link asks for layer “nan”, which is no number; the usual one is shown."),
    ("layer", ""): ("3", "The link asks for layer “”, which is no number; the usual one is shown."),
    ("head", "12"): ("11", "There is no head 12: all-MiniLM-L6-v2 has heads 0 to 11. Head 11 is shown."),
    ("head", "9" * 30): ("11", "There is no head"),
    ("query", "11"): ("10", "There is no query 11: this text has tokens 0 to 10. Query 10 is shown."),
    ("query", "-3"): ("0", "The link asks for query -3; 0 is the nearest there is."),
    ("key", "99"): ("10", "There is no key 99: this text has tokens 0 to 10. Key 10 is shown."),
    ("perplexity", "0.2"): ("1", "The link asks for perplexity 0.2; 1.0 is the nearest there is."),
    ("perplexity", "1e9"): (
        "100",
        "The link asks for perplexity 1000000000.0; 100.0 is the nearest there is.",
    ),
    ("perplexity", "inf"): (None, "The link asks for perplexity “inf”, which is no number"),
    ("metric", "manhattan"): (None, "The link asks for metric “manhattan”; it can be cosine or euclidean."),
    ("iterations", "1"): ("250", "The link asks for iterations 1; 250 is the nearest there is."),
    ("iterations", "1000000"): (
        "5000",
        "The link asks for iterations 1000000; 5000 is the nearest there is.",
    ),
    ("seed", "-1"): (None, "The link asks for seed -1; 0 is the nearest there is."),
    ("seed", str(2**32)): (
        str(2**32 - 1),
        "The link asks for seed 4294967296; 4294967295 is the nearest there is.",
    ),
    ("model", "gpt-5"): (
        "all-MiniLM-L6-v2",
        "The link asks for the model “gpt-5”, which is not offered here; all-MiniLM-L6-v2 is shown.",
    ),
    ("kind", "sideways"): (None, "The link asks for kind “sideways”; it can be encoder, decoder or cross."),
    ("kind", "cross"): (None, "all-MiniLM-L6-v2 has no cross attention; encoder attention is shown."),
    ("show", "<b>"): (None, "The link asks for show “<b>”; it can be weights, scores, norms or rollout."),
    ("colour", "pink"): (None, "The link asks for colour “pink”; it can be linear or logarithmic."),
    ("special", "1"): (None, "The link asks for special “1”; it can be shown, hidden or renormalised."),
    ("cut", "yes"): (None, "The link asks for cut “yes”; it can be 0 or 1."),
}


def test_a_link_with_everything_shows_just_that():
    at = open_page(**EVERYTHING)

    assert_no_exception(at)
    assert errors(at) == notices(at) == []
    assert shown(at) == EVERYTHING
    assert finding(at).startswith("Layer 2, head 5: “opened” (token 3) gives")
    assert "to “door”" in finding(at)
    assert picked(at) == [3]
    assert matrix(at).shape == (8, 8)  # 3 of 11 tokens are special
    assert matrix(at).min() < 0  # scores
    for name in ("layer", "head", "perplexity", "iterations", "seed"):
        assert at.number_input(key=f"field_{name}").value == float(EVERYTHING[name])
    for name in ("show", "colour", "special", "metric"):
        assert at.button_group(key=f"field_{name}").value == EVERYTHING[name]


@pytest.mark.parametrize("page", first_gates(*(page.file for page in PAGES)))
def test_every_page_takes_links(page):
    at = open_page(page, **EVERYTHING)
    assert_no_exception(at)
    assert shown(at) == EVERYTHING


def test_what_is_at_its_default_is_not_in_the_link():
    assert shown(open_page()) == {
        "model": "all-MiniLM-L6-v2",
        "text": DOOR,
        "layer": "3",
        "head": "1",
        "query": "7",
        "key": "5",
    }


@pytest.mark.parametrize(("wrong", "expected"), WRONG.items(), ids=lambda one: "=".join(map(str, one))[:30])
def test_a_wrong_value_falls_back_and_it_is_said(wrong, expected):
    name, value = wrong
    instead, words = expected
    at = open_page(**{name: value})

    assert_no_exception(at)
    assert errors(at) == []
    assert shown(at).get(name) == instead
    assert len(notices(at)) == 1
    assert notices(at)[0].startswith(words)
    assert matrix(at).shape == (11, 11)


def test_each_wrong_value_is_said_once_however_often_the_page_runs():
    at = open_page(layer=99, head=99, text=" ")
    for _ in range(3):
        at.run()
    assert len(notices(at)) == 2
    at.button(key="head_next").click().run()
    assert notices(at) == []


def test_a_notice_goes_with_the_next_choice():
    at = open_page(layer=99)
    assert at.number_input(key="field_layer").value == 5
    at.number_input(key="field_head").set_value(2).run()
    assert notices(at) == []


@pytest.mark.parametrize(
    "path", ["/etc", "../..", ".", "~", "C:\\Windows", "file:///etc/passwd", "\x00", "org/x"]
)
def test_a_path_in_a_link_is_not_opened(path, monkeypatch):
    opened = set()
    load = loading._load

    def noting(name, *others):
        opened.add(name)
        return load(name, *others)

    monkeypatch.setattr(loading, "_load", noting)
    at = open_page(model=path)

    assert_no_exception(at)
    assert shown(at)["model"] == "all-MiniLM-L6-v2"
    assert "which is not offered here" in notices(at)[0]
    assert opened <= {"all-MiniLM-L6-v2"}  # nothing where a test before this one has had it loaded


def test_a_folder_of_the_operator_is_offered_by_name_only(checkpoint, monkeypatch):
    folder = checkpoint("bert")
    monkeypatch.setenv("ATTNVIZ_MODELS", str(folder))

    at = open_page(model=str(folder))
    assert shown(at)["model"] == "all-MiniLM-L6-v2"
    assert str(folder.parent) not in str(at.selectbox(key="field_model").proto)

    at = open_page(model=folder.name)
    assert shown(at)["model"] == folder.name
    assert notices(at) == ["There is no layer 3: bert has layers 0 to 2. Layer 2 is shown."]


def test_an_unknown_parameter_does_nothing():
    at = open_page(utm_source="mail", layer=2)
    assert_no_exception(at)
    assert notices(at) == []
    assert "utm_source" not in shown(at)
    assert shown(at)["layer"] == "2"


def test_a_link_s_text_is_shown_literally():
    text = "<script>alert(1)</script> $x^2$ **b**"
    at = open_page(text=text)
    assert_no_exception(at)
    assert at.text_area(key="field_text").value == text
    assert "script" in chips(at)
    raw = [one.value for one in (*at.markdown, *at.caption)]
    assert not any("<script" in one or "**b**" in one for one in raw)


def test_going_back_to_an_earlier_link_shows_its_screen():
    at = open_page()
    at.button(key="head_next").click().run()
    at.query_params.update({"text": "the door", "layer": "1", "head": "2"})  # as the browser's Back does
    at.run()

    assert finding(at).startswith("Layer 1, head 2:")
    assert chips(at) == ["[CLS]", "the", "door", "[SEP]"]


def test_a_click_wins_over_a_link_that_the_browser_has_not_yet_updated():
    at = open_page()
    before = shown(at)
    at.button(key="head_next").click().run()
    at.query_params.update(before)  # what a browser sends that is clicked twice in a row
    at.button(key="head_next").click().run()

    assert finding(at).startswith("Layer 3, head 3:")


def test_the_picked_cell_is_outlined():
    at = open_page(query=2, key=4)
    row, cell = figure(at, "matrix")["layout"]["shapes"]
    assert (row["y0"], row["y1"]) == (1.5, 2.5)
    assert (cell["x0"], cell["x1"], cell["y0"], cell["y1"]) == (3.5, 4.5, 1.5, 2.5)
