"""Making an index of the tokens of many texts: texts in, vectors and two Parquet files on disk.

Memory holds one batch of vectors and, in the end, a graph if comparing all vectors would take long.
"""

import errno
import os
import shutil
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
import pyarrow as pa

from attnviz.arguments import typed
from attnviz.corpus.contexts import VECTORS, Contexts, Vectors, contexts
from attnviz.corpus.files import no_room_on, replacing
from attnviz.corpus.running import (
    Checks,
    Counts,
    Folder,
    Progress,
    Reader,
    Window,
    about_run,
    labeller,
    run,
    run_in_memory,
)
from attnviz.corpus.texts import Entry, find_files
from attnviz.corpus.token_index import (
    MOST_SCANNED,
    N_NEAREST,
    TEXTS,
    TOKENS,
    TokenIndex,
    file_name,
    open_graph,
    read_index,
    scan,
    unit,
)
from attnviz.errors import CorpusError, SelectionError
from attnviz.model.configuration import layer_count
from attnviz.records import check_index
from attnviz.records.record import progress_within

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
N_VERIFIED = 4
"""Texts of a run in memory that are verified: fewer than for files, since the user waits."""
_TEXTS_SCHEMA = pa.schema(
    [("source", pa.string()), ("place", pa.int64()), ("text", pa.string()), ("labels", pa.list_(pa.string()))]
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
        ]
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
    files, label_texts = find_files(given), labeller(label)
    return run(
        _OfTokens(load_model(model), label, layer, vectors),
        files,
        Path(out),
        column=column,
        label_texts=label_texts,
        progress=progress,
        writing=building,
    )


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
    measurer = _OfTokens(model, None, layer, vectors, in_memory=True)
    return run_in_memory(measurer, texts, progress=progress, verify=lambda place: place < N_VERIFIED)[0]


def _check(vectors: Sequence[Vectors]) -> None:
    unknown = [kind for kind in vectors if kind not in VECTORS]
    if unknown or not vectors:
        raise SelectionError(
            f"Tokens were to be indexed by {', '.join(unknown) or 'nothing'}; they can be by {', '.join(VECTORS)}. Name some of these."
        )


@dataclass(kw_only=True)
class _Indexed(Counts):
    """What has been indexed of the texts of a corpus."""

    kind: str = ""
    n_head: int = 0
    sizes: dict[str, list[int]] = field(default_factory=dict)
    """By kind of vectors, the number of groups and the length of a vector."""

    def files(self) -> list[tuple[Vectors, int, int]]:
        """Kind and group of every file of vectors, and the length of a vector."""
        known = [kind for kind in VECTORS if kind in self.sizes]
        return [(kind, group, self.sizes[kind][1]) for kind in known for group in range(self.sizes[kind][0])]


class _OfTokens:
    """A measurer of the tokens of texts, whose vectors in a layer it writes into files."""

    name, others, mark = "index", "index of other texts, another layer", TOKENS

    def __init__(
        self,
        model: "Model",
        label: str | None,
        layer: int,
        vectors: Sequence[Vectors],
        *,
        in_memory: bool = False,
    ) -> None:
        check_index("layer", layer, layer_count(model.network.config, "encoder"), model.name)
        wanted = [kind for kind in VECTORS if kind in vectors]
        self.about = about_run(model, label) | {"layer": layer, "vectors": wanted}
        self.counts = _Indexed()
        self._model, self._reader, self._layer, self._in_memory = model, Reader(model), layer, in_memory

    def measure(self, texts: Sequence[Entry], verify: Sequence[bool], folder: Folder) -> dict[int, str]:
        """Writes the vectors of the texts' own tokens, and the tokens of this shard."""
        reasons: dict[int, str] = {}
        rows: list[dict[str, Any]] = []
        tokens: list[dict[str, Any]] = []
        with no_room_on(folder.out), ExitStack() as stack:
            files: dict[tuple[Vectors, int], BinaryIO] = {}

            def made(batch: Sequence[Window]) -> list[Contexts]:
                return contexts(self._model, [text.read for text in batch], self._layer)

            for batch, each, is_verified in self._reader.batches(texts, verify, made, reasons):
                for text, context in zip(batch, each, strict=True):
                    if is_verified:
                        self.counts.checks.add(self._verified(text, context))
                    files = files or self._opened(context, folder.out, stack)
                    entry, labels = texts[text.number], text.read[0].labels
                    rows.append(
                        {"source": entry.source, "place": entry.place, "text": text.text, "labels": labels}
                    )
                    tokens.append(_written(text, context, files))
        if rows:
            self._keep(rows, tokens, folder)
        return reasons

    def _opened(self, made: Contexts, out: Path, stack: ExitStack) -> dict[tuple[Vectors, int], BinaryIO]:
        """The files of vectors, cut after the last complete shard."""
        counts = self.counts
        if not counts.sizes:
            counts.kind, counts.n_head = made.kind, len(made.query)
            for kind in self.about["vectors"]:
                n_group, _, d_vector = made.vectors(kind).shape
                counts.sizes[kind] = [n_group, d_vector]
        files = {}
        for kind, group, d_vector in counts.files():
            path, size = out / file_name(kind, group, "f16"), 2 * d_vector * counts.n_token
            if size and (not path.exists() or path.stat().st_size < size):
                raise CorpusError(
                    f"{path} is shorter than what was written there, so the run cannot go on. Delete {out} to begin anew."
                )
            opened = stack.enter_context(path.open("r+b" if path.exists() else "wb"))
            opened.truncate(size)
            opened.seek(size)
            files[kind, group] = opened
        return files

    def _keep(self, rows: list[dict[str, Any]], tokens: list[dict[str, Any]], folder: Folder) -> None:
        counts = self.counts
        lengths = [len(columns["token"]) for columns in tokens]
        numbers = np.arange(counts.n_text, counts.n_text + len(rows), dtype=np.int32)

        def joined(name: str) -> np.ndarray:
            return np.concatenate([columns[name] for columns in tokens])

        arrays = [
            pa.array([label for columns in tokens for label in columns["token"]], pa.string()),
            pa.array(np.repeat(numbers, lengths)),
            pa.array(joined("position")),
            pa.array([part for columns in tokens for part in columns["part"]], pa.string()),
            *(
                pa.FixedSizeListArray.from_arrays(joined(name).ravel(), counts.n_head)
                for name in ("keys", "weights")
            ),
        ]
        table = pa.Table.from_arrays(arrays, schema=tokens_schema(counts.n_head))
        folder.keep(counts.n_entry, TOKENS, table)
        folder.keep(counts.n_entry, TEXTS, pa.Table.from_pylist(rows, schema=_TEXTS_SCHEMA))
        counts.n_text += len(rows)
        counts.n_token += sum(lengths)

    def _verified(self, text: Window, made: Contexts) -> Checks:
        """A text of a batch compared with the model's own attention, and with its own trace."""
        from attnviz.model.verification import verify

        trace = self._model.trace_tokens(*text.read)
        call = trace.attention(self._layer, made.kind)
        largest = np.concatenate(
            [weights.max(axis=-1) for _, weights in trace.blocks(self._layer, made.kind)], axis=1
        )
        differences = [float(np.abs(made.weight - largest).max(initial=0.0))]
        for ours, alone in ((made.query, call.query), (made.key, call.key)):
            scale = float(np.abs(alone).max(initial=0.0)) or 1.0
            differences.append(float(np.abs(ours - alone).max(initial=0.0)) / scale)
        return Checks.of(verify(self._model, trace), max(differences))

    def write(self, folder: Folder, progress: Callable[[float], None]) -> None:
        """Joins what the shards wrote, and builds the graphs."""
        counts, out = self.counts, folder.out
        folder.join(TEXTS, _TEXTS_SCHEMA, {}, n_row=N_ROW)
        recalls = self._graphs(out, progress)
        own = {"recalls": recalls, "kind": counts.kind, "n_head": counts.n_head, "sizes": counts.sizes}
        folder.join(TOKENS, tokens_schema(counts.n_head), counts.described() | own, n_row=N_ROW)
        for kind, group, _ in counts.files():
            if kind in recalls:
                (out / file_name(kind, group, "f16")).unlink(missing_ok=True)

    def _graphs(self, out: Path, building: Callable[[float], None]) -> dict[Vectors, float]:
        """Builds a graph of each group with too many vectors to compare all; returns the recall by kind of vectors."""
        n_token = self.counts.n_token
        large = [file for file in self.counts.files() if 2 * file[2] * n_token > MOST_SCANNED]
        recalls: dict[Vectors, list[float]] = {}
        for number, (kind, group, d_vector) in enumerate(large):
            path = out / file_name(kind, group, "f16")
            vectors = np.memmap(path, dtype=np.float16, mode="r", shape=(n_token, d_vector))
            graph = out / file_name(kind, group, "usearch")
            with no_room_on(out):
                build_graph(vectors, graph, progress_within(building, number / len(large), 1 / len(large)))
            recalls.setdefault(kind, []).append(recall_of(graph, vectors))
        return {kind: float(np.mean(shares)) for kind, shares in recalls.items()}

    def read(self, out: Path) -> TokenIndex:
        """The index there."""
        return read_index(out, in_memory=self._in_memory)


def _written(text: Window, made: Contexts, files: dict[tuple[Vectors, int], BinaryIO]) -> dict[str, Any]:
    """Writes the vectors of a text's own tokens; returns these tokens' columns."""
    tokens, labels = text.read[0], text.labels
    own = np.flatnonzero(~tokens.is_added)
    for (kind, group), file in files.items():
        file.write(unit(made.vectors(kind)[group, own]).tobytes())
    words = np.full(len(own), -1) if labels is None else labels.word_of(tokens)[own]
    return {
        "token": [tokens.labels[position] for position in own],
        "position": own.astype(np.int32),
        "part": [labels.parts[word] if labels is not None and word >= 0 else None for word in words.tolist()],
        "keys": made.strongest[:, own].T.astype(np.int32),
        "weights": made.weight[:, own].T.astype(np.float32),
    }


def build_graph(vectors: np.ndarray, path: Path, progress: Callable[[float], None] = lambda _: None) -> None:
    """Writes a graph that finds the nearest vectors without comparing all; it holds the vectors too.

    Raises:
        OSError: no room on the disk.
        CorpusError: usearch cannot build it.
    """
    from usearch.index import Index

    graph = Index(
        ndim=vectors.shape[1], metric="cos", dtype="f16", connectivity=CONNECTIVITY, expansion_add=EXPANSION
    )
    try:
        for start in range(0, len(vectors), _N_ADDED):
            progress(start / len(vectors))
            some = np.ascontiguousarray(vectors[start : start + _N_ADDED])
            graph.add(np.arange(start, start + len(some), dtype=np.uint64), some)
        check_room(graph.serialized_length, path.parent)
        with replacing(path) as part:
            graph.save(part)
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
