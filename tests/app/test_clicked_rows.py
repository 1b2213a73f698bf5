"""Lists, grids and chips: a click selects what was clicked. AppTest cannot click in a component, so a button stands for each
click."""

import re
import sys

import pytest
import streamlit as st

from tests.app.screen import DOOR, assert_no_exception, component, open_page, until_drawn
from ui.components import head_grid, ranked_list, sent, token_strip  # noqa: F401

PLACE = {"text": DOOR, "layer": 3, "head": 1, "query": 7, "key": 5}
SHORT = {"text": "it opened", "layer": 3, "head": 1, "query": 1, "key": 2}
ENTRIES = {"ranked_list": "rows", "token_strip": "tokens", "head_grid": "cells"}
"""By component, what can be clicked: rows, chips, rows of cells."""
NO_HEAD = re.compile("MLP|biases|Embedding")
"""Parts of the model that cannot be selected."""
SECOND = 1
"""The head of each layer of a grid that has a button."""


@pytest.fixture(autouse=True)
def buttons(monkeypatch):
    clicked = {}
    for name in ENTRIES:
        module = sys.modules[f"ui.components.{name}"]

        def with_buttons(*, key, data, mount=module._mount, name=name, **named):
            mount(key=key, data=data, **named)
            if take := named.get("on_pick_change"):

                def click(at):
                    clicked[key] = [at, SECOND] if name == "head_grid" else at
                    take()

                for at in range(len(data[ENTRIES[name]])):
                    st.button("select", key=f"{key} {at}", on_click=click, args=(at,))

        monkeypatch.setattr(module, "_mount", with_buttons)
    for name in ("sent", "ranked_list"):
        monkeypatch.setattr(sys.modules[f"ui.components.{name}"], "sent", lambda key, _: clicked.get(key))


def click(at, key, entry):
    at.button(key=f"{key} {entry}").click().run()
    until_drawn(at)
    assert_no_exception(at)


@pytest.mark.parametrize(
    ("page", "params", "keys"),
    [
        ("compare", PLACE, ("changes", "changed_rows")),
        ("find_a_head", PLACE, ("best_heads", "best_pairs")),
        ("lens", PLACE, ("lens_layers", "lens_parts", "lens_sources")),
        ("effects", SHORT, ("effects_ranking",)),
    ],
)
def test_the_row_of_a_list(page, params, keys):
    at = until_drawn(open_page(f"pages/{page}.py", **params))
    for key in keys:
        rows = component(at, key)["rows"]
        can_be_selected = [entry for entry, row in enumerate(rows) if not NO_HEAD.search(row["text"])]
        for entry in (can_be_selected[0], can_be_selected[-1]):
            row = component(at, key)["rows"][entry]
            click(at, key, entry)
            [selected] = [listed for listed in component(at, key)["rows"] if listed["picked"]]
            assert (selected["text"], selected["key"]) == (row["text"], row["key"])


@pytest.mark.parametrize(
    ("page", "key"), [("lens", "lens_heads"), ("effects", "effects_grid"), ("all_heads", "head_grid")]
)
def test_the_cell_of_a_grid(page, key):
    at = until_drawn(open_page(f"pages/{page}.py", **SHORT))
    for layer in (0, 5):
        click(at, key, layer)
        assert component(at, key)["picked"] == [layer, SECOND]


@pytest.mark.parametrize("page", ["step_by_step", "door_experiment"])
def test_the_chip_of_a_token(page):
    at = until_drawn(open_page(f"pages/{page}.py", **PLACE))
    for token in (0, 3):
        click(at, "token_strip", token)
        chips = component(at, "token_strip")["tokens"]
        assert [chip["position"] for chip in chips if chip.get("query")] == [token]
