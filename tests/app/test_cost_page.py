"""Cost: what is shown is counted by hand, follows the choice and the model, and is measured when asked for."""

import numpy as np
import pytest

from tests.app.screen import (
    DOOR,
    assert_no_exception,
    charts,
    errors,
    facts,
    figure,
    numbers,
    open_bundle,
    open_page,
    shown,
    unescaped,
    until_drawn,
)
from ui.rooms.how_it_works.cost import measured as measured_cost

PAGE = "pages/cost.py"


def rows(at) -> dict[str, list[str]]:
    table = at.table[0].value
    return {row[0]: row[1:] for row in table.to_numpy().tolist()}


def words(at) -> str:
    return " ".join(unescaped(element.value) for element in [*at.markdown, *at.caption])


@pytest.mark.parametrize(
    ("text", "n", "params", "here", "million"),
    [
        # 12 heads x 11^2 cells x 4 bytes; 12 x (11 x 5 - 6) x 4; 12 x 11 x (11 + 2) x 4
        (
            DOOR,
            11,
            {},
            ["5.81\u00a0kB", "2.35\u00a0kB", "6.86\u00a0kB"],
            ["48\u00a0TB", "240\u00a0MB", "3.17\u00a0GB"],
        ),
        # 12 x 5^2 x 64 products; 12 x (5 x 3 - 2) x 64; as many as the whole
        (
            "an old door",
            5,
            {"quantity": "multiplications", "reach": 1, "layer": 5, "head": 7},
            ["19,200", "9,984", "19,200"],
            ["768\u00a0trillion", "2.3\u00a0billion", "768\u00a0trillion"],
        ),
    ],
)
def test_numbers_are_counted_by_hand(text, n, params, here, million):
    at = open_page(PAGE, text=text, **params)
    assert_no_exception(at)
    assert rows(at)[str(n)] == here
    assert rows(at)["1,000,000"] == million
    assert list(rows(at)) == [str(n), "512", "1,000", "10,000", "100,000", "1,000,000"]
    assert any(f"{here[0]}" in element.value and million[0] in element.value for element in at.markdown)
    assert any("512" in facts(line.value).numbers for line in at.markdown)  # the most that the model reads


def test_lines_are_what_the_formulas_say():
    at = open_page(PAGE, text=DOOR, quantity="cells", reach=3)
    drawn = {line["name"]: line for line in figure(at, "cost_counted")["data"]}
    n = numbers(drawn["Whole matrix"]["x"]).astype(float)
    assert (n.min(), n.max()) == (11, 10**6)
    assert 16 in n and 512 in figure(at, "cost_counted")["layout"]["shapes"][1].values()
    np.testing.assert_array_equal(numbers(drawn["Whole matrix"]["y"]), 12 * n**2)
    np.testing.assert_array_equal(numbers(drawn["Sliding window"]["y"]), 12 * (7 * n - 12))
    np.testing.assert_array_equal(numbers(drawn["Streaming"]["y"]), 12 * n * np.minimum(n, 64))


def test_another_choice_is_in_the_link():
    at = open_page(PAGE)
    at.button_group(key="field_quantity").set_value("cells").run()
    assert_no_exception(at)
    assert shown(at)["quantity"] == "cells"
    assert rows(at)["11"][0] == "1,452"


def test_measured_when_asked_for(monkeypatch):
    monkeypatch.setattr(measured_cost, "SECONDS", 0.0)  # only the first size
    at = open_page(PAGE)
    assert list(charts(at)) == ["cost_counted"]
    until_drawn(at.button(key="cost_measure").click().run())
    assert errors(at) == []
    [table] = [element.value for element in at.dataframe]
    assert table["tokens"].tolist() == ["64"]
    [difference] = table["difference"]
    assert "10⁻⁷" in difference or "10⁻⁸" in difference  # float32
    drawn = {trace["name"]: trace for trace in figure(at, "cost_bytes")["data"] if trace["mode"] == "markers"}
    assert numbers(drawn["Whole matrix"]["y"]).tolist() == [
        4 * (64 * 64 + 64 * 32)
    ]  # scores and scaled queries
    assert table["memory, whole"].tolist() == ["24.6\u00a0kB"]
    assert numbers(figure(at, "cost_seconds")["data"][0]["y"])[0] > 0
    assert any(
        line.value.startswith("**") and facts(line.value).numbers[:1] == ("64",) for line in at.markdown
    )
    assert any(facts(line.value).numbers[:1] == ("128",) for line in at.caption)  # before which it stopped


@pytest.mark.parametrize(
    ("family", "kind", "phrase"),
    [
        ("t5", "cross", "queries and"),
        ("gpt2", "decoder", "forbids 55 of the 121 cells"),
        ("llama", "decoder", "forbids"),
    ],
)
def test_other_kinds(family, kind, phrase, checkpoint, monkeypatch):
    folder = checkpoint(family)
    monkeypatch.setenv("ATTNVIZ_MODELS", str(folder))
    second = "the door" if family == "t5" else ""
    at = open_page(PAGE, model=folder.name, kind=kind, text="the cat sat", second=second)
    assert_no_exception(at)
    assert errors(at) == []
    assert phrase in words(at)
    assert ("Sliding window" in at.table[0].value.columns) == (kind != "cross")
    assert at.number_input(key="field_reach").disabled == (kind == "cross")


def test_a_bundle_has_no_limit_to_show(door_bundle, taken):
    at = open_bundle(open_page(PAGE), door_bundle)
    assert_no_exception(at)
    assert not any("512" in facts(line.value).numbers for line in at.markdown)
    assert list(rows(at)) == ["11", "1,000", "10,000", "100,000", "1,000,000"]
    lines = taken["take_csv"][1]().decode("utf-8-sig").splitlines()
    assert [line.split(",")[0] for line in lines[1:]] == ["11", "16", "1000", "10000", "100000", "1000000"]
    at.switch_page("pages/history.py").run()
    assert_no_exception(at)
    assert [line for line in at.markdown if line.value.startswith(":material/calculate:")]
    assert "model's own" not in words(at)  # nothing of a bundle was compared with a model
    assert len(numbers(figure(at, "history_weights")["data"][0]["y"])) == 11
