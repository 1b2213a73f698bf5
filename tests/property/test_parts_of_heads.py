"""What "Pictures and numbers", “Maps of all heads”, “Myths” and “Door experiment” draw: each row, number and click is found again."""

import csv
import io
import math
from dataclasses import replace
from statistics import mean, median
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from attnviz.figures.cells import MOST_PIXELS
from attnviz.figures.heatmap import MEASURE_NAMES
from attnviz.figures.numbers import cell_text, number_text, percent_text, share_text
from attnviz.heads import PROBES, STATISTICS
from attnviz.heads.claims import Claims
from attnviz.heads.probes import HeadProbes
from attnviz.heads.similarity import Divergences
from attnviz.records import Axis, Head
from tests import hand_made, small_records
from tests.app.screen import facts, unescaped
from tests.drawing import MARKS, draw_few
from tests.drawn_parts import PartOfView, drawn
from ui.choice.selection import FIELDS, Selection
from ui.rooms.all_heads import controls as settings
from ui.rooms.all_heads import copying, grid, likeness, screen, table
from ui.rooms.all_heads.all_maps import controls as maps_settings
from ui.rooms.all_heads.all_maps import drawing, layout, small_maps
from ui.rooms.door_experiment import answer, experiment, near, variation
from ui.rooms.explore import map_controls as map_settings
from ui.rooms.myths import contribution, diagonal, full, picture, symmetric
from ui.rooms.myths import table as claims_table
from ui.words import findings, head_names

pytestmark = MARKS
draw_few(12)

A = Selection(model="m", text="I saw the door.", layer=1, head=1)
HEADS = tuple(Head(*at) for at in np.ndindex(2, 3))


def shares(*shape: int) -> st.SearchStrategy[np.ndarray]:
    return hnp.arrays(
        np.float32, shape, elements=st.integers(0, 8).map(lambda number: number / 8), fill=st.nothing()
    )


def masks(*shape: int) -> st.SearchStrategy[np.ndarray]:
    return hnp.arrays(np.bool_, shape, elements=st.integers(0, 1).map(bool), fill=st.nothing())


def probes_of(means, spreads=None) -> HeadProbes:
    return HeadProbes(
        kind="encoder",
        means=dict(zip(PROBES, means, strict=True)),
        spreads=dict(zip(PROBES, spreads or means, strict=True)),
        n_token=30,
        n_text=4,
        provenance=small_records.PROVENANCE,
    )


def named(probes: HeadProbes | None) -> head_names.HeadNames | None:
    return None if probes is None else head_names.names_of_probes(probes)


PROBED = st.none() | st.lists(shares(2, 3), min_size=4, max_size=4).map(probes_of)
BORNE = st.fixed_dictionaries({"previous": masks(2, 3), "[CLS]": masks(2, 3), "broad": masks(2, 3)})


def screen_of(numbers, labels, probes, *, shown="pictures", measure="weights", asked=None, **changes):
    axis = Axis.of(hand_made.tokens(["cat", "door", "it"]))
    trace = SimpleNamespace(shape=lambda kind: (2, 3), heads=lambda kind: HEADS)
    view = SimpleNamespace(
        **{
            "selection": A.but(grid=asked or shown),
            "trace": trace,
            "kind": "encoder",
            "theme": "light",
            "queries": axis,
            "keys": axis,
            "is_renormalised": False,
            "measure": measure,
        }
        | changes
    )
    cells = SimpleNamespace(measure="weights" if measure == "rollout" else measure)
    return screen.Screen(view=view, cells=cells, numbers=numbers, labels=labels, names=named(probes))


@given(shares(2, 3), BORNE, PROBED, st.sampled_from(["entropy", "previous", "pictures", "distance"]))
def test_the_grid_of_all_heads(numbers, labels, probes, shown):
    numbers[1, 2] = np.nan if shown == "entropy" else numbers[1, 2]
    name = next(
        statistic
        for statistic in STATISTICS
        if shown == "pictures" or statistic == shown or STATISTICS[statistic].unit == "distance" == shown
    )
    on = screen_of({name: numbers}, labels, probes, shown="pictures" if shown == "pictures" else name)
    pooled = [np.arange(12, dtype=np.float32).reshape(3, 2, 2) + 12 * layer for layer in range(2)]
    cache = SimpleNamespace(pooled=lambda cells, renormalise: pooled, thumbnails=lambda *_, **__: "pictures")
    with drawn(grid, head_cache=cache) as page:
        grid.grid(on)
    [call] = page.all("head_grid")
    largest = {head: 12 * head.layer + 4 * head.head + 3 for head in HEADS}
    for head in HEADS:
        text, own = call.given[0][head.layer][head.head], float(numbers[head])
        parts = text.split("; ")
        if shown == "pictures":
            amount = number_text(float(largest[head]))
            assert parts[0] == f"{head.title}: largest {MEASURE_NAMES['weights']} {amount}"
        else:
            unit = " tokens" * (STATISTICS[name].unit == "distance")
            written = "none" if math.isnan(own) else f"{number_text(own)}{unit}"
            title = STATISTICS[name].title
            assert parts[0] == f"{head.title}: {title[0].lower()}{title[1:]} {written}"
        bears = [label for label, of_label in labels.items() if of_label[head]]
        names = "" if probes is None else head_names.names_said(named(probes), head)
        assert parts[1:] == [*bears, *([f"on repeated random tokens: {names}"] if names else [])]
        marks = [findings.MARKS[bear] for bear in bears]
        if probes is not None:
            called = {probe.called for name, probe in PROBES.items() if probes.means[name][head] > 0.5}
            marks += [mark for name, mark in head_names.NAME_MARKS.items() if name in called]
        assert call.named["marks"][head.layer][head.head] == "".join(dict.fromkeys(marks))
        assert call.named["dimmed"][head] != on.is_kept[head]
    assert call.named["pictures"] == ("pictures" if shown == "pictures" else None)
    assert (call.named["numbers"] is None) == (shown == "pictures")
    if shown != "pictures":
        np.testing.assert_array_equal(call.named["numbers"], numbers)
    assert call.named["picked"] == Head(1, 1)
    assert page.click(call.named["on_pick"], 0, 2) == {"layer": 0, "head": 2}


@given(shares(2, 3), BORNE, st.booleans())
def test_what_the_grid_says_at_a_glance(numbers, labels, is_pictures):
    name = "entropy"
    on = screen_of({name: numbers}, labels, None, shown="pictures" if is_pictures else name)
    stated = facts(grid.finding(on))
    if is_pictures:
        bearing = [head for head in HEADS if any(label[head] for label in labels.values())]
        assert stated.numbers[:2] == (str(len(bearing)), "6") and stated.heads == ((1, 1),)
        own = [label for label, of_label in labels.items() if of_label[1, 1]]
        end = grid.finding(on).rpartition("head 1 ")[2]
        assert end == (
            "attends " + " and ".join(findings.ATTENDS[value] for value in own) if own else "matches none"
        )
        counts = {label: int(of_label.sum()) for label, of_label in labels.items() if of_label.any()}
        for label, count in counts.items():
            assert f"{count} attend{'s' * (count == 1)} {findings.ATTENDS[label]}" in grid.finding(on)
    else:
        values = [*map(float, numbers.ravel())]
        amounts = [number for number in stated.numbers if number.endswith("%")]
        assert (
            amounts == [share_text(max(values)), share_text(min(values))][: 1 + (max(values) > min(values))]
        )


@example("pictures", False, "weights", MOST_PIXELS, False, True)
@given(
    st.sampled_from(["pictures", "entropy"]),
    st.booleans(),
    st.sampled_from(["weights", "rollout"]),
    st.sampled_from([3, MOST_PIXELS, MOST_PIXELS + 1]),
    st.booleans(),
    st.booleans(),
)
def test_the_notes_below_the_grid(shown, common, measure, n_key, renormalised, has_number):
    asked = shown if has_number or shown == "entropy" else "probe_induction"
    numbers = {"entropy": np.zeros((2, 3), dtype=np.float32)} if shown == "entropy" else {}
    on = screen_of(
        numbers,
        {},
        None,
        shown=shown,
        asked=asked,
        measure=measure,
        is_renormalised=renormalised,
        keys=range(n_key),
    )
    object.__setattr__(on.view, "selection", on.view.selection.but(common_scale=common))
    with drawn(grid, hidden_note=lambda view: "") as page:
        grid.notes(on)
    [note] = page.texts
    note = unescaped(note)
    if shown == "pictures":
        assert (
            ("from 0 to the largest of all heads" in note)
            == common
            == ("from 0 to its own largest" not in note)
        )
        assert ("Each pixel" in note) == (n_key > MOST_PIXELS)
        assert ("divided by what remains" in note) == renormalised
    else:
        assert STATISTICS["entropy"].source in note
    assert ("so pictures are shown" in note) == (asked != shown) and ("not known yet" in note) == (
        asked != shown
    )
    assert ("Rollout combines" in note) == (measure == "rollout")
    for label, mark in findings.MARKS.items():
        assert f"{mark} {label}" in note


@given(shares(2, 3), shares(2, 3), BORNE, PROBED, st.sampled_from(["all", "previous", "none"]))
def test_the_table_of_all_heads(first, second, labels, probes, label):
    numbers = {"entropy": first, "previous": second}
    on = screen_of(numbers, labels, probes, shown="entropy")
    object.__setattr__(on.view, "selection", on.view.selection.but(label=label))
    with drawn(table) as page, pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            table.widgets,
            "tie_row",
            lambda key, rows, picked, take: {"rows": rows, "picked": picked, "take": take},
        )
        table.table(on)
    kept = [
        head
        for head in HEADS
        if label == "all"
        or (label == "previous" and labels["previous"][head])
        or (label == "none" and not any(label[head] for label in labels.values()))
    ]
    which = "all 6" if len(kept) == 6 else f"{len(kept)} of 6"
    assert page.texts == [f"**The numbers of {which} heads**"]
    [call] = page.all("dataframe")
    columns = call.given[0]
    assert [*zip(columns["Layer"].tolist(), columns["Head"].tolist(), strict=True)] == kept
    assert columns["Labels"] == [
        ", ".join(borne for borne, of in labels.items() if of[head]) for head in kept
    ]
    names = [head_names.names_said(named(probes), head) for head in kept]
    assert columns["Names"] == names
    for name, of_heads in numbers.items():
        assert columns[STATISTICS[name].title].tolist() == [float(of_heads[head]) for head in kept]
    assert call.named["rows"] == kept and call.named["picked"] == Head(1, 1)
    assert page.click(call.named["take"], (1, 2)) == {"layer": 1, "head": 2}
    lines = [*csv.reader(io.StringIO(table.as_csv(on).decode("utf-8-sig")))]
    assert lines[0] == ["layer", "head", "labels", "entropy", "previous"]
    for head, line in zip(HEADS, lines[1:], strict=True):
        bears = " ".join(borne for borne, of in labels.items() if of[head])
        assert line[:3] == [str(head.layer), str(head.head), bears]
        assert [*map(float, line[3:])] == [float(first[head]), float(second[head])]


@given(
    hnp.arrays(np.float32, (2, 3), elements=st.sampled_from([0.1234, 0.5, 0.98765]), fill=st.nothing()),
    st.sampled_from([None, 0.2, 5.0]),
    st.sampled_from([None, 0.6, -1.0]),
)
def test_the_range_in_which_heads_are_not_dimmed(numbers, lowest, highest):
    on = screen_of({"entropy": numbers}, {}, None, shown="entropy")
    object.__setattr__(on.view, "selection", on.view.selection.but(lowest=lowest, highest=highest))
    with drawn(settings) as page:
        settings.controls(on)
    sliders = [call.named for call in page.all("slider") if call.given]
    low, high = map(float, (numbers.min(), numbers.max()))
    ends = math.floor(low * 1000) / 1000, math.ceil(high * 1000) / 1000
    [slider] = sliders
    assert (slider["min_value"], slider["max_value"]) == pytest.approx(ends)
    expected = [
        min(max(end if limit is None else limit, ends[0]), ends[1])
        for limit, end in zip((lowest, highest), ends, strict=True)
    ]
    assert list(slider["value"]) == pytest.approx(expected)
    take = slider["take"]
    low_end, high_end = slider["min_value"], slider["max_value"]
    assert page.click(take, (low_end, high_end)) == {"lowest": None, "highest": None}
    assert page.click(take, (0.3, 0.4)) == {"lowest": 0.3, "highest": 0.4}
    assert page.field("grid")["shown"][0].all_heads.grid == "entropy"


def test_equal_numbers_have_no_range_and_pictures_a_scale():
    on = screen_of({"entropy": np.full((2, 3), 0.5, dtype=np.float32)}, {}, None, shown="entropy")
    with drawn(settings) as page:
        settings.controls(on)
        assert not [call for call in page.all("slider") if call.given]
        settings.controls(screen_of({}, {}, None))
    assert page.field("common_scale") and page.field("colour")["required"]


@given(
    hnp.arrays(
        np.float32, (6, 6), elements=st.integers(0, 8).map(lambda number: number / 8), fill=st.nothing()
    ),
    st.booleans(),
)
def test_the_heads_most_like_the_selected_one(far, is_part):
    far = np.triu(far, 1) + np.triu(far, 1).T
    divergences = Divergences(
        divergence=far,
        heads=HEADS,
        n_rows=8 if is_part else 9,
        n_queries=9,
    )
    on = screen_of({}, {}, None)
    with drawn(
        likeness, head_cache=SimpleNamespace(divergences=lambda cells: divergences), linked=lambda *_: ""
    ) as page:
        likeness.nearest(on)
    own = HEADS.index(Head(1, 1))
    distances = {head: float(far[own, at]) for at, head in enumerate(HEADS) if at != own}
    rows = page.rows("nearest_heads")
    assert [row.length for row in rows] == pytest.approx(
        [1 - distance for distance in sorted(distances.values())]
    )
    for number, row in enumerate(rows):
        head = Head(**page.click(page.keyed("nearest_heads")["on_pick"], number))
        assert row.text == head.title and row.amount == number_text(1 - distances[head]) and not row.picked
        assert row.length == pytest.approx(1 - distances[head])
    assert ("Of 9 rows 8 are compared" in page.texts[-1]) == ("are compared" in page.texts[-1]) == is_part


def test_the_map_of_all_heads():
    on = screen_of({"entropy": np.arange(6, dtype=np.float32).reshape(2, 3) / 6}, {}, None, shown="entropy")
    object.__setattr__(on.view, "selection", on.view.selection.but(lowest=0.3))
    points = np.arange(12, dtype=np.float32).reshape(6, 2)
    given_ = {}

    def draw(places, **named):
        given_.update(named, places=places)
        return "figure"

    cache = SimpleNamespace(head_map=lambda cells: points)
    with drawn(likeness, head_cache=cache, draw_head_map=draw) as page:
        likeness.head_map(on)
    assert given_["places"] is points and given_["heads"] == HEADS and given_["picked"] == Head(1, 1)
    assert given_["dimmed"].tolist() == [number / 6 < 0.3 for number in range(6)]
    chart = page.keyed("head_map")
    assert page.click(chart["on_pick"], [1, 2]) == {"layer": 1, "head": 2}


@given(
    hnp.arrays(
        np.float32, (2, 3), elements=st.sampled_from([-0.5, 0.0, 0.25, 0.75, math.nan]), fill=st.nothing()
    )
)
def test_which_heads_copy(scores):
    heads = HEADS[:2] + HEADS[3:]  # layers differ in their number of heads, and a head may have no score
    scores[0, 2] = np.nan
    trace = SimpleNamespace(heads=lambda kind: heads)
    view = SimpleNamespace(selection=A.but(copying=True), theme="light", trace=trace, kind="decoder")
    work = SimpleNamespace(results=[scores])
    with drawn(
        copying,
        check_can_run=lambda view, asked: asked.endswith("."),
        offer=lambda name: SimpleNamespace(name=name),
        job=lambda *_: work,
        is_there=lambda *_, **__: True,
    ) as page:
        copying.copying(view)
    known = {head: float(scores[head]) for head in HEADS if not math.isnan(scores[head])}
    [call] = page.all("head_grid")
    assert list(map(len, call.given[0])) == [2, 3] and call.named["signed"]
    for head in heads:
        score = number_text(known[head]) if head in known else "none"
        assert call.given[0][head.layer][head.head] == f"{head.title}: {score}"
    assert page.click(call.named["on_pick"], 1, 0) == {"layer": 1, "head": 0}
    stated = facts(next(text for text in page.texts if text.startswith("**")))
    if known:
        assert stated.numbers[:2] == (str(sum(value > 0 for value in known.values())), str(len(known)))
        [head] = stated.heads
        assert known[Head(*head)] == max(known.values()) and stated.numbers[-1] == number_text(
            max(known.values())
        )
    off = SimpleNamespace(selection=A, theme="light")
    with drawn(copying) as page:
        copying.copying(off)
    assert not page.all("head_grid")


@pytest.mark.parametrize("attends", ["", "broadly"])
@pytest.mark.parametrize("called", [None, "", "induction"])
@pytest.mark.parametrize("knows_text", [True, False])
def test_what_the_selected_head_is_called(attends, called, knows_text):
    """Without names (None) nothing is said of them; for a head without a name, where it was tried."""
    names = None if called is None else named(probes_of(np.full((4, 2, 3), 0.25, dtype=np.float32)))
    if called:
        means = np.full((4, 2, 3), 0.25, dtype=np.float32)
        means[[*PROBES].index("probe_induction"), 1, 2] = 0.75
        names = named(probes_of(means))
    sentence = head_names.head_words(
        attends, names, Head(1, 2), knows_text=knows_text, is_done_here=lambda name: True
    )
    expected = ["Attends broadly on this text"] * bool(attends) + [
        "On repeated random tokens: induction"
    ] * bool(called)
    tried = ["on this text"] * knows_text + ["on repeated random tokens"] * (called is not None)
    if expected:
        assert sentence == " · ".join(expected)
    else:
        assert sentence == ("No known pattern " + " or ".join(tried) if tried else "")


@given(st.lists(shares(2, 3), min_size=4, max_size=4).map(probes_of))
def test_names_and_marks_of_heads(probes):
    """“First token” is not named beside others, and has no mark."""
    of_heads = named(probes)
    for head in HEADS:
        names = [name for name in PROBES if probes.means[name][head] > 0.5]
        told = [name for name in names if name != "probe_first"] or names
        more = f" and {len(told) - 2} more" if len(told) > 2 else ""
        assert (
            head_names.called_words(of_heads, head)
            == ", ".join(PROBES[name].called for name in told[:2]) + more
        )
        marks = {"probe_induction": "I", "probe_duplicate": "D", "probe_previous": "←", "probe_first": ""}
        assert head_names.mark_of(of_heads, head) == "".join(marks[name] for name in names)
        assert head_names.marks_of(of_heads, HEADS)[head.layer][head.head] == "".join(
            marks[name] for name in names
        )
        text = head_names.with_names("said", of_heads, head)
        assert text == (
            "said"
            if not names
            else f"said; on repeated random tokens: {head_names.names_said(of_heads, head)}"
        )
    note = head_names.marks_note(of_heads)
    assert (
        facts(note).numbers == ("50%", "30", "4")
        and "I induction · D duplicate token · ← previous token" in note
    )
    assert head_names.marks_note(None) == "" and head_names.mark_of(None, HEADS[0]) == ""
    assert head_names.marks_of(None, HEADS) is None


# Maps of all heads


def placed(correlation, nearest, divisor, remark=""):
    points = (np.arange(12, dtype=np.float32).reshape(6, 2) % divisor) / divisor
    return SimpleNamespace(
        points=points,
        in_map=replace(small_records.PERFECT, order_correlation=correlation, nearest_agreement=nearest),
        chance=replace(
            small_records.BY_CHANCE, correlation_p=0.001 if correlation < 0 else 0.9, nearest_p=0.9
        ),
        trustworthiness=0.75,
        remark=remark,
    )


PLACED = st.none() | st.builds(
    placed,
    st.sampled_from([-0.75, -0.5, 0.25, math.nan]),
    st.sampled_from([0.25, 0.75]),
    st.sampled_from([5, 7]),
)


def view_of_maps(**changes):
    axis = hand_made.tokens(["cat", "door", "it"])
    trace = SimpleNamespace(
        heads=lambda kind: HEADS, query_tokens=lambda kind: axis, key_tokens=lambda kind: axis
    )
    given_ = {"selection": A, "trace": trace, "kind": "encoder", "query": 1, "theme": "light"}
    return PartOfView(**given_ | changes)


@given(
    st.lists(PLACED, min_size=6, max_size=6),
    st.sampled_from([None, Head(0, 1)]),
    st.lists(shares(3), min_size=6, max_size=6),
)
def test_the_maps_of_all_heads(results, like, rows):
    last = small_maps.LastMaps()
    view = view_of_maps(selection=A.but(aligned_with=like))
    work = SimpleNamespace(results=results)
    table_of_rows = [np.array(rows[:3]), np.array(rows[3:])]
    cache = SimpleNamespace(rows=lambda *_: table_of_rows)
    with drawn(small_maps, head_cache=cache, of_session=lambda kind: last):
        maps = small_maps.small_maps(view, work)
    for at, head in enumerate(HEADS):
        map_, own = maps[head.layer][head.head], results[at]
        assert (map_.n_query, map_.query, map_.is_old) == (3, 1, False)
        if own is None or (like is not None and results[1] is None):
            assert map_.points is None and map_.text == f"{head.title}: no map yet"
            continue
        correlation = own.in_map.order_correlation
        written = "" if math.isnan(correlation) else f"{correlation:+.2f}".replace("-", "−")
        assert map_.number == written and map_.text.startswith(
            f"{head.title}{': correlation' * bool(written)}"
        )
        assert (f"score {written}" in map_.text) == bool(written)
        share = percent_text(own.in_map.nearest_agreement)
        assert (f"for {share} of the queries" in map_.text) == bool(written)
        assert map_.faint == (not correlation < 0)
        strongest = sorted(range(3), key=lambda key: (-rows[at][key], key))
        assert list(map_.lines) == [(key, float(rows[at][key])) for key in strongest if rows[at][key] > 0]
        if like is None:
            np.testing.assert_array_equal(map_.points, own.points)
        else:
            distances = [np.linalg.norm(points[0] - points[-1]) for points in (map_.points, own.points)]
            assert distances[0] == pytest.approx(distances[1], abs=1e-4)
    with drawn(small_maps, head_cache=cache, of_session=lambda kind: last):
        later = small_maps.small_maps(view, SimpleNamespace(results=[None] * 6))
    for head in HEADS:
        before, now = maps[head.layer][head.head], later[head.layer][head.head]
        assert now.is_old == (before.points is not None) and now.number == ""
        assert ("the previous one is shown" in now.text) == now.is_old

    order = layout.best_first(maps, work, view_of_maps(selection=A.but(order="reliability")))
    if order is not None:
        assert sorted(order) == list(HEADS)
        ranks = []
        for head in order:
            own = results[HEADS.index(head)]
            is_made = own is not None and maps[head.layer][head.head].points is not None
            value = own.in_map.order_correlation if is_made else math.inf
            ranks.append(1.5 if math.isnan(value) else value)
        assert ranks == sorted(ranks)

    note = drawing.note(view, work, [value for row in maps for value in row])
    n_faint = sum(value.faint for row in maps for value in row)
    assert (f"Dimmed maps, {n_faint} here" in note) == (n_faint > 0) and "Grey maps" not in note
    assert ("aligned with the map of layer 0, head 1" in note) == (like is not None)
    assert "“door”" in note
    told = drawing.note(view, work, [value for row in later for value in row])
    assert ("Grey maps" in told) == any(
        value.is_old for row in later for value in row
    ) and "Dimmed" not in told
    lines = [*csv.reader(io.StringIO(drawing.as_csv(view, work).decode("utf-8-sig")))]
    made = [head for head, result in zip(HEADS, results, strict=True) if result is not None]
    assert [(int(line[0]), int(line[1])) for line in lines[1:]] == made
    finding = drawing.finding(view, work)
    known = [
        result.in_map.order_correlation
        for result in results
        if result is not None and not math.isnan(result.in_map.order_correlation)
    ]
    if not known:
        assert finding == "Maps of all heads"
    else:
        n_best = known.count(min(known))
        assert (f"and {n_best - 1} more" in finding) == (n_best > 1)
        [best, *_] = facts(finding).heads
        assert results[HEADS.index(Head(*best))].in_map.order_correlation == min(known)
        assert findings.correlation_text(min(known)) in finding
        assert (f"mean of {len(known)} maps {findings.correlation_text(mean(known))}" in finding) == (
            len(known) > 1
        )


def test_a_map_of_a_remark_and_how_far_all_are():
    work = SimpleNamespace(results=[None, placed(-0.5, 0.5, 5, "Too few points.")], n_done=1)
    assert "Too few points." in drawing.note(view_of_maps(), work, [])
    assert drawing._so_far(work) == "1 of 2 maps done."


@pytest.mark.parametrize(
    ("method", "n_done", "compiles"), [("umap", 0, True), ("umap", 1, False), ("tsne", 0, False)]
)
def test_the_first_map_by_umap_is_compiled(method, n_done, compiles):
    view = view_of_maps(selection=A.but(method=method))
    messages = []
    waiting = SimpleNamespace(show_jobs=lambda jobs, told, *_, **__: messages.append(told()))
    with drawn(drawing, waiting=waiting):
        drawing.screen(view, SimpleNamespace(results=[None], n_done=n_done))
    assert (findings.COMPILED in messages[0]) == compiles


@pytest.mark.parametrize("like", [None, Head(0, 2)])
def test_all_maps_aligned_with_one(like):
    with drawn(maps_settings) as page:
        maps_settings.alignment(A.but(aligned_with=like))
    [toggle] = page.all("toggle")
    assert toggle.given[0] == f"Align all with {(like or Head(1, 1)).words}"
    assert toggle.named["value"] == (like is not None)
    assert page.click(toggle.named["take"], True) == {"aligned_with": Head(1, 1)}
    assert page.click(toggle.named["take"], False) == {"aligned_with": None}
    assert maps_settings._n_point(view_of_maps()) == 6
    jobs, preferred = [], []

    def job(name, key, calls):
        jobs.append((name, key, calls()))
        return SimpleNamespace(prefer=preferred.append)

    with drawn(layout, job=job):
        layout.job_of(view_of_maps(selection=A.but(aligned_with=like)))
    assert preferred == [HEADS.index(like or Head(1, 1))] and len(jobs[0][2]) == 6


@pytest.mark.parametrize("method", ["tsne", "umap", "attention", "pca", "mds"])
@pytest.mark.parametrize(("perplexity", "neighbours"), [(5.0, 5), (90.0, 40)])
def test_parameters_in_their_ranges(method, perplexity, neighbours):
    view = view_of_maps(selection=A.but(method=method, perplexity=perplexity, neighbours=neighbours))
    with drawn(map_settings) as page:
        map_settings.parameters(view, 12)
        map_settings.method_and_vectors(view)
    ranges = map_settings.limits(method, 12)
    fields = {call.named["field"]: call.named for call in page.all("number_input")}
    assert set(fields) == set(ranges)
    words = map_settings.in_words(view, 12)
    for name, (low, high) in ranges.items():
        own, given_ = view.selection.value(name), fields[name]
        high = min(high, FIELDS[name].widget()["max_value"])
        assert (given_["min_value"], given_["max_value"]) == (low, pytest.approx(high))
        shown = given_["shown"][0].value(name)
        assert low <= shown <= high and (shown == own or not low <= own <= high)
        assert type(shown) is type(own)
        assert ("was asked for" in given_["help"]) == (not low <= own <= high)
        assert (f"({low:g} to" in given_["label"]) == (name != "seed")
        assert f"{FIELDS[name].title.lower()} {shown:g}" in words
    has_metric = bool([call for call in page.all("segmented_control") if call.named["field"] == "metric"])
    assert not has_metric or page.field("metric")["required"]
    assert has_metric == (method not in ("attention", "pca"))
    assert page.field("space")["disabled"] == (method == "attention")


# Myths


def claims_of(numbers, *, has_norms=True) -> Claims:
    names = list(Claims.__dataclass_fields__)
    fields = dict(zip(names, numbers, strict=True))
    return Claims(**fields | ({} if has_norms else {"other_strongest": None, "rank_agreement": None}))


@given(
    st.lists(shares(2, 3), min_size=12, max_size=12),
    st.booleans(),
    st.booleans(),
    st.sampled_from(["encoder", "decoder"]),
    st.booleans(),
)
def test_what_is_said_of_each_claim(numbers, has_norms, is_causal, kind, is_biased):
    claims = claims_of(numbers, has_norms=has_norms)
    claims = replace(claims, seen=np.maximum(claims.seen, np.float32(0.125)))
    if is_causal:
        nothing = np.full((2, 3), np.nan, dtype=np.float32)
        claims = replace(claims, score_asymmetry=nothing, tied_asymmetry=nothing.copy())
    tokens = hand_made.tokens(["[CLS]", "cat", "it"] if has_norms else ["cat", "door", "it"])
    layers = {
        (layer, kind): SimpleNamespace(bias=np.ones(1) if is_biased and layer else None) for layer in (0, 1)
    }
    trace = SimpleNamespace(key_tokens=lambda kind: tokens, attention=lambda *place: layers[place])
    view = PartOfView(selection=A, kind=kind, trace=trace, theme="light")
    parts = [(symmetric, "symmetric"), (diagonal, "diagonal"), (full, "full"), (contribution, "contribution")]
    texts, charts = {}, {}
    for module, name in parts:
        with drawn(module, picture, linked=lambda *names: names[-1]) as page:
            getattr(module, name)(view, claims)
        texts[name] = page.texts
        charts |= {call.named["key"]: call for call in page.all("chart")}
    of_key = {
        "claim_symmetric": claims.weight_asymmetry,
        "claim_diagonal": claims.on_itself,
        "claim_full": claims.cells_for_most,
        "claim_contribution": claims.other_strongest,
    }
    assert set(charts) == {key for key, of_heads in of_key.items() if of_heads is not None}
    for key, call in charts.items():
        own = float(of_key[key][1, 1])
        assert call.named["alt"].endswith(f"layer 1, head 1: {cell_text(own)}")
        assert any(f"layer 1, head 1: {cell_text(own)}; the largest" in text for text in texts[key[6:]])

    first = unescaped(texts["symmetric"][0])
    values = [*map(float, claims.weight_asymmetry.ravel())]
    assert (
        f"{sum(value >= 0.3 for value in values)} are far" in first
        and f"median is {median(values):.2f}" in first
    )
    last = texts["symmetric"][-1]
    assert ("lets only one of two tokens" in last) == is_causal
    if not is_causal:
        assert f"median {median(map(float, claims.score_asymmetry.ravel())):.2f}" in last
        assert f"{median(map(float, claims.tied_asymmetry.ravel())):.2f} in the median head" in last
        assert ("no bias added" in last) == is_biased

    text = texts["diagonal"][0]
    has_special, rests = has_norms, kind == "decoder" and not has_norms
    own = {
        "the query's own token": claims.on_itself,
        "the token before or after": claims.on_neighbour,
        "a special token": claims.on_special if has_special else None,
        "the first token, where": claims.on_first if rests else None,
    }
    at = {}
    for what, of_heads in own.items():
        if of_heads is None:
            assert what not in text
            continue
        at[what] = text.index(what)
        share = mean(map(float, of_heads.ravel()))
        assert share_text(share) in text[at[what] :].split(",")[0 if "where" not in what else 2]
    order = sorted(at, key=lambda what: -mean(map(float, own[what].ravel())))
    assert [at[what] for what in order] == sorted(at.values()) or len(
        {float(own[what].mean()) for what in at}
    ) < len(at)
    assert ("sees no other" in text) == (kind == "decoder")

    held = [*map(float, claims.cells_for_most.ravel())]
    assert f"strongest {share_text(median(held))} hold" in texts["full"][0]
    assert f"and {share_text(min(held))} in the most" in texts["full"][0]
    assert ("W\\_O is not known" in texts["contribution"][0]) == (not has_norms)

    lines = [*csv.reader(io.StringIO(claims_table.as_csv(claims).decode("utf-8-sig")))]
    shown = {name: getattr(claims, name) for name in Claims.__dataclass_fields__}
    shown = {name: of_heads for name, of_heads in shown.items() if of_heads is not None}
    assert lines[0] == ["layer", "head", *(name.replace("_", " ") for name in shown)]
    for head, line in zip(HEADS, lines[1:], strict=True):
        assert line[:2] == [str(head.layer), str(head.head)]
        for written, of_heads in zip(line[2:], shown.values(), strict=True):
            assert (written == "") if math.isnan(of_heads[head]) else float(written) == float(of_heads[head])


# Door experiment


def cells_of(weights, hidden=None):
    """A matrix whose keys have other labels than its queries; one of the keys may not be shown."""
    n = len(weights)
    queries, keys = (Axis.of(hand_made.tokens([f"{side}{at}" for at in range(n)])) for side in "qk")
    shown = np.arange(n) != hidden
    return small_records.pattern(
        weights[:, shown].tolist(), queries=queries, keys=keys.where(shown), layer=1, head=1
    )


def test_the_map_of_the_articles_is_made_as_theirs():
    """t-SNE, which is the default, by cosine with a perplexity of 5, of the selected head."""
    asked = []
    cache = SimpleNamespace(projection=lambda *given_, **settings_: asked.append((given_, settings_)))
    with drawn(near, cache=cache):
        near.door_map(A.but(layer=2, head=1, seed=3, iterations=750, perplexity=30), "encoder")
    settings_ = {"metric": "cosine", "perplexity": 5.0, "iterations": 750, "seed": 3}
    assert asked == [((A.source, 2, 1, "encoder"), settings_)]


@pytest.mark.parametrize("is_here", [True, False])
@pytest.mark.parametrize("effort", ["", "440 MB"])
def test_bert_is_offered_where_it_is_not_on_disk(is_here, effort):
    downloads = SimpleNamespace(effort=lambda bert: effort, panel=lambda bert: panels.append(bert))
    panels: list[str] = []
    with drawn(
        answer, offer=lambda name: name, locate=lambda bert: is_here or None, downloads=downloads
    ) as page:
        answer._offer_bert()
    assert panels == ["bert-base-uncased"] * (not is_here) and len(page.texts) == (not is_here)
    for text in page.texts:
        head = answer.DOOR_MASK.head
        assert facts(text).heads == (tuple(head),) and ("(440 MB)" in text) == bool(effort)


@given(shares(3, 4), st.integers(0, 2), st.integers(0, 3), st.sampled_from([None, 0, 3]), st.booleans())
@pytest.mark.stand_ins
def test_the_query_that_gives_the_key_least(weights, query, key, hidden, has_special):
    """Of the words other than the selected one; with the name of that of the articles, it is that one."""
    labels = ["</s>" if has_special else "a", "b", "c"]
    shown = np.arange(4) != hidden
    whole = small_records.pattern(
        weights.tolist(),
        queries=Axis.of(hand_made.tokens(labels)),
        keys=Axis.of(hand_made.tokens(["<s>", "d", "e", "f"])),
        kind="cross",
    )
    pattern = whole.arranged(whole.queries, whole.keys.where(shown))
    column = next(at for at in range(4) if shown[at]) if key == hidden else key
    others = [at for at in range(3) if at != query and not (has_special and at == 0)]
    least = min(float(weights[at, column]) for at in others)
    assert near.other_query(pattern, query, key) == next(at for at in others if weights[at, column] == least)
    if query:
        without_first = whole.arranged(whole.queries.where(np.arange(3) > 0), pattern.keys)
        assert near.other_query(without_first, query, key) == 3 - query
    labels[1] = "watching"
    named = replace(pattern, queries=Axis.of(hand_made.tokens(labels)))
    assert query == 1 or near.other_query(named, query, key) == 1


@given(
    shares(4, 4),
    shares(4, 4),
    st.integers(0, 3),
    st.integers(0, 3),
    st.sampled_from([False, False, True]),
    st.sampled_from([0, None, 1, 0]),
)
@pytest.mark.stand_ins
def test_the_experiment_beside_the_readers_own(own_weights, weights, query, key, is_shown, hidden):
    own = A.but(query=2, key=1)
    mine = A.but(text="I saw the box.", layer=0, head=2, model="n")
    of_own, pattern = cells_of(own_weights), cells_of(weights, hidden)
    cache = SimpleNamespace(
        pattern=lambda *_: of_own, trace=lambda source: SimpleNamespace(kinds=("encoder",))
    )

    class Hashed(SimpleNamespace):
        __hash__ = object.__hash__

    view = Hashed(selection=mine, query=query)
    with drawn(
        variation,
        cache=cache,
        door_map=lambda selection, kind: {"encoder": selection}[kind],
        near=lambda map_, query, key: near.Near(n_nearer=query + 2 * key, n_key=9),
        fillers=lambda model: ("another",),
        _filled=lambda selection, query, model: f"{selection.text} {query} {model}",
        strongest_key=lambda pattern, query: 3 - query,
    ):
        by_column = variation._table(
            view,
            pattern,
            key,
            SimpleNamespace(selection=own, is_shown_in=lambda *given_: {(view, key): is_shown}[given_]),
        )
    columns = [name for name in by_column if name]
    assert columns == ["The experiment", "Yours"][: 2 - is_shown]
    rows = dict(zip(by_column[""], zip(*(by_column[name] for name in columns), strict=True), strict=True))
    sides = [(own, own_weights, 2, 1), (mine, weights, query, key)][: 2 - is_shown]
    assert rows["sentence"] == tuple(selection.text for selection, *_ in sides)
    assert rows["model"] == tuple(selection.model for selection, *_ in sides)
    assert rows["head"] == tuple(selection.place.title for selection, *_ in sides)
    for number, (_, of_side, at, to) in enumerate(sides):
        given_ = rows["weight on the key"][number]
        is_hidden = number == 1 and to == hidden
        assert given_ == ("not shown" if is_hidden else f"{share_text(float(of_side[at, to]))} on “k{to}”")
        assert rows["query"][number] == f"“q{at}”"
        assert rows["strongest key, special tokens and itself aside"][number] == f"“k{3 - at}”"
        assert rows["rank of the key on the map, 1 is nearest"][number] == f"{at + 2 * to + 1} of 9"
    assert rows["another fills in"] == tuple(
        f"{selection.text} {at} another" for selection, _, at, _ in sides
    )


@given(shares(2, 3), st.sampled_from(variation.WORDS[1:]))
def test_one_thing_is_changed(weights, word):
    own = A.but(query=2, key=1)
    shown = A.but(text=own.text.replace("door", word))
    view = SimpleNamespace(selection=shown, kind="encoder", query=2)
    cache = SimpleNamespace(pair_weights=lambda *given_, measure: asked.append(given_) or weights)
    asked: list[object] = []
    with drawn(
        variation,
        head_cache=cache,
        _table=lambda *_: {"": ["one", "two"]},
        compared=lambda *_: "compared",
        _wait_for_experiment=lambda _: None,
    ) as page:
        variation.variation(view, "pattern", 1, SimpleNamespace(selection=own))
    assert asked == [(shown.source, "encoder", (2, 3), (1, 2))]
    [box] = page.all("selectbox")
    assert box.given[1] == variation.WORDS and box.named["tied"] == word
    assert page.click(box.named["take"], "bird") == {
        "model": "m",
        "text": "I saw the bird.",
        "second": "",
        "cut": False,
        "query": 2,
        "key": 1,
    }
    best = [head for head in HEADS if weights[head] == weights.max() > 0]
    buttons = page.all("button")
    assert len(buttons) == bool(best and Head(1, 1) not in best)
    for button in buttons:
        change = page.click(button.named["on_click"])
        assert Head(change["layer"], change["head"]) == best[0] and (change["query"], change["key"]) == (2, 1)
        assert best[0].short in button.given[0]
    assert variation._word_of(own, own) == "door" and variation._word_of(A.but(text="x"), own) is None


@given(
    st.dictionaries(st.sampled_from(["model", "text", "second", "layer", "head"]), st.just(None), max_size=4)
)
def test_what_differs_from_the_experiment_is_b(changes):
    values = {"model": "n", "text": "It ran.", "second": "It sat.", "layer": 4, "head": 5}
    shown = A.but(**{name: values[name] for name in changes})
    compared = variation.compared(shown, A)
    assert compared.but(**{name: A.value(name) for name in changes}).source == A.source
    if not changes:
        assert compared == A.but(other_text="I saw the window.")
    else:
        b = compared.other
        for name in ("model", "text", "second", "layer", "head"):
            assert b.value(name) == shown.value(name)


@given(shares(3, 3), st.integers(0, 2), st.integers(0, 2), st.sampled_from([None, 0, 1, 2]))
@pytest.mark.stand_ins
def test_the_map_of_the_articles_twice(weights, query, key, hidden):
    pattern = cells_of(weights, hidden)
    trace = SimpleNamespace(weights=lambda *_: weights)
    view = SimpleNamespace(
        selection=A, kind="encoder", trace=trace, query=query, theme="light", measure="weights"
    )
    projection = small_records.projection()
    drawn_maps = []
    other = (query + 1) % 3
    with drawn(
        near,
        door_map=lambda selection, kind: {(A, "encoder"): projection}[selection, kind],
        other_query=lambda *_: other,
        strongest_key=lambda pattern, query: 2 - query,
        near=lambda projection, query, key: near.Near(n_nearer=query, n_key=3),
        draw_projection=lambda projection, weights, *, picked, theme: (
            drawn_maps.append(picked) or str(picked)
        ),
        other_maps=lambda: None,
    ) as page:
        note = near.near_and_far(view, pattern, key)
    assert drawn_maps == [(query, key), (other, 2 - other)]
    assert page.chart("door_map") == str((query, key)) and page.chart("door_map_other") == str(
        (other, 2 - other)
    )
    sentences = [unescaped(text).strip("*") for text in page.texts if text.startswith("**")]
    for sentence, (at, to) in zip(sentences, drawn_maps, strict=True):
        given_ = "and" if to == hidden else f"gives {share_text(float(weights[at, to]))} to"
        assert sentence.startswith(f"“q{at}” {given_} “k{to}”; ")
        assert sentence.endswith(
            (
                "no key is nearer on the map.",
                "1 of the 3 keys is nearer on the map.",
                "2 of the 3 keys are nearer on the map.",
            )[at]
        )
    assert page.texts[-1].startswith(note)


@pytest.mark.parametrize("is_shown", [True, False])
def test_the_experiment_is_introduced(is_shown):
    own = experiment.Experiment(
        selection=A.but(query=2, key=1, head=2),
        preset=SimpleNamespace(query="it", key="door"),
    )
    with drawn(experiment) as page:
        experiment.introduction(own, is_shown)
    stated = facts(page.texts[0])
    assert stated.heads == ((1, 2),) and stated.quoted[1:3] == ("it", "door")
    assert len(page.all("button")) == (not is_shown)
    for button in page.all("button"):
        change = page.click(button.named["on_click"])
        assert (
            change | {"model": "m", "text": A.text, "layer": 1, "head": 2, "query": 2, "key": 1, "cut": False}
            == change
        )
    for query, key, is_own in ((2, 1, True), (1, 1, False), (2, 2, False)):
        view = SimpleNamespace(selection=own.selection, query=query)
        assert own.is_shown_in(view, key) == is_own
    assert not own.is_shown_in(SimpleNamespace(selection=A.but(layer=0), query=2), 1)
    assert not own.is_shown_in(SimpleNamespace(selection=A.but(text="x"), query=2), 1)
