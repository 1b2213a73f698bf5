"""The rooms: a menu of nine, each to where it was left, and every address that there was before them."""

import re

import pytest

from tests.app.screen import assert_no_exception, open_page, row_of, shown, unescaped
from tests.tiers import first_gates
from ui.rooms import ROOMS
from ui.words.glossary import TERMS, matching

WAS = {
    "": "Explore",
    "all_heads": "All heads",
    "token_flow": "Explore",
    "generation": "Generate",
    "find_a_head": "All heads",
    "compare": "Compare",
    "many_sentences": "Many texts",
    "query_key_map": "Explore",
    "all_maps": "All heads",
    "effects": "Cause",
    "patching": "Compare",
    "lens": "Cause",
    "inputs": "Cause",
    "door_experiment": "Door experiment",
    "step_by_step": "How it works",
    "scaling": "How it works",
    "positions": "How it works",
    "kinds_of_attention": "How it works",
    "claims": "Myths",
    "cost": "How it works",
    "history": "How it works",
    "glossary": "Glossary",
    "verification": "Verification",
}
"""By the address of an earlier page, the room that it opens now."""
LENT = ("generation", "lens")
"""Rooms that show another model where the chosen one makes no predictions; a key is a token of the chosen one."""
PLACE = {"text": "it opened", "layer": "2", "head": "5", "query": "1", "key": "2", "special": "hidden"}


def menu(at) -> dict[str, str]:
    """By its label, the address that each room leads to."""
    links = {element.proto.label: element.proto.page for element in at.sidebar.get("page_link")}
    assert links.pop("For teachers") == "teach"
    return links


@pytest.mark.parametrize("address", first_gates("patching", *(wa for wa in WAS if wa != "patching")))
def test_an_address_of_before_opens_its_room_with_the_same_view(address):
    at = open_page(f"pages/{address}.py" if address else "attention.py", **PLACE)
    assert_no_exception(at)
    assert [element.value for element in at.title] == [WAS[address]]
    kept = {name: value for name, value in PLACE.items() if name != "key" or address not in LENT}
    assert kept.items() <= shown(at).items()
    labels = [
        element.proto.label for element in at.main.get("page_link") if element.proto.label in row_of(at)
    ]
    assert [*dict.fromkeys(labels)] == row_of(at)  # the stage has one of the links, too


def test_the_menu_has_nine_entries_and_each_leads_to_where_its_room_was_left():
    at = open_page(text="it opened", filled="matrix")
    first = {
        "Explore": "",
        "All heads": "all_heads",
        "How it works": "step_by_step",
        "Door experiment": "door_experiment",
        "Myths": "claims",
        "Compare": "compare",
        "Cause": "effects",
        "Generate": "generation",
        "Many texts": "profiles",
    }
    assert menu(at) == first
    at.switch_page("pages/scaling.py").run()
    assert menu(at) == first | {"How it works": "scaling"}
    assert shown(at)["filled"] == "matrix"
    at.switch_page("pages/token_flow.py").run()
    assert menu(at) == first | {"How it works": "scaling", "Explore": "token_flow"}


def test_no_room_of_several_parts_has_the_name_of_one():
    assert [
        room.name
        for room in ROOMS
        if len(room.parts) > 1 and room.name in {part.name for room in ROOMS for part in room.parts}
    ] == []


def test_a_link_to_a_page_names_nothing_of_what_is_selected():
    """So that a change does not send it again: the browser adds the selection, see tests/browser/test_link_and_back.py."""
    at = open_page("pages/scaling.py", **PLACE)
    assert {element.proto.query_string for element in at.get("page_link")} == {""}


@pytest.mark.nightly
def test_a_text_that_is_too_long_for_a_link_stays_where_a_room_is_opened():
    text = "door " * 13_000
    at = open_page(text=text, filled="map", cut=1)
    assert "kept" in shown(at) and "text" not in shown(at)
    at.switch_page("pages/step_by_step.py").run()
    assert_no_exception(at)
    assert at.text_area(key="field_text").value == text


@pytest.mark.parametrize("page", first_gates("attention.py", "pages/many_sentences.py"))
def test_the_glossary_opens_anywhere_with_all_terms(page):
    at = open_page(page)
    assert [element for element in at.text_input if element.key == "glossary_search"] == []
    at.button(key="open_glossary").click().run()
    assert_no_exception(at)
    assert listed(at) == list(TERMS)
    assert at.text_input(key="glossary_search").label == "Search"


def listed(at) -> list[str]:
    """The terms in the drawer."""
    matches = [re.match(r"\*\*(.+?):\*\* ", unescaped(element.value)) for element in at.markdown]
    return [match[1] for match in matches if match and match[1] in TERMS]


def test_a_search_takes_words_of_names_and_meanings_names_first():
    assert matching("MASK causal")[0].name == "Causal mask"
    named = ["weight" in term.name.casefold() for term in matching("weight")]
    assert named == sorted(named, reverse=True) and set(named) == {True, False}
    assert matching("") == list(TERMS.values())
    assert matching("nothing-of-the-kind") == []
    by_meaning = [term.name for term in matching("vocabulary")]
    assert "Token" in by_meaning
