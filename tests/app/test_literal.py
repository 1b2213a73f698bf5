"""Tokens that look like markup are shown as they are, in words, tables and figures."""

import json
import re

import pytest

from tests.app.hostile import ALL_IN_ONE, LABELS, TEXT, TOKENS, save_hostile_bert
from tests.app.screen import (
    assert_no_exception,
    chips,
    component,
    document,
    errors,
    figure,
    finding,
    is_stage,
    open_page,
    unescaped,
    until_drawn,
)
from tests.tiers import first_gates
from ui.rooms import PAGES
from ui.words.literal import literal

# How each token would read if it were taken for markup and not for text.
MARKUP = re.compile(
    r"<\w|&lt;|\$x|\*\*bold|\]\(|`code|:smile:|:red\[|:material/home|~~gone|(?<![\\\w])_\w+_(?!\w)"
)


# Pages whose words are about heads, positions or other sentences.
WITHOUT_TOKENS = (
    "pages/all_heads.py",
    "pages/positions.py",
    "pages/claims.py",
    "pages/cost.py",
    "pages/glossary.py",
    "pages/many_sentences.py",
    "pages/long_text.py",
    # These run the model in a process of its own: see below.
    "pages/effects.py",
    "pages/patching.py",
    "pages/lens.py",
    "pages/inputs.py",
    "pages/generation.py",
    "pages/profiles.py",
    "pages/find_tokens.py",
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return save_hostile_bert(tmp_path_factory.mktemp("hostile") / "hostile")


@pytest.fixture
def offered(folder, monkeypatch):
    monkeypatch.setenv("ATTNVIZ_MODELS", str(folder))


def markdown(at):
    """Everything on the page that Streamlit reads as Markdown, without what is escaped in it."""
    kinds = ("markdown", "caption", "error", "button", "page_link", "table", "progress")
    texts = [text for kind in kinds for element in at.get(kind) for text in _texts(element)]
    own = [re.sub(r"\[([^\]]*)\]\((?:glossary|#)[^)]*\)", r"\1", text) for text in texts]  # to terms
    return [re.sub(r"\\([^\w\s]|_)", "", text) for text in own]


def _texts(element):
    if element.type == "table":
        return [str(value) for value in element.value.to_numpy().ravel()]
    proto = element.proto
    return [getattr(proto, name) for name in ("body", "label", "help", "text") if hasattr(proto, name)]


def test_a_line_break_is_a_space_and_a_space_that_holds_a_line_together_stays():
    assert literal(" 47.5\u00a0%\n of\tit\u00a0") == "47\\.5\u00a0\\% of it"


def test_the_tokens_are_whole(offered):
    at = open_page(model="hostile", layer=2, text=TEXT)
    assert chips(at) == ["[CLS]", "the", *LABELS, "door", "[SEP]"]
    assert errors(at) == []


def assert_words_are_literal(at, token=None):
    assert_no_exception(at)
    read = [unescaped(text.value) for text in (*at.markdown, *at.caption)]
    if is_stage(at):
        read += component(at, "viewer")["said"].values()  # texts, never markup
    if token is not None:
        assert any(f"“{token}”" in text for text in read)
    assert [text for text in markdown(at) if MARKUP.search(text.replace("$d_k$", ""))] == []


@pytest.mark.parametrize("page", first_gates(*(page.file for page in PAGES)))
def test_words_do_not_take_a_token_for_markup(offered, page):
    at = open_page(page, model="hostile", layer=2, text=f"the {ALL_IN_ONE} door", query=2, key=2)
    assert_words_are_literal(at, None if page in WITHOUT_TOKENS else ALL_IN_ONE.replace(" ", "␣"))


@pytest.mark.nightly
@pytest.mark.parametrize("page", ["pages/effects.py", "pages/lens.py"])
def test_words_of_experiments_do_not_take_a_token_for_markup(folder, offer_to_workers, page):
    offer_to_workers(folder)
    asked = {"text": TEXT, "query": 3, "outcome": "state:3"}
    assert_words_are_literal(until_drawn(open_page(page, model="hostile", layer=2, **asked)), TOKENS[1])


@pytest.mark.parametrize("position", range(len(TOKENS)), ids=TOKENS)
def test_no_token_alone_is_taken_for_markup(offered, position):
    at = open_page(model="hostile", layer=2, text=TEXT, query=2 + position, key=2 + position)
    assert_words_are_literal(at, LABELS[position])


def test_the_presets_table_is_literal(offered):
    at = open_page("pages/verification.py", model="hostile")
    at.button(key="verify_presets").click().run()
    assert_no_exception(at)
    assert "\\[MASK\\]" in str(at.table[1].value["sentence"][1])


def test_plotly_is_given_no_markup(offered):
    at = open_page(model="hostile", layer=2, text=TEXT, query=2, key=3)
    for name in ("map",):
        drawn = figure(at, name)
        for trace in drawn["data"]:
            trace.pop("hovertemplate", None)  # our own; tokens come in through %{y}, checked in a browser
        text = json.dumps(drawn, ensure_ascii=False)
        assert "the·1" in text
        assert not re.search(r"<\w", text), name
        assert "$" not in text, name


def test_components_are_given_the_tokens_as_they_are(offered):
    at = open_page(model="hostile", layer=2, text=TEXT, query=3, key=3)
    assert document(at)["queries"]["labels"][2:-2] == list(LABELS)
    assert "“<b>”" in finding(at)


def test_a_token_from_right_to_left_does_not_reorder_what_stands_beside_it():
    at = open_page(text="דלת", special="hidden", query=1, key=1)
    token = f"\N{FIRST STRONG ISOLATE}{chips(at)[1]}\N{POP DIRECTIONAL ISOLATE}"
    assert f"“{token}”" in finding(at)
    assert "\N{FIRST STRONG ISOLATE}" not in finding(open_page())  # where nothing needs it
