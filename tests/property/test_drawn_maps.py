"""Maps, rankings, grids and pictures of vectors, of numbers drawn at random: each mark is found again in plain Python."""

import math
from dataclasses import replace
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from attnviz.effects.input_attribution import METHODS, InputAttribution
from attnviz.effects.lens import LayerSimilarities
from attnviz.figures.bars import MOST_BARS, draw_ranking
from attnviz.figures.cells import colours_at, contrast, inks, pool
from attnviz.figures.heatmap import MOST_DOTS, overview
from attnviz.figures.inputs import draw_attributions, draw_deletion
from attnviz.figures.label_placement import _crowded, overlap, place_labels, written_numbers
from attnviz.figures.labels import aliases, axis_labels, isolated, literal, shortened
from attnviz.figures.layer_grid import Colours, draw_layer_grid
from attnviz.figures.lens import draw_layer_similarities
from attnviz.figures.matrices import draw_matrix
from attnviz.figures.numbers import cell_text, number_text, percent_text, power_text, share_text, signed_text
from attnviz.figures.one_vector import MOST_DRAWN, MOST_STATES, draw_one_vector, drawn_tokens, left_out
from attnviz.figures.pair import draw_pair, draw_score_sources
from attnviz.figures.positions import draw_likeness, draw_table, tone_limit
from attnviz.figures.projection import draw_projection, group, hides_labels, tinting
from attnviz.figures.scaling import variance_text
from attnviz.figures.theme import LIGHT, THEMES, difference_scale, number_scale, weight_scale
from attnviz.figures.verification import draw_errors
from attnviz.heads.score import Score
from attnviz.records import Axis, VerificationReport
from attnviz.viewer.below import verdict_rows, worst_place
from tests import hand_made, small_records
from tests.drawing import MARKS, draw_few

pytestmark = MARKS
draw_few(10)

LABELS = ["[CLS]", "cat", "door", "##s", "[SEP]"]
KEYS = ["[CLS]", "le", "chat", "##te", "[SEP]"]
N = len(LABELS)
seeds = st.integers(0, 99)


def rows_of(seed: int, n_query: int = N, n_key: int = N) -> np.ndarray:
    counts = np.random.default_rng(seed).integers(0, 5, (n_query, n_key)) + np.eye(n_query, n_key)
    return (counts / counts.sum(axis=1, keepdims=True)).astype(np.float32)


def map_of(seed: int, *, n_axis: int = 2, values: bool = False, **changes: Any) -> Any:
    rng = np.random.default_rng(seed)
    tokens = hand_made.tokens(LABELS)
    roles = ("query", "key", "value")[: 2 + values]
    n_point = N * len(roles)
    given_ = {
        "points": (rng.permutation(n_point * n_axis).reshape(n_point, n_axis) / 8).astype(np.float32),
        "role": sum(((role,) * N for role in roles), ()),
        "position": np.array([*range(N)] * len(roles)),
        "query_tokens": tokens,
        "key_tokens": hand_made.tokens(KEYS),
    }
    return small_records.projection(n_point, **given_ | changes)


@given(
    seeds,
    st.sampled_from([2, 3]),
    st.booleans(),
    st.sampled_from([None, "query", "key"]),
    st.sampled_from(["role", "norm", "special"]),
)
def test_points_lines_and_names_of_a_map(seed, n_axis, values, side, tint):
    shown, weights = map_of(seed, n_axis=n_axis, values=values), rows_of(seed)
    picked = None if side is None else (2, 1)
    lengths = np.arange(len(shown.points), dtype=np.float32)
    figure = draw_projection(shown, weights, picked=picked, side=side or "query", tint=tint, lengths=lengths)
    lines = [
        trace_of_figure
        for trace_of_figure in figure.data
        if trace_of_figure.mode == "lines" and trace_of_figure.showlegend is False
    ]
    marks = {
        trace_of_figure.name: trace_of_figure
        for trace_of_figure in figure.data
        if trace_of_figure.mode == "markers+text"
    }
    names = ["queries", "keys", "values"][: 2 + values]
    assert [*marks] == names
    symbols = dict(zip(names, ("circle", "diamond", "square"), strict=False))
    colours = dict(zip(names, (LIGHT.query, LIGHT.key, LIGHT.value), strict=False))
    for number, (name, mark) in enumerate(marks.items()):
        role = ("query", "key", "value")[number]
        assert mark.type == ("scatter" if n_axis == 2 else "scatter3d")
        own = shown.points[number * N : (number + 1) * N]
        for axis, letter in enumerate("xyz"[:n_axis]):
            assert list(mark[letter]) == own[:, axis].tolist()
        assert mark.marker.symbol == symbols[name] and mark.marker.opacity == 1
        assert [list(data) for data in mark.customdata] == [[role, at] for at in range(N)]
        assert list(mark.hovertext) == [
            f"{role} {label}·{at}" for at, label in enumerate(LABELS if role == "query" else KEYS)
        ]
        at_picked = None if picked is None or role == "value" else picked[number]
        sizes = np.asarray(mark.marker.size).tolist()
        assert [size > min(sizes) for size in sizes] == [
            at == at_picked for at in range(N)
        ] or at_picked is None
        if at_picked is None:
            assert len({*sizes}) == 1
        if n_axis == 2:
            widths = np.broadcast_to(mark.marker.line.width, N).tolist()
            assert [width > 0 for width in widths] == [at == at_picked for at in range(N)]
        assert mark.showlegend == (tint == "role")
        assert mark.textfont.color == (colours[name] if tint == "role" else LIGHT.text)
        if tint == "role":
            assert mark.marker.color == colours[name]
        elif tint == "norm":
            assert list(mark.marker.color) == lengths[number * N : (number + 1) * N].tolist()
            assert (mark.marker.cmin, mark.marker.cmax) == (0, len(shown.points) - 1)
        else:
            special = [label[0] == "[" for label in LABELS]
            assert (
                len({colour for colour, is_one in zip(mark.marker.color, special, strict=True) if is_one})
                == 1
            )
            assert mark.marker.color[0] != mark.marker.color[1] == mark.marker.color[3]
    if picked is None:
        assert not lines
    else:
        row = weights[2] if side == "query" else weights[:, 1]
        order = sorted((at for at in range(N) if row[at] > 0), key=lambda at: -row[at])[:5]
        assert len(lines) == len(order)
        for line, other in zip(lines, order, strict=True):
            ends = [2, N + other] if side == "query" else [N + 1, other]
            assert [line[letter][0] for letter in "xyz"[:n_axis]] == shown.points[ends[0]].tolist()
            assert [line[letter][1] for letter in "xyz"[:n_axis]] == shown.points[ends[1]].tolist()
            weight = float(row[other])
            assert line.line.width == pytest.approx(max(1.0, 8 * weight))
            assert line.opacity == pytest.approx(0.35 + 0.5 * weight)
    legend = [
        trace_of_figure.name
        for trace_of_figure in figure.data
        if trace_of_figure.showlegend is not False and trace_of_figure.name
    ]
    if tint == "role":
        assert legend == names
    elif tint == "norm":
        assert legend == names
        [bar] = [
            trace_of_figure
            for trace_of_figure in figure.data
            if trace_of_figure.marker and trace_of_figure.marker.showscale
        ]
        assert "length" in bar.marker.colorbar.title.text
    else:
        assert legend == [*names, "special token", "token of the text"]
    assert figure.layout.showlegend
    if n_axis == 2:
        assert not figure.layout.xaxis.visible and not figure.layout.yaxis.visible
        (left, right), (low, high) = figure.layout.xaxis.range, figure.layout.yaxis.range
        assert left < shown.points[:, 0].min() and right > shown.points[:, 0].max()
        assert low < shown.points[:, 1].min() and high > shown.points[:, 1].max()
        assert figure.layout.yaxis.scaleanchor == "x" and figure.layout.yaxis.scaleratio == 1


@given(
    seeds, st.sampled_from([2, 3]), st.sampled_from(["attention", "tsne"]), st.sampled_from(["query", "key"])
)
@example(seed=73, n_axis=2, method="attention", side="query")  # where a place is only just outside
def test_circles_on_which_a_map_implies_a_share_of_the_nearest_keys_weight(seed, n_axis, method, side):
    shown, weights = map_of(seed, n_axis=n_axis, method=method), rows_of(seed)
    figure = draw_projection(shown, weights, picked=(2, 1), side=side)
    circles = [shape for shape in figure.layout.shapes if shape.type == "circle"]
    if (n_axis, method, side) != (2, "attention", "query"):
        assert not circles
        return
    centre = shown.points[2].astype(float)
    nearest = min(math.dist(centre, shown.points[N + key]) ** 2 for key in range(N) if weights[2, key] > 0)
    for circle, factor in zip(circles, (2, 10, 100), strict=True):
        radius = math.sqrt(nearest + math.log(factor))
        assert (circle.x0, circle.x1) == pytest.approx((centre[0] - radius, centre[0] + radius))
        assert (circle.y0, circle.y1) == pytest.approx((centre[1] - radius, centre[1] + radius))
    labels = [f"{label}·{at}" for label, at in zip(LABELS + KEYS, [*range(N)] * 2, strict=True)]
    strongest = sorted(range(N), key=lambda key: -weights[2, key])[:5]
    named = {2, N + 1} | {N + key for key in strongest if weights[2, key] > 0}
    _, _, lowest, highest, taken = place_labels(
        shown.points, labels, np.array([at in named for at in range(2 * N)]), 460
    )
    boxes_there, pixel = [tuple(box) for box in taken.tolist()], float(taken[0, 3]) / 14
    notes = {note.text: (note.x, note.y) for note in figure.layout.annotations}
    for text, factor in (("½", 2), ("1/10", 10), ("1/100", 100)):
        # The first of 16 places on the circle that covers the least, of those within the picture.
        radius = math.sqrt(nearest + math.log(factor))
        size = (7.3 * len(text) + 4) * pixel, 15 * pixel
        turns = [math.pi * (0.25 + step / 8) for step in range(16)]
        own = [
            (centre[0] + radius * math.cos(turn), centre[1] + radius * math.sin(turn), *size)
            for turn in turns
        ]
        within = [
            box
            for box in own
            if all(lowest[at] + size[at] / 2 <= box[at] <= highest[at] - size[at] / 2 for at in (0, 1))
        ]
        assert (text in notes) == bool(within)
        if within:
            covered = [round(math.fsum(shared(box, other) for other in boxes_there), 9) for box in within]
            best = within[covered.index(min(covered))]
            assert notes[text] == pytest.approx(best[:2])
            boxes_there.append(best)


@pytest.mark.parametrize(("n_axis", "n_token"), [(2, 30), (2, 31), (3, 12), (3, 13)])
def test_a_map_of_many_points_names_the_ends_of_lines(n_axis, n_token):
    """Of more than 60 points in the plane, and of more than 24 that can be turned."""
    rng = np.random.default_rng(0)
    tokens = hand_made.tokens([f"t{at}" for at in range(n_token)])
    shown = small_records.projection(
        2 * n_token,
        points=(rng.permutation(2 * n_axis * n_token).reshape(-1, n_axis) * 100).astype(np.float32),
        role=("query",) * n_token + ("key",) * n_token,
        position=np.array([*range(n_token)] * 2),
        query_tokens=tokens,
        key_tokens=tokens,
    )
    weights = np.zeros((n_token, n_token), dtype=np.float32)
    weights[3, [5, 7]] = 0.5
    weights[:3, 4] = 0.25
    for side, ends in (("query", ({3}, {4, 5, 7})), ("key", ({0, 1, 2, 3}, {4}))):
        figure = draw_projection(shown, weights, picked=(3, 4), side=side)
        texts = [
            trace_of_figure.text for trace_of_figure in figure.data if trace_of_figure.mode == "markers+text"
        ]
        named = tuple({at for at, text in enumerate(of_role) if text} for of_role in texts)
        if n_token in (13, 31):
            assert named == ends and hides_labels(figure)
        else:
            assert all(own >= wanted for own, wanted in zip(named, ends, strict=True))
            assert sum(map(len, named)) > 10


def test_points_of_a_large_map_are_smaller():
    def sizes(n_token: int) -> set[float]:
        tokens = hand_made.tokens([f"t{at}" for at in range(n_token)])
        points = np.arange(4 * n_token, dtype=np.float32).reshape(-1, 2)
        shown = small_records.projection(
            2 * n_token,
            points=points,
            role=("query",) * n_token + ("key",) * n_token,
            position=np.array([*range(n_token)] * 2),
            query_tokens=tokens,
            key_tokens=tokens,
        )
        figure = draw_projection(shown, np.zeros((n_token, n_token), dtype=np.float32))
        return {
            float(size)
            for trace_of_figure in figure.data
            if trace_of_figure.name
            for size in np.ravel(trace_of_figure.marker.size)
        }

    [usual], [small] = sizes(100), sizes(101)
    assert small < usual


@given(seeds, st.integers(1, 12), st.sampled_from([None, 0, 3]), st.sampled_from(["weights", "norms"]))
@pytest.mark.stand_ins
def test_bars_of_a_ranking(seed, n_key, picked, measure):
    rng = np.random.default_rng(seed)
    labels = [f"t{at}" for at in range(n_key)]
    allowed = rng.random((2, n_key)) < 0.8
    weights = np.where(allowed, rng.permutation(2 * n_key).reshape(2, n_key) / 32, 0)
    pattern = small_records.pattern(
        weights.tolist(),
        allowed=allowed,
        measure=measure,
        scores=None if measure == "norms" else rng.normal(size=(2, n_key)).astype(np.float32),
        queries=Axis.of(hand_made.tokens(["a", "b"])),
        keys=Axis.of(hand_made.tokens(labels)),
    )
    figure = draw_ranking(pattern, 1, picked_key=picked)
    [bars] = figure.data
    seen = [key for key in range(n_key) if allowed[1, key]]
    order = sorted(seen, key=lambda key: -weights[1, key])[:MOST_BARS]
    assert list(bars.x) == pytest.approx([weights[1, key] for key in order])
    assert list(bars.y) == [f"t{key}·{key}" for key in order]
    assert [text.strip() for text in bars.text] == [
        number_text(float(np.float32(weights[1, key]))) for key in order
    ]
    for data, key in zip(bars.customdata, order, strict=True):
        assert list(data[:2]) == ["key", key]
        assert len(data) == (2 if measure == "norms" else 3)
        assert measure == "norms" or data[2] == float(pattern.scores[1, key])
    assert [width > 0 for width in bars.marker.line.width] == [key == picked for key in order]
    assert ("score" in bars.hovertemplate) == (measure == "weights")
    low, high = figure.layout.xaxis.range
    assert low == 0 and high >= max([weights[1, key] for key in seen], default=0)
    assert bars.orientation == "h" and figure.layout.yaxis.autorange == "reversed"
    assert not figure.layout.xaxis.visible
    with pytest.raises(ValueError, match="not among the rows"):
        draw_ranking(pattern, 2)


@given(seeds, st.sampled_from([None, (1, 2)]), st.booleans())
def test_errors_as_shares_of_their_tolerance(seed, picked, is_across):
    rng = np.random.default_rng(seed)
    n_layer = 13 if is_across else 2
    differences = rng.choice([0.0, 1e-9, 1e-7, 1e-6, 1e-5, 2e-5], (n_layer, 3)).astype(np.float32)
    tolerances = rng.choice([1e-5, 1e-6, 0.0], (n_layer, 3)).astype(np.float32)
    figure = draw_errors(small_records.check(differences, tolerances), picked=picked)
    [cells] = figure.data
    for layer, head in np.ndindex(n_layer, 3):
        row, column = (head, layer) if is_across else (layer, head)
        difference, limit = float(differences[layer, head]), float(tolerances[layer, head])
        if limit == 0:
            expected = -5.0 if difference == 0 else 0.0
        else:
            expected = max(-5.0, math.log10(difference / limit)) if difference else -5.0
        assert float(cells.z[row][column]) == pytest.approx(expected, abs=1e-5)
        assert cells.text[row][column] == (
            f"largest difference {power_text(float(np.float32(difference)))}<br>tolerance {power_text(float(np.float32(limit)))}"
        )
    assert ("layer %{x}, head %{y}" in cells.hovertemplate) == is_across
    frames = [(shape.x0, shape.x1, shape.y0, shape.y1) for shape in figure.layout.shapes]
    framed = (0.5, 1.5, 1.5, 2.5) if is_across else (1.5, 2.5, 0.5, 1.5)
    assert frames == ([] if picked is None else [framed])
    titles = figure.layout.xaxis.title.text, figure.layout.yaxis.title.text
    assert titles == (("layer", "head") if is_across else ("head", "layer"))
    assert (cells.zmin, cells.zmax) == (-5, 0)
    both = np.stack([differences, tolerances], axis=-1)
    np.testing.assert_array_equal(cells.customdata, both.swapaxes(0, 1) if is_across else both)
    assert list(cells.colorbar.tickvals) == [-5, -4, -3, -2, -1, 0]
    assert list(cells.colorbar.ticktext) == ["10⁻⁵", "10⁻⁴", "10⁻³", "10⁻²", "10⁻¹", "tolerance"]


@given(seeds, st.integers(2, 40))
def test_tokens_whose_values_are_drawn(seed, n_token):
    weights = np.random.default_rng(seed).permutation(n_token).astype(np.float32)
    weights /= weights.sum()
    at = drawn_tokens(weights).tolist()
    assert at == sorted({*at}) and at[-1] == n_token - 1 and len(at) == min(n_token, MOST_DRAWN)
    lowest = min([float(weights[position]) for position in at[:-1]], default=0.0)
    assert all(number in at or weights[number] <= lowest for number in range(n_token))
    sentence = left_out(weights)
    share = share_text(math.fsum(float(weights[position]) for position in at))
    assert (
        sentence == ""
        if len(at) == n_token
        else sentence.startswith(f"{MOST_DRAWN} of {n_token} tokens") and share in sentence
    )


@given(seeds, st.sampled_from([3, MOST_STATES, MOST_STATES + 1, 30]), st.sampled_from([None, 1]))
def test_one_vector_and_a_context_vector(seed, n_token, picked):
    rng = np.random.default_rng(seed)
    weights = np.where(rng.random(n_token) < 0.8, rng.random(n_token), 0).astype(np.float32)
    weights /= weights.sum() or 1
    labels = [f"t{at}" for at in range(n_token)]
    keys, queries = Axis.of(hand_made.tokens(labels)), Axis.of(hand_made.tokens(["q0", "q1"]))
    figure = draw_one_vector(weights, keys, (queries, 1), picked=picked)
    at = drawn_tokens(weights).tolist()
    [values] = figure.data
    assert list(values.x) == [*range(len(at))]
    assert list(values.customdata) == [float(weights[position]) for position in at]
    assert list(values.text) == [f"t{position}·{position}" for position in at]
    widths = np.asarray(values.marker.line.width).tolist()
    assert [width > 0 for width in widths] == [position == picked for position in at]
    lines = [shape for shape in figure.layout.shapes if shape.type == "line" and shape.layer == "below"]
    drawn = [(place, position) for place, position in enumerate(at) if weights[position] > 0]
    assert [line.x0 for line in lines] == [place for place, _ in drawn]
    for line, (_, position) in zip(lines, drawn, strict=True):
        assert line.line.width == pytest.approx(0.6 + 13.4 * float(weights[position]))
        assert line.opacity == pytest.approx(0.35 + 0.65 * math.sqrt(float(weights[position])))
        assert line.line.color == (LIGHT.picked if position == picked else LIGHT.value)
    context = [shape for shape in figure.layout.shapes if shape.type == "rect"][-1]
    for line, (place, _) in zip(lines, drawn, strict=True):
        assert (
            line.x1 == pytest.approx(context.x0 + (context.x1 - context.x0) * (place + 0.5) / len(at))
            or len(at) < 4
        )
        assert line.y0 > line.y1 == context.y1
    assert [a.x1 < b.x1 for a, b in pairwise(lines)] == [True] * max(0, len(lines) - 1)
    dots = [shape for shape in figure.layout.shapes if shape.line.dash == "dot"]
    gaps = [place for place, (a, b) in enumerate(pairwise(at)) if b != a + 1]
    assert [round(dot.x0 - 0.36) for dot in dots] == gaps
    boxes = [shape for shape in figure.layout.shapes if shape.type == "rect"]
    assert len(boxes) == len(at) + 3 and {box.y1 - box.y0 for box in boxes} == {32}
    assert [(box.x0, box.x1) for box in boxes[:-3]] == [
        (place - 0.36, place + 0.36) for place in range(len(at))
    ]
    left, wide = (len(at) - 1) / 2 - max(len(at), 4) / 2, max(len(at), 4)
    ends = [(box.x0 - left, box.x1 - left) for box in boxes[-3:]]  # one vector, decoder, context vector
    shares_ = [(0.66, 1), (0, 0.42), (0.04, 0.96)]
    assert ends == [pytest.approx((start * wide, stop * wide)) for start, stop in shares_]
    assert not any(annotation.showarrow for annotation in figure.layout.annotations if annotation.text)
    texts = {
        annotation.text: (annotation.x, annotation.y)
        for annotation in figure.layout.annotations
        if annotation.text
    }
    states = [f"h{position + 1}" for position in at]
    assert [state in texts for state in states] == [len(at) <= MOST_STATES] * len(at)
    names = "<b>one vector</b>", "decoder, every word", "<b>context vector for q1·1</b>"
    for name, box in zip(names, boxes[-3:], strict=True):
        assert texts[name] == pytest.approx(((box.x0 + box.x1) / 2, (box.y0 + box.y1) / 2))
    one_vector, decoder, _ = boxes[-3:]
    handed = [
        (arrow.ax, arrow.x)
        for arrow in figure.layout.annotations
        if arrow.showarrow and arrow.y == arrow.ay == texts[names[0]][1]
    ]
    assert handed == [(one_vector.x0, decoder.x1)]
    numbers = {number_text(float(weights[at[place]])) for place in written_numbers(weights[at])}
    assert numbers <= {*texts}
    joined = [
        annotation
        for annotation in figure.layout.annotations
        if annotation.showarrow and annotation.y == annotation.ay and annotation.ax < len(at) - 1
    ]
    chain = [place for place, (a, b) in enumerate(pairwise(at)) if b == a + 1]
    assert [round(arrow.ax - 0.36) for arrow in joined if arrow.y < 400] == chain


@given(seeds, st.integers(1, 40), st.sampled_from([None, 0]))
def test_numbers_that_have_room_beside_each_other(seed, n, first):
    row = np.random.default_rng(seed).permutation(n).astype(float)
    written = written_numbers(row, first=first)
    room = math.ceil(n / 8)
    assert first is None or written[0] == first
    assert all(abs(a - b) >= room for a, b in pairwise(sorted(written)))
    for place in range(n):
        is_large = row[place] >= 0.05 * max(row)
        near = [part for part in written if abs(part - place) < room]
        assert place in written or not is_large or near
        assert place not in written or is_large or place == first


@given(seeds, st.sampled_from([(MOST_DOTS + 1, 3), (3, MOST_DOTS + 1), (500, 200)]))
def test_an_overview_lies_over_all_cells(seed, shape):
    cells = np.random.default_rng(seed).random(shape).astype(np.float32)
    layout = overview(cells, (0.0, 1.0), number="weight", colour="linear", theme="light")
    rows, columns = (math.ceil(size / MOST_DOTS) for size in shape)
    [image], [words] = layout["images"], layout["annotations"]
    assert (image["x"], image["y"]) == (-0.5, -0.5)
    assert image["sizex"] == math.ceil(shape[1] / columns) * columns
    assert image["sizey"] == math.ceil(shape[0] / rows) * rows
    assert f"of {rows} × {columns} cells" in words["text"] and "largest weight" in words["text"]


@given(seeds, st.integers(1, 20), st.integers(1, 20), st.integers(1, 7))
def test_a_pooled_cell_is_the_largest_of_its_block(seed, n_row, n_column, most):
    rng = np.random.default_rng(seed)
    cells = rng.random((n_row, n_column)).astype(np.float32)
    cells[rng.random(cells.shape) < 0.2] = np.nan
    pooled = pool(cells, most)
    rows, columns = math.ceil(n_row / most), math.ceil(n_column / most)
    assert pooled.shape == (math.ceil(n_row / rows), math.ceil(n_column / columns))
    for row, column in np.ndindex(*pooled.shape):
        block = [
            float(cells[at])
            for at in np.ndindex(n_row, n_column)
            if at[0] // rows == row and at[1] // columns == column and not math.isnan(cells[at])
        ]
        assert (math.isnan(pooled[row, column]) and not block) or pooled[row, column] == max(block)


@given(st.floats(0, 1), st.booleans())
def test_a_colour_lies_between_those_beside_it_on_the_scale(share, signed):
    scale = difference_scale(LIGHT) if signed else weight_scale(LIGHT)
    [colour] = colours_at(np.array([share]), "light", signed=signed)
    after = next(at for at, (place, _) in enumerate(scale) if place >= share)
    ends = [scale[max(after - 1, 0)], scale[after]]
    for channel, at in enumerate((1, 3, 5)):
        low, high = (int(end[at : at + 2], 16) for _, end in ends)
        assert min(low, high) <= colour[channel] <= max(low, high)


def test_scales_go_from_end_to_end():
    assert (weight_scale(LIGHT)[0], weight_scale(LIGHT)[-1]) == ((0.0, LIGHT.background), (1.0, LIGHT.strong))
    scale = difference_scale(LIGHT)
    assert (scale[0], scale[-1]) == ((0.0, LIGHT.falls), (1.0, LIGHT.grows))
    assert dict(scale)[0.5] == LIGHT.background
    places = [place for place, _ in weight_scale(LIGHT, logarithmic=True)]
    assert places[0] == 0 and places[-1] == 1
    assert [b / a for a, b in pairwise(places[1:])] == pytest.approx([10 ** (4 / 32)] * 31)
    points = number_scale(LIGHT)
    assert points[-1] == (1.0, LIGHT.strong) and points[0][0] == 0.0 and points[0][1] != LIGHT.background


@given(st.lists(st.sampled_from(["cat", "##s", "[SEP]", "door"]), min_size=3, max_size=9))
def test_groups_of_points(labels):
    tokens = hand_made.tokens(["cat", *labels])
    n = len(tokens)
    for at, label in enumerate(tokens.labels):
        special = label[0] == "["
        follows = at + 1 < n and tokens.continues_word[at + 1]
        part = (
            "special token"
            if special
            else "further piece of a word"
            if tokens.continues_word[at]
            else "first piece of a word"
            if follows
            else "whole word"
        )
        assert group(tokens, at, "token") == label
        assert group(tokens, at, "position mod 5") == f"position {at % 5} mod 5"
        assert group(tokens, at, "special") == ("special token" if special else "token of the text")
        assert group(tokens, at, "part of word") == part
    shown = small_records.projection(
        2 * n,
        points=np.zeros((2 * n, 2), dtype=np.float32),
        role=("query",) * n + ("key",) * n,
        position=np.array([*range(n)] * 2),
        query_tokens=tokens,
        key_tokens=tokens,
    )
    tinted = tinting(shown, "part of word", np.zeros(2 * n, dtype=np.float32), LIGHT)
    assert [*tinted.groups] == sorted({group(tokens, at, "part of word") for at in range(n)})
    for number, colour in enumerate(tinted.colours):
        assert colour == tinted.groups[group(tokens, number % n, "part of word")]
    assert len({*tinted.groups.values()}) == len(tinted.groups)
    others = replace(shown, key_tokens=hand_made.tokens(["le", *["##s"] * (n - 1)]))
    tinted = tinting(others, "token", np.zeros(2 * n, dtype=np.float32), LIGHT)
    for at, colour in enumerate(tinted.colours):
        label = tokens.labels[at] if at < n else "le" if at == n else "##s"
        assert colour == tinted.groups[label]
    alike = tinting(shown, "norm", np.full(2 * n, 3.0, dtype=np.float32), LIGHT).scale
    assert alike["cmin"] == 3 < alike["cmax"] < 3.01  # a scale has two ends
    positions = tinting(shown, "position", np.zeros(2 * n, dtype=np.float32), LIGHT)
    assert (positions.scale["cmin"], positions.scale["cmax"]) == (0, n - 1)
    assert positions.colours.tolist() == [*range(n)] * 2


@given(seeds, st.integers(2, 14), st.sampled_from([1, 3, 40, 41, 81]), st.sampled_from([None, 0]))
def test_a_grid_of_layers_and_tokens(seed, n_row, n_token, picked):
    rng = np.random.default_rng(seed)
    numbers = rng.random((n_row, n_token)).astype(np.float32)
    texts = [[f"{row} {at}" for at in range(n_token)] for row in range(n_row)]
    figure = draw_layer_grid(
        numbers,
        row="head",
        names=[f"n{at}" for at in range(n_token)],
        written=[f"w{at}" for at in range(n_token)],
        colours=Colours(scale=weight_scale(LIGHT), low=-1.0, high=2.0, title="numbers"),
        hovers=texts,
        letters=texts,
        picked=picked,
    )
    cells, letters = figure.data
    is_across = n_row > 12
    assert (cells.zmin, cells.zmax, cells.colorbar.title.text) == (-1, 2, "numbers")
    of_tokens, of_rows = (cells.y, cells.x) if is_across else (cells.x, cells.y)
    assert list(of_tokens) == [f"n{at}·{at}" for at in range(n_token)] and list(of_rows) == [*range(n_row)]
    for row, at in np.ndindex(n_row, n_token):
        place = (at, row) if is_across else (row, at)
        assert cells.z[place[0]][place[1]] == numbers[row, at]
        assert list(cells.customdata[place[0]][place[1]]) == [row, at]
        assert cells.hovertext[place[0]][place[1]] == f"{row} {at}"
    written = {(x, y): text for x, y, text in zip(letters.x, letters.y, letters.text, strict=True)}
    for row, at in np.ndindex(n_row, n_token):
        name = f"n{at}·{at}"
        assert written[(row, name) if is_across else (name, row)] == f"{row} {at}"
    axis = figure.layout.yaxis if is_across else figure.layout.xaxis
    step = math.ceil(n_token / 40)
    assert list(axis.ticktext) == [f"w{at}" for at in range(0, n_token, step)]
    assert list(axis.tickvals) == [f"n{at}·{at}" for at in range(0, n_token, step)]
    other = figure.layout.xaxis if is_across else figure.layout.yaxis
    assert other.title.text == "head" and other.dtick == 1
    assert list(figure.layout.xaxis.range) == [-0.5, len(cells.x) - 0.5]
    assert list(figure.layout.yaxis.range) == [len(cells.y) - 0.5, -0.5]
    assert (cells.xgap, cells.ygap) == tuple(int(len(side) <= 48) for side in (cells.x, cells.y))
    frames = [(shape.x0, shape.x1, shape.y0, shape.y1) for shape in figure.layout.shapes]
    frame = (-0.5, n_row - 0.5, -0.5, 0.5) if is_across else (-0.5, 0.5, -0.5, n_row - 0.5)
    assert frames == ([] if picked is None else [frame])


@pytest.mark.parametrize("shape", [(24, 3), (25, 3), (97, 5)])
def test_up_to_24_rows_have_labels(shape):
    labels = [f"l{at}" for at in range(shape[0])]
    figure = draw_matrix(
        np.zeros(shape, dtype=np.float32),
        title="Q",
        rows=("token", 0),
        columns=("dimension", 0),
        labels=labels,
    )
    axis = figure.layout.yaxis
    assert list(axis.ticktext or []) == (labels if shape[0] <= 24 else [])
    assert (axis.title.text == "token", axis.showticklabels) == (shape[0] > 24, shape[0] <= 24)


@pytest.mark.parametrize(
    ("shape", "height"),
    [((1, 1), 260), ((5, 7), 186), ((96, 96), 260), ((1, 90), 24), ((3, 1000), 45), ((30, 12), 260)],
)
def test_a_picture_is_as_high_as_its_matrix_is_beside_its_width(shape, height):
    """260 px for the longer side; rows of at least 15 px while all of them fit, and never under 24 px in all."""
    figure = draw_matrix(
        np.zeros(shape, dtype=np.float32), title="Q", rows=("token", None), columns=("dimension", None)
    )
    assert figure.layout.height == 64 + height


@given(seeds, st.sampled_from([(5, 7), (96, 30), (97, 5), (300, 200)]), st.booleans())
def test_a_picture_of_a_matrix(seed, shape, several):
    cells = np.random.default_rng(seed).normal(size=shape).astype(np.float32)
    picked = range(2, 4) if several else 3
    labels = [f"l{at}" for at in range(shape[0])]
    figure = draw_matrix(cells, title="Q", rows=("token", picked), columns=("dimension", 1), labels=labels)
    [drawn] = figure.data
    rows, columns = (math.ceil(size / 96) for size in shape)
    z = np.asarray(drawn.z)
    assert z.shape == (math.ceil(shape[0] / rows), math.ceil(shape[1] / columns))
    largest = float(np.abs(cells).max())
    assert (drawn.zmin, drawn.zmax) == pytest.approx((-largest, largest))
    assert drawn.hovertemplate.startswith(
        "token %{y}, dimension %{x}: " if rows == columns == 1 else f"largest of {rows} × {columns}: "
    )
    of_rows, of_columns = figure.layout.shapes
    first, last = (2 // rows, 3 // rows) if several else (3 // rows, 3 // rows)
    assert (of_rows.y0, of_rows.y1, of_rows.x0, of_rows.x1) == (
        first - 0.5,
        last + 0.5,
        -0.5,
        z.shape[1] - 0.5,
    )
    at = 1 // columns
    assert (of_columns.x0, of_columns.x1, of_columns.y0, of_columns.y1) == (
        at - 0.5,
        at + 0.5,
        -0.5,
        z.shape[0] - 0.5,
    )
    axis = figure.layout.yaxis
    has_labels = shape[0] <= 24
    assert bool(axis.showticklabels) == has_labels and (axis.title.text == "token") != has_labels
    if has_labels:
        assert list(axis.ticktext) == labels and list(axis.tickvals) == [*range(shape[0])]
    assert axis.autorange == "reversed" and figure.layout.title.text.endswith(f"{shape[0]:,} × {shape[1]:,}")


@given(
    seeds,
    st.sampled_from([5, 9, 25, 27, 32]),
    st.booleans(),
    st.sampled_from([0.0, -9.0]),
    st.sampled_from([None, 2.0]),
)
def test_bars_of_a_pair(seed, n, largest_first, bias, softcap):
    rng = np.random.default_rng(seed)
    query, key = (rng.permutation(n).astype(np.float32) - 3 for _ in range(2))
    score = Score(query=query, key=key, scale=0.25, softcap=softcap, bias=bias, allowed=True)
    figure = draw_pair(score, largest_first=largest_first)
    terms = [0.25 * float(a) * float(b) for a, b in zip(query, key, strict=True)]
    order = sorted(range(n), key=lambda at: -abs(terms[at])) if largest_first else [*range(n)]
    total = math.fsum(terms)
    last = [] if softcap is None else [("softcap", softcap * math.tanh(total / softcap) - total)]
    last += [("bias", bias)] if bias else []
    last = [(name, height) for name, height in last if height]
    names = [str(at) for at in order] + [name for name, _ in last]
    heights = [terms[at] for at in order] + [height for _, height in last]
    of_query, of_key, added, sums = figure.data
    assert list(of_query.y) == [float(query[at]) for at in order] and list(of_key.y) == [
        float(key[at]) for at in order
    ]
    assert [next(iter(row)) for row in added.customdata] == names
    assert list(added.y) == pytest.approx(heights, abs=1e-5)
    assert list(sums.y) == pytest.approx(
        [math.fsum(heights[: at + 1]) for at in range(len(heights))], abs=1e-4
    )
    assert list(sums.marker.size) == [0] * (len(heights) - 1) + [10]
    for bars in (of_query, of_key, added):
        assert list(bars.x) == [*range(len(bars.y))]
        assert [row[1] for row in bars.customdata] == [
            number_text(height) for height in added.y[: len(bars.y)]
        ]
    for name in ("xaxis", "yaxis", "yaxis2", "yaxis3", "yaxis4"):
        axis = figure.layout[name]
        assert axis.fixedrange and axis.showgrid is False and axis.automargin
        assert axis.zeroline == (name != "xaxis")
    ticks = dict(zip(figure.layout.xaxis.tickvals, figure.layout.xaxis.ticktext, strict=True))
    assert all(names[place] == text for place, text in ticks.items())
    assert {name for name, _ in last} <= {*ticks.values()} and 0 in ticks
    longest = 1.08 * max(map(abs, [*query.tolist(), *key.tolist()]))
    for axis in (figure.layout.yaxis, figure.layout.yaxis2):
        assert list(axis.range) == pytest.approx([-longest, longest])
    assert list(figure.layout.xaxis.range) == pytest.approx([-0.8, len(names) - 0.2])
    step = math.ceil(n / 8)
    labelled = [*range(0, n, step)]
    if last and n - labelled[-1] < step / 2:
        del labelled[-1]  # there is no room beside what comes last
    assert [*ticks] == [*labelled, *range(n, len(names))]
    title = "dimension, largest contribution first" if largest_first else "dimension"
    assert figure.layout.xaxis.title.text == title
    domains = [figure.layout[name].domain for name in ("yaxis", "yaxis2", "yaxis3", "yaxis4")]
    assert all(above[0] > below[1] for above, below in pairwise(domains))
    notes = [(annotation.text, annotation.y) for annotation in figure.layout.annotations]
    assert [y for _, y in notes] == [domain[1] for domain in domains] and notes[2][0].endswith("0.25")


@given(seeds, st.integers(1, 60))
def test_tick_labels_of_many_sources(seed, n):
    parts = np.random.default_rng(seed).normal(size=(n, n))
    sources = SimpleNamespace(parts=parts, sources=[SimpleNamespace(short=f"s{at}") for at in range(n)])
    figure = draw_score_sources(sources)
    [cells] = figure.data
    step = math.ceil(n / 24)
    for axis in (figure.layout.xaxis, figure.layout.yaxis):
        assert list(axis.ticktext) == [f"s{at}" for at in range(0, n, step)]
        assert list(axis.tickvals) == [*range(0, n, step)]
    assert (cells.xgap, cells.ygap) == (int(n <= 30),) * 2
    assert figure.layout.height == min(max(300, 13 * n + 90), 560)  # 13 px a row, 90 for the labels
    assert tuple(figure.layout.xaxis.range) == (-0.5, n - 0.5) == tuple(figure.layout.yaxis.range)[::-1]
    assert "key" in figure.layout.xaxis.title.text and "query" in figure.layout.yaxis.title.text


@pytest.mark.parametrize("n_kind", [1, 2])
@pytest.mark.parametrize("shape", [(1, 1), (3, 1), (2, 3)])
def test_where_a_recorded_difference_is(n_kind, shape):
    differences = np.zeros(shape, dtype=np.float32)
    differences[-1, -1] = 2e-6
    check = small_records.check(differences)
    if n_kind == 2:
        check = replace(
            check,
            differences=dict(check.differences) | {"decoder": np.zeros(shape, dtype=np.float32)},
            tolerances=dict(check.tolerances) | {"decoder": check.tolerances["encoder"].copy()},
        )
    place = f"L{shape[0] - 1} H{shape[1] - 1}" if shape[1] > 1 else f"L{shape[0] - 1}"
    expected = place if n_kind == 1 else f"encoder {place}"
    assert worst_place(check) == ("" if n_kind == 1 and shape == (1, 1) else expected)
    failed = replace(check, tolerances={kind: np.zeros(shape, dtype=np.float32) for kind in check.tolerances})
    report = VerificationReport(
        checks=(check, failed), provenance=small_records.PROVENANCE, not_compared={"mask": "none"}
    )
    rows = verdict_rows(report)
    assert [row[:2] for row in rows] == [
        ("attention weights", "passed"),
        ("attention weights", "FAILED"),
        ("mask", "not compared"),
    ]
    assert rows[0][2:4] == (power_text(float(np.float32(2e-6))), power_text(float(np.float32(1e-5))))
    assert rows[2][5] == "none" and rows[0][5] == "weight"


@given(st.floats(-2000, 2000), st.floats(1e-3, 1e5))
def test_numbers_in_cells_and_variances(number, variance):
    written = cell_text(number)
    digits = written.replace("−", "-").replace(",", "")
    assert abs(float(digits) - number) <= max(5.1e-4, 5e-3 * abs(number))
    assert written != "−0.000"
    text = variance_text(variance)
    assert float(text.replace(",", "")) == pytest.approx(variance, rel=1e-3)
    assert ("." not in text and "e" not in text) or variance < 1000


@given(st.text(st.sampled_from("ab c"), min_size=1, max_size=60), st.integers(2, 40))
def test_shortened_text_fits_and_keeps_its_beginning(text, most):
    short = shortened(text, most)
    assert len(short) <= most and (short == text) == (len(text) <= most)
    if short != text:
        begin, end = short.split("…")
        assert text.startswith(begin) and text.endswith(end) and len(end) == (4 if most > 8 else 0)


def test_lines_of_methods_differ_by_colour_dash_and_mark():
    curve = SimpleNamespace(removed=np.array([1.0, 0.5]))
    methods = [f"m{at}" for at in range(7)]
    deletion = SimpleNamespace(
        counts=np.array([0, 2]),
        curves=[SimpleNamespace(method=method, removed=curve.removed) for method in methods],
        chance=SimpleNamespace(counts=np.array([0, 2]), removed=np.array([[0.0, 0.1], [0.2, 0.3]])),
    )
    figure = draw_deletion(deletion, {method: method for method in methods}, outcome="logit")
    band, *lines = figure.data
    looks = [(line.line.color, line.line.dash, line.marker.symbol) for line in lines]
    assert len({*looks}) == 7 and [line.line.dash for line in lines[:2]] == ["solid", "dash"]
    assert band.fill == "toself" and figure.layout.showlegend
    assert (figure.layout.xaxis.title.text, figure.layout.yaxis.title.text) == ("tokens removed", "logit")


def test_labels_of_an_axis_have_the_position_of_their_first_token():
    axis = Axis.of(hand_made.tokens(LABELS), "words")
    assert axis_labels(axis) == ["[CLS]·0", "cat·1", "doors·2", "[SEP]·4"]


rgb = st.lists(st.sampled_from([0, 3, 10, 11, 90, 200, 255]), min_size=3, max_size=3)


def luminance(colour: list[int]) -> float:
    """Relative luminance, WCAG 2.2."""
    linear = [
        channel / 255 / 12.92 if channel / 255 <= 0.04045 else ((channel / 255 + 0.055) / 1.055) ** 2.4
        for channel in colour
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast_of(colour: list[int], other: list[int]) -> float:
    low, high = sorted((luminance(colour), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@given(rgb, rgb, st.sampled_from(["light", "dark"]))
def test_letters_have_the_colour_with_the_larger_contrast(fill, other, theme):
    assert contrast(np.array([fill], float), np.array([other], float))[0] == pytest.approx(
        contrast_of(fill, other)
    )
    [ink] = inks(np.array([fill], dtype=np.uint8), theme)
    palette = THEMES[theme]
    of_text, of_background = (
        contrast_of(fill, [int(colour[at : at + 2], 16) for at in (1, 3, 5)])
        for colour in (palette.text, palette.background)
    )
    assert ink == (palette.text if of_text >= of_background else palette.background)


boxes = st.lists(st.tuples(*[st.integers(-4, 4)] * 2, *[st.integers(1, 5)] * 2), min_size=1, max_size=4)


def shared(own: tuple[int, ...], other: tuple[int, ...]) -> float:
    """Area that two boxes share, each given by its middle, width and height."""
    sides = []
    for axis in (0, 1):
        low = max(box[axis] - box[axis + 2] / 2 for box in (own, other))
        high = min(box[axis] + box[axis + 2] / 2 for box in (own, other))
        sides.append(max(0.0, high - low))
    return sides[0] * sides[1]


@given(boxes, boxes)
def test_the_area_that_boxes_share(own, others):
    areas = overlap(np.array(own, float), np.array(others, float))
    assert areas.tolist() == pytest.approx(
        [math.fsum(shared(value, other) for other in others) for value in own]
    )


@given(boxes, st.data())
def test_labels_that_cover_others_are_hidden_unless_they_are_named(own, data):
    named = np.array(data.draw(st.lists(st.booleans(), min_size=len(own), max_size=len(own))))
    hidden = _crowded({at: np.array(box, float) for at, box in enumerate(own)}, named)
    assert len({*hidden}) == len(hidden) and not named[hidden].any()
    left = [at for at in range(len(own)) if at not in hidden]
    for at in left:
        for other in left:
            covered = shared(own[at], own[other]) / min(
                own[label][2] * own[label][3] for label in (at, other)
            )
            assert at == other or covered <= 0.02 or (named[at] and named[other])
    if not any(shared(own[at], own[other]) for at in range(len(own)) for other in range(at)):
        assert hidden == []


@given(seeds, st.integers(2, 8))
def test_labels_of_a_map_lie_within_it_and_beside_their_points(seed, n):
    rng = np.random.default_rng(seed)
    points = (rng.permutation(2 * n).reshape(n, 2) * 10).astype(np.float32)
    texts = [f"label {at}" * (at % 3 > 0) for at in range(n)]
    shown, sides, lowest, highest, taken = place_labels(points, texts, np.ones(n, dtype=bool), 460)
    assert shown == texts and len(sides) == n  # all are named
    for box in taken:
        assert (box[:2] - box[2:] / 2 >= lowest - 1e-9).all() and (
            box[:2] + box[2:] / 2 <= highest + 1e-9
        ).all()
    scale = 340 / float(np.ptp(points, axis=0).max())
    np.testing.assert_allclose(taken[:n, :2], points)
    np.testing.assert_allclose(taken[:n, 2:], 14 / scale)
    labelled = [at for at in range(n) if texts[at]]
    for at, box in zip(
        labelled, sorted(taken[n:].tolist(), key=lambda box: _nearest(points, box)), strict=False
    ):
        assert box[2] * scale == pytest.approx(7.3 * len(texts[at]) + 8) and box[3] * scale == pytest.approx(
            15
        )


BESIDE = {
    "top center": (0, 1),
    "bottom center": (0, -1),
    "middle right": (0.6, 0),
    "middle left": (-0.6, 0),
    "top right": (0.6, 0.9),
    "top left": (-0.6, 0.9),
    "bottom right": (0.6, -0.9),
    "bottom left": (-0.6, -0.9),
}
"""Where the middle of a label is from its point, in widths and heights of the label and the gap."""


def hidden_labels(own: dict[int, tuple[float, ...]], named: list[bool]) -> list[int]:
    """Those of which others cover more than 2%, the most covered ones first, until the rest can be read."""
    left, hidden = dict(own), []
    while True:
        covered = {
            at: [
                shared(box, other) / min(box[2] * box[3], other[2] * other[3])
                for number, other in left.items()
                if number != at
            ]
            for at, box in left.items()
        }
        unreadable = [at for at in left if not named[at] and max(covered[at], default=0) > 0.02]
        if not unreadable:
            return hidden
        hidden.append(max(unreadable, key=lambda at: round(math.fsum(covered[at]), 9)))
        del left[hidden[-1]]


@given(seeds)
def test_labels_are_hidden_from_the_most_covered_on(seed):
    rng = np.random.default_rng(seed)
    for _ in range(5):
        own = [(*rng.random(2) * [90, 40], *(rng.random(2) * [40, 9] + [20, 8])) for _ in range(7)]
        named = [bool(rng.random() < 0.2) for _ in own]
        hidden = _crowded({3 * at: np.array(box) for at, box in enumerate(own)}, np.repeat(named, 3))
        assert hidden == [3 * at for at in hidden_labels(dict(enumerate(own)), named)]


@given(seeds, st.integers(1, 9), st.booleans())
def test_sides_of_labels_are_those_that_cover_the_least(seed, n, is_narrow):
    """Label by label, three times over: each where it shares the least area with the points and the other labels."""
    rng = np.random.default_rng(seed)
    points = rng.random((n, 2)) * (1 if is_narrow else 9)
    points[0], points[-1] = [9, 5], [0, 0]
    texts = ["label " * int(rng.integers(1, 4)) * bool(rng.random() < 0.9) for _ in range(n)]
    named = [bool(rng.random() < 0.3) for _ in range(n)]
    shown, sides, lowest, highest, taken = place_labels(points, texts, np.array(named), 460)
    scale = 340 / (9.0 if n > 1 else 1e-9)
    dots = [(x * scale, y * scale, 14, 14) for x, y in points.tolist()]
    options = {
        at: [
            (dots[at][0] + x * (wide + 10), dots[at][1] + y * (15 + 1), wide, 15) for x, y in BESIDE.values()
        ]
        for at, text in enumerate(texts)
        if text
        for wide in [7.3 * len(text) + 8]
    }
    chosen: dict[int, int] = {}
    for _ in range(3):
        for at, boxes_of_label in options.items():
            others = [options[other][side] for other, side in chosen.items() if other != at]
            areas = [math.fsum(shared(box, other) for other in [*dots, *others]) for box in boxes_of_label]
            chosen[at] = min(range(8), key=lambda side: round(areas[side], 6))
    placed = {at: options[at][side] for at, side in chosen.items()}
    hidden = hidden_labels(placed, named)
    assert shown == ["" if at in hidden else text for at, text in enumerate(texts)]
    left = {at: box for at, box in placed.items() if at not in hidden}
    assert [side for at, side in enumerate(sides) if at in left] == [[*BESIDE][chosen[at]] for at in left]
    whole = np.array([*dots, *left.values()])
    np.testing.assert_allclose(taken, whole / scale, rtol=1e-9)
    np.testing.assert_allclose(lowest, (whole[:, :2] - whole[:, 2:] / 2).min(axis=0) / scale, rtol=1e-9)
    np.testing.assert_allclose(highest, (whole[:, :2] + whole[:, 2:] / 2).max(axis=0) / scale, rtol=1e-9)


def _nearest(points: np.ndarray, box: list[float]) -> int:
    return min(range(len(points)), key=lambda at: math.dist(points[at], box[:2]))


def test_labels_are_read_literally_by_plotly():
    assert literal("$a$ <b>&") == "&#36;a&#36; &lt;b&gt;&amp;" and literal('"it\'s"') == '"it\'s"'
    assert [shortened("abcdefghij", most) for most in (8, 9, 10)] == ["abcdefg…", "abcd…ghij", "abcdefghij"]
    assert isolated("a א") == "\u2068a א\u2069" and isolated("é") == "é" and isolated("a") == "a"
    assert aliases(["a", "b", "c"], ["a", "x", "c"]) == {"b": "x"}


def test_attributions_of_all_methods_have_one_scale_of_shares():
    values = np.array([0.5, -2.0, 0.0], dtype=np.float32)
    attributions = [
        InputAttribution(method=METHODS[0], values=values),
        InputAttribution(method=METHODS[1], values=0 * values),
    ]
    figure = draw_attributions(
        attributions,
        hand_made.tokens(["a", "b", "c"]),
        {result.method: result.method for result in attributions},
    )
    cells, letters = figure.data
    assert (cells.zmin, cells.zmax) == (-1, 1)
    assert np.asarray(cells.z).tolist() == [[0.25, 0.0], [-1.0, 0.0], [0.0, 0.0]]
    assert list(letters.text) == ["0.500", "0.000", "−2.00", "0.000", "0.000", "0.000"]
    assert list(figure.layout.yaxis.range) == [2.5, -0.5] and list(figure.layout.yaxis.ticktext) == [
        "a",
        "b",
        "c",
    ]


@pytest.mark.parametrize("n_token", [64, 65, 129])
def test_at_most_64_tokens_are_named_beside_their_attributions(n_token):
    tokens = hand_made.tokens([f"t{at}" for at in range(n_token)])
    attribution = InputAttribution(method=METHODS[0], values=np.ones(n_token, dtype=np.float32))
    axis = draw_attributions([attribution], tokens, {METHODS[0]: "method"}).layout.yaxis
    named = range(0, n_token, math.ceil(n_token / 64))
    assert list(axis.ticktext) == [f"t{at}" for at in named]
    assert list(axis.tickvals) == [f"t{at}·{at}" for at in named]


def test_numbers_on_strong_colours_have_the_colour_of_the_background():
    """The largest of each method, above 0 or below, is as strong as a colour can be; 0 is the background."""
    attribution = InputAttribution(
        method=METHODS[0], values=np.array([-0.5, 0.0, 0.25, 0.5], dtype=np.float32)
    )
    for theme, palette in THEMES.items():
        letters = draw_attributions(
            [attribution], hand_made.tokens(["a", "b", "c", "d"]), {METHODS[0]: "method"}, theme=theme
        ).data[1]
        assert list(letters.textfont.color)[:2] == [palette.background, palette.text]
        assert letters.textfont.color[3] == palette.background


@pytest.mark.parametrize("n_token", [40, 41])
def test_numbers_are_in_the_cells_of_up_to_40_tokens(n_token):
    tokens = hand_made.tokens([f"t{at}" for at in range(n_token)])
    attribution = InputAttribution(method=METHODS[0], values=np.ones(n_token, dtype=np.float32))
    figure = draw_attributions([attribution], tokens, {METHODS[0]: "method"})
    assert [marks.type for marks in figure.data] == ["heatmap", "scatter"][: 1 + (n_token == 40)]
    assert list(figure.layout.yaxis.ticktext) == [f"t{at}" for at in range(n_token)]


def test_changes_have_their_sign():
    assert [signed_text(number) for number in (0.5, 0.0, -0.5, 0.25)] == ["+0.500", "0", "−0.500", "+0.250"]
    assert [percent_text(number) for number in (0.0, 0.834, 1.0)] == ["0%", "83%", "100%"]
    assert number_text(0.001) == "0.00100" and "10⁻⁴" in number_text(0.00099)
    assert [number_text(number) for number in (999.4, 999.5, 1e6)] == ["999", "1,000", "10⁶"]
    assert [cell_text(number) for number in (0.9994, 0.9995, -0.0004)] == ["0.999", "1.00", "0.000"]
    assert power_text(100.0) == "100" and power_text(99.4) == "99" and power_text(999.4) == "999"
    assert [power_text(number) for number in (1000.0, 0.01, 0.015)] == ["10³", "0.01", "0.015"]


def test_tones_of_a_table_of_few_numbers():
    table = np.zeros((20, 20), dtype=np.float32)
    assert tone_limit(table) == 1.0
    table[3, 4] = -5
    assert tone_limit(table) == 5.0
    [cells], [likeness] = draw_table(table).data, draw_likeness(table + 1, n_used=2).data
    assert (cells.zmin, cells.zmax) == (-5, 5) and (likeness.zmin, likeness.zmax) == (-1, 1)


@pytest.mark.parametrize("lowest", [0.25, -0.25])
def test_the_scale_of_similarities_has_0_at_its_end_or_in_its_middle(lowest):
    similar = np.array([[lowest, 0.5], [0.75, 1.0]], dtype=np.float32)
    similarities = LayerSimilarities(kind="encoder", similarities=similar)
    [cells] = draw_layer_similarities(similarities, hand_made.tokens(["a", "b"])).data
    assert (cells.zmin, cells.zmax) == ((0 if lowest > 0 else -1), 1)
    expected = weight_scale(LIGHT) if lowest > 0 else difference_scale(LIGHT)
    assert [*map(tuple, cells.colorscale)] == expected
