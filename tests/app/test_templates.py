"""What is put around a text is chosen beside it, is in the link, and its tokens are on screen."""

import numpy as np
import pytest

import attnviz
from tests.app.screen import (
    assert_no_exception,
    assert_nothing_drawn,
    chips,
    component,
    document,
    errors,
    notices,
    open_page,
    shown,
)
from tests.chatting import SPECIAL, chat_tokenizer, model_with

TEXT = "the cat"


@pytest.fixture
def chat(tmp_path, monkeypatch) -> attnviz.Model:
    """A tiny decoder with a begin-of-text token and a chat template, which the operator offers."""
    model = model_with(chat_tokenizer(bos_token=SPECIAL[1]), tmp_path / "chatting")
    monkeypatch.setenv("ATTNVIZ_MODELS", str(tmp_path / "chatting"))
    return model


def test_a_template_is_chosen_shown_and_linked(chat):
    at = open_page(model="chatting", text=TEXT)
    assert chips(at) == list(chat.tokenize(TEXT).labels)
    assert "template" not in shown(at)
    for template in ("begin", "chat", "plain"):
        at.selectbox(key="field_template").set_value(template).run()
        assert_no_exception(at)
        assert shown(at).get("template", "plain") == template
        tokens = chat.tokenize(TEXT, template=template)
        assert chips(at) == list(tokens.labels)
        assert document(at)["queries"]["special"] == np.flatnonzero(tokens.is_special).tolist()
    at = open_page(model="chatting", text=TEXT, template="chat")
    assert at.selectbox(key="field_template").value == "chat"
    assert chips(at) == list(chat.tokenize(TEXT, template="chat").labels)


def test_a_message_of_two_texts_is_refused_and_can_be_mended(chat):
    at = open_page(model="chatting", text=TEXT, second="a door", template="chat")
    [error] = errors(at)
    assert "a message is one text" in error
    assert_nothing_drawn(at)
    at.text_area(key="field_second").set_value("").run()
    assert errors(at) == []


def test_a_tokenizer_without_templates_says_so(chat):
    at = open_page(template="chat", text=TEXT)
    [notice] = notices(at)
    assert "chat template" in notice
    assert "template" not in shown(at)
    assert not [element for element in at.selectbox if element.key == "field_template"]
    at = open_page(model="chatting", text=TEXT, template="chat")
    at.selectbox(key="field_model").set_value("all-MiniLM-L6-v2").run()
    assert notices(at) == []
    assert "template" not in shown(at)


@pytest.mark.parametrize("template", ["begin", "chat"])
def test_the_python_of_the_page_puts_the_same_around_the_text(template, chat):
    at = open_page(model="chatting", text=TEXT, template=template)
    lines = component(at, "save_picture")["python"].splitlines()
    [line] = [line for line in lines if line.startswith("trace = ")]
    trace = eval(line.partition(" = ")[2], {"model": chat})
    assert trace.tokens.equal(chat.tokenize(TEXT, template=template))


def test_another_model_without_the_selected_token_begins_anew(chat):
    """Neither a letter nor a token of the template is one of the other model's tokens; tests/app/test_kept_tokens.py has those that are."""
    head = {name: shown(open_page(model="chatting", text=TEXT))[name] for name in ("layer", "head")}
    usual = shown(open_page(model="all-MiniLM-L6-v2", text=TEXT, **head))["query"]
    for template in ("plain", "chat"):
        at = open_page(model="chatting", text=TEXT, template=template, query=0)
        assert shown(at)["query"] == "0"
        at.selectbox(key="field_model").set_value("all-MiniLM-L6-v2").run()
        assert_no_exception(at)
        assert shown(at)["query"] == usual
