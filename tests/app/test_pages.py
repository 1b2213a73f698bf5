"""Every page, for texts of every size, and what holds when the page changes."""

import pytest
from streamlit.proto.Block_pb2 import Block as BlockProto
from streamlit.testing.v1 import AppTest

from attnviz.model.catalogue import EMBEDDED, SMOLLM2
from tests.app.screen import (
    DOOR,
    assert_no_exception,
    charts,
    chips,
    component,
    errors,
    facts,
    figure,
    finding,
    matrix,
    notices,
    open_page,
    ranked_lists,
    row_of,
    settle,
    shown,
    step_head,
    type_text,
)
from ui.rooms import PAGES
from ui.runtime import cache

PAGE_FILES = [page.file for page in PAGES]

SHORT = {f"pages/{name}.py": {"text": "it opened"} for name in ("effects", "patching", "inputs")}
"""Parameters for pages that run the model once for each head, cell or token."""
MENU = [
    *("Explore", "All heads", "How it works", "Door experiment", "Myths", "Compare", "Cause", "Generate"),
    "Many texts",
    "For teachers",
]
TEXTS = {
    "pair": {"text": "The door opened.", "second": "Who opened it?"},
    "one token": {"text": "door"},
    "512 tokens, cut": {"text": "the old door " * 300, "cut": 1, "iterations": 250},
}


IN_A_ROW = {
    "attention.py": {"slot_links"},
    "pages/find_a_head.py": {"pair"},
    "pages/step_by_step.py": {"about_finding"},
    "pages/kinds_of_attention.py": {"mask_controls", "paint_cell"},
    "pages/door_experiment.py": {"door_change", "matrix_controls"},
    "pages/patching.py": {"use_language_model_lacks"},
    "pages/effects.py": {"use_language_model_lacks"},
    "pages/inputs.py": {"use_language_model_lacks"},
    "pages/profiles.py": {*(f"profile_example_{number}" for number in range(10))},
}
"""What stands side by side on a page at its first visit, beside the rows of the frame."""
HORIZONTAL = BlockProto.FlexContainer.Direction.HORIZONTAL
FRAME = {"parts", "place", "model_place", "sentence"}


def in_a_row(at):
    """Keys of the containers whose content stands side by side."""
    keys, blocks = set(), [at._tree]
    while blocks:
        block = blocks.pop()
        blocks += getattr(block, "children", {}).values()
        proto = getattr(block, "proto", None)
        is_container = proto is not None and proto.DESCRIPTOR.name == "Block" and proto.id
        if is_container and proto.flex_container.direction == HORIZONTAL:
            keys.add(proto.id.split("-", 2)[2])
    return keys


def assert_a_picture_is_drawn(at, page, params):
    assert_no_exception(at)
    assert errors(at) == []
    if page in ("pages/many_sentences.py", "pages/glossary.py"):  # a map that comes later, and words
        return
    drawn = {element.key for element in at.get("bidi_component")}
    assert drawn - {"token_strip", "save_picture"}, "a page without a picture"
    assert shown(at)["text"] == params.get("text", DOOR)
    assert shown(at).get("second", "") == params.get("second", "")
    [part] = [entry for entry in PAGES if entry.file == page]
    is_lent = bool(part.predicts) and "model" not in params
    assert len(notices(at)) == (
        is_lent or "cut" in params
    )  # a model is lent, which reads all; or the text is cut


@pytest.mark.nightly
@pytest.mark.parametrize("params", TEXTS.values(), ids=list(TEXTS))
@pytest.mark.parametrize("page", [page for page in PAGE_FILES if page != "pages/glossary.py"])
def test_a_page_draws_every_size_of_text(page, params):
    at = open_page(page, **params, **({"step": 4} if page == "pages/step_by_step.py" else {}))
    assert_a_picture_is_drawn(at, page, params)


def assert_laid_out(figure):
    """What all figures have in common: where their colour bars, titles and lines are."""
    layout = figure["layout"]
    bars = [trace.get("colorbar") or trace.get("marker", {}).get("colorbar") for trace in figure["data"]]
    assert all(
        (bar["y"], bar["yanchor"]) == (0, "top") for bar in bars if bar and bar.get("orientation") == "h"
    )
    panels = [axis for name, axis in layout.items() if name.startswith("yaxis")]
    tops = [axis.get("domain", [0, 1])[1] for axis in panels]
    for element in layout.get("annotations", []):
        if element.get("xref") == "paper":  # the title of a panel stands on its upper left corner
            assert (element["x"], element["xanchor"], element["yanchor"]) == (0, "left", "bottom")
            assert any(
                element["y"] == pytest.approx(top) for top in ([1] if element["yref"] != "paper" else tops)
            )
    across = [axis for name, axis in layout.items() if name.startswith("xaxis")]
    assert not any(axis.get("zeroline") for axis in across)
    assert not any(axis.get("showgrid") for axis in (*across, *panels) if axis.get("showticklabels") is False)


@pytest.mark.parametrize("page", PAGE_FILES)
def test_a_first_visit_shows_a_picture_the_sidebar_and_what_each_control_does(page):
    params = ({"step": 4} if page == "pages/step_by_step.py" else {}) | SHORT.get(page, {})
    at = open_page(page, **params)
    assert_a_picture_is_drawn(at, page, params)

    [here] = [entry for entry in PAGES if entry.file == page]
    assert here.question in [element.value for element in at.markdown]
    asked = {"sentence", "head"} & set(here.asks)
    texts = [
        (element.key, element.value)
        for element in at.main.text_area
        if element.key in ("field_text", "field_second")
    ]
    assert dict(texts) == (
        {"field_text": params.get("text", DOOR), "field_second": ""} if "sentence" in asked else {}
    )
    models = [element.value for element in at.main.selectbox if element.key == "field_model"]
    assert models == [SMOLLM2 if here.predicts else EMBEDDED] * bool(asked)
    places = {
        element.key: element.value
        for element in at.main.number_input
        if element.key in ("field_layer", "field_head")
    }
    has_fields = "head" in asked and not here.is_stage  # where the viewer has them
    assert places == ({"field_layer": 3, "field_head": 1} if has_fields else {})
    walks = [element.label for element in at.main.button if element.key in ("head_previous", "head_next")]
    assert walks == ["Previous", "Next"] * has_fields
    assert [link.proto.label for link in at.sidebar.get("page_link")] == MENU
    links = [element.proto.label for element in at.main.get("page_link")]
    assert [*dict.fromkeys(name for name in links if name in row_of(at))] == row_of(
        at
    )  # the stage has one of them again
    checked = [link for link in at.get("page_link") if link.proto.label.startswith(":green[")]
    assert len(checked) == 1 or page == "pages/verification.py"

    own = {key for key in in_a_row(at) - FRAME if not key.startswith("page_head")}
    assert own - {"part_controls"} == IN_A_ROW.get(page, set())

    for key in charts(at):
        assert_laid_out(figure(at, key))
    for rows in ranked_lists(at):  # a bar never leaves its row
        assert all(abs(row["length"]) <= 1 + 1e-6 for row in rows)

    kinds = ("text_area", "text_input", "selectbox", "number_input", "button", "button_group")
    controls = [element for kind in kinds for element in at.get(kind)]
    assert controls
    assert {control.proto.label for control in controls if not control.proto.help} <= {
        "Examples"
    }  # chips say what they show


def test_a_selection_survives_a_change_of_page():
    at = type_text(open_page(), "The old door creaked.")
    settle(at, layer=4, head=7)
    before = shown(at)

    at.switch_page("pages/verification.py").run()
    there = shown(at)
    at.switch_page("attention.py").run()

    assert (before["text"], before["layer"], before["head"]) == ("The old door creaked.", "4", "7")
    assert before == there == shown(at)
    assert at.text_area(key="field_text").value == "The old door creaked."


def test_a_choice_made_on_one_page_holds_on_the_other():
    at = open_page("pages/verification.py")
    step_head(at)
    at.switch_page("attention.py").run()

    assert facts(finding(at)).heads[0] == (3, 2)
    assert_no_exception(at)


@pytest.mark.nightly
def test_the_longest_text_is_cut_where_it_is_said_to_be():
    at = open_page(**TEXTS["512 tokens, cut"])

    assert len(chips(at)) == 512
    assert matrix(at).shape == (512, 512)
    [notice] = notices(at)
    assert facts(notice).numbers == ("390",)  # tokens that are not read


def test_a_text_is_refused_above_what_the_app_shows_whatever_the_model_reads(monkeypatch):
    monkeypatch.setattr(cache, "TOKENS", 9)
    at = open_page(text="a text of its own with nine words here")
    [error] = errors(at)
    assert facts(error).numbers == ("11", "9")  # tokens, special ones among them, and the most


@pytest.mark.nightly
def test_a_text_too_long_for_a_link_is_left_out_of_it_and_said_so():
    at = open_page()
    type_text(at, "門" * 9000)
    at.button(key="cut").click().run()
    assert_no_exception(at)
    assert len(chips(at)) == 512
    assert "text" not in at.query_params
    assert any("link" in notice for notice in notices(at))


def test_settings_of_a_picture_survive_a_change_of_page():
    at = open_page()
    settle(at, special="hidden")
    at.switch_page("pages/verification.py").run()
    at.switch_page("attention.py").run()

    assert shown(at)["special"] == "hidden"
    assert component(at, "viewer")["selection"]["special"] == "hidden"


def test_a_docstring_of_a_page_s_constant_is_not_shown():
    at = AppTest.from_string('"""A page."""\n\nNAMES = {}\n"""By key, what it is called."""').run()
    assert_no_exception(at)
    assert not at.markdown
