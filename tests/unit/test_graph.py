"""The graph of tokens: an arrow for each of the strongest weights, from key to query, and none that a mask forbids."""

import re
from dataclasses import replace

import numpy as np
import pytest

from attnviz.figures.graph import MOST_NODES, draw_graph, strongest_edges
from attnviz.figures.theme import DARK, LIGHT
from attnviz.model.trace import Trace
from attnviz.records import Axis
from tests import hand_made, small_records

LABELS = ["[CLS]", "the", "door", "opened", "slowly"]
WEIGHTS = np.array(
    [
        [1.00, 0.00, 0.00, 0.00, 0.00],
        [0.60, 0.40, 0.00, 0.00, 0.00],
        [0.05, 0.90, 0.05, 0.00, 0.00],
        [0.30, 0.25, 0.35, 0.10, 0.00],
        [0.50, 0.20, 0.15, 0.10, 0.05],
    ]
)
CAUSAL = np.tri(5, dtype=bool)


@pytest.fixture(scope="module")
def causal():
    return hand_made.trace(WEIGHTS[None, None], LABELS, allowed=CAUSAL).pattern(0, 0)


def joined(edges) -> set[tuple[int, int]]:
    return set(zip(edges.query.tolist(), edges.key.tolist(), strict=True))


def test_all_edges_of_a_short_text_are_drawn(causal):
    edges = strongest_edges(causal, 3)
    assert edges.n_edges == 15  # 1 + 2 + 3 + 4 + 5
    assert joined(edges) == {(query, key) for query in range(5) for key in range(query + 1)}
    assert edges.share == pytest.approx(1)
    np.testing.assert_allclose(edges.weight[:3], [1, 0.9, 0.6])
    np.testing.assert_array_equal(edges.queries, range(5))


def ends(figure):
    """Where each arrow starts and where its head is, with its text and weight, in the order of the heads."""
    starts = [
        tuple(map(float, re.match(r"M([-\d.]+),([-\d.]+)", shape.path).groups()))
        for shape in figure.layout.shapes
    ]
    heads = figure.data[0]
    return list(zip(starts, zip(heads.x, heads.y, strict=True), heads.text, heads.customdata, strict=True))


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_an_arrow_goes_from_key_to_query(causal, theme):
    figure = draw_graph(causal, 3, key=2, theme=theme)
    angles = 2 * np.pi * np.arange(5) / 5  # clockwise from the top
    places = np.column_stack([np.sin(angles), np.cos(angles)])
    np.testing.assert_allclose(np.column_stack([figure.data[1].x, figure.data[1].y]), places, atol=1e-9)
    palette = LIGHT if theme == "light" else DARK
    for (start, head, text, weight), shape in zip(ends(figure), figure.layout.shapes, strict=True):
        key, query = (int(match) for match in re.findall(r"·(\d)", text))
        assert weight == pytest.approx(WEIGHTS[query, key])
        assert shape.line.width == pytest.approx(0.8 + 5.2 * WEIGHTS[query, key])
        assert shape.line.color == (palette.query if query == 3 else palette.quiet)
        nearest = np.linalg.norm(places - head, axis=1).argmin()
        if key != query:
            np.testing.assert_allclose(start, places[key], atol=1e-3)
            assert nearest == query
    assert sum(shape.line.color == palette.query for shape in figure.layout.shapes) == 4
    marks = figure.data[1].marker
    assert (marks.symbol[3], marks.color[3]) == ("square", palette.query)
    assert (marks.symbol[2], marks.color[2]) == ("diamond", palette.key)


def test_loops_are_there_and_forbidden_edges_are_not(causal):
    texts = draw_graph(causal, 3).data[0].text
    assert sum("key door·2 → query door·2" in text for text in texts) == 1
    assert not any("key opened·3 → query door·2" in text for text in texts)
    # A weight on a key that may not be seen is no edge either, whatever its number.
    leaking = replace(causal, weights=np.full((5, 5), 0.2, dtype=np.float32))
    assert all(key <= query for query, key in joined(strongest_edges(leaking, 0)))


def test_a_query_that_sees_nothing_has_no_arrow():
    allowed = CAUSAL.copy()
    allowed[2] = False
    pattern = hand_made.trace(WEIGHTS[None, None], LABELS, allowed=allowed).pattern(0, 0)
    edges = strongest_edges(pattern, 2)
    assert not (edges.query == 2).any() and edges.n_edges == 12
    assert len(draw_graph(pattern, 2).data[1].x) == 5
    alone = hand_made.trace(WEIGHTS[None, None], LABELS, allowed=np.zeros((5, 5), dtype=bool)).pattern(0, 0)
    assert strongest_edges(alone, 0).share == 0 and len(draw_graph(alone, 0).data[0].x) == 0


def test_of_a_long_text_the_strongest_are_drawn():
    """101 tokens, each of which gives 0.8 to the one before it; the query is at the end, and gives 0.5 to token 7."""
    n = 101
    weights = np.full((n, n), 0.2 / (n - 1))
    weights[np.arange(1, n), np.arange(n - 1)] = 0.8
    weights[n - 1] = 0.3 / (n - 2)
    weights[n - 1, [7, 11]] = 0.5, 0.2
    weights /= weights.sum(axis=1, keepdims=True)
    pattern = hand_made.trace(weights[None, None], ["a"] * n).pattern(0, 0)
    edges = strongest_edges(pattern, n - 1)
    assert len(edges.queries) == MOST_NODES == 24
    assert {n - 1, 7, 11} <= set(edges.queries.tolist())
    assert (n - 1, 7) in joined(edges) and (n - 1, 11) in joined(edges)
    assert len(edges.weight) <= 65 and (np.diff(edges.weight) <= 0).all()
    assert edges.n_edges == n * n
    drawn = sum(weights[edge] for edge in joined(edges))
    assert edges.share == pytest.approx(drawn / weights.sum(), rel=1e-5)
    assert all(query in edges.queries and key in edges.keys for query, key in joined(edges))


@pytest.mark.parametrize(
    ("kind", "n_query", "n_key"),
    [("encoder", 31, 31), ("decoder", 24, 24), ("cross", 11, 19), ("cross", 5, 7)],
)
@pytest.mark.stand_ins
def test_which_edges_are_drawn_cell_by_cell(kind, n_query, n_key):
    """Edges whose ends are both among the 24 nodes: three for each node, 60 at most, and five of the query."""
    rng = np.random.default_rng(n_query)
    allowed = np.tri(n_query, n_key, dtype=bool) if kind == "decoder" else rng.random((n_query, n_key)) < 0.9
    weights = np.where(allowed, rng.permutation(n_query * n_key).reshape(n_query, n_key), 0).astype(
        np.float32
    )
    axes = [
        Axis.of(hand_made.tokens([f"{word}{at}" for at in range(n)]))
        for word, n in (("q", n_query), ("k", n_key))
    ]
    pattern = small_records.pattern(
        weights.tolist(), kind=kind, allowed=allowed, queries=axes[0], keys=axes[kind == "cross"]
    )
    sides = ("query", "key") if kind == "cross" else ("token", "token")
    strongest = sorted(
        ((q, k) for q, k in np.ndindex(n_query, n_key) if weights[q, k] > 0), key=lambda end: -weights[end]
    )
    everything = {(sides[0], q) for q in range(n_query)} | {(sides[1], k) for k in range(n_key)}
    for query in (0, n_query - 1):
        own = [end for end in strongest if end[0] == query]
        nodes = {(sides[0], query)}
        for q, k in [*own[:5], *strongest]:
            if len(nodes | {(sides[0], q), (sides[1], k)}) <= 24:
                nodes |= {(sides[0], q), (sides[1], k)}
        nodes = everything if len(everything) <= 24 else nodes
        within = [(q, k) for q, k in strongest if {(sides[0], q), (sides[1], k)} <= nodes]
        drawn = {*within[: min(60, 3 * len(nodes))], *[end for end in own if end in within][:5]}
        edges = strongest_edges(pattern, query)
        assert list(zip(edges.query, edges.key, strict=True)) == sorted(drawn, key=lambda end: -weights[end])
        assert edges.weight.tolist() == [weights[end] for end in zip(edges.query, edges.key, strict=True)]
        for side, positions in zip(sides, (edges.queries, edges.keys), strict=True):
            assert positions.tolist() == sorted(at for name, at in nodes if name == side)
        assert edges.n_edges == int(allowed.sum())
        assert edges.share == pytest.approx(sum(float(weights[end]) for end in drawn) / float(weights.sum()))


@pytest.mark.parametrize(("n_token", "radius"), [(5, 0.17), (24, 0.9 * np.pi / 24)])
def test_loops_of_neighbours_hardly_touch(n_token, radius):
    labels = [f"t{at}" for at in range(n_token)]
    pattern = hand_made.trace(np.eye(n_token)[None, None], labels).pattern(0, 0)
    loops = [shape for shape in draw_graph(pattern, 2).layout.shapes if "L" in shape.path]
    assert len(loops) == n_token
    for loop in loops:
        across = [float(place) for place in re.findall(r"([-\d.]+),", loop.path)]
        assert (max(across) - min(across)) / 2 == pytest.approx(radius, rel=0.01)


def test_queries_and_keys_of_two_texts_are_different_nodes(tiny_model):
    trace: Trace = tiny_model("bart").trace("the cat sat", "a door")
    pattern = trace.pattern(0, 0, "cross")
    figure = draw_graph(pattern, 1, key=2)
    n_query, n_key = pattern.weights.shape
    assert len(figure.data[1].x) == n_query + n_key
    assert (np.array(figure.data[1].x[:n_query]) > 0).all()  # the decoder's, on the right
    assert (np.array(figure.data[1].x[n_query:]) < 0).all()
    assert [symbol for symbol in figure.data[1].marker.symbol if symbol != "circle"] == ["square", "diamond"]


def test_labels_are_large_enough_never_upside_down_and_literal():
    labels = ["<b>", "$x$", "antidisestablishmentarianism", *"abcdefghijk"]
    n = len(labels)
    pattern = hand_made.trace(np.full((1, 1, n, n), 1 / n), labels).pattern(0, 0)
    figure = draw_graph(pattern, 2)
    nodes = figure.data[1]
    assert {(annotation.x, annotation.y) for annotation in figure.layout.annotations} == set(
        zip(nodes.x, nodes.y, strict=True)
    )
    for annotation in figure.layout.annotations:
        assert annotation.xshift * annotation.x >= 0 and annotation.yshift * annotation.y >= 0  # outwards
        assert annotation.font.size >= 12
        assert -90 <= annotation.textangle <= 90
        assert "$" not in annotation.text and "<" not in annotation.text.replace("<b>", "", 1).replace(
            "</b>", "", 1
        )
        assert (
            len(
                annotation.text.replace("<b>", "")
                .replace("</b>", "")
                .replace("&lt;", "<")
                .replace("&gt;", ">")
                .replace("&#36;", "$")
            )
            <= 12
        )
