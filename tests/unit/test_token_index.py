"""An index of tokens: what is found is what comparing all vectors one by one gives, however the run was split, stopped and resumed."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch

from attnviz.cli import main
from attnviz.corpus import indexing, running
from attnviz.corpus.contexts import VECTORS, contexts, group_of
from attnviz.corpus.files import Parquet
from attnviz.corpus.indexing import index_corpus, index_texts
from attnviz.corpus.texts import Entry
from attnviz.corpus.token_index import Nearest, TokenIndex, read_index, scan, unit
from attnviz.errors import CorpusError, ModelFailedError, SelectionError
from attnviz.model.states import hidden_states

TEXTS = [
    "it opened .",
    "the cat sat on the mat",
    "I was watching the door",
    "a cat , a mat",
    "the door opened the mat .",
    "the cat opened it",
    "I sat on a mat .",
]


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


@pytest.fixture(scope="module")
def of_texts(folder, tmp_path_factory):
    out = tmp_path_factory.mktemp("index")
    (out / "texts.txt").write_text("\n".join(TEXTS))
    return index_corpus([str(out / "texts.txt")], folder, out / "index", layer=1)


def cosine(vector, other):
    """Of two vectors, in plain Python."""
    dot = sum(a * b for a, b in zip(vector, other, strict=True))
    return dot / (sum(a * a for a in vector) ** 0.5 * sum(b * b for b in other) ** 0.5)


def rows_of(index):
    """Every token of an index with its text, in a fixed order."""
    texts = index.texts.take(range(len(index.texts)))
    rows = index.tokens.take(range(index.n_token))
    return sorted(
        (texts[row["text"]]["text"], row["position"], row["token"], tuple(row["keys"]), number)
        for number, row in enumerate(rows)
    )


@pytest.mark.parametrize("kind", VECTORS)
@pytest.mark.parametrize(("family", "head"), [("bert", 0), ("bert", 1), ("llama", 4)])
def test_the_nearest_are_those_of_the_texts_own_traces(kind, family, head, of_texts, tiny_model):
    """Heads of llama share their keys."""
    model = tiny_model(family)
    if family != "bert":
        entries = [Entry(source="", place=number, text=text) for number, text in enumerate(TEXTS)]
        of_texts = index_texts(model, entries, 1)

    def vectors(trace):
        if kind == "hidden":
            return hidden_states(model, trace).layers[trace.kinds[0], 1]
        return trace.query(1, head) if kind == "query" else trace.key(1, head)

    given = vectors(model.trace("the cat opened the door"))[2]
    expected = {}
    for text in TEXTS:
        trace = model.trace(text)
        weights = trace.weights(1, head)
        for position, vector in enumerate(vectors(trace)):
            if not trace.tokens.is_added[position]:
                strongest = max(range(len(trace.tokens)), key=lambda key: weights[position][key])
                near = cosine(given.tolist(), vector.tolist())
                expected[text, position] = (
                    near,
                    trace.tokens.labels[position],
                    strongest,
                    weights[position][strongest],
                )
    nearest = of_texts.find(given, kind, head)
    tenth = sorted((row[0] for row in expected.values()), reverse=True)[9]
    assert len(nearest) == 10 == len({(near.text, near.position) for near in nearest})
    assert of_texts.n_token == len(expected)
    for near in nearest:
        similarity, token, key, weight = expected[near.text, near.position]
        assert near.similarity == pytest.approx(similarity, abs=2e-3)
        assert similarity >= tenth - 2e-3
        assert (near.token, near.key) == (token, key)
        assert near.labels == model.trace(near.text).tokens.labels
        assert near.weight == pytest.approx(weight, abs=1e-5)
        assert near.part is None
    assert [near.similarity for near in nearest] == sorted(
        (near.similarity for near in nearest), reverse=True
    )


def test_a_scan_finds_the_largest_cosines():
    drawn = np.random.default_rng(0).normal(size=(501, 7))
    vectors, given = unit(drawn), drawn[3] + 0.1
    cosines = [cosine(given.tolist(), row.tolist()) for row in drawn]
    in_order = sorted(range(501), key=lambda number: -cosines[number])
    for n in (1, 2, 5, 10):
        numbers, similarities = scan(vectors, unit(given[None]), n)
        assert numbers.tolist() == in_order[:n]
        np.testing.assert_allclose(similarities, [cosines[number] for number in in_order[:n]], atol=2e-3)
    assert sorted(scan(vectors, unit(given[None]), 501)[0].tolist()) == list(range(501))


def test_vectors_have_length_1_and_zeros_stay():
    made = unit(np.array([[3e30, 4e30], [0.03, 0.04], [0.0, 0.0]]))
    np.testing.assert_allclose(made.astype(float), [[0.6, 0.8], [0.6, 0.8], [0, 0]], atol=1e-3)


def test_neither_shards_nor_files_change_it(folder, corpus, tmp_path, of_texts, monkeypatch):
    monkeypatch.setattr(running, "N_SHARD", 2)
    parts = [corpus(TEXTS[4:], "a.txt"), corpus(TEXTS[:4], "b.txt")]
    other = index_corpus(parts, folder, tmp_path / "out", layer=1)
    assert dict(other.about) == dict(of_texts.about)
    ours, theirs = rows_of(of_texts), rows_of(other)
    assert [row[:4] for row in ours] == [row[:4] for row in theirs]
    for place in of_texts.arrays:
        vectors = of_texts.arrays[place][[row[4] for row in ours]].astype(float)
        np.testing.assert_allclose(vectors, other.arrays[place][[row[4] for row in theirs]], atol=2e-3)


def test_a_run_that_was_stopped_goes_on_where_it_was(folder, corpus, tmp_path, of_texts, monkeypatch):
    monkeypatch.setattr(running, "N_SHARD", 2)
    texts, out = corpus(TEXTS), tmp_path / "out"

    def stop(now):
        if now.n_done == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        index_corpus([texts], folder, out, layer=1, progress=stop)
    with (out / "hidden.f16").open("ab") as file:
        file.write(b"what a batch wrote before it was killed")
    with pytest.raises(CorpusError, match=r"there is no tokens\.parquet"):
        read_index(out)
    seen = []
    index = index_corpus([texts], folder, out, layer=1, progress=lambda now: seen.append(now.n_done))
    assert seen == [6, 7]
    assert [row[:4] for row in rows_of(index)] == [row[:4] for row in rows_of(of_texts)]
    names = {path.name for path in out.iterdir()}
    assert "index-unfinished" not in names and {"tokens.parquet", "texts.parquet", "hidden.f16"} <= names
    vector = of_texts.arrays["query", 1][3].astype(float)
    assert [near.token for near in index.find(vector, "query", 1)] == [
        near.token for near in of_texts.find(vector, "query", 1)
    ]


def test_a_large_index_is_searched_along_a_graph(folder, corpus, tmp_path, of_texts, monkeypatch):
    monkeypatch.setattr(indexing, "MOST_SCANNED", 0)
    monkeypatch.setattr(indexing, "_N_ADDED", 10)
    told = []
    index = index_corpus([corpus(TEXTS)], folder, tmp_path / "out", layer=1, building=told.append)
    assert index.recalls == {"hidden": 1.0, "query": 1.0, "key": 1.0}
    assert told[0] == 0 and told == sorted({*told}) and 0.9 < told[-1] < 1
    assert not list((tmp_path / "out").glob("*.f16")) and (tmp_path / "out" / "query-0.usearch").exists()
    for kind, head in (("hidden", 0), ("query", 1), ("key", 0)):
        vector = of_texts.arrays[kind, 0 if kind == "hidden" else head][5].astype(float)
        ours, exact = (each.nearest(vector, kind, head)[1] for each in (index, of_texts))
        np.testing.assert_allclose(ours, exact, atol=2e-3)


def test_the_recall_of_a_kind_is_the_mean_of_its_graphs(checkpoint, corpus, tmp_path, monkeypatch):
    """Graphs of six heads' queries, of which that of head 0 finds all, of head 1 half and the others none."""
    monkeypatch.setattr(indexing, "MOST_SCANNED", 0)
    shares = {"hidden": 1.0, "0": 1.0, "1": 0.5}
    monkeypatch.setattr(indexing, "recall_of", lambda path, _: shares.get(path.stem.rpartition("-")[2], 0.0))
    index = index_corpus([corpus(TEXTS[:1])], str(checkpoint("llama")), tmp_path / "out", layer=1)
    assert len(list((tmp_path / "out").glob("query-*.usearch"))) == 6
    assert index.recalls == {"hidden": 1.0, "query": 0.25, "key": 0.75}


def test_recall_is_the_share_of_the_nearest_that_a_graph_finds(monkeypatch):
    """Of thirty vectors a graph finds eight of each one's nearest ten, and two others that are farther away."""
    vectors = unit(np.random.default_rng(3).normal(size=(30, 5)))

    def search(given, n):
        cosines = np.sort(vectors.astype(float) @ given.astype(float))[::-1]
        return SimpleNamespace(distances=1 - np.concatenate([cosines[: n - 2], cosines[-2:]]))

    monkeypatch.setattr(indexing, "open_graph", lambda *_: SimpleNamespace(search=search))
    assert indexing.recall_of(Path("graph"), vectors) == pytest.approx(0.8)


@pytest.mark.parametrize("name", ["query", "key", "weight", None])
def test_the_largest_difference_of_a_text_from_its_trace_is_recorded(name, tiny_model):
    """Queries and keys as shares of the trace's largest number, weights as they are."""
    model, read = tiny_model("bert"), tiny_model("bert").read(TEXTS[1])
    [made] = contexts(model, [read], 1)
    size, expected = 0.25, 0.0
    if name is not None:
        numbers = getattr(made, name).copy()
        numbers.flat[-1] += size
        made = replace(made, **{name: numbers})
        call = model.trace(TEXTS[1]).attention(1)
        expected = size if name == "weight" else size / np.abs(getattr(call, name)).max()
    text = running.Window(number=0, text=TEXTS[1], labels=None, read=read)
    checks = indexing._OfTokens(model, None, 1, VECTORS)._verified(text, made)
    assert (checks.n_text, checks.n_passed) == (1, 1)
    assert checks.worst_difference == pytest.approx(expected, abs=1e-5)


def test_what_is_large_is_counted_in_bytes(folder, corpus, tmp_path, of_texts, monkeypatch):
    """Numbers of float16 have two bytes; hidden states are longer than a head's queries and keys."""
    d_hidden, d_head = (of_texts.arrays[kind, 0].shape[1] for kind in ("hidden", "query"))
    assert d_hidden > d_head
    for n_byte, wanted in (
        (2 * d_head * of_texts.n_token - 1, {"hidden", "query", "key"}),
        (2 * d_head * of_texts.n_token, {"hidden"}),
        (2 * d_hidden * of_texts.n_token, set()),
    ):
        monkeypatch.setattr(indexing, "MOST_SCANNED", n_byte)
        index = index_corpus([corpus(TEXTS)], folder, tmp_path / str(n_byte), layer=1)
        assert set(index.recalls) == wanted


def test_the_same_again_is_read_and_another_is_refused(folder, corpus, tmp_path):
    texts, out = corpus(TEXTS[:3]), tmp_path / "out"
    index_corpus([texts], folder, out, layer=0, vectors=["query"])
    index = index_corpus(
        [texts], folder, out, layer=0, vectors=["query"], progress=lambda _: pytest.fail("it ran again")
    )
    assert index.vectors == ("query",) and not (out / "hidden.f16").exists()
    with pytest.raises(SelectionError, match="compared by hidden; this index has query"):
        index.nearest(np.ones(3), "hidden", 0)
    with pytest.raises(CorpusError, match="another layer"):
        index_corpus([texts], folder, out, layer=1, vectors=["query"])
    with pytest.raises(CorpusError, match="another layer"):
        index_corpus([corpus(TEXTS[:2])], folder, out, layer=0, vectors=["query"])


def test_parts_of_speech_are_those_of_the_labels(folder, tmp_path):
    rows = [
        ("the", "DET", 2),
        ("cat", "NOUN", 3),
        ("opened", "VERB", 0),
        ("it", "PRON", 3),
        (".", "PUNCT", 3),
    ]
    lines = [
        f"{at}\t{form}\t_\t{part}\t_\t_\t{head}\tdep\t_\t_" for at, (form, part, head) in enumerate(rows, 1)
    ]
    (tmp_path / "texts.conllu").write_text("\n".join(lines) + "\n")
    index = index_corpus([str(tmp_path / "texts.conllu")], folder, tmp_path / "new" / "out", layer=0)
    parts = {row["token"]: row["part"] for row in index.tokens.take(range(index.n_token))}
    assert {form: parts[form] for form, _, _ in rows if form in parts} == {
        form: part for form, part, _ in rows if form in parts
    }
    assert len(parts) >= 4


@pytest.mark.parametrize(
    ("n_token", "n_distinct", "n_seen"),
    [
        (5000, {20: 10}, [20]),
        (5000, {20: 9, 80: 10}, [20, 80]),
        (5000, {20: 1, 80: 2, 320: 9, 1280: 9}, [20, 80, 320, 1280]),
        (80, {20: 1, 80: 9}, [20, 80]),
        (79, {20: 1, 80: 9}, [20, 80]),
        (20, {20: 1}, [20]),
        (300, {20: 1, 80: 2, 320: 9}, [20, 80, 320]),
    ],
)
def test_more_neighbours_are_looked_at_until_ten_differ(n_token, n_distinct, n_seen):
    """Four times as many each time, up to all tokens or a thousand; of a token in equal texts the nearest is named."""
    asked = []

    def nearest(vector, kind, head, n):
        asked.append(n)
        return np.arange(n), 1 - np.arange(n) / 1e4

    def in_texts(numbers, similarities, head):
        """Of the neighbours only so many are distinct."""
        return [
            Nearest(
                similarity=similarity,
                token="a",
                text=f"text {number % n_distinct[len(numbers)] // 2}",
                position=number % n_distinct[len(numbers)] % 2,
                part=None,
                labels=("a",),
                key=0,
                weight=0.5,
            )
            for number, similarity in zip(numbers, similarities, strict=True)
        ]

    index = SimpleNamespace(n_token=n_token, nearest=nearest, _in_texts=in_texts)
    found = TokenIndex.find(index, np.ones(2), "hidden", 0)
    assert asked == n_seen and len(found) == min(10, n_distinct[n_seen[-1]])
    assert [near.similarity for near in found] == [1 - number / 1e4 for number in range(len(found))]


def test_neighbours_are_read_in_their_texts():
    """Cosines of float16 may be above 1 by rounding."""
    rows = {
        at: {
            "token": f"t{at}",
            "text": at // 2,
            "position": at % 2,
            "part": None,
            "keys": [at, 7],
            "weights": [at / 4, 0.5],
        }
        for at in range(4)
    }
    texts = {at: {"text": f"text {at}", "labels": [f"a{at}", f"b{at}"]} for at in range(2)}
    index = SimpleNamespace(
        tokens=SimpleNamespace(take=lambda numbers: [rows[number] for number in numbers]),
        texts=SimpleNamespace(take=lambda numbers: [texts[number] for number in numbers]),
    )
    found = TokenIndex._in_texts(index, [3, 0, 2], [1.0004, 0.75, -0.5], 0)
    assert [(near.similarity, near.token, near.text, near.position) for near in found] == [
        (1.0, "t3", "text 1", 1),
        (0.75, "t0", "text 0", 0),
        (-0.5, "t2", "text 1", 0),
    ]
    assert [(near.labels, near.key, near.weight) for near in found] == [
        (("a1", "b1"), 3, 0.75),
        (("a0", "b0"), 0, 0.0),
        (("a1", "b1"), 2, 0.5),
    ]
    assert [near.key for near in TokenIndex._in_texts(index, [1], [0.5], 1)] == [7]


def test_equal_texts_are_found_once(folder, corpus, tmp_path):
    index = index_corpus([corpus([TEXTS[1]] * 40 + TEXTS)], folder, tmp_path / "out", layer=0)
    nearest = index.find(index.arrays["hidden", 0][0].astype(float), "hidden", 0)
    assert len({(near.text, near.position) for near in nearest}) == len(nearest) == 10


@pytest.mark.parametrize("family", ["bert", "gpt2", "llama", "bart", "t5"])
def test_contexts_of_a_batch_are_those_of_each_text_alone(family, tiny_model):
    model = tiny_model(family)
    texts = ["the cat sat on the mat", "it opened .", "I was watching the door"]
    for text, made in zip(texts, contexts(model, [model.read(text) for text in texts], 1), strict=True):
        trace = model.trace(text)
        kind = trace.kinds[0]
        assert made.kind == kind
        call, weights = trace.attention(1, kind), trace.layer_weights(1, kind)
        np.testing.assert_allclose(made.query, call.query, atol=2e-5)
        np.testing.assert_allclose(made.key, call.key, atol=2e-5)
        np.testing.assert_allclose(made.hidden, hidden_states(model, trace).layers[kind, 1], atol=2e-5)
        np.testing.assert_allclose(made.weight, weights.max(axis=-1), atol=2e-5)
        rows, queries = np.indices(made.strongest.shape)
        np.testing.assert_allclose(weights[rows, queries, made.strongest], made.weight, atol=2e-5)


def test_a_head_has_the_vectors_of_its_group():
    """Six heads on keys of two groups; hidden states are one group."""
    groups = [group_of("key", head, n_group=2, n_head=6) for head in range(6)]
    assert groups == [0, 0, 0, 1, 1, 1]
    assert [group_of("query", head, n_group=6, n_head=6) for head in range(6)] == [*range(6)]
    assert [group_of("hidden", head, n_group=1, n_head=6) for head in range(6)] == [0] * 6


def test_a_layer_of_which_one_number_is_none_is_refused(tiny_model):
    """Of each token's hidden state one number is not finite, and the others are."""
    model = tiny_model("bert")
    bias = model.network.encoder.layer[1].output.LayerNorm.bias
    before = bias.detach().clone()
    read = [model.read("it opened .")]
    with torch.no_grad():
        bias[3] = torch.nan
    try:
        assert np.isfinite(contexts(model, read, 0)[0].hidden).all()
        with pytest.raises(ModelFailedError, match="Layer 1 of bert holds NaN or infinity"):
            contexts(model, read, 1)
    finally:
        with torch.no_grad():
            bias.copy_(before)


def test_texts_in_memory_and_pickled(tiny_model, of_texts):
    import pickle

    entries = [Entry(source="", place=number, text=text) for number, text in enumerate(TEXTS)]
    index = pickle.loads(pickle.dumps(index_texts(tiny_model("bert"), entries, 1)))
    assert [row[:4] for row in rows_of(index)] == [row[:4] for row in rows_of(of_texts)]
    files = [rows._source for rows in (index.tokens, index.texts)]
    assert index.n_bytes == sum(array.nbytes for array in index.arrays.values()) + sum(map(len, files))
    assert of_texts.n_bytes == 0  # it stays on disk
    assert index.n_verified == index.n_passed == 4


class TestRefused:
    def test_a_layer_that_is_not_there(self, folder, corpus, tmp_path):
        with pytest.raises(SelectionError, match=r"Layer 99 was asked for; bert has layers 0 to 2\."):
            index_corpus([corpus(TEXTS)], folder, tmp_path / "out", layer=99)

    @pytest.mark.stand_ins
    def test_vectors_that_are_not_there(self, folder, corpus, tmp_path):
        with pytest.raises(SelectionError, match="indexed by value; they can be by hidden, query, key"):
            index_corpus([corpus(TEXTS)], folder, tmp_path / "out", layer=0, vectors=["value"])

    def test_a_vector_of_another_model(self, of_texts):
        with pytest.raises(SelectionError, match="A vector of 3 numbers was given"):
            of_texts.find(np.ones(3), "hidden", 0)

    def test_a_head_that_is_not_there(self, of_texts):
        with pytest.raises(SelectionError, match="Head 99 was asked for"):
            of_texts.find(np.ones(3), "query", 99)

    @pytest.mark.parametrize("name", ["hidden.f16", "texts.parquet", "key-0.f16"])
    @pytest.mark.parametrize("what", ["missing", "cut"])
    def test_a_damaged_folder(self, name, what, of_texts, folder, corpus, tmp_path):
        index_corpus([corpus(TEXTS[:3])], folder, tmp_path / "out", layer=0)
        path = tmp_path / "out" / name
        data = path.read_bytes()
        path.unlink()
        if what == "cut":
            path.write_bytes(data[: len(data) // 2])
        with pytest.raises(CorpusError, match="not an index of tokens that attnviz wrote whole"):
            read_index(tmp_path / "out")

    def test_a_damaged_graph(self, folder, corpus, tmp_path, monkeypatch):
        monkeypatch.setattr(indexing, "MOST_SCANNED", 0)
        index_corpus([corpus(TEXTS[:3])], folder, tmp_path / "out", layer=0, vectors=["hidden", "query"])
        of_query = (tmp_path / "out" / "query-0.usearch").read_bytes()
        for data in (b"no graph at all", of_query):  # a graph of other vectors
            (tmp_path / "out" / "hidden.usearch").write_bytes(data)
            with pytest.raises(CorpusError, match="not an index of tokens that attnviz wrote whole"):
                read_index(tmp_path / "out")

    def test_another_schema(self, folder, corpus, tmp_path):
        index_corpus([corpus(TEXTS[:3])], folder, tmp_path / "out", layer=0)
        path = tmp_path / "out" / "tokens.parquet"
        table = pq.read_table(path)
        metadata = json.loads(table.schema.metadata[b"attnviz"]) | {"schema": 2}
        pq.write_table(table.replace_schema_metadata({b"attnviz": json.dumps(metadata).encode()}), path)
        with pytest.raises(CorpusError, match="columns of version 2; this attnviz reads version 1"):
            read_index(tmp_path / "out")

    def test_a_profile_in_its_place(self, tmp_path):
        with pytest.raises(CorpusError, match=r"there is no tokens\.parquet"):
            read_index(tmp_path)

    def test_a_full_disk(self, folder, corpus, tmp_path, monkeypatch):
        monkeypatch.setattr(indexing, "MOST_SCANNED", 0)
        usage = shutil.disk_usage(tmp_path)._replace(free=10)
        monkeypatch.setattr(indexing.shutil, "disk_usage", lambda _: usage)
        with pytest.raises(CorpusError, match="no room left"):
            index_corpus([corpus(TEXTS)], folder, tmp_path / "out", layer=0)


class TestCommand:
    def test_says_what_it_wrote(self, folder, corpus, tmp_path, capsys):
        out = str(tmp_path / "out")
        assert main(["corpus", "index", corpus(TEXTS), "--model", folder, "--layer", "1", "--out", out]) == 0
        printed = capsys.readouterr()
        n_token = read_index(tmp_path / "out").n_token
        assert f"{n_token} tokens of 7 texts by hidden, query, key in layer 1" in printed.out
        assert "7 of 7 verified texts passed" in printed.out
        assert "7 of 7 texts" in printed.err

    def test_texts_that_cannot_be_read_are_in_a_file(self, folder, tmp_path, capsys):
        (tmp_path / "texts.txt").write_bytes(b"the cat sat\n\xff\xfe\nit opened .\n")
        out = str(tmp_path / "out")
        texts = str(tmp_path / "texts.txt")
        assert main(["corpus", "index", texts, "--model", folder, "--layer", "0", "--out", out]) == 0
        assert "1 text failed" in capsys.readouterr().out
        [failure] = pq.read_table(tmp_path / "out" / "failed.parquet").to_pylist()
        assert failure["place"] == 2 and "not UTF-8" in failure["reason"]

    def test_a_wrong_column_is_one_sentence(self, folder, tmp_path, capsys):
        (tmp_path / "texts.csv").write_text("words\nthe cat\n")
        texts, out = str(tmp_path / "texts.csv"), str(tmp_path / "out")
        assert main(["corpus", "index", texts, "--model", folder, "--layer", "0", "--out", out]) == 2
        [line] = capsys.readouterr().err.strip().splitlines()[-1:]
        assert line.startswith("attnviz: None of the 1 texts could be read")

    @pytest.mark.parametrize("layer", [99, -1])
    def test_a_layer_that_is_not_there_is_told_before_the_texts_are_read(
        self, folder, corpus, tmp_path, monkeypatch, layer
    ):
        monkeypatch.setattr(running, "count_texts", lambda *_: pytest.fail("was read"))
        with pytest.raises(SelectionError, match=f"Layer {layer} was asked for; bert has layers 0 to 2"):
            index_corpus([corpus(TEXTS)], folder, tmp_path / "out", layer=layer)


def test_rows_are_read_by_their_group(tmp_path, of_texts, monkeypatch):
    """The rows of several groups, in whatever order they are asked for."""
    table = pq.read_table(tmp_path_of(of_texts) / "tokens.parquet")
    pq.write_table(table, tmp_path / "small.parquet", row_group_size=4)
    rows = Parquet(tmp_path / "small.parquet")
    wanted = [11, 0, 7, 7, len(table) - 1]
    assert rows.take(wanted) == [table.slice(number, 1).to_pylist()[0] for number in wanted]


def tmp_path_of(index):
    """The folder of an index on disk."""
    from pathlib import Path

    return Path(index.arrays["hidden", 0].filename).parent
