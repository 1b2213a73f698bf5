"""The texts of a corpus: files and folders in, texts and their places out, and a reason for each that cannot be read.

One concept: reading a corpus, one text at a time, whatever its length.
"""

import csv
import glob
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from attnviz.corpus.labels import Labels, read_conllu
from attnviz.errors import CorpusError, cause

SUFFIXES = (".txt", ".csv", ".tsv", ".jsonl", ".ndjson", ".parquet", ".conllu")
COLUMN = "text"
"""The column of a table that holds the texts, where none is named."""
LONGEST_TEXT = 1_000_000
"""Most characters of a text; a longer one fails, and the rest of its file is read."""
_LONGEST_LINE = 4 * LONGEST_TEXT
"""In bytes: a character of UTF-8 has at most four."""
_KINDS = {
    b"PK\x03\x04": "a ZIP archive",
    b"\x1f\x8b": "a gzip archive",
    b"%PDF": "a PDF",
    b"PAR1": "a Parquet file",
    b"\xd0\xcf\x11\xe0": "a document of an office program",
}
"""First bytes of files that are not text, and their formats."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A text of a corpus."""

    source: str
    """The file's path, as it was given or found."""
    place: int
    """The line that it begins in, of a table the line that it ends in or its row of Parquet, from 1."""
    text: str
    labels: Labels | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A text, or a whole file, that could not be read."""

    source: str
    place: int
    """As in `Entry`; 0 for the whole file."""
    reason: str
    """What was found and what to do, a sentence."""


def find_files(given: Sequence[str]) -> list[Path]:
    """The files of a corpus: those named, those that match a pattern such as "*.txt", and all of `SUFFIXES` in folders.

    Each once, in the order of their paths.

    Raises:
        CorpusError: nothing is there, or a named file has another suffix.
    """
    files: set[Path] = set()
    for name in given:
        path = Path(name)
        if path.is_dir():
            here = [file for file in path.rglob("*") if file.suffix.lower() in SUFFIXES and file.is_file()]
        elif path.is_file():
            here = [path]
        else:
            here = [Path(file) for file in glob.glob(name, recursive=True) if os.path.isfile(file)]
        if not here:
            raise CorpusError(
                f"{name} was to be read; there is no such file, or no file with one of the endings {', '.join(SUFFIXES)} in it. "
                "Name a file, a folder, or a pattern in quotation marks."
            )
        for file in here:
            if file.suffix.lower() not in SUFFIXES:
                raise CorpusError(
                    f"{file} was to be read; attnviz reads {', '.join(SUFFIXES)}. Save it in one of these, and name it so."
                )
        files.update(here)
    return sorted(files)


def read_entries(file: Path, column: str | None = None) -> Iterator[Entry | Failure]:
    """The texts of a file in order, blank ones left out, and what could not be read.

    Lines of a text file, rows of a table, objects of JSON lines, sentences of CoNLL-U.

    Args:
        column: of a table, or key of an object; "text" when None.
    """
    read = {
        ".txt": _lines,
        ".csv": _table,
        ".tsv": _table,
        ".jsonl": _objects,
        ".ndjson": _objects,
        ".parquet": _parquet,
        ".conllu": _sentences,
    }[file.suffix.lower()]
    source = str(file)
    try:
        if read is not _parquet:
            with file.open("rb") as opened:
                start = opened.read(8)
            kind = next((what for first, what in _KINDS.items() if start.startswith(first)), None)
            if kind is not None:
                yield Failure(
                    source=source,
                    place=0,
                    reason=f"This is {kind} with another name. Unpack it, or save it as text.",
                )
                return
        for entry in read(file, column or COLUMN):
            if isinstance(entry, Failure) or entry.text.strip():
                yield _bounded(entry)
    except OSError as error:
        yield Failure(
            source=source,
            place=0,
            reason=f"The file could not be read: {cause(error)} Look at its permissions.",
        )


def columns(file: Path) -> tuple[str, ...]:
    """The columns of a table that may hold its texts, in order; none for a file that is no table.

    For JSON lines, the keys of the first object that hold a text; for Parquet, the columns of texts.

    Raises:
        CorpusError: it is no such table.
    """
    match file.suffix.lower():
        case ".csv" | ".tsv":
            row = next(iter(_rows(file, (line for _, line in _decoded(file) if isinstance(line, str)))), ())
            return tuple(name.strip() for name in row if name.strip())
        case ".jsonl" | ".ndjson":
            for _, line in _decoded(file):
                if isinstance(line, str) and line.strip():
                    try:
                        value = json.loads(line)
                    except (ValueError, RecursionError):
                        continue
                    if isinstance(value, dict):
                        return tuple(name for name, column in value.items() if isinstance(column, str))
        case ".parquet":
            import pyarrow as pa
            import pyarrow.parquet as pq

            try:
                schema = pq.read_schema(file)
            except (pa.ArrowException, OSError) as error:
                raise CorpusError(_no_parquet(cause(error))) from error
            return tuple(
                column.name
                for column in schema
                if pa.types.is_string(column.type) or pa.types.is_large_string(column.type)
            )
    return ()


def _rows(file: Path, lines: Iterator[str]) -> Iterator[list[str]]:
    """The rows of a table, up to the first that cannot be read."""
    csv.field_size_limit(_LONGEST_LINE)
    with suppress(csv.Error):
        yield from csv.reader(lines, delimiter=_delimiter(file), strict=True)


def _delimiter(file: Path) -> str:
    return "\t" if file.suffix.lower() == ".tsv" else ","


def _no_parquet(why: str) -> str:
    return f"This is no Parquet file that can be read: {why} Write it anew."


def _bounded(entry: Entry | Failure) -> Entry | Failure:
    if isinstance(entry, Failure):
        return entry
    if len(entry.text) > LONGEST_TEXT:
        return Failure(source=entry.source, place=entry.place, reason=_too_long(f"{len(entry.text):,}"))
    if any("\ud800" <= character <= "\udfff" for character in entry.text):
        return Failure(
            source=entry.source,
            place=entry.place,
            reason="The text holds half a character (a lone surrogate). Write it anew.",
        )
    return entry


def _too_long(length: str) -> str:
    return f"The text has {length} characters; at most {LONGEST_TEXT:,} are read of one. Divide it."


def _decoded(file: Path) -> Iterator[tuple[int, str | Failure]]:
    """The numbers and lines of a file, line ends included; a line that is too long, or not UTF-8, is a failure."""
    with file.open("rb") as opened:
        number = 0
        while line := opened.readline(_LONGEST_LINE):
            number += 1
            if len(line) == _LONGEST_LINE and not line.endswith(b"\n"):
                length = len(line) + _skip_line(opened)
                yield number, Failure(source=str(file), place=number, reason=_too_long(f"about {length:,}"))
                continue
            if number == 1:
                line = line.removeprefix(b"\xef\xbb\xbf")
            try:
                yield number, line.decode("utf-8")
            except UnicodeDecodeError as error:
                reason = f"Byte {error.start + 1:,} of the line is 0x{line[error.start]:02X}, which is not UTF-8. Save the file as UTF-8."
                yield number, Failure(source=str(file), place=number, reason=reason)


def _skip_line(opened: BinaryIO) -> int:
    """Reads to the end of a line; returns the number of bytes."""
    length = 0
    while part := opened.readline(_LONGEST_LINE):
        length += len(part)
        if part.endswith(b"\n"):
            break
    return length


def _lines(file: Path, _: str) -> Iterator[Entry | Failure]:
    for number, line in _decoded(file):
        yield (
            line
            if isinstance(line, Failure)
            else Entry(source=str(file), place=number, text=line.rstrip("\r\n"))
        )


def _objects(file: Path, column: str) -> Iterator[Entry | Failure]:
    for number, line in _decoded(file):
        if isinstance(line, Failure):
            yield line
        elif line.strip():
            try:
                value = json.loads(line)
            except (json.JSONDecodeError, RecursionError) as error:
                yield Failure(
                    source=str(file),
                    place=number,
                    reason=f"The line is not JSON: {cause(error)} Write an object on each line.",
                )
                continue
            yield _of_row(file, number, value if isinstance(value, dict) else {}, column)


def _table(file: Path, column: str) -> Iterator[Entry | Failure]:
    failures: list[Failure] = []
    place = 0

    def readable() -> Iterator[str]:
        nonlocal place
        for place, line in _decoded(file):  # noqa: B007
            if isinstance(line, Failure):
                failures.append(line)
            else:
                yield line

    csv.field_size_limit(_LONGEST_LINE)
    rows = csv.DictReader(readable(), delimiter=_delimiter(file), strict=True)
    try:
        for row in rows:
            yield from _taken(failures)
            yield _of_row(file, place, row, column)
            if column not in (rows.fieldnames or ()):
                return
    except csv.Error as error:
        yield Failure(
            source=str(file),
            place=place,
            reason=f"From here on the table cannot be read: {cause(error)} Correct it there.",
        )
    yield from _taken(failures)


def _taken(failures: list[Failure]) -> Iterator[Failure]:
    while failures:
        yield failures.pop(0)


def _of_row(file: Path, place: int, row: dict[str, object], column: str) -> Entry | Failure:
    value = row.get(column)
    if isinstance(value, str):
        return Entry(source=str(file), place=place, text=value)
    if column in row and value is None:
        return Entry(source=str(file), place=place, text="")
    names = ", ".join(str(cell) for cell in row if cell is not None)[:200]
    reason = f"The column {column!r} was to be read; here are {names or 'none'}. Name one that holds texts."
    return Failure(source=str(file), place=place, reason=reason)


def _parquet(file: Path, column: str) -> Iterator[Entry | Failure]:
    import pyarrow.parquet as pq
    from pyarrow import ArrowException

    try:
        names = pq.read_schema(file).names
        if column not in names:
            yield _of_row(file, 0, dict.fromkeys(names, 0), column)
            return
        # as a dictionary, so that a text of many rows is in memory once
        with pq.ParquetFile(file, read_dictionary=[column]) as opened:
            place = 0
            for batch in opened.iter_batches(batch_size=256, columns=[column]):
                for value in batch.column(0):
                    place += 1
                    size = _n_bytes(value)
                    if size > _LONGEST_LINE:
                        yield Failure(source=str(file), place=place, reason=_too_long(f"about {size:,}"))
                        continue
                    yield _of_row(file, place, {column: value.as_py()}, column)
    except (ArrowException, OSError) as error:
        yield Failure(
            source=str(file),
            place=0,
            reason=_no_parquet(cause(error)),
        )


def _n_bytes(value: Any) -> int:
    """Bytes of a text of an Arrow table, which is not copied; 0 for anything else."""
    text: Any = getattr(value, "value", None) if hasattr(value, "dictionary") else value
    buffer = text.as_buffer() if hasattr(text, "as_buffer") else None
    return 0 if buffer is None else int(buffer.size)


def _sentences(file: Path, _: str) -> Iterator[Entry | Failure]:
    failures: list[Failure] = []

    def readable() -> Iterator[str]:
        for _, line in _decoded(file):
            if isinstance(line, Failure):
                failures.append(line)
                yield "\n"
            else:
                yield line

    for place, text, labels in read_conllu(readable()):
        yield from _taken(failures)
        if isinstance(labels, str):
            yield Failure(
                source=str(file),
                place=place,
                reason=f"The sentence has no labels that can be read: {labels}. Correct it.",
            )
        else:
            yield Entry(source=str(file), place=place, text=text, labels=labels)
    yield from _taken(failures)
