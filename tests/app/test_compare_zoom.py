"""Zooming in and out of a large comparison."""

from contextlib import nullcontext
from types import SimpleNamespace

from ui.rooms.compare import zoom


def test_zooming_out_to_all_cells_leaves_no_zoom_in_the_link(monkeypatch):
    steps = {}
    monkeypatch.setattr(zoom.st, "container", lambda **named: nullcontext())
    monkeypatch.setattr(
        zoom.st, "button", lambda label, **named: steps.update({label: named["kwargs"]["other_zoom"]})
    )
    zoom.zoom_buttons(SimpleNamespace(queries=range(96), keys=range(96)), 48, key="k")
    assert steps == {"Zoom in": 24, "Zoom out": None, "All cells": None}
