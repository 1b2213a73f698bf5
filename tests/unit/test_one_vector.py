"""One vector beside a context vector: lines as wide as weights, the last state always there, gaps dotted."""

import numpy as np
import pytest

from attnviz.figures.one_vector import MOST_DRAWN, draw_one_vector, drawn_tokens, left_out
from attnviz.figures.theme import DARK, LIGHT
from attnviz.records import Axis
from tests import hand_made

LABELS = ["[CLS]", "the", "door", "opened", "[SEP]"]
WEIGHTS = np.array([0.0, 0.125, 0.5, 0.25, 0.125], dtype=np.float32)


def axis(labels):
    return Axis.of(hand_made.tokens(labels))


def lines_to_context(figure):
    return [shape for shape in figure.layout.shapes if shape.type == "line" and shape.line.dash is None]


@pytest.mark.parametrize(("theme", "palette"), [("light", LIGHT), ("dark", DARK)])
def test_lines_are_as_wide_as_weights(theme, palette):
    keys = axis(LABELS)
    figure = draw_one_vector(WEIGHTS, keys, (keys, 3), picked=2, theme=theme)
    lines = lines_to_context(figure)
    assert [line.x0 for line in lines] == [1, 2, 3, 4]  # a weight of 0 has no line
    np.testing.assert_allclose(
        [line.line.width for line in lines], [0.6 + 13.4 * weight for weight in WEIGHTS[1:]]
    )
    assert [line.line.color for line in lines] == [
        palette.value,
        palette.picked,
        palette.value,
        palette.value,
    ]
    np.testing.assert_array_equal(figure.data[0].customdata, WEIGHTS)


def test_every_state_and_the_two_vectors_are_named():
    keys = axis(LABELS)
    texts = [
        annotation.text
        for annotation in draw_one_vector(WEIGHTS, keys, (keys, 3)).layout.annotations
        if annotation.text
    ]
    assert [text for text in texts if text[0] == "h"] == ["h1", "h2", "h3", "h4", "h5"]
    assert {"<b>one vector</b>", "<b>context vector for opened·3</b>"} <= set(texts)
    assert {"[CLS]·0", "door·2"} <= set(texts)
    assert {"0.500", "0.250", "0.125"} <= set(texts)


def test_an_arrow_joins_each_state_to_the_next():
    keys = axis(LABELS)
    figure = draw_one_vector(WEIGHTS, keys, (keys, 3))
    level = [
        annotation
        for annotation in figure.layout.annotations
        if annotation.showarrow and annotation.y == annotation.ay
    ]
    assert [(round(arrow.ax), round(arrow.x)) for arrow in level][:4] == [(0, 1), (1, 2), (2, 3), (3, 4)]


def test_of_a_long_text_the_largest_weights_and_the_last_state_are_drawn():
    n = 101
    weights = np.arange(n, 0, -1) / (n * (n + 1) / 2)  # falling, so that the last token has the smallest
    np.testing.assert_array_equal(drawn_tokens(weights), [*range(23), 100])
    keys = axis(["a"] * n)
    figure = draw_one_vector(weights, keys, (keys, 50))
    assert len(figure.data[0].x) == MOST_DRAWN == 24
    dotted = [shape for shape in figure.layout.shapes if shape.type == "line" and shape.line.dash == "dot"]
    assert [(line.x0 > 22, line.x1 < 23) for line in dotted] == [(True, True)]  # one gap, before the last
    share = (sum(range(79, 102)) + 1) / (n * (n + 1) / 2)
    assert f"24 of {n} tokens" in left_out(weights) and f"{100 * share:.1f}%" in left_out(weights)
    assert left_out(WEIGHTS) == ""


def test_text_is_large_enough():
    keys = axis(LABELS)
    sizes = [
        annotation.font.size
        for annotation in draw_one_vector(WEIGHTS, keys, (keys, 0)).layout.annotations
        if annotation.text
    ]
    assert min(sizes) >= 12
    for n in (1, 2, 24, 25):
        axis_of_n = axis(["a"] * n)
        assert len(draw_one_vector(np.full(n, 1 / n), axis_of_n, (axis_of_n, 0)).data[0].x) == min(n, 24)
