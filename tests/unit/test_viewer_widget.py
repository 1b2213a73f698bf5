"""The stage in a notebook: what Python and the viewer tell each other, and what a saved notebook keeps."""

import base64
import builtins
import html
import sys

import numpy as np
import pytest

from attnviz.errors import SelectionError
from attnviz.viewer.data import head_bytes, measure_bytes
from attnviz.viewer.page import StagePage
from attnviz.viewer.widget import StageWidget


@pytest.fixture
def stage(door_trace, monkeypatch):
    """A widget that keeps what it sends as `sent`."""
    made = door_trace.show(layer=3, head=1, query=7)
    assert isinstance(made, StageWidget)
    made.sent = []
    monkeypatch.setattr(made, "send", lambda content, buffers=(): made.sent.append((content, list(buffers))))
    return made


def ask(stage, what, **query):
    stage._answer(stage, {"id": "a", "what": what, "query": query}, [])
    return stage.sent.pop()


def test_it_holds_all_heads_and_what_is_selected(stage, door_trace):
    assert list(stage.document["queries"]["labels"]) == list(door_trace.tokens.labels)
    assert len(stage.cells) == 2 * 72 * 11 * 11 and stage.cells_base64 == ""
    assert (stage.selection["layer"], stage.selection["head"], stage.selection["query"]) == (3, 1, 7)


def test_the_selection_is_set_in_part_and_observed(stage):
    seen = []
    stage.observe(lambda change: seen.append(change["new"]), "selection")
    stage.selection = {"layer": 4, "head": 7}
    assert [(new["layer"], new["head"], new["query"], new["colour"]) for new in seen] == [(4, 7, 7, "linear")]
    stage.selection = {"query": 2, "key": 3}
    stage.selection = {"query": 5}
    assert stage.selection["key"] is None  # another query looks at its strongest key


@pytest.mark.parametrize("wrong", [{"layer": 6}, {"head": 12}, {"query": 11}, {"key": -1}, {"heads": 1}])
def test_a_selection_that_cannot_be_is_refused(stage, wrong):
    before = dict(stage.selection)
    with pytest.raises(SelectionError):
        stage.selection = wrong
    assert stage.selection == before


def test_what_the_viewer_asks_is_answered(stage, door_trace):
    said, buffers = ask(stage, "measure", measure="norms")
    assert (said["id"], said["cells"]["measure"]) == ("a", "norms")
    assert buffers == [measure_bytes(door_trace, "encoder", "norms")[1]]
    said, buffers = ask(stage, "head", layer=3, head=1, measure="weights")
    assert buffers == [head_bytes(door_trace, "encoder", 3, 1, "weights")[1]]
    said, buffers = ask(stage, "pair", layer=3, head=1, query=7, key=5)
    assert buffers == [] and "error" not in said and said["pair"]


def test_what_cannot_be_answered_is_told_in_words(stage):
    said, _ = ask(stage, "pair", layer=9, head=1, query=7, key=5)
    assert "layers 0 to 5" in said["error"]
    assert "pair" not in said


def test_where_no_bytes_pass_they_are_text(door_trace, monkeypatch):
    monkeypatch.setitem(sys.modules, "google.colab", object())
    stage = StageWidget(door_trace, layer=3, head=1)
    assert stage.cells == b""
    assert len(base64.b64decode(stage.cells_base64)) == 2 * 72 * 11 * 11
    sent = []
    monkeypatch.setattr(stage, "send", lambda content, buffers=(): sent.append((content, list(buffers))))
    stage._answer(stage, {"id": "a", "what": "measure", "query": {"measure": "scores"}}, [])
    assert sent[0][1] == [] and np.frombuffer(base64.b64decode(sent[0][0]["base64"]), "<u2").size == 72 * 121


def test_a_notebook_keeps_the_page_of_what_is_selected(stage, door_trace):
    stage.selection = {"layer": 4, "head": 7, "colour": "logarithmic"}
    data, _ = stage._repr_mimebundle_()
    assert "application/vnd.jupyter.widget-view+json" in data
    page = html.unescape(data["text/html"])
    assert '"layer":4,"head":7,"query":7' in page and '"colour":"logarithmic"' in page
    assert len(data["text/html"]) < 400_000


def test_without_anywidget_it_is_the_page(door_trace, monkeypatch):
    real = builtins.__import__

    def without(name, *rest, **more):
        if name == "anywidget":
            raise ModuleNotFoundError("No module named 'anywidget'", name="anywidget")
        return real(name, *rest, **more)

    monkeypatch.delitem(sys.modules, "attnviz.viewer.widget")
    monkeypatch.setattr(builtins, "__import__", without)
    shown = door_trace.show(layer=3, head=1)
    assert isinstance(shown, StagePage) and shown.html == door_trace.to_html(3, 1)
    assert shown._repr_html_().startswith("<iframe ")
