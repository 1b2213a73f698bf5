"""The page “Long text”: what it shows of the bundled language model's heads, against loops over its matrices."""

import numpy as np
import pytest

from attnviz.model.continuation import generate
from tests.app.screen import (
    assert_no_exception,
    captions,
    component,
    errors,
    facts,
    figure,
    finding,
    numbers,
    open_page,
    shown,
    until_drawn,
)
from ui.runtime import cache, jobs

PAGE = "pages/long_text.py"
TEXT = (
    "It rained all morning. The children sat by the window and counted the drops. Their mother baked bread, and the "
    "whole house smelled of it. At noon the sun came out."
)
NEEDLE = "The key to the cellar lies under the blue stone."
pytestmark = pytest.mark.slow


def test_a_head_s_profile_the_needle_s_heads_and_the_answer_without_them(smollm2):
    at = open_page(PAGE, model="SmolLM2-135M-Instruct", text=TEXT, layer=18, head=6)
    assert_no_exception(at)
    trace = smollm2.trace(TEXT)
    weights, n = trace.weights(18, 6), len(trace.tokens)
    by_bin = np.zeros(n.bit_length() + 1)
    for query, key in np.ndindex(n, n):
        by_bin[(query - key).bit_length() if query > key else 0] += weights[query, key] / n
    drawn = numbers(figure(at, "long_profile")["data"][0]["y"])
    np.testing.assert_allclose(drawn, by_bin[: len(drawn)], atol=1e-4)
    assert abs(drawn.sum() - 1) < 1e-3
    first = f"{100 * weights[:, 0].mean():.1f}%"
    near = f"{100 * sum(weights[q, max(0, q - 15) : q + 1].sum() for q in range(n)) / n:.1f}%"
    assert facts(finding(at)).has(first, near)
    cell = component(at, "long_grid")["cells"][18][6]
    assert cell["label"] == f"{weights[:, 0].mean():.2f}" and first in cell["text"]

    at.button(key="long_needle_act").click()
    until_drawn(at.run())
    assert not errors(at)
    rows = component(at, "long_needle_ranking")["rows"]
    assert len(rows) == 8 and shown(at)["head"] == "6"
    best = figure(at, "long_needle")["data"][0]
    layer, head = best["customdata"][0]
    assert facts(finding(at)).heads[0] == (layer, head)
    cut = TEXT.index("Their")
    half = np.isclose(numbers(best["x"]), 100 * cut / len(TEXT), atol=0.01).tolist().index(True)
    text = f"{TEXT[:cut]}{NEEDLE} {TEXT[cut:]}\n\nThe key to the cellar lies"
    written = generate(smollm2, text, n_tokens=4)
    start = len(smollm2.tokenize(TEXT[:cut].strip()).ids)
    stop = len(smollm2.tokenize(TEXT[:cut] + NEEDLE).ids)
    asked = written.trace.weights(layer, head)[written.n_read - 1 : written.n_read + 3]
    assert numbers(best["y"])[half] == pytest.approx(asked[:, start:stop].sum(axis=1).mean(), abs=1e-3)
    assert "among the best 5 at the other depths" in captions(at)

    at.button(key="long_off_act").click()
    until_drawn(at.run())
    bars = figure(at, "long_off")
    chance = float(written.probabilities.prod())
    assert bars["layout"]["shapes"][0]["y0"] == pytest.approx(chance, rel=0.01)
    assert numbers(bars["data"][0]["y"])[0] < chance and len(numbers(bars["data"][0]["y"])) == 6


def test_an_encoder_ranks_its_heads_and_answers_nothing():
    at = open_page(PAGE)
    at.button(key="long_needle_act").click()
    until_drawn(at.run())
    assert_no_exception(at)
    assert "predicts no next token" in captions(at) and "long_off_act" not in {
        button.key for button in at.button
    }
    assert len(component(at, "long_needle_ranking")["rows"]) == 8


def test_what_is_found_while_the_page_is_drawn_is_shown(monkeypatch):
    at = open_page(PAGE)
    reach = cache.reach

    def found_meanwhile(*given):
        for (name, _), work in list(jobs._kept.items()):
            if name == "needle":
                work.wait()
        return reach(*given)

    monkeypatch.setattr(cache, "reach", found_meanwhile)
    at.button(key="long_needle_act").click().run()
    assert_no_exception(at)
    assert len(component(at, "long_needle_ranking")["rows"]) == 8
    assert "looks at the needle most" in finding(at)


def test_a_needle_that_is_empty_is_refused():
    at = open_page(PAGE, long_needle=" ")
    at.button(key="long_needle_act").click()
    until_drawn(at.run())
    assert "Write a sentence to be found" in " ".join(errors(at))
