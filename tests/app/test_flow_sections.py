"""Several heads: which lines there are and what is said of them, worked out again cell by cell."""

from itertools import product

import numpy as np
import pytest

from attnviz.figures.heatmap import MOST_COUNTED
from attnviz.heads.flow import MOST_LINES, Flow
from attnviz.records import AllHeads, Head
from tests.app.views import drawn_of, trace_of, view_of
from ui.rooms.explore.several_heads import lines as lines_section
from ui.rooms.explore.several_heads.controls import MOST_HEADS, controls
from ui.rooms.explore.several_heads.lines import (
    at_once,
    chosen_heads,
    drawn_words,
    lines_of,
    note,
    pattern_of,
)
from ui.words.findings import name


def matrices(seed: int) -> np.ndarray:
    """Two heads of the five tokens, whose rows sum to 1; no two weights of a row are equal."""
    rng = np.random.default_rng(seed)
    counts = np.array([[rng.permutation([0, 1, 3, 7, 12]) for _ in range(5)] for _ in range(2)])
    return (counts / counts.sum(axis=-1, keepdims=True)).astype(np.float32)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("choice", [{"share": 60}, {"share": 100}, {"threshold": "weight", "weakest": 20}])
@pytest.mark.parametrize("measure", ["weights", "norms"])
def test_lines_above_the_threshold(seed, choice, measure):
    """The strongest keys of each query until they hold the share; or those above a weight, for norms as a share of the largest."""
    cells = matrices(seed) * (4 if measure == "norms" else 1)
    view = view_of(trace_of(0, with_matrix=True), show=measure, **choice)
    flow = lines_of(cells, view)
    expected = set()
    largest = float(cells.max())
    for matrix, query in product(range(2), range(5)):
        row = [float(cell) for cell in cells[matrix, query]]
        held = 0.0
        for key in sorted(range(5), key=lambda key: -row[key]):
            if "weakest" in choice:
                is_above = row[key] >= 0.2 * (largest if measure == "norms" else 1.0)
            else:
                is_above = held < choice["share"] / 100 * sum(row) - 1e-6
            held += row[key]
            if is_above and row[key]:
                expected.add((matrix, query, key))
    lines = {*zip(flow.matrix.tolist(), flow.query.tolist(), flow.key.tolist(), strict=True)}
    drawn_weight = sum(float(cells[line]) for line in lines)
    assert lines == expected
    assert flow.share == pytest.approx(drawn_weight / float(cells.sum()), rel=1e-5)


@pytest.mark.parametrize(("share", "keys"), [(79, {0, 1}), (80, {0, 1, 2})])
def test_lines_are_drawn_until_they_hold_the_whole_share(share, keys):
    cells = np.array([[[0.5, 0.295, 0.205]]], dtype=np.float32)
    flow = lines_of(cells, view_of(trace_of(0, ["a", "b", "c"]), query=0, share=share))
    assert {*flow.key.tolist()} == keys


def test_lines_of_the_selected_query_come_before_all_others(monkeypatch):
    """Where there are too many lines, those of other queries are left out."""
    real = lines_section.strongest_lines
    monkeypatch.setattr(lines_section, "strongest_lines", lambda *args, **named: real(*args, **named, most=7))
    cells = matrices(1)
    view = view_of(trace_of(0), query=3, share=100)
    flow = lines_of(cells, view)
    own = {(matrix, key) for matrix in range(2) for key in range(5) if cells[matrix, 3, key]}
    of_own = {
        (matrix, key)
        for matrix, query, key in zip(
            flow.matrix.tolist(), flow.query.tolist(), flow.key.tolist(), strict=True
        )
        if query == 3
    }
    assert len(flow) == 7 and (of_own == own or len(of_own) == 7)
    assert flow.n_left_out == np.count_nonzero(cells) - 7


def test_the_heads_that_are_drawn():
    """The selected one first, each once; rollout is of all heads of a layer."""
    view = view_of(trace_of(0), heads=(Head(0, 1), Head(1, 2), AllHeads(0)))
    assert chosen_heads(view) == [Head(1, 2), Head(0, 1), AllHeads(0)]
    trace = trace_of(0, with_matrix=True)
    rollout = view_of(trace, heads=(Head(0, 1), Head(0, 3)), show="rollout")
    assert chosen_heads(rollout) == ([AllHeads(1), AllHeads(0)] if rollout.measure == "rollout" else [])


def test_the_matrix_of_a_head_and_of_all_heads(monkeypatch):
    from ui.shell import view as view_module

    trace = trace_of(1)
    asked = []

    def pattern(source, layer, head, kind, measure):
        asked.append((layer, head))
        return trace.pattern(layer, head or 0)

    monkeypatch.setattr(view_module.cache, "pattern", pattern)
    view = view_of(trace)
    pattern_of(Head(0, 3), view)
    pattern_of(AllHeads(1), view)
    assert asked == [(0, 3), (1, None)]


@pytest.mark.parametrize("chosen", [None, 0, 50])
@pytest.mark.parametrize("n_word", [3, MOST_COUNTED - 2, MOST_COUNTED - 1])
def test_how_many_lines_are_drawn_at_once(chosen, n_word):
    labels = ["[CLS]", *(f"w{at}" for at in range(n_word)), "[SEP]"]
    view = view_of(trace_of(0, labels, n_head=4), at_once=chosen)
    usual = 0 if len(labels) > MOST_COUNTED else MOST_LINES
    assert at_once(view) == (usual if chosen is None else chosen)


@pytest.mark.parametrize("is_long", [(True, False), (False, True), (False, False)])
def test_either_of_two_texts_may_be_long(is_long):
    long, short = [f"w{at}" for at in range(MOST_COUNTED + 1)], ["a", "b"]
    sources, targets = (long if text_is_long else short for text_is_long in is_long)
    view = view_of(trace_of(0, sources, kind="cross", targets=targets), query=1)
    assert at_once(view) == (0 if any(is_long) else MOST_LINES)


@pytest.mark.parametrize(
    "choice",
    [
        {},
        {"share": 100},
        {"threshold": "weight", "weakest": 12.5},
        {"special": "hidden"},
        {"without_first": True},
        {"query": 0, "special": "hidden"},
        {"sentences": "A → B"},
    ],
    ids=str,
)
@pytest.mark.parametrize("measure", ["weights", "norms"])
def test_what_is_said_of_the_lines(choice, measure):
    choice = dict(choice)
    query = choice.pop("query", 2)
    view = view_of(trace_of(0, with_matrix=True), query=query, show=measure, **choice)
    flow = lines_of(matrices(2)[:, : len(view.queries), : len(view.keys)], view)
    words = note(flow, view, 1.2345)
    is_whole = not choice.keys() & {"special", "without_first", "sentences"}
    assert ("between these tokens" in words) == (not is_whole)
    held = f"{100 * flow.share:.1f}% of the "
    held += "sum of all norm-based weights" if measure == "norms" else "weight"
    held += " between these tokens" * (not is_whole)
    is_shown = query != 0
    assert words.startswith(drawn_words(flow, held, name(view.queries, query) if is_shown else None))
    by_weight = choice.get("threshold") == "weight"
    assert ("Lines under 12.5%" in words) == by_weight
    assert ("12.5% of the largest" in words) == (by_weight and measure == "norms")
    by_share = not by_weight and choice.get("share") != 100
    assert ("hold 70% of its row" in words) == ("of its row" in words) == by_share
    assert ("relative to the largest, 1.23:" in words) == (measure == "norms")


def flow_of(n_line: int, n_left_out: int, **changes) -> Flow:
    """So many lines between the first query and the first key."""
    places = {name: np.zeros(n_line, dtype=np.int64) for name in ("matrix", "query", "key")}
    weight = np.ones(n_line, dtype=np.float32)
    given = places | {"weight": weight, "n_left_out": n_left_out, "row_is_whole": True, "share": 0.5}
    return Flow(**given | changes)


@pytest.mark.parametrize("n_target", [2, 3])
def test_a_query_is_found_among_the_queries_where_keys_are_hidden(n_target):
    """The queries' text has no special token; the keys' first one is, and is hidden."""
    trace = trace_of(0, kind="cross", targets=["a", "b", "c"][:n_target])
    view = view_of(trace, query=1, key=2, special="hidden", at_once=0)
    flow = flow_of(
        3, 4, query=np.array([1, 0, 0]), key=np.array([2, 1, 0])
    )  # of the keys "##s", "door", "cat"
    assert lines_section.drawn_at_once(flow, view, 2).tolist() == [True, True, False]
    assert lines_section.drawn_at_once(flow, view, 1).tolist() == [True, False, True]
    assert "drawn are all of “b” and" in note(flow, view, 1.0)
    of_special = view_of(trace_of(0), query=0, special="hidden")
    assert note(flow, of_special, 1.0).startswith("The 3 strongest lines, 50.0% of the weight between")


def test_lines_are_counted():
    assert [drawn_words(flow_of(n, 0), "h", "“it”") for n in (0, 1, 2)] == [
        *("0 lines, h.", "1 line, h.", "2 lines, h.")
    ]


@pytest.mark.parametrize(
    ("query", "row_is_whole", "sentence"),
    [
        (None, True, "The 3 strongest lines, h; 1,234 weaker ones are left out."),
        (
            "“it”",
            True,
            "3 lines, h, and 1,234 left out: drawn are all of “it” and the strongest of the others.",
        ),
        ("“it”", False, "3 lines, h, and 1,234 left out: drawn are the strongest of “it”."),
    ],
)
def test_lines_that_are_left_out(query, row_is_whole, sentence):
    flow = flow_of(3, 1234, row_is_whole=row_is_whole)
    assert drawn_words(flow, "h", query) == sentence


@pytest.mark.parametrize("choice", [{}, {"show": "rollout"}, {"threshold": "weight"}], ids=str)
def test_the_controls_of_the_lines(choice):
    trace = trace_of(0, with_matrix=True)
    view = view_of(trace, heads=(Head(0, 1),), **choice)
    heads = chosen_heads(view)
    at = drawn_of(view, lambda: controls(view, heads))
    own = [Head(layer, head).title for layer in range(2) for head in range(4)]
    every = [AllHeads(number).title for number in range(2)]
    every = every if view.measure == "rollout" else [*own, *every]
    assert at.multiselect(key="field_heads").options == [title for title in every if title != heads[0].title]
    assert at.multiselect(key="field_heads").proto.max_selections == MOST_HEADS - 1
    assert bool(at.slider) == (choice.get("threshold") != "weight")
    assert [element.key for element in at.number_input] == [
        *(["field_weakest"] if "threshold" in choice else []),
        "field_at_once",
    ]
    assert at.number_input(key="field_at_once").value == MOST_LINES
