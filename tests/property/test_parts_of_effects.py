"""What “Heads off” draws and asks for, of drawn effects: each row, number and click is found again in plain Python."""

import math
from statistics import mean, stdev
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from attnviz.effects.ablation import HeadEffects, LayerEffects, Removal
from attnviz.effects.cell_effects import CellEffects
from attnviz.effects.outcome import Similarity
from attnviz.effects.over_pairs import mean_head_effects
from attnviz.figures.numbers import number_text, signed_text
from attnviz.heads.probes import PROBES, HeadProbes
from attnviz.maps.collection import bundled
from attnviz.records import AllHeads, Head
from tests import hand_made, small_records
from tests.app.screen import facts, unescaped
from tests.drawing import MARKS, draw_few
from tests.drawn_parts import PartOfView, drawn
from ui.choice.selection import Selection
from ui.rooms.cause import own_run, prompts
from ui.rooms.cause.heads_off import comparing, grid, over_set, screen, together
from ui.rooms.cause.heads_off import jobs as effects_jobs
from ui.words import head_names

pytestmark = MARKS
draw_few(12)

A = Selection(model="m", text="the cat", layer=1, head=0)
TOKENS = hand_made.tokens(["[CLS]", "cat", "it"])


def numbers(*shape: int) -> st.SearchStrategy[np.ndarray]:
    """Few numbers above and below 0, many of which are equal."""
    return hnp.arrays(np.float32, shape, elements=st.integers(-3, 3).map(float), fill=st.nothing())


def heads_of(table: np.ndarray) -> tuple[Head, ...]:
    return tuple(Head(*map(int, at)) for at in np.argwhere(~np.isnan(table)))


def screen_of(table: np.ndarray, **changes):
    """A screen that shows these heads; jobs have what they are given as results."""
    heads = heads_of(table)
    trace = SimpleNamespace(
        heads=lambda kind: heads,
        n_layers=lambda kind: len(table),
        tokens=TOKENS,
        target_tokens=None,
        last_tokens=TOKENS,
        query_tokens=lambda kind: TOKENS,
        key_tokens=lambda kind: TOKENS,
        pattern=lambda *at: SimpleNamespace(allowed=np.tri(3, dtype=bool)),
    )
    given = {
        "view": PartOfView(
            selection=A, kind="encoder", theme="light", trace=trace, query=2, measure="weights"
        ),
        "heads": heads,
        "n_layers": len(table),
        "outcome": Similarity(text="A door."),
        "ablation": "zero",
        "n_tokens": lambda n: 100 * n,
        "request": lambda label, *key: (label, key),
        "means": lambda ablation: None,
        "of_ablation": lambda ablation: (ablation,),
        "given": ("m", "trace"),
    }
    return SimpleNamespace(**given | changes)


def effects(table: np.ndarray, base: float = 0.5, ablation: str = "zero") -> HeadEffects:
    return HeadEffects(kind="encoder", ablation=ablation, base=base, heads=table.copy())


@given(numbers(3, 2), st.sampled_from([0.0, 0.5]), st.booleans())
def test_all_heads_and_the_largest_effects(table, base, is_ragged):
    if is_ragged:
        table[2, 1] = np.nan
    ablation = effects(table, base)
    on = screen_of(table)
    with drawn(grid, known_names=lambda view: None) as page:
        grid.grid(on, ablation)
        grid.ranking(on, ablation)
    of_grid = page.keyed("effects_grid")
    [[texts]] = [call.given for call in page.all("head_grid")]
    changes = {head: float(table[head]) - base for head in on.heads}
    np.testing.assert_allclose(of_grid["numbers"], table - base)
    assert of_grid["picked"] == Head(1, 0) and of_grid["signed"] and of_grid["marks"] is None
    for head, change in changes.items():
        text = texts[head.layer][head.head]
        assert text.startswith(f"{head.title}: effect {signed_text(change)};")
        assert number_text(float(table[head])) in text.split("outcome")[1]
    rows = page.rows("effects_ranking")
    order = sorted(changes.values(), key=lambda change: -abs(change))[:8]
    assert [row.amount for row in rows] == [signed_text(change) for change in order]
    largest = max(map(abs, order))
    for number, row in enumerate(rows):
        head = Head(**page.click(page.keyed("effects_ranking")["on_pick"], number))
        assert row.text == head.title and row.picked == (head == Head(1, 0))
        assert changes[head] == pytest.approx(order[number])
        assert row.length == pytest.approx(order[number] / largest if largest else 0.0)
    assert page.click(of_grid["on_pick"], 2, 0) == {"layer": 2, "head": 0}


def test_a_head_that_is_not_computed_yet():
    table = np.array([[0.25, 0.5], [math.nan, math.nan]], dtype=np.float32)
    on = screen_of(np.zeros((2, 2), dtype=np.float32))
    work = SimpleNamespace(results=[effects(table), None])
    on.ablation_job = lambda ablation: work
    waited = []

    def is_there(asked, n_tokens, doing, *, key, request=None, result=None):
        waited.append((asked, n_tokens, key, request))
        result()
        return False

    with drawn(grid, known_names=lambda view: None, is_there=is_there) as page:
        assert grid.ablated(on, "zero", key="ablation") is None
        assert grid.ablated(on, "zero", key="other", request="asked") is None
    assert waited == [(work, 400, "ablation_act", None), (work, 400, "other_act", "asked")]
    [call] = page.all("head_grid")
    assert [["effect" in text for text in row] for row in call.given[0]] == [[True, True], [False, False]]
    assert page.texts[-1] == "2 of 4 heads so far."


@given(numbers(3))
def test_all_heads_of_each_layer(outcomes):
    of_layers = LayerEffects(kind="encoder", ablation="zero", base=1.0, layers=outcomes)
    on = screen_of(np.zeros((3, 2), dtype=np.float32))
    asked = {}

    def job(name, key, calls):
        asked.update(name=name, key=key, calls=calls())
        return SimpleNamespace(results=[of_layers])

    on.job = job
    with drawn(
        grid, is_there=lambda *given, **named: asked.update(request=named["request"], n=given[1]) or True
    ) as page:
        assert grid.layers(on) is of_layers
    changes = [float(outcome) - 1 for outcome in outcomes]
    rows = page.rows("effects_layers")
    assert [row.text for row in rows] == ["Layer 0", "Layer 1", "Layer 2"]
    assert [row.amount for row in rows] == [signed_text(change) for change in changes]
    largest = max(map(abs, changes)) or 1
    assert [row.length for row in rows] == pytest.approx([change / largest for change in changes])
    assert [row.picked for row in rows] == [False, True, False]
    listed = page.keyed("effects_layers")
    assert page.click(listed["on_pick"], 2) == {"layer": 2}
    assert not listed["is_ranked"] and not listed["scrolls"]
    assert asked["n"] == 300 and asked["request"] == ("Switch off 3 layers", ("layers", "zero"))
    [(call, given_, named)] = asked["calls"]
    assert (asked["name"], asked["key"], call) == ("layers", ("zero",), effects_jobs.ablate_layers)
    assert given_ == ("m", "trace") and (named["kind"], named["means"]) == ("encoder", None)


@pytest.mark.parametrize(("n_layer", "scrolls"), [(12, False), (13, True)])
def test_the_list_of_many_layers_scrolls(n_layer, scrolls):
    of_layers = LayerEffects(
        kind="encoder", ablation="zero", base=1.0, layers=np.zeros(n_layer, dtype=np.float32)
    )
    on = screen_of(
        np.zeros((n_layer, 2), dtype=np.float32), job=lambda *_: SimpleNamespace(results=[of_layers])
    )
    with drawn(grid, is_there=lambda *given, **named: True) as page:
        grid.layers(on)
    assert page.keyed("effects_layers")["scrolls"] == scrolls


@given(st.lists(numbers(2, 2), min_size=1, max_size=3), st.sampled_from([0.0, 2.0]))
def test_means_over_a_set_of_prompts(tables, base):
    averaged = mean_head_effects([effects(table, base + at) for at, table in enumerate(tables)])
    on = screen_of(tables[0]).view
    with drawn(over_set, prompts, known_names=lambda view: None) as page:
        over_set.grid(on, averaged)
        over_set.ranking(on, averaged)
    of_pairs = {
        Head(*at): [float(table[at]) - base - number for number, table in enumerate(tables)]
        for at in np.ndindex(2, 2)
    }
    spreads = {head: stdev(of_head) if len(of_head) > 1 else math.nan for head, of_head in of_pairs.items()}

    def written(head: Head) -> str:
        end = "" if math.isnan(spreads[head]) else f" ± {number_text(float(np.float32(spreads[head])))}"
        return f"{signed_text(float(np.float32(mean(of_pairs[head]))))}{end}"

    of_grid = page.keyed("effects_grid")
    [call] = page.all("head_grid")
    for head in of_pairs:
        assert call.given[0][head.layer][head.head] == f"{head.title}: mean effect {written(head)}"
        assert of_grid["numbers"][head] == pytest.approx(mean(of_pairs[head]), abs=1e-6)
    assert of_grid["picked"] == Head(1, 0) and of_grid["signed"]
    assert page.click(of_grid["on_pick"], 1, 0) == {"layer": 1, "head": 0}
    rows = page.rows("effects_ranking")
    sizes = [abs(mean(of_pair)) for of_pair in of_pairs.values()]
    shown = []
    for number, row in enumerate(rows):
        head = Head(**page.click(page.keyed("effects_ranking")["on_pick"], number))
        shown.append(abs(mean(of_pairs[head])))
        assert (row.text, row.amount, row.picked) == (head.short, written(head), head == Head(1, 0))
        assert row.length == pytest.approx(mean(of_pairs[head]) / (max(sizes) or 1), abs=1e-6)
    assert shown == pytest.approx(sorted(sizes, reverse=True)) and len(rows) == 4
    stated = facts(over_set.finding_of_set(averaged))
    if max(sizes) < 1e-6:
        assert not stated.heads and stated.numbers[-1] == str(len(tables))
    else:
        [head] = {Head(*head) for head in stated.heads}
        assert abs(mean(of_pairs[head])) == pytest.approx(max(sizes))
        outcomes = base + mean(range(len(tables)))
        assert number_text(outcomes) in stated.numbers
        assert (number_text(outcomes + mean(of_pairs[head])) in stated.numbers) and str(
            len(tables)
        ) in stated.numbers
        assert ("falls" in over_set.finding_of_set(averaged)) == (mean(of_pairs[head]) < 0)


@given(st.lists(numbers(2, 2), min_size=0, max_size=3), st.booleans())
def test_a_set_of_prompts_is_done_when_all_pairs_are(tables, is_done):
    run = SimpleNamespace(
        view=screen_of(np.zeros((2, 2))).view,
        results={at: effects(table) for at, table in enumerate(tables)},
        is_done=lambda doing, so_far: (tables and is_done) or (bool(tables) and so_far()),
    )
    shown = []
    with drawn(over_set, grid=lambda view, of_set: shown.append(of_set.effects)):
        averaged = over_set.ablated(run)
    if is_done and tables:
        assert averaged is not None and not shown
        np.testing.assert_allclose(averaged.mean.heads, np.mean(tables, axis=0), atol=1e-6)
    else:
        assert averaged is None and len(shown) == bool(tables)


PLACES = st.builds(Head, st.integers(0, 3), st.integers(0, 1))


@given(st.lists(PLACES, max_size=4), st.booleans())
def test_the_heads_that_are_removed_together(beside, is_wide):
    """The picked heads that exist, each once; if only one is, the heads of its layer; at most 24."""
    table = np.zeros((3, 30 if is_wide else 2), dtype=np.float32)
    on = screen_of(table)
    on.view.selection = A.but(heads=(*beside, AllHeads(1)))
    picked = [Head(1, 0)]
    for head in beside:
        if head.layer < 3 and head not in picked:
            picked.append(head)
    heads, called = together.group(on)
    if len(picked) > 1:
        assert (heads, called) == (picked, "the picked heads")
    else:
        layer = [Head(1, head) for head in range(table.shape[1])]
        assert heads == layer[:24] and called == f"the {'first 24 ' * is_wide}heads of layer 1"


@pytest.mark.parametrize("is_known", [True, False])
def test_the_greedy_order_of_heads(is_known):
    on, jobs, waited = screen_of(np.zeros((3, 3), dtype=np.float32)), [], {}
    removal = Removal(
        base=0.375,
        heads=(Head(1, 2), Head(1, 0), Head(1, 1)),
        outcomes=np.array([0.3, 0.2, 0.1], dtype=np.float32),
    )

    def job(name, key, calls):
        jobs.append((name, key, calls()))
        return SimpleNamespace(results=[removal])

    on.job = job
    with drawn(
        together, is_there=lambda *given, **named: waited.update(named, n=given[1]) or is_known
    ) as page:
        figure = together.greedy(on)
    heads = (Head(1, 0), Head(1, 1), Head(1, 2))
    [(name, key, [(call, given_, named)])] = jobs
    assert (name, key, call, given_) == (
        "removal",
        ("zero", heads, True),
        effects_jobs.remove,
        ("m", "trace", heads),
    )
    assert named["greedily"] and named["kind"] == "encoder"
    assert waited["n"] == 100 * (3 + 2 + 1) and waited["request"] == (
        "Remove 3 heads one by one",
        ("greedy", *heads),
    )
    if not is_known:
        assert figure is None and not page.all("chart")
        return
    assert page.chart("effects_greedy") is figure
    stated = facts(page.texts[-1])
    assert stated.heads == ((1, 2), (1, 0), (1, 1)) and "0.375" in stated.numbers
    assert "heads of layer 1" in page.keyed("effects_greedy")["alt"]


@pytest.mark.parametrize("n_known", [0, 1, 2])
def test_all_heads_removed_in_two_orders(n_known):
    table = np.array([[0.5, 0.9], [0.4, -3.0]], dtype=np.float32)
    on, jobs, waited = screen_of(table), [], []
    by_effect = [Head(1, 1), Head(0, 1), Head(1, 0), Head(0, 0)]  # of 0.5: 0, 0.4, -0.1, -3.5

    def job(name, key, calls):
        jobs.append((key, calls()))
        outcomes = np.full(4, len(jobs), dtype=np.float32)
        return SimpleNamespace(results=[Removal(base=0.5, heads=key[1], outcomes=outcomes)])

    def is_there(work, n, doing, *, key, request):
        waited.append((n, key, request[0]))
        return len(waited) <= n_known

    on.job = job
    with drawn(together, is_there=is_there) as page:
        figure = together.all_heads(on, effects(table))
    assert [key for key, _ in jobs] == [
        ("zero", tuple(by_effect[::-1]), False),
        ("zero", tuple(by_effect), False),
    ]
    assert not any(calls[0][2]["greedily"] for _, calls in jobs)
    assert [entry[0] for entry in waited] == [400] * min(n_known + 1, 2)
    assert len({entry[1] for entry in waited}) == len(waited)
    assert {entry[2] for entry in waited} == {"Remove all 4 heads in two orders"}
    if n_known < 2:
        assert figure is None and not page.all("chart")
        return
    assert figure is not None
    drawn_lines = {line.name: (list(line.y), list(line.customdata[1])) for line in figure.data}
    assert drawn_lines == {
        "smallest effect first": ([0.5, *[1.0] * 4], [0, 0]),
        "largest effect first": ([0.5, *[2.0] * 4], [1, 1]),
    }


@given(st.booleans(), st.booleans(), st.sampled_from([None, 1]))
def test_weights_beside_effects(has_norms, shows_norms, key):
    on, asked = screen_of(np.zeros((2, 2), dtype=np.float32)), {}
    weights, norms = (
        np.array([0.5, 0.25, 0.125], dtype=np.float32),
        np.array([3.0, 1.0, 2.0], dtype=np.float32),
    )
    of_cells = CellEffects(
        layer=1,
        head=1,
        kind="encoder",
        base=0.5,
        queries=np.array([1, 2, 2]),
        keys=np.array([0, 1, 2]),
        weights=weights,
        norms=norms if has_norms else None,
        outcomes=np.array([0.25, 0.5, 0.75], dtype=np.float32),
        n_cell=3,
    )

    def job(name, key, calls):
        asked.update(name=name, key=key, calls=calls())
        return SimpleNamespace(results=[of_cells])

    on.job = job
    on.view.measure = "norms" if shows_norms else "weights"
    on.view.selection = A.but(key=key, seed=4)
    with drawn(
        comparing, is_there=lambda *given, **named: asked.update(request=named["request"], n=given[1]) or True
    ) as page:
        figure = comparing.weights_and_effects(on)
    assert figure is not None and page.chart("effects_cells") is figure
    n_cell = 6  # that the three queries may see
    assert asked["n"] == 100 * n_cell and asked["request"][0] == f"Mask {n_cell} cells one by one"
    assert asked["key"] == ("encoder", Head(1, 0), 4) and asked["calls"][0][2]["seed"] == 4
    assert asked["calls"][0][:2] == (effects_jobs.mask_cells, ("m", "trace", Head(1, 0)))
    [points] = figure.data
    expected = norms if has_norms and shows_norms else weights
    assert sorted(points.x) == sorted(expected.tolist())
    outlined = [
        tuple(at) for at, width in zip(points.customdata, points.marker.line.width, strict=True) if width
    ]
    assert outlined == ([(2, 1)] if key == 1 else [])
    chart = page.keyed("effects_cells")
    assert page.click(chart["on_pick"], [2, 0]) == {"query": 2, "key": 0}
    assert "layer 1, head 0" in chart["alt"]
    assert any("rank correlation" in text.lower() for text in page.texts)


def test_no_more_cells_are_masked_than_can_be():
    on, asked = screen_of(np.zeros((2, 2), dtype=np.float32)), {}
    on.view.trace.pattern = lambda *at: SimpleNamespace(allowed=np.ones((40, 40), dtype=bool))
    on.job = lambda *given: None
    with drawn(
        comparing, is_there=lambda *given, **named: asked.update(request=named["request"], n=given[1])
    ) as page:
        assert comparing.weights_and_effects(on) is None
    assert asked["n"] == 100 * 256  # of 1,600
    assert asked["request"][0] == "Mask 256 cells one by one" and not page.all("chart")


@given(numbers(2, 2), numbers(2, 2), st.booleans(), st.booleans())
def test_zeros_beside_means(of_zero, of_mean, has_zero, is_known):
    on, asked = screen_of(of_zero), []
    zero, means = effects(of_zero), effects(of_mean, ablation="mean")
    own, other = (zero, means) if has_zero else (means, zero)

    def ablated(on, ablation, *, key, request):
        asked.append((ablation, key, request))
        return other if is_known else None

    with drawn(comparing, ablated=ablated, means_words=lambda run: "its mean") as page:
        figure = comparing.zeros_and_means(on, own)
    assert [value[:2] for value in asked] == [(other.ablation, "other_ablation")]
    assert ("means" in asked[0][2][0]) == has_zero and asked[0][2][1] == ("other", other.ablation)
    if not is_known:
        assert figure is None and not page.all("chart")
        return
    [points] = figure.data
    for at, x, y in zip(points.customdata, points.x, points.y, strict=True):
        assert (x, y) == pytest.approx((of_zero[tuple(at)] - 0.5, of_mean[tuple(at)] - 0.5))
    assert page.click(page.keyed("effects_ablations")["on_pick"], [1, 0]) == {"layer": 1, "head": 0}


@pytest.mark.parametrize("written", ["", "  \n", "the cat\n\nit sat\n", "one\ntwo\nthree\nfour\nfive\nsix"])
@pytest.mark.parametrize("ablation", ["zero", "mean"])
def test_the_sentences_that_means_are_taken_over(written, ablation, monkeypatch):
    on = screen_of(np.zeros((2, 2))).view
    on.selection = A.but(ablation=ablation, references=written)
    run = screen.AblatedRun(view=on)
    own = [line for line in written.split("\n") if line.strip()]
    texts = tuple(own or [line for line in bundled().splitlines() if line.strip()])
    assert run.references == texts and run.ablation == ablation
    made = {}
    monkeypatch.setattr(
        screen, "job", lambda name, key, calls: made.update(name=name, key=key, calls=calls())
    )
    monkeypatch.setattr(screen.AblatedRun, "model", "m")
    monkeypatch.setattr(screen.AblatedRun, "counted", lambda self, n: n)
    run.means_job()
    parts = [call[1][1] for call in made["calls"]]
    assert made["key"] == ("m", texts) and len(parts) == min(len(texts), 4)
    assert sorted(text for part in parts for text in part) == sorted(texts)
    assert max(map(len, parts)) - min(map(len, parts)) <= 1
    assert run.n_means() == sum(map(len, texts)) // 4
    assert run.of_ablation(ablation) == ("encoder", ablation, texts if ablation == "mean" else None)


@pytest.mark.parametrize("n_layer", [1, 6, 10, 11, 30])
def test_layers_are_shared_out_the_last_first(n_layer):
    on = SimpleNamespace(
        n_layers=n_layer,
        view=screen_of(np.zeros((2, 2))).view,
        means=lambda ablation: "means",
        given=("m",),
        of_ablation=lambda ablation: (ablation,),
        job=lambda name, key, calls: calls(),
    )
    calls = screen.Screen.ablation_job(on, "mean")
    parts = [named["layers"] for _, _, named in calls]
    assert sorted(layer for part in parts for layer in part) == [*range(n_layer)] and len(parts) <= 10
    assert [max(part) for part in parts] == sorted((max(part) for part in parts), reverse=True)
    assert max(map(len, parts)) == math.ceil(n_layer / 10) and parts[0][-1] == n_layer - 1
    assert all(call[0] is effects_jobs.ablate and call[2]["means"] == "means" for call in calls)


def test_what_was_found_so_far_is_joined():
    first = np.array([[1, 2], [math.nan, math.nan]], dtype=np.float32)
    second = np.array([[math.nan, math.nan], [3, 4]], dtype=np.float32)
    parts = [effects(second), None, effects(first)]
    joined = screen.joined(SimpleNamespace(results=parts))
    np.testing.assert_equal(joined.heads, [[1, 2], [3, 4]])
    assert screen.joined(SimpleNamespace(results=[None])) is None


@pytest.mark.parametrize("n_target", [None, 4])
def test_tokens_of_variants_are_those_of_both_texts(n_target, monkeypatch):
    on = screen_of(np.zeros((2, 2))).view
    on.trace.target_tokens = n_target and [*range(n_target)]
    monkeypatch.setattr(own_run.OwnRun, "counted", lambda self, n: n)
    run = screen.Screen(view=on, outcome=Similarity(text="x"))
    assert run.n_tokens(5) == 5 * (3 + (n_target or 0))


@pytest.mark.parametrize(
    ("ablation", "words"), [("zero", "replaced by zeros"), ("mean", "over all positions of 2 own")]
)
def test_what_numbers_are_relative_to(ablation, words):
    table = np.zeros((1, 1), dtype=np.float32)
    means = SimpleNamespace(n_text=2, n_apart=lambda kind: 0)
    on = screen_of(table, means=lambda asked: means if asked == "mean" else None)
    on.view.selection = A.but(references="a\nb")
    note = grid.note(on, effects(table, 0.375, ablation))
    assert words in note and facts(note).numbers[0] == "0.375"


@pytest.mark.parametrize(("ablation", "gives"), [("zero", "zeros"), ("mean", "its usual output")])
def test_what_means_over_a_set_are_relative_to(ablation, gives):
    averaged = mean_head_effects([effects(np.zeros((1, 1), dtype=np.float32), 0.375, ablation)])
    run = SimpleNamespace(view=screen_of(np.zeros((1, 1))).view, refused=["Line 3 has no answer."])
    with drawn(over_set, means_words=lambda off: "its usual output"):
        note = unescaped(over_set.note(run, averaged))
    assert f"its output is replaced by {gives}." in note
    assert note.endswith("Line 3 has no answer.") and "0.375 for the clean prompts" in note


@pytest.mark.parametrize(
    ("n_apart", "words"), [(0, "over all positions"), (1, "positions from 1 on share"), (5, "from 5 on")]
)
def test_positions_that_share_a_mean(n_apart, words):
    assert words in grid.mean_words(2, n_apart, own=False)


@given(st.lists(numbers(2, 2).map(lambda table: np.abs(table) / 3), min_size=4, max_size=4))
def test_names_of_heads_stand_with_their_effects(means):
    probes = HeadProbes(
        kind="encoder",
        means=dict(zip(PROBES, means, strict=True)),
        spreads=dict(zip(PROBES, means, strict=True)),
        n_token=30,
        n_text=4,
        provenance=small_records.PROVENANCE,
    )
    named = head_names.names_of_probes(probes)
    table = np.arange(4, dtype=np.float32).reshape(2, 2)
    on, ablation = screen_of(table), effects(table)
    over = mean_head_effects([ablation])
    with drawn(grid, over_set, prompts, known_names=lambda view: named) as page:
        grid.grid(on, ablation)
        over_set.grid(on.view, over)
    for call in page.all("head_grid"):
        for head in on.heads:
            names = head_names.names_said(named, head)
            end = f"; on repeated random tokens: {names}" if names else ""
            assert call.given[0][head.layer][head.head].endswith(end)
            assert call.named["marks"][head.layer][head.head] == head_names.mark_of(named, head)
    notes = [text for text in page.texts if "repeated random" in text]
    assert len(notes) == 2 and all("4 such texts" in text for text in notes)
