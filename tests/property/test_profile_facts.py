"""What the page Profiles says and what a profile gives back, found again in the rows that the profile was made of."""

import json
import math
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnviz.corpus.columns import EDGES, MEASURED, NORMS
from attnviz.corpus.naming import NAMES, RELATIONS, names_of
from attnviz.corpus.profile import Profile, read_profile
from attnviz.corpus.writing import EXAMPLES_SCHEMA, heads_schema
from attnviz.errors import CorpusError, SelectionError
from attnviz.figures.numbers import cell_text, power_text
from attnviz.figures.profile import draw_shares, draw_two_numbers
from attnviz.figures.theme import LIGHT
from attnviz.heads import PROBES, STATISTICS
from attnviz.records import Head
from tests.app.screen import facts
from tests.drawing import MARKS, draw_few
from tests.profiles import KINDS, PLACES, of_kind, profile_of
from ui.sections.profiles import offered as offered_profiles
from ui.sections.profiles import screen as profile_screen
from ui.sections.profiles.offered import OWN
from ui.sections.profiles.one_head import best_relations, decile_of
from ui.sections.profiles.overview import about, as_csv_rows, headline, n_apart, python_lines, with_interval
from ui.sections.profiles.screen import Number, Screen, difference, number, number_like, number_names

pytestmark = MARKS
draw_few(5)


def same(found: np.ndarray, expected: list[float | None]) -> None:
    np.testing.assert_array_equal(found, [math.nan if one is None else one for one in expected])


seeds, kinds = st.integers(0, 4), st.sampled_from([None, *KINDS])


@given(seeds, kinds)
def test_a_profile_gives_back_the_rows_of_each_kind(seed, kind):
    profile, rows, examples = profile_of(seed)
    own = of_kind(rows, kind)
    assert profile.kinds == KINDS
    assert [tuple(one) for one in profile.heads(kind)] == [(row["layer"], row["head"]) for row in own]
    for name in ("previous", "entropy_norms_high", "copying"):
        same(profile.numbers(name, kind), [row[name] for row in own])
    for name in ("kind", "layer", "previou"):
        with pytest.raises(SelectionError):
            profile.numbers(name, kind)
    for at, relation in enumerate(rows[0]["relations"]):
        found = profile.accuracies(relation["relation"], relation["direction"], kind)
        for numbers, name in zip(found, ("accuracy", "low", "high"), strict=True):
            assert numbers.tolist() == [row["relations"][at][name] for row in own]
    with pytest.raises(SelectionError):
        profile.accuracies("dobj", "found by", kind)
    for row in own:
        head = Head(row["layer"], row["head"])
        distances = row["distances"] or [None] * (2 * len(EDGES) + 1)
        same(profile.distances(head, kind), distances)
        same(profile.positions(head, kind), row["positions"])
        assert [one.words for one in profile.relations(head, kind)] == [
            one["words"] for one in row["relations"]
        ]
        assert [one.accuracy for one in profile.relations(head, kind)] == [
            one["accuracy"] for one in row["relations"]
        ]
        assert [one.query for one in profile.token_pairs(head, kind)] == [
            one["query"] for one in row["token_pairs"]
        ]
        assert [one.mass for one in profile.part_pairs(head, kind)] == [
            one["mass"] for one in row["part_pairs"]
        ]
        expected = [
            one for one in examples if (one["kind"], one["layer"], one["head"]) == (row["kind"], *head)
        ]
        found_examples = profile.examples(head, kind)
        assert [one.text for one in found_examples] == [one["text"] for one in expected]
        assert [one.decile for one in found_examples] == [one["decile"] for one in expected]
        assert [list(one.weights) for one in found_examples] == [list(one["weights"]) for one in expected]
    with pytest.raises(SelectionError):
        profile.distances(Head(2, 0), kind)


def called(row: dict[str, Any]) -> list[str]:
    """The names of a head, from its row."""
    found = [one.called for name, one in PROBES.items() if (row[f"{name}_low"] or 0) > 0.5]
    found += [said for name, said in NAMES.items() if (row[f"{name}_low"] or 0) > 0.5]
    if "[CLS]" in found:
        found = [one for one in found if one != "first token"]
    for one in row["relations"]:
        if one["words"] >= 20 and one["low"] > 0.5 and one["low"] > one["offset_accuracy"]:
            words = "direct object (dobj)" if one["relation"] == "dobj" else "odd"
            found.append(f"{words}, {one['direction']}")
    return list(dict.fromkeys(found))


@given(seeds, st.sampled_from(KINDS))
def test_the_names_of_a_head(seed, kind):
    profile, rows, _ = profile_of(seed)
    assert RELATIONS["dobj"] == "direct object" and "odd" not in RELATIONS
    for row in of_kind(rows, kind):
        assert list(names_of(profile, Head(row["layer"], row["head"]), kind)) == called(row)


@given(seeds, st.sampled_from(KINDS))
def test_the_numbers_that_heads_are_found_by(seed, kind):
    """Each that any head has, of relations those of enough words, with the ends of its interval; copying has none."""
    profile, rows, _ = profile_of(seed)
    own = of_kind(rows, kind)
    columns = {name: STATISTICS[name].title for name in MEASURED}
    columns |= {f"{name}{NORMS}": f"{title}, norm-based" for name, title in columns.items()}
    columns |= {name: one.title for name, one in PROBES.items()}
    columns |= {"activation": "Length that is added", "copying": "Copying score"}
    expected = {name: title for name, title in columns.items() if any(row[name] is not None for row in own)}
    for one in own[0]["relations"]:
        if one["words"] >= 20:
            words = "Direct object (dobj)" if one["relation"] == "dobj" else "Odd"
            expected[f"{one['relation']} {one['direction']}"] = f"{words}, {one['direction']}"
    assert number_names(profile, kind) == expected
    for name, title in expected.items():
        found = number(profile, kind, name)
        assert (found.name, found.title) == (name, title)
        if name in columns:
            same(found.means, [row[name] for row in own])
            assert (found.ends is None) == (name == "copying")
            for ends, end in zip(found.ends or (), ("low", "high"), strict=False):
                same(ends, [row[f"{name}_{end}"] for row in own])
        else:
            at = [f"{one['relation']} {one['direction']}" for one in own[0]["relations"]].index(name)
            same(found.means, [row["relations"][at]["accuracy"] for row in own])
            assert found.ends is not None
            for ends, end in zip(found.ends, ("low", "high"), strict=True):
                same(ends, [row["relations"][at][end] for row in own])


def test_the_same_number_over_other_texts():
    profile, rows, _ = profile_of(3)
    name = next(iter(number_names(profile, "cross")))
    wanted, heads = number(profile, "cross", name), profile.heads("cross")
    found = number_like(profile, "cross", heads, wanted, "others")
    assert found is not None and found.title == f"{wanted.title}, others"
    same(found.means, [row[name] for row in of_kind(rows, "cross")])
    assert number_like(profile, "encoder", heads, wanted, "others") is None
    assert number_like(profile, "cross", heads[:-1], wanted, "others") is None
    gone = Number(name="nothing", title="Nothing", means=wanted.means, ends=None)
    assert number_like(profile, "cross", heads, gone, "others") is None


def lists(n: int) -> st.SearchStrategy[list[float]]:
    return st.lists(st.sampled_from([0.0, 0.125, 0.25, 0.5]), min_size=n, max_size=n)


@given(lists(4), lists(4), lists(4), lists(4), lists(4), lists(4), st.sampled_from([None, "one", "other"]))
def test_the_difference_of_two_profiles(one, other, one_low, one_high, other_low, other_high, without):
    def given_(name: str, means: list[float], low: list[float], high: list[float]) -> Number:
        ends = np.subtract(means, low), np.add(means, high)
        return Number(name="self", title="Own", means=np.array(means), ends=None if name == without else ends)

    found = difference(given_("one", one, one_low, one_high), given_("other", other, other_low, other_high))
    assert (found.name, found.title) == ("self", "Own: difference")
    assert found.means.tolist() == [a - b for a, b in zip(one, other, strict=True)]
    if without:
        assert found.ends is None and n_apart(found) is None
        return
    assert found.ends is not None
    n_beyond = 0
    for at in range(4):
        middle = one[at] - other[at]
        low = middle - math.sqrt(one_low[at] ** 2 + other_high[at] ** 2)
        high = middle + math.sqrt(one_high[at] ** 2 + other_low[at] ** 2)
        assert (found.ends[0][at], found.ends[1][at]) == pytest.approx((low, high))
        n_beyond += low > 1e-12 or high < -1e-12
    assert n_apart(found) == n_beyond


def numbered(profile: Profile, kind: str, name: str) -> Number:
    names = number_names(profile, kind)
    return number(profile, kind, name if name in names else next(iter(names)))


def screen_of(profile: Profile, kind: str, head: Head, **changes: Any) -> Screen:
    y = numbered(profile, kind, "previous")
    given_ = {
        "view": SimpleNamespace(theme="light"),
        "corpus": "",
        "profile": profile,
        "kind": kind,
        "heads": profile.heads(kind),
        "head": head,
        "x": numbered(profile, kind, "entropy"),
        "y": y,
        "ranked": y,
        "is_compared": False,
        "kept": profile.heads(kind),
    }
    return Screen(**given_ | changes)


def interval_of(row: dict[str, Any], name: str) -> str:
    mean, low, high = (row[name + end] for end in ("", "_low", "_high"))
    return cell_text(mean) + ("" if low is None else f" ({cell_text(low)} to {cell_text(high)})")


@given(seeds, st.sampled_from(KINDS), st.integers(0, 5))
def test_the_headline_of_a_profile(seed, kind, at):
    profile, rows, _ = profile_of(seed)
    own = of_kind(rows, kind)
    head = profile.heads(kind)[at]
    screen = screen_of(profile, kind, head)
    said, name = headline(screen), screen.y.name
    names = called(own[at])
    begin, rest = said.split(". ", 1)
    assert begin == f"{head.title}: {', '.join(names)}" if names else begin == f"{head.title} has no name"
    assert rest.startswith(screen.y.title)
    if own[at][name] is None:
        assert facts(rest).numbers == ()
        return
    known = [row[name] for row in own if row[name] is not None]
    rank = sum(one > own[at][name] for one in known) + 1
    assert f"{interval_of(own[at], name)}, rank {rank} of {len(known)}" in rest
    assert with_interval(screen.y, at) == interval_of(own[at], name)


@given(seeds, st.sampled_from([1100, 1099, 0]), st.sampled_from([0, 1003]))
def test_what_a_profile_is_of(seed, n_passed, n_failed):
    profile, rows, _ = profile_of(seed)
    profile = replace(profile, n_passed=n_passed, n_failed=n_failed)
    screen = screen_of(profile, "cross", profile.heads("cross")[0])
    said = about(screen)
    has_interval = any(row[f"{screen.y.name}_low"] is not None for row in of_kind(rows, "cross"))
    assert ("95%" in said) == has_interval
    expected = ["1,200", "34,567", *["95%"] * has_interval]
    expected += ["1,100"] if n_passed == 1100 else [f"{1100 - n_passed:,}", "1,100"]
    assert facts(said).numbers == (*expected, power_text(2.5e-7), *["1,003"] * bool(n_failed))


@given(seeds)
def test_the_relations_that_a_head_finds_best(seed):
    """Those furthest above a fixed distance, of relations of enough words."""
    profile, rows, _ = profile_of(seed)
    for row in of_kind(rows, "cross"):
        found = best_relations(profile.relations(Head(row["layer"], row["head"]), "cross"))
        above = [one.accuracy - one.offset_accuracy for one in found]
        assert above == sorted(above, reverse=True)
        assert sorted((one.relation, one.direction) for one in found) == sorted(
            (one["relation"], one["direction"]) for one in row["relations"] if one["words"] >= 20
        )


@given(seeds, st.sampled_from([0.5, 1.125, 4.0, 4.125, 4.2, 10.2, 13.0]))
def test_the_decile_of_a_sentence(seed, own):
    profile, _, _ = profile_of(seed)
    found = decile_of(profile.examples(Head(1, 2), "cross"), own)
    lowest = {decile: decile + 1 / 8 for decile in range(1, 11)}
    assert found == max([1, *(one for one, least in lowest.items() if own >= least)])
    assert decile_of([one for one in profile.examples(Head(1, 2)) if one.decile is None], own) is None


def points(drawn: Any, name: str) -> list[Any]:
    return np.asarray(drawn[name]).tolist()


@given(seeds, st.sampled_from([None, 0, 4]), st.booleans(), st.sampled_from([None, (), (1, 4)]))
def test_points_of_two_numbers(seed, at, has_ends, shown):
    rng = np.random.default_rng(seed)
    across, up, low, high = (rng.random(6) for _ in range(4))
    heads = [Head(layer, head) for layer in range(2) for head in range(3)]
    figure = draw_two_numbers(
        across,
        up,
        heads=heads,
        titles=("Right", "Up"),
        ends=(low, high) if has_ends else None,
        picked=None if at is None else heads[at],
        shown=None if shown is None else [heads[one] for one in shown],
    )
    [drawn] = figure.data
    assert points(drawn, "x") == across.tolist() and points(drawn, "y") == up.tolist()
    assert points(drawn, "customdata") == [[*one] for one in heads]
    is_picked = [one == at for one in range(6)]
    assert [one == "diamond" for one in drawn.marker.symbol] == is_picked
    assert [one == LIGHT.picked for one in drawn.marker.color] == is_picked
    sizes = drawn.marker.size
    assert [one > min(sizes) for one in sizes] == (is_picked if at is not None else [False] * 6)
    clear = [one > 0.5 for one in drawn.marker.opacity]
    assert clear == [shown is None or one in shown or one == at for one in range(6)]
    if has_ends:
        assert drawn.error_y.array.tolist() == [high[one] - up[one] if one == at else 0 for one in range(6)]
        assert drawn.error_y.arrayminus.tolist() == [
            up[one] - low[one] if one == at else 0 for one in range(6)
        ]
        assert drawn.error_y.symmetric is False
    else:
        assert drawn.error_y.array is None
    right, top = drawn.hovertemplate.split("<br>")[1:]
    assert right.startswith("Right %{x") and top.startswith("Up %{y")
    assert (figure.layout.xaxis.title.text, figure.layout.yaxis.title.text) == ("Right", "Up")


@given(st.lists(st.sampled_from([math.nan, 0.0, 0.25, 0.5]), min_size=13, max_size=13), st.booleans())
def test_bars_of_shares(shares, of_distances):
    names = (
        ["<−5", "−5", "−4", "−3", "−2", "−1", "0", "1", "2", "3", "4", "5", ">5"]
        if of_distances
        else [str(one) for one in range(13)]
    )
    figure = draw_shares(np.array(shares), names, title="distance")
    [bars] = figure.data
    assert points(bars, "y") == [0.0 if math.isnan(one) else one for one in shares]
    assert points(bars, "x") == [*range(13)] and list(bars.customdata) == names
    assert "distance %{customdata}" in bars.hovertemplate
    axis = figure.layout.xaxis
    written = ["<−5", "−5", "0", "5", ">5"] if of_distances else ["0", "5", "10"]
    assert list(axis.ticktext) == written == [names[one] for one in axis.tickvals]
    assert axis.title.text == "distance"


NAMES_OF_CORPORA = ["", "cats", "others"]


@pytest.fixture
def corpora(monkeypatch) -> Iterator[dict[str, Profile]]:
    """Three profiles on offer, and what is read in their places."""
    profiles = {name: profile_of(seed)[0] for seed, name in enumerate(NAMES_OF_CORPORA)}
    monkeypatch.setattr(profile_screen, "corpora", lambda model: [*profiles])
    monkeypatch.setattr(profile_screen, "offered", lambda model: {name: name for name in profiles})
    monkeypatch.setattr(profile_screen, "read", profiles.__getitem__)
    return profiles


def view_of(kind: str = "cross", place: tuple[int, int] = (1, 1), **settings: str) -> Any:
    given_ = {"corpus": "", "other": "", "x": "entropy", "y": "previous", "search": ""} | settings
    selection = SimpleNamespace(profile=SimpleNamespace(**given_), model="m", place=Head(*place))
    return SimpleNamespace(selection=selection, kind=kind, theme="light")


@pytest.mark.parametrize("corpus", NAMES_OF_CORPORA)
@pytest.mark.parametrize("other", ["", "cats", "others", "none", OWN])
@pytest.mark.parametrize("y", ["self", "copying", "nonsense"])
def test_what_heads_are_ranked_by(corpora, corpus, other, y):
    screen = profile_screen.look(view_of(corpus=corpus, other=other, y=y, x="nonsense"))
    shown = corpora[corpus]
    assert screen is not None and screen.profile is shown and screen.corpus == corpus
    names = number_names(shown, "cross")
    assert screen.y.name == next(one for one in (y, "previous", *names) if one in names)
    is_compared = (
        other in corpora and other != corpus and screen.y.name in number_names(corpora[other], "cross")
    )
    assert screen.is_compared == is_compared
    means = shown.numbers(screen.y.name, "cross")
    if is_compared:
        theirs = corpora[other].numbers(screen.y.name, "cross")
        same(screen.x.means, theirs.tolist())
        assert screen.x.title == f"{screen.y.title}, {other or 'Bundled sentences'}"
        means = means - theirs
        assert screen.ranked.title.endswith("difference")
    else:
        assert screen.x.name == next(one for one in ("entropy", *names) if one in names)
        assert screen.ranked is screen.y
    same(screen.ranked.means, means.tolist())
    known = {head: one for head, one in zip(shown.heads("cross"), means, strict=True) if not math.isnan(one)}
    assert {*screen.kept} == {*known}
    sizes = [abs(known[one]) if is_compared else known[one] for one in screen.kept]
    assert sizes == sorted(sizes, reverse=True)


def test_the_head_and_the_kind_that_are_shown(corpora):
    screen = profile_screen.look(view_of(place=(1, 2)))
    assert screen is not None and (screen.kind, screen.head, screen.at) == ("cross", Head(1, 2), 5)
    screen = profile_screen.look(view_of(kind="encoder", place=(4, 4)))
    assert screen is not None and (screen.kind, screen.head, screen.at) == ("decoder", Head(0, 0), 0)
    assert profile_screen.look(view_of(corpus="gone")).corpus == ""


def test_heads_are_found_by_a_part_of_a_name_in_any_case(corpora):
    profile = corpora["cats"]
    names = {head: names_of(profile, head, "cross") for head in profile.heads("cross")}
    wanted = next(name for found in names.values() for name in found)
    screen = profile_screen.look(view_of(corpus="cats", y="self", search=f" {wanted[1:-1].upper()} "))
    part = wanted[1:-1].casefold()
    assert screen is not None
    known = profile.numbers(screen.y.name, "cross")
    assert {*screen.kept} == {
        head
        for (head, found), one in zip(names.items(), known, strict=True)
        if not math.isnan(one) and any(part in name.casefold() for name in found)
    }
    assert 0 < len(screen.kept) < 6


def test_nothing_is_shown_where_there_is_no_profile(monkeypatch):
    monkeypatch.setattr(profile_screen, "corpora", lambda model: [])
    assert profile_screen.look(view_of()) is None


def test_the_table_and_the_python_of_a_profile():
    profile, rows, _ = profile_of(5)
    screen = screen_of(profile, "cross", Head(0, 1))
    names, lines = as_csv_rows(screen)
    assert {*names} == {*rows[0]} - {"distances", "positions", "relations", "token_pairs", "part_pairs"}
    assert lines == [[row[name] for name in names] for row in rows]
    code = python_lines(screen)
    x, y = screen.x, screen.y
    assert f"profile.numbers({x.name!r}, 'cross'), profile.numbers({y.name!r}, 'cross')" in code
    assert f"titles=({x.title!r}, {y.title!r})" in code


SAID = {
    "schema": 1,
    "about": {"model": "mine", "revision": "r", "dtype": "float32", "versions": {"torch": "2"}},
    "n_text": 11,
    "n_token": 12,
    "n_failed": 13,
    "n_sample": 14,
    "checks": {"n_text": 15, "n_passed": 16, "worst_error": 0.25, "worst_difference": 0.5},
    "distance_edges": [0, 1, 2],
}


def write(folder: Path, model: str = "mine", **changes: Any) -> Path:
    """The files of a profile of a model."""
    folder.mkdir(parents=True)
    _, rows, examples = profile_of(0)
    said = json.dumps(SAID | {"about": SAID["about"] | {"model": model}} | changes).encode()
    for name, schema, lines in (("heads", heads_schema(), rows), ("examples", EXAMPLES_SCHEMA, examples)):
        table = pa.Table.from_pylist(lines, schema=schema.with_metadata({b"attnviz": said}))
        pq.write_table(table, folder / f"{name}.parquet")
    return folder


def test_a_profile_is_read_as_it_was_written(tmp_path):
    profile = read_profile(write(tmp_path / "a"))
    counts = profile.n_text, profile.n_token, profile.n_failed, profile.n_sample
    assert counts == (11, 12, 13, 14)
    checks = profile.n_verified, profile.n_passed, profile.worst_error, profile.worst_difference
    assert checks == (15, 16, 0.25, 0.5)
    assert profile.edges == (0, 1, 2) and profile.provenance.model == "mine"
    assert profile.places == tuple(PLACES)
    assert [one.text for one in profile.examples(Head(1, 2), "cross")] == [
        one.text for one in profile_of(0)[0].examples(Head(1, 2), "cross")
    ]
    assert read_profile(tmp_path / "gone", missing_ok=True) is None
    with pytest.raises(CorpusError, match="no heads"):
        read_profile(tmp_path / "gone")
    with pytest.raises(CorpusError, match="version 2"):
        read_profile(write(tmp_path / "b", schema=2))
    with pytest.raises(CorpusError, match="is not a profile"):
        read_profile(write(tmp_path / "c", checks={}))


def test_the_profiles_on_offer(tmp_path, monkeypatch):
    """That of the bundled sentences, and those of the model in the folders that the operator lists; what cannot be read is left out."""
    bundled = write(tmp_path / "bundled" / "mine")
    cats, dogs = write(tmp_path / "many" / "cats"), write(tmp_path / "alone" / "dogs")
    write(tmp_path / "many" / "theirs", "another")
    broken = tmp_path / "many" / "broken"
    broken.mkdir()
    (broken / "heads.parquet").write_text("nothing")
    monkeypatch.setattr(offered_profiles, "BUNDLED", tmp_path / "bundled")
    monkeypatch.setenv("ATTNVIZ_PROFILES", f"{tmp_path / 'many'}, {dogs}")
    assert offered_profiles.offered("mine") == {"": bundled, "cats": cats, "dogs": dogs}
    assert [*offered_profiles.offered("another")] == ["theirs"]
    own = SimpleNamespace(text="")
    monkeypatch.setattr(offered_profiles, "of_session", lambda kind: own)
    assert offered_profiles.corpora("mine") == ["", "cats", "dogs"]
    own.text = "my lines"
    assert offered_profiles.corpora("another") == ["theirs", OWN]
    monkeypatch.delenv("ATTNVIZ_PROFILES")
    assert [*offered_profiles.offered("mine")] == [""]
    names = [offered_profiles.corpus_name(one) for one in ("", OWN, "cats")]
    assert names == ["Bundled sentences", "Your own sentences", "cats"]
    first = offered_profiles.read(cats)
    assert offered_profiles.read(cats) is first
    os.utime(cats / "heads.parquet", ns=(1, 1))
    assert offered_profiles.read(cats) is not first
