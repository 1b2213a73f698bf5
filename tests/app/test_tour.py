"""The tour of the first screen: stops with something to do, which it notices, in the address, to be left at any time."""

from types import SimpleNamespace
from urllib.parse import parse_qsl

import pytest

from attnviz.model.catalogue import SMOLLM2
from tests.app.screen import (
    Facts,
    chips,
    component,
    facts,
    notices,
    open_page,
    picked,
    settle,
    shown,
    step_head,
    type_text,
)
from ui.choice import state
from ui.choice.selection import first_selection
from ui.rooms.explore.stage import tour as stops
from ui.rooms.explore.stage.tour import ATTENTION, is_done
from ui.shell.first_look import PURPOSE
from ui.shell.lesson import all_lessons
from ui.shell.lesson_line import step_params
from ui.words.findings import special_note

STOPS = ["field_text", "band", "heads", "matrix", "fills", "verdict"]


def tour(at):
    return component(at, "tour")


def test_the_first_screen_says_what_the_app_is_for_and_invites_to_the_tour():
    at = open_page()
    assert tour(at)["at"] == 0
    assert tour(at)["purpose"] == PURPOSE
    assert tour(at)["n"] == len(STOPS)
    assert [stop["target"] for stop in tour(open_page(tour=1))["stops"]] == STOPS


def begins_a_lesson(at):
    """The parameters of the links to the first lesson."""
    links = [element.proto for element in at.main.get("page_link")]
    return [dict(parse_qsl(link.query_string)) for link in links if link.label == "Begin the first lesson"]


def test_it_begins_with_what_attention_is_and_ends_in_the_first_lesson():
    before_last = open_page(tour=5)
    assert tour(before_last)["stops"][0]["text"].startswith(ATTENTION)
    assert begins_a_lesson(before_last) == []
    [lesson, *_], _ = all_lessons()
    at = open_page(tour=6)
    assert begins_a_lesson(at) == [step_params(lesson, 1)]
    at = open_page(**step_params(lesson, 1))
    assert not any(element.key == "tour" for element in at.get("bidi_component")), "the lesson leads"


@pytest.mark.parametrize("stop", range(1, 7))
def test_every_stop_is_on_a_control_that_is_there(stop):
    at = open_page(tour=stop)
    assert tour(at)["at"] == stop
    assert shown(at)["tour"] == str(stop)
    target = tour(at)["stops"][stop - 1]["target"]
    [style] = [element.proto.body for element in at.get("html") if "outline" in element.proto.body]
    assert f".st-key-{target}," in style and f"::part({target})" in style


def test_it_goes_on_when_the_visitor_has_done_what_a_stop_asks_for():
    """What is done in the viewer the server learns where the visitor rests."""
    at = type_text(open_page(tour=1), "the old door creaked")
    assert (tour(at)["at"], shown(at)["tour"]) == (2, "2")
    step_head(at)
    assert tour(at)["at"] == 2, "another head is not what this stop asks for"
    at = open_page(tour=3)
    step_head(at)
    assert (tour(at)["at"], shown(at)["tour"]) == (4, "4")
    settle(at, key=3)
    assert (tour(at)["at"], shown(at)["tour"]) == (5, "5")
    settle(at, filled="map")
    assert (tour(at)["at"], shown(at)["tour"]) == (6, "6")
    assert notices(at) == []


def test_another_sentence_is_not_another_token_or_head_or_cell():
    before = first_selection("all-MiniLM-L6-v2").but(query=7, key=5)
    other_text = before.but(text="the old door creaked", query=3, layer=1, key=2)
    assert is_done(1, before, other_text)
    assert not any(is_done(stop, before, other_text) for stop in (2, 3, 4, 6))
    assert is_done(2, before, before.but(query=3, key=None))
    assert is_done(3, before, before.but(head=2)) and is_done(3, before, before.but(layer=2))
    assert is_done(4, before, before.but(key=3)) and not is_done(4, before, before.but(query=3, key=None))
    assert is_done(5, before, before.but(filled="map")) and not is_done(
        5, before, before.but(filled="matrix")
    )


def test_it_is_told_with_the_sentence_on_screen():
    at = type_text(open_page(tour=2), "the old door creaked")
    assert tour(at)["at"] == 2, "another sentence is not another token"
    assert facts(tour(at)["stops"][1]["text"]).numbers == ("6",)  # tokens
    query = chips(at)[picked(at)[0]]
    assert facts(tour(at)["stops"][4]["text"]).quoted[1] == query


def test_it_says_of_how_many_heads_one_is_shown():
    assert "72" in facts(tour(open_page(tour=3))["stops"][2]["text"]).numbers
    rollout = tour(open_page(tour=3, show="rollout"))["stops"][2]["text"]
    assert "All heads together" in rollout


@pytest.mark.nightly
def test_the_language_model_has_stops_of_its_own_words():
    stops = tour(open_page(tour=1, model=SMOLLM2))["stops"]
    assert "270" in facts(stops[2]["text"]).numbers
    assert "earlier ones" in stops[1]["text"] and "added by the model" not in stops[1]["text"]


def test_only_what_the_tokenizer_adds_is_called_added():
    texts = [tour(open_page(tour=1, text=text))["stops"][1]["text"] for text in ("the cat", "the [PAD] cat")]
    assert all("[CLS] and [SEP] are added by the model" in text for text in texts)


@pytest.mark.parametrize("stop", ["7", "-1", "x"])
def test_a_stop_that_is_not_there_is_named(stop):
    at = open_page(tour=stop)
    assert any("tour" in notice for notice in notices(at))
    assert 0 <= tour(at)["at"] <= 6


class TestSpecialNote:
    """What [CLS] takes, and what it adds."""

    def test_is_on_the_first_screen(self, door_trace):
        norms = door_trace.pattern(3, 1, measure="norms").weights
        at = open_page()
        share = f"{norms[7, 0] / norms[7, 5]:.0%}"
        notes = component(at, "viewer")["said"]["notes"]
        assert (
            special_note(door_trace.pattern(3, 1), door_trace.pattern(3, 1, measure="norms"), 7, 5).rstrip()
            in notes
        )
        assert share in facts(notes).numbers

    def test_is_not_there_where_the_largest_weight_is_the_key_s(self, door_trace):
        weights, norms = door_trace.pattern(3, 1), door_trace.pattern(3, 1, measure="norms")
        assert special_note(weights, norms, 8, 5) == ""  # "opened" gives most to "door"

    def test_compares_a_selected_special_token_with_the_word_that_adds_most(self, door_trace):
        weights, norms = door_trace.pattern(3, 1), door_trace.pattern(3, 1, measure="norms")
        added = norms.weights[7]
        word = int(added[1:10].argmax()) + 1
        share = f"{added[0] / added[word]:.0%}"
        expected = Facts(("[CLS]", weights.keys.labels[word]), numbers=(share,))
        assert facts(special_note(weights, norms, 7, 0)) == expected

    def test_is_not_there_where_the_special_token_adds_as_much(self, door_trace):
        weights = door_trace.pattern(3, 1)
        assert special_note(weights, weights, 7, 5) == ""  # by weight it has more


@pytest.mark.parametrize("stop", range(7))
def test_the_tour_puts_the_subject_of_a_stop_on_the_stage(stop, monkeypatch):
    here = state.Chosen(selection=first_selection("all-MiniLM-L6-v2").but(filled="map"))
    monkeypatch.setattr(state, "of_session", lambda kind: here)
    stops._go(stop)
    assert here.selection.tour == stop
    assert here.selection.filled == ("all" if 1 <= stop <= 5 else "map")


def test_another_sentence_during_a_stop_begins_it_anew(monkeypatch):
    begun, pinned = stops.Begun(), []
    monkeypatch.setattr(stops, "of_session", lambda kind: begun)
    monkeypatch.setattr(stops.state, "pin", lambda **shown: pinned.append(shown))
    door = first_selection("all-MiniLM-L6-v2").but(tour=2, query=7)
    other = door.but(text="the old door creaked", query=3)
    for selection in (door, other, other.but(query=2)):
        stops.advance(SimpleNamespace(view=SimpleNamespace(selection=selection)))
    assert pinned == [{"tour": 3}]
