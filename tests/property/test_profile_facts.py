"""What the page Profiles says and what a profile gives back, found again in the rows that the profile was made of."""

import json
import math
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType, SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from attnviz.corpus import pipeline
from attnviz.corpus import profile as profile_file
from attnviz.corpus.columns import EDGES, MEASURED, NORMS
from attnviz.corpus.files import EXAMPLES_SCHEMA, HEADS_SCHEMA
from attnviz.corpus.naming import names_of
from attnviz.corpus.profile import Profile, read_about, read_profile
from attnviz.corpus.relation_words import RELATIONS
from attnviz.corpus.texts import Failure
from attnviz.errors import CorpusError, SelectionError
from attnviz.figures.numbers import power_text
from attnviz.figures.profile import draw_by_depth, draw_shares, draw_two_numbers
from attnviz.figures.theme import LIGHT
from attnviz.heads import PROBES, STATISTICS
from attnviz.records import Head
from tests.app.screen import facts
from tests.drawing import MARKS, draw_few
from tests.profiles import (
    KINDS,
    PLACES,
    WEIGHTS,
    called,
    difference_of,
    interval,
    of_kind,
    profile_of,
    relation_title,
)
from ui.rooms.many_texts import own_corpora
from ui.rooms.many_texts import profiles as exported
from ui.rooms.many_texts.own_corpora import FILE, OWN, OwnFile, OwnSentences
from ui.rooms.many_texts.profiles import as_csv_rows, measured_heads, python_lines
from ui.rooms.many_texts.profiles.measured_heads import (
    Number,
    Screen,
    difference,
    number,
    number_names,
    with_interval,
)
from ui.rooms.many_texts.profiles.one_head import best_relations, decile_of
from ui.rooms.many_texts.profiles.overview import about, headline, moved_words
from ui.runtime import profiles
from ui.runtime.profiles import Listed

pytestmark = MARKS
draw_few(5)


def same(numbers: np.ndarray, expected: list[float | None]) -> None:
    np.testing.assert_array_equal(numbers, [math.nan if value is None else value for value in expected])


seeds, kinds = st.integers(0, 4), st.sampled_from([None, *KINDS])


@given(seeds, kinds)
def test_a_profile_gives_back_the_rows_of_each_kind(seed, kind):
    profile, rows, examples = profile_of(seed)
    own = of_kind(rows, kind)
    assert profile.kinds == KINDS
    assert [tuple(head) for head in profile.heads(kind)] == [(row["layer"], row["head"]) for row in own]
    for name in ("previous", "entropy_norms_high", "copying"):
        same(profile.numbers(name, kind), [row[name] for row in own])
    for name in ("kind", "layer", "previou"):
        with pytest.raises(SelectionError):
            profile.numbers(name, kind)
    for at, relation in enumerate(rows[0]["relations"]):
        accuracies = profile.accuracies(relation["relation"], relation["direction"], kind)
        for numbers, name in zip(accuracies, ("accuracy", "low", "high"), strict=True):
            assert numbers.tolist() == [row["relations"][at][name] for row in own]
    with pytest.raises(SelectionError):
        profile.accuracies("dobj", "found by", kind)
    for row in own:
        head = Head(row["layer"], row["head"])
        distances = row["distances"] or [None] * (2 * len(EDGES) + 1)
        same(profile.distances(head, kind), distances)
        same(profile.positions(head, kind), row["positions"])
        assert [relation.words for relation in profile.relations(head, kind)] == [
            value["words"] for value in row["relations"]
        ]
        assert [relation.accuracy for relation in profile.relations(head, kind)] == [
            value["accuracy"] for value in row["relations"]
        ]
        assert [token_pair.query for token_pair in profile.token_pairs(head, kind)] == [
            value["query"] for value in row["token_pairs"]
        ]
        assert [part_pair.mass for part_pair in profile.part_pairs(head, kind)] == [
            value["mass"] for value in row["part_pairs"]
        ]
        expected = [
            example
            for example in examples
            if (example["kind"], example["layer"], example["head"]) == (row["kind"], *head)
        ]
        of_profile = profile.examples(head, kind)
        assert [example.text for example in of_profile] == [value["text"] for value in expected]
        assert [example.decile for example in of_profile] == [value["decile"] for value in expected]
        assert [list(example.weights) for example in of_profile] == [
            list(value["weights"]) for value in expected
        ]
    with pytest.raises(SelectionError):
        profile.distances(Head(2, 0), kind)


@given(seeds, st.sampled_from(KINDS))
def test_the_names_of_a_head(seed, kind):
    """With the share behind each name and its interval; a head that attends to [CLS] is not also a first-token head."""
    profile, rows, _ = profile_of(seed)
    assert "dobj" in RELATIONS and "odd" not in RELATIONS
    names = names_of(profile, kind)
    assert [*names] == profile.heads(kind)
    for head, row in zip(names, of_kind(rows, kind), strict=True):
        of_head = [
            (name.called, name.share, name.low, name.high, bool(name.relation)) for name in names[head]
        ]
        assert of_head == [(name, *expected) for name, expected in called(row).items()]


@given(seeds, st.sampled_from(KINDS))
def test_the_numbers_that_heads_are_found_by(seed, kind):
    """Those that any head has, of relations those of enough words, with their intervals; copying has none."""
    profile, rows, _ = profile_of(seed)
    own = of_kind(rows, kind)
    columns = {name: STATISTICS[name].title for name in MEASURED}
    columns |= {f"{name}{NORMS}": f"{title}, norm-based" for name, title in columns.items()}
    columns |= {name: probe.title for name, probe in PROBES.items()}
    columns |= {"activation": "Length that is added", "copying": "Copying score"}
    expected = {name: title for name, title in columns.items() if any(row[name] is not None for row in own)}
    for value in own[0]["relations"]:
        if value["words"] >= 20:
            words = relation_title(value["relation"], value["direction"]).capitalize()
            label = f" ({value['relation']})"
            expected[f"{value['relation']} {value['direction']}"] = words.removesuffix(label) + label
    assert number_names(profile, kind) == expected
    for name, title in expected.items():
        column = number(profile, kind, name)
        assert (column.name, column.title) == (name, title)
        if name in columns:
            same(column.means, [row[name] for row in own])
            assert (column.ends is None) == (name == "copying")
            for ends, end in zip(column.ends or (), ("low", "high"), strict=False):
                same(ends, [row[f"{name}_{end}"] for row in own])
        else:
            at = [f"{value['relation']} {value['direction']}" for value in own[0]["relations"]].index(name)
            same(column.means, [row["relations"][at]["accuracy"] for row in own])
            assert column.ends is not None
            for ends, end in zip(column.ends, ("low", "high"), strict=True):
                same(ends, [row["relations"][at][end] for row in own])


def lists(n: int) -> st.SearchStrategy[list[float]]:
    return st.lists(st.sampled_from([0.0, 0.125, 0.25, 0.5]), min_size=n, max_size=n)


@given(lists(4), lists(4), lists(4), lists(4), lists(4), lists(4), st.sampled_from([None, "first", "other"]))
def test_the_difference_of_two_profiles(first, other, first_low, first_high, other_low, other_high, without):
    def given_(name: str, means: list[float], low: list[float], high: list[float]) -> Number:
        ends = np.subtract(means, low), np.add(means, high)
        return Number(name="self", title="Own", means=np.array(means), ends=None if name == without else ends)

    apart = difference(
        given_("first", first, first_low, first_high), given_("other", other, other_low, other_high)
    )
    assert (apart.name, apart.title) == ("self", "Own: difference")
    assert apart.means.tolist() == [a - b for a, b in zip(first, other, strict=True)]
    if without:
        assert apart.ends is None and not apart.moved.any()
        return
    assert apart.ends is not None
    for at in range(4):
        middle = first[at] - other[at]
        low = middle - math.sqrt(first_low[at] ** 2 + other_high[at] ** 2)
        high = middle + math.sqrt(first_high[at] ** 2 + other_low[at] ** 2)
        assert (apart.ends[0][at], apart.ends[1][at]) == pytest.approx((low, high))
        assert apart.moved[at] == (low > 1e-12 or high < -1e-12)


def numbered(profile: Profile, kind: str, name: str) -> Number:
    names = number_names(profile, kind)
    return number(profile, kind, name if name in names else next(iter(names)))


def screen_of(profile: Profile, kind: str, head: Head, **changes: Any) -> Screen:
    y = numbered(profile, kind, "previous")
    given_ = {
        "view": view_of(),
        "corpus": "",
        "weights": WEIGHTS,
        "profile": profile,
        "failures": (),
        "kind": kind,
        "heads": profile.heads(kind),
        "head": head,
        "x": numbered(profile, kind, "entropy"),
        "y": y,
        "ranked": y,
        "other": None,
        "kept": profile.heads(kind),
    }
    return Screen(**given_ | changes)


def view_of(kind: str = "cross", place: tuple[int, int] = (1, 1), **settings: str) -> Any:
    given_ = {"corpus": "", "other": "none", "x": "entropy", "y": "previous", "search": ""} | settings
    selection = SimpleNamespace(
        of=lambda record: SimpleNamespace(**given_), model="mine", place=Head(*place), source=None
    )
    return SimpleNamespace(selection=selection, kind=kind, theme="light")


@given(seeds, st.sampled_from(KINDS), st.integers(0, 5))
def test_the_headline_of_a_profile(seed, kind, at):
    profile, rows, _ = profile_of(seed)
    own = of_kind(rows, kind)
    head = profile.heads(kind)[at]
    screen = screen_of(profile, kind, head)
    sentence, name = headline(screen), screen.y.name
    names = [*called(own[at])]
    begin, rest = sentence.split(". ", 1)
    assert begin == f"{head.title}: {', '.join(names)}" if names else begin == f"{head.title} has no name"
    assert rest.startswith(screen.y.title)
    if own[at][name] is None:
        assert facts(rest).numbers == ()
        return
    known = [row[name] for row in own if row[name] is not None]
    rank = sum(value > own[at][name] for value in known) + 1
    assert f"{interval(own[at], name).written}, rank {rank} of {len(known)}" in rest
    assert with_interval(screen.y, at) == interval(own[at], name).written


@pytest.mark.parametrize("n_failed", [0, 1, 2, 1003])
@given(seeds, st.sampled_from([1100, 1099, 0]))
def test_what_a_profile_is_of(n_failed, seed, n_passed):
    profile, rows, _ = profile_of(seed)
    profile = replace(profile, n_passed=n_passed, n_failed=n_failed)
    failures = (
        Failure(source="mine.txt", place=58, reason="no text."),
        Failure(source="mine.txt", place=60, reason="no."),
    )
    screen = screen_of(profile, "cross", profile.heads("cross")[0], failures=failures[: 2 * (seed % 2)])
    sentence = about(screen)
    has_interval = any(row[f"{screen.y.name}_low"] is not None for row in of_kind(rows, "cross"))
    assert ("95%" in sentence) == has_interval
    expected = ["1,200", "34,567", *["95%"] * has_interval]
    expected += ["1,100"] if n_passed == 1100 else [f"{1100 - n_passed:,}", "1,100"]
    expected += [power_text(2.5e-7), *[f"{n_failed:,}"] * bool(n_failed)]
    expected += ["58"] if n_failed and seed % 2 else []
    assert facts(sentence).numbers == tuple(expected)
    assert sentence.endswith("no text.") == bool(n_failed and seed % 2)
    unread = {0: "", 1: "1 text could not", 2: "2 texts could not", 1003: "1,003 texts could not"}[n_failed]
    assert unread in sentence and ("could not" in sentence) == bool(n_failed)


@given(seeds)
def test_the_relations_that_a_head_finds_best(seed):
    """Those furthest above a fixed distance, of relations of enough words."""
    profile, rows, _ = profile_of(seed)
    for row in of_kind(rows, "cross"):
        best = best_relations(profile.relations(Head(row["layer"], row["head"]), "cross"))
        above = [result.accuracy - result.offset_accuracy for result in best]
        assert above == sorted(above, reverse=True)
        assert sorted((result.relation, result.direction) for result in best) == sorted(
            (value["relation"], value["direction"]) for value in row["relations"] if value["words"] >= 20
        )


@example(seed=0, own=4.125, rounding=1e-6)
@given(seeds, st.sampled_from([0.5, 1.125, 4.0, 4.12, 4.125, 4.2, 10.2, 13.0]), st.sampled_from([0, 1e-6]))
def test_the_decile_of_a_sentence(seed, own, rounding):
    """Also where a sentence of the profile's own is read again, and comes out a little lower."""
    profile, _, _ = profile_of(seed)
    placed = decile_of(profile.examples(Head(1, 2), "cross"), own * (1 - rounding))
    lowest = {decile: decile + 1 / 8 for decile in range(1, 11)}
    assert placed == max([1, *(decile for decile, least in lowest.items() if own >= least)])
    assert (
        decile_of([example for example in profile.examples(Head(1, 2)) if example.decile is None], own)
        is None
    )


def points(drawn: Any, name: str) -> list[Any]:
    return np.asarray(drawn[name]).tolist()


@given(
    seeds, st.sampled_from([None, 0, 4]), st.booleans(), st.sampled_from([None, (), (1, 4)]), st.booleans()
)
def test_points_of_two_numbers(seed, at, has_ends, shown, is_same):
    rng = np.random.default_rng(seed)
    across, up, low, high = (rng.random(6) for _ in range(4))
    across[3] = np.nan
    heads = [Head(layer, head) for layer in range(2) for head in range(3)]
    figure = draw_two_numbers(
        across,
        up,
        heads=heads,
        titles=("Right", "Up"),
        ends=(low, high) if has_ends else None,
        picked=None if at is None else heads[at],
        shown=None if shown is None else [heads[value] for value in shown],
        is_same_number=is_same,
    )
    [drawn] = figure.data
    both = [*np.delete(across, 3).tolist(), *up.tolist()]
    ends = (min(both), min(both), max(both), max(both))  # where the two are equal
    assert [(line.x0, line.y0, line.x1, line.y1) for line in figure.layout.shapes] == [ends] * is_same
    np.testing.assert_array_equal(points(drawn, "x"), across)
    assert points(drawn, "y") == up.tolist()
    assert points(drawn, "customdata") == [[*head] for head in heads]
    is_picked = [number == at for number in range(6)]
    assert [symbol == "diamond" for symbol in drawn.marker.symbol] == is_picked
    assert [colour == LIGHT.picked for colour in drawn.marker.color] == is_picked
    sizes = drawn.marker.size
    assert [size > min(sizes) for size in sizes] == (is_picked if at is not None else [False] * 6)
    clear = [opacity > 0.5 for opacity in drawn.marker.opacity]
    assert clear == [shown is None or number in shown or number == at for number in range(6)]
    if has_ends:
        assert drawn.error_y.array.tolist() == [
            high[number] - up[number] if number == at else 0 for number in range(6)
        ]
        assert drawn.error_y.arrayminus.tolist() == [
            up[number] - low[number] if number == at else 0 for number in range(6)
        ]
        assert drawn.error_y.symmetric is False
    else:
        assert drawn.error_y.array is None
    of_head, right, top = drawn.hovertemplate.split("<br>")
    assert of_head == "layer %{customdata[0]}, head %{customdata[1]}"
    assert right.startswith("Right %{x") and top.startswith("Up %{y")
    assert (figure.layout.xaxis.title.text, figure.layout.yaxis.title.text) == ("Right", "Up")


@given(st.lists(st.sampled_from([math.nan, 0.0, 0.25, 0.5]), min_size=13, max_size=13), st.booleans())
def test_bars_of_shares(shares, of_distances):
    names = (
        ["<−5", "−5", "−4", "−3", "−2", "−1", "0", "1", "2", "3", "4", "5", ">5"]
        if of_distances
        else [str(number) for number in range(13)]
    )
    figure = draw_shares(np.array(shares), names, title="distance")
    [bars] = figure.data
    assert points(bars, "y") == [0.0 if math.isnan(share) else share for share in shares]
    assert points(bars, "x") == [*range(13)] and list(bars.customdata) == names
    assert "distance %{customdata}" in bars.hovertemplate
    axis = figure.layout.xaxis
    written = ["<−5", "−5", "0", "5", ">5"] if of_distances else ["0", "5", "10"]
    assert list(axis.ticktext) == written == [names[tickval] for tickval in axis.tickvals]
    assert axis.title.text == "distance"


def test_points_of_two_models():
    """By the depth of their layers; a click on one of the second model would tell of no head of the first."""
    heads = (
        [Head(layer, 0) for layer in range(4)],
        [Head(layer, head) for layer in range(3) for head in (0, 1)],
    )
    means = np.arange(4) / 8, np.arange(6) / 16
    models = [(name, *both) for name, *both in zip(("A", "B"), heads, means, strict=True)]
    first, second = draw_by_depth(models, title="Own", picked=Head(2, 0)).data
    assert (first.name, second.name) == ("A", "B")
    assert points(first, "x") == [0, 1 / 3, 2 / 3, 1] and points(second, "x") == [0, 0, 0.5, 0.5, 1, 1]
    assert points(first, "y") == means[0].tolist() and points(second, "y") == means[1].tolist()
    assert points(first, "customdata") == [[*head] for head in heads[0]] and second.customdata is None
    assert [*second.text] == [head.title for head in heads[1]]
    assert [symbol == "diamond" for symbol in first.marker.symbol] == [False, False, True, False]
    assert "diamond" not in second.marker.symbol
    two = [Head(0, 0), Head(1, 0)]
    assert points(draw_by_depth([("A", two, np.ones(2))], title="Own").data[0], "x") == [0, 1]
    [alone] = draw_by_depth([("A", [Head(0, 0)], np.ones(1))], title="Own").data
    assert points(alone, "x") == [0]


THEIRS = {"model.safetensors": "2" * 64}
SEEDS = {"": 0, "cats": 1, "others": 2, "tuned": 3, "small": 4, "one kind": 5}
"""The bundled sentences and two more corpora of the model; a model with the same heads; and two of one kind, one with fewer heads."""
N_OF_ONE_KIND = {"small": 3, "one kind": 6}
SHOWN = ("", "cats", "others")


@dataclass(frozen=True)
class Corpora:
    profiles: dict[str, Profile]
    rows: dict[str, list[dict[str, Any]]]
    listed: dict[str, Listed]

    def of_kind(self, name: str, kind: str) -> list[dict[str, Any]]:
        """The rows of a profile; of its first kind where it lacks this one."""
        return of_kind(self.rows[name], "decoder" if name in N_OF_ONE_KIND else kind)


@pytest.fixture
def corpora(monkeypatch) -> Iterator[Corpora]:
    """Profiles on this server, which are not read from a file, and a visitor who has brought nothing."""
    by_name = {name: profile_of(seed)[0] for name, seed in SEEDS.items()}
    rows = {name: profile_of(seed)[1] for name, seed in SEEDS.items()}
    for name, n_head in N_OF_ONE_KIND.items():
        by_name[name] = replace(
            by_name[name], table=by_name[name].table.slice(0, n_head), places=tuple(PLACES[:n_head])
        )
        rows[name] = rows[name][:n_head]
    listed = {}
    for name in SEEDS:
        about = {"model": name or "mine", "weights": WEIGHTS if name in SHOWN else THEIRS}
        by_name[name] = replace(by_name[name], about=MappingProxyType(about))
        folder = Path("profiles", name) if name else profiles.BUNDLED / "mine"
        listed[folder.name] = Listed(name=folder.name, folder=folder, written=0, about=about)
    monkeypatch.setattr(profiles, "listed", lambda: listed)
    of_folder = {"mine" if name == "" else name: profile for name, profile in by_name.items()}
    monkeypatch.setattr(profiles, "_read", lambda folder, written: of_folder[folder.name])
    monkeypatch.setattr(measured_heads.cache, "weights", lambda source: WEIGHTS)
    records = {kind: kind() for kind in (OwnSentences, OwnFile)}
    for module in (own_corpora, measured_heads, exported):
        monkeypatch.setattr(module, "of_session", records.__getitem__)
    yield Corpora(by_name, rows, listed)
    profiles.names.cache_clear()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("corpus", SHOWN)
@pytest.mark.parametrize("other", [*SEEDS, "none", "mine", OWN])
@pytest.mark.parametrize("y", ["self", "distance", "copying", "nonsense"])
def test_what_heads_are_ranked_by(corpora, kind, corpus, other, y):
    screen = measured_heads.shown_profile(view_of(kind, corpus=corpus, other=other, y=y, x="nonsense"))
    shown = corpora.profiles[corpus]
    assert screen is not None and screen.profile is shown and screen.corpus == corpus
    names = number_names(shown, kind)
    assert screen.y.name == next(candidate for candidate in (y, "previous", *names) if candidate in names)
    name = screen.y.name
    own = [interval(row, name) for row in corpora.of_kind(corpus, kind)]
    theirs = [interval(row, name) for row in corpora.of_kind(other, kind)] if other in SEEDS else []
    if name in ("dobj attends to", "dobj attended by", "odd attends to", "odd attended by"):
        is_there = other in SEEDS and name in number_names(corpora.profiles[other], kind)
    else:
        is_there = any(not math.isnan(their.mean) for their in theirs)
    is_there &= other != corpus
    assert (screen.other is not None) == is_there
    has_same_heads = other != "small" and (other != "one kind" or kind == "decoder")
    assert screen.is_compared == (is_there and has_same_heads)
    if is_there:
        same(screen.other.number.means, [their.mean for their in theirs])
        assert screen.other.number.name == name and screen.other.profile is corpora.profiles[other]
        assert screen.other.kind == ("decoder" if other in N_OF_ONE_KIND else kind)
        assert screen.other.name == (other or "Bundled sentences") + f", {other}" * (
            other in ("tuned", *N_OF_ONE_KIND)
        )
    ranked = own
    if screen.is_compared:
        same(screen.x.means, [their.mean for their in theirs])
        assert screen.x.title == f"{screen.y.title}, {screen.other.name}"
        ranked = [difference_of(mine, their) for mine, their in zip(own, theirs, strict=True)]
        assert screen.ranked.title.endswith("difference")
        assert screen.ranked.moved.tolist() == [entry.has_moved for entry in ranked]
    else:
        assert screen.x.name == next(candidate for candidate in ("entropy", *names) if candidate in names)
        assert screen.ranked is screen.y
    same(screen.ranked.means, [entry.mean for entry in ranked])
    defined = [at for at, entry in enumerate(ranked) if not math.isnan(entry.mean)]
    first = (
        (lambda at: (not ranked[at].has_moved, -abs(ranked[at].mean)))
        if screen.is_compared
        else (lambda at: -ranked[at].mean)
    )
    assert screen.kept == [screen.heads[at] for at in sorted(defined, key=first)]


def test_profiles_of_cross_attention_open(corpora):
    """They have no weight on the previous token, by which heads are ranked at first, and take the first number that they have."""
    names = number_names(corpora.profiles[""], "cross")
    assert "previous" not in names
    screen = measured_heads.shown_profile(view_of("cross"))
    assert screen is not None and (screen.kind, screen.y.name) == ("cross", next(iter(names)))
    assert headline(screen)


def test_the_head_and_the_kind_that_are_shown(corpora):
    screen = measured_heads.shown_profile(view_of(place=(1, 2)))
    assert screen is not None and (screen.kind, screen.head, screen.at) == ("cross", Head(1, 2), 5)
    screen = measured_heads.shown_profile(view_of(kind="encoder", place=(4, 4)))
    assert screen is not None and (screen.kind, screen.head, screen.at) == ("decoder", Head(0, 0), 0)


@pytest.mark.parametrize("corpus", ["gone", "tuned", OWN, FILE])
def test_what_a_link_asks_for_and_is_not_there(corpora, corpus, monkeypatch):
    """The first profile is shown, and a sentence says why."""
    captions = []
    monkeypatch.setattr(measured_heads.st, "caption", captions.append)
    screen = measured_heads.shown_profile(view_of(corpus=corpus))
    assert screen is not None and screen.corpus == "" and screen.profile is corpora.profiles[""]
    [sentence] = captions
    reason = {"gone": "not on this server", "tuned": "with other weights"}.get(corpus, "no link holds")
    assert reason in sentence
    assert facts(sentence).quoted == (() if corpus in (OWN, FILE) else (corpus,))


def test_heads_are_found_by_a_part_of_a_name_in_any_case(corpora):
    names = {
        head: [*called(row)]
        for head, row in zip(
            corpora.profiles["cats"].heads("cross"), corpora.of_kind("cats", "cross"), strict=True
        )
    }
    wanted = next(name for of_head in names.values() for name in of_head)
    screen = measured_heads.shown_profile(
        view_of(corpus="cats", y="self", search=f" {wanted[1:-1].upper()} ")
    )
    part = wanted[1:-1].casefold()
    assert screen is not None
    known = [interval(row, screen.y.name).mean for row in corpora.of_kind("cats", "cross")]
    assert {*screen.kept} == {
        head
        for (head, of_head), value in zip(names.items(), known, strict=True)
        if not math.isnan(value) and any(part in name.casefold() for name in of_head)
    }
    assert 0 < len(screen.kept) < 6


def test_nothing_is_shown_where_there_is_no_profile(corpora, monkeypatch):
    monkeypatch.setattr(profiles, "listed", dict)
    assert measured_heads.shown_profile(view_of()) is None


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("other", ["cats", "others", "tuned"])
@pytest.mark.parametrize("y", ["self", "distance", "dobj attends to", "copying"])
def test_what_is_said_of_heads_that_moved(corpora, kind, other, y):
    screen = measured_heads.shown_profile(view_of(kind, other=other, y=y))
    if not screen.is_compared:
        assert y not in number_names(corpora.profiles[other], kind) or screen.y.name != y
        return
    both = (corpora.of_kind(name, kind) for name in ("", other))
    moves = [
        difference_of(*(interval(row, screen.y.name) for row in rows)) for rows in zip(*both, strict=True)
    ]
    n_head = sum(not math.isnan(move.mean) for move in moves)
    sentence = moved_words(screen)
    assert sentence.startswith(f"{screen.y.title}: difference. ")
    expected = (str(sum(move.has_moved for move in moves)), str(n_head), "95%", "0", "1")
    has_interval = any(not math.isnan(move.low) for move in moves)
    assert facts(sentence).numbers == (expected if has_interval else ())
    assert ("no interval" in sentence) != has_interval
    at = screen.at
    rest = headline(screen).split(". ", 1)[1]
    own = interval(corpora.of_kind("", kind)[at], screen.y.name)
    if math.isnan(own.mean):
        assert rest == f"{screen.y.title} is not defined for it"
    else:
        assert rest == f"{screen.y.title}: difference: {moves[at].written}"
    assert ("trained from the other" in about(screen)) == (other == "tuned")


@pytest.mark.parametrize(("n_head", "n_by_chance"), [(12, 1), (30, 2), (100, 5), (144, 7)])
def test_one_head_in_twenty_moves_by_chance(n_head, n_by_chance):
    means = np.zeros(n_head + 1)
    means[-1] = np.nan  # has no such number, and is not counted
    ends = (means - 1, means + 1)
    ranked = SimpleNamespace(
        title="Self: difference", means=means, ends=ends, moved=np.arange(n_head + 1) < 2
    )
    assert f"Of 2 of {n_head} heads" in (sentence := moved_words(SimpleNamespace(ranked=ranked)))
    assert f"would be about {n_by_chance}." in sentence


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("corpus", SHOWN)
@pytest.mark.parametrize("y", ["self", "distance", "entropy", "same_token", "dobj attends to", "copying"])
def test_what_is_said_of_two_models(corpora, kind, corpus, y):
    """The largest of each, and how much larger that of the first is."""
    screen = measured_heads.shown_profile(view_of(kind, corpus=corpus, other="small", y=y))
    if screen.other is None:
        assert screen.y.name not in number_names(corpora.profiles["small"], "decoder")
        return
    best = []
    for name, heads in ((corpus, screen.heads), ("small", corpora.profiles["small"].heads())):
        of_heads = [interval(row, screen.y.name) for row in corpora.of_kind(name, kind)]
        largest = max(of_head.mean for of_head in of_heads if not math.isnan(of_head.mean))
        at = [of_head.mean for of_head in of_heads].index(largest)
        best.append((heads[at], of_heads[at]))
    (here, mine), (there, theirs) = best
    assert headline(screen) == (
        f"{screen.y.title}: largest in {here.words}, {mine.written}; of small, small in {there.words}, {theirs.written}; "
        f"difference {difference_of(mine, theirs).written}"
    )


def test_the_table_and_the_python_of_a_profile(corpora):
    profile, rows = corpora.profiles["cats"], corpora.rows["cats"]
    screen = screen_of(profile, "cross", Head(0, 1), corpus="cats")
    names, lines = as_csv_rows(screen)
    assert {*names} == {*rows[0]} - {"distances", "positions", "relations", "token_pairs", "part_pairs"}
    assert lines == [[row[name] for name in names] for row in rows]
    code = python_lines(screen)
    x, y = screen.x, screen.y
    assert f"profile.numbers({x.name!r}, 'cross'), profile.numbers({y.name!r}, 'cross')" in code
    assert f"titles=({x.title!r}, {y.title!r})" in code


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("other", ["cats", "others", "tuned", "small"])
@pytest.mark.parametrize("y", ["self", "distance", "copying"])
def test_the_table_of_two_profiles(corpora, kind, other, y):
    """Each head of the kind with what it is compared with, and the difference with its interval; of two models those of the first."""
    screen = measured_heads.shown_profile(view_of(kind, other=other, y=y))
    names, lines = as_csv_rows(screen)
    name, rows = screen.y.name, corpora.rows[""]
    added = [f"{name}_other", f"{name}_difference"]
    added += [f"{name}_difference_{end}" for end in ("low", "high") if name != "copying"]
    if not screen.is_compared:
        assert not {*added} & {*names}
        return
    assert names[-len(added) :] == added
    for line, row in zip(lines, rows, strict=True):
        assert line[: -len(added)] == [row[name] for name in names[: -len(added)]]
        if row["kind"] != kind:
            assert line[-len(added) :] == [None] * len(added)
            continue
        [theirs] = [
            interval(candidate, name)
            for candidate in corpora.of_kind(other, kind)
            if (candidate["layer"], candidate["head"]) == (row["layer"], row["head"])
        ]
        difference_ = difference_of(interval(row, name), theirs)
        same_numbers = [theirs.mean, *difference_][: len(added)]
        assert line[-len(added) :] == pytest.approx(same_numbers, nan_ok=True)


@pytest.mark.stand_ins
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("other", ["none", "cats", "tuned", "small"])
@pytest.mark.parametrize("y", ["distance", "dobj attends to"])
@pytest.mark.parametrize("corpus", ["", "others", OWN, FILE])
def test_the_python_draws_the_same_points(corpora, kind, other, y, corpus, monkeypatch):
    """It reads the files that are on the server, and measures what the visitor has brought."""
    of_file = SimpleNamespace(name="mine.csv", column="review")
    monkeypatch.setattr(exported, "of_session", lambda record: of_file)
    screen = measured_heads.shown_profile(
        view_of(kind, corpus=corpus if corpus in SHOWN else "", other=other, y=y)
    )
    screen = replace(screen, corpus=corpus)
    asked = []

    def read(folder: Path) -> Profile:
        is_bundled = folder.parent == profiles.BUNDLED
        assert is_bundled or folder.parent == Path("profiles")
        return corpora.profiles["" if is_bundled else folder.name]

    def measure(paths: list[str], model: str, folder: Path, column: str | None = None) -> Profile:
        asked.append((paths, model, column))
        return screen.profile

    monkeypatch.setattr(profile_file, "read_profile", read)
    monkeypatch.setattr(pipeline, "profile_corpus", measure)
    made: dict[str, Any] = {}
    exec(python_lines(screen).replace("figure.show()", ""), made)
    drawn = made["figure"].data
    of_own = {OWN: (["sentences.txt"], "mine", None), FILE: (["mine.csv"], "mine", "review")}
    assert asked == ([of_own[corpus]] if corpus in of_own else [])
    np.testing.assert_array_equal(drawn[0].y, screen.y.means)
    if screen.other is not None and not screen.is_compared:
        np.testing.assert_array_equal(drawn[1].y, screen.other.number.means)
        assert [trace.name for trace in drawn] == ["mine", screen.other.name]
        return
    np.testing.assert_array_equal(drawn[0].x, screen.x.means)
    titles = made["figure"].layout.xaxis.title.text, made["figure"].layout.yaxis.title.text
    assert titles == (screen.x.title, screen.y.title)


METADATA = {
    "schema": 1,
    "about": {
        "model": "mine",
        "revision": "r",
        "dtype": "float32",
        "versions": {"torch": "2"},
        "weights": WEIGHTS,
    },
    "n_text": 11,
    "n_token": 12,
    "n_failed": 13,
    "n_sample": 14,
    "checks": {"n_text": 15, "n_passed": 16, "worst_error": 0.25, "worst_difference": 0.5},
    "distance_edges": [0, 1, 2],
    "probes": {"n_token": 17, "n_text": 18},
}


def write(folder: Path, weights: dict[str, str] = WEIGHTS, **changes: Any) -> Path:
    """The files of a profile of a model with these weights."""
    folder.mkdir(parents=True)
    _, rows, examples = profile_of(0)
    metadata = json.dumps(METADATA | {"about": METADATA["about"] | {"weights": weights}} | changes).encode()
    for name, schema, lines in (("heads", HEADS_SCHEMA, rows), ("examples", EXAMPLES_SCHEMA, examples)):
        table = pa.Table.from_pylist(lines, schema=schema.with_metadata({b"attnviz": metadata}))
        pq.write_table(table, folder / f"{name}.parquet")
    return folder


def test_a_profile_is_read_as_it_was_written(tmp_path):
    profile = read_profile(write(tmp_path / "a"))
    counts = profile.n_text, profile.n_token, profile.n_failed, profile.n_sample
    assert counts == (11, 12, 13, 14)
    checks = profile.n_verified, profile.n_passed, profile.worst_error, profile.worst_difference
    assert checks == (15, 16, 0.25, 0.5)
    assert profile.edges == (0, 1, 2) and profile.provenance.model == "mine"
    assert profile.probed == (17, 18) and profile.about["weights"] == WEIGHTS
    assert read_about(tmp_path / "a") == profile.about
    assert profile.places == tuple(PLACES)
    assert [example.text for example in profile.examples(Head(1, 2), "cross")] == [
        example.text for example in profile_of(0)[0].examples(Head(1, 2), "cross")
    ]
    assert read_profile(tmp_path / "gone", missing_ok=True) is None
    with pytest.raises(CorpusError, match="no heads"):
        read_profile(tmp_path / "gone")
    with pytest.raises(CorpusError, match="version 2"):
        read_profile(write(tmp_path / "b", schema=2))
    with pytest.raises(CorpusError, match="is not a profile"):
        read_profile(write(tmp_path / "c", checks={}))


@pytest.mark.parametrize(
    "change",
    [
        lambda rows: [],
        lambda rows: [*rows, rows[3]],
        lambda rows: [*rows, rows[0] | {"kind": "odd"}],
        lambda rows: [*rows, rows[0] | {"layer": -1}],
        lambda rows: [*rows, rows[0] | {"head": None}],
    ],
)
def test_the_rows_of_a_profile_are_one_for_each_head(change, tmp_path):
    folder = write(tmp_path / "a")
    schema = pq.read_schema(folder / "heads.parquet")
    pq.write_table(pa.Table.from_pylist(change(profile_of(0)[1]), schema=schema), folder / "heads.parquet")
    with pytest.raises(CorpusError, match="not one for each head of a model"):
        read_profile(folder)


@pytest.mark.parametrize(
    "about",
    [
        {"model": 3, "weights": {}, "versions": {}},
        {"model": "m", "weights": "x", "versions": {}},
        {"model": "m", "weights": {}, "versions": None},
        {"model": "m", "weights": {}},
    ],
)
def test_a_profile_says_its_model_weights_and_versions(about, tmp_path):
    folder = write(tmp_path / "a", about=about)
    for read in (read_profile, read_about):
        with pytest.raises(CorpusError, match="is not a profile that attnviz wrote"):
            read(folder)


def test_weights_at_positions_and_distances_that_are_not_there_are_none():
    profile, rows, _ = profile_of(0)
    nothing = [row | {"positions": None, "distances": None} for row in rows]
    without = replace(profile, table=pa.Table.from_pylist(nothing, schema=HEADS_SCHEMA))
    assert np.isnan(without.positions(Head(1, 2))).tolist() == [True] * 32
    assert np.isnan(without.distances(Head(1, 2))).tolist() == [True] * 33


def test_the_profiles_on_offer(tmp_path, monkeypatch):
    """That of the bundled sentences, and those in the folders that the operator lists; they are of a model by its weights."""
    bundled = write(tmp_path / "bundled" / "mine")
    cats, dogs = write(tmp_path / "many" / "cats"), write(tmp_path / "alone" / "dogs")
    theirs = write(tmp_path / "many" / "theirs", THEIRS)
    write(tmp_path / "second" / "cats", THEIRS)
    broken = tmp_path / "many" / "broken"
    broken.mkdir()
    (broken / "heads.parquet").write_text("nothing")
    monkeypatch.setattr(profiles, "BUNDLED", tmp_path / "bundled")
    monkeypatch.setenv("ATTNVIZ_PROFILES", f"{tmp_path / 'many'}, {dogs},{tmp_path / 'second'}")
    folders = {"mine": bundled, "broken": broken, "cats": cats, "theirs": theirs, "dogs": dogs}
    listed = profiles.listed()
    assert {
        name: listing.folder for name, listing in listed.items()
    } == folders  # of two with one name the first
    assert [name for name, listing in listed.items() if listing.problem] == ["broken"]
    assert (
        str(tmp_path) not in listed["broken"].problem and "broken/heads.parquet" in listed["broken"].problem
    )
    assert [listing.name for listing in profiles.of_model(WEIGHTS)] == ["mine", "cats", "dogs"]
    assert profiles.of_model({}) == []
    offered = measured_heads.offered(WEIGHTS)
    assert {name: listing.folder for name, listing in offered.items()} == {
        "": bundled,
        "cats": cats,
        "dogs": dogs,
    }
    assert [*measured_heads.offered(THEIRS)] == ["theirs"]
    assert [*measured_heads.others(WEIGHTS)] == ["", "cats", "dogs", "theirs"]
    assert [*measured_heads.others(THEIRS)] == ["theirs", "mine", "cats", "dogs"]
    named = {name: measured_heads.other_name(listing, WEIGHTS) for name, listing in listed.items()}
    assert named | {"broken": ""} == {
        "mine": "Bundled sentences",
        "broken": "",
        "cats": "cats",
        "theirs": "mine, theirs",
        "dogs": "dogs",
    }
    assert measured_heads.other_name(listed["mine"], THEIRS) == "mine"
    assert "cannot be shown" in measured_heads.missed("broken", WEIGHTS)
    assert "with other weights" in measured_heads.missed("theirs", WEIGHTS)
    own = SimpleNamespace(text="", name="")
    for module in (own_corpora, measured_heads):
        monkeypatch.setattr(module, "of_session", lambda kind: own)
    assert measured_heads.corpora(WEIGHTS) == ["", "cats", "dogs"]
    own.text, own.name = "my lines", "mine.csv"
    assert measured_heads.corpora(THEIRS) == ["theirs", OWN, FILE]
    corpus_names = [own_corpora.corpus_name(corpus) for corpus in ("", OWN, FILE, "cats")]
    assert corpus_names == ["Bundled sentences", "Your own sentences", "mine.csv", "cats"]
    monkeypatch.delenv("ATTNVIZ_PROFILES")
    assert [*measured_heads.offered(WEIGHTS)] == [""]
    first = offered["cats"].read()
    assert offered["cats"].read() is first
    os.utime(cats / "heads.parquet", ns=(1, 1))
    monkeypatch.setenv("ATTNVIZ_PROFILES", str(cats))
    assert profiles.listed()["cats"].read() is not first
    with pytest.raises(CorpusError) as raised:
        listed["broken"].read()
    assert str(tmp_path) not in str(raised.value)
