"""History: every bar is the formula's on the model's own vectors, and the last row the model's own weights."""

import numpy as np
import pytest

from tests import numpy_attention
from tests.app.screen import DOOR, Facts, assert_no_exception, errors, facts, figure, numbers, open_page
from ui.rooms.how_it_works.history import TITLES

PAGE = "pages/history.py"


def bars(at) -> dict[str, np.ndarray]:
    return {bar["name"]: numbers(bar["y"]) for bar in figure(at, "history_weights")["data"]}


def recomputed(at) -> list[str]:
    """The lines that say how far what was worked out here is from the model's numbers."""
    return [line.value for line in at.markdown if line.value.startswith(":material/calculate:")]


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
    drawn, n = bars(at), len(trace.tokens)
    np.testing.assert_allclose(drawn[TITLES["scaled"]], scaled, atol=1e-6)
    np.testing.assert_allclose(drawn[TITLES["dot"]], dot, atol=2e-5)
    np.testing.assert_allclose(drawn[TITLES["fixed"]], 1 / n, atol=1e-7)
    labels = trace.tokens.labels
    by_scaled_and_one, largest = (
        tuple(f"{100 * share:.1f}%" for share in shares)
        for shares in ((scaled[key], 1 / n), (scaled.max(), dot.max()))
    )
    named = Facts((labels[query], labels[key]), numbers=by_scaled_and_one)
    assert named in [facts(line.value) for line in at.markdown]
    assert any(facts(line.value).has(*largest) for line in at.caption)
    lines = [
        shape for shape in figure(at, "history_one_vector")["layout"]["shapes"] if shape["type"] == "line"
    ]  # to the context vector; of a short text no token is left out
    np.testing.assert_allclose([line["line"]["width"] for line in lines], 0.6 + 13.4 * scaled, atol=1e-4)
    assert recomputed(at)
    table = at.dataframe[0].value.set_index("way")
    assert table["multiplications"].tolist() == [
        f"{count:,}"
        for count in (0, 2 * n * 1024 + n * n * 32, n * 1024 + n * n * 32, n * n * 32, n * 32 + n * n * 32)
    ]
    assert table["to learn"].tolist() == ["0", "2,080", "1,024", "0", "0"]
    assert table.loc["fixed vector", "changes for the next query"] == "0.0%"
    contexts = numbers(figure(at, "history_contexts")["data"][0]["z"])
    np.testing.assert_allclose(contexts[-1], trace.output(layer, head)[query], atol=1e-5)


def test_another_seed_draws_other_matrices_only():
    first, second = (bars(open_page(PAGE, seed=seed)) for seed in (0, 1))
    changed = {name for name in first if np.abs(first[name] - second[name]).max() > 1e-3}
    assert changed == {TITLES["additive"], TITLES["general"]}


@pytest.mark.parametrize(
    ("family", "kind", "has_the_formula"),
    [("t5", "encoder", False), ("bart", "cross", True), ("gpt2", "decoder", True)],
)
def test_other_families(family, kind, has_the_formula, checkpoint, monkeypatch):
    folder = checkpoint(family)
    monkeypatch.setenv("ATTNVIZ_MODELS", str(folder))
    second = "" if family == "gpt2" else "the door"
    at = open_page(PAGE, model=folder.name, kind=kind, text="the cat sat", second=second)
    assert_no_exception(at)
    assert errors(at) == []
    assert bool(recomputed(at)) == has_the_formula
    departs = [line.value for line in at.markdown if facts(line.value).numbers[:2] == ("2017", "1")]
    assert len(departs) == (not has_the_formula)  # the year of the formula, and T5's scale
    assert all("bias" in line for line in departs)


def test_a_long_text_says_what_is_left_out():
    at = open_page(PAGE, text="the river flooded the old market " * 16)
    assert_no_exception(at)
    assert any(facts(line.value).has("24", "98") for line in at.caption)
