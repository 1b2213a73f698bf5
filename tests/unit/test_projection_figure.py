"""The map's figure: points, labels, lines and contours follow the projection."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

import attnviz
from attnviz.figures import draw_projection
from attnviz.figures.projection import HEIGHT, hides_labels
from attnviz.figures.theme import LIGHT
from attnviz.model.model import Model
from attnviz.model.trace import Trace

SIDES = {
    **{"top center": (0, 1), "top right": (0.6, 0.9), "top left": (-0.6, 0.9), "middle right": (0.6, 0)},
    **{
        "bottom center": (0, -1),
        "bottom right": (0.6, -0.9),
        "bottom left": (-0.6, -0.9),
        "middle left": (-0.6, 0),
    },
}
"""Where plotly writes a label of each `textposition`, beside its point, in sizes of the label."""


def test_projection_joins_the_picked_query_to_its_strongest_keys(door_trace: Trace) -> None:
    weights = door_trace.weights(3, 1)
    projection = attnviz.project(door_trace, 3, 1)
    *lines, queries, keys = draw_projection(projection, picked=(7, 5)).data
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
    layout = draw_projection(projection, picked=(7, 5)).layout
    for axis, along in ((layout.xaxis, projection.points[:, 0]), (layout.yaxis, projection.points[:, 1])):
        room = 0.01 * np.ptp(along)
        assert axis.range[0] < along.min() - room and along.max() + room < axis.range[1]


@pytest.mark.parametrize("head", [0, 1, 7])
def test_the_map_is_wider_than_high_and_has_no_more_room_than_its_labels_take(
    door_trace: Trace, head: int
) -> None:
    projection = attnviz.project(door_trace, 3, head)
    figure = draw_projection(projection)
    ranges = [figure.layout.xaxis.range, figure.layout.yaxis.range]
    width, height = (high - low for low, high in ranges)
    assert width > height
    assert figure.layout.yaxis.scaleanchor == "x" and figure.layout.yaxis.scaleratio == 1
    longest = max(len(text) for trace in figure.data for text in trace.text)
    scale = np.ptp(projection.points, axis=0).max() / (HEIGHT - 120)  # of a px, as the map is laid out
    # A label beside a point: its characters of 7.3 px and a gap; a label above one: two lines of 15 px.
    for along, (low, high), px in zip(projection.points.T, ranges, (8.8 * longest + 20, 32), strict=True):
        assert 0 < along.min() - low <= px * scale
        assert 0 < high - along.max() <= px * scale


def test_labels_that_would_lie_on_others_are_left_out_but_those_at_lines(embedded: Model) -> None:
    trace = embedded.trace("She sat on the bank of the river and thought about the bank that kept her money.")
    weights = trace.weights(5, 7)
    made = attnviz.project(trace, 5, 7, method="pca")
    # fixed places: those of t-SNE, and how many labels fit between them, differ between machines
    places = np.random.default_rng(3).standard_t(2, made.points.shape).astype(np.float32)
    projection = replace(made, points=places)
    figure = draw_projection(projection, picked=(5, 5))
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
                middle = middle + np.array(SIDES[side]) * (size + np.array([10, 1]))
                boxes.append((number in named, middle, size))
    assert len(boxes) > 20
    for (is_named, middle, size), (is_other_named, other, other_size) in combinations(boxes, 2):
        shared = ((size + other_size) / 2 - np.abs(middle - other)).clip(min=0).prod()
        assert (is_named and is_other_named) or shared <= 0.101 * min(size.prod(), other_size.prod())


def test_a_short_text_keeps_all_its_labels(door_trace: Trace) -> None:
    placed = attnviz.project(
        door_trace, 3, 1, method="attention"
    )  # where t-SNE puts points depends on rounding
    figure = draw_projection(placed, picked=(7, 5))
    assert not hides_labels(figure)
    assert all(trace.marker.opacity == 1 for trace in figure.data[-2:])  # and strong marks in its legend


def test_many_points_have_labels_only_where_the_lines_end(embedded: Model) -> None:
    trace = embedded.trace("the door " * 20)
    projection = attnviz.project(trace, 3, 1, iterations=250)
    *_, queries, keys = draw_projection(projection, picked=(2, 4)).data
    assert [text for text in queries.text if text] == ["door·2"]
    assert 1 <= sum(bool(text) for text in keys.text) <= 6
    assert len(queries.hovertext) == len(trace.tokens)


def test_the_lines_of_a_picked_key_go_to_the_queries_that_give_it_most(door_trace: Trace) -> None:
    weights = door_trace.weights(3, 1)
    projection = attnviz.project(door_trace, 3, 1, method="pca")
    *lines, _, keys = draw_projection(projection, picked=(7, 5), side="key").data
    strongest = np.argsort(-weights[:, 5])[:5]
    assert len(lines) == 5
    for line, query in zip(lines, strongest, strict=True):
        np.testing.assert_array_equal(line.x, projection.points[[11 + 5, query], 0])
    assert keys.marker.size[5] > keys.marker.size[4]


def test_a_query_that_sees_one_key_has_one_line(tiny_model) -> None:
    trace = tiny_model("gpt2").trace("the cat sat on a mat")
    projection = attnviz.project(trace, 0, 0, method="attention")
    figure = draw_projection(projection, picked=(0, 0))
    assert len(figure.data) == 1 + 2
    assert len(figure.layout.shapes) == 3


def test_values_are_squares_of_a_third_colour(door_trace: Trace) -> None:
    projection = attnviz.project(door_trace, 3, 1, method="pca", values=True)
    queries, keys, values = draw_projection(projection).data
    assert [group.marker.symbol for group in (queries, keys, values)] == ["circle", "diamond", "square"]
    assert [group.marker.color for group in (queries, keys, values)] == [LIGHT.query, LIGHT.key, LIGHT.value]
    np.testing.assert_array_equal(values.x, projection.points[22:, 0])
    assert list(values.hovertext)[5] == "value door·5"
    assert [*map(list, values.customdata[:2])] == [["value", 0], ["value", 1]]


def test_contours_are_where_the_map_implies_these_shares_of_the_nearest_key_s_weight(
    door_trace: Trace,
) -> None:
    """The map implies weights in proportion to exp(-distance^2)."""
    projection = attnviz.project(door_trace, 3, 1, method="attention")
    figure = draw_projection(projection, picked=(7, 5))
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
    n_token = len(trace.tokens)
    for query in range(n_token):
        figure = draw_projection(projection, picked=(query, 0))
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
    layout = draw_projection(projection, picked=(7, 5), side=side).layout
    assert not layout.shapes and not layout.annotations


def test_a_map_of_three_axes_has_the_same_shapes_and_lines(door_trace: Trace) -> None:
    weights = door_trace.weights(3, 1)
    projection = attnviz.project(door_trace, 3, 1, method="pca", dimensions=3)
    *lines, queries, keys = draw_projection(projection, picked=(7, 5)).data
    assert {group.type for group in (*lines, queries, keys)} == {"scatter3d"}
    np.testing.assert_array_equal(keys.z, projection.points[11:, 2])
    np.testing.assert_array_equal(lines[0].z, projection.points[[7, 11 + int(weights[7].argmax())], 2])
    assert (queries.marker.symbol, keys.marker.symbol) == ("circle", "diamond")
    assert (queries.marker.color, keys.marker.color) == (LIGHT.query, LIGHT.key)
