"""ALTI and value zeroing on the stage, in the flow and in all heads: a layer's matrix, with what it was checked by."""

import numpy as np
import pytest

import attnviz
from tests.app.screen import (
    DOOR,
    assert_no_exception,
    captions,
    component,
    document,
    errors,
    facts,
    figure,
    finding,
    notices,
    numbers,
    open_page,
    shown,
    until_drawn,
)
from ui.runtime import cache
from ui.words.findings import MEASURE_NOTES

METHODS = {"alti": attnviz.alti, "value_zeroing": attnviz.value_zeroing}
PLACE = {"text": DOOR, "layer": 4, "head": 1, "query": 7, "key": 5}


@pytest.fixture(scope="module")
def mixed(embedded, door_trace):
    """The matrices of all layers, computed in one go."""
    return {name: method(embedded, door_trace).matrices for name, method in METHODS.items()}


@pytest.mark.parametrize("show", METHODS)
def test_the_stage_offers_a_layer_s_matrix_and_says_what_its_row_shows(show, mixed):
    at = open_page(**PLACE, show=show)
    assert_no_exception(at)
    assert errors(at) == notices(at) == []
    assert document(at)["measures"][-2:] == ["alti", "value_zeroing"]
    row = mixed[show][4, 7]
    said, notes = finding(at), component(at, "viewer")["said"]["notes"]
    assert facts(said).numbers[:2] == ("4", f"{100 * row[5]:.1f}%") and facts(said).quoted[:2] == (
        "it",
        "door",
    )
    if row.argmax() != 5:
        assert f"{100 * row.max():.1f}%" in facts(said).numbers
    assert MEASURE_NOTES[show] in notes and "the model's own vector" in notes
    assert "softmax" not in notes, "a score is one head's"


@pytest.mark.parametrize("show", METHODS)
def test_the_flow_draws_the_layers_of_the_selected_heads(show, mixed):
    at = open_page("pages/token_flow.py", **PLACE, heads="4.5,2.4", show=show, threshold="weight", weakest=0)
    assert_no_exception(at)
    drawn = component(at, "token_flow")
    assert [matrix["name"] for matrix in drawn["matrices"]] == ["L4", "L2"]
    assert MEASURE_NOTES[show] in captions(at) and "the model's own vector" in captions(at)


def test_the_matrix_is_the_library_s(mixed):
    at = open_page("pages/door_experiment.py", **{"model": "all-MiniLM-L6-v2"} | PLACE, show="alti")
    assert_no_exception(at)
    np.testing.assert_allclose(numbers(figure(at, "matrix")["data"][0]["z"]), mixed["alti"][4], atol=1e-6)


def test_a_text_that_takes_too_long_shows_weights_and_says_so():
    place = {"layer": 0, "head": 0, "query": 3, "show": "value_zeroing", "filled": "matrix"}
    at = open_page(model="SmolLM2-135M-Instruct", text="door " * 513, **place)
    assert_no_exception(at)
    assert ["up to 512 tokens" in notice for notice in notices(at) if "Value zeroing" in notice] == [True]
    assert not {"alti", "value_zeroing"} & {*document(at)["measures"]}


def test_what_takes_long_is_a_job_with_progress(monkeypatch, mixed):
    monkeypatch.setattr(cache, "MOST_PRODUCTS", 0)
    cache.NUMBERS.clear()
    at = open_page(**PLACE | {"layer": 1}, show="alti")
    if not component(at, "viewer")["said"]["headline"]:
        assert [button.label for button in at.button if button.key == "mixing_act"] == ["Cancel"]
    said = finding(until_drawn(at))
    assert facts(said).numbers[:2] == ("1", f"{100 * mixed['alti'][1, 7, 5]:.1f}%")


def test_all_heads_lead_to_the_matrix_of_their_layer():
    at = open_page("pages/all_heads.py", **PLACE)
    [link] = [
        element.proto
        for element in at.main.get("page_link")
        if element.proto.label == "What does layer 4 mix into each token?"
    ]
    assert link.query_string == "show=alti&filled=matrix"
    assert shown(at)["layer"] == "4"
