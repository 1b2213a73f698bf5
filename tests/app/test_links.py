"""Links: everything that is chosen, and what happens to values that do not exist."""

import pytest

from attnviz.model import loading
from attnviz.model.catalogue import SMOLLM2
from tests.app.screen import (
    DOOR,
    Facts,
    assert_no_exception,
    assert_nothing_drawn,
    chips,
    component,
    errors,
    facts,
    finding,
    notices,
    open_page,
    picked,
    settle,
    shown,
    step_head,
    type_text,
)
from tests.tiers import first_gates
from ui.choice import state
from ui.rooms import PAGES

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

# wrong value -> (what is shown instead, None for the default; what the notice names)
WRONG: dict[tuple[str, str], tuple[str | None, Facts]] = {
    ("layer", "6"): ("5", Facts(numbers=("6", "0", "5", "5"))),  # asked for, first, last, shown
    ("layer", "-1"): ("0", Facts(numbers=("-1", "0"))),
    ("layer", "two"): ("3", Facts(("two",))),
    ("layer", "1.5"): ("3", Facts(("1.5",))),
    ("layer", "nan"): ("3", Facts(("nan",))),
    ("layer", ""): ("3", Facts(("",))),
    ("head", "12"): ("11", Facts(numbers=("12", "3", "0", "11", "11"))),  # the layer, whose heads they are
    ("head", "9" * 30): (
        "11",
        Facts(numbers=("1000000000000", "3", "0", "11", "11")),
    ),  # the most that is read
    ("query", "11"): ("10", Facts(numbers=("11", "0", "10", "10"))),
    ("query", "-3"): ("0", Facts(numbers=("-3", "0"))),
    ("key", "99"): ("10", Facts(numbers=("99", "0", "10", "10"))),
    ("perplexity", "0.2"): ("1", Facts(numbers=("0.2", "1.0"))),
    ("perplexity", "1e9"): ("100", Facts(numbers=("1000000000.0", "100.0"))),
    ("perplexity", "inf"): (None, Facts(("inf",))),
    ("metric", "manhattan"): (None, Facts(("manhattan",))),
    ("iterations", "1"): ("250", Facts(numbers=("1", "250"))),
    ("iterations", "1000000"): ("5000", Facts(numbers=("1000000", "5000"))),
    ("seed", "-1"): (None, Facts(numbers=("-1", "0"))),
    ("seed", str(2**32)): (str(2**32 - 1), Facts(numbers=("4294967296", "4294967295"))),
    ("kind", "sideways"): (None, Facts(("sideways",))),
    ("kind", "cross"): (None, Facts()),
    ("show", "<b>"): (None, Facts(("<b>",))),
    ("colour", "pink"): (None, Facts(("pink",))),
    ("special", "1"): (None, Facts(("1",))),
    ("cut", "yes"): (None, Facts(("yes",), numbers=("0", "1", "0"))),
}


def test_a_link_with_everything_shows_just_that():
    at = open_page(**EVERYTHING)

    assert_no_exception(at)
    assert errors(at) == notices(at) == []
    assert shown(at) == EVERYTHING
    in_finding = facts(finding(at))
    assert (in_finding.heads, in_finding.quoted[:2]) == (((2, 5),), ("opened", "door"))
    assert in_finding.numbers[0] == "8"  # shown keys
    assert picked(at) == [3]
    for name in ("perplexity", "iterations", "seed"):
        assert at.number_input(key=f"field_{name}").value == float(EVERYTHING[name])
    assert at.button_group(key="field_metric").value == EVERYTHING["metric"]
    told = component(at, "viewer")["selection"]
    for name in ("layer", "head"):
        assert told[name] == int(EVERYTHING[name])
    for name in ("show", "colour", "special"):
        assert told[name] == EVERYTHING[name]


@pytest.mark.parametrize("page", first_gates(*(page.file for page in PAGES)))
def test_every_page_takes_links(page):
    [part] = [entry for entry in PAGES if entry.file == page]
    asked = EVERYTHING | ({"model": SMOLLM2} if part.predicts == "writes" else {})  # others are lent that one
    at = open_page(page, **asked)
    assert_no_exception(at)
    assert shown(at) == asked


def test_what_is_at_its_default_is_not_in_the_link():
    assert shown(open_page()) == {
        "model": "all-MiniLM-L6-v2",
        "text": DOOR,
        "layer": "3",
        "head": "1",
        "query": "7",
        "key": "5",
    }


@pytest.mark.parametrize(("wrong", "expected"), WRONG.items(), ids=lambda case: "=".join(map(str, case))[:30])
def test_a_wrong_value_falls_back_and_it_is_said(wrong, expected):
    name, value = wrong
    instead, named = expected
    at = open_page(**{name: value})

    assert_no_exception(at)
    assert errors(at) == []
    assert shown(at).get(name) == instead
    [notice] = notices(at)
    assert facts(notice) == named
    assert name in notice or value in notice
    assert len(chips(at)) == 11


def test_each_wrong_value_is_said_once_however_often_the_page_runs():
    at = open_page(layer=99, head=99)
    for _ in range(3):
        at.run()
    assert len(notices(at)) == 2
    step_head(at)
    assert notices(at) == []


def test_a_layer_or_head_that_a_link_does_not_name_is_one_that_is_there(checkpoint, monkeypatch):
    """A tiny BERT has 3 layers and 2 heads; the examples show layer 3, head 1, and no notice speaks of it."""
    folder = checkpoint("bert")
    monkeypatch.setenv("ATTNVIZ_MODELS", str(folder))
    at = open_page(model=folder.name, text="the door opened")
    assert_no_exception(at)
    assert (shown(at)["layer"], notices(at)) == ("2", [])
    [notice] = notices(open_page(model=folder.name, text="the door opened", layer=3))
    assert facts(notice).numbers == ("3", "0", "2", "2")


def test_a_notice_goes_with_the_next_choice():
    at = open_page(layer=99)
    assert shown(at)["layer"] == "5"
    settle(at, head=2)
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

    assert_nothing_drawn(at)
    assert len(errors(at)) == 1
    assert opened == set()


def test_a_folder_of_the_operator_is_offered_by_name_only(checkpoint, monkeypatch):
    folder = checkpoint("bert")
    monkeypatch.setenv("ATTNVIZ_MODELS", str(folder))

    for written in (folder.name, str(folder), f"{folder}/", "/another/place/bert"):
        at = open_page(model=written)
        assert shown(at)["model"] == folder.name
        assert str(folder.parent) not in str(at.selectbox(key="field_model").proto)
        assert notices(at) == []  # nor of a layer, which the link does not name


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
    raw = [element.value for element in (*at.markdown, *at.caption)]
    assert not any("<script" in line or "**b**" in line for line in raw)


def test_going_back_to_an_earlier_link_shows_its_screen():
    at = open_page()
    step_head(at)
    at.query_params.update({"text": "the door", "layer": "1", "head": "2"})  # as the browser's Back does
    at.run()

    assert facts(finding(at)).heads == ((1, 2),)
    assert chips(at) == ["[CLS]", "the", "door", "[SEP]"]


def test_a_click_wins_over_a_link_that_the_browser_has_not_yet_updated():
    at = open_page()
    before = shown(at)
    step_head(at)
    at.query_params.update(before)  # what a browser sends after a second click in quick succession
    step_head(at)

    assert facts(finding(at)).heads == ((3, 3),)


def test_a_text_that_is_too_long_for_a_link_is_shown_and_said_to_be(monkeypatch):
    monkeypatch.setattr(state, "LONGEST_LINK", 60)  # bytes
    at = open_page(text="A door of oak that nobody had opened.")
    [said] = [notice for notice in notices(at) if "too long for a link" in notice]
    assert "does not lead back" in said
    assert shown(at) == {}
    assert "oak" in chips(at)
    assert not any("too long" in notice for notice in notices(type_text(at, "A door.")))
