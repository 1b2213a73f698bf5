"""Making an index of the tokens of many texts: texts in, vectors and two Parquet files on disk.

Making the index. Each shard is written to disk, so that a run that was stopped or killed resumes there. Memory holds
one batch of vectors and, in the end, a graph if comparing all vectors would take long.
"""

import errno
import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from attnviz import __version__
from attnviz.arguments import typed
from attnviz.corpus.contexts import VECTORS, Contexts, Vectors, contexts
from attnviz.corpus.disk import no_room_on
from attnviz.corpus.files import METADATA
from attnviz.corpus.labels import Labels
from attnviz.corpus.measuring import Read
from attnviz.corpus.pipeline import (
    N_SHARD,
    Progress,
    Reader,
    about_run,
    are_verified,
    count_texts,
    digest_of,
    entries_of,
    forget_failures,
    join_failures,
    keep_failures,
    labeller,
    nothing_read,
)
from attnviz.corpus.tally import Checks
from attnviz.corpus.texts import Entry, Failure, entries_from, find_files
from attnviz.corpus.token_index import (
    MOST_SCANNED,
    N_NEAREST,
    SCHEMA,
    TEXTS,
    TOKENS,
    TokenIndex,
    file_name,
    open_graph,
    read_index,
    scan,
    unit,
)
from attnviz.errors import AttnvizError, CorpusError, SelectionError
from attnviz.model.batch import batches
from attnviz.model.configuration import layer_count
from attnviz.records import check_index

if TYPE_CHECKING:
    from attnviz.model.model import Model

N_ROW = 4096
"""Rows of a row group, the least that is read for a token that was found."""
N_RECALL = 200
"""Tokens whose nearest ones are searched for both along a graph and among all."""
CONNECTIVITY, EXPANSION = 16, 128
"""Neighbours of a vector in a graph, and how many vectors are looked at when one is added (M and efConstruction of Malkov and
Yashunin 2018, arXiv:1603.09320)."""
_N_ADDED = 8192
"""Vectors that are added to a graph between two progress reports."""
_STATE, _PARTS = "index.json", "parts"
_TEXTS_SCHEMA = pa.schema(
    [
        ("source", pa.string()),
        ("place", pa.int64()),
        ("text", pa.string()),
        ("labels", pa.list_(pa.string())),
    ],
    metadata={METADATA: b"a part"},
)


def tokens_schema(n_head: int) -> pa.Schema:
    """Columns of tokens.parquet."""
    return pa.schema(
        [
            ("token", pa.string()),
            ("text", pa.int32()),
            ("position", pa.int32()),
            ("part", pa.string()),
            ("keys", pa.list_(pa.int32(), n_head)),
            ("weights", pa.list_(pa.float32(), n_head)),
        ],
        metadata={METADATA: b"a part"},
    )


@typed
def index_corpus(
    given: Sequence[str | Path] | str | Path,
    model: str | None,
    out: str | Path,
    *,
    layer: int,
    vectors: Sequence[Vectors] = VECTORS,
    column: str | None = None,
    label: str | None = None,
    progress: Callable[[Progress], None] = lambda _: None,
    building: Callable[[float], None] = lambda _: None,
) -> TokenIndex:
    """Indexes the tokens of the texts of some files by their vectors in a layer, and writes the index into a folder.

    A run that was stopped resumes when called again with the same arguments.

    Args:
        given: files, folders or patterns; see `attnviz.corpus.texts.find_files`.
        model: as `attnviz.load_model`.
        out: created if missing.
        layer: counted from 0.
        vectors: what tokens can be compared by.
        column: of tables, the one with the texts; "text" when None.
        label: "spacy", or the name of a spaCy pipeline, to tag texts that have no parts of speech; None for those of CoNLL-U alone.
        progress: called after each shard.
        building: called with the share of the graphs that is built, if there are enough tokens to need graphs.

    Raises:
        CorpusError: no text can be read, the folder holds another index, no room is left, or spaCy is missing.
        SelectionError: the model has no such layer, or there are no such vectors.
        ModelNotAvailableError, UnsupportedArchitectureError: as `attnviz.load_model`.
    """
    from attnviz.model.loading import load_model

    _check(vectors)
    files, out = find_files(given), Path(out)
    label_texts = labeller(label)
    loaded = load_model(model)
    check_index("layer", layer, layer_count(loaded.network.config, "encoder"), loaded.name)
    n_all, digest = count_texts(files, column)
    about = _about(loaded, digest, label, layer, vectors)
    with no_room_on(out):
        out.mkdir(parents=True, exist_ok=True)
    if (out / TOKENS).exists():
        done = read_index(out)
        if dict(done.about) != about:
            raise CorpusError(_other(out))
        return done
    making = _Making.load(out) or _Making(about=about)
    if making.about != about:
        raise CorpusError(_other(out))
    indexer = _Indexer(loaded, making, out)
    begun, n_before = time.monotonic(), making.n_entry
    to_read = islice(entries_of(files, column), making.n_entry, None)
    while shard := list(islice(to_read, N_SHARD)):
        texts = label_texts([entry for entry in shard if isinstance(entry, Entry)])
        failures = [entry for entry in shard if isinstance(entry, Failure)]
        failures += indexer.add(texts, are_verified(len(texts), making.n_entry))
        making.n_entry += len(shard)
        making.n_failed += len(failures)
        keep_failures(out, making.n_entry, failures)
        making.save(out)
        rate = (making.n_entry - n_before) / max(time.monotonic() - begun, 1e-9)
        progress(Progress(n_done=making.n_entry, n_all=n_all, n_failed=making.n_failed, per_second=rate))
    join_failures(out)
    if making.n_token == 0:
        making.forget(out)
        forget_failures(out)
        raise nothing_read(n_all, out)
    indexer.finish(building)
    forget_failures(out)
    return read_index(out)


@typed
def index_texts(
    model: "Model",
    texts: Sequence[str | Entry],
    layer: int,
    *,
    vectors: Sequence[Vectors] = VECTORS,
    progress: Callable[[float], None] = lambda _: None,
) -> TokenIndex:
    """As `index_corpus`, for texts in memory; nothing is left on disk.

    Args:
        progress: called with the share that is done, 0 to 1; it may raise to stop.

    Raises:
        CorpusError: no text can be read.
        SelectionError: the model has no such layer, or there are no such vectors.
    """
    _check(vectors)
    entries = entries_from(texts)
    making = _Making(about=_about(model, digest_of(entries), None, layer, vectors))
    with tempfile.TemporaryDirectory() as folder:
        indexer = _Indexer(model, making, Path(folder))
        for start in range(0, len(entries), _N_TOLD):
            progress(start / len(entries))
            some = entries[start : start + _N_TOLD]
            failures = indexer.add(some, [start + number < N_VERIFIED for number in range(len(some))])
            making.n_entry += len(some)
            making.n_failed += len(failures)
        if making.n_token == 0:
            raise CorpusError(
                "None of the texts holds anything that the model can read. Give it a sentence on a line of its own."
            )
        indexer.finish(lambda _: None)
        return read_index(Path(folder), in_memory=True)


_N_TOLD = 32
"""Texts between two progress reports of a run in memory."""
N_VERIFIED = 4
"""Texts of a run in memory that are verified: fewer than for files, since the user waits."""


def _check(vectors: Sequence[Vectors]) -> None:
    unknown = [kind for kind in vectors if kind not in VECTORS]
    if unknown or not vectors:
        raise SelectionError(
            f"Tokens were to be indexed by {', '.join(unknown) or 'nothing'}; they can be by {', '.join(VECTORS)}. Name some of these."
        )


def _about(
    model: "Model", digest: str, label: str | None, layer: int, vectors: Sequence[Vectors]
) -> dict[str, Any]:
    wanted = [kind for kind in VECTORS if kind in vectors]
    return about_run(model, digest, label) | {"layer": layer, "vectors": wanted}


def _other(out: Path) -> str:
    return (
        f"{out} holds the index of other texts, another layer, another model or other versions. Name another folder with --out, or "
        "delete it."
    )


@dataclass(slots=True, kw_only=True)
class _Making:
    """Progress of an index: what has been written so far."""

    about: dict[str, Any]
    n_entry: int = 0
    """Texts taken from the files, whether read or failed."""
    n_text: int = 0
    """Texts that were read; a long one counts as several."""
    n_token: int = 0
    n_failed: int = 0
    kind: str = ""
    n_head: int = 0
    sizes: dict[str, list[int]] = field(default_factory=dict)
    """By kind of vectors, the number of groups and the length of a vector."""
    checks: Checks = field(default_factory=Checks)

    def save(self, out: Path) -> None:
        written = out / f"{_STATE}.part"
        with no_room_on(out):
            written.write_text(json.dumps(asdict(self)))
            os.replace(written, out / _STATE)

    @classmethod
    def load(cls, out: Path) -> "_Making | None":
        """The progress saved in a folder; None where there is none.

        Raises:
            CorpusError: the file is damaged.
        """
        path = out / _STATE
        if not path.exists():
            return None
        try:
            read = json.loads(path.read_text())
            return cls(**read | {"checks": Checks(**read["checks"])})
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise CorpusError(
                f"{path} is not what attnviz wrote there, so the run cannot go on. Delete {out} to begin anew."
            ) from error

    def forget(self, out: Path) -> None:
        """Deletes what is in a folder for resuming alone."""
        shutil.rmtree(out / _PARTS, ignore_errors=True)
        (out / _STATE).unlink(missing_ok=True)

    def files(self) -> Iterator[tuple[Vectors, int, int]]:
        """Kind and group of every file of vectors, and the length of a vector."""
        for kind in VECTORS:
            n_group, d_vector = self.sizes.get(kind, (0, 0))
            for group in range(n_group):
                yield kind, group, d_vector


@dataclass(frozen=True, slots=True, kw_only=True)
class _Text:
    """A text, or a window of one, as it is read."""

    number: int
    """Number of its entry."""
    text: str
    labels: Labels | None
    read: Read


class _Indexer:
    """Writes a model's vectors of texts into the files of an index."""

    def __init__(self, model: "Model", making: _Making, out: Path) -> None:
        self._model, self._making, self._out = model, making, out
        self._layer: int = making.about["layer"]
        self._reader = Reader(model)

    def add(self, texts: Sequence[Entry], verify: Sequence[bool]) -> list[Failure]:
        """Adds the tokens of some texts; returns the failures."""
        reasons: dict[int, str] = {}
        read: list[_Text] = []
        for number, entry in enumerate(texts):
            try:
                read += [
                    _Text(number=number, text=part, labels=entry.labels, read=given)
                    for part, given in self._reader.windows(entry.text, entry.labels)
                ]
            except AttnvizError as error:
                reasons[number] = str(error)
        rows: list[dict[str, Any]] = []
        tokens: list[dict[str, Any]] = []
        with no_room_on(self._out), ExitStack() as stack:
            files: dict[tuple[Vectors, int], BinaryIO] = {}
            for is_verified in (True, False):
                some = [text for text in read if verify[text.number] == is_verified]
                for batch in batches([len(text.read[0]) for text in some]):
                    for text, made in self._contexts([some[number] for number in batch], reasons):
                        if is_verified:
                            self._making.checks.add(self._verified(text, made))
                        files = files or self._opened(made, stack)
                        entry = texts[text.number]
                        tokens.append(self._written(text, made, files))
                        rows.append(
                            {
                                "source": entry.source,
                                "place": entry.place,
                                "text": text.text,
                                "labels": text.read[0].labels,
                            }
                        )
        if rows:
            self._keep(rows, tokens)
        return [
            Failure(source=texts[number].source, place=texts[number].place, reason=reason)
            for number, reason in sorted(reasons.items())
        ]

    def _contexts(self, batch: Sequence[_Text], reasons: dict[int, str]) -> Iterator[tuple[_Text, Contexts]]:
        try:
            made = contexts(self._model, [text.read for text in batch], self._layer)
        except SelectionError:  # about the layer, so every text would fail
            raise
        except AttnvizError as error:
            if len(batch) > 1:  # one text failed: run each alone to see which
                for text in batch:
                    yield from self._contexts([text], reasons)
            else:
                reasons[batch[0].number] = str(error)
            return
        yield from zip(batch, made, strict=True)

    def _opened(self, made: Contexts, stack: ExitStack) -> dict[tuple[Vectors, int], BinaryIO]:
        """The files of vectors, cut after the last complete shard."""
        making = self._making
        if not making.sizes:
            making.kind, making.n_head = made.kind, len(made.query)
            for kind in making.about["vectors"]:
                n_group, _, d_vector = made.vectors(kind).shape
                making.sizes[kind] = [n_group, d_vector]
        files = {}
        for kind, group, d_vector in making.files():
            path, size = self._out / file_name(kind, group, "f16"), 2 * d_vector * making.n_token
            if size and (not path.exists() or path.stat().st_size < size):
                raise CorpusError(
                    f"{path} is shorter than what was written there, so the run cannot go on. Delete {self._out} to begin anew."
                )
            opened = stack.enter_context(path.open("r+b" if path.exists() else "wb"))
            opened.truncate(size)
            opened.seek(size)
            files[kind, group] = opened
        return files

    def _written(
        self, text: _Text, made: Contexts, files: dict[tuple[Vectors, int], BinaryIO]
    ) -> dict[str, Any]:
        """Writes the vectors of a text's own tokens; returns these tokens' columns."""
        tokens = text.read[0]
        own = np.flatnonzero(~tokens.is_added)
        for (kind, group), file in files.items():
            file.write(unit(made.vectors(kind)[group, own]).tobytes())
        parts: list[str | None] = [None] * len(own)
        if text.labels is not None:
            words = text.labels.word_of(tokens)[own]
            parts = [text.labels.parts[word] if word >= 0 else None for word in words.tolist()]
        return {
            "token": [tokens.labels[position] for position in own],
            "position": own.astype(np.int32),
            "part": parts,
            "keys": made.strongest[:, own].T.astype(np.int32),
            "weights": made.weight[:, own].T.astype(np.float32),
        }

    def _keep(self, rows: list[dict[str, Any]], tokens: list[dict[str, Any]]) -> None:
        """Writes a shard's rows to its own file, so that running the shard again does not repeat them."""
        making, schema = self._making, tokens_schema(self._making.n_head)
        lengths = [len(columns["token"]) for columns in tokens]
        numbers = np.repeat(np.arange(making.n_text, making.n_text + len(rows), dtype=np.int32), lengths)
        table = pa.Table.from_arrays(
            [
                pa.array([label for columns in tokens for label in columns["token"]], pa.string()),
                pa.array(numbers),
                pa.array(np.concatenate([columns["position"] for columns in tokens])),
                pa.array([part for columns in tokens for part in columns["part"]], pa.string()),
                *(
                    pa.FixedSizeListArray.from_arrays(
                        np.concatenate([columns[name] for columns in tokens]).ravel(), making.n_head
                    )
                    for name in ("keys", "weights")
                ),
            ],
            schema=schema,
        )
        folder = self._out / _PARTS
        with no_room_on(self._out):
            folder.mkdir(exist_ok=True)
            name = f"{making.n_entry:012d}"
            pq.write_table(table, folder / f"{name}-{TOKENS}", compression="zstd")
            pq.write_table(
                pa.Table.from_pylist(rows, schema=_TEXTS_SCHEMA),
                folder / f"{name}-{TEXTS}",
                compression="zstd",
            )
        making.n_text += len(rows)
        making.n_token += sum(lengths)

    def _verified(self, text: _Text, made: Contexts) -> Checks:
        """A text of a batch compared with the model's own attention, and with its own trace."""
        from attnviz.model.verification import verify

        trace = self._model.trace_tokens(*text.read)
        report = verify(self._model, trace)
        call = trace.attention(self._layer, made.kind)
        largest = trace.layer_weights(self._layer, made.kind).max(axis=-1)
        differences = [float(np.abs(made.weight - largest).max(initial=0.0))]
        for ours, alone in ((made.query, call.query), (made.key, call.key)):
            scale = float(np.abs(alone).max(initial=0.0)) or 1.0
            differences.append(float(np.abs(ours - alone).max(initial=0.0)) / scale)
        return Checks(
            n_text=1,
            n_passed=int(report.passed),
            worst_error=float(report.max_abs_error),
            worst_difference=max(differences),
        )

    def finish(self, building: Callable[[float], None]) -> None:
        """Joins what the shards wrote, builds the graphs, and deletes what is only for resuming."""
        making, out = self._making, self._out
        with no_room_on(out):
            self._join(TEXTS, _TEXTS_SCHEMA, {})
        recalls = self._graphs(building)
        about = {
            "schema": SCHEMA,
            "written_by": f"attnviz {__version__}",
            "recalls": recalls,
            **{name: value for name, value in asdict(making).items() if name != "n_entry"},
        }
        with no_room_on(out):
            self._join(TOKENS, tokens_schema(making.n_head), about)  # its presence marks a complete index
        for kind, group, _ in making.files():
            if kind in recalls:
                (out / file_name(kind, group, "f16")).unlink(missing_ok=True)
        making.forget(out)

    def _join(self, name: str, schema: pa.Schema, about: dict[str, Any]) -> None:
        if (self._out / name).exists() and not (self._out / _PARTS).exists():
            return
        written = self._out / f"{name}.part"
        with pq.ParquetWriter(
            written, schema.with_metadata({METADATA: json.dumps(about).encode()}), compression="zstd"
        ) as writer:
            for part in sorted((self._out / _PARTS).glob(f"*-{name}")):
                writer.write_table(pq.read_table(part, schema=schema), row_group_size=N_ROW)
        os.replace(written, self._out / name)

    def _graphs(self, building: Callable[[float], None]) -> dict[Vectors, float]:
        """Builds a graph of each group with too many vectors to compare all; returns the recall by kind of vectors."""
        making = self._making
        large = [file for file in making.files() if 2 * file[2] * making.n_token > MOST_SCANNED]
        recalls: dict[Vectors, list[float]] = {}
        for number, (kind, group, d_vector) in enumerate(large):
            vectors = np.memmap(
                self._out / file_name(kind, group, "f16"),
                dtype=np.float16,
                mode="r",
                shape=(making.n_token, d_vector),
            )
            path = self._out / file_name(kind, group, "usearch")

            def told(share: float, number: int = number) -> None:
                building((number + share) / len(large))

            with no_room_on(self._out):
                build_graph(vectors, path, told)
            recalls.setdefault(kind, []).append(recall_of(path, vectors))
        return {kind: float(np.mean(shares)) for kind, shares in recalls.items()}


def build_graph(vectors: np.ndarray, path: Path, progress: Callable[[float], None] = lambda _: None) -> None:
    """Writes a graph that finds the nearest vectors without comparing all; it holds the vectors too.

    Raises:
        OSError: no room on the disk.
        CorpusError: usearch cannot build it.
    """
    from usearch.index import Index

    graph = Index(
        ndim=vectors.shape[1],
        metric="cos",
        dtype="f16",
        connectivity=CONNECTIVITY,
        expansion_add=EXPANSION,
    )
    try:
        for start in range(0, len(vectors), _N_ADDED):
            progress(start / len(vectors))
            some = np.ascontiguousarray(vectors[start : start + _N_ADDED])
            graph.add(np.arange(start, start + len(some), dtype=np.uint64), some)
        check_room(graph.serialized_length, path.parent)
        written = path.with_name(f"{path.name}.part")
        graph.save(written)
        os.replace(written, path)
    except RuntimeError as error:
        raise CorpusError(
            f"{path} could not be built: {error}. Index fewer texts, or on a machine with more memory."
        ) from error


def check_room(n_byte: int, folder: Path) -> None:
    """Raises OSError if the disk has no room for so many bytes, which usearch's own errors do not say."""
    if shutil.disk_usage(folder).free < n_byte:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def recall_of(path: Path, vectors: np.ndarray) -> float:
    """The share of the nearest ten that the graph in a file finds, over some of its own vectors.

    Others as near as the tenth count too: of a text that occurs twice, chance decides which copy is among the ten.
    """
    graph = open_graph(path, *vectors.shape)
    n = min(N_NEAREST, len(vectors))
    n_found = 0
    places = np.unique(np.linspace(0, len(vectors) - 1, N_RECALL).astype(int))
    for place in places:
        given = np.ascontiguousarray(vectors[place : place + 1])
        _, exact = scan(vectors, given, n)
        matches = graph.search(given[0], n)
        n_found += int((1 - matches.distances >= exact[-1] - 1e-3).sum())
    return n_found / (n * len(places))
