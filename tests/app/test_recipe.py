"""The lines that "Copy as Python" gives: run, they draw the very matrix that is on the screen."""

import os

import numpy as np
import pytest

from attnviz.bundle.reading import read_bundle
from attnviz.figures.theme import Figure
from tests.app.screen import component as component_of
from tests.app.screen import figure, numbers, open_bundle, open_page, until_drawn
from tests.tiers import first_gates


def lines_of(at):
    return component_of(at, "save_picture")["python"]


def run(lines, monkeypatch):
    """The figure that the lines draw, and whether they show it."""
    shown = []
    monkeypatch.setattr(Figure, "show", lambda self: shown.append(self))
    names = {}
    exec(lines, names)
    assert shown == [names["figure"]]
    return names["figure"]


def assert_same(at, drawn):
    shown = figure(at, "matrix")
    np.testing.assert_array_equal(numbers(shown["data"][0]["z"]), np.array(drawn.data[0].z))
    assert list(drawn.data[0].x) == shown["data"][0]["x"]
    assert list(drawn.data[0].y) == shown["data"][0]["y"]
    assert len(drawn.layout.shapes) == len(shown["layout"].get("shapes", []))
    for ours, theirs in zip(drawn.layout.shapes, shown["layout"].get("shapes", []), strict=True):
        assert (ours.x0, ours.y0) == (theirs["x0"], theirs["y0"])


@pytest.mark.parametrize(
    "params",
    first_gates(
        {"second": "Playing outdoors.", "sentences": "A → B"},
        {},
        {"layer": 1, "head": 7, "query": 2, "key": 4},
        {"show": "scores"},
        {"show": "norms", "colour": "logarithmic"},
        {"show": "rollout", "layer": 5},
        {"show": "alti", "layer": 2, "special": "renormalised"},
        {"show": "value_zeroing", "layer": 4},
        {"text": "Unbelievable doorknobs opened.", "unit": "words"},
        {"special": "hidden"},
        {"special": "renormalised", "unit": "words", "text": "Unbelievable doorknobs opened."},
        {"second": "Playing outdoors.", "sentences": "B → B", "special": "renormalised", "unit": "words"},
        {"masked": "5,7"},
        {"text": "door " * 600, "cut": "1"},
        {"text": '""" + __import__(\'os\').abort() #\\', "second": "'''\n{text}"},
        {"text": "עברית \u2028 \x00 ‮abc"},
    ),
    ids=str,
)
def test_draw_the_matrix_on_the_screen(params, monkeypatch):
    at = open_page(**{"model": "all-MiniLM-L6-v2"} | params)
    lines = lines_of(at)
    assert_same(
        open_page("pages/door_experiment.py", **{"model": "all-MiniLM-L6-v2"} | params),
        run(lines, monkeypatch),
    )


def test_are_few_where_nothing_is_special(door_trace):
    words = door_trace.weights(3, 1)[1:-1, 1:-1].max()
    lines = lines_of(open_page()).splitlines()
    assert lines == [
        "import attnviz",
        "",
        "model = attnviz.load_model('all-MiniLM-L6-v2')  # revision 0.1.0, attnviz 0.1.0",
        "trace = model.trace('I was watching the door when it opened.')",
        "pattern = trace.pattern(3, 1)",
        f"figure = attnviz.figures.draw_pattern(pattern, largest={words:.4g}, picked=(7, 5))",
        "figure.show()",
    ]


@pytest.mark.parametrize("kind", first_gates("cross", "decoder", "encoder"))
def test_name_the_kind_of_attention(kind, checkpoint, monkeypatch):
    folder = checkpoint("bart")
    monkeypatch.setenv("ATTNVIZ_MODELS", str(folder))
    place = {"text": "the door opened", "second": "it was", "kind": kind, "unit": "words", "layer": 1}
    lines = lines_of(open_page(model=folder.name, **place))
    assert_same(open_page("pages/door_experiment.py", model=folder.name, **place), run(lines, monkeypatch))


def test_of_a_bundle_read_it(monkeypatch, tmp_path, door_bundle):
    at = open_bundle(open_page(), door_bundle)
    lines = lines_of(at)
    assert "load_model" not in lines
    (tmp_path / "bundle.zip").write_bytes(door_bundle)
    monkeypatch.chdir(tmp_path)
    at.switch_page("pages/door_experiment.py").run()
    assert_same(at, run(lines, monkeypatch))
    assert read_bundle(door_bundle).layer == 2
    assert os.listdir(tmp_path) == ["bundle.zip"]


@pytest.mark.parametrize(
    "params",
    first_gates(
        {},
        {
            "method": "tsne",
            "space": "centred",
            "perplexity": 3,
            "seed": 4,
            "iterations": 300,
            "metric": "euclidean",
        },
        {
            "method": "pca",
            "dimensions": 3,
            "values": 1,
            "tint": "position",
            "query": 2,
            "key": 4,
            "lines_of": "key",
        },
        {"method": "mds", "layer": 1, "head": 7, "space": "raw"},
    ),
    ids=str,
)
def test_draw_the_map_on_the_screen(params, monkeypatch):
    at = open_page("pages/query_key_map.py", model="all-MiniLM-L6-v2", **params)
    drawn = run(lines_of(at), monkeypatch)
    shown = figure(at, "space_map")["data"]
    assert len(drawn.data) == len(shown)
    for ours, theirs in zip(drawn.data, shown, strict=True):
        if theirs.get("x") is not None:
            np.testing.assert_array_equal(np.array(ours.x, dtype=object), numbers(theirs["x"]))
            np.testing.assert_array_equal(np.array(ours.y, dtype=object), numbers(theirs["y"]))


@pytest.mark.nightly
@pytest.mark.parametrize("params", [{}, {"ablation": "mean", "outcome": "state:8"}], ids=str)
def test_switch_off_the_heads_on_the_screen(params, capsys):
    at = until_drawn(open_page("pages/effects.py", **params))
    exec(lines_of(at), {})
    listed = [row["text"] for row in component_of(at, "effects_ranking")["rows"]]
    printed = capsys.readouterr().out.splitlines()
    assert len(printed) == len(listed) == 8
    for line, text in zip(printed, listed, strict=True):
        assert line.startswith(f"{text.lower()} ")


@pytest.mark.nightly
@pytest.mark.parametrize(
    "chosen",
    [
        {},
        {"patch_carried": "attention"},
        {"patch_carried": "heads"},
        {"patch_carried": "key", "patch_at": "each", "layer": 0},
        {"patch_carried": "pattern", "patch_at": "selected", "query": 0},
        {"patch_carried": "heads", "patch_path": "value", "layer": 3, "head": 1},
        {"patch_carried": "heads", "patch_path": "outcome", "patch_at": "selected"},
    ],
    ids=str,
)
def test_carry_over_the_states_on_the_screen(chosen, monkeypatch):
    at = until_drawn(open_page("pages/patching.py", **chosen))
    shown = []
    monkeypatch.setattr(Figure, "show", lambda self: shown.append(self))
    exec(lines_of(at), {})
    drawn = numbers(figure(at, "patching_shares")["data"][0]["z"])
    np.testing.assert_allclose(np.array(shown[0].data[0].z), drawn, atol=1e-4)
