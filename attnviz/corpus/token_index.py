"""An index of the tokens of many texts, which finds those most like a given vector, and what a head attends to there.

Vectors are compared by cosine: all of them, or along a graph if there are too many. docs/corpus.md describes the files.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from jaxtyping import Float, Int

from attnviz.arguments import typed
from attnviz.corpus.contexts import VECTORS, Vectors, group_of
from attnviz.corpus.files import DAMAGED, OfTexts, Parquet, check_version, of_texts
from attnviz.errors import CorpusError, SelectionError, cause
from attnviz.records import Kind

if TYPE_CHECKING:
    from usearch.index import Index

TOKENS, TEXTS = "tokens.parquet", "texts.parquet"
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


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TokenIndex(OfTexts):
    """The tokens of many texts, by their vectors in a layer."""

    kind: Kind
    """Kind of the layer's attention."""
    n_head: int
    recalls: Mapping[Vectors, float]
    """For vectors searched along a graph, the share of the ten nearest that it finds."""
    arrays: Mapping[tuple[Vectors, int], np.ndarray]
    """Vectors by kind and group, [token, d_vector], of length 1 in float16; on disk where the index is."""
    graphs: "Mapping[tuple[Vectors, int], Index]"
    """Graphs by kind and group, of vectors that are searched along one."""
    tokens: Parquet
    texts: Parquet

    @property
    def layer(self) -> int:
        """The layer of the vectors and heads."""
        return int(self.about["layer"])

    @property
    def vectors(self) -> tuple[Vectors, ...]:
        """What tokens can be compared by."""
        return tuple(kind for kind in VECTORS if kind in self.about["vectors"])

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
        self, vector: Float[np.ndarray, " d_vector"], kind: Vectors, head: int, n: int = N_NEAREST
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
            Parquet((folder / name).read_bytes() if in_memory else folder / name) for name in (TOKENS, TEXTS)
        )
        metadata = tokens.metadata
        check_version(metadata, path, "index")
        arrays, graphs = _vectors(folder, metadata, in_memory=in_memory)
        return TokenIndex(
            **of_texts(metadata),
            kind=metadata["kind"],
            n_head=metadata["n_head"],
            recalls=MappingProxyType(metadata["recalls"]),
            arrays=arrays,
            graphs=graphs,
            tokens=tokens,
            texts=texts,
        )
    except CorpusError:
        raise
    except DAMAGED as error:
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


Relation = Literal["itself", "previous", "next", "first", "token"]
"""Which token a head attends to: the same, the previous, the next, the first of the text, or a named one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attended:
    """What a head attends to most at some tokens."""

    relation: Relation
    token: str
    """The named token; empty for the other relations."""
    n: int
    """At how many of these tokens."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundFacts:
    """What the tokens that a search found have in common."""

    n: int
    n_same: int
    """How many are the token that was searched for."""
    other: tuple[str, int] | None
    """The most frequent other token and its count; None where there is none."""
    part: tuple[str, int] | None
    """The most frequent part of speech and its count; None where no token has one."""
    n_part: int
    """Tokens whose part of speech is known."""
    attended: Attended | None
    """What the head attends to most at most of the tokens; None where none was found."""
    lowest: float
    highest: float
    """Range of the similarities; 0 where none was found."""


def found_facts(token: str, nearest: Sequence[Nearest]) -> FoundFacts:
    """What the tokens that a search found have in common.

    Ties go to whichever comes first; of relations, in the order of `Relation`, but "token" before "first".

    Args:
        token: the label of the token that was searched for.
    """
    others = Counter(near.token for near in nearest if near.token != token)
    parts = Counter(near.part for near in nearest if near.part is not None)
    similarities = [near.similarity for near in nearest]
    return FoundFacts(
        n=len(nearest),
        n_same=sum(near.token == token for near in nearest),
        other=others.most_common(1)[0] if others else None,
        part=parts.most_common(1)[0] if parts else None,
        n_part=sum(parts.values()),
        attended=_attended(nearest),
        lowest=min(similarities, default=0.0),
        highest=max(similarities, default=0.0),
    )


def _attended(nearest: Sequence[Nearest]) -> Attended | None:
    counts: Counter[tuple[Relation, str]] = Counter()
    steps: dict[Relation, int] = {"itself": 0, "previous": -1, "next": 1}
    for relation, step in steps.items():
        counts[relation, ""] = sum(near.key == near.position + step for near in nearest)
    counts["first", ""] = sum(near.key == 0 for near in nearest)
    named = Counter(near.labels[near.key] for near in nearest)
    for label, n in named.items():
        counts["token", label] = n
    if not nearest:
        return None
    # a token that is always the first of its text, such as [CLS], is named
    order: dict[Relation, int] = {"itself": 0, "previous": 1, "next": 2, "token": 3, "first": 4}
    (most, token), n = max(counts.items(), key=lambda counted: (counted[1], -order[counted[0][0]]))
    return Attended(relation=most, token=token, n=n)
