"""History: every bar is the formula's on the model's own vectors, and the last row the model's own weights."""

import numpy as np
import pytest

from tests import numpy_attention
from tests.app.screen import DOOR, assert_no_exception, errors, figure, numbers, open_page, unescaped

PAGE = "pages/history.py"


def bars(at) -> dict[str, np.ndarray]:
    return {one["name"]: numbers(one["y"]) for one in figure(at, "history_weights")["data"]}


def words(at) -> str:
    return " ".join(unescaped(one.value) for one in [*at.markdown, *at.caption])


@pytest.mark.parametrize(
    ("text", "layer", "head", "query", "key"), [(DOOR, 3, 1, 7, 5), ("an old door", 5, 7, 3, 3)]
)
def test_bars_are_the_formulas(text, layer, head, query, key, embedded):
    at = open_page(PAGE, text=text, layer=layer, head=head, query=query, key=key)
    assert_no_exception(at)
    trace = embedded.trace(text)
    scaled, dot = (
        numpy_attention.weights(trace.query(layer, head), trace.key(layer, head), scale)[query]
        for scale in (32**-0.5, 1.0)
    )
    found, n = bars(at), len(trace.tokens)
    np.testing.assert_allclose(found["2017: scaled dot product"], scaled, atol=1e-6)
    np.testing.assert_allclose(found["2015: dot product, no matrix at all"], dot, atol=2e-5)
    np.testing.assert_allclose(found["2014: one fixed vector"], 1 / n, atol=1e-7)
    said = f"{100 * scaled[key]:.1f}% of its attention by scaled dot products; one fixed vector gives every token"
    assert f"{said} {100 / n:.1f}%" in words(at)
    assert f"goes from {100 * scaled.max():.1f}% to {100 * dot.max():.1f}%" in words(at)
    lines = [
        one for one in figure(at, "history_one_vector")["layout"]["shapes"] if one["type"] == "line"
    ]  # to the context vector; of a short text no token is left out
    np.testing.assert_allclose([one["line"]["width"] for one in lines], 0.6 + 13.4 * scaled, atol=1e-4)
    assert "Recomputed here: the last row. Largest difference from the trace's weights" in words(at)
    assert "Checked" not in words(at)
    table = at.dataframe[0].value.set_index("way")
    assert table["multiplications"].tolist() == [
        f"{one:,}"
        for one in (0, 2 * n * 1024 + n * n * 32, n * 1024 + n * n * 32, n * n * 32, n * 32 + n * n * 32)
    ]
    assert table["to learn"].tolist() == ["0", "2,080", "1,024", "0", "0"]
    assert table.loc["fixed vector", "changes for the next query"] == "0.0%"
    contexts = numbers(figure(at, "history_contexts")["data"][0]["z"])
    np.testing.assert_allclose(contexts[-1], trace.output(layer, head)[query], atol=1e-5)


def test_another_seed_draws_other_matrices_only():
    first, second = (bars(open_page(PAGE, seed=seed)) for seed in (0, 1))
    changed = {name for name in first if np.abs(first[name] - second[name]).max() > 1e-3}
    assert {name[:13] for name in changed} == {"2014: additiv", "2015: general"}


@pytest.mark.parametrize(
    ("family", "kind", "said"),
    [
        ("t5", "encoder", "departs from the formula of 2017: it multiplies by 1 and adds a bias"),
        ("bart", "cross", "Recomputed here: the last row. Largest difference from the trace's weights"),
        ("gpt2", "decoder", "Recomputed here: the last row. Largest difference from the trace's weights"),
    ],
)
def test_other_families(family, kind, said, checkpoint, monkeypatch):
    folder = checkpoint(family)
    monkeypatch.setenv("ATTNVIZ_MODELS", str(folder))
    second = "" if family == "gpt2" else "the door"
    at = open_page(PAGE, model=folder.name, kind=kind, text="the cat sat", second=second)
    assert_no_exception(at)
    assert errors(at) == []
    assert said in words(at)


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ({"text": DOOR, "layer": 3, "head": 1, "query": 7}, "this row hardly changes"),
        ({"text": DOOR, "layer": 0, "head": 3, "query": 3}, "concentrates on fewer keys"),
    ],
)
def test_the_headline_says_what_the_scale_does(place, said):
    assert said in words(open_page(PAGE, **place))


def test_a_long_text_says_what_is_left_out():
    at = open_page(PAGE, text="the river flooded the old market " * 16)
    assert_no_exception(at)
    assert "24 of 98 tokens are drawn" in words(at)
