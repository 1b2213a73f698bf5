"""Figures hold exactly the numbers of the records, and tokens are shown as they are."""

import json
import re
from base64 import b64decode
from dataclasses import replace
from io import BytesIO
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import attnviz
from attnviz.figures import draw_errors, draw_heatmap, draw_pattern, draw_projection, draw_ranking
from attnviz.figures.heatmap import MOST_CELLS_WITH_SCORES, TALLEST
from attnviz.figures.label_placement import SIDES
from attnviz.figures.labels import label_at, literal, shortened
from attnviz.figures.numbers import HOVER_NUMBER, cell_text, number_text, share_text
from attnviz.figures.projection import HEIGHT, hides_labels
from attnviz.figures.theme import DARK, LIGHT, number_scale, weight_scale
from attnviz.model.loading import Model
from attnviz.model.trace import Trace
from attnviz.records import Axis
from tests import hand_made
from tests.colours import contrast, luminance

WIRE_BUDGET = 1_500_000  # bytes; DESIGN's budget for the heatmap of 512 tokens


@pytest.fixture
def pair_trace(embedded: Model) -> Trace:
    return embedded.trace("the cat saw the cat", "it ran")


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
    assert figure.layout.xaxis.title.text == "key"
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
    found = dots(draw_pattern(replace(pattern, allowed=np.tri(512, dtype=bool))))
    assert (found[np.triu_indices(171, k=1)] == 255).all()  # white, the light theme's background
    assert (found[:, 0] < 255).any(axis=-1).all()  # [CLS], which every query may see


def test_few_tokens_have_no_overview_and_cannot_be_dragged(door_trace: Trace) -> None:
    layout = draw_heatmap(door_trace, 3, 1).layout
    assert not layout.images and not layout.annotations
    assert layout.dragmode is False


def test_the_mark_of_the_picked_cell_covers_no_row(long_trace: Trace) -> None:
    figure = draw_heatmap(long_trace, 3, 1, picked=(155, 157))
    row, column, cell = figure.layout.shapes
    assert (row.xref, row.xanchor, row.y0, row.y1) == ("x domain", 1, 155, 155)
    assert row.x0 > 0 and row.xsizemode == "pixel"  # right of the cells
    assert (column.yref, column.yanchor, column.x0, column.x1) == ("y domain", 0, 157, 157)
    assert column.y0 < 0 and column.ysizemode == "pixel"  # below them
    assert (cell.xanchor, cell.yanchor) == (157, 155)
    assert cell.xsizemode == cell.ysizemode == "pixel"
    assert figure.layout.dragmode == "zoom"


def test_long_labels_lose_their_middle() -> None:
    assert shortened("[unused12345]") == "[unused12345]"
    assert shortened("antidisestablishmentarianism") == "antidises…nism"
    assert len(shortened("x" * 40)) == 14
    assert shortened("x" * 40, 40) == "x" * 40


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
        draw_projection(projection, pattern.weights, picked=(1, 2)),
    ]
    for figure in figures:
        spec = json.loads(figure.to_json())
        texts = [
            text
            for one in spec["data"]
            for name in ("x", "y", "text", "hovertext")
            for text in (one.get(name) if isinstance(one.get(name), list) else [])
            if isinstance(text, str)
        ]
        assert any("&lt;" in text for text in texts)
        assert not any(mark in text for text in texts for mark in "<>$")


@pytest.mark.parametrize(("n_token", "usual", "tall"), [(3, 380, 380), (12, 452, 452), (80, 560, 960)])
def test_a_long_matrix_may_be_taller(n_token: int, usual: int, tall: int) -> None:
    weights = np.full((1, 1, n_token, n_token), 1 / n_token)
    pattern = hand_made.trace(weights, [f"t{at}" for at in range(n_token)]).pattern(0, 0)
    assert draw_pattern(pattern).layout.height == usual
    assert draw_pattern(pattern, tallest=TALLEST).layout.height == tall


def test_ranking_is_the_row_sorted(door_trace: Trace) -> None:
    pattern = door_trace.pattern(3, 1)
    (bars,) = draw_ranking(pattern, 7, picked_key=5).data
    assert list(bars.y[:2]) == ["[CLS]·0", "door·5"]
    np.testing.assert_array_equal(bars.x, np.sort(pattern.weights[7])[::-1][: len(bars.x)])
    assert bars.text[1] == "\N{EN SPACE}0.475"
    assert list(bars.customdata[1]) == ["key", 5, pattern.scores[7, 5]]
    assert list(bars.marker.line.width)[:2] == [0, 2.5]


def test_projection_joins_the_picked_query_to_its_strongest_keys(door_trace: Trace) -> None:
    weights = door_trace.weights(3, 1)
    projection = attnviz.project(door_trace, 3, 1)
    *lines, queries, keys = draw_projection(projection, weights, picked=(7, 5)).data
    strongest = np.argsort(-weights[7])[:5]
    assert len(lines) == 5
    for line, key in zip(lines, strongest, strict=True):
        np.testing.assert_array_equal(line.x, projection.points[[7, 11 + key], 0])
        np.testing.assert_array_equal(line.y, projection.points[[7, 11 + key], 1])
    widths = [line.line.width for line in lines]
    assert widths == sorted(widths, reverse=True) and widths[0] > widths[-1]
    assert queries.marker.symbol != keys.marker.symbol
    assert queries.marker.color != keys.marker.color
    np.testing.assert_array_equal(keys.x, projection.points[11:, 0])
    assert keys.text[5] == "door·5"


def test_the_map_has_room_for_points_and_labels(door_trace: Trace) -> None:
    projection = attnviz.project(door_trace, 3, 1)
    layout = draw_projection(projection, door_trace.weights(3, 1), picked=(7, 5)).layout
    for axis, along in ((layout.xaxis, projection.points[:, 0]), (layout.yaxis, projection.points[:, 1])):
        room = 0.01 * np.ptp(along)
        assert axis.range[0] < along.min() - room and along.max() + room < axis.range[1]


def test_labels_that_would_lie_on_others_are_left_out_but_those_at_lines(embedded: Model) -> None:
    trace = embedded.trace("She sat on the bank of the river and thought about the bank that kept her money.")
    weights = trace.weights(5, 7)
    projection = attnviz.project(trace, 5, 7)
    figure = draw_projection(projection, weights, picked=(5, 5))
    *lines, queries, keys = figure.data
    assert hides_labels(figure)
    assert queries.text[5] == keys.text[5] == "bank·5"
    strongest = np.argsort(-weights[5])[: len(lines)]
    assert all(keys.text[key] for key in strongest)

    # Where the labels are, as the map is laid out: a line of the token font is 15 px high, a character 7.3 px wide.
    scale = (HEIGHT - 120) / np.ptp(projection.points, axis=0).max()
    boxes = []
    for points, named in ((queries, {5}), (keys, {5, *strongest})):
        for number, (text, side) in enumerate(zip(points.text, points.textposition, strict=True)):
            if text:
                size = np.array([7.3 * len(text) + 4, 15])
                middle = scale * np.array([points.x[number], points.y[number]])
                middle = middle + SIDES[side] * (size + np.array([10, 1]))
                boxes.append((number in named, middle, size))
    assert len(boxes) > 20
    for (is_named, middle, size), (is_other_named, other, other_size) in combinations(boxes, 2):
        shared = ((size + other_size) / 2 - np.abs(middle - other)).clip(min=0).prod()
        assert (is_named and is_other_named) or shared <= 0.101 * min(size.prod(), other_size.prod())


def test_a_short_text_keeps_all_its_labels(door_trace: Trace) -> None:
    placed = attnviz.project(
        door_trace, 3, 1, method="attention"
    )  # where t-SNE puts points hangs on roundings
    figure = draw_projection(placed, door_trace.weights(3, 1), picked=(7, 5))
    assert not hides_labels(figure)
    assert all(trace.marker.opacity == 1 for trace in figure.data[-2:])  # and strong marks in its legend


def test_many_points_have_labels_only_where_the_lines_end(embedded: Model) -> None:
    trace = embedded.trace("the door " * 20)
    projection = attnviz.project(trace, 3, 1, iterations=250)
    *_, queries, keys = draw_projection(projection, trace.weights(3, 1), picked=(2, 4)).data
    assert [text for text in queries.text if text] == ["door·2"]
    assert 1 <= sum(bool(text) for text in keys.text) <= 6
    assert len(queries.hovertext) == len(trace.tokens)


def test_the_lines_of_a_picked_key_go_to_the_queries_that_give_it_most(door_trace: Trace) -> None:
    weights = door_trace.weights(3, 1)
    projection = attnviz.project(door_trace, 3, 1, method="pca")
    *lines, _, keys = draw_projection(projection, weights, picked=(7, 5), side="key").data
    strongest = np.argsort(-weights[:, 5])[:5]
    assert len(lines) == 5
    for line, query in zip(lines, strongest, strict=True):
        np.testing.assert_array_equal(line.x, projection.points[[11 + 5, query], 0])
    assert keys.marker.size[5] > keys.marker.size[4]


def test_a_query_that_sees_one_key_has_one_line(tiny_model) -> None:
    trace = tiny_model("gpt2").trace("the cat sat on a mat")
    projection = attnviz.project(trace, 0, 0, method="attention")
    figure = draw_projection(projection, trace.weights(0, 0), picked=(0, 0))
    assert len(figure.data) == 1 + 2
    assert len(figure.layout.shapes) == 3


def test_values_are_squares_of_a_third_colour(door_trace: Trace) -> None:
    projection = attnviz.project(door_trace, 3, 1, method="pca", values=True)
    queries, keys, values = draw_projection(projection, door_trace.weights(3, 1)).data
    assert [one.marker.symbol for one in (queries, keys, values)] == ["circle", "diamond", "square"]
    assert [one.marker.color for one in (queries, keys, values)] == [LIGHT.query, LIGHT.key, LIGHT.value]
    np.testing.assert_array_equal(values.x, projection.points[22:, 0])
    assert list(values.hovertext)[5] == "value door·5"
    assert [list(one) for one in values.customdata[:2]] == [["value", 0], ["value", 1]]


def test_contours_are_where_the_map_implies_these_shares_of_the_nearest_key_s_weight(
    door_trace: Trace,
) -> None:
    """The map implies weights in proportion to exp(-distance^2)."""
    projection = attnviz.project(door_trace, 3, 1, method="attention")
    figure = draw_projection(projection, door_trace.weights(3, 1), picked=(7, 5))
    query, keys = projection.points[7], projection.points[11:]
    nearest = np.exp(-((keys - query) ** 2).sum(axis=1)).max()
    assert len(figure.layout.shapes) == 3
    for circle, share in zip(figure.layout.shapes, (1 / 2, 1 / 10, 1 / 100), strict=True):
        assert (circle.x0 + circle.x1) / 2 == pytest.approx(query[0], abs=1e-5)
        assert (circle.y0 + circle.y1) / 2 == pytest.approx(query[1], abs=1e-5)
        radius = (circle.x1 - circle.x0) / 2
        assert np.exp(-(radius**2)) == pytest.approx(share * nearest, rel=1e-4)
    for number in figure.layout.annotations:  # each stands on its circle, in sight
        radius = np.hypot(number.x - query[0], number.y - query[1])
        share = {"½": 1 / 2, "1/10": 1 / 10, "1/100": 1 / 100}[number.text]
        assert np.exp(-(radius**2)) == pytest.approx(share * nearest, rel=1e-4)
        assert figure.layout.xaxis.range[0] < number.x < figure.layout.xaxis.range[1]
    assert len(figure.layout.annotations) >= 1


def test_contours_mind_only_keys_that_the_query_sees(tiny_model) -> None:
    trace = tiny_model("gpt2").trace("the cat sat on a mat")
    projection = attnviz.project(trace, 1, 1, method="attention")
    weights = trace.weights(1, 1)
    n_token = len(trace.tokens)
    for query in range(n_token):
        figure = draw_projection(projection, weights, picked=(query, 0))
        seen = projection.points[n_token : n_token + query + 1]
        nearest = ((seen - projection.points[query]) ** 2).sum(axis=1).min()
        half = figure.layout.shapes[0]
        assert ((half.x1 - half.x0) / 2) ** 2 == pytest.approx(nearest + np.log(2), rel=1e-3)


@pytest.mark.parametrize(
    ("method", "dimensions", "side"),
    [("pca", 2, "query"), ("attention", 3, "query"), ("attention", 2, "key")],
)
def test_there_are_contours_only_in_a_flat_attention_map_of_a_query(
    door_trace: Trace, method: str, dimensions: int, side: str
) -> None:
    projection = attnviz.project(door_trace, 3, 1, method=method, dimensions=dimensions)
    layout = draw_projection(projection, door_trace.weights(3, 1), picked=(7, 5), side=side).layout
    assert not layout.shapes and not layout.annotations


def test_a_map_of_three_axes_has_the_same_shapes_and_lines(door_trace: Trace) -> None:
    weights = door_trace.weights(3, 1)
    projection = attnviz.project(door_trace, 3, 1, method="pca", dimensions=3)
    *lines, queries, keys = draw_projection(projection, weights, picked=(7, 5)).data
    assert {one.type for one in (*lines, queries, keys)} == {"scatter3d"}
    np.testing.assert_array_equal(keys.z, projection.points[11:, 2])
    np.testing.assert_array_equal(lines[0].z, projection.points[[7, 11 + int(weights[7].argmax())], 2])
    assert (queries.marker.symbol, keys.marker.symbol) == ("circle", "diamond")
    assert (queries.marker.color, keys.marker.color) == (LIGHT.query, LIGHT.key)


class TestTint:
    def figure(self, trace: Trace, tint: str, **options):
        projection = attnviz.project(trace, 2, 3, method="pca")
        return draw_projection(projection, trace.weights(2, 3), tint=tint, theme="dark", **options)

    def legend(self, figure) -> dict[str, str]:
        return {one.name: one.line.color for one in figure.data if one.mode == "lines" and one.name}

    def colours(self, figure, role: str) -> list[str]:
        (found,) = [one for one in figure.data if one.name == role and one.customdata is not None]
        return list(found.marker.color)

    def test_equal_tokens_have_one_colour_as_queries_and_keys(self, pair_trace: Trace) -> None:
        figure = self.figure(pair_trace, "token")
        queries = self.colours(figure, "queries")
        labels = pair_trace.tokens.labels
        assert queries == self.colours(figure, "keys")
        for one, other in combinations(range(len(labels)), 2):
            named = {labels[one], labels[other]} <= self.legend(figure).keys()
            assert not named or (queries[one] == queries[other]) == (labels[one] == labels[other])
        assert queries[labels.index("the")] == self.legend(figure)["the"] in DARK.groups

    def test_tokens_without_a_colour_are_others(self, embedded: Model) -> None:
        trace = embedded.trace("one two three four five six seven eight nine ten one one")
        legend = self.legend(self.figure(trace, "token"))
        assert len(legend) == len(DARK.groups) + 1
        assert next(iter(legend)) == "one" and list(legend)[-1] == "other tokens"

    def test_positions_mod_5(self, pair_trace: Trace) -> None:
        figure = self.figure(pair_trace, "position mod 5")
        legend = self.legend(figure)
        assert list(legend) == [f"position {rest} mod 5" for rest in range(5)]
        assert self.colours(figure, "keys")[7] == legend["position 2 mod 5"]

    def test_parts_of_words(self, embedded: Model) -> None:
        trace = embedded.trace("Unbelievably odd.")
        figure = self.figure(trace, "part of word")
        assert trace.tokens.labels[:4] == ("[CLS]", "un", "##bel", "##ie")
        legend = self.legend(figure)
        parts = [
            "special token",
            "first piece of a word",
            "further piece of a word",
            "further piece of a word",
        ]
        assert self.colours(figure, "queries")[:4] == [legend[part] for part in parts]
        odd = trace.tokens.labels.index("odd")
        assert self.colours(figure, "queries")[odd] == legend["whole word"]

    def test_special_tokens(self, pair_trace: Trace) -> None:
        figure = self.figure(pair_trace, "special")
        legend = self.legend(figure)
        expected = [
            legend["special token" if one else "token of the text"] for one in pair_trace.tokens.is_special
        ]
        assert self.colours(figure, "queries") == expected

    def test_lengths_have_a_bar(self, pair_trace: Trace) -> None:
        lengths = np.linspace(3, 7, 2 * len(pair_trace.tokens), dtype=np.float32)
        figure = self.figure(pair_trace, "norm", lengths=lengths)
        np.testing.assert_array_equal(self.colours(figure, "queries"), lengths[: len(pair_trace.tokens)])
        (bar,) = [one.marker for one in figure.data if one.marker.showscale]
        assert (bar.cmin, bar.cmax) == (3, 7)
        assert bar.colorbar.title.text == "length of the vector"

    def test_positions_have_a_bar(self, pair_trace: Trace) -> None:
        figure = self.figure(pair_trace, "position")
        assert self.colours(figure, "keys") == list(range(len(pair_trace.tokens)))

    @pytest.mark.parametrize("tint", ["token", "position"])
    def test_shapes_still_tell_the_role(self, pair_trace: Trace, tint: str) -> None:
        figure = self.figure(pair_trace, tint)
        shapes = {
            one.name: one.marker.symbol
            for one in figure.data
            if one.customdata is None and one.mode == "markers"
        }
        assert shapes["queries"] == "circle" and shapes["keys"] == "diamond"

    def test_names_of_hostile_tokens_are_safe(self, embedded: Model) -> None:
        figure = self.figure(embedded.trace("<b> $x$ <b>"), "token")
        assert "&lt;" in self.legend(figure)
        assert not any(mark in name for name in self.legend(figure) for mark in "<>$")


@pytest.mark.parametrize("palette", [LIGHT, DARK], ids=["light", "dark"])
def test_points_can_be_seen_whatever_their_colour(palette) -> None:
    colours = [*palette.groups, palette.value, *(colour for _, colour in number_scale(palette))]
    assert min(contrast(colour, palette.background) for colour in colours) > 2


def test_error_grid_is_layers_down_and_heads_across(embedded: Model, door_trace: Trace) -> None:
    report = attnviz.verify(embedded, door_trace)
    check = report.check("attention weights")
    (cells,) = draw_errors(check, picked=(3, 1)).data
    assert cells.z.shape == (6, 12)
    np.testing.assert_array_equal(cells.customdata[..., 0], report.weight_error)
    np.testing.assert_array_equal(cells.customdata[..., 1], check.tolerances["encoder"])
    shares = np.maximum(report.weight_error / check.tolerances["encoder"], 1e-5)
    np.testing.assert_allclose(10.0**cells.z, shares, rtol=1e-5)


def test_a_head_that_is_not_a_number_has_the_colour_of_failure(embedded: Model, door_trace: Trace) -> None:
    layers = list(door_trace.layers["encoder"])
    query = layers[2].query.copy()
    query[4] = np.nan
    layers[2] = replace(layers[2], query=query)
    report = attnviz.verify(embedded, replace(door_trace, layers={"encoder": tuple(layers)}))
    (cells,) = draw_errors(report.check("attention weights")).data
    assert np.isnan(cells.customdata[2, 4, 0])
    assert cells.z[2, 4] == cells.zmax


def test_logarithmic_colours_have_a_bar_that_can_be_read(door_trace: Trace) -> None:
    cells, bar = draw_heatmap(door_trace, 3, 1, colour="logarithmic").data
    np.testing.assert_array_equal(cells.z, door_trace.weights(3, 1))
    assert not cells.showscale and bar.marker.showscale
    assert bar.marker.cmax == pytest.approx(np.log10(door_trace.weights(3, 1).max()))
    ticks = dict(zip(bar.marker.colorbar.ticktext, bar.marker.colorbar.tickvals, strict=True))
    assert ticks == {"0.001": -3, "0.01": -2, "0.1": -1, "0.0001": -4}
    assert len(draw_heatmap(door_trace, 3, 1, colour="logarithmic", show="scores").data) == 1


def test_masked_keys_are_not_ranked(tiny_model) -> None:
    trace = tiny_model("gpt2").trace("the cat sat")
    (bars,) = draw_ranking(trace.pattern(0, 0), 1).data
    assert len(bars.x) == 2


@pytest.mark.parametrize("theme", [LIGHT, DARK])
@pytest.mark.parametrize("logarithmic", [False, True])
def test_colour_scale_starts_at_the_background_and_is_even(theme, logarithmic: bool) -> None:
    scale = weight_scale(theme, logarithmic=logarithmic)
    places, colours = zip(*scale, strict=True)
    assert (colours[0], colours[-1]) == (theme.background, theme.strong)
    assert places[0] == 0 and places[-1] == pytest.approx(1) and list(places) == sorted(places)
    # CIE 1976 lightness, another definition of even steps than the one the scale is made with
    lightness = np.array([116 * np.cbrt(max(luminance(colour), 0.009)) - 16 for colour in colours])
    steps = np.abs(np.diff(lightness))
    assert (np.diff(lightness) <= 0.5).all() if theme is LIGHT else (np.diff(lightness) >= -0.5).all()
    assert steps.max() < 3 * steps.mean()


def test_logarithmic_scale_tells_small_weights_apart() -> None:
    places = [place for place, _ in weight_scale(LIGHT, logarithmic=True)]
    tones = np.linspace(0, 1, len(places))
    assert np.interp(0.01, places, tones) == pytest.approx(0.5, abs=0.01)  # halfway from 0.0001 to 1


@pytest.mark.parametrize("theme", [LIGHT, DARK])
@pytest.mark.parametrize("name", ["text", "quiet", "query", "key", "key_text", "picked", "failed"])
def test_texts_can_be_read(theme, name: str) -> None:
    # WCAG 2.2 asks for 4.5 for small text; query and key are Okabe and Ito's colours as they are, and are
    # used at 12 px in bold or beside a shape that says the same.
    lowest = 3.0 if theme is LIGHT and name in ("query", "key") else 4.5
    assert contrast(getattr(theme, name), theme.background) >= lowest


def test_numbers_in_words() -> None:
    assert [share_text(one) for one in (0.0, 0.0003, 0.4754, 1.0)] == [
        "0.0%",
        "under 0.1%",
        "47.5%",
        "100.0%",
    ]
    numbers = (0.0, 0.4754, 0.00412, 0.99996, 1.47, -4.1305, 12345.6, 4.54e-4, -8.9e-7)
    assert [number_text(one).replace("\xa0", " ") for one in numbers] == [
        *("0", "0.475", "0.00412", "1.00", "1.47", "−4.13", "12,346", "4.5 × 10⁻⁴", "−8.9 × 10⁻⁷"),
    ]
    assert [cell_text(one) for one in (0.0, 0.4754, 0.0123, 1.0, 4.0)] == [
        *("0.000", "0.475", "0.012", "1.00", "4.00"),
    ]


def test_a_label_with_its_position_keeps_its_order_beside_text_from_right_to_left():
    assert label_at("door", 5) == "door·5"
    assert label_at("דלת", np.int64(5)) == "\u2068דלת\u2069·5"  # between FSI and PDI


FIGURES = {
    path.name: path.read_text(encoding="utf-8") for path in Path(attnviz.figures.__file__).parent.glob("*.py")
}
IN_HOVER = re.compile(r"%\{+[\w.\[\]]+:([^}]+)\}")
"""The form of a number in a hover text, also where Python fills it in."""


def hover_forms(source: str) -> set[str]:
    """Forms in which plotly writes numbers in the hover texts of a figure's module."""
    return {
        one.removeprefix("{sign}").removeprefix("{sign").replace("{HOVER_NUMBER", HOVER_NUMBER)
        for one in IN_HOVER.findall(source)
    }


def other_forms(source: str) -> set[str]:
    """Those that are not the house's: three significant digits, whole numbers with commas, and labels as they are."""
    return hover_forms(source) - {HOVER_NUMBER, f"+{HOVER_NUMBER}", ",", "c", ""} | set(
        re.findall(r"char\.mod\([^)]+\)", source)
    )


def test_numbers_in_hover_texts_have_the_form_of_the_house() -> None:
    assert sum(bool(hover_forms(source)) for source in FIGURES.values()) > 10
    assert {name: other_forms(source) for name, source in FIGURES.items() if other_forms(source)} == {}


@pytest.mark.parametrize(
    "source", ['"weight %{customdata:.4f}"', 'f"{name} %{{y:.3f}}"', '"%{customdata[0]:.1e}"']
)
def test_another_form_is_noticed(source: str) -> None:
    assert other_forms(source)
