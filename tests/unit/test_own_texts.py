"""A file of texts as the page reads it: the column of a table, and its limits."""

import io

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from attnviz.corpus.texts import columns
from attnviz.errors import CorpusError
from ui.runtime import own_texts
from ui.runtime.own_texts import read_file


def parquet(columns):
    file = io.BytesIO()
    pq.write_table(pa.table(columns), file, store_schema=False)  # as other writers do
    return file.getvalue()


@pytest.mark.parametrize(
    ("name", "data", "expected"),
    [
        ("a.csv", b"id, text ,note\n1,2,3\n", ("id", "text", "note")),
        ("a.csv", b"\xef\xbb\xbfreview,id\n", ("review", "id")),
        ("a.csv", b"\xff\nid,,text\n", ("id", "text")),
        ("a.TSV", b"id\ttext, more\n", ("id", "text, more")),
        ("a.csv", b"", ()),
        ("a.jsonl", b'\nnonsense\n[1]\n{"id": 1, "review": "a", "note": "b"}\n', ("review", "note")),
        ("a.jsonl", b'\xff\n{"review": "b"}\n', ("review",)),
        ("a.ndjson", b"[" * 100_000, ()),
        ("a.parquet", parquet({"id": [1], "review": ["a"]}), ("review",)),
        ("a.parquet", parquet({"long": pa.array(["a"], pa.large_string()), "lists": [["a"]]}), ("long",)),
        ("a.txt", b"id,text\n", ()),
        ("a.conllu", b"", ()),
    ],
)
def test_columns_of_a_table(name, data, expected, tmp_path):
    (tmp_path / name).write_bytes(data)
    assert columns(tmp_path / name) == expected


@pytest.mark.parametrize(
    ("name", "data", "texts"),
    [
        ("a.txt", b"one\n\ntwo\r\n", ["one", "two"]),
        ("A.TXT", b"one", ["one"]),
        ("a.csv", b'id,text\n1,one\n2,"two\nlines"\n', ["one", "two\nlines"]),
        ("a.csv", b"review\none\n", ["one"]),
        ("a.jsonl", b'{"id": 1, "review": "one"}\n', ["one"]),
        ("a.parquet", parquet({"id": [1, 2], "review": ["one", None]}), ["one"]),
    ],
)
def test_an_obvious_column_is_taken(name, data, texts):
    contents = read_file(name, data, None)
    assert ([entry.text for entry in contents.entries], contents.columns) == (texts, ())
    assert contents.n_bytes == sum(len(text.encode()) for text in texts)


def test_a_column_is_asked_for():
    data = b"review,note\none,two\n"
    assert read_file("a.csv", data, None).columns == ("review", "note")
    assert [entry.text for entry in read_file("a.csv", data, "note").entries] == ["two"]


@pytest.mark.parametrize("name", ["a.pdf", "a", ".txt"])
def test_another_ending_is_refused(name):
    with pytest.raises(CorpusError, match=r"attnviz reads \.txt, "):
        read_file(name, b"a", None)


def test_no_more_than_the_limits(monkeypatch):
    monkeypatch.setattr(own_texts, "MOST_TEXTS", 3)
    assert len(read_file("a.txt", b"a\nb\nc\n", None).entries) == 3
    with pytest.raises(CorpusError, match="more than 3 texts"):
        read_file("a.txt", b"a\nb\nc\nd\n", None)
    monkeypatch.setattr(own_texts, "TEXTS_MB", 1)
    small = parquet({"text": ["a" * 400_000] * 3})  # a few bytes in the file
    assert len(small) < 100_000
    with pytest.raises(CorpusError, match="more than 1 MB of them"):
        read_file("a.parquet", small, None)


def test_a_text_of_many_bytes_is_not_made_for_each_row(monkeypatch):
    """A dictionary of one long text, which every row names: a hundred such rows would be two gigabytes."""
    text = pa.DictionaryArray.from_arrays(pa.array([0] * 100), pa.array(["a" * 20_000_000]))
    small = parquet({"text": text})
    pool = pa.default_memory_pool()
    before = pool.max_memory()
    with pytest.raises(CorpusError, match=r"20,000,000 characters; at most 1,000,000"):
        read_file("a.parquet", small, "text")
    assert pool.max_memory() < max(before, 300e6)
