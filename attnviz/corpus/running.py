"""One run over many texts, whatever it measures: a shard at a time, so that a run that was stopped or killed goes on there.

A `Measurer` says what is measured of some texts, how that is added up, and what is written in the end. Memory holds one shard
and what the measurer counts.
"""

import hashlib
import json
import re
import shutil
import tempfile
import time
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np
import pyarrow as pa

from attnviz import __version__
from attnviz.corpus.files import SCHEMA, OfTexts, Parquet, no_room_on, replacing, write
from attnviz.corpus.labels import Labels, spacy_labels
from attnviz.corpus.measuring import Read
from attnviz.corpus.texts import Entry, Failure, entries_from, read_entries
from attnviz.errors import AttnvizError, CorpusError, SelectionError
from attnviz.model.batch import MOST_TEXTS, batches
from attnviz.model.tokenization import CHARACTER_LIMIT
from attnviz.records import Progress as Share
from attnviz.records import VerificationReport
from attnviz.records.record import progress_within

if TYPE_CHECKING:
    from attnviz.model.model import Model

N_SHARD = 1024
"""Texts between two writes of the counts."""
LONGEST_WINDOW = 512
"""Tokens of a text: weights grow with their square. A longer text is read in windows."""
_N_ADDED = 8
"""Most special tokens around a text."""
VERIFIED_EVERY = 100 * MOST_TEXTS
"""The first `attnviz.model.batch.MOST_TEXTS` of every so many texts run together and are verified like single texts."""
FAILED = "failed.parquet"
_FAILURES = pa.schema([("source", pa.string()), ("place", pa.int64()), ("reason", pa.string())])
_SENTENCE = re.compile(r".+?(?:[.!?…。！？]+[\"'”’»)\]]*(?:\s+|$)|\n+|$)", re.DOTALL)
_WORD = re.compile(r"\s*\S+\s*")
_STATE = "state.npz"
_OF_EARLIER = {"profile": "tally.npz", "index": "index.json"}
"""Where an earlier version kept how far a run was."""

T = TypeVar("T")
Made = TypeVar("Made", bound=OfTexts, covariant=True)


@dataclass(slots=True, kw_only=True)
class Checks:
    """Results of the texts that were verified."""

    n_text: int = 0
    n_passed: int = 0
    worst_error: float = 0.0
    """Largest difference of a weight from the model's own."""
    worst_difference: float = 0.0
    """Largest difference of what was measured from the text's own trace."""

    @classmethod
    def of(cls, report: VerificationReport, difference: float) -> "Checks":
        """Those of one text."""
        error = float(report.max_abs_error)
        return cls(n_text=1, n_passed=int(report.passed), worst_error=error, worst_difference=difference)

    def add(self, other: "Checks") -> None:
        """Adds the results of other texts."""
        self.n_text += other.n_text
        self.n_passed += other.n_passed
        self.worst_error = max(self.worst_error, other.worst_error)
        self.worst_difference = max(self.worst_difference, other.worst_difference)


@dataclass(kw_only=True)
class Counts:
    """What was counted of the first ``n_entry`` texts; a measurer's own counts are fields of a subclass."""

    about: dict[str, Any] = field(default_factory=dict)
    """What is measured; counts of something else are refused."""
    n_entry: int = 0
    """Texts taken from the files, whether read or failed."""
    n_text: int = 0
    """Texts that were read; a long one counts as several."""
    n_token: int = 0
    n_failed: int = 0
    checks: Checks = field(default_factory=Checks)

    def restore(self, saved: dict[str, Any]) -> None:
        """Takes over what was saved, in which the keys of mappings are texts and records are mappings."""
        vars(self).update({name: saved[name] for name in vars(self)})
        self.checks = Checks(**saved["checks"])

    def described(self) -> dict[str, Any]:
        """What a file that is made of them says of itself."""
        common = {of_counts.name: getattr(self, of_counts.name) for of_counts in fields(Counts)}
        checks = asdict(self.checks)
        return {"schema": SCHEMA, "written_by": f"attnviz {__version__}", **common, "checks": checks}


class Folder:
    """Where a run writes: its result, and in a folder of its own what it needs to go on."""

    def __init__(self, out: Path, name: str) -> None:
        self.out, self._earlier = out, out / _OF_EARLIER[name]
        self._unfinished = out / f"{name}-unfinished"

    def save(self, counts: Counts) -> None:
        """Writes the counts; the previous ones stay until the new ones are complete."""
        arrays: dict[str, np.ndarray] = {}

        def packed(value: Any) -> dict[str, Any]:
            if isinstance(value, np.ndarray):
                arrays[name := f"array {len(arrays)}"] = value
                return {"in arrays": name}
            return {of_value.name: getattr(value, of_value.name) for of_value in fields(value)}

        rest = json.dumps(vars(counts), default=packed).encode()
        self._make()
        with replacing(self._unfinished / _STATE) as part, part.open("wb") as opened:
            np.savez(opened, rest=np.frombuffer(rest, dtype=np.uint8), **arrays)  # type: ignore[arg-type]

    def restore(self, counts: Counts) -> bool:
        """Takes over the counts that were saved; returns whether there are any of what these are about.

        Raises:
            CorpusError: they are damaged, or another version wrote them.
        """
        path = self._unfinished / _STATE
        try:
            if self._earlier.exists():
                raise ValueError
            if not path.exists():
                self.forget()
                return True
            with path.open("rb") as opened, np.load(opened, allow_pickle=False) as arrays:

                def unpacked(found: dict[str, Any]) -> Any:
                    return arrays[found["in arrays"]] if found.keys() == {"in arrays"} else found

                saved = json.loads(bytes(arrays["rest"]), object_hook=unpacked)
                if saved["about"] != counts.about:
                    return False
                counts.restore(saved)
        except (OSError, EOFError, ValueError, KeyError, TypeError, zipfile.BadZipFile, zlib.error) as error:
            raise CorpusError(
                f"{self._earlier if self._earlier.exists() else path} is not what attnviz wrote there, or another version wrote it, so "
                "the run cannot go on. Delete it to begin anew."
            ) from error
        return True

    def keep(self, shard: int, name: str, rows: pa.Table) -> None:
        """Writes a part of a file, of the shard that begins with this text, which is written anew if the shard runs again."""
        self._make()
        write(self._unfinished / f"{shard:012d}-{name}", [rows], rows.schema, "a part")

    def join(self, name: str, schema: pa.Schema, about: Any, *, n_row: int | None = None) -> None:
        """Writes a file from its parts, which stay, for a run that is stopped before its end."""
        parts = sorted(self._unfinished.glob(f"*-{name}"))
        write(self.out / name, (Parquet(part).table() for part in parts), schema, about, n_row=n_row)

    def forget(self) -> None:
        """Deletes what is only needed to go on."""
        shutil.rmtree(self._unfinished, ignore_errors=True)

    def _make(self) -> None:
        with no_room_on(self.out):
            self._unfinished.mkdir(exist_ok=True)


class Measurer(Protocol[Made]):
    """What differs between runs: what is measured of texts, and what is made of it."""

    name: str
    """Of the run, as in "profile"."""
    others: str
    """What else the folder may hold, as in "profile of other texts"."""
    mark: str
    """The file that is written last, so that its presence marks a complete result."""
    about: dict[str, Any]
    """What identifies a run, beside its texts."""

    @property
    def counts(self) -> Counts:
        """What was measured so far, which is kept after each shard."""

    def measure(self, texts: Sequence[Entry], verify: Sequence[bool], folder: Folder) -> dict[int, str]:
        """Adds some texts to the counts; returns the numbers of those that failed, and why."""

    def write(self, folder: Folder, progress: Share) -> None:
        """Writes what was measured into a folder."""

    def read(self, out: Path) -> Made:
        """What was written there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far a run is."""

    n_done: int
    """Texts of the files, read or failed."""
    n_all: int
    n_failed: int
    per_second: float
    """Texts a second since this run began."""

    @property
    def seconds_left(self) -> float:
        """Seconds left at the rate so far."""
        return (self.n_all - self.n_done) / self.per_second if self.per_second > 0 else float("inf")


def is_verified(place: int) -> bool:
    """Whether a text is verified, by its place in the corpus."""
    return place % VERIFIED_EVERY < MOST_TEXTS


def run(
    measurer: Measurer[Made],
    files: Sequence[Path],
    out: Path,
    *,
    column: str | None,
    label_texts: Callable[[list[Entry]], list[Entry]],
    progress: Callable[[Progress], None],
    writing: Share = lambda _: None,
    n_part: int = 1,
) -> Made:
    """Measures the texts of some files and writes what is made of them into a folder, or reads it where it is there.

    Args:
        writing: called with the share that is written.
        n_part: shards that are one shard of this run.

    Raises:
        CorpusError: no text can be read, the folder holds something else, or no room is left.
    """
    n_all, digest = count_texts(files, column)
    counts, folder = measurer.counts, Folder(out, measurer.name)
    counts.about = {"texts": digest} | measurer.about
    with no_room_on(out):
        out.mkdir(parents=True, exist_ok=True)
    done = measurer.read(out) if (out / measurer.mark).exists() else None
    fits = folder.restore(counts) if done is None else dict(done.about) == counts.about
    if not fits:
        raise CorpusError(
            f"{out} holds the {measurer.others}, another model or other versions. Name another folder with --out, or delete it."
        )
    if done is not None:
        folder.forget()
        return done
    begun, n_before = time.monotonic(), counts.n_entry
    to_read = islice(entries_of(files, column), n_before, None)
    while shard := list(islice(to_read, n_part * N_SHARD)):
        failures = [entry for entry in shard if isinstance(entry, Failure)]
        texts = label_texts([entry for entry in shard if isinstance(entry, Entry)])
        failures += _measured(measurer, texts, counts.n_entry, is_verified, folder)
        rows = [{name: getattr(failure, name) for name in _FAILURES.names} for failure in failures]
        folder.keep(counts.n_entry, FAILED, pa.Table.from_pylist(rows, schema=_FAILURES))
        counts.n_entry += len(shard)
        counts.n_failed += len(failures)
        folder.save(counts)
        rate = (counts.n_entry - n_before) / max(time.monotonic() - begun, 1e-9)
        progress(Progress(n_done=counts.n_entry, n_all=n_all, n_failed=counts.n_failed, per_second=rate))
    folder.join(FAILED, _FAILURES, "failures")
    if counts.n_token == 0:
        folder.forget()
        why = " Name others."
        for first in Parquet(out / FAILED).table().slice(0, 1).to_pylist():
            why = f" The first is {first['source']}, {first['place']}: {first['reason']}"
        raise CorpusError(f"None of the {n_all:,} texts could be read; {out / FAILED} says why of each.{why}")
    measurer.write(folder, writing)
    folder.forget()
    return measurer.read(out)


def run_in_memory(
    measurer: Measurer[Made],
    entries: Sequence[str | Entry | Failure],
    *,
    progress: Share,
    measuring: float = 1.0,
    verify: Callable[[int], bool] = is_verified,
) -> tuple[Made, list[Failure]]:
    """As `run`, for texts in this process; nothing is left on disk. Returns the failures too.

    Args:
        progress: called with the share that is done, 0 to 1; it may raise to stop.
        measuring: the share of the time that measuring takes; the rest is writing.
        verify: whether a text is verified, by its place.
    """
    texts = entries_from(entry for entry in entries if not isinstance(entry, Failure))
    failures = [entry for entry in entries if isinstance(entry, Failure)]
    counts = measurer.counts
    counts.about = {"texts": digest_of(texts)} | measurer.about
    with tempfile.TemporaryDirectory() as out:
        folder = Folder(Path(out), measurer.name)
        for start in range(0, len(texts), MOST_TEXTS):
            progress(measuring * start / len(texts))
            some = texts[start : start + MOST_TEXTS]
            failures += _measured(measurer, some, start, verify, folder)
            counts.n_entry += len(some)
        counts.n_entry, counts.n_failed = len(entries), len(failures)
        if counts.n_token == 0:
            raise CorpusError(
                failures[0].reason
                if failures
                else "None of the texts holds anything that the model can read. Give it a sentence on a line of its own."
            )
        measurer.write(folder, progress_within(progress, measuring, 1 - measuring))
        return measurer.read(Path(out)), failures


def _measured(
    measurer: Measurer[Any], texts: Sequence[Entry], first: int, verify: Callable[[int], bool], folder: Folder
) -> list[Failure]:
    reasons = measurer.measure(texts, [verify(first + number) for number in range(len(texts))], folder)
    return [
        Failure(source=texts[number].source, place=texts[number].place, reason=reason)
        for number, reason in sorted(reasons.items())
    ]


def about_run(model: "Model", label: str | None) -> dict[str, Any]:
    """What a run with a model is about beside its texts, in the form that JSON returns."""
    return {
        "model": model.name,
        "revision": model.revision,
        "dtype": model.provenance.dtype,
        "versions": dict(model.provenance.versions),
        "weights": dict(model.weights_sha256),
        "labels": label,
    }


def entries_of(files: Sequence[Path], column: str | None) -> Iterator[Entry | Failure]:
    """The texts of some files in their order, and what could not be read."""
    for file in files:
        yield from read_entries(file, column)


def count_texts(files: Sequence[Path], column: str | None) -> tuple[int, str]:
    """How many texts there are, and a digest of them that does not depend on their order or their files."""
    n_all = 0

    def counted() -> Iterator[Entry]:
        nonlocal n_all
        for entry in entries_of(files, column):
            n_all += 1
            if isinstance(entry, Entry):
                yield entry

    digest = digest_of(counted())
    if n_all == 0:
        raise CorpusError(f"{', '.join(map(str, files[:3]))} hold no text. Name files that do.")
    return n_all, digest


def digest_of(entries: Iterable[Entry]) -> str:
    """The sum of the hashes of some texts, which does not depend on their order."""
    total = 0
    for entry in entries:
        labels = "" if entry.labels is None else entry.labels.written()
        hashed = hashlib.sha256(f"{entry.text}\0{labels}".encode())
        total = (total + int.from_bytes(hashed.digest(), "big")) % 2**256
    return f"{total:064x}"


def labeller(label: str | None) -> Callable[[list[Entry]], list[Entry]]:
    """A function that labels texts without labels."""
    if label is None:
        return lambda entries: entries
    name = "en_core_web_sm" if label == "spacy" else label
    try:
        import spacy

        pipeline = spacy.load(name)
    except (ImportError, OSError) as error:
        raise CorpusError(
            f"The spaCy pipeline {name} was to label the texts and cannot be loaded. Run pip install spacy, and python -m spacy "
            f"download {name}."
        ) from error

    def labelled(entries: list[Entry]) -> list[Entry]:
        made = spacy_labels(pipeline, [entry.text for entry in entries if entry.labels is None])
        return [replace(entry, labels=next(made)) if entry.labels is None else entry for entry in entries]

    return labelled


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """A text, or a part of a long one, as the model reads it."""

    number: int
    """Number of its text."""
    text: str
    labels: Labels | None
    read: Read


class Reader:
    """What a model reads of texts: each whole, or in windows, none of which ends inside a sentence."""

    def __init__(self, model: "Model") -> None:
        self._model = model
        self._limit = min(model.max_tokens or LONGEST_WINDOW, LONGEST_WINDOW)

    def batches(
        self,
        texts: Sequence[Entry],
        verify: Sequence[bool],
        compute: Callable[[Sequence[Window]], Sequence[T]],
        reasons: dict[int, str],
    ) -> Iterator[tuple[Sequence[Window], Sequence[T], bool]]:
        """What is computed of each batch, and whether it is to be verified; of a text that fails, its number and the reason are added.

        A text of which a window cannot be read fails as a whole.
        """
        read: list[Window] = []
        for number, entry in enumerate(texts):
            try:
                read += self.windows(number, entry)
            except AttnvizError as error:
                reasons[number] = str(error)
        for chosen in (True, False):
            some = [window for window in read if verify[window.number] == chosen]
            for batch in batches([len(window.read[0]) for window in some]):
                for ran, made in self._each([some[at] for at in batch], compute, reasons):
                    yield ran, made, chosen

    def _each(
        self,
        batch: Sequence[Window],
        compute: Callable[[Sequence[Window]], Sequence[T]],
        reasons: dict[int, str],
    ) -> Iterator[tuple[Sequence[Window], Sequence[T]]]:
        try:
            made = compute(batch)
        except SelectionError:  # about what was asked for, so every text would fail
            raise
        except AttnvizError as error:
            if len(batch) > 1:  # one text failed: run each alone to see which
                for window in batch:
                    yield from self._each([window], compute, reasons)
            else:
                reasons[batch[0].number] = str(error)
            return
        yield batch, made

    def windows(self, number: int, entry: Entry) -> list[Window]:
        """The windows of a text with this number; a labelled text is a single one.

        Raises:
            AttnvizError: as `Model.read`.
        """
        text, labels, limit = entry.text, entry.labels, self._limit
        parts = [text] if labels is not None else windows(text, self._n_tokens, limit)
        read = [self._model.read(part, max_tokens=limit) for part in parts]
        return [
            Window(number=number, text=part, labels=labels, read=given)
            for part, given in zip(parts, read, strict=True)
        ]

    def _n_tokens(self, text: str) -> int:
        if len(text.encode()) + _N_ADDED <= self._limit:
            return 0  # no tokenizer makes more tokens than bytes
        try:
            return len(self._model.tokenize(text))
        except AttnvizError as error:
            return int(getattr(error, "length", self._limit + 1))


def windows(text: str, n_tokens: Callable[[str], int], most_tokens: int) -> list[str]:
    """The windows of a text in its order; together they are the text but for space at their edges.

    Args:
        n_tokens: number of tokens of a text, special tokens included.
        most_tokens: of a window.

    >>> windows("One two. Three four? Five.", lambda text: len(text.split()), 3)
    ['One two.', 'Three four? Five.']
    >>> windows("One two. Three four? Five.", lambda text: len(text.split()), 2)
    ['One two.', 'Three four?', 'Five.']
    """
    if _fits(text, n_tokens, most_tokens):
        return [text]
    packed: list[str] = []
    for part in _parts(text, n_tokens, most_tokens):
        if packed and _fits(packed[-1] + part, n_tokens, most_tokens):
            packed[-1] += part
        else:
            packed.append(part)
    return [part.strip() for part in packed if part.strip()]


def _fits(text: str, n_tokens: Callable[[str], int], most_tokens: int) -> bool:
    return len(text) <= CHARACTER_LIMIT and n_tokens(text) <= most_tokens


def _parts(text: str, n_tokens: Callable[[str], int], most_tokens: int) -> list[str]:
    """The sentences; one that does not fit is replaced by its words, and such a word by its halves."""
    parts: list[str] = []
    for sentence in _SENTENCE.findall(text):
        if _fits(sentence, n_tokens, most_tokens):
            parts.append(sentence)
            continue
        for word in _WORD.findall(sentence):
            parts += _halves(word, n_tokens, most_tokens)
    return parts


def _halves(word: str, n_tokens: Callable[[str], int], most_tokens: int) -> list[str]:
    if len(word) < 2 or _fits(word, n_tokens, most_tokens):
        return [word]
    middle = len(word) // 2
    return _halves(word[:middle], n_tokens, most_tokens) + _halves(word[middle:], n_tokens, most_tokens)
