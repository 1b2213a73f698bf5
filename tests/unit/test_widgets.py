"""Tables of which a row can be selected."""

import pytest

from ui.choice import state, widgets


@pytest.mark.parametrize(("picked", "marked"), [("b", [1]), ("nothing", [])])
def test_a_row_that_is_selected_stands_for_what_it_shows(monkeypatch, picked, marked):
    ties, taken, held = [], [], []

    def tie(key, value, changed):
        ties.append(value)
        return {"key": key, "on_change": changed}

    monkeypatch.setattr(widgets, "tie", tie)
    monkeypatch.setattr(state, "hold", lambda: held.append(True))
    given = widgets.tie_row("table", ["a", "b", "c"], picked, taken.append)
    assert (given["key"], given["selection_mode"]) == ("table", "single-row")
    assert ties == [{"selection": {"rows": marked, "columns": [], "cells": []}}]
    for selected in (
        {"rows": [2], "columns": [0]},
        {"rows": [], "columns": [1]},
        {"rows": [7], "columns": []},
    ):
        given["on_select"]({"selection": selected | {"cells": []}})
    assert taken == ["c"] and len(held) == 3  # the table may have been longer
