"""An index of the tokens of many texts, which finds those most like a given vector, and what a head attends to there.

Vectors are compared by cosine: all of them, or along a graph if there are too many. docs/corpus.md describes the files.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from jaxtyping import Float, Int

from attnviz.arguments import typed
from attnviz.corpus.contexts import VECTORS, Vectors, group_of
from attnviz.corpus.files import METADATA
from attnviz.errors import CorpusError, SelectionError, cause
from attnviz.records import Kind, Provenance, Record

if TYPE_CHECKING:
    from usearch.index import Index

TOKENS, TEXTS = "tokens.parquet", "texts.parquet"
SCHEMA = 1
"""Version of the files that is read; adding a column does not change it."""
N_NEAREST = 10
_MOST_NEAREST = 1000
"""Most neighbours to look at where the same text occurs many times."""
MOST_SCANNED = 200_000_000
"""Largest group of vectors, in bytes, that is compared in full; on two cores that takes up to 0.3 seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Nearest:
    """A token of the corpus, in its text."""

    similarity: float
    """Cosine of its vector and the given one, −1 to 1."""
    token: str
    text: str
    position: int
    part: str | None
    """Part of speech of its word, such as "NOUN"; None where the text has no labels."""
    labels: tuple[str, ...]
    """All tokens of its text."""
    key: int
    """Position of the token that gets the head's largest weight there."""
    weight: float


class Rows:
    """Rows of a Parquet file by number; only their row groups are read."""

    def __init__(self, source: Path | bytes) -> None:
        self._source = source
        self._file = pq.ParquetFile(source if isinstance(source, Path) else pa.BufferReader(source))
        metadata = self._file.metadata
        sizes = [metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)]
        self._starts = np.cumsum([0, *sizes])

    def __reduce__(self) -> tuple[type["Rows"], tuple[Path | bytes]]:
        """The pickled form, for another process."""
        return Rows, (self._source,)

    def __len__(self) -> int:
        return int(self._starts[-1])

    @property
    def n_bytes(self) -> int:
        """Bytes of the file where it is in memory."""
        return len(self._source) if isinstance(self._source, bytes) else 0

    @property
    def metadata(self) -> Any:
        """The file's metadata."""
        return json.loads(self._file.schema_arrow.metadata[METADATA])

    def take(self, numbers: Sequence[int]) -> list[dict[str, Any]]:
        """The rows of these numbers, in their order."""
        groups = np.searchsorted(self._starts, numbers, side="right") - 1
        read = {group: self._file.read_row_group(group) for group in np.unique(groups).tolist()}
        rows = []
        for number, group in zip(numbers, groups.tolist(), strict=True):
            rows += read[group].slice(int(number - self._starts[group]), 1).to_pylist()
        return rows


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TokenIndex(Record):
    """The tokens of many texts, by their vectors in a layer."""

    about: Mapping[str, Any]
    """The texts' digest, the model, its revision, the arithmetic, the versions, the SHA-256 of its weights, and what is indexed."""
    kind: Kind
    """Kind of the layer's attention."""
    n_head: int
    n_text: int
    """Texts that were read; a long one counts as several."""
    n_token: int
    n_failed: int
    n_verified: int
    """Texts whose batch was verified like single texts."""
    n_passed: int
    worst_error: float
    """Largest difference of a weight from the model's own, over the verified texts."""
    worst_difference: float
    """Largest difference from the text's own trace: of a weight, or of a vector as a share of its largest number."""
    recalls: Mapping[Vectors, float]
    """For vectors searched along a graph, the share of the ten nearest that it finds."""
    arrays: Mapping[tuple[Vectors, int], np.ndarray]
    """Vectors by kind and group, [token, d_vector], of length 1 in float16; on disk where the index is."""
    graphs: "Mapping[tuple[Vectors, int], Index]"
    """Graphs by kind and group, of vectors that are searched along one."""
    tokens: Rows
    texts: Rows

    @property
    def layer(self) -> int:
        """The layer of the vectors and heads."""
        return int(self.about["layer"])

    @property
    def vectors(self) -> tuple[Vectors, ...]:
        """What tokens can be compared by."""
        return tuple(kind for kind in VECTORS if kind in self.about["vectors"])

    @property
    def provenance(self) -> Provenance:
        """The model, revision and versions to cite with numbers of this index."""
        about = self.about
        return Provenance(
            model=about["model"], revision=about["revision"], dtype=about["dtype"], versions=about["versions"]
        )

    @property
    def n_bytes(self) -> int:
        """Bytes of memory, without what is on disk."""
        held = sum(array.nbytes for array in self.arrays.values() if not isinstance(array, np.memmap))
        return held + self.tokens.n_bytes + self.texts.n_bytes

    def nearest(
        self, vector: Float[np.ndarray, " d_vector"], kind: Vectors, head: int, n: int = N_NEAREST
    ) -> tuple[Int[np.ndarray, " token"], Float[np.ndarray, " token"]]:
        """Numbers of the tokens whose vectors have the largest cosine with ``vector``, largest first, and the cosines.

        Args:
            head: whose queries or keys are compared; ignored for hidden states.

        Raises:
            SelectionError: the index has no such vectors or head, or a vector of another length.
        """
        if kind not in self.vectors:
            raise SelectionError(
                f"Tokens were to be compared by {kind}; this index has {', '.join(self.vectors)}. Select one of these, or index {kind} too."
            )
        groups = [group for known, group in (*self.arrays, *self.graphs) if known == kind]
        place = kind, group_of(kind, head, n_group=len(groups), n_head=self.n_head)
        given = unit(vector[None])
        n = min(n, self.n_token)
        d_vector = self.arrays[place].shape[1] if place in self.arrays else self.graphs[place].ndim
        if given.shape[1] != d_vector:
            raise SelectionError(
                f"A vector of {given.shape[1]} numbers was given; those of this index have {d_vector}. Give one of the same model."
            )
        if place in self.graphs:
            matches = self.graphs[place].search(given[0], n)
            return matches.keys.astype(np.int64), 1 - matches.distances.astype(np.float64)
        return scan(self.arrays[place], given, n)

    def find(
        self,
        vector: Float[np.ndarray, " d_vector"],
        kind: Vectors,
        head: int,
        n: int = N_NEAREST,
    ) -> list[Nearest]:
        """As `nearest`, the tokens in their texts, with what the head attends to there; a token of a repeated text once."""
        n_seen = 2 * n
        while True:
            numbers, similarities = self.nearest(vector, kind, head, n_seen)
            kept: dict[tuple[str, int], Nearest] = {}
            for near in self._in_texts(numbers.tolist(), similarities.tolist(), head):
                kept.setdefault((near.text, near.position), near)
            if len(kept) >= n or n_seen >= min(self.n_token, _MOST_NEAREST):
                return list(kept.values())[:n]
            n_seen *= 4

    def _in_texts(self, numbers: list[int], similarities: list[float], head: int) -> list[Nearest]:
        rows = self.tokens.take(numbers)
        wanted = sorted({row["text"] for row in rows})
        texts = dict(zip(wanted, self.texts.take(wanted), strict=True))
        return [
            Nearest(
                similarity=min(1.0, similarity),
                token=row["token"],
                text=texts[row["text"]]["text"],
                position=row["position"],
                part=row["part"],
                labels=tuple(texts[row["text"]]["labels"]),
                key=row["keys"][head],
                weight=float(row["weights"][head]),
            )
            for row, similarity in zip(rows, similarities, strict=True)
        ]


def unit(vectors: Float[np.ndarray, "token d_vector"]) -> np.ndarray:
    """Vectors of length 1 in float16, which keeps their cosines to three digits; zeros stay zeros."""
    lengths = np.linalg.norm(vectors.astype(np.float64), axis=-1, keepdims=True)
    return (vectors / np.where(lengths > 0, lengths, 1)).astype(np.float16)


def scan(
    vectors: np.ndarray, given: np.ndarray, n: int
) -> tuple[Int[np.ndarray, " token"], Float[np.ndarray, " token"]]:
    """Numbers of the vectors with the largest cosine with ``given``, [1, d_vector], largest first, and the cosines.

    All are compared. Vectors are of float16 and have length 1, or 0.
    """
    from numkong import cdist

    similarities = 1 - np.asarray(cdist(given, vectors, metric="angular")).ravel()
    nearest = np.argpartition(-similarities, n - 1)[:n]
    order = nearest[np.lexsort((nearest, -similarities[nearest]))]
    return order, similarities[order]


def file_name(kind: Vectors, group: int, ending: str) -> str:
    """The file of a group of vectors: "f16" for an array, "usearch" for a graph."""
    return f"{kind}.{ending}" if kind == "hidden" else f"{kind}-{group}.{ending}"


@typed
def read_index(folder: str | Path, *, in_memory: bool = False) -> TokenIndex:
    """The index in a folder, whose vectors stay on disk.

    Args:
        in_memory: whether everything is read at once, for a folder that will be deleted.

    Raises:
        CorpusError: no index is there, one that this version cannot read, or a file of it is missing.
    """
    folder = Path(folder)
    path = folder / TOKENS
    if not path.exists():
        raise CorpusError(
            f"An index of tokens was to be read from {folder}; there is no {TOKENS}. Make one with attnviz corpus index."
        )
    try:
        tokens, texts = (
            Rows((folder / name).read_bytes() if in_memory else folder / name) for name in (TOKENS, TEXTS)
        )
        about = tokens.metadata
        if about["schema"] != SCHEMA:
            raise CorpusError(
                f"{path} has the columns of version {about['schema']}; this attnviz reads version {SCHEMA}. Make the index anew."
            )
        arrays, graphs = _vectors(folder, about, in_memory=in_memory)
        checks = about["checks"]
        return TokenIndex(
            about=MappingProxyType(about["about"]),
            kind=about["kind"],
            n_head=about["n_head"],
            n_text=about["n_text"],
            n_token=about["n_token"],
            n_failed=about["n_failed"],
            n_verified=checks["n_text"],
            n_passed=checks["n_passed"],
            worst_error=checks["worst_error"],
            worst_difference=checks["worst_difference"],
            recalls=MappingProxyType(about["recalls"]),
            arrays=arrays,
            graphs=graphs,
            tokens=tokens,
            texts=texts,
        )
    except CorpusError:
        raise
    except (pa.ArrowException, OSError, KeyError, TypeError, ValueError) as error:
        raise CorpusError(
            f"{folder} is not an index of tokens that attnviz wrote whole: {cause(error)} Make it anew with attnviz corpus index."
        ) from error


def _vectors(
    folder: Path, about: Mapping[str, Any], *, in_memory: bool
) -> "tuple[dict[tuple[Vectors, int], np.ndarray], dict[tuple[Vectors, int], Index]]":
    arrays, graphs = {}, {}
    for kind, (n_group, d_vector) in about["sizes"].items():
        for group in range(n_group):
            path, shape = folder / file_name(kind, group, "f16"), (about["n_token"], d_vector)
            if kind in about["recalls"]:
                graphs[kind, group] = open_graph(folder / file_name(kind, group, "usearch"), *shape)
            elif path.stat().st_size != 2 * shape[0] * shape[1]:
                raise ValueError(f"{path.name} has {path.stat().st_size:,} bytes")
            elif in_memory:
                arrays[kind, group] = np.fromfile(path, dtype=np.float16).reshape(shape)
            else:
                arrays[kind, group] = np.memmap(path, dtype=np.float16, mode="r", shape=shape)
    return arrays, graphs


def open_graph(path: Path, n_token: int, d_vector: int) -> "Index":
    """The graph in a file, which stays on disk.

    Raises:
        ValueError: it is damaged, or of other vectors.
    """
    from usearch.index import Index

    try:
        graph = Index.restore(path, view=True)
    except RuntimeError as error:
        raise ValueError(f"{path.name} cannot be read") from error
    if graph is None or (len(graph), graph.ndim) != (n_token, d_vector):
        raise ValueError(f"{path.name} is of other vectors")
    return graph
