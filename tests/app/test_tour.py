"""The tour of the first screen: five stops with the reader's own sentence, in the address, to be left at any time."""

import pytest

from tests import tiny
from tests.app.screen import Facts, chips, component, facts, notices, open_page, picked, shown, type_text
from ui.page.first_look import PURPOSE
from ui.words.findings import special_note

STOPS = ["sentence", "matrix", "ranking", "map", "verdict"]


def tour(at):
    return component(at, "tour")


def test_the_first_screen_says_what_the_app_is_for_and_invites_to_the_tour():
    at = open_page()
    assert tour(at)["at"] == 0
    assert tour(at)["purpose"] == PURPOSE
    assert [stop["target"] for stop in tour(at)["stops"]] == STOPS


@pytest.mark.parametrize("stop", range(1, 6))
def test_every_stop_is_on_a_control_that_is_there(stop):
    at = open_page(tour=stop)
    assert tour(at)["at"] == stop
    assert shown(at)["tour"] == str(stop)
    target = tour(at)["stops"][stop - 1]["target"]
    [style] = [one.proto.body for one in at.get("html") if "outline" in one.proto.body]
    assert f".st-key-{target} " in style


def test_it_is_told_with_the_sentence_on_screen():
    at = type_text(open_page(tour=3), "the old door creaked")
    assert facts(tour(at)["stops"][0]["text"]).numbers == ("6",)  # tokens
    query = chips(at)[picked(at)[0]]
    assert facts(tour(at)["stops"][2]["text"]).quoted[0] == query
    assert tour(at)["at"] == 3, "another sentence does not end the tour"


def test_it_says_of_how_many_heads_one_is_shown():
    assert "72" in facts(tour(open_page(tour=2))["stops"][1]["text"]).numbers
    rollout = tour(open_page(tour=2, show="rollout"))["stops"][1]["text"]
    assert "72" not in facts(rollout).numbers  # it is of all heads


def test_a_decoder_has_an_empty_half_and_no_token_is_added(tmp_path, monkeypatch):
    monkeypatch.setenv("ATTNVIZ_MODELS", str(tiny.save_with_head("gpt2", tmp_path / "writer")))
    of_decoder = [one["text"] for one in tour(open_page(tour=1, model="writer", text="the cat"))["stops"]]
    of_encoder = [one["text"] for one in tour(open_page(tour=1, text="the cat"))["stops"]]
    assert "added by the model" in of_encoder[0] and "rest on the first token" in of_decoder[0]
    assert "upper right is empty" in of_decoder[1] and "upper right" not in of_encoder[1]


def test_only_what_the_tokenizer_adds_is_called_added():
    texts = [tour(open_page(tour=1, text=text))["stops"][0]["text"] for text in ("the cat", "the [PAD] cat")]
    assert all("[CLS] and [SEP] are added by the model" in one for one in texts)


@pytest.mark.parametrize("stop", ["6", "-1", "x"])
def test_a_stop_that_is_not_there_is_named(stop):
    at = open_page(tour=stop)
    assert any("tour" in one for one in notices(at))
    assert 0 <= tour(at)["at"] <= 5


class TestSpecialNote:
    """What [CLS] takes, and what it adds."""

    def test_is_on_the_first_screen(self, door_trace):
        norms = door_trace.pattern(3, 1, measure="norms").weights
        at = open_page()
        share = f"{norms[7, 0] / norms[7, 5]:.0%}"
        notes = [facts(line.value) for line in at.caption]
        assert notes.count(Facts(("[CLS]", "door"), numbers=(share,))) == 1

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
