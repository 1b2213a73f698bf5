"""A map that cannot be made: its place says why, on every page with maps, and the visitor can try again."""

import pytest

from attnviz.errors import ProjectionError
from attnviz.maps.ranking import MapChoice
from tests.app.screen import ask_until, assert_no_exception, errors, figure, open_page
from tests.calls import Failing
from tests.tiers import first_gates
from ui.rooms.explore.other_maps import ranked_maps

LONG_TEXT = (
    "the river flooded an old market; nobody there was surprised. " * 10
)  # too long to be made while the page is drawn
UNKNOWN = "Something went wrong"


def is_drawn(at, picture):
    under_way = any(element.label == "Cancel" for element in at.button)
    drawn = {element.key for element in at.get("bidi_component")}
    return picture in drawn and not under_way


@pytest.mark.parametrize(
    ("page", "where", "what", "picture", "text"),
    [
        (
            "pages/all_maps.py",
            "ui.rooms.all_heads.maps.place",
            "attnviz.maps.projection:place",
            "map_grid",
            "A door.",
        ),
        (
            "pages/query_key_map.py",
            "ui.rooms.explore.other_maps.place",
            "attnviz.maps.projection:place",
            "space_map",
            LONG_TEXT,
        ),
        (
            "pages/many_sentences.py",
            "ui.rooms.many_texts.joint_map.laid_out.joint_map",
            "attnviz.maps.joint_map:joint_map",
            "joint_map",
            "A door.",
        ),
    ],
)
@pytest.mark.parametrize(
    ("error", "words", "space"),
    first_gates(
        (ValueError("a secret"), UNKNOWN, "raw"),
        (ProjectionError("Take *this*."), "Take *this*.", "centred"),
    ),
)
def test_is_explained_and_can_be_made_once_more(
    page, where, what, picture, text, error, words, space, monkeypatch, tmp_path
):
    there = tmp_path / "there"
    monkeypatch.setattr(where, Failing(what, there, error))
    monkeypatch.setattr("ui.rooms.many_texts.joint_map.laid_out.bundled", lambda: "A door.\nIt opens.")
    others = {"space": space, "joint_space": space}  # visitors share a job, and with it its error
    at = open_page(page, text=text, method="pca", **others)
    ask_until(at, errors)
    [message] = errors(at)
    assert words in message
    assert "secret" not in message
    there.touch()
    [again] = [element for element in at.button if element.label == "Try again"]
    again.click().run()
    assert_no_exception(at)
    ask_until(at, lambda at: is_drawn(at, picture))
    assert errors(at) == []


@pytest.mark.nightly
def test_of_the_ranking_leaves_the_page_as_it_is(monkeypatch, tmp_path):
    there = tmp_path / "there"
    monkeypatch.setattr(
        ranked_maps, "rate", Failing("attnviz.maps.ranking:rate", there, ValueError("a secret"))
    )
    monkeypatch.setattr(ranked_maps, "MAPS", [MapChoice(method="pca", space="raw")])
    at = open_page("pages/query_key_map.py", seed=902)
    at.button(key="compare_maps").click().run()
    ask_until(at, errors)
    assert UNKNOWN in errors(at)[0]
    assert figure(at, "space_map")
    there.touch()
    at.button(key="ranking_act").click().run()
    ask_until(at, lambda at: at.dataframe)
    assert errors(at) == []


@pytest.mark.nightly
def test_that_the_page_waits_for_is_explained_as_well(monkeypatch, tmp_path):
    there = tmp_path / "there"
    what = "attnviz.effects.input_attribution:attribute_inputs"
    monkeypatch.setattr(
        "ui.rooms.cause.inputs.attributions.attribute_inputs", Failing(what, there, RuntimeError("a secret"))
    )
    at = open_page("pages/inputs.py", text="A door failed to open.")
    assert_no_exception(at)
    [message] = errors(at)
    assert UNKNOWN in message and "secret" not in message
    there.touch()
    [again] = [element for element in at.button if element.label == "Try again"]
    again.click().run()
    assert_no_exception(at)
    ask_until(at, lambda at: is_drawn(at, "inputs_sheet"))
    assert errors(at) == []
