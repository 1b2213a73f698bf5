"""Reading a corpus: what is read of each kind of file, and one sentence for whatever cannot be."""

import gzip
import json
import os
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from attnviz.corpus import texts
from attnviz.corpus.files import METADATA
from attnviz.corpus.indexing import tokens_schema
from attnviz.corpus.labels import Labels, read_conllu
from attnviz.corpus.profile import HEADS_SCHEMA
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


FAILURES = pa.schema([("source", pa.string()), ("place", pa.int64()), ("reason", pa.string())])
"""Of a failed.parquet of an earlier version, without metadata."""
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
        assert entries == [(2, "a")] and "cannot be read" in failure.reason and failure.place == 3

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

    @pytest.mark.parametrize("given", ["a.txt", Path("a.txt"), ["a.txt"], (Path("a.txt"),)])
    def test_one_file_or_some(self, given, write, tmp_path, monkeypatch):
        write("a.txt", "x")
        write("b.txt", "x")
        monkeypatch.chdir(tmp_path)
        assert find_files(given) == [Path("a.txt")]

    @pytest.mark.parametrize("given", ["", " ", [""], [None], [1], b"a.txt"])
    @pytest.mark.stand_ins
    def test_what_names_nothing(self, given, write, tmp_path, monkeypatch):
        write("a.txt", "x")
        monkeypatch.chdir(tmp_path)
        with pytest.raises(CorpusError, match="was to be read as texts"):
            find_files(given)

    def test_brackets_and_others_in_names_that_exist(self, tmp_path, write, monkeypatch):
        (tmp_path / "texts [1]" / "a*").mkdir(parents=True)
        inside = [write(f"texts [1]/{name}", "x") for name in ("a*/b.txt", "c [2].txt", "d.txt")]
        folder = tmp_path / "texts [1]"
        assert find_files(folder) == find_files([str(folder / "**" / "*.txt")]) == inside
        assert find_files([str(folder / "*.txt")]) == inside[1:]
        assert find_files([str(inside[1])]) == inside[1:2]
        assert find_files([str(folder / "[d]*")]) == inside[2:]
        monkeypatch.chdir(tmp_path)
        assert find_files("texts [1]/*.txt") == [file.relative_to(tmp_path) for file in inside[1:]]

    @pytest.mark.parametrize(
        "of_attnviz",
        [*(schema.with_metadata({METADATA: b"{}"}) for schema in (HEADS_SCHEMA, tokens_schema(2))), FAILURES],
    )
    def test_what_attnviz_wrote_is_left_out_of_folders_and_refused_by_name(self, of_attnviz, tmp_path, write):
        """By what it holds; a user's own file is read, whatever it is called."""
        (tmp_path / "in").mkdir()
        wanted = [write("a.txt", "x"), tmp_path / "heads.parquet"]
        pq.write_table(pa.table({"text": ["a"]}), wanted[1])
        path = tmp_path / "in" / "any.parquet"
        pq.write_table(of_attnviz.empty_table(), path)
        assert find_files([str(tmp_path)]) == wanted
        assert find_files([str(tmp_path / "**" / "*.*")]) == wanted
        for given in (path, tmp_path / "in", str(tmp_path / "in" / "*")):
            with pytest.raises(CorpusError, match="that attnviz wrote"):
                find_files(given)

    def test_what_is_hidden_is_left_out_of_folders(self, tmp_path, write):
        for folder in (".git", ".ipynb_checkpoints", "in/.cache"):
            (tmp_path / folder).mkdir(parents=True)
            write(f"{folder}/a.txt", "x")
        hidden, wanted = write("in/.a.txt", "x"), write("in/a.txt", "x")
        assert find_files([str(tmp_path)]) == [wanted]
        assert find_files([str(hidden)]) == [hidden]

    def test_links_to_a_file_are_the_file(self, tmp_path, write):
        path = write("a.txt", "x")
        (tmp_path / "b.txt").symlink_to(path)
        (tmp_path / "again").symlink_to(tmp_path)
        assert find_files([str(tmp_path)]) == find_files([str(tmp_path / "b.txt"), str(path)][::-1]) == [path]

    def test_a_link_that_leads_nowhere_is_a_failure(self, tmp_path, write):
        path = write("a.txt", "x")
        (tmp_path / "b.txt").symlink_to(tmp_path / "none.txt")
        (tmp_path / "c.txt").symlink_to(tmp_path / "c.txt")
        assert find_files([str(tmp_path)]) == [path, tmp_path / "b.txt", tmp_path / "c.txt"]
        for name in ("b.txt", "c.txt"):
            [failure] = read(tmp_path / name)[1]
            assert failure.place == 0 and "could not be read" in failure.reason

    def test_a_folder_called_like_a_file_is_a_folder_and_a_pipe_is_left_out(self, tmp_path, write):
        (tmp_path / "x.txt").mkdir()
        path = write("x.txt/a.txt", "x")
        os.mkfifo(tmp_path / "pipe.txt")
        assert find_files([str(tmp_path)]) == find_files([str(tmp_path / "x.txt")]) == [path]

    def test_an_archive_of_texts_in_a_folder_is_a_failure(self, tmp_path, write):
        path = write("a.txt.gz", gzip.compress(b"text"))
        write("b.gz", gzip.compress(b"text"))
        assert find_files([str(tmp_path)]) == [path]
        [failure] = read(path)[1]
        assert "a gzip archive" in failure.reason
        with pytest.raises(CorpusError, match=r"attnviz reads \.txt"):
            find_files([str(path)])

    def test_a_name_that_is_not_unicode(self, tmp_path):
        path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xe4.txt"))
        path.write_text("a\n")
        [entry] = read_entries(path)
        assert entry.source.endswith(r"\udce4.txt") and entry.source.isprintable()

    def test_another_kind(self, write):
        with pytest.raises(CorpusError, match=r"attnviz reads \.txt"):
            find_files([str(write("a.docx", "x"))])


# What a row holds, whether its text is read (None: it is a failure), and a word of the reason; rows before and after it are read.
OBJECTS = [
    ('{"text": "b", "n": ' + "7" * 5000 + "}", "b"),
    ('{"text": "b", "n": -' + "7" * 5000 + ".5e7}", "b"),
    ('{"text": "b", "n": [NaN, Infinity, -Infinity, 1e999]}', "b"),
    ('{"text": "b", "n": 1, "n": 2}', "b"),
    ('{"text": "\\ud83d\\ude00"}', "\U0001f600"),
    ('{"text": ' + "7" * 5000 + "}", "holds a number here"),
    ('{"text": NaN}', "holds a number here"),
    ('{"text": true}', "holds true or false here"),
    ('{"text": ["b"]}', "holds a list here"),
    ('{"text": {"en": "b"}}', "holds an object here"),
    ('{"text": "b", "text": "c"}', "is there twice"),
    ('{"Text": "b"}', "here are Text"),
    ('{"\\ud800": "b"}', r"here are \ud800"),
    ('[{"text": "b"}]', "is a list, not an object"),
    ("null", "is null, not an object"),
    ('"b"', "is a text, not an object"),
    ("[" * 10**5, "RecursionError"),
    ('{"text": ' * 10**5, "RecursionError"),
    ("{", "not JSON"),
    ('{"text": "b"} {"text": "c"}', "not JSON"),
    ('{"text": "b\\ud800c"}', "surrogate"),
    ('{"text": "b\\u0000c"}', "NUL"),
    ('{"text": "b\0c"}', "not JSON"),
]
TABLES = [
    ("b,c", "b"),
    ('"b, c",d', "b, c"),
    ('"say ""b""",d', 'say "b"'),
    ("b,c,,", "b"),  # as spreadsheets write it
    ("b", "b"),
    ("b,c,d", "has 3 cells, the first line 2"),
    ("b\0,c", "NUL"),
    ('"b"c,d', "cannot be read"),
    ('"b', "does not close"),
    ('"b,c', "does not close"),
    ('"' + "b" * 1_000_001 + '",c', "1,000,001 characters"),
    ("b\rc,d", "cannot be read"),
]


def of_row(found, row, read_all):
    """Whether a row between others is read as its text, or fails for its reason."""
    entries, failures = read_all
    if failures:
        [failure] = failures
        assert failure.place == row and found in failure.reason and failure.reason.endswith(".")
        assert entries == [(row - 1, "a"), (row + 1, "z")]
    else:
        assert entries == [(row - 1, "a"), (row, found), (row + 1, "z")]


class TestRows:
    """One row is not like the others: it alone fails, with its place and reason, or it is read."""

    @pytest.mark.parametrize(("line", "found"), OBJECTS)
    def test_of_json(self, line, found, write):
        of_row(found, 2, read(write("a.jsonl", f'{{"text": "a"}}\n{line}\n{{"text": "z"}}\n')))

    @pytest.mark.parametrize(("line", "found"), TABLES)
    def test_of_a_table(self, line, found, write):
        of_row(found, 3, read(write("a.csv", f"text,n\na,1\n{line}\nz,1\n")))

    def test_of_a_table_without_its_cell(self, write):
        of_row("has 1 cells, the first line 2", 3, read(write("a.csv", "n,text\n1,a\n1\n1,z\n")))

    @pytest.mark.parametrize(
        ("line", "text"),
        [
            ('"Hello she said', '"Hello she said'),
            ('"Hello", she said', '"Hello", she said'),
            ('Hello "', 'Hello "'),
            ('"""', '"""'),
            ('"Hello"', "Hello"),
            ('"say ""hello"""', 'say "hello"'),
        ],
    )
    def test_a_quotation_mark_of_tabs_is_a_character_unless_it_closes(self, line, text, write):
        assert read(write("a.tsv", f"text\na\n{line}\nb\nc\n")) == (
            [(2, "a"), (3, text), (4, "b"), (5, "c")],
            [],
        )
        assert read(write("a.tsv", f"n\ttext\n1\ta\n2\t{line}\n3\tb\n")) == (
            [(2, "a"), (3, text), (4, "b")],
            [],
        )

    def test_no_row_of_tabs_is_swallowed_by_marks_in_two_rows(self, write):
        """A line with as many cells as the first is a row, whatever its quotation marks."""
        entries = [(2, '"good'), (3, "middle"), (4, 'bad"'), (5, "z")]
        assert read(write("a.tsv", '\ttext\n1\t"good\n2\tmiddle\n3\tbad"\n4\tz\n')) == (entries, [])
        assert read(write("a.tsv", 'text\n"good\nmiddle\nbad"\nz\n')) == (entries, [])

    def test_a_row_of_too_many_tabs(self, write):
        of_row("has 3 cells, the first line 2", 3, read(write("a.tsv", "n\ttext\n1\ta\n1\tb\tc\n1\tz\n")))

    def test_the_line_where_marks_begin_is_named_and_the_rows_after_it_are_read(self, write):
        """Of two columns: what would close in a later row makes a row of other columns; three rows of lines are still one each."""
        rows = ["text,n", "a,1", '"b,2', 'c,"3"', '"d\nd",4', "e,5"]
        entries, [failure] = read(write("a.csv", "\n".join(rows)))
        assert entries == [(2, "a"), (4, "c"), (6, "d\nd"), (7, "e")]
        assert failure.place == 3 and "does not close" in failure.reason
        entries, [failure] = read(write("a.csv", 'n,text,m\n1,"b,x\n2,c"\n3,d,y\n'))
        assert entries == [(3, 'c"'), (4, "d")] and failure.place == 2

    @pytest.mark.parametrize(
        ("line", "reason"),
        [
            ("_\ta\ta\tX\t_\t_\t0\troot\t_\t_", "'_' is not the id of a word"),
            ("a\ta\ta\tX\t_\t_\t0\troot\t_\t_", "'a' is not the id of a word"),
            ("1-\ta\ta\tX\t_\t_\t0\troot\t_\t_", "'1-' is not the id of a word"),
            ("1-2-3\ta\ta\tX\t_\t_\t0\troot\t_\t_", "'1-2-3' is not the id"),
            ("\u00b2\ta\ta\tX\t_\t_\t0\troot\t_\t_", "is not the id"),
            ("7" * 5000 + "\ta\ta\tX\t_\t_\t0\troot\t_\t_", "is not the id"),
            ("3\ta\ta\tX\t_\t_\t0\troot\t_\t_", "the id 3 comes after 0 words"),
            ("1\ta\ta\tX\t_\t_\t1\tdep\t_\t_", "the word 1 depends on itself"),
            ("1\ta\ta\tX\t_\t_\t-1\tdep\t_\t_", "depends on -1"),
            ("1\ta\ta\tX\t_\t_\t_\tdep\t_\t_", "depends on _,"),
            ("1\ta\ta\tX\t_\t_\t1.5\tdep\t_\t_", "depends on 1.5"),
            (
                "1\ta\ta\tX\t_\t_\t2\tdep\t_\t_\n2\tb\tb\tX\t_\t_\t1\tdep\t_\t_",
                "depends on itself, directly or",
            ),
            (
                "1\ta\ta\tX\t_\t_\t0\troot\t_\t_\n1\tb\tb\tX\t_\t_\t1\tdep\t_\t_",
                "the id 1 comes after 1 words",
            ),
            ("1-2\tab\t_\t_\t_\t_\t_\t_\t_\t_\n1\ta\ta\tX\t_\t_\t0\troot\t_\t_", "the token 1-2 lacks words"),
            ("2-1\tab\t_\t_\t_\t_\t_\t_\t_\t_\n1\ta\ta\tX\t_\t_\t0\troot\t_\t_", "comes after 0 words"),
            ("1 a a X _ _ 0 root _ _", "10 columns; one here has 1"),
            ("1\ta\0\ta\tX\t_\t_\t0\troot\t_\t_", "NUL"),
        ],
    )
    def test_of_labelled_sentences(self, line, reason, write):
        word = "1\t{}\t_\tX\t_\t_\t0\troot\t_\t_\n\n"
        entries, [failure] = read(write("a.conllu", word.format("a") + line + "\n\n" + word.format("z")))
        assert [text for _, text in entries] == ["a", "z"]
        assert failure.place == 3 and reason in failure.reason and failure.reason.endswith(".")

    def test_comments_and_empty_nodes_alone_are_no_text(self, write):
        assert read(write("a.conllu", "# newdoc\n\n1.1\ta\t_\t_\t_\t_\t_\t_\t_\t_\n\n")) == ([], [])

    @pytest.mark.parametrize(
        ("values", "kind"),
        [
            ([["a"], None, ["b", "c"]], "list<"),
            ([{"en": "a"}, None, {"en": "b"}], "struct<"),
            ([1.5, None, 2.5], "double"),
            ([True, None, False], "bool"),
            (pa.array([1, None, 2], pa.decimal128(4, 1)), "decimal128(4, 1)"),
            (pa.array([1, None, 2], pa.timestamp("ms")), "timestamp[ms]"),
            (pa.array([1, None, 2]).dictionary_encode(), "int64"),
        ],
    )
    def test_of_parquet_that_holds_no_text(self, values, kind, tmp_path):
        """Each row that holds something fails; one that holds nothing is blank."""
        pq.write_table(pa.table({"n": [1, 2, 3], "text": values}), tmp_path / "a.parquet")
        entries, failures = read(tmp_path / "a.parquet")
        assert entries == [] and [failure.place for failure in failures] == [1, 3]
        assert all(f"The column 'text' holds {kind}" in failure.reason for failure in failures)

    @pytest.mark.parametrize(
        "kind",
        [
            pa.string(),
            pa.large_string(),
            pa.string_view(),
            pa.binary(),
            pa.large_binary(),
            pa.binary_view(),
            pa.binary(4),
        ],
    )
    def test_of_parquet_that_holds_texts_or_their_bytes(self, kind, tmp_path):
        values = ["\u00e4bc", None, "d\u00e9f"]
        table = pa.table({"text": pa.array([value and value.encode() for value in values]).cast(kind)}) if "binary" in str(kind) else pa.table({"text": pa.array(values, kind)})  # fmt: skip
        pq.write_table(table, tmp_path / "a.parquet")
        assert read(tmp_path / "a.parquet") == ([(1, "\u00e4bc"), (3, "d\u00e9f")], [])

    def test_of_parquet_bytes_that_are_no_text(self, tmp_path):
        rows = [b"a", b"\xff\xd8\xff", b"b\0c", b"z"]
        for kind in (pa.binary(), pa.string()):
            array = pa.Array.from_buffers(kind, 4, pa.array(rows, pa.binary()).buffers())
            pq.write_table(pa.table({"text": array}), tmp_path / "a.parquet")
            entries, failures = read(tmp_path / "a.parquet")
            assert entries == [(1, "a"), (4, "z")]
            assert [failure.place for failure in failures] == [2, 3]
            assert "utf-8" in failures[0].reason and "NUL" in failures[1].reason

    def test_of_parquet_that_is_damaged_in_the_middle(self, tmp_path):
        """The second of three groups of rows: those before and after it are read."""
        path = tmp_path / "a.parquet"
        words = [f"text {number} {'x' * (number % 7)}" for number in range(300)]
        pq.write_table(pa.table({"text": words}), path, row_group_size=100, compression="snappy")
        group = pq.ParquetFile(path).metadata.row_group(1).column(0)
        content = bytearray(path.read_bytes())
        first = group.dictionary_page_offset or group.data_page_offset
        content[first : first + group.total_compressed_size] = b"\xff" * group.total_compressed_size
        path.write_bytes(content)
        entries, [failure] = read(path)
        assert entries == [(at + 1, word) for at, word in enumerate(words) if not 100 <= at < 200]
        assert failure.place == 101 and "to row 200 the file cannot be read" in failure.reason

    def test_whatever_a_row_s_reader_raises_is_its_reason(self, write, monkeypatch):
        def object_of(line, column):
            raise [RuntimeError("no"), KeyError("x"), MemoryError()][int(line)]

        monkeypatch.setattr(texts, "_of_object", object_of)
        _, failures = read(write("a.jsonl", "0\n1\n2\n"))
        assert [failure.place for failure in failures] == [1, 2, 3]
        assert ["RuntimeError: no." in failures[0].reason, "KeyError: 'x'." in failures[1].reason] == [
            True,
            True,
        ]

    def test_whatever_the_reader_of_a_file_raises_is_its_reason(self, write, monkeypatch):
        def rows(file, column):
            yield 1, lambda: ("a", None)
            raise RuntimeError("no")

        monkeypatch.setattr(texts, "_objects", rows)
        entries, [failure] = read(write("a.jsonl", ""))
        assert entries == [(1, "a")] and failure.place == 1
        assert failure.reason == "From here on the file could not be read: RuntimeError: no. Write it anew."


LINES = "One, two.\n\u00e4\u4e2d\U0001f600\nlast\n"


class TestEncodings:
    @pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32", "utf-16-be", "utf-32-be"])
    @pytest.mark.parametrize(
        ("name", "before", "place"), [("a.txt", "", 1), ("a.csv", "text\n", 2), ("a.tsv", "text\n", 2)]
    )
    def test_what_has_a_byte_order_mark_is_read(self, encoding, name, before, place, write):
        mark = "\ufeff" * encoding.endswith("-be")
        found = [(place + at, text) for at, text in enumerate(LINES.split("\n")[:3])]
        if name != "a.txt":
            found[0] = place, '"One, two."'.strip('"')
        lines = LINES.replace("One, two.", '"One, two."') if name != "a.txt" else LINES
        assert read(write(name, (mark + before + lines).encode(encoding))) == (found, [])
        if name != "a.txt":
            assert texts.columns(write(name, (mark + before).encode(encoding))) == ("text",)

    @pytest.mark.parametrize("encoding", ["utf-16", "utf-32"])
    def test_json_too(self, encoding, write):
        assert read(write("a.jsonl", '{"text": "\u00e4"}\n'.encode(encoding))) == ([(1, "\u00e4")], [])

    @pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"])
    @pytest.mark.parametrize("suffix", [".txt", ".csv", ".jsonl", ".conllu"])
    def test_what_has_none_is_refused(self, encoding, suffix, write):
        entries, [failure] = read(write(f"a{suffix}", ("text\n" + LINES).encode(encoding)))
        assert entries == [] and failure.place == 0 and "UTF-16" in failure.reason

    @pytest.mark.parametrize(
        "text", ["\u4e2d\u6587\u8bcd\n\u8bed\u4e2d\n", "\u043c\u0438\u0440\n" * 3, "\u0939\u093f\n\u0928\n"]
    )
    def test_no_line_of_it_is_read_in_other_scripts_either(self, text, write):
        entries, failures = read(write("a.txt", text.encode("utf-16-le")))
        assert entries == [] and "UTF-16" in failures[0].reason

    def test_half_a_character_of_utf_16(self, write):
        data = "\ufeffa\n".encode("utf-16-le") + b"\x00\xd8" + "\nz\n".encode("utf-16-le")
        entries, [failure] = read(write("a.txt", data))
        assert entries == [(1, "a"), (3, "z")] and failure.place == 2 and "surrogate" in failure.reason

    def test_utf_16_that_is_cut_off(self, write):
        entries, [failure] = read(write("a.txt", "a\nb\n".encode("utf-16") + b"x"))
        assert entries == [(1, "a"), (2, "b")] and "From here on" in failure.reason

    def test_another_encoding_of_latin_letters(self, write):
        entries, [failure] = read(write("a.txt", "good\n\u201cd\u00e9j\u00e0\u201d\n".encode("cp1252")))
        assert entries == [(1, "good")] and "0x93, which is not UTF-8" in failure.reason

    def test_a_nul_in_one_line(self, write):
        entries, [failure] = read(write("a.txt", "a\nb\0\0\0\nz\n"))
        assert entries == [(1, "a"), (3, "z")] and failure.place == 2

    @pytest.mark.parametrize(
        ("content", "kind"),
        [
            (b"<!DOCTYPE html>\n<html>", "a page of HTML"),
            (b"\n <HTML lang=en>", "a page of HTML"),
            (b"{\\rtf1\\ansi text}", "in RTF"),
            (b"%PDF-1.7\n", "a PDF"),
            (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "git lfs pull"),
            (b"SQLite format 3\0", "an SQLite database"),
            (b"\x28\xb5\x2f\xfd\x04", "a Zstandard archive"),
        ],
    )
    @pytest.mark.parametrize("suffix", [".txt", ".csv", ".jsonl"])
    def test_what_is_no_text(self, content, kind, suffix, write):
        entries, [failure] = read(write(f"a{suffix}", content))
        assert entries == [] and failure.place == 0 and kind in failure.reason

    def test_a_text_about_these_is_one(self, write):
        lines = "<htmlish> is no tag\nPDF\nBZh in Breton\n"
        assert len(read(write("a.txt", lines))[0]) == 3


class TestHeaders:
    def test_spaces_around_names(self, write):
        assert read(write("a.csv", "id, text ,n\n1,a,2\n")) == ([(2, "a")], [])

    def test_a_name_that_is_there_twice(self, write, tmp_path):
        entries, [failure] = read(write("a.csv", "text,n,text\na,1,b\nc,1,d\n"))
        assert entries == [] and "2 are called so" in failure.reason
        path = tmp_path / "a.parquet"
        pq.write_table(pa.Table.from_arrays([pa.array(["a"]), pa.array(["b"])], names=["text", "text"]), path)
        entries, [failure] = read(path)
        assert entries == [] and "2 are called so" in failure.reason

    def test_another_separator(self, write):
        entries, [failure] = read(write("a.csv", "id;text\n1;a, b\n2;c\n"))
        assert entries == [] and "separated by commas" in failure.reason
        for name, first in (("a.csv", "id;text"), ("a.csv", "id\ttext"), ("a.tsv", "id,text")):
            with pytest.raises(CorpusError, match="separated by commas"):
                texts.columns(write(name, f"{first}\n"))

    def test_none(self, write):
        entries, [failure] = read(write("a.csv", "Good film.,1\nBad film.,0\n"))
        assert entries == [] and "here are Good film., 1" in failure.reason

    @pytest.mark.parametrize("name", [f"a{suffix}" for suffix in texts.SUFFIXES if suffix != ".parquet"])
    def test_an_empty_file(self, name, write):
        assert read(write(name, "")) == ([], [])


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
