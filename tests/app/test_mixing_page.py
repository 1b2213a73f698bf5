"""ALTI and value zeroing on the stage, in the flow and in all heads: a layer's matrix, with what it was checked by."""

import numpy as np
import pytest

import attnviz
from attnviz.model.catalogue import SMOLLM2
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
    open_bundle,
    open_page,
    settle,
    shown,
    until_drawn,
)
from ui.runtime import cache
from ui.runtime.workers import Workers
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
    at = open_page(model=SMOLLM2, text="door " * 513, **place)
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


def test_b_of_a_comparison_is_awaited_like_a(monkeypatch, mixed):
    monkeypatch.setattr(cache, "MOST_PRODUCTS", 0)
    cache.NUMBERS.clear()
    at = open_page("pages/compare.py", **PLACE | {"layer": 2}, show="alti", other_layer=3)
    for _ in range(2):  # A's layer, then B's
        at = until_drawn(at)
    assert errors(at) == []
    for part, layer in (("first", 2), ("second", 3)):
        drawn = numbers(figure(at, f"compare_{part}")["data"][0]["z"])
        np.testing.assert_allclose(drawn, mixed["alti"][layer], atol=1e-6)


def test_a_text_b_without_the_measure_says_so_and_a_stays(mixed):
    at = open_page("pages/compare.py", **PLACE, model=SMOLLM2, show="alti", other_text="door " * 513)
    assert_no_exception(at)
    assert ["B: ALTI is not shown: it takes texts of up to 512 tokens" in error for error in errors(at)] == [
        True
    ]
    assert len(numbers(figure(at, "compare_first")["data"][0]["z"])) == 9


def test_what_was_cancelled_is_computed_when_it_is_asked_for_again(monkeypatch, mixed):
    monkeypatch.setattr(cache, "MOST_PRODUCTS", 0)
    cache.NUMBERS.clear()
    work_on = Workers.work_on
    with monkeypatch.context() as no_process:
        no_process.setattr(Workers, "work_on", lambda at, job: job.name == "alti" or work_on(at, job))
        at = open_page(**PLACE | {"layer": 5}, show="alti")
        at.button(key="mixing_act").click().run()
        assert_no_exception(at)
        assert at.button(key="mixing_act").label == "Go on"
        assert document(at)["measures"][-2:] == ["alti", "value_zeroing"], "others can be chosen"
        assert "not computed yet" in captions(at), "there is nothing to export"
    at.button(key="mixing_act").click().run()
    assert facts(finding(until_drawn(at))).numbers[:2] == ("5", f"{100 * mixed['alti'][5, 7, 5]:.1f}%")


def test_an_opened_bundle_shows_weights_and_says_why(door_bundle):
    at = open_bundle(open_page(**PLACE), door_bundle)
    at = settle(at, show="alti")
    assert_no_exception(at)
    assert ["an opened bundle has none" in notice for notice in notices(at)] == [True]
    assert not {"alti", "value_zeroing"} & {*document(at)["measures"]}


def test_all_heads_lead_to_the_matrix_of_their_layer():
    at = open_page("pages/all_heads.py", **PLACE)
    [link] = [
        element.proto
        for element in at.main.get("page_link")
        if element.proto.label == "What does layer 4 mix into each token?"
    ]
    assert link.query_string == "show=alti&filled=matrix"
    assert shown(at)["layer"] == "4"
