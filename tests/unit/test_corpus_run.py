"""A run over a corpus: the numbers are those of its texts, however it is split, ordered, stopped and resumed."""

import json
import os
import signal
import subprocess
import sys
from functools import partial

import numpy as np
import pyarrow.parquet as pq
import pytest

from attnviz.cli import main
from attnviz.corpus import pipeline, running
from attnviz.corpus.columns import MEASURED
from attnviz.corpus.indexing import index_corpus
from attnviz.corpus.labels import Labels
from attnviz.corpus.pipeline import profile_corpus, profile_texts
from attnviz.corpus.profile import read_profile
from attnviz.corpus.texts import Entry, find_files
from attnviz.effects.copying import copying_scores
from attnviz.errors import CorpusError
from attnviz.heads import statistics_on
from attnviz.heads.probes import PROBES
from attnviz.records import Axis, Head

pytestmark = pytest.mark.as_served  # functions are handed to Daft

TEXTS = [
    "it opened .",
    "the cat sat on the mat",
    "I was watching the door",
    "a cat , a mat",
    "the door opened the mat .",
] * 8
TEXTS = [f"{text} {' '.join(['cat', 'door'][: number % 3])}".strip() for number, text in enumerate(TEXTS)]


@pytest.fixture(scope="module")
def folder(checkpoint):
    return str(checkpoint("bert"))


@pytest.fixture
def corpus(tmp_path):
    def write(texts, name="texts.txt"):
        path = tmp_path / name
        path.write_text("\n".join(texts))
        return str(path)

    return write


def same(profile, other):
    """Whether two profiles have the same numbers."""
    assert profile.n_text == other.n_text
    names = [name for name in profile.table.column_names if profile.table.schema.field(name).type == "double"]
    for name in names:
        np.testing.assert_allclose(
            profile.numbers(name), other.numbers(name), rtol=1e-9, atol=1e-12, err_msg=name
        )
    for name in set(profile.table.column_names) - set(names):
        if name not in ("distances", "positions"):
            assert profile.table[name].to_pylist() == other.table[name].to_pylist(), name
    for head in profile.heads():
        np.testing.assert_allclose(profile.distances(head), other.distances(head), rtol=1e-9, atol=1e-12)
        assert profile.examples(head) == other.examples(head)


def test_means_are_those_of_each_text_alone(folder, corpus, tmp_path, tiny_model):
    profile = profile_corpus([corpus(TEXTS)], folder, tmp_path / "out")
    model = tiny_model("bert")
    per_text = {name: [] for name in MEASURED}
    for text in TEXTS:
        trace = model.trace(text)
        axis = Axis.of(trace.tokens)
        tables = statistics_on(trace, None, axis, axis, names=MEASURED)
        none = np.full(trace.shape(), np.nan)
        for name in MEASURED:
            per_text[name].append(tables.get(name, none))
    assert (profile.n_text, profile.n_failed) == (40, 0)
    for name in MEASURED:
        with np.errstate(all="ignore"):
            expected = np.nanmean(per_text[name], axis=0).ravel()
        np.testing.assert_allclose(profile.numbers(name), expected, atol=2e-5, err_msg=name)
        low, high = profile.numbers(f"{name}_low"), profile.numbers(f"{name}_high")
        assert ((low <= expected + 1e-5) & (expected <= high + 1e-5)).all(), name
    assert profile.n_passed == profile.n_verified > 0
    assert profile.worst_difference < 2e-5 and profile.worst_error < 1e-5
    assert set(PROBES) <= set(profile.table.column_names)


def test_neither_order_nor_shards_nor_batches_change_it(folder, corpus, tmp_path, monkeypatch):
    whole = profile_corpus([corpus(TEXTS)], folder, tmp_path / "whole")
    monkeypatch.setattr(running, "N_SHARD", 7)
    shuffled = [TEXTS[index] for index in np.random.default_rng(1).permutation(len(TEXTS))]
    half = len(TEXTS) // 2
    parts = [corpus(shuffled[:half], "a.txt"), corpus(shuffled[half:], "b.txt")]
    other = profile_corpus(parts, folder, tmp_path / "other")
    assert whole.about == other.about
    same_within_rounding(whole, other)


def same_within_rounding(profile, other):
    """Texts are in other batches, so that their float32 numbers differ in the last digits."""
    for name in MEASURED:
        for end in ("", "_low", "_high"):
            np.testing.assert_allclose(profile.numbers(name + end), other.numbers(name + end), atol=1e-6)


def test_a_run_that_was_stopped_goes_on_where_it_was(folder, corpus, tmp_path, monkeypatch):
    monkeypatch.setattr(running, "N_SHARD", 10)
    texts = corpus([*TEXTS, ""])
    whole = profile_corpus([texts], folder, tmp_path / "whole")

    def stop(now):
        if now.n_done == 20:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        profile_corpus([texts], folder, tmp_path / "out", progress=stop)
    assert not (tmp_path / "out" / "heads.parquet").exists()
    seen = []
    gone_on = profile_corpus([texts], folder, tmp_path / "out", progress=lambda now: seen.append(now.n_done))
    assert seen == [30, 40]
    same(whole, gone_on)
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "examples.parquet",
        "failed.parquet",
        "heads.parquet",
    ]


def test_what_is_not_installed_is_told_before_the_model_is_loaded(folder, corpus, tmp_path, monkeypatch):
    monkeypatch.setattr(pipeline, "_loaded", lambda _: pytest.fail("was loaded"))
    with pytest.raises(CorpusError, match="no_such_pipeline was to label the texts and cannot be loaded"):
        profile_corpus([corpus(TEXTS)], folder, tmp_path / "out", label="no_such_pipeline")


def test_a_killed_run_loses_nothing(folder, corpus, tmp_path):
    """A process is killed in the middle, whatever it is doing, and then the same command is run again."""
    texts = corpus(TEXTS * 4)
    out = tmp_path / "out"
    program = (
        "import sys; from attnviz.corpus import running; running.N_SHARD = 8; from attnviz.cli import main; "
        "sys.exit(main(sys.argv[1:]))"
    )
    command = [
        sys.executable,
        "-c",
        program,
        "corpus",
        "profile",
        texts,
        "--model",
        folder,
        "--out",
        str(out),
    ]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    for line in process.stderr:
        if line.startswith("24 of"):
            os.kill(process.pid, signal.SIGKILL)
            break
    process.wait(60)
    process.stderr.close()
    again = subprocess.run(command, capture_output=True, text=True, timeout=200, check=False)
    assert again.returncode == 0, again.stderr
    first = int(again.stderr.split(" of ")[0].replace(",", ""))
    assert 32 <= first <= 48  # not from the beginning
    whole = profile_corpus([texts], folder, tmp_path / "whole")
    same_within_rounding(whole, read_profile(out))
    assert read_profile(out).n_text == len(TEXTS) * 4


def test_a_text_that_fails_is_kept_with_its_reason_and_the_rest_goes_on(folder, tmp_path):
    lines = [json.dumps({"text": text}) for text in ("the cat", "\u200b", "door")]
    (tmp_path / "texts.jsonl").write_bytes("\n".join([*lines, "nonsense"]).encode() + b"\n\xff\n")
    out = tmp_path / "new" / "out"
    profile = profile_corpus([str(tmp_path / "texts.jsonl")], folder, out)
    failed = pq.read_table(out / "failed.parquet").to_pylist()
    assert profile.n_text + len(failed) == 5 and profile.n_failed == len(failed)
    assert {4, 5} <= {failure["place"] for failure in failed}
    assert all(
        failure["source"].endswith("texts.jsonl") and failure["reason"].endswith(".") for failure in failed
    )


def test_a_long_text_is_read_in_windows(folder, corpus, tmp_path, tiny_model, monkeypatch):
    monkeypatch.setattr(running, "_N_ADDED", 0)
    sentences = ["the cat sat on the mat ."] * 12
    profile = profile_corpus([corpus([" ".join(sentences)])], folder, tmp_path / "out")
    limit = tiny_model("bert").max_tokens
    each = len(tiny_model("bert").tokenize(sentences[0])) - 2
    per_window = (limit - 2) // each
    assert profile.n_text == -(-12 // per_window)
    assert profile.n_token == 12 * each + 2 * profile.n_text


def test_examples_are_the_strongest_and_some_of_each_decile(folder, corpus, tmp_path, tiny_model):
    texts = sorted(set(TEXTS))
    profile = profile_corpus([corpus(texts)], folder, tmp_path / "out")
    model = tiny_model("bert")
    lengths = []
    for text in texts:
        trace = model.trace(text)
        vectors = trace.output(1, 0) @ trace.attention(1).output_weight[0]
        lengths.append(np.linalg.norm(vectors, axis=1)[~trace.tokens.is_added].max())
    examples = profile.examples(Head(1, 0))
    strongest = [example for example in examples if example.decile is None]
    order = np.argsort(lengths)[::-1]
    assert [example.text for example in strongest] == [texts[index] for index in order[:10]]
    np.testing.assert_allclose(
        [example.activation for example in strongest], np.sort(lengths)[::-1][:10], rtol=1e-4
    )
    bounds = np.array_split(np.sort(lengths), 10)
    for decile in range(1, 11):
        activations = [example.activation for example in examples if example.decile == decile]
        assert activations == sorted(activations) and len(activations) == min(3, len(bounds[decile - 1]))
        assert all(
            bounds[decile - 1][0] * 0.999 <= result <= bounds[decile - 1][-1] * 1.001
            for result in activations
        )


def test_copying_scores_are_in_it(headed):
    model, _ = headed("gpt2")
    profile, _ = profile_texts(model, [Entry(source="", place=1, text="the cat sat")])
    np.testing.assert_array_equal(profile.numbers("copying"), copying_scores(model).ravel())


def test_relations_and_what_a_fixed_offset_finds(folder, tmp_path, tiny_model):
    """Two sentences of CoNLL-U, counted by hand with the attention of each word."""
    rows = "".join(
        f"{number}\t{form}\t_\t{part}\t_\t_\t{head}\t{relation}\t_\t_\n"
        for number, (form, part, head, relation) in enumerate(
            [
                ("the", "DET", 2, "det"),
                ("cat", "NOUN", 3, "nsubj"),
                ("opened", "VERB", 0, "root"),
                ("the", "DET", 5, "det"),
                ("door", "NOUN", 3, "obj"),
            ],
            1,
        )
    )
    (tmp_path / "a.conllu").write_text(f"{rows}\n")
    profile = profile_corpus([str(tmp_path / "a.conllu")], folder, tmp_path / "out")
    trace = tiny_model("bert").trace("the cat opened the door")
    labels = Labels(
        spans=np.array([(0, 3), (4, 7), (8, 14), (15, 18), (19, 23)]), heads=np.array([1, 2, -1, 4, 2]),
        relations=("det", "nsubj", "root", "det", "obj"), parts=("DET", "NOUN", "VERB", "DET", "NOUN"),
    )  # fmt: skip
    words = [np.flatnonzero(labels.word_of(trace.tokens) == word) for word in range(5)]
    for head in trace.heads():
        weights = trace.weights(*head)
        cells = np.array([[weights[a][:, b].sum(axis=1).mean() for b in words] for a in words])
        np.fill_diagonal(cells, 0)
        relations = {
            (relation.relation, relation.direction): relation for relation in profile.relations(head)
        }
        assert {name for name, _ in relations} == {"det", "nsubj", "obj"}
        det = relations["det", "attends to"]
        assert det.accuracy == pytest.approx(np.mean([cells[0].argmax() == 1, cells[3].argmax() == 4]))
        assert (det.words, det.offset, det.offset_accuracy) == (2, 1, 1.0)
        obj = relations["obj", "attended by"]
        assert obj.accuracy == float(cells[:, 4].argmax() == 2)
        assert (obj.words, obj.offset, obj.offset_accuracy) == (1, -2, 1.0)


class TestRefused:
    def test_other_texts_in_the_same_folder(self, folder, corpus, tmp_path):
        profile_corpus([corpus(TEXTS[:3])], folder, tmp_path / "out")
        with pytest.raises(CorpusError, match="holds the profile of other texts"):
            profile_corpus([corpus(TEXTS[:4], "more.txt")], folder, tmp_path / "out")

    def test_no_text(self, folder, corpus, tmp_path):
        with pytest.raises(CorpusError, match="hold no text"):
            profile_corpus([corpus(["", " "])], folder, tmp_path / "out")

    @pytest.mark.nightly
    def test_what_attnviz_wrote_is_no_text(self, folder, tmp_path, monkeypatch):
        """Of a profile and an index in the folder of the texts, done or not, whatever they are called."""
        data = tmp_path / "data"
        data.mkdir()
        for name in ("a.jsonl", "b.jsonl"):
            (data / name).write_text('{"text": "the cat"}\nnonsense\n' * 3)
        texts = [data / "a.jsonl", data / "b.jsonl"]
        monkeypatch.setattr(running, "N_SHARD", 2)

        def stop(now):
            if now.n_done == 4:
                raise KeyboardInterrupt

        for run, out in ((profile_corpus, data), (partial(index_corpus, layer=0), data / "more")):
            with pytest.raises(KeyboardInterrupt):
                run(data, folder, out, progress=stop)
            assert find_files(data) == find_files(str(data / "**" / "*.*[lt]")) == texts
            assert run(data, folder, out).n_text == 6
            assert find_files(data) == texts
        written = [*data.rglob("*.parquet")]
        assert len(written) == 6  # heads, examples, tokens and texts, and failed twice
        for path in written:
            with pytest.raises(CorpusError, match="that attnviz wrote"):
                find_files(path)
        with pytest.raises(CorpusError, match="that attnviz wrote"):
            find_files(data / "more")
        for path in written:  # failures that an earlier version wrote have no metadata
            if path.name == "failed.parquet":
                pq.write_table(pq.read_table(path).replace_schema_metadata(None), path)
        assert find_files(data) == texts

    def test_a_folder_without_a_profile(self, tmp_path):
        with pytest.raises(CorpusError, match=r"there is no heads\.parquet"):
            read_profile(tmp_path)

    def test_a_profile_of_other_columns(self, folder, corpus, tmp_path):
        profile_corpus([corpus(TEXTS[:3])], folder, tmp_path / "out")
        path = tmp_path / "out" / "heads.parquet"
        table = pq.read_table(path)
        metadata = json.loads(table.schema.metadata[b"attnviz"]) | {"schema": 99}
        pq.write_table(table.replace_schema_metadata({"attnviz": json.dumps(metadata)}), path)
        with pytest.raises(CorpusError, match="version 99; this attnviz reads version 1"):
            read_profile(tmp_path / "out")


def test_the_command_says_how_far_it_is_and_what_it_found(folder, corpus, tmp_path, capsys):
    assert main(["corpus", "profile", corpus(TEXTS), "--model", folder, "--out", str(tmp_path / "out")]) == 0
    output = capsys.readouterr()
    assert "40 of 40 texts" in output.err and "a second" in output.err
    assert "over 40 texts" in output.out and "verified texts passed" in output.out
    assert main(["corpus", "profile", str(tmp_path / "none.txt"), "--out", str(tmp_path / "x")]) == 2
    assert capsys.readouterr().err.count("\n") == 1
