"""The first screen: what a new sentence, a second one or an example changes."""

import pytest

from attnviz.model.catalogue import EMBEDDED, SMOLLM2
from tests.app.screen import (
    DOOR,
    Facts,
    assert_no_exception,
    chips,
    errors,
    facts,
    finding,
    matrix,
    notices,
    open_page,
    picked,
    shown,
    type_text,
)
from ui.choice.presets import MEASURED, PRESETS, offered_presets


def test_it_shows_the_door_example(first_screen):
    assert facts(finding(first_screen)) == Facts(("it", "[CLS]", "door"), ((3, 1),), ("48.4%", "47.5%"))
    assert picked(first_screen) == [7]
    assert errors(first_screen) == notices(first_screen) == []


def test_two_equal_tokens_stay_two_rows(first_screen):
    type_text(first_screen, "the door the door")
    assert chips(first_screen) == ["[CLS]", "the", "door", "the", "door", "[SEP]"]
    assert matrix(first_screen).shape == (6, 6)


def test_a_second_sentence_is_read_as_a_pair(first_screen):
    type_text(first_screen, "The door opened.", "Who opened it?")

    assert chips(first_screen) == [
        *("[CLS]", "the", "door", "opened", ".", "[SEP]"),
        *("who", "opened", "it", "?", "[SEP]"),
    ]
    assert shown(first_screen)["second"] == "Who opened it?"
    type_text(first_screen, "The door opened.", "")
    assert chips(first_screen).count("[SEP]") == 1
    assert "second" not in shown(first_screen)


@pytest.mark.parametrize(("second", "is_set"), [("", False), ("  ", False), ("Who opened it?", True)])
def test_the_menu_of_input_says_whether_a_second_sentence_is_set(second, is_set):
    at = open_page(text="The door opened.", second=second)
    [menu] = [
        block.proto.popover.label
        for block in at.main.get("popover")
        if block.proto.popover.label.startswith("More")
    ]
    assert ("second sentence set" in menu) == is_set


def test_a_blank_second_sentence_is_none():
    at = open_page(second="  ")
    assert errors(at) == []
    assert chips(at)[-1] == "[SEP]" and chips(at).count("[SEP]") == 1


def test_a_new_sentence_forgets_what_was_picked_in_the_old(first_screen):
    type_text(first_screen, "door")
    assert picked(first_screen) == [1]
    assert notices(first_screen) == []


def test_a_sentence_that_has_the_query_s_word_keeps_it_as_the_query():
    at = open_page(text=DOOR, query=7)
    type_text(at, "Then it rained, and the door opened.")
    assert [chips(at)[position] for position in picked(at)] == ["it"]
    type_text(at, "The dog slept.")
    strongest = open_page(text="The dog slept.")
    assert shown(at)["query"] == shown(strongest)["query"]


@pytest.mark.parametrize(
    "preset", offered_presets(EMBEDDED, fills_blanks=False), ids=lambda preset: preset.name
)
def test_a_preset_shows_its_sentence_and_picks_its_query(first_screen, preset):
    first_screen.button_group(key="preset_choice").set_value(preset).run()

    assert_no_exception(first_screen)
    assert errors(first_screen) == notices(first_screen) == []
    assert first_screen.text_area(key="field_text").value == preset.text
    assert chips(first_screen)[picked(first_screen)[0]] == preset.query
    if preset.key is not None:
        assert preset.key in facts(finding(first_screen)).quoted[1:]
    assert first_screen.button_group(key="preset_choice").value is None  # the same one can be picked again


def test_a_preset_replaces_a_pair(first_screen):
    type_text(first_screen, "The door opened.", "Who opened it?")
    first_screen.button_group(key="preset_choice").set_value(PRESETS[0]).run()

    assert first_screen.text_area(key="field_second").value == ""
    assert chips(first_screen).count("[SEP]") == 1


def test_a_preset_replaces_a_text_that_cannot_be_shown(first_screen):
    type_text(first_screen, " ")
    assert len(errors(first_screen)) == 1
    first_screen.button_group(key="preset_choice").set_value(PRESETS[0]).run()

    assert errors(first_screen) == []
    assert first_screen.text_area(key="field_text").value == DOOR


@pytest.mark.nightly
def test_an_example_of_the_language_model_comes_with_its_head_pair_and_outcome_and_says_what_it_shows():
    preset = MEASURED[3]
    at = open_page(model=SMOLLM2, text="The door opened.")
    at.button_group(key="preset_choice").set_value(preset).run()
    assert_no_exception(at)
    assert errors(at) == []
    [notice] = notices(at)
    assert preset.name in notice and f"{100 * preset.numbers[0]:.1f}%" in notice
    asked = {"layer": preset.head.layer, "head": preset.head.head} | dict(
        zip(("query", "key"), preset.at, strict=True)
    )
    assert {name: shown(at)[name] for name in asked} == {name: str(value) for name, value in asked.items()}
    at.button_group(key="preset_choice").set_value(MEASURED[0]).run()
    assert shown(at)["outcome"] == MEASURED[0].outcome


def test_a_text_of_the_language_model_starts_at_a_link_of_its_own_not_at_the_first_token():
    at = open_page(
        model=SMOLLM2, text=MEASURED[0].text, layer=MEASURED[0].head.layer, head=MEASURED[0].head.head
    )
    assert_no_exception(at)
    quoted = facts(finding(at)).quoted
    assert (
        quoted[0] == "␣gave" and "␣John" in quoted[1:]
    )  # others give "When" more than that, and "and" says little
