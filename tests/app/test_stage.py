"""What the stage of the first screen sends to the browser, which answers the pointer from it."""

import json
from urllib.parse import parse_qsl

import numpy as np
import pytest
import torch
from transformers import AutoModel, AutoTokenizer

from attnviz.model.catalogue import SMOLLM2
from tests.app import screen
from tests.app.screen import (
    MARK,
    assert_no_exception,
    chips,
    component,
    open_page,
    shown,
    step_head,
    type_text,
)

DOOR = "I was watching the door when it opened."


def message(at):
    """The bytes that hold the weights of all heads."""
    [element] = [element for element in at.get("bidi_component") if element.key == "stage_weights"]
    return element.proto.bytes


def staged(at):
    """What they say of themselves, and the weights [layer, head, query, key] as shares of 255."""
    told, cells = message(at).split(b"\n", 1)
    told = json.loads(told)
    shape = (len(told["counts"]), told["counts"][0], told["nQuery"], told["nKey"])
    return told, np.frombuffer(cells, dtype=np.uint8).reshape(shape)


def test_the_weights_of_all_heads_are_transformers(embedded):
    at = open_page(text=DOOR, layer=3, head=1)
    model = AutoModel.from_pretrained(embedded.folder, attn_implementation="eager")
    ids = AutoTokenizer.from_pretrained(embedded.folder)(DOOR, return_tensors="pt")
    with torch.inference_mode():
        theirs = torch.stack(model(**ids, output_attentions=True).attentions)[:, 0].numpy()
    told, cells = staged(at)
    assert told["text"] == component(at, "token_strip")["own"]["text"]
    np.testing.assert_allclose(cells / 255, theirs, atol=0.5 / 255 + 1e-5)
    [arcs] = [element for element in at.get("bidi_component") if element.key == "token_strip"]
    own = np.frombuffer(screen.message(arcs)[1], dtype="<f4")
    np.testing.assert_allclose(own.reshape(theirs.shape[2:]), theirs[3, 1], atol=1e-5)


def test_they_are_sent_once_for_a_text():
    at = open_page(text=DOOR, layer=3, head=1)
    before = message(at)
    step_head(at)
    assert shown(at)["head"] == "2"
    assert message(at) == before
    at.button_group(key="field_special").set_value("hidden").run()
    assert message(at) == before


def test_the_film_of_the_sentence_is_one_click_away():
    at = open_page(text=DOOR, layer=3, head=1, query=8)
    [film] = [element.proto for element in at.main.get("page_link") if element.proto.page == "step_by_step"]
    asked = dict(parse_qsl(film.query_string))
    assert {name: asked[name] for name in ("layer", "head", "query", "key")} == {
        "layer": "3",
        "head": "1",
        "query": "8",
        "key": "5",  # "door", to which "opened" gives most
    }


def test_what_is_left_out_of_the_colours_of_small_pictures_is_told_once_for_a_text():
    told, _ = staged(open_page(text=DOOR, layer=3, head=1))
    assert told["aside"] == {"queries": [0, 10], "keys": [0, 10]}
    told, _ = staged(open_page(model=SMOLLM2, text="The door opened."))
    assert told["aside"] == {"queries": [], "keys": [0]}


def test_a_text_that_is_too_long_for_arcs_has_chips():
    at = open_page(text="door " * 70)
    assert_no_exception(at)
    assert len(chips(at)) == 72
    assert "own" not in component(at, "token_strip")
    assert not [element for element in at.get("bidi_component") if element.key == "stage_weights"]


def test_arcs_of_cross_attention_lead_to_the_other_text(checkpoint, monkeypatch):
    monkeypatch.setenv("ATTNVIZ_MODELS", str(checkpoint("bart")))
    at = open_page(model="bart", text="the cat sat on the mat", second="a door", kind="cross")
    assert_no_exception(at)
    drawn = component(at, "token_strip")
    assert [key["label"] for key in drawn["keys"]][1:3] == ["the", "cat"]
    assert drawn["mask"] is None
    _, cells = staged(at)
    assert cells.shape[2:] == (len(drawn["tokens"]), len(drawn["keys"]))


@pytest.mark.parametrize(
    ("filled", "there"),
    [("all", {"matrix", "map"}), ("matrix", {"matrix"}), ("map", {"map"}), ("token_flow", {"token_flow"})],
)
def test_one_part_fills_the_stage(filled, there):
    at = open_page(text=DOOR)
    at.button(key=f"part_{filled}").click().run()
    assert shown(at).get("filled", "all") == filled
    assert_no_exception(at)
    drawn = {element.key for element in at.get("bidi_component")}
    assert drawn & {"matrix", "map", "token_flow"} == there
    assert {picture["key"] for picture in component(at, "save_picture")["figures"]} == there | {"ranking"}


def test_what_is_to_be_known_about_a_text_has_a_place_above_the_stage():
    """It is drawn after the stage; frame.css puts this place first."""
    at = open_page(text="door " * 600, cut=1, iterations=250)
    [notes] = placed(at, "notes")
    assert notes.children[0].value.startswith(MARK)
    assert placed(open_page(text=DOOR), "notes") == []


@pytest.mark.parametrize(("filled", "place"), [("all", "filled_all"), ("matrix", "filled_long_matrix")])
def test_of_a_long_text_matrix_and_map_stand_side_by_side_and_a_matrix_alone_is_as_tall_as_it_is_wide(
    filled, place
):
    assert len(placed(open_page(text="door " * 140, filled=filled, iterations=250), place)) == 1


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
    picked_now = [token["label"] for token in component(at, "token_strip")["tokens"] if token.get("query")]
    assert (picked_now == ["cat"] or picked_now == ["␣cat"]) == (query is not None)
