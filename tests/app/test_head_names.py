"""Names of heads on grids: computed once for a model by pages with a grid, never by the first screen; and the first token
hidden."""

import numpy as np
import pyarrow.parquet as pq
import pytest

from tests.app.screen import (
    DOOR,
    assert_no_exception,
    captions,
    component,
    document,
    facts,
    figure,
    numbers,
    open_bundle,
    open_page,
    saved_matrix,
    settle,
    shown,
    until_drawn,
)
from ui.runtime import jobs, profiles
from ui.runtime.remembered import NUMBERS
from ui.shell.view import FIRST_HIDDEN


@pytest.fixture
def nothing_known():
    NUMBERS.clear()
    jobs._kept.clear()


@pytest.fixture
def no_profile(nothing_known, monkeypatch, tmp_path):
    """As for a model without a profile."""
    monkeypatch.setattr(profiles, "BUNDLED", tmp_path)


def cells(at, key="head_grid"):
    return component(at, key)["cells"]


def test_pages_with_a_grid_name_the_heads(no_profile):
    """Layer 0, head 2 of MiniLM is the one whose weights go to the previous token, on texts and on random tokens alike."""
    at = open_page("pages/find_a_head.py", layer=0, head=2)
    assert_no_exception(at)
    assert not any(cell["mark"] for row in cells(at) for cell in row)
    until_drawn(at)
    marks = [
        (layer, head) for layer, row in enumerate(cells(at)) for head, cell in enumerate(row) if cell["mark"]
    ]
    assert marks == [(0, 2)]
    assert "previous token 0.99" in cells(at)[0][2]["text"]
    [first, *_] = component(at, "probe_previous")["rows"]
    assert (facts(first["text"]).heads, first["picked"]) == (((0, 2),), True)
    weights = numbers(figure(at, "random_tokens")["data"][0]["z"])
    assert weights.shape == (102, 102)  # 50 tokens twice, [CLS] and [SEP]
    assert np.diag(weights, k=-1).mean() > 0.95
    assert document(open_page(layer=0, head=2))["names"][0][2].endswith(
        "; on repeated random tokens: previous token"
    )
    at = until_drawn(open_page("pages/all_heads.py", layer=0, head=2, grid="probe_previous"))
    assert cells(at)[0][2]["label"].startswith("0.99")
    assert cells(at)[0][2]["mark"] == "←"  # once, though the text's own number is above its threshold too


def test_the_first_screen_names_heads_by_what_they_do_on_its_text(no_profile, door_trace):
    """Recomputed from the diagonal below the main one."""
    at = open_page(text=DOOR, layer=0, head=2)
    assert_no_exception(at)
    texts = [text for row in document(at)["names"] for text in row]
    assert len(texts) == 72
    named = {text.split(":")[0] for text in texts if "to the previous token on this text" in text}
    expected = {
        f"Layer {layer}, head {head}"
        for layer, head in np.ndindex(6, 12)
        if np.diag(door_trace.weights(layer, head), k=-1).mean() > 0.5
    }
    assert named == expected and "Layer 0, head 2" in named
    others = [text for text in texts if "on this text" not in text]
    assert others and not any("on repeated random tokens" in text for text in texts)


def test_a_text_too_long_for_the_stage_names_no_head(nothing_known):
    at = open_page(text="door " * 100, layer=0, head=2)
    assert not any("on this text" in text for row in document(at)["names"] for text in row)


def test_the_first_screen_asks_for_no_names(nothing_known):
    at = open_page(layer=0, head=2)
    assert_no_exception(at)
    assert not [name for name, _ in jobs._kept if name == "probes"]


def test_a_profile_names_the_heads_at_once(nothing_known):
    """On every page with heads, without reading random tokens; the names are those whose interval in the file lies above one
    half."""
    folder = profiles.BUNDLED / "all-MiniLM-L6-v2"
    rows = pq.read_table(folder / "heads.parquet").to_pylist()
    previous = {
        (row["layer"], row["head"])
        for row in rows
        if max(row["previous_low"], row["probe_previous_low"]) > 0.5
    }
    linking = {
        (row["layer"], row["head"])
        for row in rows
        for value in row["relations"]
        if value["words"] >= 20 and value["low"] > max(0.5, value["offset_accuracy"])
    }
    for page, grid in (("pages/find_a_head.py", "head_grid"), ("pages/all_heads.py", "head_grid")):
        at = open_page(page, layer=0, head=2)
        assert_no_exception(at)
        marks = {
            (layer, head): cell["mark"]
            for layer, row in enumerate(cells(at, grid))
            for head, cell in enumerate(row)
        }
        assert {head for head, mark in marks.items() if "←" in mark} >= previous == {(0, 2)}
        assert {head for head, mark in marks.items() if "R" in mark} == linking
        assert "in the profile of the bundled sentences: previous token 0.99" in cells(at, grid)[0][2]["text"]
        assert "Marks in the profile of the bundled sentences" in captions(at)
    assert not [name for name, _ in jobs._kept if name == "probes"]
    at = open_page(text=DOOR, layer=0, head=2)
    assert document(at)["names"][0][2].endswith("; over many texts: previous token")


def test_a_bundle_s_heads_are_named_where_its_weights_are_the_profile_s(nothing_known, door_bundle):
    at = open_bundle(open_page("pages/find_a_head.py"), door_bundle)
    assert_no_exception(at)
    assert "previous token 0.99" in cells(at)[0][2]["text"]


class TestFirstToken:
    def test_is_left_out_of_rows_and_columns(self, taken, door_trace):
        at = open_page(text=DOOR, layer=3, head=1, without_first=1)
        assert_no_exception(at)
        np.testing.assert_array_equal(saved_matrix(taken).cells, door_trace.weights(3, 1)[1:, 1:])
        assert FIRST_HIDDEN in captions(at)
        assert FIRST_HIDDEN not in captions(open_page(text=DOOR, layer=3, head=1))

    def test_its_weight_can_be_shared_out(self, taken, door_trace):
        whole = door_trace.weights(3, 1)[1:-1, 1:-1]
        open_page(text=DOOR, layer=3, head=1, without_first=1, special="renormalised")
        np.testing.assert_allclose(
            saved_matrix(taken).cells, whole / whole.sum(axis=1, keepdims=True), rtol=1e-5
        )

    def test_the_switch_is_in_the_link(self):
        at = open_page(layer=3, head=1)
        settle(at, without_first=True)
        assert shown(at)["without_first"] == "1"
        assert FIRST_HIDDEN in captions(at)
