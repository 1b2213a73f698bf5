"""What a run over texts reads, verifies, counts and keeps, whatever it measures, with a model that only says what it was asked."""

import hashlib
import math
from collections import Counter
from dataclasses import dataclass, field
from itertools import pairwise
from types import SimpleNamespace
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnviz.corpus import indexing, pipeline, running
from attnviz.corpus.columns import COLUMNS
from attnviz.corpus.contexts import Contexts
from attnviz.corpus.labels import Labels
from attnviz.corpus.measuring import TextNumbers
from attnviz.corpus.running import Checks, Counts, Folder, Reader, windows
from attnviz.corpus.texts import Entry, Failure
from attnviz.corpus.token_index import read_index
from attnviz.errors import CorpusError, InvalidTextError, SelectionError, TextTooLongError
from tests import hand_made, small_records

LABELS = Labels(spans=np.array([[0, 1]]), heads=np.array([-1]), relations=("root",), parts=("X",))


def entries_of(*texts, labels=None):
    return [
        Entry(source="a.txt", place=number, text=text, labels=labels) for number, text in enumerate(texts, 1)
    ]


def hash_of(text, labels=""):
    return int(hashlib.sha256(f"{text}\0{labels}".encode()).hexdigest(), 16)


def test_the_digest_of_texts_is_the_sum_of_their_hashes_in_any_order():
    every = ["it opened", "a door", "it opened", "x", "y", "z"]
    assert len({sum(map(hash_of, every[:n])) // 2**256 for n in range(7)}) > 2  # it does not grow with them
    for n in range(7):
        texts = every[:n]
        expected = f"{sum(map(hash_of, texts)) % 2**256:064x}"
        assert (
            running.digest_of(entries_of(*texts)) == running.digest_of(entries_of(*texts[::-1])) == expected
        )
    assert running.digest_of(entries_of("x", labels=LABELS)) == f"{hash_of('x', LABELS.written()):064x}"
    assert running.digest_of([]) == "0" * 64


def test_texts_are_counted_with_those_that_cannot_be_read(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"it opened\n\xff\n\na door\n")
    (tmp_path / "b.csv").write_text("id,said\n1,it ran\n")
    files = [tmp_path / "a.txt", tmp_path / "b.csv"]
    n_all, digest = running.count_texts(files, "said")
    assert (n_all, digest) == (4, running.digest_of(entries_of("a door", "it opened", "it ran")))
    read = [*running.entries_of(files, "said")]
    assert [entry.text if isinstance(entry, Entry) else entry.place for entry in read] == [
        *("it opened", 2, "a door", "it ran")
    ]
    empty = [tmp_path / f"{number}.txt" for number in range(4)]
    for path in empty:
        path.write_text("\n")
    with pytest.raises(CorpusError, match=r"0\.txt, .*1\.txt, .*2\.txt hold no text") as raised:
        running.count_texts(empty, None)
    assert "3.txt" not in str(raised.value)


def test_the_first_32_of_every_3200_texts_are_verified():
    verified = [place for place in range(6500) if running.is_verified(place)]
    assert verified == [*range(32), *range(3200, 3232), *range(6400, 6432)]


class AskedModel:
    """A model that reads a word as a token, with two special ones, and says what it was asked."""

    name = "asked"
    revision = "1"
    provenance = small_records.PROVENANCE
    weights_sha256: ClassVar = {"w": "1"}

    def __init__(self, max_tokens=None):
        self.max_tokens = max_tokens
        self.tokenized, self.asked = [], []

    def tokenize(self, text):
        self.tokenized.append(text)
        if "long" in text:
            raise TextTooLongError(
                "It is too long.", length=9999, limit=self.max_tokens or 512, unit="tokens"
            )
        if "odd" in text:
            raise InvalidTextError("It is odd.")
        return [None] * (len(text.split()) + 2)

    def read(self, text, *, max_tokens):
        self.asked.append((text, max_tokens))
        if text == "bad":
            raise InvalidTextError("It is bad.")
        return hand_made.tokens(["[CLS]", *text.split(), "[SEP]"]), None


@pytest.mark.parametrize(("max_tokens", "limit"), [(None, 512), (600, 512), (40, 40)])
def test_a_text_is_tokenized_where_its_bytes_do_not_say_that_it_fits(max_tokens, limit):
    """Eight tokens may be added; a text of which that is sure is read as it is."""
    model = AskedModel(max_tokens)
    fits = "é" * ((limit - 8) // 2)
    [window] = Reader(model).windows(7, *entries_of(fits))
    assert (window.number, window.text) == (7, fits) and len(window.read[0]) == 3 and window.read[1] is None
    assert model.tokenized == [] and model.asked == [(fits, limit)]
    Reader(model).windows(7, *entries_of(f"{fits}e"))
    assert model.tokenized == [f"{fits}e"]


def test_a_text_that_does_not_fit_is_read_in_windows_unless_it_has_labels():
    model = AskedModel(10)
    text = "one two three. four five six. seven eight nine."
    assert [window.text for window in Reader(model).windows(0, *entries_of(text))] == [
        "one two three. four five six.",
        "seven eight nine.",
    ]
    assert [limit for _, limit in model.asked] == [10, 10]
    assert [window.text for window in Reader(model).windows(0, *entries_of(text, labels=LABELS))] == [text]
    # an error that says how long the text is, and one that does not
    assert Reader(model)._n_tokens("long words here") == 9999
    assert Reader(model)._n_tokens("odd words here") == 11


class Ran:
    """What ran together, and whether it was verified."""

    def __init__(self, monkeypatch):
        self.batches, self.verified = [], []
        monkeypatch.setattr(pipeline, "measured", self._measured)
        monkeypatch.setattr(pipeline, "verified", self._verified)

    def _measured(self, model, texts, names, labels):
        assert tuple(names) == COLUMNS and len(labels) == len(texts)
        self.batches.append([tokens.text for tokens, _ in texts])
        assert [label is not None for label in labels] == [" d e " in text for text in self.batches[-1]]
        if any("fails" in tokens.text for tokens, _ in texts):
            raise InvalidTextError(f"It fails in {len(texts)}.")
        return [TextNumbers(np.full((1, 1), len(tokens)), {}, {}) for tokens, _ in texts]

    def _verified(self, model, texts, numbers):
        self.verified.append([tokens.text for tokens, _ in texts])
        assert len(numbers) == len(texts)
        return [Checks(n_text=1, n_passed=1, worst_error=0.5, worst_difference=0.25) for _ in texts]


@pytest.mark.stand_ins
def test_each_text_is_measured_or_fails_with_its_own_reason(monkeypatch):
    ran = Ran(monkeypatch)
    texts = [*entries_of("a b", "bad", "it fails", "c"), *entries_of("d e", labels=LABELS), *entries_of("x")]
    found = pipeline.Measuring(AskedModel()).measure(texts, [True, True, False, False, False, True])
    assert [result if isinstance(result, str) else [text.text for text in result] for result in found] == [
        *(["a b"], "It is bad.", "It fails in 1.", ["c"], ["d e"], ["x"])
    ]
    # the verified ones run together first; those of a batch that fails run once more, each alone
    as_run = "[CLS] {} [SEP]".format
    first, second, *alone = [sorted(batch) for batch in ran.batches]
    assert first == sorted(map(as_run, ["a b", "x"])) and [sorted(batch) for batch in ran.verified] == [first]
    assert second == sorted(map(as_run, ["it fails", "c", "d e"]))
    assert sorted(alone) == sorted([as_run(text)] for text in ["it fails", "c", "d e"])
    for result, n_token in zip(found, (4, None, None, 3, 4, 3), strict=True):
        if n_token is not None:
            [measured] = result
            assert measured.n_token == n_token == measured.numbers.numbers[0, 0]
            assert (measured.labels is not None) == (measured.text == "d e")
    checks = {
        text.text: text.checks.n_text for result in found if not isinstance(result, str) for text in result
    }
    assert checks == {"a b": 1, "c": 0, "d e": 0, "x": 1}


@pytest.mark.stand_ins
def test_a_text_of_which_a_window_cannot_be_read_fails_as_a_whole(monkeypatch):
    Ran(monkeypatch)
    model = AskedModel(4)
    texts = entries_of("one. two. three.", "one. it fails. two.", "four")
    parts, reason, last = pipeline.Measuring(model).measure(texts, [False] * 3)
    assert {text.text for text in parts} == {"one. two.", "three."}
    assert reason == "It fails in 1." and [text.text for text in last] == ["four"]


@dataclass(kw_only=True)
class Letters(Counts):
    """What is counted of texts: their letters, and an array and mappings beside."""

    letters: Counter = field(default_factory=Counter)
    seen: np.ndarray = field(default_factory=lambda: np.zeros(0))
    by_place: dict = field(default_factory=dict)

    def restore(self, saved):
        super().restore(saved)
        self.letters = Counter(saved["letters"])
        self.by_place = {int(place): text for place, text in saved["by_place"].items()}


class Counting:
    """A measurer of letters, which cannot read a text that says "bad"; of a shard it also keeps the texts."""

    name, others, mark = "profile", "profile of other texts", "made.parquet"
    SCHEMA: ClassVar = pa.schema([("text", pa.string())])

    def __init__(self, **about):
        self.about, self.counts, self.asked = about, Letters(), []

    def measure(self, texts, verify, folder):
        self.asked.append(([text.text for text in texts], verify))
        read = [text.text for text in texts if "bad" not in text.text]
        self.counts.letters.update("".join(read))
        self.counts.seen = np.append(self.counts.seen, [len(text) / 3 for text in read])
        self.counts.by_place |= {entry.place: entry.text for entry in texts}
        self.counts.checks.add(Checks(n_text=sum(verify), worst_error=0.1))
        self.counts.n_text += len(read)
        self.counts.n_token += sum(map(len, read))
        folder.keep(self.counts.n_entry, "made.parquet", pa.table({"text": read}))
        return {number: f"It is {text.text}." for number, text in enumerate(texts) if "bad" in text.text}

    def write(self, folder, progress):
        progress(0.5)
        folder.join("made.parquet", self.SCHEMA, self.counts.described())

    def read(self, out):
        table = pq.read_table(out / "made.parquet")
        metadata = running.Parquet(out / "made.parquet").metadata
        return SimpleNamespace(
            about=metadata["about"], texts=table["text"].to_pylist(), counts=self.counts, metadata=metadata
        )


@pytest.mark.stand_ins
class TestRun:
    """Seven texts in two files, of which three cannot be read: two by the model, and one that is not UTF-8."""

    @pytest.fixture(autouse=True)
    def files(self, tmp_path, monkeypatch):
        monkeypatch.setattr(running, "N_SHARD", 3)
        (tmp_path / "a.txt").write_bytes(b"it opened\nbad one\n\xff\na door\n")
        (tmp_path / "b.txt").write_text("it ran\nbad two\nit sat\n")
        self.files = [tmp_path / "a.txt", tmp_path / "b.txt"]

    def run(self, out, measurer=None, **named):
        given = {"column": None, "label_texts": list, "progress": lambda _: None} | named
        return running.run(measurer or Counting(of="letters"), self.files, out, **given)

    def stopped(self, out, after, **named):
        """A run that is stopped after so many texts."""

        def stop(now):
            if now.n_done == after:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            self.run(out, progress=stop, **named)

    def same(self, made, out):
        """Whether a run made what the seven texts give."""
        texts = ["it opened", "a door", "it ran", "it sat"]
        counts = made.counts
        assert made.texts == texts and counts.letters == Counter("".join(texts))
        assert counts.seen.tolist() == [len(text) / 3 for text in texts]
        assert (counts.n_entry, counts.n_text, counts.n_token, counts.n_failed) == (7, 4, 27, 3)
        assert counts.by_place == {1: "it ran", 2: "bad two", 3: "it sat", 4: "a door"}
        assert counts.checks == Checks(n_text=6, worst_error=0.1)
        failed = pq.read_table(out / "failed.parquet").to_pylist()
        places = [(failure["source"], failure["place"]) for failure in failed]
        assert places == [(str(self.files[0]), 3), (str(self.files[0]), 2), (str(self.files[1]), 2)]
        assert [failure["reason"] for failure in failed][1:] == ["It is bad one.", "It is bad two."]
        assert sorted(path.name for path in out.iterdir()) == ["failed.parquet", "made.parquet"]

    def test_shard_by_shard(self, tmp_path):
        told, written, measurer, out = [], [], Counting(of="letters"), tmp_path / "new" / "out"

        def label(texts):
            return [Entry(source=text.source, place=text.place, text=text.text) for text in texts]

        made = self.run(out, measurer, label_texts=label, progress=told.append, writing=written.append)
        self.same(made, out)
        assert measurer.asked == [
            (["it opened", "bad one"], [True] * 2),
            (["a door", "it ran", "bad two"], [True] * 3),
            (["it sat"], [True]),
        ]
        assert [(now.n_done, now.n_all, now.n_failed) for now in told] == [(3, 7, 2), (6, 7, 3), (7, 7, 3)]
        assert written == [0.5] and made.about["of"] == "letters" and made.metadata["n_failed"] == 3
        again = Counting(of="letters")
        assert self.run(out, again).texts == made.texts and again.asked == []  # it is only read

    def test_parts_of_a_cluster_are_one_shard(self, tmp_path):
        measurer = Counting(of="letters")
        self.run(tmp_path / "out", measurer, n_part=2)
        assert [len(texts) for texts, _ in measurer.asked] == [5, 1]

    @pytest.mark.parametrize("after", [3, 6, 7])
    def test_a_run_that_was_stopped_goes_on(self, after, tmp_path, monkeypatch):
        out = tmp_path / "out"
        self.stopped(out, after)
        assert not (out / "made.parquet").exists() and not (out / "failed.parquet").exists()
        clock = iter([0.0, *(4.0 * number for number in range(1, 9))])  # four seconds for each shard
        monkeypatch.setattr(running, "time", SimpleNamespace(monotonic=lambda: next(clock)))
        seen, measurer = [], Counting(of="letters")
        self.same(
            self.run(out, measurer, progress=lambda now: seen.append((now.n_done, now.per_second))), out
        )
        expected = [(6, 3 / 4), (7, 4 / 8)] if after == 3 else [(7, 1 / 4)]
        assert seen == (expected if after < 7 else [])
        assert sum(len(texts) for texts, _ in measurer.asked) == {3: 4, 6: 1, 7: 0}[after]

    @pytest.mark.parametrize("place", ["Folder.save", "Folder.join", "Folder.forget"])
    def test_a_run_that_is_stopped_anywhere_loses_and_repeats_nothing(self, place, tmp_path, monkeypatch):
        """In the middle of a shard what was written of it is there once more; at the end all parts still are."""
        out = tmp_path / "out"
        self.run(tmp_path / "whole")
        self.stopped(out, 3)

        def stop(*_, **__):
            raise KeyboardInterrupt

        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(running.Folder, place.partition(".")[2], stop)
            self.run(out)
        made = self.run(out)
        if place == "Folder.forget":  # all was written, so that it is only read
            assert made.texts == ["it opened", "a door", "it ran", "it sat"]
            assert sorted(path.name for path in out.iterdir()) == ["failed.parquet", "made.parquet"]
        else:
            self.same(made, out)

    def test_parts_are_joined_in_the_order_of_the_texts(self, tmp_path):
        """Of shards that begin with text 0, 3, 6, 9 and 12."""
        texts = [f"text {number}" for number in range(14)]
        (tmp_path / "a.txt").write_text("\n".join(texts))
        self.files = self.files[:1]
        assert self.run(tmp_path / "out").texts == texts

    def test_parts_without_a_state_are_no_part_of_another_run(self, tmp_path):
        """Of more texts, two shards of which are left."""
        out = tmp_path / "out"
        self.stopped(out, 6)
        (out / "profile-unfinished" / "state.npz").unlink()
        self.files[0].write_text("it sat\n")
        self.files = self.files[:1]
        assert self.run(out).texts == ["it sat"]
        assert pq.read_table(out / "failed.parquet").num_rows == 0

    def test_texts_none_of_which_can_be_read(self, tmp_path):
        """The first reason is in the error, as often as it is tried; a run of texts that can be read begins anew."""
        self.files = self.files[:1]
        self.files[0].write_text("bad one\nbad two\n")
        for _ in range(2):
            with pytest.raises(
                CorpusError,
                match=r"None of the 2 texts could be read; .*failed\.parquet says why of each\. The first is .*a\.txt, 1: It is bad one\.$",
            ):
                self.run(tmp_path / "out")
            assert pq.read_table(tmp_path / "out" / "failed.parquet")["place"].to_pylist() == [1, 2]
        self.files[0].write_text("it sat\n")
        assert self.run(tmp_path / "out").texts == ["it sat"]

    def test_a_folder_of_something_else(self, tmp_path):
        """Done or not, of other texts or another measurer."""
        self.run(tmp_path / "done")
        self.stopped(tmp_path / "half", 3)
        (tmp_path / "c.txt").write_text("more\n")
        for out in (tmp_path / "done", tmp_path / "half"):
            with pytest.raises(CorpusError, match="holds the profile of other texts, another model or other"):
                self.run(out, Counting(of="words"))
        self.files.append(tmp_path / "c.txt")
        for out in (tmp_path / "done", tmp_path / "half"):
            with pytest.raises(CorpusError, match="holds the profile of other texts, another model or other"):
                self.run(out)

    @pytest.mark.parametrize("damage", [b"nonsense", b"", None])
    def test_a_damaged_state(self, damage, tmp_path):
        out = tmp_path / "out"
        self.stopped(out, 3)
        path = out / "profile-unfinished" / "state.npz"
        whole = path.read_bytes()
        path.write_bytes(whole[: len(whole) // 2] if damage is None else damage)
        with pytest.raises(
            CorpusError, match=r"state\.npz is not what attnviz wrote there, .* Delete it to begin"
        ):
            self.run(out)
        path.unlink()
        self.same(self.run(out), out)

    @pytest.mark.parametrize(("name", "file"), [("profile", "tally.npz"), ("index", "index.json")])
    def test_a_run_that_an_earlier_version_left_unfinished(self, name, file, tmp_path):
        out, measurer = tmp_path / "out", Counting(of="letters")
        measurer.name = name
        out.mkdir()
        (out / file).write_bytes(b"of an earlier version")
        with pytest.raises(
            CorpusError, match=rf"{file} is not what .* or another version wrote it, so the run"
        ):
            self.run(out, measurer)
        (out / file).unlink()
        self.same(self.run(out, measurer), out)

    @pytest.mark.skipif(not running.Path("/dev/full").exists(), reason="/dev/full is Linux's")
    def test_a_full_disk(self, tmp_path):
        (tmp_path / "out").mkdir()
        (tmp_path / "out" / "failed.parquet.part").symlink_to("/dev/full")
        with pytest.raises(CorpusError, match="There is no room left on the disk"):
            self.run(tmp_path / "out")
        (tmp_path / "out" / "failed.parquet.part").unlink()
        (tmp_path / "out" / "profile-unfinished" / "state.npz.part").symlink_to("/dev/full")
        with pytest.raises(CorpusError, match="There is no room left on the disk"):
            Folder(tmp_path / "out", "profile").save(Counts())

    def test_texts_in_memory(self):
        told = []
        texts = [*(f"text {number}" for number in range(69)), Failure(source="a.txt", place=70, reason="No.")]
        texts[40] = "bad text"
        measurer = Counting(of="letters")
        made, failures = running.run_in_memory(
            measurer, texts, progress=told.append, measuring=0.75, verify=lambda place: place < 4
        )
        assert [(failure.place, failure.reason) for failure in failures] == [
            (70, "No."),
            (41, "It is bad text."),
        ]
        assert [len(asked) for asked, _ in measurer.asked] == [32, 32, 5]
        assert [verified for _, of_part in measurer.asked for verified in of_part] == [True] * 4 + [
            False
        ] * 65
        assert made.texts == [*texts[:40], *texts[41:69]]
        assert (measurer.counts.n_entry, measurer.counts.n_failed) == (70, 2)
        assert made.about == {"texts": running.digest_of(entries_of(*texts[:69])), "of": "letters"}
        assert told == pytest.approx([0, 0.75 * 32 / 69, 0.75 * 64 / 69, 0.875])

    @pytest.mark.parametrize(
        ("texts", "reason"),
        [
            ([Failure(source="a.txt", place=70, reason="No.")], r"^No\.$"),
            (["bad"], r"^It is bad\.$"),
            ([], "None of the texts holds anything"),
        ],
    )
    def test_no_text_in_memory(self, texts, reason):
        with pytest.raises(CorpusError, match=reason):
            running.run_in_memory(Counting(), texts, progress=lambda _: None)


def test_results_of_verified_texts_are_added():
    checks = Checks(n_text=2, n_passed=1, worst_error=0.25, worst_difference=0.5)
    checks.add(Checks(n_text=3, n_passed=3, worst_error=0.125, worst_difference=0.75))
    assert checks == Checks(n_text=5, n_passed=4, worst_error=0.25, worst_difference=0.75)
    checks.add(Checks(n_text=1, n_passed=0, worst_error=1.0, worst_difference=0.0))
    assert checks == Checks(n_text=6, n_passed=4, worst_error=1.0, worst_difference=0.75)


def test_the_seconds_that_are_left():
    def left(n_done, per_second):
        progress = running.Progress(n_done=n_done, n_all=40, n_failed=0, per_second=per_second)
        return progress.seconds_left

    assert (left(10, 4.0), left(10, 0.5), left(40, 4.0), left(0, 0.0)) == (7.5, 60.0, 0.0, float("inf"))


@pytest.mark.stand_ins
@pytest.mark.parametrize(("n_sample", "n_again"), [(10, 30), (48, 68), (49, 69), (1000, 69)])
def test_the_share_of_measuring_in_a_profile_of_texts_in_memory(n_sample, n_again, monkeypatch):
    """Of the sample, and of four texts for each of five heads, what is shown is read once more; of no text twice."""
    model = AskedModel()
    heads = {"encoder": [None] * 3, "cross": [None] * 2}
    model.probe = lambda: SimpleNamespace(kinds=tuple(heads), heads=heads.__getitem__)
    texts = [*entries_of(*("text",) * 69), Failure(source="a.txt", place=70, reason="No.")]
    monkeypatch.setattr(pipeline, "N_SAMPLE", n_sample)
    monkeypatch.setattr(pipeline, "N_STRONGEST", 4)
    monkeypatch.setattr(pipeline, "run_in_memory", lambda measurer, entries, **named: (measurer, named))
    measurer, named = pipeline.profile_texts(model, texts)
    assert measurer.counts.n_head == 5 and named["measuring"] == pytest.approx(69 / (69 + n_again))
    assert measurer.about == {
        "model": "asked",
        "revision": "1",
        "dtype": "float32",
        "versions": {"torch": "2"},
        "weights": {"w": "1"},
        "labels": None,
    }


class TestIndexer:
    """Two heads on shared keys; a token's vectors are its place in its text, and each head attends to the text's first token."""

    LABELS: ClassVar = Labels(
        spans=np.array([[8, 11]]), heads=np.array([-1]), relations=("root",), parts=("NOUN",)
    )

    @pytest.fixture
    def ran(self, monkeypatch):
        """The texts of each batch."""
        batches = []

        def made(tokens):
            n = len(tokens)
            place = np.arange(n, dtype=np.float32)
            return Contexts(
                kind="encoder",
                hidden=np.stack([place, np.ones(n), np.zeros(n)], axis=1).astype(np.float32),
                query=np.stack([np.stack([place, np.full(n, head)], axis=1) for head in (1, 2)]).astype(
                    np.float32
                ),
                key=np.stack([place, np.full(n, 4)], axis=1)[None].astype(np.float32),
                strongest=np.stack([np.ones(n), np.full(n, 2)]).astype(np.int64),
                weight=np.stack([place / 8, place / 16]).astype(np.float32),
            )

        def contexts(model, texts, layer):
            assert layer == 0
            words = [tokens.text for tokens, _ in texts]
            batches.append(words)
            if any("none" in text for text in words):
                raise SelectionError("There is no such layer.")
            if any("fails" in text for text in words):
                raise InvalidTextError(f"It fails in {len(texts)}.")
            return [made(tokens) for tokens, _ in texts]

        monkeypatch.setattr(indexing, "contexts", contexts)
        monkeypatch.setattr(
            indexing._OfTokens,
            "_verified",
            lambda self, text, made: Checks(n_text=1, worst_error=len(text.text)),
        )
        monkeypatch.setattr(indexing, "layer_count", lambda *_: 1)
        return batches

    def indexer(self):
        model = AskedModel()
        model.network = SimpleNamespace(config=None)
        return indexing._OfTokens(model, None, 0, ["key", "query", "hidden"])

    def expected(self, texts):
        """Text, label, position, and the cosine of the hidden state with the first of its numbers, of every token."""
        return sorted(
            (text, label, position, position / math.hypot(position, 1))
            for text in texts
            for position, label in enumerate(text.split(), 1)
        )

    def found(self, index):
        texts = [row["text"] for row in index.texts.take(range(len(index.texts)))]
        rows = index.tokens.take(range(index.n_token))
        vectors = index.arrays["hidden", 0].astype(float)
        assert len(rows) == len(vectors) == len(index.arrays["query", 1]) == len(index.arrays["key", 0])
        return sorted(
            (texts[row["text"]], row["token"], row["position"], float(vector[0]))
            for row, vector in zip(rows, vectors, strict=True)
        )

    @pytest.mark.stand_ins
    def test_tokens_of_two_shards(self, ran, tmp_path):
        indexer, folder = self.indexer(), Folder(tmp_path, "index")
        counts = indexer.counts
        shards = [
            [
                *entries_of("a b c", "bad", "it fails"),
                *entries_of("a cat x", labels=self.LABELS),
                *entries_of("d"),
            ],
            entries_of("e f", "x"),
        ]
        failures = indexer.measure(shards[0], [True, True, False, False, True], folder)
        assert failures == {1: "It is bad.", 2: "It fails in 1."}
        as_run = "[CLS] {} [SEP]".format
        verified, others, *alone = [sorted(batch) for batch in ran]
        assert verified == sorted(map(as_run, ["d", "a b c"]))
        assert others == sorted(map(as_run, ["it fails", "a cat x"]))
        assert sorted(alone) == sorted([as_run(text)] for text in ["it fails", "a cat x"])
        assert (counts.checks.n_text, counts.checks.worst_error) == (2, 5)
        assert (counts.n_text, counts.n_token, counts.kind, counts.n_head) == (3, 7, "encoder", 2)
        assert counts.sizes == {"hidden": [1, 3], "query": [2, 2], "key": [1, 2]}
        counts.n_entry = 5
        with (tmp_path / "hidden.f16").open("ab") as file:
            file.write(b"of a shard that was killed")
        assert indexer.measure(shards[1], [False, False], folder) == {}
        assert (counts.n_text, counts.n_token) == (5, 10)
        counts.about = {"texts": "some"} | indexer.about
        indexer.write(folder, lambda _: None)
        folder.forget()
        index = read_index(tmp_path)
        assert index.vectors == ("hidden", "query", "key")
        assert self.found(index) == [
            (*row[:3], pytest.approx(row[3], abs=1e-3))
            for row in self.expected(["a b c", "a cat x", "d", "e f", "x"])
        ]
        assert (index.n_text, index.n_token, index.n_verified) == (5, 10, 2)
        assert sorted(path.name for path in tmp_path.iterdir()) == sorted(
            ["tokens.parquet", "texts.parquet", "hidden.f16", "query-0.f16", "query-1.f16", "key-0.f16"]
        )
        for row in index.tokens.take(range(10)):
            assert row["keys"] == [1, 2]
            assert row["weights"] == [row["position"] / 8, row["position"] / 16]
            assert row["part"] == ("NOUN" if row["token"] == "cat" else None)
        texts = index.texts.take(range(5))
        assert {(row["text"], row["source"], row["place"], len(row["labels"])) for row in texts} == {
            ("a b c", "a.txt", 1, 5),
            ("a cat x", "a.txt", 1, 5),
            ("d", "a.txt", 1, 3),
            ("e f", "a.txt", 1, 4),
            ("x", "a.txt", 2, 3),
        }

    def test_a_layer_that_is_not_there_is_no_fault_of_a_text(self, ran, tmp_path):
        with pytest.raises(SelectionError):
            self.indexer().measure(entries_of("a", "none"), [False, False], Folder(tmp_path, "index"))

    @pytest.mark.parametrize("is_there", [True, False])
    def test_a_run_whose_vectors_are_cut_off_or_gone_does_not_go_on(self, is_there, ran, tmp_path):
        indexer, folder = self.indexer(), Folder(tmp_path, "index")
        indexer.measure(entries_of("a b c"), [False], folder)
        path = tmp_path / "query-1.f16"
        whole = path.read_bytes()
        assert len(whole) == 3 * 2 * 2
        path.write_bytes(whole[:-1]) if is_there else path.unlink()
        with pytest.raises(CorpusError, match=r"query-1\.f16 is shorter than what was written there"):
            indexer.measure(entries_of("d"), [False], folder)

    def test_how_far_it_is_is_saved(self, tmp_path):
        folder, counts = Folder(tmp_path, "index"), indexing._Indexed()
        counts.kind, counts.n_head, counts.sizes = "encoder", 5, {"key": [2, 7]}
        folder.save(counts)
        again = indexing._Indexed()
        assert folder.restore(again) and again == counts
        assert [*again.files()] == [("key", 0, 7), ("key", 1, 7)]


def n_words(text):
    return len(text.split())


SENTENCES = st.lists(
    st.lists(st.text("abc", min_size=1, max_size=3), min_size=1, max_size=6).map(
        lambda words: " ".join(words) + "."
    ),
    max_size=12,
)


@given(SENTENCES, st.integers(6, 14))
def test_sentences_stay_whole(sentences, most):
    parts = windows(" ".join(sentences), n_words, most)
    assert " ".join(parts).split() == " ".join(sentences).split()
    assert all(n_words(result) <= most for result in parts)
    ends = {" ".join(sentences[:number]) for number in range(len(sentences) + 1)}
    assert all(" ".join(parts[:number]) in ends for number in range(len(parts) + 1))


@given(SENTENCES, st.integers(6, 14))
def test_a_window_has_as_many_sentences_as_fit(sentences, most):
    parts = windows(" ".join(sentences), n_words, most)
    for part, following in pairwise(parts):
        first = following[: following.index(".") + 1]
        assert n_words(part) + n_words(first) > most


@given(st.lists(st.text("ab", min_size=1, max_size=4), min_size=1, max_size=40), st.integers(2, 8))
def test_a_sentence_that_does_not_fit_is_divided_between_words(words, most):
    parts = windows(" ".join(words), n_words, most)
    assert " ".join(parts).split() == words
    assert all(n_words(result) <= most for result in parts)


@given(st.text("ab", min_size=1, max_size=60), st.integers(1, 8))
def test_a_word_that_does_not_fit_is_divided_too(word, most):
    parts = windows(word, len, most)
    assert "".join(parts) == word
    assert all(len(result) <= most for result in parts)


def test_a_character_is_never_divided():
    """Of more tokens than a window holds, as an emoji of a byte-level tokenizer can be."""
    assert windows("ab", lambda text: 4 * len(text), 3) == ["a", "b"]
