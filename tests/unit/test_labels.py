"""Tokens in figures are shown as they are, shortened where there is no room."""

import json

import numpy as np
import pytest

import attnviz
from attnviz.figures import draw_pattern, draw_projection, draw_ranking
from attnviz.figures.labels import label_at, literal, shortened
from attnviz.model.model import Model


def test_long_labels_lose_their_middle() -> None:
    assert shortened("[unused12345]") == "[unused12345]"
    assert shortened("antidisestablishmentarianism") == "antidises…nism"
    assert len(shortened("x" * 40)) == 14
    assert shortened("x" * 40, 40) == "x" * 40


HOSTILE = ["<script>", "<b>", '<a href="x">', "$x^2$", "%{x}", "&amp;", "**md**"]


@pytest.mark.parametrize("text", HOSTILE)
def test_plotly_gets_no_markup_and_no_formula(text: str) -> None:
    safe = literal(text)
    assert "<" not in safe and ">" not in safe and "$" not in safe
    unescaped = safe.replace("&#36;", "$").replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
    assert unescaped == text


def test_hostile_tokens_are_safe_in_every_figure(embedded: Model) -> None:
    trace = embedded.trace("<script> $x$ <b>")
    pattern, projection = trace.pattern(0, 0), attnviz.project(trace, 0, 0, iterations=250)
    figures = [
        draw_pattern(pattern),
        draw_ranking(pattern, 1),
        draw_projection(projection, picked=(1, 2)),
    ]
    for figure in figures:
        spec = json.loads(figure.to_json())
        texts = [
            text
            for part in spec["data"]
            for name in ("x", "y", "text", "hovertext")
            for text in (part.get(name) if isinstance(part.get(name), list) else [])
            if isinstance(text, str)
        ]
        assert any("&lt;" in text for text in texts)
        assert not any(mark in text for text in texts for mark in "<>$")


def test_a_label_with_its_position_keeps_its_order_beside_text_from_right_to_left():
    assert label_at("door", 5) == "door·5"
    assert label_at("דלת", np.int64(5)) == "\u2068דלת\u2069·5"  # between FSI and PDI
