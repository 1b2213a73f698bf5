"""Zooming in and out of a large comparison."""

from contextlib import nullcontext
from types import SimpleNamespace

import pytest

from ui.rooms.compare import zoom


@pytest.mark.parametrize(
    ("around", "lengths", "disabled"),
    [
        (48, {"Zoom in": 24, "Zoom out": None, "All cells": None}, []),
        (12, {"Zoom in": 12, "Zoom out": 24, "All cells": None}, ["Zoom in"]),
        (None, {"Zoom in": 48, "Zoom out": None, "All cells": None}, ["Zoom out", "All cells"]),
        (200, {"Zoom in": 48, "Zoom out": None, "All cells": None}, ["Zoom out", "All cells"]),
    ],
)
def test_steps_of_the_zoom(around, lengths, disabled, monkeypatch):
    """Of 96 tokens; all cells leave no zoom in the link."""
    buttons = {}
    monkeypatch.setattr(zoom.st, "container", lambda **named: nullcontext())
    monkeypatch.setattr(zoom.st, "button", lambda label, **named: buttons.update({label: named}))
    zoom.zoom_buttons(SimpleNamespace(queries=range(96), keys=range(5)), around, key="k")
    assert {label: named["kwargs"]["other_zoom"] for label, named in buttons.items()} == lengths
    assert [label for label, named in buttons.items() if named["disabled"]] == disabled
