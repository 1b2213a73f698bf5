"""What figures draw of drawn numbers: cells, lines, marks, ends of axes and hover texts are found again in plain Python.

Queries and keys are of different texts and numbers, so that mixing them up is noticed.
"""

import math
import re
from dataclasses import replace
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from attnviz.effects.ablation import HeadEffects, Removal
from attnviz.effects.lens import FollowedTokens
from attnviz.effects.logit_attribution import DirectParts
from attnviz.effects.over_pairs import mean_direct_effects
from attnviz.figures import comparison as of_comparison
from attnviz.figures.ablation import draw_ablations, draw_removal
from attnviz.figures.bars import draw_effect, draw_rows
from attnviz.figures.comparison import draw_comparison
from attnviz.figures.cost import Growth, draw_growth, quantity_text
from attnviz.figures.flow import draw_flow
from attnviz.figures.graph import draw_graph
from attnviz.figures.heads import draw_head_map, draw_heads
from attnviz.figures.heatmap import MEASURE_NAMES, MOST_COUNTED, MOST_DOTS, draw_pattern
from attnviz.figures.joint_map import _groups
from attnviz.figures.lens import draw_followed, draw_layer_parts
from attnviz.figures.theme import DARK, LIGHT
from attnviz.heads.comparison import compare
from attnviz.heads.flow import Flow
from attnviz.records import Axis, Head, Tokens
from tests import hand_made, small_records
from tests.drawing import MARKS, draw_few

pytestmark = MARKS
draw_few(6)

WORDS = ("cat", "door", "it", "box", "the", "sat")


def shares(*shape: int) -> st.SearchStrategy[np.ndarray]:
    return hnp.arrays(
        np.float32, shape, elements=st.integers(0, 9).map(lambda number: number / 10), fill=st.nothing()
    )


def axis_of(n: int, word: str = "t") -> Axis:
    return Axis.of(hand_made.tokens([f"{word}{at}" for at in range(n)]))


def pair_of_texts(labels: list[str], first: int) -> Tokens:
    """Tokens of two texts, of which the first has so many."""
    return replace(hand_made.tokens(labels), segment=(np.arange(len(labels)) >= first).astype(np.int64))


@st.composite
def sides(draw: st.DrawFn):
    """Two matrices whose rows and columns have some words in common; some cells may not be seen."""
    patterns = []
    for _ in range(2):
        rows, columns = (
            draw(st.lists(st.sampled_from(WORDS), min_size=1, max_size=4, unique=True)) for _ in range(2)
        )
        axes = [Axis.of(pair_of_texts(labels, draw(st.integers(1, 4)))) for labels in (rows, columns)]
        shape = len(rows), len(columns)
        allowed = draw(hnp.arrays(np.bool_, shape, elements=st.integers(0, 3).map(bool), fill=st.nothing()))
        elements = st.sampled_from([0.0, 0.0005, 0.001, 0.0015, 0.25, 0.5, 0.9])
        weights = np.where(
            allowed, draw(hnp.arrays(np.float32, shape, elements=elements, fill=st.nothing())), 0
        )
        patterns.append(
            small_records.pattern(
                weights.tolist(), queries=axes[0], keys=axes[1], kind="cross", allowed=allowed
            )
        )
    return patterns


def weight_text(number: float | None) -> str:
    """A number in the hover text of another matrix; None where it may not be seen."""
    if number is None:
        return "may not be seen"
    return "0" if number == 0 else "under 0.001" if number < 0.001 else f"{number:#.3g}"


def second_text_begins(both, pairs: list[list[int]], axis: int) -> list[int]:
    """The entries of a common axis that are of another text than the one before."""
    texts = []
    for own, other in pairs:
        side, entry = (0, own) if own >= 0 else (1, other)
        texts.append(int((both[side].queries, both[side].keys)[axis].segment[entry]))
    return [at for at in range(1, len(texts)) if texts[at] != texts[at - 1]]


@given(sides(), st.data())
@pytest.mark.stand_ins
def test_cells_of_a_comparison(both, data):
    first, second = both
    comparison = compare(first, second)
    pairs = [comparison.queries.pairs.tolist(), comparison.keys.pairs.tolist()]
    picked = data.draw(st.integers(0, len(first.queries) - 1)), data.draw(st.integers(0, len(first.keys) - 1))

    def cell(side: int, row: int, column: int) -> float | str | None:
        at, to = pairs[0][row][side], pairs[1][column][side]
        if min(at, to) < 0:
            return "no partner"
        own = both[side]
        return float(own.weights[at, to]) if own.allowed[at, to] else None

    figures = {
        part: draw_comparison(comparison, part, picked=picked) for part in ("first", "second", "difference")
    }
    shape = len(pairs[0]), len(pairs[1])
    differences = {}
    largest = max(float(pattern.weights.max()) for pattern in both)
    for row, column in np.ndindex(*shape):
        values = [cell(side, row, column) for side in (0, 1)]
        written = [value if isinstance(value, str) else weight_text(value) for value in values]
        numbers = [value if isinstance(value, float) else math.nan for value in values]
        for part, side in (("first", 0), ("second", 1)):
            cells = figures[part].data[0]
            np.testing.assert_equal(float(cells.z[row][column]), numbers[side])
            assert cells.text[row][column] == written[1 - side]
            assert (cells.zmin, cells.zmax) == (0, largest or 1.0)
            assert list(cells.customdata[row][column]) == [pairs[0][row][0], pairs[1][column][0]]
        has_both = "no partner" not in values and not all(value is None for value in values)
        change = (
            (float(np.float32(np.nan_to_num(numbers[1])) - np.float32(np.nan_to_num(numbers[0]))))
            if has_both
            else math.nan
        )
        np.testing.assert_equal(float(figures["difference"].data[0].z[row][column]), change)
        assert figures["difference"].data[0].text[row][column] == " → ".join(written)
        if has_both and change:
            differences[row, column] = change
    end = max(map(abs, differences.values()), default=0.0)
    cells, marks = figures["difference"].data
    assert (cells.zmin, cells.zmax) == (-(end or 1.0), end or 1.0) and cells.showscale == (end > 0)
    assert (
        "B − A: %{z:+" in cells.hovertemplate and "A: weight %{z:" in figures["first"].data[0].hovertemplate
    )
    x, y = list(cells.x), list(cells.y)
    assert len(marks.x) == min(10, len(differences))
    for at_x, at_y, symbol in zip(marks.x, marks.y, marks.marker.symbol, strict=True):
        change = differences[y.index(at_y), x.index(at_x)]
        assert symbol == ("triangle-up" if change > 0 else "triangle-down")
    for part, figure in figures.items():
        lacking = [
            [min(row[:1] if part == "first" else row[1:] if part == "second" else row) < 0 for row in pair]
            for pair in pairs
        ]
        area = sum(a or b for a in lacking[0] for b in lacking[1])
        hatched = "".join(
            shape.path for shape in figure.layout.shapes if shape.type == "path" and shape.fillcolor
        )
        boxes = re.findall(r"M([-\d.]+),([-\d.]+)L([-\d.]+),[-\d.]+L[-\d.]+,([-\d.]+)", hatched)
        assert sum((float(c) - float(a)) * (float(d) - float(b)) for a, b, c, d in boxes) == area
        borders = [
            (shape.x0, shape.x1, shape.y0, shape.y1)
            for shape in figure.layout.shapes
            if shape.line.dash == "dot"
        ]
        begins = [second_text_begins(both, pairs[axis], axis) for axis in (0, 1)]
        assert borders == [
            *((at - 0.5, at - 0.5, -0.5, shape[0] - 0.5) for at in begins[1]),
            *((-0.5, shape[1] - 0.5, at - 0.5, at - 0.5) for at in begins[0]),
        ]
        frames = [shape for shape in figure.layout.shapes if shape.type == "rect"]
        row = [pair[0] for pair in pairs[0]].index(picked[0])
        column = [pair[0] for pair in pairs[1]].index(picked[1])
        assert [(frame.x0, frame.x1, frame.y0, frame.y1) for frame in frames] == [
            (-0.5, shape[1] - 0.5, row - 0.5, row + 0.5),
            (column - 0.5, column + 0.5, row - 0.5, row + 0.5),
        ]


@pytest.mark.parametrize("shape", [(5, 12), (12, 7), (4, 4), (9, 3)])
@pytest.mark.stand_ins
def test_blocks_of_a_comparison(shape, monkeypatch):
    """Sides of at most 4: each cell stands for a block, with the number farthest from 0, and marks stand on the blocks."""
    monkeypatch.setattr(of_comparison, "MOST_BLOCKS", 4)
    rng = np.random.default_rng(shape[0])
    axes = axis_of(shape[0], "q"), axis_of(shape[1], "k")
    both = [
        small_records.pattern(rng.random(shape), queries=axes[0], keys=axes[1], kind="cross")
        for _ in range(2)
    ]
    comparison = compare(*both)
    lengths = [math.ceil(size / 4) for size in shape]
    n_block = [math.ceil(size / length) for size, length in zip(shape, lengths, strict=True)]
    change = both[1].weights - both[0].weights
    picked = shape[0] - 1, shape[1] - 1
    cells, marks = draw_comparison(comparison, "difference", picked=picked).data
    for row, column in np.ndindex(*n_block):
        block = {
            (q, k): float(change[q, k])
            for q in range(row * lengths[0], min(shape[0], (row + 1) * lengths[0]))
            for k in range(column * lengths[1], min(shape[1], (column + 1) * lengths[1]))
        }
        at = tuple(map(int, cells.customdata[row][column]))
        assert (
            abs(block[at]) == max(map(abs, block.values())) == pytest.approx(abs(float(cells.z[row][column])))
        )
    blocks = [list(cells.y), list(cells.x)]
    for axis, names, length, size in zip("qk", blocks, lengths, shape, strict=True):
        starts = list(range(0, size, length))
        assert names == [f"{axis}{at}·{at}" + " …" * (min(length, size - at) > 1) for at in starts]
    best = sorted(np.abs(change).ravel().tolist(), reverse=True)[:10]
    places = [np.argwhere(np.abs(change) == size)[0] for size in best]
    assert list(marks.y) == [blocks[0][int(place[0]) // lengths[0]] for place in places]
    assert list(marks.x) == [blocks[1][int(place[1]) // lengths[1]] for place in places]
    assert ("block" in cells.hovertemplate) == (max(lengths) > 1)
    assert ("{z:+" in cells.hovertemplate) and "{z:+" not in draw_comparison(comparison, "first").data[
        0
    ].hovertemplate
    row, column = draw_comparison(comparison, "first", picked=picked).layout.shapes[-2:]
    edges = n_block[0] - 1.5, n_block[0] - 0.5  # of the last block, which the last query is in
    assert (row.x0, row.x1, row.y0, row.y1) == (-0.5, n_block[1] - 0.5, *edges)
    assert (column.x0, column.x1, column.y0, column.y1) == (n_block[1] - 1.5, n_block[1] - 0.5, *edges)
    around = draw_comparison(comparison, "first", picked=(0, shape[1] - 1), around=3)
    part = around.data[0]
    assert part.z.shape == (min(3, shape[0]), min(3, shape[1]))
    np.testing.assert_allclose(part.z, both[0].weights[:3, -3:])
    assert part.zmax == max(float(pattern.weights.max()) for pattern in both)
    of_start = draw_comparison(comparison, "first", around=3).data[0]
    np.testing.assert_allclose(of_start.z, both[0].weights[:3, :3])


@given(shares(3, 5), st.sampled_from(["weights", "norms"]), st.booleans(), st.booleans(), st.data())
@pytest.mark.stand_ins
def test_cells_of_a_matrix(weights, measure, shows_scores, is_masked, data):
    allowed = np.ones((3, 5), dtype=bool)
    if is_masked:
        allowed[:, 4] = allowed[0, 1] = False
    scores = data.draw(st.permutations(range(15)))
    scores = np.array(scores, dtype=np.float32).reshape(3, 5) - 7
    hidden = data.draw(st.sampled_from([[0, 0, 0], [0, 0.25, 0]]))
    queries, keys = axis_of(3, "q"), axis_of(5, "k")
    pattern = small_records.pattern(
        weights.tolist(),
        scores=scores,
        allowed=allowed,
        queries=queries,
        keys=keys,
        kind="cross",
        measure=measure,
        hidden_weight=np.array(hidden, dtype=np.float32),
    )
    picked = data.draw(st.integers(0, 2)), data.draw(st.integers(0, 4))
    side = data.draw(st.sampled_from(["query", "key"]))
    figure = draw_pattern(pattern, show="scores" if shows_scores else measure, picked=picked, side=side)
    [cells] = figure.data
    shown, other = (scores, weights) if shows_scores else (weights, scores)
    np.testing.assert_array_equal(cells.z, np.where(allowed, shown, np.nan))
    np.testing.assert_array_equal(cells.customdata, np.where(allowed, other, np.nan))
    seen = [float(value) for value in shown[allowed]]
    ends = (min(seen), max(seen)) if shows_scores else (0, max(float(weights.max()), 1e-9))
    assert (cells.zmin, cells.zmax) == pytest.approx(ends)
    names = [
        f"score %{{{'z' if shows_scores else 'customdata'}:",
        f"{MEASURE_NAMES[measure]} %{{{'customdata' if shows_scores else 'z'}:",
    ]
    assert all(name in cells.hovertemplate for name in names)
    assert list(cells.x) == [f"k{at}·{at}" for at in range(5)]
    lost = [f", {100 * share:.0f}% hidden" if any(hidden) and measure != "norms" else "" for share in hidden]
    assert list(cells.y) == [f"q{at}·{at}{lost[at]}" for at in range(3)]
    whole, cell = figure.layout.shapes
    if side == "query":
        assert (whole.x0, whole.x1, whole.y0, whole.y1) == (-0.5, 4.5, picked[0] - 0.5, picked[0] + 0.5)
    else:
        assert (whole.x0, whole.x1, whole.y0, whole.y1) == (picked[1] - 0.5, picked[1] + 0.5, -0.5, 2.5)
    assert (cell.x0, cell.y0) == (picked[1] - 0.5, picked[0] - 0.5)
    assert figure.layout.xaxis.range == (-0.5, 4.5) and figure.layout.yaxis.range == (2.5, -0.5)
    beyond = draw_pattern(pattern, show="weights", largest=4.0).data[0]
    assert (beyond.zmin, beyond.zmax) == (0, 4)


def test_a_query_that_sees_nothing_has_an_end_of_its_scale_all_the_same():
    pattern = small_records.pattern(np.zeros((2, 2)).tolist(), allowed=np.zeros((2, 2), dtype=bool))
    [cells] = draw_pattern(pattern, show="scores").data
    assert (cells.zmin, cells.zmax) == (0, 1e-9)


@pytest.mark.parametrize(
    ("n_query", "n_key"),
    [(MOST_COUNTED, 2), (MOST_COUNTED + 1, 2), (2, MOST_COUNTED + 1), (MOST_DOTS, 2), (2, MOST_DOTS + 1)],
)
@pytest.mark.stand_ins
def test_small_cells_have_no_gap_and_can_be_zoomed(n_query, n_key):
    pattern = small_records.pattern(np.full((n_query, n_key), 0.5).tolist(), kind="cross")
    figure = draw_pattern(pattern, picked=(1, 1))
    [cells] = figure.data
    assert (cells.ygap, cells.xgap) == (int(n_query <= MOST_COUNTED), int(n_key <= MOST_COUNTED))
    is_small = max(n_query, n_key) > MOST_COUNTED
    assert figure.layout.dragmode == ("zoom" if is_small else False)
    assert len(figure.layout.shapes) == (3 if is_small else 2)
    has_note = max(n_query, n_key) > MOST_DOTS
    assert (
        bool(figure.layout.annotations) == (cells.colorbar.ypad > 30) == has_note
    )  # two lines, above the scale


def cut(label: str, most: int) -> str:
    """A label without its middle, where it is longer than that."""
    return label if len(label) <= most else f"{label[: most - 5]}…{label[-4:]}"


@given(
    st.integers(0, 99),
    st.sampled_from(["weights", "scores", "norms"]),
    st.sampled_from(["query", "key"]),
    st.sampled_from([None, 2.0]),
    st.booleans(),
)
@pytest.mark.stand_ins
def test_a_matrix_from_corner_to_corner(seed, show, side, largest, loses):
    """Cells, labels, scale, frames, and borders of two texts; some tokens of both sides are not shown."""
    rng = np.random.default_rng(seed)
    n_query, n_key = int(rng.integers(2, 5)), int(rng.integers(5, 8))
    axes, labels = [], []
    for word, n, n_hidden in (("ask", n_query, 3), ("tell", n_key, 1)):
        written = [f"{word}{at}" * int(rng.integers(1, 12)) for at in range(n + n_hidden)]
        tokens = pair_of_texts(written, n_hidden + int(rng.integers(1, n)))
        axes.append(Axis.of(tokens).where(np.arange(n + n_hidden) >= n_hidden))
        labels.append(
            {
                most: [f"{cut(written[at], most)}·{at}" for at in range(n_hidden, n + n_hidden)]
                for most in (14, 40)
            }
        )
    allowed = rng.random((n_query, n_key)) < 0.8
    allowed[0, :2] = True
    weights = np.where(allowed, rng.integers(1, 9, allowed.shape) / 16, 0).astype(np.float32)
    scores = (rng.permutation(n_query * n_key).reshape(allowed.shape) - 7).astype(np.float32)
    lost = np.where(np.arange(n_query) % 2 == 0, 0.25 * loses, 0).astype(np.float32)
    pattern = small_records.pattern(
        weights.tolist(),
        kind="cross",
        measure="norms" if show == "norms" else "weights",
        scores=None if show == "norms" else scores,
        allowed=allowed,
        queries=axes[0],
        keys=axes[1],
        hidden_weight=lost,
    )
    picked = int(rng.integers(n_query)), int(rng.integers(n_key))
    figure = draw_pattern(
        pattern, show=show, picked=(picked[0] + 3, picked[1] + 1), side=side, largest=largest
    )
    [cells] = figure.data
    if loses and show != "norms":
        for most, names in labels[0].items():
            labels[0][most] = [f"{name}, {0 if at % 2 else 25}% hidden" for at, name in enumerate(names)]
    for axis, own, names in (
        (figure.layout.yaxis, cells.y, labels[0]),
        (figure.layout.xaxis, cells.x, labels[1]),
    ):
        assert list(own) == names[40]
        shorter = {long: short for long, short in zip(names[40], names[14], strict=True) if long != short}
        assert axis.labelalias == shorter
    drawn, others = (scores, weights) if show == "scores" else (weights, scores)
    for row, column in np.ndindex(n_query, n_key):
        is_seen = allowed[row, column]
        np.testing.assert_equal(cells.z[row][column], drawn[row, column] if is_seen else np.nan)
        if show != "norms":
            np.testing.assert_equal(cells.customdata[row][column], others[row, column] if is_seen else np.nan)
    assert (cells.customdata is None) == (show == "norms")
    seen = scores[allowed].tolist()
    of_weights = 0, largest or float(weights.max())
    assert (cells.zmin, cells.zmax) == ((min(seen), max(seen)) if show == "scores" else of_weights)
    borders = [shape for shape in figure.layout.shapes if shape.line.dash == "dot"]
    second = [next(at for at in range(len(axis)) if axis.segment[at]) - 0.5 for axis in axes]
    assert [(line.x0, line.x1, line.y0, line.y1) for line in borders] == [
        (second[1], second[1], -0.5, n_query - 0.5),
        (-0.5, n_key - 0.5, second[0], second[0]),
    ]
    frames = [
        (shape.x0, shape.x1, shape.y0, shape.y1) for shape in figure.layout.shapes if shape.type == "rect"
    ]
    of_row, of_column = ((at - 0.5, at + 0.5) for at in picked)
    whole = (-0.5, n_key - 0.5, *of_row) if side == "query" else (*of_column, -0.5, n_query - 0.5)
    assert frames == [whole, (*of_column, *of_row)]


@pytest.mark.parametrize("picked", [None, (1, 0), (2, 0), (0, 9)])
@pytest.mark.stand_ins
def test_a_part_begins_where_nothing_is_selected_that_is_shown(picked):
    """A side without a selected token, or whose selected token is not shown, begins at its first."""
    queries = Axis.of(hand_made.tokens(["[CLS]", "cat", "sat"])).where(
        np.arange(3) > (picked is not None) - 1
    )
    queries = queries.where(np.arange(len(queries)) < 2)
    numbers = np.arange(10, dtype=np.float32).reshape(2, 5) / 16
    first, second = (
        small_records.pattern(weights.tolist(), queries=queries, keys=axis_of(5, "k"), kind="cross")
        for weights in (numbers, numbers[::-1])
    )
    figure = draw_comparison(compare(first, second), "first", picked=picked, around=1)
    [cells] = figure.data
    row, column = (1, 0) if picked == (2, 0) else (0, 0)
    assert np.asarray(cells.z).tolist() == [[float(numbers[row, column])]]
    assert (cells.zmin, cells.zmax) == (0, 9 / 16)  # of the whole matrix


@given(st.lists(st.integers(0, 3), min_size=1, max_size=4), shares(4), st.booleans())
def test_lines_of_the_token_flow(matrices, weights, leaves_out):
    n = len(matrices)
    flow = Flow(
        matrix=np.array(matrices),
        query=np.array([0, 1, 2, 1][:n]),
        key=np.array([4, 2, 0, 3][:n]),
        weight=weights[:n],
        n_left_out=0,
        row_is_whole=True,
        share=1.0,
    )
    shown = np.arange(n) % 2 == 0 if leaves_out else None
    picture = draw_flow(flow, axis_of(3, "q"), axis_of(5, "<k"), largest=0.8, drawn=shown)
    lines = re.findall(
        r'<path d="M(\d+) ([\d.]+)C\S+ ([\d.]+) (\S+) ([\d.]+) (\d+) ([\d.]+)".*?stroke="(\S+)" stroke-dasharray="(.*?)" stroke-width="(\S+)" stroke-opacity="(\S+)"',
        picture,
    )
    labels = {text: float(y) for y, text in re.findall(r'y="([\d.]+)"[^>]*>([^<]*)</text>', picture)}
    xs = {text: float(x) for x, text in re.findall(r'x="(\d+)"[^>]*>([^<]*)</text>', picture)}
    drawn_ = [at for at in range(n) if shown is None or shown[at]]
    assert len(lines) == len(drawn_)
    for at, (left, start, _, half, _, right, end, colour, dash, width, opacity) in zip(
        drawn_, lines, strict=True
    ):
        query, key = int(flow.query[at]), int(flow.key[at])
        assert (
            float(start) == labels[f"q{query}·{query}"] - 4 and float(end) == labels[f"&lt;k{key}·{key}"] - 4
        )
        assert xs[f"q{query}·{query}"] < int(left) < int(right) < xs[f"&lt;k{key}·{key}"]
        assert int(left) < float(half) < int(right) and float(half) * 2 == int(left) + int(right)
        strength = min(1.0, float(weights[at]) / 0.8)
        assert float(width) == pytest.approx(max(0.75, 8 * strength), abs=0.006)
        assert float(opacity) == pytest.approx(0.15 + 0.8 * math.sqrt(strength), abs=0.006)
        assert colour == LIGHT.heads[matrices[at]]
        assert (dash == "none") == (matrices[at] == 0)
    assert len({dash for *_, dash, _, _ in lines}) == len({matrices[at] for at in drawn_})
    rows = [labels[f"&lt;k{at}·{at}"] for at in range(5)]
    assert {round(b - a, 6) for a, b in pairwise(rows)} == {18.0}
    height = int(re.search(r'height="(\d+)"', picture)[1])
    assert rows[-1] < height < rows[-1] + 30 and labels["query"] == labels["key"] < rows[0]


@pytest.mark.parametrize("kind", ["encoder", "cross"])
@given(shares(5, 5), st.integers(0, 4), st.integers(0, 3))
@pytest.mark.stand_ins
def test_arrows_and_nodes_of_a_graph(kind, weights, query, key):
    n_query, n_key = (5, 5) if kind == "encoder" else (3, 4)
    weights, query = weights[:n_query, :n_key], min(query, n_query - 1)
    queries = axis_of(n_query, "q")
    keys = queries if kind == "encoder" else axis_of(n_key, "k")
    pattern = small_records.pattern(weights.tolist(), queries=queries, keys=keys, kind=kind)
    figure = draw_graph(pattern, query, key=key)
    arrows, nodes = figure.data
    places = dict(zip(nodes.text, zip(nodes.x, nodes.y, strict=True), strict=True))
    assert len(places) == (5 if kind == "encoder" else 7)
    assert all(math.hypot(*place) == pytest.approx(1) for place in places.values())
    if kind == "cross":
        order = sorted((math.atan2(*places[f"q{at}·{at}"]), at) for at in range(3))
        assert [at for _, at in order] == [0, 1, 2] and all(
            0.05 < angle < math.pi - 0.05 for angle, _ in order
        )
        steps = [b - a for (a, _), (b, _) in pairwise(order)]
        assert steps[0] == pytest.approx(steps[1]) and order[0][0] == pytest.approx(math.pi - order[-1][0])
        order = sorted((-math.atan2(*places[f"k{at}·{at}"]), at) for at in range(4))
        assert [at for _, at in order] == [0, 1, 2, 3] and order[0][0] > 0.05
    opacities = {True: {}, False: {}}
    heads = zip(
        arrows.text,
        arrows.customdata,
        arrows.x,
        arrows.y,
        arrows.marker.angle,
        arrows.marker.opacity,
        arrows.marker.size,
        figure.layout.shapes,
        strict=True,
    )
    for text, weight, x, y, angle, opacity, size, shape in heads:
        from_, to = re.fullmatch(r"key (\S+) → query (\S+)", text).groups()
        at = int(to.split("·")[1]), int(from_.split("·")[1])
        assert weight == pytest.approx(float(weights[at])) and opacity == shape.opacity
        opacities[at[0] == query][weight] = opacity
        assert size == pytest.approx(7 + 1.4 * shape.line.width)
        end = np.array(places[to])
        if from_ != to:
            curve = np.array([float(match) for match in re.findall(r"-?[\d.]+", shape.path)]).reshape(3, 2)
            np.testing.assert_allclose(curve[0], places[from_], atol=1e-3)
            along, chord = end - curve[1], end - np.array(places[from_])
            assert [math.sin(math.radians(angle)), math.cos(math.radians(angle))] == pytest.approx(
                list(along / np.linalg.norm(along)), abs=2e-3
            )
            assert math.dist((x, y), end) == pytest.approx(0.11, abs=1e-3)
            assert math.dist(curve[2], end) == pytest.approx(0.075, abs=2e-3)
            middle = (end + np.array(places[from_])) / 2 * 0.84
            np.testing.assert_allclose(curve[1], middle + 0.16 * np.array([chord[1], -chord[0]]), atol=1e-3)
        else:
            loop = np.array([float(match) for match in re.findall(r"-?[\d.]+", shape.path)]).reshape(-1, 2)
            centre = loop[:-1].mean(axis=0)
            radius = math.dist(loop[0], centre)
            assert math.dist(loop[0], loop[-1]) < 2e-3 and math.dist(centre, end) == pytest.approx(
                radius, abs=3e-3
            )
            assert np.linalg.norm(centre) < 1 and math.dist((x, y), centre) == pytest.approx(radius, abs=5e-3)
            turned = np.array([math.sin(math.radians(angle)), math.cos(math.radians(angle))])
            assert abs(turned @ (np.array([x, y]) - centre)) < 2e-2  # along the circle
    for is_own, of_weight in opacities.items():
        least = 0.45 if is_own else 0.18
        for weight, opacity in of_weight.items():
            assert opacity == pytest.approx(least + (1 - least) * math.sqrt(weight))
    marked = {f"q{query}·{query}": ("square", LIGHT.query)}
    of_key = f"q{key}·{key}" if kind == "encoder" else f"k{key}·{key}"
    marked.setdefault(of_key, ("diamond", LIGHT.key))
    for text, symbol, colour, label in zip(
        nodes.text, nodes.marker.symbol, nodes.marker.color, figure.layout.annotations, strict=True
    ):
        assert (symbol, colour) == marked.get(text, ("circle", LIGHT.quiet))
        assert (label.text == f"<b>{text}</b>") == (text == f"q{query}·{query}") and text in label.text
        assert label.font.color == (marked[text][1] if text in marked else LIGHT.text)
        assert (label.x, label.y) == places[text]
        turn, (x, y) = math.radians(label.textangle), places[text]
        assert abs(x * math.sin(turn) + y * math.cos(turn)) < 1e-6
        outwards = x * math.cos(turn) - y * math.sin(turn)
        assert outwards == pytest.approx(-1 if x < -1e-9 else 1)  # those on the left end at their node
        assert math.hypot(label.xshift, label.yshift) == pytest.approx(7.5 + 5 + 7.3 * len(text) / 2)


@given(
    hnp.arrays(
        np.float32, (3, 4), elements=st.sampled_from([0.0, 0.25, 0.5, 1.0, math.nan]), fill=st.nothing()
    ),
    st.sampled_from([None, (1, 1), (0, 0)]),
    st.sampled_from([2, 4]),
    st.booleans(),
)
def test_points_of_a_number_of_every_head(numbers, picked, n_head, is_across):
    numbers = numbers[:, :n_head]
    if is_across:
        numbers = np.tile(numbers, (5, 1))
    figure = draw_heads(numbers, what="share", picked=picked, span=(0.5, 2.5))
    [points] = figure.data
    known = {at: float(numbers[at]) for at in np.ndindex(numbers.shape) if not math.isnan(numbers[at])}
    along, stand = (points.y, points.x) if is_across else (points.x, points.y)
    assert [*map(tuple, points.customdata)] == list(known)
    assert list(along) == list(known.values())
    for (layer, head), place, width, opacity in zip(
        known, stand, points.marker.line.width, points.marker.opacity, strict=True
    ):
        assert place == pytest.approx(layer + 0.6 * (head / (n_head - 1) - 0.5))
        is_picked = (layer, head) == picked
        assert (width > 0, opacity == 1) == (is_picked, is_picked)
    axis, layers = (
        (figure.layout.yaxis, figure.layout.xaxis)
        if is_across
        else (figure.layout.xaxis, figure.layout.yaxis)
    )
    assert list(axis.range) == pytest.approx([0.46, 2.54]) and axis.title.text == "share"
    ends = [-0.6, len(numbers) - 0.4]
    assert list(layers.range) == pytest.approx(ends if is_across else ends[::-1])
    assert ("%{y" in points.hovertemplate) == is_across


@given(
    hnp.arrays(
        np.float32, (12, 2), elements=st.integers(-20, 20).map(lambda number: number / 20), fill=st.nothing()
    ),
    st.integers(0, 11),
    st.sampled_from([1, 2, 3]),
    st.booleans(),
)
def test_the_map_of_heads(points, picked, n_layer, dims):
    heads = [Head(at * n_layer // 12, at) for at in range(12)]
    dimmed = np.arange(12) % 2 == 0 if dims else None
    figure = draw_head_map(points, heads=heads, picked=heads[picked], dimmed=dimmed)
    [drawn] = figure.data
    assert not figure.layout.xaxis.visible and not figure.layout.yaxis.visible
    np.testing.assert_array_equal(np.column_stack([drawn.x, drawn.y]), points)
    assert [*map(tuple, drawn.customdata)] == heads and list(drawn.marker.color) == [
        head.layer for head in heads
    ]
    assert (drawn.marker.cmin, drawn.marker.cmax, drawn.marker.showscale) == (
        0,
        max(n_layer - 1, 1),
        n_layer > 1,
    )
    assert drawn.marker.colorbar.dtick == 1
    for at in range(12):
        own = at == picked
        assert (drawn.marker.symbol[at], drawn.marker.line.width[at] > 1) == (
            "diamond" if own else "circle",
            own,
        )
        if dims:
            assert (drawn.marker.opacity[at] < 1) == (at % 2 == 0 and not own)
        assert drawn.text[at] in ("", heads[at].short)
    named = [at for at in range(12) if drawn.text[at]]
    assert picked in named
    room = np.maximum(np.ptp(points, axis=0), 1e-9)
    px = points * min(480 / room[0], 400 / room[1])
    for at in named:
        for other in named:
            if other < at:
                gap = np.abs(px[at] - px[other])
                assert gap[0] >= 44 or gap[1] >= 14
    expected: list[int] = []
    for at in sorted(range(12), key=lambda head: head != picked):
        gaps = [np.abs(px[at] - px[other]) for other in expected]
        points_apart = [
            np.abs(px[other] - px[at] - (0, 14)) for other in range(12)
        ]  # from the label's middle
        is_covered = any(gap[0] < 44 and gap[1] < 14 for gap in gaps)
        is_covered |= any(gap[0] < (44 + 10) / 2 and gap[1] < (14 + 10) / 2 for gap in points_apart)
        if at == picked or not is_covered:
            expected.append(at)
    assert named == sorted(expected)
    scale = drawn.marker.colorscale
    assert (
        scale[0][0] == 0
        and scale[-1][0] == 1
        and [position for position, _ in scale] == sorted(position for position, _ in scale)
    )


def test_layers_of_a_deep_model_are_marked_at_every_few():
    heads = [Head(layer, 0) for layer in range(30)]
    points = np.random.default_rng(0).random((30, 2)).astype(np.float32)
    [drawn] = draw_head_map(points, heads=heads).data
    assert drawn.marker.colorbar.dtick == 5 and drawn.marker.cmax == 29 and drawn.marker.opacity == 1


@given(shares(6), shares(6), st.sampled_from([0.0, 0.25]))
def test_lines_that_numbers_are_compared_with(of_zero, of_mean, base):
    effects = [
        HeadEffects(kind="encoder", ablation=ablation, base=base, heads=numbers.reshape(2, 3))
        for ablation, numbers in (("zero", of_zero), ("mean", of_mean))
    ]
    [line] = draw_ablations(*effects).layout.shapes
    both = [float(outcome) - base for outcome in (*of_zero, *of_mean)]
    assert (line.x0, line.y0, line.x1, line.y1) == pytest.approx((min(both), min(both), max(both), max(both)))
    removals = [
        (
            f"order {at}",
            Removal(base=base, heads=tuple(Head(0, number) for number in range(n)), outcomes=of_zero[:n]),
        )
        for at, n in enumerate((3, 2))
    ]
    for shown in (removals, removals[:1]):
        figure = draw_removal(shown, outcome="outcome")
        [level] = figure.layout.shapes
        assert (level.x0, level.x1, level.y0, level.y1, level.xref) == (0, 1, base, base, "paper")
        assert list(figure.layout.xaxis.range) == pytest.approx([-0.3, 3.3]) and figure.layout.showlegend == (
            len(shown) > 1
        )
        assert (figure.layout.xaxis.ticktext is not None) == (len(shown) == 1)
        assert (
            len({trace_of_figure.line.dash for trace_of_figure in figure.data})
            == len({trace_of_figure.marker.symbol for trace_of_figure in figure.data})
            == len(shown)
        )
        assert [trace_of_figure.line.color for trace_of_figure in figure.data] == list(
            LIGHT.heads[: len(shown)]
        )
    of_many = draw_removal([removals[0]] * 5, outcome="outcome").data
    assert len({(line.line.color, line.line.dash, line.marker.symbol) for line in of_many}) == 5
    empty = draw_removal([], outcome="outcome")
    assert not empty.data and not empty.layout.shapes


@pytest.mark.parametrize(("n", "is_named"), [(12, True), (13, False)])
def test_few_heads_are_named_along_the_axis(n, is_named):
    removal = Removal(
        base=0.0, heads=tuple(Head(0, at) for at in range(n)), outcomes=np.zeros(n, dtype=np.float32)
    )
    assert (draw_removal([("one", removal)], outcome="x").layout.xaxis.ticktext is not None) == is_named


@pytest.mark.parametrize("n", [1, 40, 41, 90])
def test_labels_of_many_tokens_are_thinned(n):
    tokens = axis_of(n)
    change = np.linspace(0, 1, n, dtype=np.float32)
    figures = [draw_effect(change, tokens)]
    if n > 1:
        figures.append(draw_rows(change[None], ["way"], tokens, picked=0))
    for figure in figures:
        axis = figure.layout.xaxis
        step = math.ceil(n / 40) if figure is figures[0] else axis.tickvals[1] - axis.tickvals[0]
        assert list(axis.tickvals) == list(range(0, n, step)) and len(axis.tickvals) <= 40
        assert list(axis.ticktext) == [f"t{at}·{at}" for at in axis.tickvals]
    assert figures[0].layout.yaxis.range[0] == 0
    assert figures[0].layout.yaxis.range[1] == pytest.approx(max(1.1 * float(change.max()), 0.05))
    if n > 1:
        assert figures[1].layout.xaxis.range == (-0.5, n - 0.5)
        assert figures[1].layout.yaxis.range[0] == 0 and figures[1].layout.yaxis.range[1] > 1


@given(
    st.lists(st.sampled_from([1, 64, 4096, 10**6]), min_size=1, max_size=3, unique=True),
    st.integers(-9, 3),
    st.integers(0, 12),
    st.sampled_from(["count", "bytes", "seconds"]),
    st.booleans(),
)
def test_curves_and_ends_of_growth(tokens, least, decades, unit, has_points):
    tokens = np.array(sorted(tokens))
    costs = np.logspace(least, least + decades, len(tokens))
    curves = [
        Growth(way="whole", n_token=tokens, cost=costs),
        Growth(way="rows", n_token=tokens, cost=costs * 2),
    ]
    if has_points:
        curves.append(Growth(way="whole", n_token=tokens, cost=costs, measured=True))
    figure = draw_growth(curves, what="cost", unit=unit, marks={"here": 64, "there": 4096})
    for curve, line in zip(curves, figure.data, strict=True):
        assert list(line.x) == tokens.tolist() and list(line.y) == curve.cost.tolist()
        assert list(line.customdata) == [quantity_text(value, unit) for value in curve.cost.tolist()]
        assert line.mode == ("markers" if curve.measured else "lines")
        assert line.showlegend == (curve.measured or not has_points)
    assert (
        figure.data[0].line.color != figure.data[1].line.color
        and figure.data[0].line.dash != figure.data[1].line.dash
    )
    for axis, numbers in ((figure.layout.xaxis, tokens), (figure.layout.yaxis, [*costs, *costs * 2])):
        first, last = math.log10(min(numbers)), math.log10(max(numbers))
        room = 0.04 * max(last - first, 1)
        assert list(axis.range) == pytest.approx([first - room, last + room])
        powers = [number for number in range(-30, 30) if axis.range[0] <= number <= axis.range[1]]
        if len(powers) > 8:
            powers = [power for power in powers if power % 3 == 0]
        assert list(axis.tickvals) == pytest.approx([10.0**power for power in powers])
    assert list(figure.layout.yaxis.ticktext) == [
        quantity_text(tickval, unit) for tickval in figure.layout.yaxis.tickvals
    ]
    assert [(shape.x0, shape.x1, shape.y0, shape.y1) for shape in figure.layout.shapes] == [
        (64, 64, 0, 1),
        (4096, 4096, 0, 1),
    ]
    labels = figure.layout.annotations
    assert [label.text for label in labels] == ["here", "there"] and labels[0].yshift > labels[1].yshift
    assert [label.x for label in labels] == pytest.approx([math.log10(64), math.log10(4096)])
    assert figure.layout.showlegend


@pytest.mark.parametrize(
    ("number", "unit", "written"),
    [
        (0, "count", "0"),
        (0, "bytes", "0 B"),
        (999_999, "count", "999,999"),
        (1e6, "count", "1 million"),
        (999_999_999, "count", "1 billion"),
        (1.454e9, "count", "1.45 billion"),
        (999.9, "bytes", "1 kB"),
        (999, "bytes", "999 B"),
        (4.8e13, "bytes", "48 TB"),
        (1e21, "bytes", "1e+03 EB"),
        (0.001, "seconds", "1 ms"),
        (0.000999, "seconds", "999 µs"),
        (12.0, "seconds", "12 s"),
        (5000.0, "seconds", "5e+03 s"),
    ],
)
def test_quantities(number, unit, written):
    assert quantity_text(number, unit).replace("\N{NO-BREAK SPACE}", " ") == written


def direct(numbers) -> DirectParts:
    return DirectParts(
        unit="logit",
        total=0.0,
        embedding=float(numbers[0]),
        heads=numbers[1:5].reshape(2, 2),
        mlps=numbers[5:7],
        biases=numbers[7:9],
        bias=0.0,
    )


@given(shares(9), shares(9), st.booleans())
def test_axes_of_the_parts_of_each_layer(first, second, over):
    parts = direct(first)
    pairs = mean_direct_effects([direct(first), direct(second)] if over else [direct(first)])
    figure = draw_layer_parts(parts, over=pairs)
    axis = figure.layout.xaxis
    assert list(axis.tickvals) == [-1, 0, 1] and list(axis.ticktext) == ["emb.", "0", "1"]
    assert list(axis.range) == pytest.approx([-1.6, 1.6])
    colours = {trace_of_figure.name: trace_of_figure.marker.color for trace_of_figure in figure.data}
    assert len(set(colours.values())) == len(colours) and ("biases" in colours) == bool(first[7:9].any())
    assert all((trace_of_figure.error_y.array is not None) == over for trace_of_figure in figure.data)
    many = draw_layer_parts(
        DirectParts(
            unit="logit",
            total=0.0,
            embedding=0.0,
            heads=np.zeros((40, 1), dtype=np.float32),
            mlps=np.ones(40, dtype=np.float32),
            biases=np.zeros(40, dtype=np.float32),
            bias=0.0,
        )
    )
    ticks = many.layout.xaxis.tickvals[1:]
    assert ticks[0] == 0 and len(ticks) <= 20 and len({b - a for a, b in pairwise(ticks)}) == 1


@given(st.sampled_from([1, 2]), st.sampled_from([None, 2]))
def test_panels_of_followed_tokens(n_token, picked):
    numbers = np.arange(6, dtype=np.float32).reshape(3, 2)[:, :n_token] + 1
    followed = FollowedTokens(
        kind="decoder",
        position=0,
        labels=("door", "cat")[:n_token],
        logits=numbers,
        probabilities=numbers / 10,
        ranks=numbers.astype(int),
    )
    figure = draw_followed(followed, picked=picked)
    titles = ["difference of logits"] * (n_token == 2) + ["probability", "rank"]
    axes = [figure.layout["yaxis" + ("" if at == 0 else str(at + 1))] for at in range(len(titles))]
    assert [axis.title.text for axis in axes] == titles
    domains = [axis.domain for axis in axes]
    assert domains[0][1] == pytest.approx(1) and domains[-1][0] == pytest.approx(0, abs=1e-9)
    assert all(upper[0] - lower[1] == pytest.approx(0.08) for upper, lower in pairwise(domains))
    assert len({round(top - bottom, 6) for bottom, top in domains}) == 1
    assert (axes[-1].type, axes[-1].autorange, axes[-1].dtick) == ("log", "reversed", 1)
    assert axes[0].type != "log"
    assert figure.layout.xaxis.anchor == f"y{len(titles)}" and figure.layout.xaxis.range == (-0.5, 2.5)
    for line in figure.data:
        title = re.search(rf"({'|'.join(titles)})", line.hovertemplate.rsplit(": ", 1)[1])[1]
        assert line.yaxis in (f"y{titles.index(title) + 1}", "y" * (titles.index(title) == 0))
        assert line.showlegend == (title == "probability") and list(line.x) == list(line.customdata) == [
            0,
            1,
            2,
        ]
        assert ("minus" in line.name) == (title == "difference of logits")
    own = {(line.name, line.line.color, line.line.dash, line.marker.symbol) for line in figure.data}
    assert (
        len(own)
        == n_token + (n_token == 2)
        == len({value[0] for value in own})
        == len({value[3] for value in own})
    )
    of_tokens = [value for value in own if "minus" not in value[0]]
    assert (
        len({of_token[1] for of_token in of_tokens})
        == len({of_token[2] for of_token in of_tokens})
        == n_token
    )
    assert [(shape.x0, shape.x1) for shape in figure.layout.shapes] == ([] if picked is None else [(2, 2)])


@pytest.mark.stand_ins
def test_groups_of_many_sentences():
    """Each label with its count, the most frequent first; those without a colour are others, all together."""
    labels = [f"w{at}" for at in range(20) for _ in range(at % 3 + 1)]
    tokens = [SimpleNamespace(labels=labels, is_special=np.array([at == 0 for at in range(len(labels))]))]
    for palette in (LIGHT, DARK):
        groups = list(_groups("token", tokens, palette))
        counts = sorted(((labels.count(f"w{at}"), f"w{at}") for at in range(20)), key=lambda entry: -entry[0])
        n_colour = len(palette.groups)
        if n_colour < 20:
            n_other = sum(count for count, _ in counts[n_colour:])
            assert groups[0].name == f"others ({n_other})" and int(groups[0].is_in.sum()) == n_other
            del groups[0]
        assert [group.name for group in groups] == [f"{name} ({count})" for count, name in counts[:n_colour]]
        assert [group.is_in.sum() for group in groups] == [count for count, _ in counts[:n_colour]]
