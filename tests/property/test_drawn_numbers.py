"""What figures draw and say on hovering: the number at each mark is that of its token, head or layer, found again in plain Python."""

import math
import re
from itertools import pairwise
from statistics import mean, stdev

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from attnviz.effects.ablation import HeadEffects, Removal
from attnviz.effects.attribution_methods import METHODS
from attnviz.effects.cell_effects import CellEffects
from attnviz.effects.deletion import ChanceBand, Deletion, DeletionCurve
from attnviz.effects.input_attribution import InputAttribution
from attnviz.effects.lens import FollowedTokens
from attnviz.effects.logit_attribution import DirectParts
from attnviz.effects.over_pairs import mean_direct_effects
from attnviz.effects.score_sources import ScoreSources, Source
from attnviz.figures.ablation import draw_ablations, draw_cell_effects, draw_removal
from attnviz.figures.cost import quantity_text
from attnviz.figures.flow import draw_flow
from attnviz.figures.heads import draw_by_depth, draw_head_map, draw_heads, draw_two_numbers
from attnviz.figures.inputs import draw_attributions, draw_deletion
from attnviz.figures.lens import draw_followed, draw_layer_parts
from attnviz.figures.matrices import largest_of_blocks
from attnviz.figures.numbers import number_text, signed_text
from attnviz.figures.pair import draw_score_sources
from attnviz.figures.positions import draw_likeness, draw_table, spaced, tone_limit
from attnviz.figures.theme import LIGHT
from attnviz.heads.flow import Flow
from attnviz.records import Axis, Head
from tests import hand_made
from tests.drawing import MARKS, draw_few

pytestmark = MARKS
draw_few(15)

LABELS = ["cat", "door", "it"]


def numbers(*shape: int) -> st.SearchStrategy[np.ndarray]:
    """Different numbers above and below 0, so that mixing them up is noticed."""
    n = math.prod(shape)
    signs = st.lists(st.sampled_from([-1, 1]), min_size=n, max_size=n)
    return st.tuples(st.permutations(range(1, n + 1)), signs).map(
        lambda both: (np.multiply(*both) / 16).astype(np.float32).reshape(shape)
    )


def marked(widths: object) -> list[int]:
    """Places whose frame has a width."""
    return np.flatnonzero(np.asarray(widths)).tolist()


def direct(pair: np.ndarray) -> DirectParts:
    """The parts of two layers of two heads from 10 numbers."""
    return DirectParts(
        unit="logit",
        total=0.0,
        embedding=float(pair[8]),
        heads=pair[:4].reshape(2, 2),
        mlps=pair[4:6],
        biases=pair[6:8],
        bias=float(pair[9]),
    )


@given(st.lists(numbers(10), min_size=2, max_size=3), st.sampled_from([None, 1]))
def test_bars_of_the_parts_of_each_layer(pairs, picked):
    over = mean_direct_effects([direct(pair) for pair in pairs])
    drawn = {bar.name: bar for bar in draw_layer_parts(over.mean, over=over, picked=picked).data}
    heads = [[[float(pair[0] + pair[1]), float(pair[2] + pair[3])] for pair in pairs]]
    for name, of_pairs in (
        ("all heads", heads[0]),
        ("MLP", [pair[4:6].tolist() for pair in pairs]),
        ("biases", [pair[6:8].tolist() for pair in pairs]),
        ("embedding", [[float(pair[8])] for pair in pairs]),
    ):
        if name not in drawn:  # biases that are all 0 on average
            assert name == "biases" and not np.any(over.mean.biases)
            continue
        bar, columns = drawn[name], [*zip(*of_pairs, strict=True)]
        assert list(bar.y) == pytest.approx([mean(column) for column in columns], abs=1e-5)
        spreads = [stdev(column) for column in columns]
        assert list(bar.error_y.array) == pytest.approx(spreads, abs=1e-5)
        hovers = [bar.hovertemplate] if isinstance(bar.hovertemplate, str) else [*bar.hovertemplate]
        for hover, spread in zip(hovers, bar.error_y.array, strict=True):
            assert f"± {number_text(float(spread))}" in hover
        if name != "embedding":
            assert marked(bar.marker.line.width) == ([] if picked is None else [picked])
            assert list(bar.customdata) == [0, 1]
        else:
            assert list(bar.customdata) == [-1]


@given(numbers(2, 3), numbers(2, 3))
def test_curves_of_deletion_and_the_band_of_chance(removed, kept):
    methods, titles = list(METHODS)[:2], ["Gradient × input", "Integrated gradients (not converged)"]
    low, high = np.array([[-1, -2, -3], [4, 5, 6]], dtype=np.float32)
    deletion = Deletion(
        removal="token_replaced",
        base=1.0,
        end=0.0,
        counts=np.array([0, 1, 2]),
        bins=np.ones(5, dtype=int),
        curves=tuple(
            DeletionCurve(
                method=method,
                order=np.arange(2),
                removed=removed[at],
                kept=kept[at],
                comprehensiveness=0.5,
                sufficiency=0.25,
                n_as_good=1,
                converged=at == 0,
            )
            for at, method in enumerate(methods)
        ),
        chance=ChanceBand(
            n_orders=99,
            seed=0,
            counts=np.array([0, 1, 2]),
            removed=np.stack([low, high]),
            kept=np.stack([high, low]),
            comprehensiveness=(0.0, 0.0),
            sufficiency=(0.0, 0.0),
        ),
    )
    band, *lines = draw_deletion(deletion, outcome="logit").data
    assert {*zip(band.x, band.y, strict=True)} == {
        (at, float(side[at])) for side in (low, high) for at in range(3)
    }
    for at, (title, line) in enumerate(zip(titles, lines, strict=True)):
        assert (line.name, list(line.x), list(line.y)) == (title, [0, 1, 2], removed[at].tolist())
        assert title in line.hovertemplate


@given(numbers(2, 3), st.sampled_from([None, 1]))
def test_cells_of_attributions(values, picked):
    """Each column on its own scale: the cell farthest from 0 is 1 or -1; hover texts have the numbers themselves."""
    methods, titles = list(METHODS)[:2], ["Gradient × input", "Integrated gradients"]
    attributions = [
        InputAttribution(method=method, tokens=hand_made.tokens(LABELS), values=row)
        for method, row in zip(methods, values, strict=True)
    ]
    figure = draw_attributions(attributions, picked=picked)
    cells = figure.data[0]
    for token, method in np.ndindex(3, 2):
        own = [float(value) for value in values[method]]
        assert cells.z[token][method] == pytest.approx(own[token] / max(map(abs, own)))
        hover = cells.hovertext[token][method]
        assert LABELS[token] in hover and f"{titles[method]}: {number_text(own[token])}" in hover
        assert list(cells.customdata[token][method]) == [token, method]
    frames = [(shape.x0, shape.x1, shape.y0, shape.y1) for shape in figure.layout.shapes]
    assert frames == ([] if picked is None else [(-0.5, 1.5, picked - 0.5, picked + 0.5)])


@given(numbers(4), numbers(4), numbers(4), st.sampled_from(["weights", "norms"]), st.sampled_from([0.0, 0.5]))
def test_points_of_cells(weights, norms, outcomes, measure, base):
    queries, keys = np.array([0, 1, 1, 2]), np.array([2, 0, 2, 1])
    effects = CellEffects(
        query_tokens=hand_made.tokens(LABELS),
        key_tokens=hand_made.tokens(["x", "y", "z"]),
        layer=0,
        head=0,
        kind="encoder",
        base=base,
        queries=queries,
        keys=keys,
        weights=np.abs(weights),
        norms=np.abs(norms),
        outcomes=outcomes,
        n_cell=4,
    )
    figure = draw_cell_effects(effects, measure=measure, picked=(1, 2))
    [points] = figure.data
    across = "attention weight" if measure == "weights" else "norm-based weight"
    assert figure.layout.xaxis.title.text == across
    assert marked(points.marker.line.width) == [2]
    for at in range(4):
        effect = float(outcomes[at]) - base
        assert points.x[at] == abs(float((weights if measure == "weights" else norms)[at]))
        assert points.y[at] == pytest.approx(abs(effect))
        assert points.marker.symbol[at] == ("triangle-up" if effect >= 0 else "triangle-down")
        assert points.text[at].endswith(f": {signed_text(float(np.float32(effect)))}")
        assert LABELS[queries[at]] in points.text[at].split("→")[0]
        assert "xyz"[keys[at]] in points.text[at].split("→")[1]
        assert list(points.customdata[at]) == [queries[at], keys[at]]


@given(numbers(3), st.permutations([(0, 0), (0, 1), (1, 0)]))
def test_a_line_of_removals(outcomes, heads):
    removal = Removal(base=9.0, heads=tuple(Head(*head) for head in heads), outcomes=outcomes)
    figure = draw_removal([("one", removal)], outcome="logit")
    [line] = figure.data
    assert list(line.y) == [9.0, *outcomes.tolist()] and list(line.x) == [0, 1, 2, 3]
    for at, head in enumerate(heads):
        assert Head(*head).words in line.text[at + 1] and list(line.customdata[at + 1]) == [*head]
        assert Head(*head).short in figure.layout.xaxis.ticktext[at + 1]
    assert figure.layout.shapes[0].y0 == figure.layout.shapes[0].y1 == 9.0


@given(numbers(2, 2), numbers(2, 2), st.booleans())
def test_points_of_two_ways_to_switch_off(zero, of_mean, is_ragged):
    if is_ragged:
        zero[1, 1] = of_mean[1, 1] = np.nan
    ablations = [
        HeadEffects(kind="encoder", ablation=ablation, base=0.5, heads=heads)
        for ablation, heads in (("zero", zero), ("mean", of_mean))
    ]
    [points] = draw_ablations(*ablations, picked=(0, 1)).data
    assert [*map(tuple, points.customdata)] == [(0, 0), (0, 1), (1, 0), (1, 1)][: 4 - is_ragged]
    assert marked(points.marker.line.width) == [1]
    for at, head in enumerate(map(tuple, points.customdata)):
        assert points.text[at] == Head(*head).words
        assert (points.x[at], points.y[at]) == pytest.approx((zero[head] - 0.5, of_mean[head] - 0.5))


@given(numbers(3, 2), numbers(3, 2), st.permutations(range(1, 7)), st.sampled_from([1, 2]))
def test_curves_of_followed_tokens(logits, probabilities, ranks, n_token):
    ranks = np.array(ranks).reshape(3, 2)
    followed = FollowedTokens(
        kind="decoder",
        position=0,
        labels=("door", "cat")[:n_token],
        logits=logits[:, :n_token],
        probabilities=np.abs(probabilities)[:, :n_token],
        ranks=ranks[:, :n_token],
    )
    drawn = [(line.name, [*map(float, line.y)], line.hovertemplate) for line in draw_followed(followed).data]
    expected = [logits[:, 0] - logits[:, 1]] if n_token == 2 else []
    expected += [np.abs(probabilities)[:, at] for at in range(n_token)] + [
        ranks[:, at] for at in range(n_token)
    ]
    assert [y for _, y, _ in drawn] == [pytest.approx(value.tolist()) for value in expected]
    titles = ["difference"] * (n_token == 2) + ["probability"] * n_token + ["rank"] * n_token
    labels = ["door", "cat"][:n_token]
    for (name, _, hover), title, label in zip(
        drawn, titles, ["door"] * (n_token == 2) + labels * 2, strict=True
    ):
        assert label in name and title in hover
    if n_token == 2:
        assert drawn[0][0].index("door") < drawn[0][0].index("cat")


@given(numbers(3, 2), numbers(3, 2))
def test_cells_of_the_sources_of_a_score(of_query, of_key):
    names = ("token", "position", "biases")
    sources = ScoreSources(
        kind="encoder",
        layer=0,
        head=0,
        query=0,
        key=1,
        sources=tuple(Source(name=name) for name in names),
        query_vectors=of_query.astype(np.float64),
        key_vectors=of_key.astype(np.float64),
        scale=0.5,
        product=1.0,
        softcap=None,
        bias=0.0,
        allowed=True,
    )
    [cells] = draw_score_sources(sources).data
    parts = {}
    for row, column in np.ndindex(3, 3):
        part = 0.5 * math.fsum(
            float(a) * float(b) for a, b in zip(of_query[row], of_key[column], strict=True)
        )
        parts[row, column] = part
        assert cells.z[row][column] == pytest.approx(part)
        query, key, number = cells.hovertext[row][column].split("<br>")
        assert sources.sources[row].short in query and sources.sources[column].short in key
        assert number == signed_text(float(sources.parts[row, column]))
    assert cells.zmax == -cells.zmin == pytest.approx(max(map(abs, parts.values())))


@given(st.integers(1, 7), st.integers(1, 7), st.integers(1, 3), st.integers(1, 3), st.integers(0, 99))
def test_the_number_of_a_block_is_the_one_farthest_from_0(n_row, n_column, rows, columns, seed):
    cells = np.random.default_rng(seed).permutation(n_row * n_column).reshape(n_row, n_column) - n_column
    largest = largest_of_blocks(cells.astype(np.float32), rows, columns)
    assert largest.shape == (math.ceil(n_row / rows), math.ceil(n_column / columns))
    for row, column in np.ndindex(*largest.shape):
        block = [
            float(cells[at])
            for at in np.ndindex(n_row, n_column)
            if at[0] // rows == row and at[1] // columns == column
        ]
        assert largest[row, column] in block and abs(largest[row, column]) == max(map(abs, block))


@given(st.sampled_from([1, 5, 200]), st.integers(0, 99))
def test_pictures_of_a_table_of_positions(n_position, seed):
    table = np.random.default_rng(seed).integers(-4, 5, (n_position, 6)).astype(np.float32)
    table[:, 0] += 9
    shown = spaced(n_position).tolist()
    assert (
        shown[0] == 0 and shown[-1] == n_position - 1 and len({*shown}) == len(shown) == min(n_position, 128)
    )
    gaps = {b - a for a, b in pairwise(shown)}
    assert not gaps or max(gaps) - min(gaps) <= 1
    [cells], [likeness] = draw_table(table).data, draw_likeness(table, n_used=1).data
    for row, at in enumerate(shown):
        assert cells.y[row] == likeness.y[row] == at and list(cells.z[row]) == table[at].tolist()
    first, other = shown[0], shown[-1]
    product = math.fsum(float(a) * float(b) for a, b in zip(table[first], table[other], strict=True))
    cosine = product / math.hypot(*map(float, table[first])) / math.hypot(*map(float, table[other]))
    assert likeness.z[0][-1] == pytest.approx(cosine, abs=1e-6)
    limit = tone_limit(table)
    assert cells.zmax == limit
    assert np.mean(np.abs(table) <= limit + 1e-6) >= 0.99 - 1 / table.size


def test_lines_of_the_token_flow():
    """Each from its query to its key, as wide as its weight, in the colour of its head."""
    flow = Flow(
        matrix=np.array([0, 1, 0]),
        query=np.array([0, 1, 2]),
        key=np.array([4, 2, 0]),
        weight=np.array([0.125, 0.5, 0.25], dtype=np.float32),
        n_left_out=0,
        row_is_whole=True,
        share=1.0,
    )
    queries, keys = (
        Axis.of(hand_made.tokens([f"{side}{at}" for at in range(n)])) for side, n in (("q", 3), ("k", 5))
    )
    picture = draw_flow(flow, queries, keys, largest=0.5, drawn=np.array([True, True, False]))
    heights = {label: float(y) for y, label in re.findall(r'y="([\d.]+)"[^>]*>(\w\d)·', picture)}
    lines = re.findall(
        r'd="M\d+ ([\d.]+)C\S+ \S+ \S+ \S+ \d+ ([\d.]+)".*?stroke="(\S+)".*?stroke-width="(\S+)"', picture
    )
    assert [(colour, float(width)) for *_, colour, width in lines] == [
        (LIGHT.heads[0], 2.0),
        (LIGHT.heads[1], 8.0),
    ]
    starts, ends = ([float(line[at]) for line in lines] for at in (0, 1))
    assert [start - heights[name] for start, name in zip(starts, ("q0", "q1"), strict=True)] == [-4, -4]
    assert [end - heights[name] for end, name in zip(ends, ("k4", "k2"), strict=True)] == [-4, -4]


@given(
    hnp.arrays(np.float32, (3, 4), elements=st.sampled_from([0.0, 0.25, 0.5, 1.0, math.nan])), st.booleans()
)
def test_points_of_a_number_of_every_head(table, is_deep):
    """Layers down, or across where there are many; a head that a layer has not has no point."""
    table = np.tile(table, (5, 1)) if is_deep else table
    [drawn] = draw_heads(table, what="share", picked=(1, 1)).data
    heads = [at for at in np.ndindex(table.shape) if not math.isnan(table[at])]
    assert [*map(tuple, drawn.customdata)] == heads
    along, layers = (drawn.y, drawn.x) if is_deep else (drawn.x, drawn.y)
    assert list(along) == [float(table[head]) for head in heads]
    assert [round(float(place)) for place in layers] == [layer for layer, _ in heads]
    assert marked(drawn.marker.line.width) == [at for at, head in enumerate(heads) if head == (1, 1)]


def test_the_map_of_heads():
    heads = [Head(at // 3, at) for at in range(6)]
    points = np.arange(12, dtype=np.float32).reshape(6, 2) ** 2
    figure = draw_head_map(points, heads=heads, picked=heads[4], dimmed=np.arange(6) == 2)
    [drawn] = figure.data
    assert [*zip(drawn.x, drawn.y, strict=True)] == [*map(tuple, points.tolist())]
    assert [*map(tuple, drawn.customdata)] == heads
    assert list(drawn.marker.color) == [0, 0, 0, 1, 1, 1]
    assert [place for place, _ in drawn.marker.colorscale][:: len(drawn.marker.colorscale) - 1] == [0, 1]
    assert list(drawn.marker.symbol).count(drawn.marker.symbol[4]) == 1
    assert np.argmin(drawn.marker.opacity) == 2


@pytest.mark.parametrize(
    ("number", "unit", "written"),
    [
        (0, "bytes", "0 B"),
        (999_999, "count", "999,999"),
        (1e6, "count", "1 million"),
        (999_999_999, "count", "1 billion"),
        (999.9, "bytes", "1 kB"),
        (4.8e13, "bytes", "48 TB"),
        (1e21, "bytes", "1e+03 EB"),
        (0.000999, "seconds", "999 µs"),
        (12.0, "seconds", "12 s"),
    ],
)
def test_quantities(number, unit, written):
    assert quantity_text(number, unit).replace("\N{NO-BREAK SPACE}", " ") == written


def test_points_of_two_numbers_of_every_head():
    """A head that lacks one of them has no point; the selected one alone has its interval, those that are not listed are pale."""
    heads = [Head(layer, head) for layer in range(2) for head in range(2)]
    right, up = np.array([1.0, 2.0, math.nan, 4.0]), np.array([5.0, 6.0, 7.0, 8.0])
    [drawn] = draw_two_numbers(
        right,
        up,
        heads=heads,
        titles=("Right", "Up"),
        ends=(up - 1, up + 3),
        picked=heads[1],
        shown=[heads[0]],
    ).data
    np.testing.assert_array_equal(drawn.x, right)
    assert list(drawn.y) == up.tolist() and [*map(tuple, drawn.customdata)] == heads
    assert list(drawn.error_y.array) == [0, 3, 0, 0] and list(drawn.error_y.arrayminus) == [0, 1, 0, 0]
    assert [opacity > 0.5 for opacity in drawn.marker.opacity] == [True, True, False, False]


def test_points_of_two_models_are_by_depth_and_those_of_the_second_lead_to_no_head():
    first, second = [Head(layer, 0) for layer in range(4)], [Head(layer, 0) for layer in range(3)]
    one, other = draw_by_depth(
        [("A", first, np.arange(4.0)), ("B", second, np.arange(3.0))], title="Own", picked=Head(2, 0)
    ).data
    assert list(one.x) == [0, 1 / 3, 2 / 3, 1] and list(other.x) == [0, 0.5, 1]
    assert list(one.y) == [0, 1, 2, 3] and list(other.y) == [0, 1, 2]
    assert [*map(tuple, one.customdata)] == first and other.customdata is None
