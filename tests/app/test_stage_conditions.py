"""What the stage shows only under a condition: previews, a note, a link, and what is drawn around it."""

from urllib.parse import parse_qsl

from tests.app.screen import DOOR, open_page
from ui.choice.selection import first_selection
from ui.shell import frame


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
