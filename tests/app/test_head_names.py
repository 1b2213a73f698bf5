"""Names of heads on grids: found once for a model by pages with a grid, never by the first screen; and the first token hidden."""

import numpy as np
import pytest

from tests.app.screen import (
    DOOR,
    assert_no_exception,
    captions,
    component,
    facts,
    figure,
    matrix,
    numbers,
    open_page,
    shown,
    until_drawn,
)
from ui.page.view import FIRST_HIDDEN
from ui.work import jobs
from ui.work.remembered import NUMBERS


@pytest.fixture
def nothing_known():
    NUMBERS.clear()
    jobs._kept.clear()


def cells(at, key="head_grid"):
    return component(at, key)["cells"]


def test_pages_with_a_grid_name_the_heads(nothing_known):
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
    at = open_page(layer=0, head=2)
    assert [one.value for one in at.caption if one.value.endswith(": previous token")]
    at = until_drawn(open_page("pages/all_heads.py", layer=0, head=2, grid="probe_previous"))
    assert cells(at)[0][2]["label"].startswith("0.99")
    assert cells(at)[0][2]["mark"] == "←"  # once, though the text's own number is above its threshold too


def test_the_first_screen_names_heads_by_what_they_do_on_its_text(nothing_known, door_trace):
    """Found again by reading the diagonal below the middle one."""
    at = open_page(text=DOOR, layer=0, head=2)
    assert_no_exception(at)
    texts = [cell["text"] for row in cells(at, "head_rail") for cell in row]
    said = {text.split(":")[0] for text in texts if "to the previous token on this text" in text}
    expected = {
        f"Layer {layer}, head {head}"
        for layer, head in np.ndindex(6, 12)
        if np.diag(door_trace.weights(layer, head), k=-1).mean() > 0.5
    }
    assert said == expected and "Layer 0, head 2" in said
    assert "Attends to the previous token on this text" in captions(at)
    others = [text for text in texts if "on this text" not in text]
    assert others and not any("on repeated random tokens" in text for text in texts)


def test_a_text_too_long_for_the_stage_names_no_head(nothing_known):
    at = open_page(text="door " * 70, layer=0, head=2)
    assert "on this text" not in captions(at)


def test_the_first_screen_asks_for_no_names(nothing_known):
    at = open_page(layer=0, head=2)
    assert_no_exception(at)
    assert not [name for name, _ in jobs._kept if name == "probes"]


class TestFirstToken:
    def test_is_left_out_of_rows_and_columns(self):
        whole, at = open_page(layer=3, head=1), open_page(layer=3, head=1, without_first=1)
        assert_no_exception(at)
        np.testing.assert_allclose(matrix(at), matrix(whole)[1:, 1:], rtol=1e-6)
        assert FIRST_HIDDEN in captions(at)
        assert FIRST_HIDDEN not in captions(whole)

    def test_its_weight_can_be_shared_out(self):
        whole = matrix(open_page(layer=3, head=1))[1:-1, 1:-1]
        at = open_page(layer=3, head=1, without_first=1, special="renormalised")
        np.testing.assert_allclose(matrix(at), whole / whole.sum(axis=1, keepdims=True), rtol=1e-5)

    def test_the_switch_is_in_the_link(self):
        at = open_page(layer=3, head=1)
        at.toggle(key="field_without_first").set_value(True).run()
        assert shown(at)["without_first"] == "1"
        assert FIRST_HIDDEN in captions(at)
