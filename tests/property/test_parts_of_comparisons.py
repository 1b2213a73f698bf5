"""What "Side by side" draws and changes, of drawn matrices of two texts: each row, number and click is found again in plain Python."""

import math
from dataclasses import replace
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import settings as settings_of
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from attnviz.figures.comparison import MOST_BLOCKS, draw_comparison
from attnviz.figures.heatmap import MOST_COUNTED
from attnviz.figures.numbers import number_text
from attnviz.heads.comparison import compare, pair_positions
from attnviz.records import Axis
from tests import hand_made, small_records
from tests.drawing import MARKS, draw_few
from tests.drawn_parts import drawn
from ui.choice.selection import Selection
from ui.rooms.compare import controls as settings
from ui.rooms.compare import largest, partner, words, zoom
from ui.rooms.compare.choices import FEWEST_ZOOMED

pytestmark = MARKS
draw_few(12)

WORDS = ("cat", "door", "it", "box", "the")
A = Selection(model="m", text="the cat", layer=3, head=1)


@st.composite
def sides(draw: st.DrawFn, equal: bool = False):
    """Matrices [query key] of two texts whose words differ in part; no label comes twice on a side."""
    patterns = []
    for _ in range(2):
        rows, columns = (
            draw(st.lists(st.sampled_from(WORDS), min_size=1, max_size=5, unique=True)) for _ in range(2)
        )
        if equal and patterns:
            rows, columns = (list(axis.labels) for axis in (patterns[0].queries, patterns[0].keys))
        counts = draw(
            hnp.arrays(np.int64, (len(rows), len(columns)), elements=st.integers(0, 6), fill=st.nothing())
        )
        axes = [Axis.of(hand_made.tokens(labels)) for labels in (rows, columns)]
        cells = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
        patterns.append(small_records.pattern(cells.tolist(), queries=axes[0], keys=axes[1], kind="cross"))
    return patterns


def partners_of(first, second) -> dict[int, int]:
    """Entries of A and their partners in B, as the alignment has them."""
    return {
        int(entry): int(other)
        for entry, other in compare(first, second).queries.pairs
        if min(entry, other) >= 0
    }


def view(**changes):
    given = {"selection": A, "kind": "encoder", "theme": "light", "query": 0, "measure": "weights"}
    return SimpleNamespace(**given | changes)


@given(sides(), st.data())
def test_the_list_of_the_largest_changes(both, data):
    first, second = both
    comparison = compare(first, second)
    picked = data.draw(st.integers(0, len(first.queries) - 1)), data.draw(st.integers(0, len(first.keys) - 1))
    rows, keys = (
        {int(a): int(b) for a, b in side.pairs if min(a, b) >= 0}
        for side in (comparison.queries, comparison.keys)
    )
    cells = {
        (query, key): (float(first.weights[query, key]), float(second.weights[rows[query], keys[key]]))
        for query in rows
        for key in keys
    }
    sizes = {at: abs(float(np.float32(b) - np.float32(a))) for at, (a, b) in cells.items() if a != b}
    with drawn(largest) as page:
        largest.largest_changes(view(), comparison, picked)
    listed = page.rows("changes")
    assert len(listed) == min(len(sizes), 10)
    click = page.keyed("changes")["on_pick"]
    shown = []
    for number, row in enumerate(listed):
        change = page.click(click, number)
        at = change["query"], change["key"]
        shown.append(sizes[at])
        before, after = cells[at]
        assert row.amount == f"{number_text(before)} → {number_text(after)}"
        assert row.text.startswith(first.queries.labels[at[0]]) and row.key.startswith(
            first.keys.labels[at[1]]
        )
        assert row.length == pytest.approx(sizes[at] / max(sizes.values()), abs=1e-6)
        assert row.picked == (at == picked)
    assert shown == sorted(sizes.values(), reverse=True)[:10]


def test_a_change_selects_its_key_where_b_has_a_key_before_it():
    queries = Axis.of(hand_made.tokens(["she"]))
    first, second = (
        small_records.pattern([cells], queries=queries, keys=Axis.of(hand_made.tokens(labels)), kind="cross")
        for cells, labels in (([0.25, 0.75], ["cat", "it"]), ([0.5, 0.25, 0.25], ["door", "cat", "it"]))
    )
    with drawn(largest) as page:
        largest.largest_changes(view(), compare(first, second), (0, 1))
    [row] = page.rows("changes")
    assert row.key.startswith("it") and row.picked
    assert page.click(page.keyed("changes")["on_pick"], 0)["key"] == 1


@pytest.mark.parametrize(
    ("hidden", "picked", "label"),
    [("queries", (0, 1), "q0"), ("keys", (1, 0), "k0"), ("queries and keys", (0, 0), "q0")],
)
def test_what_is_selected_and_not_shown(hidden, picked, label):
    sides_ = [Axis.of(hand_made.tokens([f"{side}{at}" for at in range(3)])) for side in "qk"]
    whole = small_records.pattern(np.eye(3).tolist(), queries=sides_[0], keys=sides_[1], kind="cross")
    later = np.arange(3) > 0
    shown = [
        axis.where(later) if name in hidden else axis
        for axis, name in zip(sides_, ("queries", "keys"), strict=True)
    ]
    pattern = whole.arranged(*shown)
    assert words.finding(compare(pattern, pattern), picked, ("A", "B")) == f"“{label}” is not shown"


@pytest.mark.parametrize("differ", [True, False])
@pytest.mark.parametrize("renormalised", [True, False])
@pytest.mark.parametrize("kind", ["encoder", "decoder"])
def test_what_the_pictures_of_two_texts_merge(differ, renormalised, kind):
    comparison = SimpleNamespace(
        first=SimpleNamespace(measure="norms", kind="encoder"),
        second=SimpleNamespace(kind=kind),
        splits_differ=differ,
    )
    with drawn(
        words,
        hidden_note=lambda view: "Hidden.",
        without_partner=lambda comparison: "",
        zoom_note=lambda comparison, around: "",
    ):
        note = words.notes(view(is_renormalised=renormalised), comparison)
    assert ("Norm-based weight" in note) and ("Hidden." in note)
    assert (words.SPLITS_DIFFER in note, words.RENORMALISED in note) == (differ, renormalised)
    assert (words.KINDS_DIFFER in note) == (kind == "decoder")


def test_the_masked_tokens_of_b_are_those_of_its_keys():
    keys = replace(hand_made.tokens(["[CLS]", "[MASK]", "it"]), masked={1: "cat"})
    both = [
        small_records.pattern(
            np.full((2, 3), 1 / 3).tolist(),
            queries=Axis.of(hand_made.tokens(["she", "ran"])),
            keys=Axis.of(tokens),
            kind="cross",
        )
        for tokens in (hand_made.tokens(["[CLS]", "cat", "it"]), keys)
    ]
    sentence = words.side_b(A, A.but(masked=(1,)), compare(*both))
    assert sentence == "layer 0, head 0, masked: cat"


@given(sides(), st.data())
def test_the_list_of_the_queries_that_differ_most(both, data):
    first, second = both
    comparison, query = compare(first, second), data.draw(st.integers(0, len(first.queries) - 1))
    with drawn(largest) as page:
        largest.changed_rows(view(), comparison, query)
    rows, click = page.rows("changed_rows"), page.keyed("changed_rows")["on_pick"]
    partners = partners_of(first, second)
    lengths = [row.length for row in rows]
    assert lengths == sorted(lengths, reverse=True) and all(length == 1 for length in lengths[:1])
    for number, row in enumerate(rows):
        clicked = page.click(click, number)
        position = clicked["query"]
        assert clicked == {"query": position, "key": None} and position in partners
        assert row.text.startswith(first.queries.labels[position])
        assert row.picked == (position == query)
        change = float(comparison.row_change[list(comparison.queries.pairs[:, 0]).index(position)])
        assert row.amount == number_text(change)


@given(sides(), st.data())
def test_the_partners_of_what_is_selected(both, data):
    first, second = both
    comparison = compare(first, second)
    picked = data.draw(st.integers(0, len(first.queries))), data.draw(st.integers(0, len(first.keys)))
    for side, position, partner_ in zip(
        (comparison.queries, comparison.keys), picked, settings.partners(comparison, picked), strict=True
    ):
        of_a = {int(entry): int(other) for entry, other in side.pairs if entry >= 0}
        expected = of_a.get(position, -1)
        assert partner_ == (None if expected < 0 else expected)


@given(
    st.integers(1, 3 * MOST_BLOCKS),
    st.integers(1, MOST_COUNTED + 5),
    st.sampled_from([None, FEWEST_ZOOMED, 30, MOST_BLOCKS, 200]),
)
def test_the_buttons_that_zoom(n_query, n_key, around):
    sizes = max(n_query, n_key), min(n_query, n_key)
    axes = [Axis.of(small_records.tokens(n)) for n in sizes]
    pattern = SimpleNamespace(first=axes, queries=range(sizes[0]), keys=range(sizes[1]))
    with drawn(zoom) as page:
        zoom.zoom_buttons(pattern, around, key="k")
    buttons = {call.given[0]: call.named for call in page.all("button")}
    longest = max(sizes)
    if longest <= MOST_COUNTED:
        assert not buttons
        return
    shown = longest if around is None or around >= longest else around
    assert list(buttons) == ["Zoom in", "Zoom out", "All cells"]
    lengths = {label: named["kwargs"]["other_zoom"] for label, named in buttons.items()}
    assert lengths["Zoom in"] >= FEWEST_ZOOMED and lengths["Zoom in"] <= MOST_BLOCKS
    if not buttons["Zoom in"]["disabled"]:
        assert lengths["Zoom in"] < shown
        assert lengths["Zoom in"] in (FEWEST_ZOOMED, math.ceil(shown / 2), MOST_BLOCKS)
    assert buttons["Zoom in"]["disabled"] == (shown <= FEWEST_ZOOMED)
    assert lengths["Zoom out"] == (2 * shown if 2 * shown < longest else None)
    assert lengths["All cells"] is None
    assert buttons["Zoom out"]["disabled"] == buttons["All cells"]["disabled"] == (shown == longest)
    for label, named in buttons.items():
        assert named["key"] == f"k_{label.lower().replace(' ', '_')}"
        assert callable(named["on_click"])


@settings_of(max_examples=4)
@given(sides(), st.sampled_from([None, 1, 2, 9]), st.data())
def test_the_matrices_are_drawn_as_far_as_they_are_zoomed_to(both, around, data):
    comparison = compare(*both)
    picked = (
        data.draw(st.integers(0, len(both[0].queries) - 1)),
        data.draw(st.integers(0, len(both[0].keys) - 1)),
    )
    of = view(selection=A.but(other_zoom=around))
    longest = max(len(comparison.queries), len(comparison.keys))
    shown = around if around is not None and around < longest else None
    with drawn(zoom) as page:
        for part in zoom.PARTS:
            zoom.matrix(of, comparison, part, picked, alt="alt", key="compare")
        taken = zoom.figures(of, comparison, picked)
    for part, title in zoom.PARTS.items():
        expected = draw_comparison(comparison, part, picked=picked, around=shown).to_dict()
        assert page.chart(f"compare_{part}").to_json() == taken[title].to_json()
        np.testing.assert_equal(page.chart(f"compare_{part}").to_dict()["data"], expected["data"])


@pytest.mark.parametrize(
    ("clicked", "change"),
    [
        ([2, 0], {"query": 2, "key": 0}),
        ([0, 0], {"query": 0, "key": 0}),
        ([-1, 3], {}),
        ([3, -1], {}),
        ("x", {}),
    ],
)
def test_a_clicked_cell(clicked, change):
    with drawn(zoom) as page:
        zoom.pick(clicked)
    assert page.changes == [change]


FIELDS = st.fixed_dictionaries(
    {},
    optional={
        "other_head": st.integers(0, 5),
        "other_layer": st.integers(0, 5),
        "other_text": st.just("the box"),
        "other_model": st.just("n"),
        "other_masked": st.sampled_from([(), (1,)]),
    },
)
OF = {
    "other_head": "head",
    "other_layer": "layer",
    "other_text": "sentence",
    "other_model": "model",
    "other_masked": "masked",
}
TRACE = SimpleNamespace(
    n_heads=lambda layer, kind: 4 if layer == 3 else 1,
    n_layers=lambda kind: 3,
    key_tokens=lambda kind: hand_made.tokens(["[CLS]", "cat", "it"]),
)


def _check_starts(of, key, masked):
    """B's start values, for layer 3 of three and head 1 of four."""
    expected = () if masked else ((2,) if key == 0 else (key,))
    assert partner.start("masked", of, key) == {"other_masked": expected}
    assert partner.start("layer", of, key) == {"other_layer": 1}
    assert partner.start("model", of, key) == {"other_model": "n"}
    assert partner.start("head", of, key) == {"other_head": 2}
    assert partner.start("sentence", of, key) == {"other_text": "the dog", "other_second": ""}


@given(FIELDS, st.integers(0, 2), st.sampled_from(["weights", "rollout"]), st.sampled_from([(), (2,)]))
def test_b_differs_in_something(changes, key, measure, masked):
    """What is chosen of B; until then the next head, for rollout the next layer, or the text without masks."""
    selection = A.but(**changes, masked=masked)
    of = view(selection=selection, trace=TRACE, measure=measure, query=2)
    with drawn(partner, other_models=lambda selection: ["n", "o"]):
        completed = partner.with_b(of, key)
        _check_starts(of, key, masked)
    if changes:
        assert completed == selection
        assert {what for what in partner.FIELDS if partner.differs(selection, what)} == {
            OF[change] for change in changes
        }
        return
    expected = (
        {"other_masked": ()} if masked else {"other_layer": 1} if measure == "rollout" else {"other_head": 2}
    )
    if measure == "rollout" and not masked:
        expected = {"other_layer": (3 + 1) % 3}
    assert completed == selection.but(**expected)


@pytest.mark.parametrize(("layer", "head"), [(0, 0), (5, 1), (2, 9), (7, 7)])
def test_b_has_the_nearest_layer_and_head_that_there_are(layer, head):
    """Of three layers with 4, 2 and 3 heads, in a model that has none of A's kind."""
    heads = (4, 2, 3)
    trace = SimpleNamespace(
        kinds=("decoder",), n_heads=lambda layer, kind: heads[layer], n_layers=lambda kind: 3
    )
    shown = A.but(other_layer=layer, other_head=head)
    offer = SimpleNamespace(name="m")
    with (
        drawn(
            partner,
            offer=lambda name: offer,
            locate=lambda offered: "here",
            cache=SimpleNamespace(trace=lambda source: trace),
            replace=lambda of, **changes: SimpleNamespace(**vars(of) | changes),
        ) as page,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setattr(partner.state, "pin", lambda **changes: page.changes.append(changes))
        of_b = partner.view_of_b(view(), shown)
    expected = min(layer, 2), min(head, heads[min(layer, 2)] - 1)
    assert (of_b.selection.layer, of_b.selection.head) == expected and of_b.trace is trace
    assert of_b.kind == "decoder"
    pinned = {}
    for change in page.changes:
        pinned |= change
    assert pinned == ({"other_layer": 2} if layer > 2 else {}) | (
        {"other_head": expected[1]} if head != expected[1] else {}
    )
    assert all(f"layer {expected[0]} of" in text for text in page.texts[layer > 2 :])
    assert len(page.texts) == (layer > 2) + (head != expected[1])
    for sentence, (asked, count) in zip(
        page.texts, [(layer, 3)] * (layer > 2) + [(head, heads[expected[0]])], strict=False
    ):
        assert str(asked) in sentence and str(count - 1) in sentence


def of_controls(shown, *, kind="encoder", mask_label="[MASK]", others=("n",), b=None, key=1, there=(2, None)):
    cache = SimpleNamespace(
        mask_label=lambda source: mask_label, trace=lambda source: SimpleNamespace(tokens=TOKENS)
    )
    patches = {
        "cache": cache,
        "other_models": lambda selection: list(others),
        "offers": lambda: [SimpleNamespace(name=name) for name in ("m", *others)],
    }
    with drawn(settings, **patches) as page:
        settings.controls(view(trace=TRACE_OF_A, kind=kind, query=1), shown, b, key, there)
    return page


TOKENS = hand_made.tokens(["[CLS]", "cat", "it"])
TRACE_OF_A = SimpleNamespace(
    tokens=TOKENS, key_tokens=lambda kind: TOKENS, n_heads=lambda layer, kind: 4, n_layers=lambda kind: 3
)


@given(FIELDS.filter(bool), st.booleans(), st.booleans(), st.booleans())
def test_what_b_can_differ_in(changes, is_encoder, has_mask, has_other):
    shown = A.but(**changes)
    page = of_controls(
        shown,
        kind="encoder" if is_encoder else "decoder",
        mask_label="[MASK]" if has_mask else None,
        others=("n",) * has_other,
    )
    chosen = [
        OF[name]
        for name in ("other_head", "other_layer", "other_text", "other_model", "other_masked")
        if name in changes
    ]
    options = [
        what
        for what in ("head", "layer", "sentence", "model", "masked")
        if what in chosen
        or what in ("head", "layer", "sentence")
        or (what == "model" and has_other)
        or (what == "masked" and is_encoder and has_mask)
    ]
    one_of = page.all("segmented_control")
    [many] = page.all("pills")
    assert [call.given[1] for call in (*one_of, many)] == [options] * (1 + len(one_of))
    assert bool(one_of) == (len(chosen) == 1)
    assert (
        many.named["tied"] == chosen
        and [control.named["tied"] for control in one_of] == chosen[: len(one_of)]
    )
    fields = {call.named["field"] for call in page.calls if "field" in call.named}
    assert fields == set(changes)
    for name, count in (("other_layer", 3), ("other_head", 4)):
        if name in changes:
            held = page.field(name)
            assert held["label"].endswith(f"(0–{count - 1})")
            assert held["shown"][0].value(name) == min(changes[name], count - 1)
    if "other_masked" in changes:
        held = page.field("other_masked")
        assert held["options"] == [1, 2] and held["format_func"](2) == "it·2"
        assert held["shown"][0].b.masked == changes["other_masked"]

    # What B differs in, chosen anew: what stays keeps its value, what goes is reset, what is new has a start.
    for picked in [[option] for option in options] + [options]:
        after = A.but(**page.click(many.named["take"], picked))
        assert {what for what in partner.FIELDS if partner.differs(after, what)} >= {*picked} - {"masked"}
        assert not {what for what in partner.FIELDS if partner.differs(after, what)} - {*picked}
        for name, value in changes.items():
            if OF[name] in picked:
                assert after.value(name) == value
        if "head" in picked and "other_head" not in changes:
            assert after.value("other_head") == 2


def test_a_field_of_b_chooses_all_of_b_that_is_shown():
    shown = A.but(other_head=2, other_masked=(1,))
    with drawn(settings) as page:
        settings.choose(shown, other_head=3)
        settings.choose(shown, other_text="it")
    assert A.but(**page.changes[0]) == shown.but(other_head=3)
    assert A.but(**page.changes[1]) == shown.but(other_text="it", other_masked=None)


@given(FIELDS, st.sampled_from([(), (1,)]))
def test_swapping(changes, masked):
    """B becomes the selection; A's own values become B's, and what was selected in B is selected."""
    a = A.but(masked=masked)
    shown = a.but(**changes)
    b = shown.other
    with drawn(settings) as page:
        settings.swap(a, shown, b, (2, None))
    [change] = page.changes
    assert (change["query"], change["key"]) == (2, None)
    swapped = Selection(model="x", text="y").but(**change)
    for name in ("model", "text", "second", "masked", "layer", "head"):
        assert swapped.value(name) == b.value(name)
        assert swapped.other.value(name) == a.value(name)


@given(FIELDS, st.sampled_from([(), (1,)]))
@example({"other_head": 2, "other_layer": 5}, ())
@example({"other_model": "n"}, ())
@example({"other_masked": (1,)}, ())
def test_what_two_selections_differ_in_is_named(changes, masked):
    a = A.but(masked=masked)
    b = a.but(**changes).other
    expected = [
        what
        for what, names in {
            "head": ("head",),
            "layer": ("layer",),
            "sentence": ("text", "second"),
            "model": ("model",),
            "masked tokens": ("masked",),
        }.items()
        if any(a.value(name) != b.value(name) for name in names)
    ]
    assert words.differences(a, b) == expected
    text = words.listed(expected) if expected else ""
    at = [text.index(value.split()[0]) for value in expected]
    assert all(place < other for place, other in pairwise(at))

    masked_side, other = (side_of(masked_label) for masked_label in ("cat", None))
    comparison = compare(masked_side, other)
    names = words.places(a, b, comparison)
    if set(expected) <= {"head", "layer"}:
        assert names == ("L3 H1", "L5 H2")
    elif expected == ["model"]:
        assert names == ("m", "n")
    elif expected == ["masked tokens"]:
        assert names == ("A (“cat” masked)", "B (nothing masked)")
    else:
        assert names == ("A", "B")
    for part, name, own in (("first", "layer 3, head 1", a), ("second", "layer 5, head 2", b)):
        sentence = words.heading(part, a, b, comparison)
        assert name in sentence and ("masked" in sentence) == (a.masked != b.masked)
        assert sentence.startswith("**A**" if part == "first" else "**B**")
        assert (f"· {own.model}" in sentence) == (a.model != b.model)
        assert ("“cat” masked" in sentence) == (part == "first" and a.masked != b.masked)
    names_all = set(expected) <= {"head", "layer"} or expected in (["model"], ["masked tokens"])
    told = words.summary(comparison, (1, 2), a, b)
    assert told.startswith("“cat” → “it” is 0.0% in ") and ("B has another" in told) == (not names_all)
    sentence = words.side_b(a, b, comparison)
    assert sentence.startswith("layer 5, head 2") and (", n" in sentence) == (a.model != b.model)
    assert (f"“{b.text}”" in sentence) == (a.text != b.text)
    assert ("masked: nothing" in sentence) == (a.masked != b.masked)


def side_of(masked_label):
    tokens = hand_made.tokens(["[CLS]", "cat", "it"])
    if masked_label:
        tokens = replace(tokens, masked={1: masked_label})
    axis = Axis.of(tokens)
    place = {"layer": 3, "head": 1} if masked_label else {"layer": 5, "head": 2}
    cells = np.eye(3)
    if masked_label:
        cells[0] = 0.5, 0.5, 0
    return small_records.pattern(cells.tolist(), queries=axis, keys=axis, **place)


@given(st.integers(1, 5), st.integers(1, 5))
def test_positions_are_paired_from_the_first_on(n_first, n_second):
    axes = [Axis.of(small_records.tokens(n)) for n in (n_first, n_second)]
    alignment = pair_positions(*axes)
    expected = [
        [at if at < n_first else -1, at if at < n_second else -1] for at in range(max(n_first, n_second))
    ]
    assert alignment.pairs.tolist() == expected


@given(sides(), st.data())
def test_a_pair_that_is_not_shown_or_has_no_partner(both, data):
    first, second = both
    keep = [
        np.array(data.draw(st.lists(st.booleans(), min_size=len(axis), max_size=len(axis))))
        for axis in (first.queries, first.keys)
    ]
    for is_kept in keep:
        is_kept[0] = True
    shown = first.arranged(first.queries.where(keep[0]), first.keys.where(keep[1]))
    comparison = compare(shown, second)
    picked = data.draw(st.integers(0, len(first.queries) - 1)), data.draw(st.integers(0, len(first.keys) - 1))
    sentence = words.finding(comparison, picked, ("A", "B"))
    names = [f"“{axis.labels[at]}”" for axis, at in zip((first.queries, first.keys), picked, strict=True)]
    partners = [
        {int(shown_axis.positions[a]): int(b) for a, b in side.pairs if a >= 0}
        for side, shown_axis in ((comparison.queries, shown.queries), (comparison.keys, shown.keys))
    ]
    hidden = [name for name, at, side in zip(names, picked, partners, strict=True) if at not in side]
    alone = [name for name, at, side in zip(names, picked, partners, strict=True) if side.get(at, 0) < 0]
    if hidden:
        assert sentence == f"{hidden[0]} is not shown"
    elif alone:
        assert sentence.endswith(f": {alone[0]} has no partner in B")
    for axis, alignment in ((shown.queries, comparison.queries), (shown.keys, comparison.keys)):
        other = second.queries if alignment is comparison.queries else second.keys
        for entry, (here, there) in enumerate(alignment.pairs.tolist()):
            if here < 0:
                continue
            differs = there >= 0 and axis.labels[here] != other.labels[there]
            name = f"“{axis.labels[here]}”" + (f" (in B “{other.labels[there]}”)" if differs else "")
            assert largest.entry_name(alignment, entry) == name


@pytest.mark.parametrize(
    ("measure", "word"), [("weights", "attention"), ("rollout", "rollout"), ("norms", "")]
)
def test_what_lies_on_keys_without_a_partner_is_named(measure, word):
    axes = [Axis.of(hand_made.tokens(labels)) for labels in (["cat"], ["cat", "it"])]
    both = [
        small_records.pattern(
            np.full((1, len(axis)), 0.25).tolist(), queries=axes[0], keys=axis, kind="cross", measure=measure
        )
        for axis in axes
    ]
    sentence = words.without_partner(compare(*both))
    assert (f"of A's {word} and" in sentence) == bool(
        word
    ) and "0 tokens of A (−) and 1 token of B (+)" in sentence


def test_models_that_b_can_be_are_those_on_disk_first():
    offered = [SimpleNamespace(name=name) for name in ("x", "m", "y", "z")]
    here = {"y", "m"}
    with drawn(
        partner, offers=lambda: offered, locate=lambda offer: offer.name if offer.name in here else None
    ):
        assert partner.other_models(A) == ["y", "x", "z"]


@pytest.mark.parametrize(
    ("bundle", "is_here", "is_offered"), [("", False, True), ("", True, False), ("sha", False, False)]
)
def test_a_model_that_is_not_here_is_offered(bundle, is_here, is_offered):
    panels = []
    trace = SimpleNamespace(kinds=("encoder",), n_heads=lambda layer, kind: 9, n_layers=lambda kind: 9)
    with drawn(
        partner,
        offer=lambda name: name,
        locate=lambda offer: "here" if is_here else None,
        downloads=SimpleNamespace(panel=panels.append),
        cache=SimpleNamespace(trace=lambda source: trace),
        replace=lambda of, **changes: SimpleNamespace(**vars(of) | changes),
    ):
        of_b = partner.view_of_b(view(), A.but(bundle=bundle, other_head=2))
    assert panels == ["m"] * is_offered and (of_b is None) == is_offered


@pytest.mark.parametrize("longest", [MOST_COUNTED, MOST_COUNTED + 1])
def test_a_part_as_long_as_the_whole_is_the_whole(longest):
    axis = Axis.of(small_records.tokens(longest))
    pattern = small_records.pattern(np.zeros((longest, longest)).tolist(), queries=axis, keys=axis)
    comparison = compare(pattern, pattern)
    assert zoom.zoom_note(comparison, longest) == zoom.zoom_note(comparison, None) == ""
    assert f"Shown are {longest - 1} of {longest} queries" in zoom.zoom_note(comparison, longest - 1)
    with drawn(zoom) as page:
        zoom.zoom_buttons(comparison, None, key="k")
    assert bool(page.all("button")) == (longest > MOST_COUNTED)
