"""A corpus through a model: Daft runs the model over a shard of texts at a time, in this process or on a Ray cluster.

The counts are written to disk after each shard, so that a run that was stopped or killed resumes there; memory holds
only one shard and the counts.
"""

import hashlib
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from attnviz.arguments import typed
from attnviz.corpus.columns import COLUMNS, MEASURED
from attnviz.corpus.disk import no_room_on
from attnviz.corpus.files import METADATA
from attnviz.corpus.labels import Labels, spacy_labels
from attnviz.corpus.measuring import Read, TextNumbers, measured
from attnviz.corpus.profile import Profile, read_profile
from attnviz.corpus.tally import N_SAMPLE, N_STRONGEST, Checks, Measured, Tally
from attnviz.corpus.texts import Entry, Failure, entries_from, find_files, read_entries
from attnviz.corpus.windows import windows
from attnviz.corpus.writing import write_profile
from attnviz.errors import AttnvizError, CorpusError
from attnviz.heads.head_statistics import statistics
from attnviz.model.batch import MOST_TEXTS, batches
from attnviz.records import Progress as Share
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
_N_PARTITION = 16
"""Parts of a shard on a cluster, each as long as a shard elsewhere and run by the next free worker."""
_FAILED, _FAILED_PARTS = "failed.parquet", "failed"
_FAILURES = pa.schema(
    [("source", pa.string()), ("place", pa.int64()), ("reason", pa.string())],
    metadata={METADATA: b"failures"},
)


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


@typed
def profile_corpus(
    given: Sequence[str | Path] | str | Path,
    model: str | None,
    out: str | Path,
    *,
    column: str | None = None,
    label: str | None = None,
    ray: str | None = None,
    progress: Callable[[Progress], None] = lambda _: None,
) -> Profile:
    """Measures every head of a model on the texts of some files, and writes the profile into a folder.

    A run that was stopped resumes when called again with the same arguments.

    Args:
        given: files, folders or patterns; see `attnviz.corpus.texts.find_files`.
        model: as `attnviz.load_model`.
        out: created if missing.
        column: of tables, the one with the texts; "text" when None.
        label: "spacy", or the name of a spaCy pipeline, to label texts that have no labels; None for those of CoNLL-U alone.
        ray: address of a Ray cluster; None for this process, unless the environment says ``DAFT_RUNNER=ray``.
        progress: called after each shard.

    Raises:
        ArgumentError: an argument of another type.
        CorpusError: no text can be read, the folder holds something else, no room is left, or Daft, Ray or spaCy is missing.
        ModelNotAvailableError, UnsupportedArchitectureError: as `attnviz.load_model`.
    """
    files, out = find_files(given), Path(out)
    label_texts = labeller(label)
    on_ray = ray is not None or os.environ.get("DAFT_RUNNER") == "ray"
    run = _runner(model, ray, n_part=_N_PARTITION if on_ray else 1)
    loaded = _loaded(model)  # after what is told at once if it is not installed
    n_all, digest = count_texts(files, column)
    about = about_run(loaded, digest, label)
    with no_room_on(out):
        out.mkdir(parents=True, exist_ok=True)
    if (done := read_profile(out, missing_ok=True)) is not None:
        if dict(done.about) != about:
            raise CorpusError(_other(out))
        return done
    tally = Tally.load(out) or Tally(about=about, n_head=_n_heads(loaded))
    if tally.about != about:
        raise CorpusError(_other(out))
    n_shard = N_SHARD * (_N_PARTITION if on_ray else 1)
    begun, n_before = time.monotonic(), tally.n_entry
    to_read = islice(entries_of(files, column), tally.n_entry, None)
    while shard := list(islice(to_read, n_shard)):
        failures = [entry for entry in shard if isinstance(entry, Failure)]
        texts = label_texts([entry for entry in shard if isinstance(entry, Entry)])
        failures += _take_in(tally, texts, run(texts, tally.n_entry))
        tally.n_entry += len(shard)
        tally.n_failed += len(failures)
        keep_failures(out, tally.n_entry, failures)
        tally.save(out)
        rate = (tally.n_entry - n_before) / max(time.monotonic() - begun, 1e-9)
        progress(Progress(n_done=tally.n_entry, n_all=n_all, n_failed=tally.n_failed, per_second=rate))
    join_failures(out)
    if tally.n_text == 0:
        tally.forget(out)
        forget_failures(out)
        raise nothing_read(n_all, out)
    write_profile(loaded, tally, out)
    forget_failures(out)
    return read_profile(out)


@typed
def profile_texts(
    model: "Model", entries: Sequence[str | Entry | Failure], *, progress: Share = lambda _: None
) -> tuple[Profile, list[Failure]]:
    """As `profile_corpus`, for texts in this process, without Daft or anything left on disk; and the failures.

    Args:
        entries: texts, or entries that also hold where a text comes from.
        progress: called with the share that is done, 0 to 1; it may raise to stop.

    Raises:
        ArgumentError: an argument of another type.
        CorpusError: no text can be read.
        ModelFailedError, OutOfMemoryError: as `Model.trace`.
    """
    texts = entries_from(entry for entry in entries if not isinstance(entry, Failure))
    failures = [entry for entry in entries if isinstance(entry, Failure)]
    tally = Tally(about=about_run(model, digest_of(texts), None), n_head=_n_heads(model))
    measurer = Measurer(model)
    n_again = min(len(texts), N_SAMPLE + N_STRONGEST * tally.n_head)  # read once more for the examples
    measuring = len(texts) / max(1, len(texts) + n_again)
    for start in range(0, len(texts), MOST_TEXTS):
        progress(measuring * start / len(texts))
        some = texts[start : start + MOST_TEXTS]
        labels = [None if entry.labels is None else entry.labels.written() for entry in some]
        results = measurer.measure(
            [item_of_part.text for item_of_part in some], labels, are_verified(len(some), start)
        )
        failures += _take_in(tally, some, results)
    tally.n_entry, tally.n_failed = len(entries), len(failures)
    if tally.n_text == 0:
        raise CorpusError(
            failures[0].reason
            if failures
            else "None of the texts holds anything that the model can read. Give it a sentence on a line of its own."
        )
    with tempfile.TemporaryDirectory() as folder:
        write_profile(
            model, tally, Path(folder), progress=progress_within(progress, measuring, 1 - measuring)
        )
        return read_profile(Path(folder)), failures


def _take_in(tally: Tally, texts: Sequence[Entry], results: "Sequence[Found]") -> list[Failure]:
    """Adds what was measured of some texts; returns the failures."""
    failures, taken = [], []
    for entry, result in zip(texts, results, strict=True):
        if isinstance(result, str):
            failures.append(Failure(source=entry.source, place=entry.place, reason=result))
        else:
            taken += result[0]
            tally.checks.add(result[1])
    tally.add(taken)
    return failures


def _n_heads(model: "Model") -> int:
    probe = model.probe()
    return sum(len(probe.heads(kind)) for kind in probe.kinds)


def about_run(model: "Model", digest: str, label: str | None) -> dict[str, Any]:
    """What a profile describes, in the form that JSON returns."""
    return {
        "texts": digest,
        "model": model.name,
        "revision": model.revision,
        "dtype": model.provenance.dtype,
        "versions": dict(model.provenance.versions),
        "weights": dict(model.weights_sha256),
        "labels": label,
    }


def _other(out: Path) -> str:
    return f"{out} holds the profile of other texts, another model or other versions. Name another folder with --out, or delete it."


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


Found = tuple[list[Measured], Checks] | str
"""What was measured of an entry's windows, or why it failed."""


class Reader:
    """What a model reads of a text of a corpus: all of it, or its windows."""

    def __init__(self, model: "Model") -> None:
        self._model = model
        self._limit = min(model.max_tokens or LONGEST_WINDOW, LONGEST_WINDOW)

    def windows(self, text: str, labels: Labels | None) -> list[tuple[str, Read]]:
        """The windows of a text with what the model reads of each; a labelled text is a single window.

        Raises:
            AttnvizError: as `Model.read`.
        """
        parts = [text] if labels is not None else windows(text, self._n_tokens, self._limit)
        return [(part, self._model.read(part, max_tokens=self._limit)) for part in parts]

    def _n_tokens(self, text: str) -> int:
        if len(text.encode()) + _N_ADDED <= self._limit:
            return 0  # no tokenizer makes more tokens than bytes
        try:
            return len(self._model.tokenize(text))
        except AttnvizError as error:
            return int(getattr(error, "length", self._limit + 1))


class Measurer:
    """Measures texts with a model, some at a time."""

    def __init__(self, model: "Model") -> None:
        self._model, self._reader = model, Reader(model)

    def measure(
        self, texts: Sequence[str], labels: Sequence[str | None], are_verified: Sequence[bool]
    ) -> list[Found]:
        """What was measured of each text, or why it failed."""
        results: list[Found] = [([], Checks()) for _ in texts]
        read: list[tuple[int, str, Labels | None, Read]] = []
        for number, (text, written) in enumerate(zip(texts, labels, strict=True)):
            known = None if written is None else Labels.read(written)
            try:
                read += [(number, part, known, given) for part, given in self._reader.windows(text, known)]
            except AttnvizError as error:
                results[number] = str(error)
        read = [row for row in read if not isinstance(results[row[0]], str)]
        for chosen in (True, False):
            some = [row for row in read if are_verified[row[0]] == chosen]
            for batch in batches([len(row[3][0]) for row in some]):
                self._measure_batch([some[row] for row in batch], results, is_verified=chosen)
        return results

    def _measure_batch(
        self,
        batch: Sequence[tuple[int, str, Labels | None, Read]],
        results: list[Found],
        *,
        is_verified: bool,
    ) -> None:
        try:
            numbers = measured(self._model, [row[3] for row in batch], COLUMNS, [row[2] for row in batch])
        except AttnvizError as error:
            if len(batch) > 1:  # one text failed: run each alone to see which
                for row in batch:
                    self._measure_batch([row], results, is_verified=is_verified)
            else:
                results[batch[0][0]] = str(error)
            return
        checks = verified(self._model, [row[3] for row in batch], numbers) if is_verified else Checks()
        for (number, text, labels, (tokens, _)), of_text in zip(batch, numbers, strict=True):
            of_entry = results[number]
            if not isinstance(of_entry, str):
                of_entry[0].append(Measured(text=text, labels=labels, n_token=len(tokens), numbers=of_text))
        first = results[batch[0][0]]
        if not isinstance(first, str):
            first[1].add(checks)


def verified(model: "Model", texts: Sequence[Read], numbers: Sequence[TextNumbers]) -> Checks:
    """The texts of a batch compared with the model's own attention, and their statistics with those of their traces."""
    from attnviz.model.verification import verify

    checks = Checks()
    for trace, of_text in zip(model.trace_texts(texts), numbers, strict=True):
        report = verify(model, trace)
        worst, row = 0.0, 0
        for kind in trace.kinds:
            queries, keys = trace.axes(kind)
            tables = statistics(trace, kind, queries, keys, names=MEASURED)
            heads = trace.heads(kind)
            for name, table in tables.items():
                expected = np.array([table[head] for head in heads])
                ours = of_text.numbers[row : row + len(heads), COLUMNS.index(name)]
                worst = max(worst, float(np.nanmax(np.abs(ours - expected), initial=0.0)))
            row += len(heads)
        checks.add(
            Checks(
                n_text=1,
                n_passed=int(report.passed),
                worst_error=float(report.max_abs_error),
                worst_difference=worst,
            )
        )
    return checks


@lru_cache(maxsize=1)
def _loaded(name: str | None) -> "Model":
    """The model, loaded once per process: Daft creates new workers for each shard."""
    from attnviz.model.loading import load_model

    return load_model(name)


def _runner(
    model: str | None, ray: str | None, *, n_part: int
) -> Callable[[Sequence[Entry], int], list[Found]]:
    """A function that measures texts by Daft, given them and the first one's place in the corpus."""
    try:
        import daft
    except ImportError as error:
        raise CorpusError(
            'Daft is needed for a corpus and is not installed. Run pip install "attnviz[corpus]".'
        ) from error
    if ray is not None:
        try:
            daft.set_runner_ray(ray)
        except ImportError as error:
            raise CorpusError(
                "Ray is needed for a cluster and is not installed. Run pip install ray."
            ) from error

    # Daft's own choice of processes would load the model once more in the middle of a run.
    @daft.cls(use_process=None if n_part > 1 else False, max_concurrency=None if n_part > 1 else 1)
    class OnDaft(Measurer):
        """The model in a worker of Daft."""

        def __init__(self, name: str | None) -> None:
            super().__init__(_loaded(name))

        @daft.method.batch(return_dtype=daft.DataType.python())
        def batch(self, texts: Any, labels: Any, are_verified: Any) -> Any:
            known = [labelled or None for labelled in labels.to_pylist()]
            results = self.measure(texts.to_pylist(), known, are_verified.to_pylist())
            return daft.Series.from_pylist(results, dtype=daft.DataType.python())

    measurer: Any = OnDaft(model)

    def run(entries: Sequence[Entry], first: int) -> list[Found]:
        if not entries:
            return []
        order = sorted(
            range(len(entries)), key=lambda at: len(entries[at].text)
        )  # batches of about one length
        labels = [entries[at].labels for at in order]
        chosen = are_verified(len(entries), first)
        table = daft.from_pydict(
            {
                "number": order,
                "text": [entries[at].text for at in order],
                "labels": ["" if label is None else label.written() for label in labels],
                "are_verified": [chosen[at] for at in order],
            }
        )
        if n_part > 1:
            table = table.into_partitions(n_part)
        results = table.select(
            "number", measurer.batch(table["text"], table["labels"], table["are_verified"]).alias("found")
        ).to_pydict()
        by_number = dict(zip(results["number"], results["found"], strict=True))
        return [by_number[at] for at in range(len(entries))]

    return run


def are_verified(n_text: int, first: int) -> list[bool]:
    """Which of some texts are verified, by their place in the corpus."""
    return [number % VERIFIED_EVERY < MOST_TEXTS for number in range(first, first + n_text)]


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
        bare = [entry for entry in entries if entry.labels is None]
        made = dict(zip(map(id, bare), spacy_labels(pipeline, [text.text for text in bare]), strict=True))
        return [
            Entry(
                source=entry.source,
                place=entry.place,
                text=entry.text,
                labels=made.get(id(entry), entry.labels),
            )
            for entry in entries
        ]

    return labelled


def keep_failures(out: Path, n_entry: int, failures: Sequence[Failure]) -> None:
    """Writes a shard's failures to its own file, so that running the shard again does not repeat them."""
    if not failures:
        return
    folder = out / _FAILED_PARTS
    with no_room_on(out):
        folder.mkdir(exist_ok=True)
        rows = [
            {"source": failure.source, "place": failure.place, "reason": failure.reason}
            for failure in failures
        ]
        pq.write_table(pa.Table.from_pylist(rows, schema=_FAILURES), folder / f"{n_entry:012d}.parquet")


def nothing_read(n_all: int, out: Path) -> CorpusError:
    """The error of a run none of whose texts could be read, with the first reason."""
    first = pq.read_table(out / _FAILED).slice(0, 1).to_pylist()
    why = f" The first is {first[0]['source']}, {first[0]['place']}: {first[0]['reason']}" if first else ""
    return CorpusError(
        f"None of the {n_all:,} texts could be read; {out / _FAILED} says why of each.{why or ' Name others.'}"
    )


def join_failures(out: Path) -> None:
    """Joins the failures of all shards into one file; those of the shards stay, for a run that is stopped before its end."""
    with no_room_on(out), pq.ParquetWriter(out / _FAILED, _FAILURES) as writer:
        for part in sorted((out / _FAILED_PARTS).glob("*.parquet")):
            writer.write_table(pq.read_table(part, schema=_FAILURES))


def forget_failures(out: Path) -> None:
    """Deletes the failures of single shards, once a run is complete."""
    shutil.rmtree(out / _FAILED_PARTS, ignore_errors=True)
