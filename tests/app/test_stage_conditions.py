"""What the stage shows only under a condition: previews, a note, a link, and what is drawn around it."""

from urllib.parse import parse_qsl

import pytest

from tests.app.screen import DOOR, captions, component, open_page
from ui.choice.selection import first_selection
from ui.shell import frame


@pytest.mark.parametrize(
    ("asked", "is_previewed"),
    [
        ({}, True),
        ({"special": "hidden"}, True),
        ({"special": "renormalised"}, False),
        ({"unit": "words"}, False),
        ({"show": "norms"}, False),
    ],
)
def test_other_heads_are_previewed_on_the_matrix_where_its_cells_are_their_weights(asked, is_previewed):
    at = open_page(text=DOOR, **asked)
    assert component(at, "token_strip")["marks"]["isWeights"] == is_previewed


def test_where_colours_end_is_said_where_the_matrix_is():
    for filled, is_said in (("all", True), ("matrix", True), ("map", False), ("token_flow", False)):
        at = open_page(text=DOOR, layer=3, head=1, filled=filled)
        assert ("Colours end at" in captions(at)) == is_said


def test_a_masked_text_leads_to_the_comparison_with_the_unmasked_one():
    at = open_page(text=DOOR, masked=5)
    [link] = [element.proto for element in at.get("page_link") if "unmasked" in element.proto.label]
    asked = dict(parse_qsl(link.query_string))
    assert "masked" not in asked and asked["other_masked"] == "5"
    assert not [e for e in open_page(text=DOOR).get("page_link") if "unmasked" in e.proto.label]


def test_another_kind_of_attention_redraws_what_is_around_the_stage():
    before = first_selection("all-MiniLM-L6-v2")
    for changed in ({"kind": "cross"}, {"text": "a cat"}, {"filled": "map"}, {"masked": (2,)}):
        assert frame._around(before.but(**changed)) != frame._around(before)
    for changed in ({"layer": 1}, {"head": 2}, {"query": 3}, {"key": 4}):
        assert frame._around(before.but(**changed)) == frame._around(before)
        led = before.but(tour=2)
        assert frame._around(led.but(**changed)) != frame._around(led)
