"""What a run over a corpus reads, verifies, counts and keeps of failures, with a model that only says what it was asked."""

import hashlib
import math
from pathlib import Path
from types import SimpleNamespace
from typing import ClassVar

import numpy as np
import pyarrow.parquet as pq
import pytest

from attnviz.corpus import indexing, pipeline
from attnviz.corpus.columns import COLUMNS
from attnviz.corpus.contexts import Contexts
from attnviz.corpus.labels import Labels
from attnviz.corpus.measuring import TextNumbers
from attnviz.corpus.pipeline import Measurer, Reader
from attnviz.corpus.tally import Checks
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
            pipeline.digest_of(entries_of(*texts)) == pipeline.digest_of(entries_of(*texts[::-1])) == expected
        )
    assert pipeline.digest_of(entries_of("x", labels=LABELS)) == f"{hash_of('x', LABELS.written()):064x}"
    assert pipeline.digest_of([]) == "0" * 64


def test_texts_are_counted_with_those_that_cannot_be_read(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"it opened\n\xff\n\na door\n")
    (tmp_path / "b.csv").write_text("id,said\n1,it ran\n")
    files = [tmp_path / "a.txt", tmp_path / "b.csv"]
    n_all, digest = pipeline.count_texts(files, "said")
    assert (n_all, digest) == (4, pipeline.digest_of(entries_of("a door", "it opened", "it ran")))
    read = [*pipeline.entries_of(files, "said")]
    assert [entry.text if isinstance(entry, Entry) else entry.place for entry in read] == [
        *("it opened", 2, "a door", "it ran")
    ]
    empty = [tmp_path / f"{number}.txt" for number in range(4)]
    for path in empty:
        path.write_text("\n")
    with pytest.raises(CorpusError, match=r"0\.txt, .*1\.txt, .*2\.txt hold no text") as raised:
        pipeline.count_texts(empty, None)
    assert "3.txt" not in str(raised.value)


def test_the_first_32_of_every_3200_texts_are_verified():
    for n_text, first in ((40, 0), (5, 30), (10, 3195), (3, 3200), (2, 3231)):
        assert pipeline.are_verified(n_text, first) == [
            number % 3200 < 32 for number in range(first, first + n_text)
        ]


class AskedModel:
    """A model that reads a word as a token, with two special ones, and says what it was asked."""

    name = "asked"
    revision = "1"
    provenance = small_records.PROVENANCE
    weights_sha256 = SimpleNamespace(items=dict, keys=list)

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
    [(part, (tokens, target))] = Reader(model).windows(fits, None)
    assert part == fits and len(tokens) == 3 and target is None
    assert model.tokenized == [] and model.asked == [(fits, limit)]
    Reader(model).windows(f"{fits}e", None)
    assert model.tokenized == [f"{fits}e"]


def test_a_text_that_does_not_fit_is_read_in_windows_unless_it_has_labels():
    model = AskedModel(10)
    text = "one two three. four five six. seven eight nine."
    assert [part for part, _ in Reader(model).windows(text, None)] == [
        "one two three. four five six.",
        "seven eight nine.",
    ]
    assert [limit for _, limit in model.asked] == [10, 10]
    assert [part for part, _ in Reader(model).windows(text, LABELS)] == [text]
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
        return Checks(n_text=len(texts), n_passed=len(texts), worst_error=0.5, worst_difference=0.25)


@pytest.mark.stand_ins
def test_each_text_is_measured_or_fails_with_its_own_reason(monkeypatch):
    ran = Ran(monkeypatch)
    texts = ["a b", "bad", "it fails", "c", "d e", "x"]
    labels = [None, None, None, None, LABELS.written(), None]
    found = Measurer(AskedModel()).measure(texts, labels, [True, True, False, False, False, True])
    assert [result if isinstance(result, str) else [text.text for text in result[0]] for result in found] == [
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
            [measured] = result[0]
            assert measured.n_token == n_token == measured.numbers.numbers[0, 0]
            assert (measured.labels is not None) == (measured.text == "d e")
    checks = [result[1] for result in found if not isinstance(result, str)]
    assert sum(check.n_text for check in checks) == 2
    assert max(check.worst_error for check in checks) == 0.5


@pytest.mark.stand_ins
def test_a_text_of_which_a_window_cannot_be_read_fails_as_a_whole(monkeypatch):
    Ran(monkeypatch)
    model = AskedModel(4)
    found = Measurer(model).measure(
        ["one. two. three.", "one. it fails. two.", "four"], [None] * 3, [False] * 3
    )
    windows, reason, last = found
    assert {text.text for text in windows[0]} == {"one. two.", "three."}
    assert reason == "It fails in 1." and [text.text for text in last[0]] == ["four"]


@pytest.mark.stand_ins
def test_results_are_taken_in_and_failures_handed_on():
    added, checks = [], Checks()
    tally = SimpleNamespace(add=added.extend, checks=checks)
    results = [
        (["a", "b"], Checks(n_text=2, n_passed=1)),
        "It failed.",
        (["c"], Checks(n_text=1, n_passed=1)),
    ]
    failures = pipeline._take_in(tally, entries_of("x", "y", "z"), results)
    assert added == ["a", "b", "c"] and (checks.n_text, checks.n_passed) == (3, 2)
    assert failures == [Failure(source="a.txt", place=2, reason="It failed.")]


def test_failures_of_all_shards_are_one_table_in_their_order(tmp_path):
    def failure(place):
        return Failure(source="a.txt", place=place, reason=f"reason {place}")

    pipeline.keep_failures(tmp_path, 2048, [failure(1999)])
    pipeline.keep_failures(tmp_path, 1024, [failure(7)])
    pipeline.keep_failures(tmp_path, 1024, [failure(3), failure(7)])  # the shard ran once more
    pipeline.keep_failures(tmp_path, 3072, [])
    assert len([*(tmp_path / "failed").iterdir()]) == 2
    for _ in range(2):  # a run that is stopped later joins them again
        pipeline.join_failures(tmp_path)
        read = pq.read_table(tmp_path / "failed.parquet").to_pylist()
        assert [(row["source"], row["place"], row["reason"]) for row in read] == [
            ("a.txt", place, f"reason {place}") for place in (3, 7, 1999)
        ]
    pipeline.forget_failures(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["failed.parquet"]


def test_the_seconds_that_are_left():
    def left(n_done, per_second):
        progress = pipeline.Progress(n_done=n_done, n_all=40, n_failed=0, per_second=per_second)
        return progress.seconds_left

    assert (left(10, 4.0), left(10, 0.5), left(40, 4.0), left(0, 0.0)) == (7.5, 60.0, 0.0, float("inf"))


class TestInMemory:
    """Seventy texts, of which one cannot be read; 32 are run between two reports."""

    TEXTS = (
        *entries_of(*(f"text {number}" for number in range(69))),
        Failure(source="a.txt", place=70, reason="No."),
    )

    @pytest.fixture
    def model(self):
        model = AskedModel()
        model.weights_sha256 = {"w": "1"}
        heads = {"encoder": [None] * 3, "cross": [None] * 2}
        model.probe = lambda: SimpleNamespace(kinds=tuple(heads), heads=heads.__getitem__)
        return model

    @pytest.mark.stand_ins
    @pytest.mark.parametrize(("n_sample", "n_again"), [(10, 30), (48, 68), (49, 69), (1000, 69)])
    def test_a_profile(self, n_sample, n_again, model, monkeypatch):
        """Of the sample, and of four texts for each of five heads, what is shown is read once more; of no text twice."""
        asked, written, told = [], [], []

        class Measured:
            def __init__(self, given):
                assert given is model

            def measure(self, texts, labels, verified):
                asked.append((texts, labels, verified))
                return [([], Checks(n_text=1)) if text != "text 40" else "It failed." for text in texts]

        def write(given, tally, folder, *, progress):
            written.append(tally)
            progress(0.0)
            progress(0.5)
            progress(1.0)

        monkeypatch.setattr(pipeline, "Measurer", Measured)
        monkeypatch.setattr(pipeline, "write_profile", write)
        monkeypatch.setattr(pipeline, "read_profile", lambda folder: "the profile")
        monkeypatch.setattr(pipeline, "N_SAMPLE", n_sample)
        monkeypatch.setattr(pipeline, "N_STRONGEST", 4)
        monkeypatch.setattr(pipeline.Tally, "add", lambda self, taken: setattr(self, "n_text", 68))
        profile, failures = pipeline.profile_texts(model, self.TEXTS, progress=told.append)
        assert profile == "the profile"
        assert [(failure.place, failure.reason) for failure in failures] == [(70, "No."), (41, "It failed.")]
        assert [len(texts) for texts, *_ in asked] == [32, 32, 5]
        assert [text for texts, *_ in asked for text in texts] == [f"text {number}" for number in range(69)]
        assert [verified for *_, of_batch in asked for verified in of_batch] == [True] * 32 + [False] * 37
        [tally] = written
        assert (tally.n_entry, tally.n_failed, tally.n_head) == (70, 2, 5)
        assert tally.checks.n_text == 68
        assert tally.about == {
            "texts": pipeline.digest_of(self.TEXTS[:69]),
            "model": "asked",
            "revision": "1",
            "dtype": "float32",
            "versions": {"torch": "2"},
            "weights": {"w": "1"},
            "labels": None,
        }
        share = 69 / (69 + n_again)
        assert told == pytest.approx([0, share * 32 / 69, share * 64 / 69, share, (1 + share) / 2, 1.0])

    @pytest.mark.parametrize(
        ("texts", "reason"), [(TEXTS[-1:], r"^No\.$"), ((), "None of the texts holds anything")]
    )
    @pytest.mark.stand_ins
    def test_no_text_for_a_profile(self, texts, reason, model):
        with pytest.raises(CorpusError, match=reason):
            pipeline.profile_texts(model, texts)

    @pytest.mark.stand_ins
    def test_an_index(self, model, monkeypatch):
        added, told = [], []

        class Indexer:
            def __init__(self, given, making, folder):
                self.making = making
                assert making.about["layer"] == 2 and making.about["vectors"] == ["query", "key"]
                assert isinstance(folder, Path) and folder.exists()

            def add(self, texts, verify):
                added.append((texts, verify))
                self.making.n_token += 5
                return [Failure(source="", place=1, reason="No.")] if len(texts) < 32 else []

            def finish(self, building):
                added.append(self.making)

        monkeypatch.setattr(indexing, "_Indexer", Indexer)
        monkeypatch.setattr(indexing, "read_index", lambda folder, in_memory: in_memory)
        texts = self.TEXTS[:69]
        assert indexing.index_texts(model, texts, 2, vectors=["key", "query"], progress=told.append) is True
        *shards, making = added
        assert [text for of_shard, _ in shards for text in of_shard] == [*texts]
        assert [verified for _, of_shard in shards for verified in of_shard] == [True] * 4 + [False] * 65
        assert told == pytest.approx([0, 32 / 69, 64 / 69])
        assert (making.n_entry, making.n_failed) == (69, 1)
        monkeypatch.setattr(Indexer, "add", lambda self, texts, verify: [])
        with pytest.raises(CorpusError, match="None of the texts holds anything"):
            indexing.index_texts(model, texts, 2, vectors=["key", "query"])


class TestIndexer:
    """Two heads on shared keys; a token's vectors are its place in its text, and each head attends to the text's first token."""

    ABOUT: ClassVar = {"layer": 0, "vectors": ["hidden", "query", "key"]}
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
            indexing._Indexer,
            "_verified",
            lambda self, text, made: Checks(n_text=1, worst_error=len(text.text)),
        )
        return batches

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
        making = indexing._Making(about=self.ABOUT)
        indexer = indexing._Indexer(AskedModel(), making, tmp_path)
        shards = [
            [
                *entries_of("a b c", "bad", "it fails"),
                *entries_of("a cat x", labels=self.LABELS),
                *entries_of("d"),
            ],
            entries_of("e f", "x"),
        ]
        failures = indexer.add(shards[0], [True, True, False, False, True])
        assert [(failure.source, failure.place, failure.reason) for failure in failures] == [
            ("a.txt", 2, "It is bad."),
            ("a.txt", 3, "It fails in 1."),
        ]
        as_run = "[CLS] {} [SEP]".format
        verified, others, *alone = [sorted(batch) for batch in ran]
        assert verified == sorted(map(as_run, ["d", "a b c"]))
        assert others == sorted(map(as_run, ["it fails", "a cat x"]))
        assert sorted(alone) == sorted([as_run(text)] for text in ["it fails", "a cat x"])
        assert (making.checks.n_text, making.checks.worst_error) == (2, 5)
        assert (making.n_text, making.n_token, making.kind, making.n_head) == (3, 7, "encoder", 2)
        assert making.sizes == {"hidden": [1, 3], "query": [2, 2], "key": [1, 2]}
        making.n_entry = 5
        with (tmp_path / "hidden.f16").open("ab") as file:
            file.write(b"of a shard that was killed")
        assert indexer.add(shards[1], [False, False]) == []
        assert (making.n_text, making.n_token) == (5, 10)
        indexer.finish(lambda _: None)
        index = read_index(tmp_path)
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
        indexer = indexing._Indexer(AskedModel(), indexing._Making(about=self.ABOUT), tmp_path)
        with pytest.raises(SelectionError):
            indexer.add(entries_of("a", "none"), [False, False])

    def test_a_run_whose_vectors_are_cut_off_does_not_go_on(self, ran, tmp_path):
        making = indexing._Making(about=self.ABOUT)
        indexer = indexing._Indexer(AskedModel(), making, tmp_path)
        indexer.add(entries_of("a b c"), [False])
        path = tmp_path / "query-1.f16"
        whole = path.read_bytes()
        assert len(whole) == 3 * 2 * 2
        path.write_bytes(whole[:-1])
        with pytest.raises(CorpusError, match=r"query-1\.f16 is shorter than what was written there"):
            indexer.add(entries_of("d"), [False])

    def test_how_far_it_is_is_saved(self, tmp_path):
        assert indexing._Making.load(tmp_path) is None
        making = indexing._Making(
            about=self.ABOUT,
            n_entry=1,
            n_text=2,
            n_token=3,
            n_failed=4,
            kind="encoder",
            n_head=5,
            sizes={"key": [2, 7]},
        )
        making.checks = Checks(n_text=6, n_passed=5, worst_error=0.5, worst_difference=0.25)
        making.save(tmp_path)
        assert indexing._Making.load(tmp_path) == making
        assert [*making.files()] == [("key", 0, 7), ("key", 1, 7)]
        assert [path.name for path in tmp_path.iterdir()] == ["index.json"]
        (tmp_path / "index.json").write_text("{")
        with pytest.raises(CorpusError, match="is not what attnviz wrote there"):
            indexing._Making.load(tmp_path)
