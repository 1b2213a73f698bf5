"""What a profile gives back, and what is found in it, again in the rows that it was made of."""

import json
import math
import os
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from attnviz.corpus.columns import EDGES, MEASURED, NORMS
from attnviz.corpus.files import EXAMPLES_SCHEMA, HEADS_SCHEMA
from attnviz.corpus.naming import names_of
from attnviz.corpus.profile import read_about, read_profile
from attnviz.corpus.relation_words import RELATIONS
from attnviz.errors import CorpusError, SelectionError
from attnviz.heads import PROBES, STATISTICS
from attnviz.records import Head
from tests.drawing import MARKS, draw_few
from tests.profiles import (
    KINDS,
    PLACES,
    WEIGHTS,
    called,
    of_kind,
    profile_of,
    relation_title,
)
from ui.rooms.many_texts.profiles import offered as offered_profiles
from ui.rooms.many_texts.profiles.offered import OWN
from ui.rooms.many_texts.profiles.one_head import best_relations, decile_of
from ui.rooms.many_texts.profiles.own_file import FILE
from ui.rooms.many_texts.profiles.screen import Number, difference, number, number_names
from ui.runtime import profiles

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


THEIRS = {"model.safetensors": "2" * 64}


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
    offered = offered_profiles.offered(WEIGHTS)
    assert {name: listing.folder for name, listing in offered.items()} == {
        "": bundled,
        "cats": cats,
        "dogs": dogs,
    }
    assert [*offered_profiles.offered(THEIRS)] == ["theirs"]
    assert [*offered_profiles.others(WEIGHTS)] == ["", "cats", "dogs", "theirs"]
    assert [*offered_profiles.others(THEIRS)] == ["theirs", "mine", "cats", "dogs"]
    named = {name: offered_profiles.other_name(listing, WEIGHTS) for name, listing in listed.items()}
    assert named | {"broken": ""} == {
        "mine": "Bundled sentences",
        "broken": "",
        "cats": "cats",
        "theirs": "mine, theirs",
        "dogs": "dogs",
    }
    assert offered_profiles.other_name(listed["mine"], THEIRS) == "mine"
    assert "cannot be shown" in offered_profiles.missed("broken", WEIGHTS)
    assert "with other weights" in offered_profiles.missed("theirs", WEIGHTS)
    own = SimpleNamespace(text="", name="")
    monkeypatch.setattr(offered_profiles, "of_session", lambda kind: own)
    assert offered_profiles.corpora(WEIGHTS) == ["", "cats", "dogs"]
    own.text, own.name = "my lines", "mine.csv"
    assert offered_profiles.corpora(THEIRS) == ["theirs", OWN, FILE]
    corpus_names = [offered_profiles.corpus_name(corpus) for corpus in ("", OWN, FILE, "cats")]
    assert corpus_names == ["Bundled sentences", "Your own sentences", "mine.csv", "cats"]
    monkeypatch.delenv("ATTNVIZ_PROFILES")
    assert [*offered_profiles.offered(WEIGHTS)] == [""]
    first = offered["cats"].read()
    assert offered["cats"].read() is first
    os.utime(cats / "heads.parquet", ns=(1, 1))
    monkeypatch.setenv("ATTNVIZ_PROFILES", str(cats))
    assert profiles.listed()["cats"].read() is not first
    with pytest.raises(CorpusError) as raised:
        listed["broken"].read()
    assert str(tmp_path) not in str(raised.value)
