"""What "Generate", “Find a head”, "Cost" and “History” draw and ask for: each row, number and click is found again in plain Python."""

import csv
import io
import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from attnviz.cost.counting import Layer
from attnviz.cost.measurement import METHODS, Measurement, Series, Stop
from attnviz.figures.cost import WAY_NAMES, quantity_text
from attnviz.figures.numbers import cell_text, number_text, power_text, share_text
from attnviz.heads.probes import PROBES, HeadProbes
from attnviz.lessons.history import Step
from attnviz.records import Axis, Head
from tests import hand_made, small_records
from tests.app.screen import facts
from tests.drawing import MARKS, draw_few
from tests.drawn_parts import PartOfView, drawn
from ui.choice.fields import Branch
from ui.choice.selection import Selection
from ui.rooms.all_heads.find_a_head import groups, lists, random_tokens
from ui.rooms.explore import pair
from ui.rooms.generate import branches, steps
from ui.rooms.generate import jobs as generate_jobs
from ui.rooms.generate import screen as of_screen
from ui.rooms.generate.choices import MOST_BRANCHES, GenerationSettings
from ui.rooms.how_it_works.cost import counting, measured
from ui.rooms.how_it_works.history import steps as history
from ui.rooms.how_it_works.history import table as history_table

pytestmark = MARKS
draw_few(12)

A = Selection(model="m", text="the cat", layer=1, head=1)
LABELS = ["the", "cat", "door", "it", "box", "ran"]


# Generate


def written(labels, n_read=2, **changes):
    """A text of which all but the first tokens were written, each with a probability of its own."""
    tokens = hand_made.tokens(list(labels))
    ids = np.array([LABELS.index(label) for label in labels])
    n = len(labels)
    rng = np.random.default_rng(n)
    weights = np.tril(rng.integers(1, 9, (n, n)))
    axis = Axis.of(tokens)
    pattern = small_records.pattern(
        (weights / weights.sum(axis=1, keepdims=True)).tolist(),
        kind="decoder",
        allowed=np.tri(n, dtype=bool),
        queries=axis,
        keys=axis,
    )
    given_ = {
        "tokens": SimpleNamespace(**{"ids": ids, "labels": tokens.labels, "text": " ".join(labels)}),
        "n_read": n_read,
        "written": tuple(labels[n_read:]),
        "probabilities": (np.arange(1, n - n_read + 1) / 16).astype(np.float32),
        "trace": SimpleNamespace(pattern=lambda *place: pattern),
        "temperature": 0.0,
        "seed": 7,
        "ended": False,
        "picks": {},
    }
    return SimpleNamespace(**given_ | changes)


def text_of(number, continuation, picks=()):
    return of_screen.Text(
        number=number, branch=Branch(tuple(picks)), work=SimpleNamespace(results=[continuation], error=None)
    )


def screen_of(texts, number=0, step=1, beside=None, n_branch=None):
    selection = A.but(
        write_branch=number,
        write_step=step,
        write_beside=beside,
        write_branches=tuple(
            Branch(((at + 1, 0),)) for at in range(len(texts) - 1 if n_branch is None else n_branch)
        ),
    )
    view = SimpleNamespace(selection=selection, theme="light", kind="decoder")
    return of_screen.Screen(view=view, text=texts[number], texts=tuple(texts))


TEXTS = st.lists(
    st.lists(st.sampled_from(LABELS[2:]), min_size=1, max_size=3).map(lambda own: ["the", "cat", *own]),
    min_size=1,
    max_size=3,
)


@given(TEXTS, st.integers(0, 2), st.sampled_from([None, 0, 1, 2]), st.booleans())
@example(
    [["the", "cat", *own] for own in (["door"], ["door", "it", "box"], ["door", "it", "ran"])], 1, 0, False
)
@example([["the", "cat", *own] for own in (["box"], ["door", "it", "box"], ["door", "it"])], 2, 2, True)
def test_the_list_of_texts(all_labels, number, beside, is_full):
    texts = [text_of(number, written(labels)) for number, labels in enumerate(all_labels)]
    number, beside = number % len(texts), None if beside is None else beside % len(texts)
    n_branch = MOST_BRANCHES if is_full else len(texts) - 1
    on = screen_of(texts, number, beside=beside, n_branch=n_branch)
    with drawn(branches) as page:
        branches.texts(on)
    if len(texts) < 2:
        assert not page.calls
        return
    rows = page.rows("texts")
    names = ["Model's own text", *(f"Branch {at}" for at in range(1, len(texts)))]
    for at, row in enumerate(rows):
        own = all_labels[at][2:]
        chances = [(number + 1) / 16 for number in range(len(own))]
        assert row.amount.replace("−", "-") == f"{math.fsum(map(math.log, chances)):.2f}" and row.picked == (
            at == number
        )
        assert row.length == pytest.approx(math.prod(chances) ** (1 / len(own)))
        name, _, where = row.text.partition(" · ")
        assert name == names[at]
        shared = []
        for other in (all_label[2:] for all_label in all_labels[:at]):
            common = 0
            while common < min(len(own), len(other)) and own[common] == other[common]:
                common += 1
            shared.append((common, len(other)))
        ends = shared and max(shared, key=lambda stretch: stretch[0])
        if not shared or ends[0] in (len(own), ends[1]):
            assert where == ""
        else:
            assert where == f"step {ends[0] + 1}: {own[ends[0]]}"
        click = page.click(page.keyed("texts")["on_pick"], at)
        assert click == {"write_branch": at, "write_beside": number if beside == at else beside}
    assert not page.keyed("texts")["is_ranked"]
    assert (f"{MOST_BRANCHES} branches" in page.texts[-1]) == (n_branch == MOST_BRANCHES)
    field = page.field("write_beside")
    other = beside if beside is not None and beside != number else None
    assert field["shown"][0].generation.beside == (number if other is None else other)
    assert [field["format_func"](option) for option in field["options"]] == [
        "No other text" if at == number else name for at, name in enumerate(names)
    ]
    removing = [call.named for call in page.all("button")]
    assert len(removing) == (number > 0)
    for button in removing:
        change = page.click(button["on_click"], *button["args"])
        kept = [
            branch
            for at, branch in enumerate(on.view.selection.of(GenerationSettings).branches, 1)
            if at != number
        ]
        assert change == {"write_branches": tuple(kept), "write_branch": 0, "write_beside": None}


@given(TEXTS, st.data())
def test_a_token_that_is_selected_in_place_of_the_one_written(all_labels, data):
    """A text that begins so is shown; else the text goes on from there as a branch, with the picks before the step."""
    texts = [text_of(number, written(labels), [(1, 90), (2, 91)]) for number, labels in enumerate(all_labels)]
    number = data.draw(st.integers(0, len(texts) - 1))
    step = data.draw(st.integers(1, len(all_labels[number]) - 2))
    on = screen_of(texts, number, step, n_branch=data.draw(st.sampled_from([1, MOST_BRANCHES])))
    token = data.draw(st.sampled_from([2, 3, 4, 5]))
    with drawn(branches) as page:
        branches.branch_off(on, token)
    beginning = [*all_labels[number][2 : 1 + step], LABELS[token]]
    alike = [at for at, labels in enumerate(all_labels) if labels[2 : 2 + step] == beginning]
    [change] = page.changes
    if alike:
        shown = number if number in alike else alike[0]
        assert change == {"write_branch": shown, "write_step": step}
        return
    new = Branch((*((at, pick) for at, pick in ((1, 90), (2, 91)) if at < step), (step, token)))
    before = on.view.selection.of(GenerationSettings).branches
    if len(before) == MOST_BRANCHES:
        assert change == {}
    else:
        assert change == {
            "write_branches": (*before, new),
            "write_branch": len(before) + 1,
            "write_step": step,
        }
        on = screen_of(texts, number, step, n_branch=0)
        object.__setattr__(
            on.view, "selection", on.view.selection.but(write_branches=(Branch(((9, 9),)), new))
        )
        with drawn(branches) as page:
            branches.branch_off(on, token)
        assert page.changes == [{"write_branch": 2, "write_step": step}]  # it is being written


def test_another_candidate_of_a_step_begins_a_branch():
    texts = [text_of(0, written(["the", "cat", "it", "ran"]))]
    on, taken = screen_of(texts, 0, 2, None), []
    rows = [SimpleNamespace(text=label) for label in ("sat", "slept")]
    with drawn(
        branches,
        candidate_rows=lambda continuation, step: ([70 + step, 80 + step], rows),
        branch_off=lambda screen, token: taken.append((screen, token)),
    ) as page:
        branches.candidates(on)
        assert page.rows("candidates") == rows
        page.keyed("candidates")["on_pick"](1)
    assert taken == [(on, 80 + on.step)]


@given(st.integers(1, 3), st.integers(1, 4), st.integers(0, 2), st.sampled_from([None, 0, 1, 2]))
def test_the_step_and_the_text_that_are_shown(n_written, step, number, beside):
    texts = [text_of(at, written(["the", "cat", *LABELS[2 : 2 + n_written]])) for at in range(3)]
    on = screen_of(texts, number, step, beside)
    assert on.step == min(step, n_written) - 1 and on.query == 2 + on.step - 1
    assert on.beside is (None if beside in (None, number) else texts[beside])
    assert [text.name for text in texts] == ["Model's own text", "Branch 1", "Branch 2"]
    assert of_screen.shown(SimpleNamespace(selection=A.but(write_branch=number)), texts) is texts[number]
    assert of_screen.shown(SimpleNamespace(selection=A.but(write_branch=5)), texts) is texts[-1]
    with drawn(of_screen, steps, branches) as page:
        steps.strip(on)
        steps.step_field(on)
        steps.attention(on)
        steps.take_over(on)
    [strip] = page.all("token_strip")
    assert strip.named["query"] == on.query + 1
    np.testing.assert_array_equal(strip.named["weights"], on.pattern.weights[on.query])
    for position in range(2 + n_written):
        expected = 1 if position < 2 else position - 1
        assert page.click(strip.named["on_pick"], position) == {"write_step": min(expected, n_written)}
    field = page.field("write_step")
    assert field["max_value"] == n_written and field["label"] == f"Step (1–{n_written})"
    assert field["shown"][0].generation.step == on.step + 1
    frames = page.chart("written_matrix").layout.shapes
    assert any(frame.y0 == on.query - 0.5 and frame.y1 == on.query + 0.5 for frame in frames)
    [button] = page.all("button")
    assert page.click(button.named["on_click"]) == {"text": texts[number].continuation.tokens.text}
    for query in range(3 + n_written):
        change = page.click(branches._pick, on, [query, 0])
        assert change == ({"write_step": query} if 1 <= query <= n_written else {})


@given(TEXTS.filter(lambda labels: len(labels) > 1), st.integers(1, 3))
def test_two_texts_side_by_side(all_labels, step):
    texts = [text_of(number, written(labels)) for number, labels in enumerate(all_labels)]
    on = screen_of(texts, 0, step, 1)
    other = texts[1]
    both = branches.compared(on, other)
    assert both.first is on.pattern and both.second is other.continuation.trace.pattern()
    with drawn(branches) as page:
        figures = branches.side_by_side(on, other)
    assert list(figures) == ["Attention in A", "Attention in B", "B minus A"]
    headings = [text for text in page.texts if text.startswith("**")]
    assert headings == [
        "**Attention in A** · Model's own text",
        "**Attention in B** · Branch 1",
        "**B minus A**",
    ]
    for part, figure in zip(("first", "second", "difference"), figures.values(), strict=True):
        assert page.chart(f"branches_{part}") is figure
    np.testing.assert_allclose(
        figures["Attention in A"].data[0].z[: len(on.pattern.weights), : len(on.pattern.weights)],
        np.where(np.tri(len(on.pattern.weights)), on.pattern.weights, np.nan),
    )


@pytest.mark.parametrize(("n", "is_part"), [(128, False), (129, True)])
def test_long_texts_side_by_side_are_a_part_around_the_step(n, is_part):
    tokens = small_records.tokens(n)
    axis = Axis.of(tokens)
    pattern = small_records.pattern(np.eye(n).tolist(), kind="decoder", queries=axis, keys=axis)
    continuation = SimpleNamespace(
        tokens=tokens,
        n_read=n - 1,
        written=("x",),
        probabilities=np.ones(1),
        trace=SimpleNamespace(pattern=lambda *_: pattern),
    )
    texts = [text_of(0, continuation), text_of(1, continuation)]
    with drawn(branches, difference_words=lambda *_: "said") as page:
        branches.side_by_side(screen_of(texts, 0, 1, 1), texts[1])
    assert len(page.chart("branches_first").data[0].x) == 128
    click = page.keyed("branches_first")["on_pick"]
    assert page.click(click, [n - 2, 0]) == {"write_step": 1} and page.click(click, [0, 0]) == {}


@given(
    st.sampled_from([0.0, 0.75]),
    st.sampled_from([{}, {0: 5}, {0: 5, 1: 6}]),
    st.booleans(),
    st.integers(1, 3),
)
def test_how_a_text_was_written(temperature, picks, ended, n_written):
    continuation = written(
        ["the", "cat", *LABELS[2 : 2 + n_written]], temperature=temperature, picks=picks, ended=ended
    )
    note = steps.note(screen_of([text_of(0, continuation)]))
    assert note.startswith(f"{n_written} token{'s' if n_written > 1 else ''}, ")
    assert ("most likely token" in note) == (not temperature) and ("0.75 with seed 7" in note) == bool(
        temperature
    )
    assert (f"{len(picks)} picked" in note) == bool(picks) and ("ended the text" in note) == ended


def test_what_is_written_so_far():
    told = [SimpleNamespace(label="␣it"), SimpleNamespace(label="s")]
    assert steps.so_far("the *cat*", []) == r"the \*cat\*"
    assert steps.so_far("the cat", told) == "the cat **its**"


@given(
    st.integers(1, 50),
    st.sampled_from([0.0, 1.5]),
    st.lists(st.tuples(st.integers(1, 60), st.integers(0, 9)), max_size=2, unique_by=lambda pick: pick[0]),
)
def test_what_a_model_is_asked_to_write(n_tokens, temperature, picks):
    """Up to the last pick; the seed counts if tokens are sampled."""
    made = {}

    class Run:
        def __init__(self, view):
            self.model = "m"

        def job(self, name, key, calls):
            made.update(name=name, key=key, calls=calls())

    selection = A.but(write_tokens=n_tokens, write_temperature=temperature, seed=5)
    view = SimpleNamespace(selection=selection, trace=SimpleNamespace(tokens="tokens"))
    branch = Branch(tuple(sorted(picks)))
    with drawn(of_screen, OwnRun=Run):
        of_screen._writing(view, branch)
    [(call, given_, named)] = made["calls"]
    last = max([n_tokens, *(step for step, _ in picks)])
    assert (call, given_) == (generate_jobs.write, ("m", "tokens"))
    assert (named["n_tokens"], named["temperature"], named["seed"]) == (last, temperature, 5)
    assert named["picks"] == {step - 1: token for step, token in picks}
    assert made["key"] == (last, temperature, 5 if temperature else 0, branch)


# Find a head


def numbers(*shape: int) -> st.SearchStrategy[np.ndarray]:
    return hnp.arrays(
        np.float32, shape, elements=st.integers(0, 6).map(lambda number: number / 8), fill=st.nothing()
    )


@given(numbers(3, 10) | numbers(3, 8), st.booleans())
def test_the_heads_that_give_a_pair_most(weights, is_ragged):
    if is_ragged:
        weights[2, 5:] = np.nan
    with drawn(lists) as page:
        lists.best_heads(SimpleNamespace(selection=A, theme="light"), weights)
    known = {Head(*map(int, at)): float(weights[tuple(at)]) for at in np.argwhere(~np.isnan(weights))}
    rows, click = page.rows("best_heads"), page.keyed("best_heads")["on_pick"]
    assert [row.amount for row in rows] == [
        number_text(weight) for weight in sorted(known.values(), reverse=True)[:24]
    ]
    for number, row in enumerate(rows):
        head = Head(**page.click(click, number))
        assert row.text == head.title and row.picked == (head == Head(1, 1))
        assert row.length == pytest.approx(known[head] / (max(known.values()) or 1))
        assert row.amount == number_text(known[head])
    assert page.keyed("best_heads")["scrolls"]
    assert facts(page.texts[-1]).numbers == (("24", str(len(known))) if len(known) > 24 else ())
    lines = [*csv.reader(io.StringIO(lists.as_csv(weights).decode("utf-8-sig")))]
    assert lines[0] == ["layer", "head", "number"]
    listed = [(Head(int(layer), int(head)), float(number)) for layer, head, number in lines[1:]]
    assert {head: number for head, number in listed} == pytest.approx(known)
    assert [number for _, number in listed] == sorted((number for _, number in listed), reverse=True)


@given(st.data(), st.booleans(), st.booleans(), st.sampled_from(["encoder", "cross"]), st.booleans())
@pytest.mark.stand_ins
def test_the_pairs_to_which_a_head_gives_most(data, special, itself, kind, hides):
    axis = Axis.of(hand_made.tokens(["[CLS]", "cat", "door", "it"]))
    weights = data.draw(numbers(4, 4))
    keys = axis if kind == "encoder" else Axis.of(hand_made.tokens(["<s>", "kat", "door", "het"]))
    pattern = small_records.pattern(weights.tolist(), queries=axis, keys=keys, kind=kind)
    view = SimpleNamespace(
        selection=A.but(pairs_special=special, pairs_itself=itself),
        theme="light",
        kind=kind,
        hides_special=hides,
    )
    picked = data.draw(st.integers(0, 3)), data.draw(st.integers(0, 3))
    spans = tuple((position, position + 1) for position in picked)
    with drawn(lists, hidden_note=lambda view: "hidden" * hides) as page:
        lists.best_pairs(view, pattern, spans)
    cells = {
        at: float(weights[at])
        for at in np.ndindex(4, 4)
        if weights[at] > 0 and (special or 0 not in at) and (itself or at[0] != at[1] or kind == "cross")
    }
    rows = page.rows("best_pairs")
    assert [row.amount for row in rows] == [
        number_text(cell) for cell in sorted(cells.values(), reverse=True)
    ]
    for number, row in enumerate(rows):
        change = page.click(page.keyed("best_pairs")["on_pick"], number)
        at = change["query"], change["key"]
        assert row.amount == number_text(cells[at]) and row.picked == (at == picked)
        assert row.length == pytest.approx(cells[at] / max(cells.values()))
        assert (row.text, row.key) == (f"{axis.labels[at[0]]}·{at[0]}", f"{keys.labels[at[1]]}·{at[1]}")
    assert (lists.NO_PAIR in page.texts) == (not cells) and ("hidden" in page.texts) == hides
    assert page.field("pairs_special")["disabled"] == hides and page.keyed("best_pairs")["scrolls"]
    assert bool([call for call in page.calls if call.named.get("field") == "pairs_itself"]) == (
        kind != "cross"
    )


@given(st.integers(0, 5), st.sampled_from([None, 0, 2, 5]), st.sampled_from(["tokens", "words"]))
def test_a_group_from_one_token_to_another(first, last, unit):
    """From the start of the first token's entry to the end of the last one's; never backwards."""
    tokens = hand_made.tokens(["[CLS]", "door", "##s", "it", "cat", "##s"])
    axis = Axis.of(tokens, unit).without_special()
    entries = [range(*span) for span in axis.spans.tolist()]

    def entry(position: int | None) -> int:
        return next((at for at, positions in enumerate(entries) if position in positions), 0)

    start, end = entry(first), entry(first if last is None else last)
    span = groups.span_of(axis, first, last)
    assert span == (entries[start][0], entries[max(start, end)][-1] + 1)
    with drawn(groups) as page:
        groups.pick_group(SimpleNamespace(selection=A), "query", axis, span)
    token, end_token = page.field("query"), page.field("query_to")
    assert token["options"] == [entry[0] for entry in entries]
    assert end_token["options"] == [entry[0] for entry in entries if entry[0] >= span[0]]
    assert token["shown"][0].query == entries[start][0]
    assert end_token["shown"][0].value("query_to") == entries[max(start, end)][0]
    for at, positions in enumerate(entries):
        assert (
            token["format_func"](positions[0])
            == end_token["format_func"](positions[0])
            == f"{axis.labels[at]}·{positions[0]}"
        )


@given(st.lists(numbers(2, 4), min_size=4, max_size=4), st.lists(numbers(2, 4), min_size=4, max_size=4))
def test_the_heads_that_repeat_what_came_before(means, spreads):
    probes = HeadProbes(
        kind="encoder",
        means=dict(zip(PROBES, means, strict=True)),
        spreads=dict(zip(PROBES, spreads, strict=True)),
        n_token=30,
        n_text=4,
        provenance=small_records.PROVENANCE,
    )
    view = SimpleNamespace(selection=A, theme="light", kind="encoder")
    shown = []
    with drawn(
        random_tokens,
        find_probes=lambda view: True,
        known_probes=lambda view: probes,
        _matrix=lambda *given_: shown.append(given_),
    ) as page:
        random_tokens.random_tokens(view)
    assert shown == [(view, probes)]
    for name, table, spread in zip(PROBES, means, spreads, strict=True):
        rows, click = page.rows(name), page.keyed(name)["on_pick"]
        order = sorted((float(value) for value in table.ravel()), reverse=True)[:6]
        assert [row.length for row in rows] == order
        for number, row in enumerate(rows):
            head = Head(**page.click(click, number))
            assert row.text == head.title and row.picked == (head == Head(1, 1))
            assert row.amount == f"{cell_text(float(table[head]))} ± {cell_text(float(spread[head]))}"
    stated = facts(page.texts[0])
    assert stated.heads == ((1, 1),) and stated.numbers[0] == share_text(
        max(float(mean[1, 1]) for mean in means)
    )


def test_the_selected_head_on_random_tokens():
    probes = SimpleNamespace(n_token=30, n_text=4)
    pattern = small_records.pattern(np.eye(3).tolist())
    asked = {}

    def is_there(work, n, doing, *, key):
        asked["n"] = n
        return True

    def job(name, key, calls):
        asked.update(key=key, calls=calls())
        return SimpleNamespace(results=[pattern])

    view = SimpleNamespace(selection=A, theme="light", kind="decoder")
    with drawn(
        random_tokens, is_there=is_there, job=job, offer=lambda name: SimpleNamespace(name=f"{name}!")
    ) as page:
        random_tokens._matrix(view, probes)
    assert asked["n"] == 2 * 30 and asked["key"] == ("m!", Head(1, 1), "decoder")
    assert asked["calls"][0][1] == ("m!", Head(1, 1), "decoder")
    np.testing.assert_array_equal(page.chart("random_tokens").data[0].z, np.eye(3))
    assert facts(page.texts[-1]).numbers[:2] == ("30", "4")


@pytest.mark.parametrize(
    ("clicked", "change"),
    [
        (["query", 2], {"query": 2, "key": None}),
        (["key", 3], {"key": 3}),
        (["key", 3, 4], {"key": 3}),
        (["token", 3], {}),
        (None, {}),
    ],
)
def test_a_token_that_is_clicked(clicked, change):
    with drawn(pair) as page:
        pair.pick(clicked)
    assert page.changes == [change]


@given(st.sampled_from([None, 0, 2]), st.integers(0, 2), st.sampled_from(["encoder", "decoder", "cross"]))
def test_the_chips_of_a_pair(key, query, kind):
    axis = Axis.of(hand_made.tokens(["cat", "door", "it"]))
    weights = np.array([[0.2, 0.5, 0.3], [0.6, 0.1, 0.3], [0.3, 0.6, 0.1]])
    queries = Axis.of(hand_made.tokens(["she", "ran", "off"])) if kind == "cross" else axis
    pattern = small_records.pattern(weights.tolist(), queries=queries, keys=axis, kind=kind)
    trace = SimpleNamespace(pattern=lambda *place: pattern, key_tokens=lambda kind: axis.tokens)
    view = PartOfView(selection=A.but(key=key), kind=kind, trace=trace, query=query, theme="light")
    cache = SimpleNamespace(mask_label=lambda source: "[MASK]")
    with drawn(pair, cache=cache, strongest_key=lambda own, query: [1, 0, 1][query]) as page:
        picked = pair.pick_query(view)
        pair.pick_key(view, picked[1])
    assert picked == (query, [1, 0, 1][query] if key is None else key)
    [strip] = page.all("token_strip")
    assert strip.given[0] is queries.tokens and (strip.named["query"], strip.named["key"]) == picked
    if kind == "cross":
        assert strip.named["weights"] is None
    else:
        np.testing.assert_allclose(strip.named["weights"], weights[query], rtol=1e-6)
    assert strip.named["mask_label"] == ("[MASK]" if kind == "encoder" else None)
    assert page.click(strip.named["on_pick"], 2) == {"query": 2, "key": None}
    field = page.field("key")
    assert field["shown"][0].key == picked[1]
    assert [field["format_func"](option) for option in field["options"]] == ["cat·0", "door·1", "it·2"]


# Cost

LAYER = Layer(n_head=4, d_head=8, d_value=16, number_bytes=4, reach=2, causal=False)


@given(
    st.sampled_from(["cells", "bytes", "multiplications"]),
    st.sampled_from(["encoder", "decoder", "cross"]),
    st.integers(1, 30),
    st.integers(1, 30),
    st.sampled_from([None, 12, 512]),
)
def test_what_a_layer_costs(quantity, kind, n_query, n_key, limit):
    n_query = n_query if kind == "cross" else n_key
    trace = SimpleNamespace(
        query_tokens=lambda kind: range(n_query),
        key_tokens=lambda kind: range(n_key),
        n_layers=lambda kind: 6,
    )
    view = PartOfView(selection=A.but(quantity=quantity), kind=kind, trace=trace, theme="light")
    with drawn(
        counting, limit_of=lambda view: limit, linked=lambda *names: names[-1], limits=lambda *_: []
    ) as page:
        counting.counted(view, LAYER)
    unit = "bytes" if quantity == "bytes" else "count"
    per_cell = {"cells": 4, "bytes": 4 * 4, "multiplications": 4 * (8 + 16)}[quantity]
    here, far = (quantity_text(per_cell * count, unit) for count in (n_query * n_key, 10**12))
    assert f" {here} " in page.texts[0] and far in page.texts[0]
    ways = ["whole", *["window"] * (kind != "cross"), "streaming"]
    sizes = sorted({n_key, 1000, 10_000, 100_000, 10**6} | ({limit} if limit else set()))
    [table] = page.all("table")
    assert table.given[0]["tokens"] == [f"{n:,}" for n in sizes]
    assert list(table.given[0])[1:] == [WAY_NAMES[way] for way in ways]
    assert table.given[0]["Whole matrix"] == [quantity_text(per_cell * n * n, unit) for n in sizes]
    figure = page.chart("cost_counted")
    lines = {line.name: line for line in figure.data}
    assert list(lines) == [WAY_NAMES[way] for way in ways]
    whole = lines["Whole matrix"]
    assert whole.x[0] == min(16, n_key) and whole.x[-1] == 10**6 and {16, n_key} <= {*whole.x}
    assert list(whole.y) == [per_cell * int(n) ** 2 for n in whole.x]
    marks = json_text(figure.layout.shapes) + json_text(figure.layout.annotations)
    assert f"this text, {n_key:,}" in marks and (
        f"limit, {limit:,}" in marks if limit else "limit" not in marks
    )
    assert page.field("reach")["disabled"] == (kind == "cross")
    written_ = [*csv.reader(io.StringIO(counting.as_csv(view, LAYER, limit).decode("utf-8-sig")))]
    assert [int(row[0]) for row in written_[1:]] == sorted({16, *sizes})
    column = written_[0].index(f"{quantity}, whole matrix")
    assert [int(row[column]) for row in written_[1:]] == [per_cell * int(row[0]) ** 2 for row in written_[1:]]
    assert len(written_[0]) == 1 + 3 * len(ways)


def json_text(shapes) -> str:
    return " ".join(str(shape.to_plotly_json()) for shape in shapes)


@pytest.mark.parametrize("size", [None, (8, 16), (16, 8)])
@pytest.mark.parametrize("finished", [True, False])
def test_a_layer_is_measured_when_it_is_asked_for(size, finished):
    """One head of it; what was measured of heads of another size does not count."""
    session = measured.Measurement(size=size)
    work, shown, made = SimpleNamespace(finished=finished, results=["series", None]), [], []

    def show_jobs(works, *words, result, **_):
        assert works == [work]
        result()

    with drawn(
        measured,
        of_session=lambda kind: session,
        job=lambda name, key, calls: made.append((key, calls()[0][1])) or work,
        waiting=SimpleNamespace(show_jobs=show_jobs),
        _results=lambda view, head, series: shown.append((head, series)),
    ) as page:
        measured.measured_cost("view", LAYER)
        buttons = page.all("button")
        assert len(buttons) == (size != (8, 16))
        for button in buttons:
            page.click(button.named["on_click"], *button.named["args"])
            assert session.size == (8, 16) and not made
    assert made == [((8, 16), (8, 16))] * (not buttons)
    assert shown == [(replace(LAYER, n_head=1), "series")] * (finished and not buttons)


@given(st.tuples(*[st.integers(0, 3)] * 3), st.data())
def test_what_was_measured(last, data):
    numbers_ = iter(data.draw(st.permutations(range(1, 40))))
    measurements = tuple(
        Measurement(
            method=method, n_token=64 * 2**power, seconds=next(numbers_) / 128, n_bytes=1000 * next(numbers_)
        )
        for method, end in zip(METHODS, last, strict=True)
        for power in range(end + 1)
    )
    sizes = [64 * 2**power for power in range(max(last) + 1)]
    differences = {n: (at + 1) * 1e-7 for at, n in enumerate(sizes[:2])}
    stops = (Stop(method="whole", n_token=4096, reason="time", expected=2.0, granted=1.0),)
    series = Series(measurements=measurements, stops=stops, differences=differences)
    view = SimpleNamespace(theme="light")
    with drawn(measured, longest_both=lambda series: None, finding=lambda longest: "found") as page:
        measured._results(
            view, Layer(n_head=1, d_head=8, d_value=8, number_bytes=4, reach=2, causal=False), series
        )
    by = {(measurement.method, measurement.n_token): measurement for measurement in measurements}
    [call] = page.all("dataframe")
    table = call.given[0]
    assert table["tokens"] == [f"{n:,}" for n in sizes]
    for method in METHODS:
        for what, unit, number in (("time", "seconds", "seconds"), ("memory", "bytes", "n_bytes")):
            assert table[f"{what}, {method}"] == [
                quantity_text(getattr(by[method, n], number), unit) if (method, n) in by else "–"
                for n in sizes
            ]
    assert table["difference"] == [power_text(differences[n]) if n in differences else "–" for n in sizes]
    for what, number in (("seconds", "seconds"), ("bytes", "n_bytes")):
        figure = page.chart(f"cost_{what}")
        points = {
            trace_of_figure.name: trace_of_figure
            for trace_of_figure in figure.data
            if trace_of_figure.mode == "markers"
        }
        lines = {
            trace_of_figure.name: trace_of_figure
            for trace_of_figure in figure.data
            if trace_of_figure.mode == "lines"
        }
        assert set(points) == {WAY_NAMES[method] for method in METHODS}
        for method in METHODS:
            of_method = [measurement for measurement in measurements if measurement.method == method]
            dots = points[WAY_NAMES[method]]
            assert list(dots.x) == [measurement.n_token for measurement in of_method]
            assert list(dots.y) == pytest.approx([getattr(measurement, number) for measurement in of_method])
            if method == "rows" and what == "bytes":
                assert WAY_NAMES[method] not in lines
                continue
            line = lines[WAY_NAMES[method]]
            end = of_method[-1]
            if what == "seconds":
                expected = [
                    end.seconds * (measurement.n_token / end.n_token) ** 2 for measurement in of_method
                ]
            else:
                held = {"whole": lambda n: 4 * n * n, "streaming": lambda n: 4 * (n * min(64, n) + 2 * n)}[
                    method
                ]
                expected = [held(measurement.n_token) for measurement in of_method]
            assert list(line.y) == pytest.approx(expected)
    assert "up to three runs" in page.texts[1] and "allocator" in page.texts[2]
    assert page.texts[-1].startswith("Whole matrix stopped before 4,096")
    assert "1 s were left" in page.texts[-1].replace("\N{NO-BREAK SPACE}", " ")
    of_memory = measured._stopped(replace(stops[0], reason="memory", method="rows"))
    assert "2 B of memory, and 1 B may be taken" in of_memory.replace("\N{NO-BREAK SPACE}", " ")


# History

STEP = st.builds(
    Step,
    name=st.just("scaled"),
    scores=st.none(),
    weights=numbers(3),
    context=numbers(2),
    other_weights=numbers(3),
    n_parameters=st.just(5),
    n_multiplications=st.just(7),
)


@given(STEP, STEP, st.integers(0, 2), st.integers(0, 2), st.integers(1, 3))
def test_the_ways_to_attend_on_screen(first, second, query, key, n_query):
    tokens = hand_made.tokens(["cat", "door", "it"])
    queries = hand_made.tokens(["she", "ran", "off"][:n_query])
    trace = SimpleNamespace(query_tokens=lambda kind: queries, key_tokens=lambda kind: tokens)
    query = min(query, n_query - 1)
    view = PartOfView(selection=A, kind="cross", trace=trace, theme="light", query=query)
    ways = {"dot": first, "scaled": second, "fixed": first}
    with drawn(history, history_table) as page:
        sentence = history.finding(view, ways, key)
        stated = facts(sentence)
        history.one_vector(view, ways, key)
        history.pictures(view, ways, key)
        history_table.table(view, ways)
        history.strip(view, SimpleNamespace(weights=np.eye(3)), key)
        history.ways(ways)
    assert stated.quoted == (queries.labels[query], tokens.labels[key])
    assert stated.numbers[:2] == tuple(share_text(float(way.weights[key])) for way in (second, first))
    scaled, unscaled = (share_text(float(way.weights.max())) for way in (second, first))
    assert sentence.endswith(f"its largest weight goes from {scaled} to {unscaled}.")
    [strip] = page.all("token_strip")
    assert (strip.given[0], strip.named["query"], strip.named["key"]) == (queries, query, key)
    assert strip.named["weights"] is None
    assert page.click(strip.named["on_pick"], 1) == {"query": 1, "key": None}
    bars = page.chart("history_weights").data
    assert [list(bar.y) for bar in bars] == [way.weights.tolist() for way in ways.values()]
    assert [bar.name for bar in bars] == [history.TITLES[way] for way in ways]
    cells = page.chart("history_contexts").data[0]
    np.testing.assert_allclose(np.array(cells.z), [way.context for way in ways.values()])
    [table] = page.all("dataframe")
    changes = [row["changes for the next query"] for row in table.given[0]]
    if n_query == 1:
        assert changes == ["–"] * 3
    else:
        assert changes == [
            share_text(
                max(abs(float(a) - float(b)) for a, b in zip(way.weights, way.other_weights, strict=True))
            )
            for way in ways.values()
        ]
    assert f"“{queries.labels[query]}”" in page.keyed("history_one_vector")["alt"]
    written_ = [*csv.reader(io.StringIO(history_table.as_csv(view, ways).decode("utf-8-sig")))]
    assert [row[0] for row in written_[1:]] == [history.NAMES[way] for way in ways]
    assert [[float(value) for value in row[1:]] for row in written_[1:]] == [
        way.weights.tolist() for way in ways.values()
    ]


def test_all_the_weights_of_an_encoder_are_in_the_chips():
    tokens = hand_made.tokens(["cat", "door", "it"])
    trace = SimpleNamespace(query_tokens=lambda kind: tokens, key_tokens=lambda kind: tokens)
    view = PartOfView(selection=A, kind="encoder", trace=trace, theme="light", query=1)
    with drawn(history) as page:
        history.strip(view, SimpleNamespace(weights=np.eye(3)), 2)
    [strip] = page.all("token_strip")
    assert strip.named["weights"].tolist() == [0, 1, 0]
