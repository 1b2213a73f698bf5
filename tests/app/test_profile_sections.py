"""What the parts of the page Profiles draw, from profiles with hand-written rows."""

import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from attnviz.figures.numbers import cell_text, number_text, share_text
from attnviz.records import Head
from tests import hand_made
from tests.app.screen import component, drawn, facts, figure, numbers, ranked_lists
from tests.drawn_parts import drawn as noted
from tests.profiles import (
    KINDS,
    WEIGHTS,
    called,
    difference_of,
    interval,
    of_kind,
    profile_of,
    relation_title,
)
from ui.rooms.many_texts.profiles import one_head, overview, own_file
from ui.rooms.many_texts.profiles import ranked as ranked_part
from ui.rooms.many_texts.profiles.choices import ProfileSettings
from ui.rooms.many_texts.profiles.ranked import with_interval
from ui.rooms.many_texts.profiles.screen import Number, Other, Screen, difference, number, number_names
from ui.runtime.profiles import Listed

PLACE = Head(1, 1)
AT = 4


@pytest.fixture(autouse=True)
def linked(monkeypatch) -> list[Any]:
    """What links to other pages would show."""
    selections: list[Any] = []
    monkeypatch.setattr(one_head, "link_to", lambda *args, **named: selections.append(named["selection"]))
    return selections


def screen_of(
    seed: int, kind: str, **changes: Any
) -> tuple[Screen, list[dict[str, Any]], list[dict[str, Any]]]:
    profile, rows, examples = profile_of(seed)
    names = [*number_names(profile, kind)]
    x, y = number(profile, kind, names[0]), number(profile, kind, names[1])
    given = {
        "view": SimpleNamespace(
            theme="light",
            trace=SimpleNamespace(kinds=()),
            selection=SimpleNamespace(
                alone=lambda text, **place: (text, place), model="mine", profile=SimpleNamespace(search="")
            ),
        ),
        "corpus": "",
        "weights": WEIGHTS,
        "profile": profile,
        "failures": (),
        "kind": kind,
        "heads": profile.heads(kind),
        "head": PLACE,
        "x": x,
        "y": y,
        "ranked": y,
        "other": None,
        "kept": profile.heads(kind),
    }
    search = changes.pop("search", "")
    given["view"].selection.of(ProfileSettings).search = search
    return Screen(**given | changes), of_kind(rows, kind), of_kind(examples, kind)


def beside(number_: Number, seed: int, kind: str, *, has_same_heads: bool) -> Other:
    """Another profile of the model, or one of another model."""
    about = {"model": "theirs", "weights": WEIGHTS if has_same_heads else {}}
    return Other(
        name="theirs",
        listed=Listed(name="theirs", folder=Path("theirs"), written=0, about=about),
        profile=profile_of(seed)[0],
        kind=kind,
        number=number_,
        has_same_heads=has_same_heads,
    )


CASES = [(seed, kind) for seed in range(3) for kind in KINDS]


@pytest.mark.parametrize(("seed", "kind"), CASES)
def test_the_selected_head(seed, kind, linked):
    screen, rows, examples = screen_of(seed, kind)
    row = rows[AT]

    def draw() -> None:
        one_head.places(screen)
        one_head.relations(screen)
        one_head.pairs(screen)
        one_head.examples(screen)

    at = drawn(draw)
    has_distances = row["distances"] is not None
    if has_distances:
        np.testing.assert_allclose(numbers(figure(at, "profile_distances")["data"][0]["y"]), row["distances"])
    np.testing.assert_allclose(numbers(figure(at, "profile_positions")["data"][0]["y"]), row["positions"])
    assert figure(at, "profile_positions")["data"][0]["customdata"] == [str(number) for number in range(32)]

    there = [relation for relation in row["relations"] if relation["words"] >= 20]
    there.sort(key=lambda relation: relation["offset_accuracy"] - relation["accuracy"])
    if there:
        listed = component(at, "profile_relations")["rows"]
        for shown, relation in zip(listed, there, strict=True):
            label = f" ({relation['relation']})"
            title = relation_title(relation["relation"], relation["direction"]).capitalize()
            assert shown["text"] == title.removesuffix(label) + label
            expected = [share_text(relation[name]) for name in ("accuracy", "low", "high", "offset_accuracy")]
            assert list(facts(shown["amount"]).numbers) == expected
            assert shown["length"] == relation["accuracy"] and not shown["picked"]
        [in_caption] = [facts(element.value) for element in at.caption if "direct object" in element.value]
        first = there[0]
        assert in_caption.has("95%", f"{first['words']:,}", f"{first['offset']:+d}".replace("-", "−"), "20")

    for key, name in (("profile_tokens", "token_pairs"), ("profile_parts", "part_pairs")):
        pairs = row[name][:10]
        assert [element.key for element in at.get("bidi_component")].count(key) == bool(pairs)
        if not pairs:
            continue
        most = pairs[0]["mass"] - pairs[0]["expected"]
        for shown, pair in zip(component(at, key)["rows"], pairs, strict=True):
            assert (shown["text"], shown["key"], shown["picked"]) == (pair["query"], pair["key"], False)
            assert list(facts(shown["amount"]).numbers) == [
                number_text(pair["mass"]),
                number_text(pair["expected"]),
            ]
            assert shown["length"] == pytest.approx((pair["mass"] - pair["expected"]) / most)

    def examples_of(decile: int | None) -> None:
        own = [
            example
            for example in examples
            if (example["layer"], example["head"]) == PLACE and example["decile"] == decile
        ]
        keys = [
            element.key
            for element in at.get("bidi_component")
            if str(element.key).startswith("profile_arcs_")
        ]
        shown = [component(at, key) for key in keys]
        assert [example["labels"] for example in shown] == [example["labels"] for example in own]
        assert [example["weights"] for example in shown] == [list(example["weights"]) for example in own]
        assert [example["query"] for example in shown] == [
            None if kind == "cross" else example["query"] for example in own
        ]
        written = [cell_text(example["activation"]) for example in own]
        assert [element.value for element in at.markdown if element.value in written] == written
        places = [(example["text"], {"query": example["query"], "key": None}) for example in own]
        assert linked[-len(own) :] == ([] if kind == "cross" else places)

    examples_of(None)
    for decile in (10, 1, 3):
        at.segmented_control(key="profile_decile").set_value(str(decile)).run()
        examples_of(decile)


@pytest.mark.parametrize("own", [0.5, 3.2, 99.0, None])
def test_the_decile_of_the_readers_sentence_is_told(own, monkeypatch):
    screen, _, _ = screen_of(0, "decoder")
    monkeypatch.setattr(one_head, "own_activation", lambda screen: own)
    at = drawn(lambda: one_head.examples(screen))
    in_lines = [facts(element.value) for element in at.markdown if element.value.startswith("Your sentence")]
    deciles = [number for number in range(1, 11) if own is not None and own >= number + 1 / 8]
    assert (
        in_lines == []
        if own is None
        else in_lines[0].numbers == (cell_text(own), str(max([1, *deciles])), "10")
    )
    if own is not None:
        assert in_lines[0].heads == (PLACE,)


@pytest.mark.parametrize("has_lengths", [False, True])
@pytest.mark.parametrize("has_matrix", [False, True])
@pytest.mark.parametrize("place", [PLACE, Head(0, 2)])
def test_how_much_a_head_adds_to_the_readers_sentence(has_lengths, has_matrix, place):
    """The longest of what it adds to its own tokens; nothing where the profile's lengths are after a W_O that is not here."""
    rng = np.random.default_rng(1)
    weights = rng.integers(1, 5, (2, 3, 4, 4)).astype(float)
    weights /= weights.sum(axis=-1, keepdims=True)
    lengths = rng.integers(1, 9, (2, 3, 4)).astype(np.float32) if has_matrix else None
    trace = hand_made.trace(weights, ["[CLS]", "cat", "door", "[SEP]"], lengths=lengths)
    columns = {"entropy_norms": np.array([0.5 if has_lengths else math.nan] * 6)}

    class Numbers:
        def numbers(self, name: str, kind: str) -> np.ndarray:
            return columns[name]

    screen = SimpleNamespace(view=SimpleNamespace(trace=trace), kind="encoder", head=place, profile=Numbers())
    activation = one_head.own_activation(screen)
    if has_lengths and not has_matrix:
        assert activation is None
        return
    own = [1, 2]
    scale = lengths[place] if has_matrix else np.ones(4)
    expected = [
        math.sqrt(
            math.fsum((float(weights[(*place, query, key)]) * float(scale[key])) ** 2 for key in range(4))
        )
        for query in own
    ]
    assert activation == pytest.approx(max(expected), rel=1e-5)
    assert one_head.own_activation(SimpleNamespace(**vars(screen) | {"kind": "cross"})) is None
    assert one_head.own_activation(SimpleNamespace(**vars(screen) | {"head": Head(2, 0)})) is None


@pytest.mark.parametrize(("seed", "kind"), CASES)
@pytest.mark.parametrize("is_compared", [False, True])
def test_the_ranking_and_the_points(seed, kind, is_compared, monkeypatch):
    plain, _, _ = screen_of(seed, kind)
    heads = plain.heads
    rng = np.random.default_rng(seed)
    other = Number(
        name=plain.y.name,
        title="Other",
        means=rng.integers(0, 9, 6) / 8,
        ends=None if seed == 2 else (plain.y.means - 1, plain.y.means + 1),
    )
    ranked = difference(plain.y, other) if is_compared else plain.y
    kept = [heads[index] for index in rng.permutation(6)[: 6 if seed else 3]]
    other_profile = beside(other, seed, kind, has_same_heads=True) if is_compared else None
    screen, _, _ = screen_of(seed, kind, ranked=ranked, other=other_profile, kept=kept)
    if seed:
        monkeypatch.setattr(overview, "MOST_ROWS", 4)

    def draw() -> None:
        overview.points(screen)
        overview.ranking(screen)

    at = drawn(draw)
    [listed] = ranked_lists(at)
    shown = kept[: 4 if seed else 3]
    means = [float(ranked.means[heads.index(head)]) for head in shown]
    largest = np.nanmax(np.abs(means)) if np.any(np.nan_to_num(means)) else 1.0
    assert [row["text"] for row in listed] == [head.title for head in shown]
    assert [row["picked"] for row in listed] == [head == PLACE for head in shown]
    for row, head, mean in zip(listed, shown, means, strict=True):
        assert row["amount"] == with_interval(ranked, heads.index(head))
        if np.isfinite(mean) and np.isfinite(means).all():
            assert row["length"] == pytest.approx(mean / largest)
    in_captions = facts(" ".join(element.value for element in at.caption)).numbers
    expected = ["4", "6"] if seed else []
    if is_compared and ranked.ends is not None and np.isfinite(ranked.ends[0]).any():
        lows, highs = (end.tolist() for end in ranked.ends)
        n_moved = sum(low > 0 or high < 0 for low, high in zip(lows, highs, strict=True))
        n_head = sum(not math.isnan(mean) for mean in ranked.means.tolist())
        expected = [str(n_moved), str(n_head), "95%", "0", "1", *expected]
    assert list(in_captions) == expected
    [points] = figure(at, "profile_heads")["data"]
    title = figure(at, "profile_heads")["layout"]["yaxis"]["title"]["text"]
    assert title.startswith(screen.y.title) and ("Bundled sentences" in title) == is_compared
    np.testing.assert_array_equal(numbers(points["y"]), screen.y.means)
    np.testing.assert_array_equal(numbers(points["x"]), screen.x.means)
    opacities = numbers(points["marker"]["opacity"])
    assert [opacity > 0.5 for opacity in opacities] == [head in kept or head == PLACE for head in heads]


@pytest.mark.parametrize(("seed", "kind"), CASES)
@pytest.mark.parametrize("n_row", [2, 24])
def test_heads_and_numbers_are_found_by_name(seed, kind, n_row, monkeypatch):
    """Heads with a matching name, with their shares; and for each number with a matching name the head with the largest."""
    wanted = "TOKEN" if seed else "d"
    monkeypatch.setattr(overview, "MOST_ROWS", n_row)
    screen, rows, _ = screen_of(seed, kind, search=wanted)
    at = drawn(lambda: overview.ranking(screen))
    heads = screen.heads
    named = [
        (head, name, share)
        for head, row in zip(heads, rows, strict=True)
        for name, share in called(row).items()
        if wanted.lower() in name.lower()
    ]
    named = sorted(named, key=lambda entry: -entry[2].share)[:n_row]
    lists = ranked_lists(at)
    if named:
        for shown, (head, name, share) in zip(lists.pop(0), named, strict=True):
            assert shown["text"] == f"{head.title}: {name}"
            assert (
                shown["amount"]
                == f"{cell_text(share.share)} ({cell_text(share.low)} to {cell_text(share.high)})"
            )
            assert shown["length"] == share.share and shown["picked"] == (head == PLACE)
    else:
        assert any("No head is called so" in element.value for element in at.caption)
    titles = number_names(screen.profile, kind)
    best = []
    for name, title in titles.items():
        if wanted.lower() in title.lower():
            of_heads = [interval(row, name) for row in rows]
            largest = max(of_head.mean for of_head in of_heads if not math.isnan(of_head.mean))
            place = [of_head.mean for of_head in of_heads].index(largest)
            best.append((f"{title}: {heads[place].short}", of_heads[place], heads[place]))
    best = best[:8]
    assert len(lists) == bool(best)
    if best:
        longest = max(1.0, *(abs(of_head.mean) for _, of_head, _ in best))
        for shown, (text, of_head, head) in zip(lists[0], best, strict=True):
            assert (shown["text"], shown["amount"]) == (text, of_head.written)
            assert shown["length"] == pytest.approx(of_head.mean / longest)
            assert shown["picked"] == (head == PLACE)


@pytest.mark.parametrize(("seed", "kind"), CASES)
@pytest.mark.parametrize("is_searched", [True, False])
def test_a_row_selects_its_head(seed, kind, is_searched):
    """That of a number ranks all heads by it, too."""
    screen, _, _ = screen_of(seed, kind, search=("TOKEN" if seed else "d") * is_searched)
    titles = number_names(screen.profile, kind)
    with noted(overview, ranked_part) as page:
        overview.ranking(screen)
    for listed in page.all("ranked_list"):
        assert listed.named["scrolls"]
        for number_, row in enumerate(listed.given[0]):
            picked = page.click(listed.named["on_pick"], number_)
            head = Head(picked["layer"], picked["head"])
            if listed.named["key"] == "profile_numbers":
                assert row.text == f"{titles[picked['profile_y']]}: {head.short}"
                assert picked["profile_search"] == ""
            else:
                assert row.text.startswith(head.title) and len(picked) == 2


@pytest.mark.parametrize("corpora", [[""], ["", "cats"]])
@pytest.mark.parametrize("others", [{}, {"dogs": "listed"}])
def test_texts_and_profiles_are_chosen_where_there_are_several(corpora, others):
    screen, _, _ = screen_of(0, KINDS[0])
    selection = SimpleNamespace(but=lambda **changes: changes)
    screen = Screen(
        **{name: getattr(screen, name) for name in Screen.__slots__}
        | {"view": SimpleNamespace(selection=selection)}
    )
    named_as = {"other_name": lambda listed, weights: f"{listed}!"}
    there = {"corpora": lambda weights: corpora, "others": lambda weights: others | {"": "own"}}
    with noted(overview, own_lines=lambda *_: None, to_do=lambda: None, **there, **named_as) as page:
        overview.controls(screen)
        fields = {call.named["field"]: call.named for call in page.all("selectbox")}
        assert ("profile_corpus" in fields) == (len(corpora) > 1)
        assert ("profile_other" in fields) == bool(others)
        if others:
            asked = fields["profile_other"]
            assert [asked["format_func"](name) for name in asked["options"]] == ["Nothing", "listed!"]
    assert {"profile_x", "profile_y"} <= {*fields} and page.field("profile_search")


@pytest.mark.parametrize(("n_byte", "is_read"), [(0, True), (2 * 1024**2, True), (2 * 1024**2 + 1, False)])
def test_a_file_of_texts_of_at_most_so_many_bytes_is_read(n_byte, is_read, monkeypatch):
    own, taken, forgotten = own_file.OwnFile(n_file=3), [], []
    file = SimpleNamespace(name="a.txt", getvalue=lambda: bytes(n_byte))
    monkeypatch.setattr(own_file, "TEXTS_MB", 2)
    with noted(
        own_file,
        of_session=lambda kind: own,
        uploads=SimpleNamespace(forget=forgotten.append),
        _read=lambda name, data, column: taken.append((name, len(data), column)),
        st=SimpleNamespace(session_state={"texts_file_3": file}),
    ) as page:
        own_file._take_file()
        assert own.n_file == 4 and forgotten == [file] and page.changes == [{}]
        own_file._take_file()  # the next uploader is empty
        assert own.n_file == 4 and len(forgotten) == 1
    assert taken == [("a.txt", n_byte, None)] * is_read
    assert ("a.txt has more than 2 MB" in own.problem) == (not is_read)


@pytest.mark.parametrize(("waiting", "column"), [(True, "b"), (True, "c"), (True, None), (False, "b")])
def test_a_column_of_the_waiting_file_is_read(waiting, column):
    own, taken = own_file.OwnFile(n_file=2, columns=("a", "b")), []
    own.waiting = ("t.csv", b"data") if waiting else None
    with noted(own_file, of_session=lambda kind: own, _read=lambda *given: taken.append(given)) as page:
        own_file.to_do()
        own.problem = "It is wrong"
        own_file.to_do()
        assert page.texts == ["It is wrong"]
        boxes = page.all("selectbox")[: waiting * 1]
        assert len(page.all("selectbox")) == 2 * waiting and all(box.given[1] == ("a", "b") for box in boxes)
        assert [box.named["key"] for box in boxes] == ["texts_column_2"] * waiting
    with noted(
        own_file,
        of_session=lambda kind: own,
        _read=lambda *given: taken.append(given),
        st=SimpleNamespace(session_state={"texts_column_2": column}),
    ):
        own_file._take_column()
    assert taken == [("t.csv", b"data", "b")] * (waiting and column == "b")


@pytest.mark.parametrize("columns", [(), ("a", "b")])
@pytest.mark.parametrize("column", [None, "b"])
def test_what_a_session_holds_of_its_file(columns, column):
    """The file before it stays until the column of a table is chosen."""
    own, held = own_file.OwnFile(name="before.txt", n_read=7, entries=("before",)), []
    own.problem = "What was wrong before."
    contents = SimpleNamespace(columns=columns, entries=("after",), n_bytes=5)
    with (
        noted(own_file, of_session=lambda kind: own, elsewhere=lambda *given: contents) as page,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setattr(own_file.Brought, "counts", lambda own, n_byte: held.append(n_byte))
        own_file._read("t.csv", b"data", column)
        digests = {own.digest}
        own_file._read("t.csv", b"data", "other")
        digests.add(own.digest)
    assert own.problem == ""
    if columns:
        assert (own.name, own.entries, own.waiting, own.columns) == (
            "before.txt",
            ("before",),
            ("t.csv", b"data"),
            columns,
        )
        assert held == [7 + 4] * 2 and page.changes == []
    else:
        assert (own.name, own.entries, own.column, own.waiting) == ("t.csv", ("after",), "other", None)
        assert held == [5, 5] and page.changes == [{"profile_corpus": "file"}] * 2 and len(digests) == 2
    own.forget()
    assert (own.n_bytes, own.n_read, own.name, own.entries, own.waiting) == (0, 0, "", (), None)


@pytest.mark.parametrize(("seed", "kind"), CASES)
def test_two_models_are_beside_each_other(seed, kind):
    """The largest heads of each with bars of one scale; a head without the number is in neither list."""
    plain, rows, _ = screen_of(seed, kind)
    profile, their_rows, _ = profile_of(seed + 5)
    theirs = of_kind(their_rows, kind)
    name = next(name for name in number_names(profile, kind) if name in number_names(plain.profile, kind))
    y = number(plain.profile, kind, name)
    other = beside(number(profile, kind, name), seed + 5, kind, has_same_heads=False)
    own = [interval(row, name) for row in rows]
    their = [interval(row, name) for row in theirs]

    def order(numbers_: list[Any]) -> list[int]:
        there = [at for at, of_head in enumerate(numbers_) if not math.isnan(of_head.mean)]
        return sorted(there, key=lambda at: -numbers_[at].mean)

    kept = [plain.heads[index] for index in order(own)]
    screen, _, _ = screen_of(seed, kind, y=y, ranked=y, other=other, kept=kept)

    def draw() -> None:
        overview.points(screen)
        overview.ranking(screen)

    at = drawn(draw)
    longest = max(abs(of_head.mean) for of_head in own + their if not math.isnan(of_head.mean)) or 1.0
    for key, numbers_ in (("profile_ranking", own), ("profile_ranking_other", their)):
        for shown, place in zip(component(at, key)["rows"], order(numbers_), strict=True):
            assert shown["text"] == plain.heads[place].title
            assert shown["amount"] == numbers_[place].written
            assert shown["length"] == pytest.approx(numbers_[place].mean / longest)
            assert shown["picked"] == (key == "profile_ranking" and plain.heads[place] == PLACE)
    first, second = figure(at, "profile_heads")["data"]
    for drawn_points, numbers_ in ((first, own), (second, their)):
        np.testing.assert_array_equal(
            numbers(drawn_points["y"]).astype(float), [number.mean for number in numbers_]
        )
        assert numbers(drawn_points["x"]).tolist() == [head.layer for head in plain.heads]
    assert (first["name"], second["name"]) == ("mine", "theirs")


@pytest.mark.parametrize(("seed", "kind"), CASES)
def test_a_comparison_is_drawn_with_its_diagonal(seed, kind):
    """Each axis is the number over one of the two corpora, and the rows are the differences."""
    plain, rows, _ = screen_of(seed, kind)
    profile, their_rows, _ = profile_of(seed + 5)
    name = next(name for name in number_names(profile, kind) if name in number_names(plain.profile, kind))
    y, theirs = (number(of_texts, kind, name) for of_texts in (plain.profile, profile))
    other = beside(theirs, seed + 5, kind, has_same_heads=True)
    screen, _, _ = screen_of(seed, kind, x=theirs, y=y, ranked=difference(y, theirs), other=other)

    def draw() -> None:
        overview.points(screen)
        overview.ranking(screen)

    at = drawn(draw)
    picture = figure(at, "profile_heads")
    [points] = picture["data"]
    both = (
        [interval(row, name).mean for row in rows],
        [interval(row, name).mean for row in of_kind(their_rows, kind)],
    )
    np.testing.assert_array_equal(numbers(points["y"]).astype(float), both[0])
    np.testing.assert_array_equal(numbers(points["x"]).astype(float), both[1])
    [line] = picture["layout"]["shapes"]
    there = [mean for mean in (*both[0], *both[1]) if not math.isnan(mean)]
    assert (line["x0"], line["x1"]) == (line["y0"], line["y1"])
    assert line["x0"] <= min(there) and line["x1"] >= max(there)
    for shown, *pair in zip(
        component(at, "profile_ranking")["rows"], rows, of_kind(their_rows, kind), strict=True
    ):
        assert shown["amount"] == difference_of(*(interval(row, name) for row in pair)).written


def test_no_head_of_a_name():
    screen, _, _ = screen_of(0, "decoder", kept=[], search="zebra")
    at = drawn(lambda: overview.ranking(screen))
    assert ranked_lists(at) == [] and len(at.caption) == 1
    assert "No head is called so" in at.caption[0].value
