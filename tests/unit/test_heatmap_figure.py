"""The heatmap holds exactly the numbers of the pattern; a long text's overview and its bytes on the wire."""

from base64 import b64decode
from dataclasses import replace
from io import BytesIO

import numpy as np
import pytest
from PIL import Image

from attnviz.figures import draw_heatmap, draw_pattern, draw_ranking
from attnviz.figures.heatmap import MOST_CELLS_WITH_SCORES, MOST_DOTS, TALLEST
from attnviz.figures.theme import DARK, LIGHT, weight_scale
from attnviz.model.model import Model
from attnviz.model.trace import Trace
from attnviz.records import Axis
from tests import hand_made

WIRE_BUDGET = 1_500_000  # bytes; DESIGN's budget for the heatmap of 512 tokens


def test_heatmap_holds_the_weights_with_queries_down_and_keys_across(pair_trace: Trace) -> None:
    figure = draw_heatmap(pair_trace, 2, 5)
    (cells,) = figure.data
    np.testing.assert_array_equal(cells.z, pair_trace.weights(2, 5))
    np.testing.assert_array_equal(cells.customdata, pair_trace.scores(2, 5))
    assert list(cells.x) == list(cells.y)
    assert cells.x[2] == "cat·2" and cells.x[5] == "cat·5"
    assert figure.layout.xaxis.range == (-0.5, 9.5)
    assert figure.layout.yaxis.range == (9.5, -0.5)
    assert figure.layout.yaxis.scaleanchor == "x"
    assert figure.layout.xaxis.title.text == "key (token·position)"  # as "cat·2"
    assert figure.layout.yaxis.title.text == "query"


def test_heatmap_of_scores(pair_trace: Trace) -> None:
    (cells,) = draw_heatmap(pair_trace, 2, 5, show="scores").data
    np.testing.assert_array_equal(cells.z, pair_trace.scores(2, 5))
    np.testing.assert_array_equal(cells.customdata, pair_trace.weights(2, 5))
    assert "score %{z:.3g}" in cells.hovertemplate
    assert "weight %{customdata:.3g}" in cells.hovertemplate


def test_masked_cells_are_empty(tiny_model) -> None:
    trace = tiny_model("gpt2").trace("the cat sat")
    (cells,) = draw_heatmap(trace, 0, 0).data
    above = np.triu_indices(len(trace.tokens), k=1)
    assert np.isnan(cells.z[above]).all()
    assert not np.isnan(np.delete(cells.z.ravel(), np.ravel_multi_index(above, cells.z.shape))).any()
    assert cells.hoverongaps is False


def test_each_text_of_cross_attention_hides_its_own_special_tokens(tiny_model) -> None:
    trace = tiny_model("bart").trace("the cat sat", "it")
    assert len(trace.target_tokens) != len(trace.tokens)
    (cells,) = draw_heatmap(trace, 0, 0, kind="cross", special="hidden").data
    rows, columns = (~side.is_special for side in (trace.target_tokens, trace.tokens))
    np.testing.assert_allclose(cells.z, trace.weights(0, 0, "cross")[np.ix_(rows, columns)], rtol=1e-6)


@pytest.mark.parametrize("renormalised", [False, True])
def test_hiding_special_tokens_says_what_each_row_lost(door_trace: Trace, renormalised: bool) -> None:
    special = "renormalised" if renormalised else "hidden"
    (cells,) = draw_heatmap(door_trace, 3, 1, special=special).data
    weights = door_trace.weights(3, 1)
    expected = weights[1:-1, 1:-1]
    lost = weights[1:-1, [0, -1]].sum(axis=1)
    if renormalised:
        expected = expected / (1 - lost)[:, None]
    np.testing.assert_allclose(cells.z, expected, rtol=1e-5)
    assert cells.y[6] == f"it·7, {100 * lost[6]:.0f}% hidden"
    assert cells.x[4] == "door·5"


def test_picked_row_and_cell_are_outlined_where_they_are_shown(door_trace: Trace) -> None:
    row, cell = draw_heatmap(door_trace, 3, 1, picked=(7, 5)).layout.shapes
    assert (row.x0, row.x1, row.y0, row.y1) == (-0.5, 10.5, 6.5, 7.5)
    assert (cell.x0, cell.x1, cell.y0, cell.y1) == (4.5, 5.5, 6.5, 7.5)
    hidden = draw_heatmap(door_trace, 3, 1, picked=(7, 0), special="hidden").layout.shapes
    assert [shape.y0 for shape in hidden] == [5.5]  # the row has moved up, its key is hidden
    assert not draw_heatmap(door_trace, 3, 1, picked=(0, 5), special="hidden").layout.shapes


LONG = "the river flooded an old market twice; Paris reported 17 bridges, and nobody was surprised. "


@pytest.fixture(scope="module")
def long_trace(embedded: Model) -> Trace:
    trace = embedded.trace(LONG * 40, cut=True)
    assert len(trace.tokens) == 512
    return trace


@pytest.mark.slow
def test_512_tokens_stay_within_the_budget_on_the_wire(long_trace: Trace) -> None:
    for layer in range(6):
        for head in (layer, layer + 6):
            figure = draw_heatmap(long_trace, layer, head, picked=(155, 157))
            assert len(figure.to_json()) <= WIRE_BUDGET
    assert long_trace.weights(3, 1).size > MOST_CELLS_WITH_SCORES
    assert figure.data[0].customdata is None
    assert "score" not in figure.data[0].hovertemplate


@pytest.mark.parametrize("show", ["weights", "scores"])
def test_many_cells_are_shortened_by_what_no_reader_sees(long_trace: Trace, show) -> None:
    pattern = replace(long_trace.pattern(3, 1), allowed=np.tri(512, dtype=bool))
    cells = draw_pattern(pattern, show=show).data[0].z
    assert (np.isnan(cells) == ~pattern.allowed).all()
    numbers = getattr(pattern, show)[pattern.allowed]
    np.testing.assert_allclose(cells[pattern.allowed], numbers, rtol=2.0**-21)  # half of the last of 21 bits
    assert not (cells[pattern.allowed].view(np.uint32) % 8).any()


def dots(figure) -> np.ndarray:
    """Colours [row, column, channel] of the picture that is laid over the cells."""
    (image,) = figure.layout.images
    with Image.open(BytesIO(b64decode(image.source.removeprefix("data:image/png;base64,")))) as picture:
        return np.asarray(picture.convert("RGB")).astype(int)


@pytest.mark.parametrize("show", ["weights", "scores"])
@pytest.mark.parametrize("theme", [LIGHT, DARK])
def test_a_dot_of_the_overview_is_the_largest_of_its_block(long_trace: Trace, theme, show) -> None:
    cells = long_trace.weights(3, 1) if show == "weights" else long_trace.scores(3, 1)
    expected = np.array(
        [[cells[r : r + 3, c : c + 3].max() for c in range(0, 512, 3)] for r in range(0, 512, 3)]
    )
    low = 0 if show == "weights" else cells.min()
    places, colours = zip(*weight_scale(theme), strict=True)
    channels = np.array([[int(colour[i : i + 2], 16) for i in (1, 3, 5)] for colour in colours])
    shares = (expected - low) / (cells.max() - low)
    expected_colours = np.stack([np.interp(shares, places, channel) for channel in channels.T], axis=-1)

    figure = draw_heatmap(long_trace, 3, 1, show=show, theme="light" if theme is LIGHT else "dark")
    assert np.abs(dots(figure) - expected_colours).max() <= 2  # 256 tones
    (image,) = figure.layout.images
    assert (image.x, image.y, image.sizex, image.sizey) == (-0.5, -0.5, 513, 513)
    (words,) = figure.layout.annotations
    assert words.text == f"Overview: each dot is the largest {show[:-1]}<br>of 3 × 3 cells."


def test_an_overview_leaves_cells_empty_that_may_not_be_seen(long_trace: Trace) -> None:
    pattern = long_trace.pattern(3, 1)
    pixels = dots(draw_pattern(replace(pattern, allowed=np.tri(512, dtype=bool))))
    assert (pixels[np.triu_indices(171, k=1)] == 255).all()  # white, the light theme's background
    assert (pixels[:, 0] < 255).any(axis=-1).all()  # [CLS], which every query may see


@pytest.mark.parametrize(("n", "has_overview"), [(MOST_DOTS, False), (MOST_DOTS + 1, True)])
def test_an_overview_begins_where_cells_are_smaller_than_its_dots(n, has_overview) -> None:
    weights = np.full((1, 1, n, n), 1 / n, dtype=np.float32)
    layout = draw_pattern(hand_made.trace(weights, ["a"] * n).pattern(0, 0)).layout
    assert len(layout.images) == len(layout.annotations) == has_overview


def test_few_tokens_have_no_overview_and_cannot_be_dragged(door_trace: Trace) -> None:
    layout = draw_heatmap(door_trace, 3, 1).layout
    assert not layout.images and not layout.annotations
    assert layout.dragmode is False


def test_the_mark_of_the_picked_cell_covers_no_row(long_trace: Trace) -> None:
    figure = draw_heatmap(long_trace, 3, 1, picked=(155, 157))
    row, column, cell = figure.layout.shapes
    assert (row.xref, row.xanchor, row.y0, row.y1) == ("x domain", 1, 155, 155)
    assert 0 < row.x0 < row.x1 and row.xsizemode == "pixel"  # right of the cells
    assert (column.yref, column.yanchor, column.x0, column.x1) == ("y domain", 0, 157, 157)
    assert column.y1 < column.y0 < 0 and column.ysizemode == "pixel"  # below them
    assert (cell.xanchor, cell.yanchor) == (157, 155)
    assert cell.xsizemode == cell.ysizemode == "pixel"
    assert cell.x0 == -cell.x1 < 0 and cell.y0 == -cell.y1 < 0  # around the middle of the cell
    assert figure.layout.dragmode == "zoom"


def test_hover_text_has_room_for_longer_labels(embedded: Model) -> None:
    trace = embedded.trace("An antidisestablishmentarianism & " + "ab" * 30)
    axis = Axis.of(trace.tokens, "words")
    pattern = trace.pattern(3, 1).arranged(axis, axis)
    matrix, ranking = draw_pattern(pattern), draw_ranking(pattern, 1)
    long = ["antidisestablishmentarianism·2", "ab" * 17 + "a…abab·11"]
    short = {long[0]: "antidises…nism·2", long[1]: "ababababa…abab·11"}
    assert [matrix.data[0].x[at] for at in (2, 4)] == [matrix.data[0].y[at] for at in (2, 4)] == long
    assert matrix.data[0].x[3] == "&amp;·10"
    assert matrix.layout.xaxis.labelalias == matrix.layout.yaxis.labelalias == short
    assert ranking.layout.yaxis.labelalias == short
    assert set(long) <= set(ranking.data[0].y)
    assert "query %{y:c}<br>key %{x:c}<br>" in matrix.data[0].hovertemplate
    assert "key %{y:c}<br>" in ranking.data[0].hovertemplate


@pytest.mark.parametrize(("n_token", "usual", "tall"), [(3, 380, 380), (12, 452, 452), (80, 560, 960)])
def test_a_long_matrix_may_be_taller(n_token: int, usual: int, tall: int) -> None:
    weights = np.full((1, 1, n_token, n_token), 1 / n_token)
    pattern = hand_made.trace(weights, [f"t{at}" for at in range(n_token)]).pattern(0, 0)
    assert draw_pattern(pattern).layout.height == usual
    assert draw_pattern(pattern, tallest=TALLEST).layout.height == tall


def test_logarithmic_colours_have_a_bar_that_can_be_read(door_trace: Trace) -> None:
    cells, bar = draw_heatmap(door_trace, 3, 1, colour="logarithmic").data
    np.testing.assert_array_equal(cells.z, door_trace.weights(3, 1))
    assert not cells.showscale and bar.marker.showscale
    assert bar.marker.cmax == pytest.approx(np.log10(door_trace.weights(3, 1).max()))
    ticks = dict(zip(bar.marker.colorbar.ticktext, bar.marker.colorbar.tickvals, strict=True))
    assert ticks == {"0.001": -3, "0.01": -2, "0.1": -1, "0.0001": -4}
    assert len(draw_heatmap(door_trace, 3, 1, colour="logarithmic", show="scores").data) == 1
