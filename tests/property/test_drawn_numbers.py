"""What figures draw and say on hovering: the number at each mark is that of its token, head or layer, found again in plain Python."""

import math
from itertools import pairwise
from statistics import mean, stdev

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnviz.effects.ablation import HeadEffects, Removal
from attnviz.effects.cell_effects import CellEffects
from attnviz.effects.deletion import ChanceBand, Deletion, DeletionCurve
from attnviz.effects.input_attribution import METHODS, InputAttribution
from attnviz.effects.lens import FollowedTokens, LayerSimilarities
from attnviz.effects.logit_attribution import DirectParts
from attnviz.effects.over_pairs import mean_direct_effects
from attnviz.effects.score_sources import ScoreSources, Source
from attnviz.figures.ablation import draw_ablations, draw_cell_effects, draw_removal
from attnviz.figures.bars import draw_effect, draw_rows
from attnviz.figures.inputs import draw_attributions, draw_deletion
from attnviz.figures.lens import draw_followed, draw_layer_parts, draw_layer_similarities
from attnviz.figures.matrices import largest_of_blocks
from attnviz.figures.numbers import number_text, signed_text
from attnviz.figures.pair import draw_score_sources
from attnviz.figures.positions import draw_likeness, draw_table, spaced, tone_limit
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


@given(numbers(3), st.sampled_from([None, 0, 2]))
def test_bars_of_a_change(change, picked):
    [bars] = draw_effect(np.abs(change), Axis.of(hand_made.tokens(LABELS)), picked=picked).data
    assert list(bars.y) == [abs(float(value)) for value in change]
    assert [label in hover for label, hover in zip(LABELS, bars.customdata, strict=True)] == [True] * 3
    assert marked(bars.marker.line.width) == ([] if picked is None else [picked])


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
    methods = METHODS[:2]
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
    band, *lines = draw_deletion(deletion, {method: method for method in methods}, outcome="logit").data
    assert {*zip(band.x, band.y, strict=True)} == {
        (at, float(side[at])) for side in (low, high) for at in range(3)
    }
    for at, (method, line) in enumerate(zip(methods, lines, strict=True)):
        assert (line.name, list(line.x), list(line.y)) == (method, [0, 1, 2], removed[at].tolist())
        assert method in line.hovertemplate


@given(numbers(2, 3), st.sampled_from([None, 1]))
def test_cells_of_attributions(values, picked):
    """Each column on its own scale: the cell farthest from 0 is 1 or -1; hover texts have the numbers themselves."""
    methods = METHODS[:2]
    attributions = [
        InputAttribution(method=method, values=row) for method, row in zip(methods, values, strict=True)
    ]
    names = {method: f"method {at}" for at, method in enumerate(methods)}
    figure = draw_attributions(attributions, hand_made.tokens(LABELS), names, picked=picked)
    cells = figure.data[0]
    for token, method in np.ndindex(3, 2):
        own = [float(value) for value in values[method]]
        assert cells.z[token][method] == pytest.approx(own[token] / max(map(abs, own)))
        hover = cells.hovertext[token][method]
        assert LABELS[token] in hover and f"method {method}: {number_text(own[token])}" in hover
        assert list(cells.customdata[token][method]) == [token, method]
    frames = [(shape.x0, shape.x1, shape.y0, shape.y1) for shape in figure.layout.shapes]
    assert frames == ([] if picked is None else [(-0.5, 1.5, picked - 0.5, picked + 0.5)])


@given(numbers(4), numbers(4), numbers(4), st.sampled_from(["weights", "norms"]), st.sampled_from([0.0, 0.5]))
def test_points_of_cells(weights, norms, outcomes, measure, base):
    queries, keys = np.array([0, 1, 1, 2]), np.array([2, 0, 2, 1])
    effects = CellEffects(
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
    tokens = hand_made.tokens(LABELS), hand_made.tokens(["x", "y", "z"])
    figure = draw_cell_effects(effects, *tokens, measure=measure, picked=(1, 2))
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


@given(st.sampled_from([2, 14]), st.data())
def test_cells_of_layers_and_tokens(n_layer, data):
    """Layers down, or across where there are many: a cell has its own number, place and text either way."""
    similar = data.draw(numbers(n_layer, 3)) / np.float32(n_layer)
    similarities = LayerSimilarities(kind="encoder", similarities=similar)
    cells = draw_layer_similarities(similarities, hand_made.tokens(LABELS)).data[0]
    for row, column in np.ndindex(*np.shape(cells.z)):
        layer, token = map(int, cells.customdata[row][column])
        assert (layer, token) == ((row, column) if n_layer == 2 else (column, row))
        assert cells.z[row][column] == similar[layer, token]
        hover = cells.hovertext[row][column]
        assert f"layer {layer}, {LABELS[token]}" in hover.replace("\u2068", "").replace("\u2069", "")
        assert hover.endswith(number_text(float(similar[layer, token])))


@given(numbers(2, 3), st.sampled_from([0, 2]))
def test_bars_of_the_ways_to_attend(weights, picked):
    weights = np.abs(weights)
    drawn = draw_rows(weights, ["old", "new"], Axis.of(hand_made.tokens(LABELS)), picked=picked)
    for way, bars in enumerate(drawn.data):
        assert bars.name == ["old", "new"][way] and list(bars.y) == weights[way].tolist()
        assert marked(bars.marker.line.width) == [picked]
        assert bars.text[picked] == number_text(float(weights[way, picked]))
        for key, written in enumerate(bars.text):
            assert written in ("", number_text(float(weights[way, key])))
        upper, lower = (drawn.layout[axis].domain[0] for axis in ("yaxis", "yaxis2"))
        assert upper > lower
    ranges = [drawn.layout[axis].range for axis in ("yaxis", "yaxis2")]
    top = max(1.4 * max(map(float, weights.ravel())), 1.4e-9)  # 0.4 is for the number on the largest bar
    assert ranges[0] == ranges[1] == (0, pytest.approx(top))


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
