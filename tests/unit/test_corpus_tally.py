"""What is counted of a corpus, and the rows that are written of it: counted again text by text, in plain Python."""

import math
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest

import attnviz
from attnviz.corpus import tally as tallies
from attnviz.corpus import writing
from attnviz.corpus.columns import ACTIVATION, COLUMNS, DIRECTIONS, DISTANCES, MEANS, PLACES, POSITIONS, QUERY
from attnviz.corpus.labels import Labels
from attnviz.corpus.measuring import TextNumbers
from attnviz.corpus.profile import Pair, check_columns
from attnviz.corpus.running import Checks, Folder
from attnviz.corpus.sums import N_GROUP, text_hash
from attnviz.corpus.tally import Measured, Tally
from attnviz.errors import CorpusError
from attnviz.records import Head

N_HEAD, N_SAMPLE, N_STRONGEST = 3, 9, 4
HEADS = [("encoder", Head(0, 0)), ("encoder", Head(0, 1)), ("encoder", Head(1, 0))]
RELATIONS = ("det", "obj", "root", "far")


def labels_of(random):
    """A word depends on the next, on one far to the right, or on none."""
    n_word = 13
    heads = random.choice([-1, 0, 3, 12], n_word)
    return Labels(
        spans=np.array([(at, at + 1) for at in range(n_word)]),
        heads=heads,
        relations=tuple(random.choice(RELATIONS, n_word).tolist()),
        parts=("X",) * n_word,
    )


def measured(number):
    """A text of some words of few, so that some occur twice; its numbers and labels are its own."""
    random = np.random.default_rng(number % 17)
    numbers = random.integers(0, 4, (N_HEAD, len(COLUMNS))).astype(np.float32)
    numbers[random.random(numbers.shape) < 0.2] = np.nan
    numbers[:, COLUMNS.index(QUERY)] = random.integers(0, 5, N_HEAD)
    numbers[2, COLUMNS.index(ACTIVATION)] = np.nan if number % 17 else 1.0  # few texts have one for this head
    labels = labels_of(random) if number % 3 else None
    related = [] if labels is None else [*zip(labels.heads.tolist(), labels.relations, strict=True)]
    n_words = Counter(name for head, name in related if head >= 0)
    return Measured(
        text=f"text {number % 17}{' more' * (number % 3)}",
        labels=labels,
        n_token=2 + number % 5,
        checks=Checks(n_text=number % 2, n_passed=number % 2, worst_error=number / 64),
        numbers=TextNumbers(
            numbers,
            dict(n_words),
            {name: random.integers(0, n + 1, (N_HEAD, len(DIRECTIONS))) for name, n in n_words.items()},
        ),
    )


TEXTS = [measured(number) for number in range(60)]


@pytest.fixture
def tally(monkeypatch):
    """Of sixty texts, in parts of different lengths."""
    monkeypatch.setattr(tallies, "N_SAMPLE", N_SAMPLE)
    monkeypatch.setattr(tallies, "N_STRONGEST", N_STRONGEST)
    counted = Tally(about={"texts": "some"}, n_head=N_HEAD)
    for first, stop in ((0, 7), (7, 7), (7, 30), (30, 60)):
        counted.add(TEXTS[first:stop])
    return counted


def number(text, head, name):
    return float(text.numbers.numbers[head, COLUMNS.index(name)])


def distinct():
    """The texts by their hashes, each once."""
    return {text_hash(text.text): text for text in TEXTS}


def strongest_of(head):
    """Hashes of the texts with the largest activations of a head; of equal ones the smaller hash is first."""
    known = {place: number(text, head, ACTIVATION) for place, text in distinct().items()}
    known = {place: activation for place, activation in known.items() if not math.isnan(activation)}
    return sorted(known, key=lambda place: (-known[place], place))[:N_STRONGEST]


def test_texts_and_tokens_are_counted_and_numbers_summed(tally):
    assert (tally.n_text, tally.n_token) == (60, sum(text.n_token for text in TEXTS))
    assert tally.checks == Checks(n_text=30, n_passed=30, worst_error=59 / 64)
    assert 17 <= len(distinct()) < 60
    for names, sums, n_group in ((MEANS, tally.means, N_GROUP), (PLACES, tally.places, 1)):
        assert sums.totals.shape == sums.counts.shape == (n_group, N_HEAD, len(names))
        for group in {group_of(text) % n_group for text in TEXTS}:
            for head in range(N_HEAD):
                for at in (0, 5, len(names) - 1):
                    known = [
                        number(text, head, names[at])
                        for text in TEXTS
                        if group_of(text) % n_group == group and not math.isnan(number(text, head, names[at]))
                    ]
                    assert sums.counts[group, head, at] == len(known)
                    assert sums.totals[group, head, at] == sum(known)
        assert (sums.texts == sums.counts.sum(axis=0)).all()


def group_of(text):
    """By the hash of the text, so that equal texts are in the same."""
    return text_hash(text.text) % N_GROUP


def test_the_sample_is_of_the_smallest_hashes(tally):
    wanted = sorted(distinct())[:N_SAMPLE]
    assert tally.sample.tolist() == wanted
    for place, shown in zip(wanted, tally.sample_shown, strict=True):
        expected = [
            [number(distinct()[place], head, name) for name in (ACTIVATION, QUERY)] for head in range(N_HEAD)
        ]
        np.testing.assert_array_equal(shown, expected)


def test_of_each_head_the_largest_activations_are_kept_each_text_once(tally):
    assert len(strongest_of(0)) == N_STRONGEST and len(strongest_of(2)) < N_STRONGEST
    for head in range(N_HEAD):
        wanted = strongest_of(head)
        n_missing = N_STRONGEST - len(wanted)
        assert tally.strongest[head].tolist() == [*wanted, *[0] * n_missing]
        expected = [
            [number(distinct()[place], head, name) for name in (ACTIVATION, QUERY)] for place in wanted
        ]
        expected += [[-math.inf, -math.inf]] * n_missing
        np.testing.assert_array_equal(tally.strongest_shown[head], expected)


def test_all_texts_at_once_are_counted_alike(tally):
    once = Tally(about={"texts": "some"}, n_head=N_HEAD)
    once.add(TEXTS)
    for name in ("sample", "sample_shown", "strongest", "strongest_shown"):
        np.testing.assert_array_equal(getattr(once, name), getattr(tally, name), name)
    assert (once.n_text, once.n_token, once.labels) == (tally.n_text, tally.n_token, tally.labels)
    assert {place for place in once.texts if place} == {place for place in tally.texts if place}


def test_texts_and_labels_are_kept_of_what_is_shown_alone(tally):
    kept = {
        *sorted(distinct())[:N_SAMPLE],
        *(place for head in range(N_HEAD) for place in strongest_of(head)),
    }
    assert {place: text for place, text in tally.texts.items() if place} == {
        place: distinct()[place].text for place in kept
    }
    with_labels = {place: distinct()[place].labels for place in kept}
    assert tally.labels == {
        place: labels.written() for place, labels in with_labels.items() if labels is not None
    }


def n_words_of(name):
    return sum(text.numbers.n_words.get(name, 0) for text in TEXTS)


def offsets_of(name):
    """How far away the words of a relation depend, up to ten words."""
    counts = Counter()
    for text in TEXTS:
        if text.labels is not None:
            for word, (head, relation) in enumerate(
                zip(text.labels.heads.tolist(), text.labels.relations, strict=True)
            ):
                counts[head - word] += relation == name and head >= 0 and abs(head - word) <= 10
    return +counts


def test_words_of_a_relation_are_counted_by_group_of_texts(tally):
    assert set(tally.relations) == set(RELATIONS) == set(tally.offsets)
    for name in RELATIONS:
        sums = tally.relations[name]
        assert sums.counts.sum() == n_words_of(name)
        assert sums.texts.tolist() == [[sum(name in text.numbers.n_words for text in TEXTS)]]
        assert tally.offsets[name] == offsets_of(name)
        assert 10 in tally.offsets[name] or -9 in tally.offsets[name]
        for group in map(group_of, TEXTS):
            of_group = [text.numbers for text in TEXTS if group_of(text) == group]
            assert sums.counts[group, 0, 0] == sum(numbers.n_words.get(name, 0) for numbers in of_group)
            found = sum(numbers.n_found[name] for numbers in of_group if name in numbers.n_found)
            np.testing.assert_array_equal(
                sums.totals[group], np.broadcast_to(found, (N_HEAD, len(DIRECTIONS)))
            )


def test_rows_of_relations(tally):
    """The most frequent relation first; the fixed offset that most words have, of equal ones the nearest."""
    rows = writing._relations(tally)
    order = sorted(RELATIONS, key=lambda name: (-n_words_of(name), name))
    assert len(rows) == N_HEAD
    for head, of_head in enumerate(rows):
        assert [(row["relation"], row["direction"]) for row in of_head] == [
            (name, direction) for name in order for direction in DIRECTIONS
        ]
        for row in of_head:
            name, way = row["relation"], DIRECTIONS.index(row["direction"])
            found = sum(
                int(text.numbers.n_found[name][head, way]) for text in TEXTS if name in text.numbers.n_found
            )
            assert (row["accuracy"], row["words"]) == (found / n_words_of(name), n_words_of(name))
            ends = [end[head, way] for end in tally.relations[name].share_intervals()]
            assert (row["low"], row["high"]) == tuple(ends)
            assert row["low"] < row["accuracy"] < row["high"]
            most = max(offsets_of(name).values())
            nearest = min((at for at, n in offsets_of(name).items() if n == most), key=abs)
            assert abs(row["offset"]) == abs(nearest) and offsets_of(name)[row["offset"]] == most
            assert row["offset_accuracy"] == pytest.approx(most / n_words_of(name))


def test_a_relation_of_words_that_are_far_apart_has_no_fixed_offset(tally):
    tally.offsets["det"] = Counter()
    [row, _] = [row for row in writing._relations(tally)[0] if row["relation"] == "det"]
    assert (row["offset"], row["offset_accuracy"]) == (0, 0.0)


def test_examples_are_the_strongest_and_three_of_each_decile(tally):
    rows = [example.row for example in writing._examples(tally, HEADS)]
    for head, (kind, place) in enumerate(HEADS):
        of_head = [row for row in rows if (row["kind"], row["layer"], row["head"]) == (kind, *place)]
        strongest = [row for row in of_head if row["decile"] is None]
        assert [(row["rank"], row["text"]) for row in strongest] == [
            (rank, distinct()[hash_].text) for rank, hash_ in enumerate(strongest_of(head), 1)
        ]
        sample = [
            (number(distinct()[hash_], head, ACTIVATION), hash_) for hash_ in sorted(distinct())[:N_SAMPLE]
        ]
        sample = [pair for pair in sample if not math.isnan(pair[0])]
        in_deciles = [row for row in of_head if row["decile"] is not None]
        assert [row["activation"] for row in in_deciles] == sorted(pair[0] for pair in sample)
        assert len({row["text"] for row in in_deciles}) == len(sample)
        assert [row["decile"] for row in in_deciles] == [
            *range(1, len(sample) + 1)
        ]  # fewer than ten: one each
        for row in of_head:
            text = next(text for text in TEXTS if text.text == row["text"])
            assert row["activation"] == number(text, head, ACTIVATION)


def test_of_a_decile_the_smallest_the_middle_and_the_largest(monkeypatch):
    """Seventy texts with the activations 0 to 69, so that a decile has seven."""
    monkeypatch.setattr(tallies, "N_STRONGEST", 2)
    counted = Tally(about={}, n_head=1)
    for activation in range(70):
        numbers = np.full((1, len(COLUMNS)), float(activation), dtype=np.float32)
        counted.add(
            [Measured(text=f"{activation}", labels=None, n_token=1, numbers=TextNumbers(numbers, {}, {}))]
        )
    rows = [example.row for example in writing._examples(counted, HEADS[:1])]
    assert [(row["decile"], row["rank"], row["activation"], row["text"], row["query"]) for row in rows] == [
        *((None, rank, at, str(at), at) for rank, at in ((1, 69), (2, 68))),
        *(
            (decile, rank, at, str(at), at)
            for decile in range(1, 11)
            for rank, at in enumerate((7 * decile - 7, 7 * decile - 4, 7 * decile - 1), 1)
        ),
    ]


@pytest.mark.stand_ins
def test_what_a_profile_says_of_itself(tally):
    tally.n_entry, tally.n_failed = 70, 10
    tally.checks = Checks(n_text=5, n_passed=4, worst_error=0.25, worst_difference=0.75)
    about = tally.described() | writing._about(tally, {"encoder": SimpleNamespace(n_token=50, n_text=8)})
    assert about == {
        "schema": 1,
        "written_by": f"attnviz {attnviz.__version__}",
        "about": {"texts": "some"},
        "n_entry": 70,
        "n_text": 60,
        "n_token": tally.n_token,
        "n_failed": 10,
        "n_sample": N_SAMPLE,
        "checks": {"n_text": 5, "n_passed": 4, "worst_error": 0.25, "worst_difference": 0.75},
        "interval": {"level": 0.95, "fewest_texts": 20},
        "distance_edges": (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 16, 32, 64, 128, 256),
        "probes": {"n_token": 50, "n_text": 8},
    }
    assert writing._about(tally, {})["probes"] is None


def mean_of(name, head):
    known = [number(text, head, name) for text in TEXTS if not math.isnan(number(text, head, name))]
    return sum(known) / len(known) if known else None


def pair_of(name):
    return Pair(query=f"{name} a", key=f"{name} b", mass=3.0, expected=1.5, n=2)


@pytest.mark.stand_ins
def test_rows_of_heads(tally, monkeypatch):
    """Two heads of one kind and one of another: copying scores and probes are of the first kind."""
    heads = [*HEADS[:2], ("cross", Head(0, 0))]
    names = ("first", "second", "third")
    pairs = SimpleNamespace(
        of_tokens=lambda: iter([[pair_of(name)] * (at + 1) for at, name in enumerate(names)]),
        of_parts=lambda: iter([[pair_of("part")], []]),
    )
    monkeypatch.setattr(writing, "_copying", lambda model: np.array([[0.5, np.nan]]))
    monkeypatch.setattr(
        writing, "probe_columns", lambda probes, head: {probes: float(head.head), "none": np.nan}
    )
    rows = writing._head_rows(None, tally, heads, pairs, {"encoder": "probe_first"})
    assert [(row["kind"], row["layer"], row["head"], row["texts"]) for row in rows] == [
        ("encoder", 0, 0, 60),
        ("encoder", 0, 1, 60),
        ("cross", 0, 0, 60),
    ]
    assert [row["copying"] for row in rows] == [0.5, None, None]
    assert [(row.get("probe_first"), row.get("none", 0)) for row in rows] == [
        (0.0, None),
        (1.0, None),
        (None, 0),
    ]
    lows, highs = tally.means.mean_intervals()
    for head, row in enumerate(rows):
        for at, name in enumerate(MEANS):
            assert row[name] == (None if mean_of(name, head) is None else pytest.approx(mean_of(name, head)))
            if row[name] is not None and np.isfinite(lows[head, at]):
                assert row[f"{name}_low"] == max(lows[head, at], 0)
                most = math.inf if name in ("distance", "distance_norms", "activation") else max(1, row[name])
                assert row[f"{name}_high"] == min(highs[head, at], most)
                assert row[f"{name}_low"] <= row[name] <= row[f"{name}_high"]
            else:
                assert row[f"{name}_low"] is row[f"{name}_high"] is None
        assert row["distances"] == pytest.approx([mean_of(name, head) for name in DISTANCES])
        assert row["positions"] == pytest.approx([mean_of(name, head) for name in POSITIONS])
        assert row["relations"] == writing._relations(tally)[head]
        pair = {"query": f"{names[head]} a", "key": f"{names[head]} b", "mass": 3.0, "expected": 1.5, "n": 2}
        assert row["token_pairs"] == [pair] * (head + 1)
        assert [link["query"] for link in row["part_pairs"]] == (["part a"] if head == 0 else [])
    none = SimpleNamespace(of_tokens=lambda: iter([]), of_parts=lambda: iter([]))
    monkeypatch.setattr(writing, "_copying", lambda model: None)
    for row in writing._head_rows(None, tally, heads, none, {}):
        assert (row["token_pairs"], row["part_pairs"], row["copying"]) == ([], [], None)


@pytest.mark.stand_ins
def test_texts_that_are_shown_are_read_once_more(tally, monkeypatch):
    """Four at a time in the order of their hashes; pairs are of the sample, rows of weights of the examples."""
    added, asked, told = [], [], []

    class Read(SimpleNamespace):
        """A text of two tokens, with weights of its own."""

        def query_tokens(self, kind):
            return SimpleNamespace(labels=(f"{kind} query 0", "1", "2", "3", f"{kind} query 4"))

        def key_tokens(self, kind):
            return SimpleNamespace(labels=(f"{kind} key", self.text))

        def layer_weights(self, layer, kind):
            of = np.arange(30).reshape(3, 5, 2) + 100 * layer + 1000 * (kind == "cross")
            return of + 10_000 * len(self.text)

    class AddedPairs:
        def add(self, trace, labels):
            added.append((trace.text, labels))

    def trace_texts(texts):
        asked.append(texts)
        return [Read(text=text) for text in texts]

    monkeypatch.setattr(writing, "Pairs", AddedPairs)
    monkeypatch.setattr(writing, "MOST_TEXTS", 4)
    model = SimpleNamespace(read=lambda text, cut: text if cut else None, trace_texts=trace_texts)
    heads = [("encoder", Head(0, 2)), ("encoder", Head(1, 2)), ("cross", Head(1, 0))]
    examples = writing._examples(tally, heads)
    pairs = writing._read_again(model, tally, examples, told.append)
    assert isinstance(pairs, AddedPairs)
    shown = sorted({*sorted(distinct())[:N_SAMPLE], *(example.hash for example in examples)})
    texts = [distinct()[place].text for place in shown]
    assert len(texts) > 4 * 2 and asked == [texts[start : start + 4] for start in range(0, len(texts), 4)]
    assert told == pytest.approx([start / len(texts) for start in range(0, len(texts), 4)])
    in_sample = [distinct()[place] for place in sorted(distinct())[:N_SAMPLE]]
    assert [text for text, _ in added] == [text.text for text in in_sample]
    for (_, labels), text in zip(added, in_sample, strict=True):
        assert (labels is None) == (text.labels is None)
        if labels is not None:
            assert labels.written() == text.labels.written()
    for example in examples:
        row, kind = example.row, example.kind
        assert row["query_label"] == Read().query_tokens(kind).labels[row["query"]]
        assert row["labels"] == [f"{kind} key", row["text"]]
        weights = Read(text=row["text"]).layer_weights(example.head.layer, kind)
        np.testing.assert_array_equal(row["weights"], weights[example.head.head][row["query"]])


def test_a_tally_is_read_as_it_was_written(tally, tmp_path):
    folder, again = Folder(tmp_path, "profile"), Tally(about={"texts": "some"}, n_head=N_HEAD)
    tally.n_entry, tally.n_failed = 70, 10
    tally.checks = Checks(n_text=5, n_passed=4, worst_error=0.25, worst_difference=0.75)
    folder.save(tally)
    assert folder.restore(again)
    for name in (
        "about",
        "n_head",
        "n_entry",
        "n_text",
        "n_token",
        "n_failed",
        "offsets",
        "texts",
        "labels",
        "checks",
    ):
        assert getattr(again, name) == getattr(tally, name), name
    for name in ("sample", "sample_shown", "strongest", "strongest_shown"):
        np.testing.assert_equal(getattr(again, name), getattr(tally, name), name)
    assert list(again.relations) == list(tally.relations)
    of_relations = [(again.relations[name], tally.relations[name]) for name in RELATIONS]
    for ours, theirs in ((again.means, tally.means), (again.places, tally.places), *of_relations):
        np.testing.assert_array_equal(ours.totals, theirs.totals)
        np.testing.assert_array_equal(ours.counts, theirs.counts)
        np.testing.assert_array_equal(ours.texts, theirs.texts)


def test_a_file_has_the_columns_of_its_form():
    wanted = pa.schema([("kind", pa.string()), ("layer", pa.int32())])
    check_columns(
        pa.schema([("layer", pa.int32()), ("more", pa.int8()), ("kind", pa.string())]), wanted, Path("a")
    )
    for there, words in (
        ([("layer", pa.int32())], "The column kind of a should hold string and is missing. "),
        ([("kind", pa.string())], "The column layer of a should hold int32 and is missing. "),
        (
            [("kind", pa.int8()), ("layer", pa.int32())],
            "The column kind of a should hold string and holds int8. ",
        ),
        (
            [("kind", pa.string()), ("layer", pa.int64())],
            "The column layer of a should hold int32 and holds int64. ",
        ),
    ):
        with pytest.raises(CorpusError, match=words):
            check_columns(pa.schema(there), wanted, Path("a"))
