"""The texts of a corpus: files and folders in, texts and their places out, and a reason for each that cannot be read.

Reading a corpus, one text at a time, whatever its length. Each format has a function that finds the rows of a file; a
row is read by `_read` alone, where whatever goes wrong becomes the reason of that row.
"""

import codecs
import csv
import glob
import io
import json
import os
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

from attnviz.corpus.labels import Labels, read_sentence, sentence_rows
from attnviz.errors import CorpusError, cause

SUFFIXES = (".txt", ".csv", ".tsv", ".jsonl", ".ndjson", ".parquet", ".conllu")
COLUMN = "text"
"""The column of a table that holds the texts, where none is named."""
LONGEST_TEXT = 1_000_000
"""Most characters of a text; a longer one fails, and the rest of its file is read."""
_LONGEST_LINE = 4 * LONGEST_TEXT
"""Most characters of a line and bytes of a text of Parquet: a character of UTF-8 has at most four."""
_PACKED = (".gz", ".bz2", ".xz", ".zst", ".zip")
"""Endings after one of `SUFFIXES` of files in folders that fail, rather than be passed over."""
_ENCODINGS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF32_LE: "utf-32",  # before that of UTF-16, which it begins with
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
"""Encodings by the byte order mark at the beginning of a file; a file without one is read as UTF-8."""
_KINDS = {
    rb"PK\x03\x04": "a ZIP archive",
    rb"\x1f\x8b": "a gzip archive",
    rb"BZh[1-9]1AY": "a bzip2 archive",
    rb"\xfd7zXZ": "an xz archive",
    rb"\x28\xb5\x2f\xfd": "a Zstandard archive",
    rb"7z\xbc\xaf": "a 7z archive",
    rb"%PDF": "a PDF",
    rb"\{\\rtf": "a document in RTF",
    rb"(?i:\s*<(!doctype html|html)\b)": "a page of HTML",
    rb"PAR1": "a Parquet file",
    rb"ARROW1": "an Arrow file",
    rb"SQLite format 3": "an SQLite database",
    rb"\xd0\xcf\x11\xe0": "a document of an office program",
    rb"version https://git-lfs": "a pointer of Git LFS (git lfs pull gets the file)",
}
"""What files that are not text begin with, and their formats."""
_LINE_END = re.compile(rb"(?<!\0)\n(?!\0)")
"""The end of a line in UTF-8; in UTF-16 and UTF-32 a NUL byte is beside it."""
_HALVES = re.compile("[\ud800-\udfff]")
"""Halves of characters; where a file in UTF-8 is read, each stands for a byte that is not UTF-8."""
_JSON_KINDS = {bool: "true or false", float: "a number", str: "a text", list: "a list", dict: "an object"}


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
    """As in `Entry`; where quotation marks do not close, the line that these begin in; 0 for the whole file."""
    reason: str
    """What was found and what to do, a sentence."""

    def __post_init__(self) -> None:
        object.__setattr__(
            self, "reason", _unicode(self.reason)
        )  # a key that it names may hold half a character


Row = tuple[int, "Callable[[], tuple[str, Labels | None]]"]
"""The place of a row, and a function that reads its text, which may raise anything."""


def entries_from(texts: Iterable[str | Entry]) -> list[Entry]:
    """Texts as entries; one that comes from no file has its number, from 1, as its place."""
    return [
        text if isinstance(text, Entry) else Entry(source="text", place=number, text=text)
        for number, text in enumerate(texts, 1)
    ]


def find_files(given: Sequence[str | Path] | str | Path) -> list[Path]:
    """The files of a corpus: those named, those that match a pattern such as "*.txt", and all of `SUFFIXES` in folders.

    Each once, whatever links lead to it, in the order of their paths. What attnviz wrote is left out of folders and patterns; hidden
    files, hidden folders and links to folders are left out of folders.

    Raises:
        CorpusError: nothing is there, a named file has another suffix, or attnviz wrote all that is there.
    """
    files: dict[str, Path] = {}
    for name in [given] if isinstance(given, str | Path) else given:
        if not isinstance(name, str | Path) or not str(name).strip():
            raise CorpusError(
                f"{name!r} was to be read as texts. Name a file, a folder, or a pattern in quotation marks."
            )
        path = Path(name)
        here = _in_folder(path) if path.is_dir() else [path] if path.is_file() else _matching(path)
        if not here:
            raise CorpusError(
                f"{name} was to be read; there is no such file, or no file with one of the endings {', '.join(SUFFIXES)} in it. "
                "Name a file, a folder, or a pattern in quotation marks."
            )
        for file in here:
            if file.suffix.lower() not in SUFFIXES and not path.is_dir():
                raise CorpusError(
                    f"{file} was to be read; attnviz reads {', '.join(SUFFIXES)}. Save it in one of these, and name it so."
                )
        texts = [file for file in sorted(here) if not _is_written_by_attnviz(file)]
        if not texts:
            raise CorpusError(
                f"{name} was to be read as texts; it is a profile or an index that attnviz wrote. Name the files of texts."
            )
        for file in texts:
            files.setdefault(os.path.realpath(file), file)
    return sorted(files.values())


def _in_folder(folder: Path) -> list[Path]:
    """The files of texts in a folder and all folders in it; links that lead nowhere are among them, and fail when read."""

    def refuse(error: OSError) -> None:
        raise CorpusError(
            f"{error.filename} was to be read: {cause(error)} Change its permissions, or name the files to read."
        )

    here = []
    for at, folders, names in os.walk(folder, onerror=refuse):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in names:
            path = Path(at, name)
            *_, before, last = "", "", *(suffix.lower() for suffix in path.suffixes)
            is_text = last in SUFFIXES or (before in SUFFIXES and last in _PACKED)
            is_device = path.exists() and not path.is_file()  # such as a pipe, which never ends
            if is_text and not is_device and not name.startswith("."):
                here.append(path)
    return here


def _matching(pattern: Path) -> list[Path]:
    """The files that match a pattern; folders that exist are taken by their names, brackets in them included."""
    folder, parts = Path(), deque(pattern.parts)
    while parts and (folder / parts[0]).is_dir():
        folder /= parts.popleft()
    matches = glob.glob(str(Path(*parts)), root_dir=folder, recursive=True)
    return [folder / match for match in matches if (folder / match).is_file()]


def _is_written_by_attnviz(file: Path) -> bool:
    """Whether a file is a part of a profile or an index, by its metadata, or holds a run's failures."""
    if file.suffix.lower() != ".parquet":
        return False
    from attnviz.corpus.files import DAMAGED, Parquet

    try:
        return Parquet(file).is_ours
    except DAMAGED:  # the reason is given when it is read
        return False


def read_entries(file: Path, column: str | None = None) -> Iterator[Entry | Failure]:
    """The texts of a file in order, blank ones left out, and what could not be read. Nothing that a file holds raises an error.

    Lines of a text file, rows of a table, objects of JSON lines, sentences of CoNLL-U.

    Args:
        column: of a table, or key of an object; "text" when None.
    """
    source, place = _unicode(os.fspath(file)), 0
    try:
        for place, row in _rows(file, column or COLUMN):
            if (entry := _read(source, place, row)) is not None:
                yield entry
    except CorpusError as error:
        yield Failure(source=source, place=place, reason=str(error))
    except Exception as error:  # noqa: BLE001 — the other files are read, whatever is in this one
        what = "From here on the file" if place else "The file"
        advice = (
            "Look whether it is there, and at its permissions."
            if isinstance(error, OSError)
            else "Write it anew."
        )
        yield Failure(source=source, place=place, reason=f"{what} could not be read: {cause(error)} {advice}")


def _read(source: str, place: int, row: "Callable[[], tuple[str, Labels | None]]") -> Entry | Failure | None:
    """The text of a row, None where it is blank; the reason for whatever goes wrong."""
    try:
        text, labels = row()
        if len(text) > LONGEST_TEXT:
            raise CorpusError(_too_long(f"{len(text):,}"))
        if _HALVES.search(text):
            raise CorpusError("The text holds half a character (a lone surrogate). Write it anew.")
        if "\0" in text:
            raise CorpusError("The text holds a NUL character. Delete it, or save the file as UTF-8.")
    except CorpusError as error:
        return Failure(source=source, place=place, reason=str(error))
    except Exception as error:  # noqa: BLE001 — the other rows are read, whatever is in this one
        return Failure(source=source, place=place, reason=f"This cannot be read: {cause(error)} Correct it.")
    return Entry(source=source, place=place, text=text, labels=labels) if text.strip() else None


def _rows(file: Path, column: str) -> Iterator[Row]:
    match file.suffix.lower():
        case ".csv" | ".tsv":
            return _table(file, column)
        case ".jsonl" | ".ndjson":
            return _objects(file, column)
        case ".parquet":
            return _parquet(file, column)
        case ".conllu":
            return _sentences(file)
        case _:
            return ((place, partial(_line, line)) for place, line in _decoded(file))


def columns(file: Path) -> tuple[str, ...]:
    """The columns of a table that may hold its texts, in order; none for a file that is no table.

    For JSON lines, the keys of the first object that hold a text; for Parquet, the columns of texts.

    Raises:
        CorpusError: it is no such table.
    """
    match file.suffix.lower():
        case ".csv" | ".tsv":
            header = next((cells for _, cells in _cells(file) if not isinstance(cells, CorpusError)), [])
            if len(header) == 1 and re.search(r"[;,\t|]", header[0]):
                raise CorpusError(f"The first line, {header[0][:200]!r}, names a single column. {_SEPARATED}")
            return tuple(name for name in header if name)
        case ".jsonl" | ".ndjson":
            for _, line in _decoded(file):
                try:
                    value = _object(line, "")
                except CorpusError:
                    continue
                return tuple(name for name, cell in value.items() if isinstance(cell, str))
        case ".parquet":
            schema = _parquet_schema(file)
            return tuple(cell.name for cell in schema if _is_text(cell.type))
    return ()


_SEPARATED = "Columns of .csv are separated by commas, those of .tsv by tabs: save it so."


def _unicode(text: str) -> str:
    """A text whose halves of characters are written out, for Parquet takes none."""
    return text.encode("utf-8", "backslashreplace").decode()


def _too_long(length: str) -> str:
    return f"The text has {length} characters; at most {LONGEST_TEXT:,} are read of one. Divide it."


def _decoded(file: Path) -> Iterator[tuple[int, str | CorpusError]]:
    """The numbers and lines of a file, line ends included; for a line that is too long or not in its encoding, the reason."""
    with file.open("rb") as opened:
        encoding = _encoding(opened)
        is_utf_8 = encoding.startswith("utf-8")
        errors = "surrogateescape" if is_utf_8 else "surrogatepass"
        lines = io.TextIOWrapper(opened, encoding, errors, newline="\n")
        number = 0
        while line := lines.readline(_LONGEST_LINE):
            number += 1
            if len(line) == _LONGEST_LINE and not line.endswith("\n"):
                length = len(line) + _skip_line(lines)
                yield number, CorpusError(_too_long(f"about {length:,}"))
            elif is_utf_8 and (half := _HALVES.search(line)):
                before = len(line[: half.start()].encode("utf-8", errors))
                byte = ord(half[0]) - 0xDC00
                reason = f"Byte {before + 1:,} of the line is 0x{byte:02X}, which is not UTF-8. Save the file as UTF-8."
                yield number, CorpusError(reason)
            else:
                yield number, line


def _encoding(opened: BinaryIO) -> str:
    """The encoding of a file of text, by its beginning."""
    start = opened.read(4096)
    opened.seek(0)
    for mark, encoding in _ENCODINGS.items():
        if start.startswith(mark):
            return encoding
    for beginning, kind in _KINDS.items():
        if re.match(beginning, start):
            raise CorpusError(f"This is {kind}. Unpack it, or save it as text.")
    if b"\0" in start and not _LINE_END.search(start):
        raise CorpusError(
            "The file is no text in UTF-8: it holds NUL bytes, as UTF-16 without a byte order mark does. Save it as UTF-8."
        )
    return "utf-8"


def _skip_line(lines: io.TextIOWrapper) -> int:
    """Reads to the end of a line; returns the number of characters."""
    length = 0
    while part := lines.readline(_LONGEST_LINE):
        length += len(part)
        if part.endswith("\n"):
            break
    return length


def _line(line: str | CorpusError) -> tuple[str, None]:
    if isinstance(line, CorpusError):
        raise line
    return line.rstrip("\r\n"), None


def _objects(file: Path, column: str) -> Iterator[Row]:
    for place, line in _decoded(file):
        if isinstance(line, CorpusError) or line.strip():
            yield place, partial(_of_object, line, column)


def _of_object(line: str | CorpusError, column: str) -> tuple[str, None]:
    value = _object(line, column)
    if column not in value:
        raise CorpusError(_no_column(column, list(value)))
    return _text(value[column], column, _JSON_KINDS.get(type(value[column]), "")), None


def _object(line: str | CorpusError, column: str) -> dict[str, Any]:
    """The object on a line of JSON; its integers become float, for Python reads none of more than 4,300 digits."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if sum(name == column for name, _ in pairs) > 1:
            raise CorpusError(f"The key {column!r} is there twice. Write it once.")
        return dict(pairs)

    try:
        value = json.loads(_line(line)[0], object_pairs_hook=once, parse_int=float)
    except CorpusError:
        raise
    except (ValueError, RecursionError) as error:
        raise CorpusError(f"The line is not JSON: {cause(error)} Write an object on each line.") from error
    if not isinstance(value, dict):
        kind = _JSON_KINDS.get(type(value), "null")
        raise CorpusError(f"The line is {kind}, not an object. Write an object on each line.")
    return value


def _text(value: object, column: str, kind: str) -> str:
    if value is None:
        return ""
    if isinstance(value, bytes):
        return value.decode()
    if not isinstance(value, str):
        raise CorpusError(f"The column {column!r} holds {kind} here, not a text. Name one that holds texts.")
    return value


def _no_column(column: str, names: Sequence[str]) -> str:
    """Why a column cannot be read that is not there once."""
    if column in names:
        return f"The column {column!r} was to be read; {names.count(column)} are called so. Give each a name of its own."
    here = ", ".join(names)[:200] or "none"
    return f"The column {column!r} was to be read; here are {here}. Name one that holds texts."


def _table(file: Path, column: str) -> Iterator[Row]:
    column, header = column.strip(), None
    for place, cells in _cells(file):
        if header is None and not isinstance(cells, CorpusError):
            header = cells
            continue
        if header is not None and header.count(column) != 1:
            hint = f" {_SEPARATED}" * (len(header) == 1 and bool(re.search(r"[;,\t|]", header[0])))
            yield place, partial(_line, CorpusError(_no_column(column, header) + hint))
            return
        yield place, partial(_cell, cells, header, column)


def _cell(cells: list[str] | CorpusError, header: list[str] | None, column: str) -> tuple[str, None]:
    if isinstance(cells, CorpusError):
        raise cells
    assert header is not None
    at = header.index(column)
    n_cell = len(cells) if any(cells[len(header) :]) or at >= len(cells) else len(header)
    if n_cell != len(header):
        raise CorpusError(
            f"The row has {n_cell} cells, the first line {len(header)}. Put a text that holds commas or tabs into quotation marks."
        )
    return cells[at], None


def _cells(file: Path) -> Iterator[tuple[int, list[str] | CorpusError]]:
    """The cells of each row of a table with the number of the line that it ends in, first the names of the columns.

    Quotation marks are those of RFC 4180. A row of .csv in which they do not close fails alone, with the line that it begins in; of .tsv,
    which has no quotation marks (https://www.iana.org/assignments/media-types/text/tab-separated-values), its line is then the row.
    """
    is_tsv = file.suffix.lower() == ".tsv"
    lines, again, n_cell = _decoded(file), deque[tuple[int, str | CorpusError]](), 0
    while (first := again.popleft() if again else next(lines, None)) is not None:
        place, line = first
        if isinstance(line, CorpusError):
            yield place, line
            continue
        if not line.strip():
            continue
        taken: list[tuple[int, str | CorpusError]] = []

        def row(line: str = line, taken: list[tuple[int, str | CorpusError]] = taken) -> Iterator[str]:
            yield line
            n_character = len(line)
            while n_character <= _LONGEST_LINE and (more := again.popleft() if again else next(lines, None)):
                taken.append(more)
                if isinstance(more[1], CorpusError):
                    return
                n_character += len(more[1])
                yield more[1]

        cells = _of_csv(row(), "\t" if is_tsv else ",")
        by_tabs = [len(str(more).split("\t")) == n_cell for _, more in taken]
        if isinstance(cells, CorpusError) or (taken and (len(cells) != n_cell or (is_tsv and any(by_tabs)))):
            again.extendleft(reversed(taken))
            if is_tsv:
                cells = line.rstrip("\r\n").split("\t")
            elif taken or not isinstance(cells, CorpusError):
                cells = CorpusError(
                    "A quotation mark opens in this row and does not close, so that it cannot be read. Close it, or double it."
                )
        elif taken:
            place = taken[-1][0]
        if n_cell == 0 and not isinstance(cells, CorpusError):
            cells = [name.strip() for name in cells]
            n_cell = len(cells)
        yield place, cells


def _of_csv(lines: Iterator[str], delimiter: str) -> list[str] | CorpusError:
    csv.field_size_limit(_LONGEST_LINE)
    try:
        return next(csv.reader(lines, delimiter=delimiter, strict=True))
    except csv.Error as error:
        return CorpusError(f"The row cannot be read: {cause(error)} Correct it.")


def _parquet(file: Path, column: str) -> Iterator[Row]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = _parquet_schema(file)
    if schema.names.count(column) != 1:
        raise CorpusError(_no_column(column, schema.names))
    kind = schema.field(column).type
    # as a dictionary, so that a text of many rows is in memory once
    with pq.ParquetFile(file, read_dictionary=[column] if _is_text(kind) else []) as opened:
        last = 0
        for group in range(opened.num_row_groups):
            place, last = last, last + opened.metadata.row_group(group).num_rows
            try:
                for batch in opened.iter_batches(batch_size=256, row_groups=[group], columns=[column]):
                    for value in batch.column(column):
                        place += 1
                        yield place, partial(_of_arrow, value, column, str(kind))
            except (pa.ArrowException, OSError) as error:
                reason = f"From here to row {last:,} the file cannot be read: {cause(error)} Write it anew."
                yield place + 1, partial(_line, CorpusError(reason))


def _parquet_schema(file: Path) -> Any:
    from attnviz.corpus.files import DAMAGED, Parquet

    try:
        return Parquet(file).schema
    except DAMAGED as error:
        raise CorpusError(
            f"This is no Parquet file that can be read: {cause(error)} Write it anew."
        ) from error


def _is_text(kind: Any) -> bool:
    """Whether a column of this Arrow type holds texts."""
    import pyarrow as pa

    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _of_arrow(value: Any, column: str, kind: str) -> tuple[str, None]:
    """The text of an Arrow scalar, which is not copied before its size is known; bytes are read as UTF-8."""
    value = value.value if value.is_valid and hasattr(value, "dictionary") else value
    if value is None or not value.is_valid:
        return "", None
    if not hasattr(value, "as_buffer"):  # neither text nor bytes
        return _text(value, column, kind), None
    size = value.as_buffer().size
    if size > _LONGEST_LINE:
        raise CorpusError(_too_long(f"about {size:,}"))
    return _text(value.as_py(), column, kind), None


def _sentences(file: Path) -> Iterator[Row]:
    failures: deque[Row] = deque()

    def readable() -> Iterator[str]:
        for place, line in _decoded(file):
            if isinstance(line, CorpusError):
                failures.append((place, partial(_line, line)))
                yield "\n"
            else:
                yield line

    for place, rows in sentence_rows(readable()):
        while failures:
            yield failures.popleft()
        yield place, partial(_sentence, rows)
    yield from failures


def _sentence(rows: list[list[str]]) -> tuple[str, Labels]:
    try:
        return read_sentence(rows)
    except ValueError as error:
        raise CorpusError(f"The sentence has no labels that can be read: {error}. Correct it.") from error
