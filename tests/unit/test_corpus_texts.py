"""Reading a corpus: what is read of each kind of file, and one sentence for whatever cannot be."""

import gzip
import json
import zipfile
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from attnviz.corpus import texts
from attnviz.corpus.labels import Labels, read_conllu
from attnviz.corpus.texts import Entry, Failure, find_files, read_entries
from attnviz.errors import CorpusError, ShapeError


def read(path, column=None):
    entries = list(read_entries(path, column))
    return [(result.place, result.text) for result in entries if isinstance(result, Entry)], [
        result for result in entries if isinstance(result, Failure)
    ]


@pytest.fixture
def write(tmp_path):
    def write_file(name, content):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write_file


WANTED = [(1, "One, two."), (3, "drei\u2028vier")]


class TestRead:
    def test_lines_of_a_text(self, write):
        path = write("a.txt", "\ufeffOne, two.\r\n \r\ndrei\u2028vier\n")
        assert read(path) == (WANTED, [])

    def test_a_last_line_without_an_end(self, write):
        assert read(write("a.txt", "a\nb")) == ([(1, "a"), (2, "b")], [])

    @pytest.mark.parametrize(("name", "mark"), [("a.csv", ","), ("a.tsv", "\t")])
    def test_a_table(self, name, mark, write):
        rows = [["id", "text"], ["1", '"One, two."'], ["2", '"two\nlines"'], ["3", ""]]
        path = write(name, "\n".join(mark.join(row) for row in rows))
        assert read(path) == ([(2, "One, two."), (4, "two\nlines")], [])

    def test_objects_on_lines(self, write):
        path = write(
            "a.jsonl", '{"text": "One, two."}\n\n{"text": "drei\\u2028vier", "n": 1}\n{"text": null}\n'
        )
        assert read(path) == (WANTED, [])

    def test_parquet(self, tmp_path):
        pq.write_table(
            pa.table({"n": [1, 2, 3], "words": ["One, two.", None, "drei\u2028vier"]}), tmp_path / "a.parquet"
        )
        assert read(tmp_path / "a.parquet", "words") == (WANTED, [])

    def test_another_column(self, write):
        assert read(write("a.csv", "text,said\na,b\n"), "said") == ([(2, "b")], [])


class TestFailures:
    @pytest.mark.parametrize("content", [b"good\nb\xff\xfed\nlast\n", b"good\n\xe4\nlast\n"])
    def test_a_line_that_is_not_utf_8(self, content, write):
        entries, [failure] = read(write("a.txt", content))
        assert entries == [(1, "good"), (3, "last")]
        assert failure.place == 2 and "not UTF-8" in failure.reason

    def test_a_line_that_is_too_long(self, write, monkeypatch):
        monkeypatch.setattr(texts, "_LONGEST_LINE", 100)
        monkeypatch.setattr(texts, "LONGEST_TEXT", 25)
        lines = "good", "x" * 1050, "y" * 30, "z" * 25, "last"
        entries, failures = read(write("a.txt", "\n".join(lines)))
        assert entries == [(1, "good"), (4, "z" * 25), (5, "last")]
        assert [(failure.place, failure.reason.split(";")[0]) for failure in failures] == [
            (2, "The text has about 1,051 characters"),
            (3, "The text has 30 characters"),
        ]

    @pytest.mark.parametrize("length", [98, 99, 100, 101, 199, 200, 201, 300])
    def test_the_length_of_a_line_is_said_in_bytes_and_the_next_is_read(self, length, write, monkeypatch):
        """A hundred bytes are read at a time, line ends included; a line of so many that has none is too long."""
        monkeypatch.setattr(texts, "_LONGEST_LINE", 100)
        monkeypatch.setattr(texts, "LONGEST_TEXT", 1000)
        entries, failures = read(write("a.txt", "x" * length + "\nlast\n"))
        if length <= 99:
            assert (entries, failures) == ([(1, "x" * length), (2, "last")], [])
        else:
            assert entries == [(2, "last")]
            assert failures[0].reason.startswith(f"The text has about {length + 1} characters; ")

    @pytest.mark.parametrize("start", range(1, 4))
    def test_the_byte_that_is_not_utf_8_is_named(self, start, write):
        _, [failure] = read(write("a.txt", b"abc"[: start - 1] + b"\xe4\n"))
        assert failure.reason.startswith(f"Byte {start} of the line is 0xE4, which is not UTF-8.")

    def test_of_a_table_the_lines_that_are_not_utf_8_fail_alone(self, write):
        entries, failures = read(write("a.csv", b"text\na\n\xff\nb\n\xff\n"))
        assert entries == [(2, "a"), (4, "b")]
        assert [failure.place for failure in failures] == [3, 5]

    def test_of_labelled_sentences_the_lines_that_are_not_utf_8_fail_alone(self, write):
        word = b"1\tS\xc3\xad\ts\tINTJ\t_\t_\t0\troot\t_\t_\n"
        entries, failures = read(write("a.conllu", word + b"\xff\n" + word + b"\n" + word + b"\xff\n"))
        assert entries == [(1, "S\xed"), (3, "S\xed"), (5, "S\xed")]
        assert [failure.place for failure in failures] == [2, 6]

    def test_a_text_of_parquet_that_is_too_long(self, tmp_path, monkeypatch):
        """As Arrow counts its bytes, of texts and of what are no texts; a row after it is read."""
        monkeypatch.setattr(texts, "_LONGEST_LINE", 10)
        words = ["x" * 11, "y" * 10, None, "last"]
        for type_ in (pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())):
            pq.write_table(pa.table({"text": pa.array(words, type_)}), tmp_path / "a.parquet")
            entries, [failure] = read(tmp_path / "a.parquet")
            assert entries == [(2, "y" * 10), (4, "last")]
            assert failure.place == 1 and failure.reason.startswith("The text has about 11 characters; ")

    def test_a_table_of_which_nothing_is_read_is_named_once(self, write, tmp_path):
        """Of a table the first line has the columns, of Parquet the whole file."""
        pq.write_table(
            pa.table({f"column {number}": ["a", "b"] for number in range(40)}), tmp_path / "a.parquet"
        )
        _, [failure] = read(tmp_path / "a.parquet")
        assert failure.place == 0
        names = ", ".join(f"column {number}" for number in range(40))[:200]
        assert (
            failure.reason
            == f"The column 'text' was to be read; here are {names}. Name one that holds texts."
        )
        _, [failure] = read(write("a.csv", "a,b\n1,2\n3,4\n"))
        assert failure.place == 2 and "here are a, b. " in failure.reason
        _, [failure] = read(write("a.jsonl", "{}\n"))
        assert failure.place == 1 and "here are none. " in failure.reason

    @pytest.mark.parametrize("suffix", [".txt", ".csv", ".jsonl", ".conllu"])
    def test_an_archive_of_another_name(self, suffix, tmp_path):
        with zipfile.ZipFile(tmp_path / f"a{suffix}", "w") as archive:
            archive.writestr("a.txt", "text")
        entries, [failure] = read(tmp_path / f"a{suffix}")
        assert entries == [] and failure.place == 0 and "a ZIP archive" in failure.reason
        (tmp_path / f"b{suffix}").write_bytes(gzip.compress(b"text"))
        assert "a gzip archive" in read(tmp_path / f"b{suffix}")[1][0].reason

    @pytest.mark.parametrize("name", ["a.csv", "a.tsv"])
    def test_a_table_without_the_column(self, name, write):
        entries, [failure] = read(write(name, "words\na\nb\n"))
        assert entries == [] and "here are words" in failure.reason and "'text'" in failure.reason

    def test_a_parquet_without_the_column(self, tmp_path):
        pq.write_table(pa.table({"words": ["a"]}), tmp_path / "a.parquet")
        entries, [failure] = read(tmp_path / "a.parquet")
        assert entries == [] and "here are words" in failure.reason

    def test_a_column_of_numbers(self, tmp_path):
        pq.write_table(pa.table({"text": [1, 2]}), tmp_path / "a.parquet")
        entries, failures = read(tmp_path / "a.parquet")
        assert entries == [] and len(failures) == 2

    def test_no_parquet(self, write):
        entries, [failure] = read(write("a.parquet", "text"))
        assert entries == [] and "no Parquet file" in failure.reason and failure.place == 0

    def test_lines_that_are_no_objects(self, write):
        entries, failures = read(
            write(
                "a.jsonl",
                '{"text": "a"}\nnonsense\n[1]\n"b"\n{"text": 3}\n' + "[" * 10**5 + '\n{"text": "c"}',
            )
        )
        assert entries == [(1, "a"), (7, "c")]
        assert [failure.place for failure in failures] == [2, 3, 4, 5, 6]

    def test_half_a_character(self, write):
        entries, [failure] = read(write("a.jsonl", '{"text": "a\\ud800"}\n{"text": "b"}'))
        assert entries == [(2, "b")] and "surrogate" in failure.reason

    def test_quotes_that_do_not_close(self, write):
        entries, [failure] = read(write("a.csv", 'text\na\n"b\n'))
        assert entries == [(2, "a")] and "cannot be read" in failure.reason

    def test_a_file_that_may_not_be_read(self, tmp_path):
        (tmp_path / "a.txt").mkdir()
        [failure] = read(tmp_path / "a.txt")[1]
        assert "could not be read" in failure.reason and failure.place == 0


class TestFiles:
    def test_folders_patterns_and_names_each_once(self, tmp_path, write):
        (tmp_path / "in").mkdir()
        for name in ("b.txt", "a.csv", "in/c.jsonl", "no.md"):
            write(name, "x")
        wanted = [tmp_path / name for name in ("a.csv", "b.txt", "in/c.jsonl")]
        assert find_files([str(tmp_path)]) == wanted
        assert find_files([str(tmp_path / "*.txt"), str(tmp_path), str(tmp_path / "b.txt")]) == wanted

    def test_two_asterisks_are_any_folders_between(self, tmp_path, write):
        (tmp_path / "in" / "deeper").mkdir(parents=True)
        wanted = [write(name, "x") for name in ("a.txt", "in/b.txt", "in/deeper/c.txt")]
        assert find_files([str(tmp_path / "**" / "*.txt")]) == wanted

    def test_nothing_there(self, tmp_path):
        with pytest.raises(CorpusError, match="there is no such file"):
            find_files([str(tmp_path / "none*.txt")])

    def test_another_kind(self, write):
        with pytest.raises(CorpusError, match=r"attnviz reads \.txt"):
            find_files([str(write("a.docx", "x"))])


CONLLU = """# sent_id = 1
# text = Vámonos al mar.
1-2\tVámonos\t_\t_\t_\t_\t_\t_\t_\t_
1\tVamos\tir\tVERB\t_\t_\t0\troot\t_\t_
2\tnos\tnosotros\tPRON\t_\t_\t1\tobj\t_\t_
3-4\tal\t_\t_\t_\t_\t_\t_\t_\t_
3\ta\ta\tADP\t_\t_\t5\tcase\t_\t_
4\tel\tel\tDET\t_\t_\t5\tdet\t_\t_
4.1\tnada\t_\t_\t_\t_\t_\t_\t_\t_
5\tmar\tmar\tNOUN\t_\t_\t1\tobl:arg\t_\tSpaceAfter=No
6\t.\t.\tPUNCT\t_\t_\t1\tpunct\t_\t_

1\tSí\tsí\tINTJ\t_\t_\t0\troot\t_\t_
"""


class TestLabels:
    def test_of_conllu(self):
        [(first, text, labels), (second, other, more)] = read_conllu(CONLLU.splitlines(keepends=True))
        assert (first, text, second, other) == (3, "Vámonos al mar.", 13, "Sí")
        assert [text[slice(*span)] for span in labels.spans] == ["Vámonos", "", "al", "", "mar", "."]
        assert labels.heads.tolist() == [-1, 0, 4, 4, 0, 0]
        assert labels.relations == ("root", "obj", "case", "det", "obl", "punct")
        assert labels.parts == ("VERB", "PRON", "ADP", "DET", "NOUN", "PUNCT")
        assert more.relations == ("root",)

    def test_written_and_read_again(self):
        [(_, _, labels), _] = read_conllu(CONLLU.splitlines(keepends=True))
        again = Labels.read(labels.written())
        assert again.relations == labels.relations and again.parts == labels.parts
        np.testing.assert_array_equal(again.spans, labels.spans)
        np.testing.assert_array_equal(again.heads, labels.heads)
        json.loads(labels.written())

    @pytest.mark.parametrize(
        ("line", "message"), [("1\ta\n", "10 columns"), ("1\ta\ta\tX\t_\t_\t7\tdep\t_\t_\n", "depends on 7")]
    )
    def test_a_sentence_that_is_wrong_fails_and_the_next_is_read(self, line, message, write):
        entries, [failure] = read(write("a.conllu", line + "\n1\tSí\tsí\tINTJ\t_\t_\t0\troot\t_\t_\n"))
        assert entries == [(3, "Sí")]
        assert failure.place == 1 and message in failure.reason

    @pytest.mark.stand_ins
    @pytest.mark.parametrize("name", ["heads", "relations", "parts"])
    def test_every_word_has_them(self, name):
        [(_, _, labels), _] = read_conllu(CONLLU.splitlines(keepends=True))
        with pytest.raises(ShapeError, match=f"6 spans, 5 {name}"):
            replace(labels, **{name: getattr(labels, name)[:-1]})

    def test_every_word_depends_on_one_that_is_there(self):
        [(_, _, labels), _] = read_conllu(CONLLU.splitlines(keepends=True))
        replace(labels, heads=np.array([-1, 0, 5, 5, 0, 0]))
        with pytest.raises(ShapeError, match="heads are up to 6, words 6"):
            replace(labels, heads=np.array([-1, 0, 6, 4, 0, 0]))

    def test_tokens_of_words(self, tiny_model):
        model = tiny_model("bert")
        tokens, _ = model.read("it opened .")
        labels = Labels(
            spans=np.array([(0, 2), (3, 9), (10, 11)]),
            heads=np.array([1, -1, 1]),
            relations=("nsubj", "root", "punct"),
            parts=("PRON", "VERB", "PUNCT"),
        )
        words = labels.word_of(tokens)
        assert words[0] == words[-1] == -1  # [CLS] and [SEP]
        for word, written in enumerate(("it", "opened", ".")):
            pieces = [tokens.piece(index) for index in np.flatnonzero(words == word).tolist()]
            assert "".join(pieces).strip() == written
