"""The bars of a picked pair are its vectors and products, and the sum of them ends at the score."""

from dataclasses import replace

import numpy as np
import pytest

from attnviz.figures import draw_pair
from attnviz.figures.theme import DARK, LIGHT
from attnviz.heads.score import Score, score_of

HAND = Score(
    query=np.array([1.0, -2.0, 3.0], dtype=np.float32),
    key=np.array([4.0, 1.0, 0.5], dtype=np.float32),
    scale=0.5,
    bias=0.0,
    allowed=True,
)
"""Its dimensions add 2, -1 and 0.75."""


def panels(figure) -> list[list[float]]:
    """Heights in the four panels, from top to bottom."""
    top_down = sorted(
        figure.data, key=lambda trace: -figure.layout[f"yaxis{(trace.yaxis or 'y')[1:]}"].domain[0]
    )
    return [[*map(float, trace.y)] for trace in top_down]


def ticks(figure) -> dict[int, str]:
    return dict(zip(figure.layout.xaxis.tickvals, figure.layout.xaxis.ticktext, strict=True))


def test_dimensions_in_their_own_order() -> None:
    figure = draw_pair(HAND)
    assert panels(figure) == [[1, -2, 3], [4, 1, 0.5], [2, -1, 0.75], [2, 1, 1.75]]
    assert ticks(figure) == {0: "0", 1: "1", 2: "2"}
    assert [annotation.text for annotation in figure.layout.annotations] == [
        "query",
        "key",
        "query × key × 0.5",
        "sum so far, up to the score 1.75",
    ]


def test_the_largest_first_whatever_its_sign() -> None:
    figure = draw_pair(replace(HAND, key=np.array([1.0, 4.0, 1.0], dtype=np.float32)), largest_first=True)
    # They add 0.5, -4 and 1.5.
    assert panels(figure) == [[-2, 3, 1], [4, 1, 1], [-4, 1.5, 0.5], [-4, -2.5, -2]]
    assert ticks(figure) == {0: "1", 1: "2", 2: "0"}


def test_a_bias_is_added_last_and_no_dimension() -> None:
    for largest_first in (False, True):
        figure = draw_pair(replace(HAND, bias=-9.0), largest_first=largest_first)
        query, key, terms, sums = panels(figure)
        assert len(query) == len(key) == 3
        assert (terms[-1], sums[-1]) == (-9.0, -7.25)
        assert ticks(figure)[3] == "bias"
        assert figure.layout.annotations[3].text.endswith("−7.25")


def test_query_and_key_are_drawn_to_one_scale() -> None:
    layout = draw_pair(HAND).layout
    assert layout.yaxis.range == layout.yaxis2.range
    assert layout.yaxis.range[0] == -layout.yaxis.range[1] < -4


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_query_and_key_have_their_colours(theme) -> None:
    palette = LIGHT if theme == "light" else DARK
    query, key = draw_pair(HAND, theme=theme).data[:2]
    assert (query.marker.color, key.marker.color) == (palette.query, palette.key)


@pytest.mark.parametrize("n_dimension", [5, 25, 32, 64, 128])
@pytest.mark.parametrize("bias", [0.0, 1.0])
def test_names_of_dimensions_have_room_on_a_phone(n_dimension, bias) -> None:
    random = np.random.default_rng(0)
    vectors = random.normal(size=(2, n_dimension)).astype(np.float32)
    figure = draw_pair(Score(query=vectors[0], key=vectors[1], scale=0.1, bias=bias, allowed=True))
    names = ticks(figure)
    places = np.array(sorted(names))
    lowest, highest = figure.layout.xaxis.range
    px = 320 / (highest - lowest)  # what the axes leave of 400 px
    widths = np.array([7.0 * len(names[place]) for place in places])
    assert ((np.diff(places) * px) > (widths[1:] + widths[:-1]) / 2).all()
    assert len(names) >= min(n_dimension, 7)


def test_hover_says_what_a_dimension_adds(door_trace) -> None:
    score = score_of(door_trace, 3, 1, 7, 5)
    terms = draw_pair(score, largest_first=True).data[2]
    first = int(np.abs(score.query * score.key).argmax())
    assert terms.customdata[0][0] == str(first)
    assert terms.y[0] == pytest.approx(float(score.query[first] * score.key[first] * score.scale))
    assert panels(draw_pair(score))[3][-1] == pytest.approx(float(door_trace.scores(3, 1)[7, 5]), abs=1e-5)
