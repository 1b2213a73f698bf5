"""A bundle from the command line has no settings of a page."""

from dataclasses import replace
from types import SimpleNamespace

from tests.app.views import trace_of
from ui.choice import state
from ui.choice.selection import Selection
from ui.shell import bundles


def test_a_bundle_without_settings_is_read_in_its_template(monkeypatch):
    here = state.Chosen(selection=Selection(model="m", text="A cat."))
    monkeypatch.setattr(state, "of_session", lambda kind: here)
    trace = trace_of(0)
    trace = replace(trace, tokens=replace(trace.tokens, template="chat"))
    view = {
        "kind": "encoder",
        "show": "weights",
        "colour": "linear",
        "layer": 0,
        "head": 0,
        "query": 1,
        "key": 2,
    }
    selection, notices = bundles._selection(SimpleNamespace(trace=trace, settings={}, **view), "0" * 64)
    assert selection.template == "chat" and notices == []
