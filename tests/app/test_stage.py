"""What the stage of the first screen sends to the browser, which answers the pointer from it."""

import numpy as np
import pytest
import torch
from transformers import AutoModel, AutoTokenizer

from attnviz.model.catalogue import SMOLLM2
from tests.app.screen import (
    MARK,
    assert_no_exception,
    chips,
    component,
    document,
    open_page,
    picked,
    sent_heads,
    settle,
    shown,
    step_head,
    type_text,
)
from ui.words.glossary import TERMS

DOOR = "I was watching the door when it opened."


def message(at):
    """The bytes that hold the document and the weights of all heads."""
    [element] = [element for element in at.get("bidi_component") if element.key == "stage_data"]
    return element.proto.bytes


def test_the_weights_of_all_heads_are_transformers(embedded):
    at = open_page(text=DOOR, layer=3, head=1)
    model = AutoModel.from_pretrained(embedded.folder, attn_implementation="eager")
    ids = AutoTokenizer.from_pretrained(embedded.folder)(DOOR, return_tensors="pt")
    with torch.inference_mode():
        theirs = torch.stack(model(**ids, output_attentions=True).attentions)[:, 0].numpy()
    assert document(at)["text"] == component(at, "viewer")["text"]
    np.testing.assert_allclose(np.stack(sent_heads(at)), theirs, atol=5e-5)


def test_they_are_sent_once_for_a_text():
    at = open_page(text=DOOR, layer=3, head=1)
    before = message(at)
    step_head(at)
    assert shown(at)["head"] == "2"
    assert message(at) == before
    settle(at, special="hidden", filled="matrix")
    assert message(at) == before


def test_the_film_of_the_sentence_is_one_click_away():
    """The browser adds what is selected to a link without parameters."""
    at = open_page(text=DOOR, layer=3, head=1, query=8)
    [film] = [element.proto for element in at.main.get("page_link") if element.proto.page == "step_by_step"]
    assert film.query_string == ""
    assert {name: shown(at)[name] for name in ("layer", "head", "query")} == {
        "layer": "3",
        "head": "1",
        "query": "8",
    }


def test_what_a_special_token_is_comes_from_the_glossary():
    assert document(open_page(iterations=250))["specialMeans"] == TERMS["Special token"].means


def test_of_a_text_that_is_too_long_one_head_is_sent():
    at = open_page(text="door " * 140, layer=2, head=5, iterations=250)
    assert_no_exception(at)
    assert len(chips(at)) == 142
    assert document(at)["cells"]["heads"] == [[2, 5]]
    assert sent_heads(at)[0].shape == (1, 142, 142)


def test_arcs_of_cross_attention_lead_to_the_other_text(checkpoint, monkeypatch):
    monkeypatch.setenv("ATTNVIZ_MODELS", str(checkpoint("bart")))
    at = open_page(model="bart", text="the cat sat on the mat", second="a door", kind="cross")
    assert_no_exception(at)
    drawn = document(at)
    assert drawn["keys"]["labels"][1:3] == ["the", "cat"]
    assert drawn["maskLabel"] is None
    assert sent_heads(at)[0].shape[1:] == (len(drawn["queries"]["labels"]), len(drawn["keys"]["labels"]))


@pytest.mark.parametrize(
    ("filled", "has_map"), [("all", True), ("matrix", False), ("map", True), ("token_flow", False)]
)
def test_the_map_is_laid_out_only_where_it_is_in_sight(filled, has_map):
    at = settle(open_page(text=DOOR), filled=filled)
    assert shown(at).get("filled", "all") == filled
    assert_no_exception(at)
    assert ("map" in {element.key for element in at.get("bidi_component")}) == has_map


def test_what_is_to_be_known_about_a_text_has_a_place_above_the_stage():
    """It is drawn after the stage; frame.css puts this place first."""
    at = open_page(text="door " * 600, cut=1, iterations=250)
    [notes] = placed(at, "notes")
    assert notes.children[0].value.startswith(MARK)
    assert placed(open_page(text=DOOR), "notes") == []


def placed(at, key):
    """The containers with this key."""
    return [
        block
        for block in blocks(at._tree)
        if getattr(getattr(block, "proto", None), "id", "").endswith(f"-{key}")
    ]


def blocks(block):
    """A block and all within it."""
    yield block
    for child in getattr(block, "children", {}).values():
        yield from blocks(child)


@pytest.mark.parametrize(
    ("text", "query"),
    [("cat and mouse", 0), ("The mouse saw a cat.", 4), ("The cats ran.", None), ("The dog ran.", None)],
)
def test_the_same_word_stays_selected_in_the_next_sentence_with_its_space_or_without(text, query):
    at = open_page(model=SMOLLM2, text="The cat ran.", query=1)
    type_text(at, text)
    assert_no_exception(at)
    assert query is None or shown(at)["query"] == str(query)
    picked_now = [chips(at)[position] for position in picked(at)]
    assert (picked_now == ["cat"] or picked_now == ["␣cat"]) == (query is not None)
