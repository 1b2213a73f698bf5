"""A profile: what every head of a model does over a corpus, read from the folder that it was written into.

Nothing but pyarrow is needed to read one.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, overload

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from jaxtyping import Bool, Float

from attnviz.arguments import typed
from attnviz.corpus.columns import DISTANCES, POSITIONS
from attnviz.corpus.files import (
    EXAMPLES,
    EXAMPLES_SCHEMA,
    HEADS,
    HEADS_SCHEMA,
    METADATA,
    SCHEMA,
    check_columns,
)
from attnviz.errors import CorpusError, SelectionError
from attnviz.records import KINDS, Head, Kind, Provenance, Record

N_DECILE = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Relation:
    """How much of a grammatical relation a head finds, in one direction; see `attnviz.corpus.relations`."""

    relation: str
    direction: str
    accuracy: float
    low: float
    high: float
    words: int
    """Words that depend on another in this way."""
    offset: int
    """The most frequent distance to that other word; positive to the right."""
    offset_accuracy: float
    """The share that always taking the word at that distance finds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Two tokens, or two parts of speech, that a head links more than their frequencies predict."""

    query: str
    key: str
    mass: float
    """Sum of the weights over the sample."""
    expected: float
    """That sum if the head chose keys without regard to the query."""
    n: int
    """Number of queries; 0 for parts of speech."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """A text of the corpus, and the token at which a head adds most to the stream there."""

    decile: int | None
    """1 for the smallest tenth of the activations, 10 for the largest; None for one of the largest of all."""
    rank: int
    activation: float
    text: str
    query: int
    """Position of the token."""
    query_label: str
    labels: tuple[str, ...]
    """Labels of the keys."""
    weights: tuple[float, ...]
    """The token's weight on each key."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Profile(Record):
    """What every head of a model does over a corpus."""

    about: Mapping[str, Any]
    """The texts' digest, the model, its revision, the arithmetic, the versions, and the SHA-256 of its weights."""
    n_text: int
    """Texts that were measured; a long one counts as several."""
    n_token: int
    n_failed: int
    n_sample: int
    n_verified: int
    """Texts whose batch was verified like single texts."""
    n_passed: int
    worst_error: float
    """Largest difference of a weight from the model's own, over the verified texts."""
    worst_difference: float
    """Largest difference of a statistic from that of the text's own trace."""
    edges: tuple[int, ...]
    """Largest distances of the bins of a histogram; see `attnviz.corpus.columns.EDGES`."""
    probed: tuple[int, int] | None
    """Distinct tokens of each probe text, and the number of these texts; None where the profile does not say."""
    table: pa.Table
    """heads.parquet: a row for each head."""
    example_table: pa.Table
    """examples.parquet: a row for each example."""
    places: tuple[tuple[Kind, int, int], ...]
    """Kind, layer and head of each row of ``table``."""

    @property
    def provenance(self) -> Provenance:
        """The model, revision and versions to cite with numbers of this profile."""
        about = self.about
        return Provenance(
            model=about["model"], revision=about["revision"], dtype=about["dtype"], versions=about["versions"]
        )

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """The kinds of attention, in their order."""
        return tuple(dict.fromkeys(kind for kind, _, _ in self.places))

    def heads(self, kind: Kind | None = None) -> list[Head]:
        """The heads of a kind of attention; of the first kind when None."""
        wanted = kind or self.kinds[0]
        return [Head(layer, head) for of_kind, layer, head in self.places if of_kind == wanted]

    def numbers(self, name: str, kind: Kind | None = None) -> Float[np.ndarray, " head"]:
        """A number of each head, in the order of `heads`; NaN where it is not defined.

        Raises:
            SelectionError: no such column.
        """
        if name not in self.table.column_names or not pa.types.is_floating(
            self.table.schema.field(name).type
        ):
            raise SelectionError(
                f"The number {name!r} was asked for; this profile has no such column. Select another."
            )
        return np.asarray(self.table[name].to_numpy()[self._is_of(kind)], dtype=np.float64)

    def accuracies(
        self, relation: str, direction: str, kind: Kind | None = None
    ) -> tuple[Float[np.ndarray, " head"], Float[np.ndarray, " head"], Float[np.ndarray, " head"]]:
        """How much of a relation each head finds in a direction, and both ends of its interval.

        Raises:
            SelectionError: the texts had no such relation.
        """
        of_first = self.table["relations"][0].as_py() or []
        names = [(row["relation"], row["direction"]) for row in of_first]
        if (relation, direction) not in names:
            raise SelectionError(
                f"The relation {relation!r}, {direction}, was asked for; this profile has no such relation. Select another."
            )
        every = (
            self.table["relations"].combine_chunks().flatten()
        )  # heads have the same relations in one order
        at = names.index((relation, direction))
        mean, low, high = (
            every.field(name).to_numpy().reshape(len(self.table), len(names))[self._is_of(kind), at]
            for name in ("accuracy", "low", "high")
        )
        return mean, low, high

    def _is_of(self, kind: Kind | None) -> Bool[np.ndarray, " row"]:
        wanted = kind or self.kinds[0]
        return np.array([of_kind == wanted for of_kind, _, _ in self.places])

    def distances(self, head: Head, kind: Kind | None = None) -> Float[np.ndarray, " bin"]:
        """Share of a head's weight at each distance, negative ones first; see `attnviz.corpus.columns.DISTANCES`."""
        return np.array(self._row(head, kind)["distances"] or [None] * len(DISTANCES), dtype=np.float64)

    def positions(self, head: Head, kind: Kind | None = None) -> Float[np.ndarray, " position"]:
        """Mean weight on the key at each position, from the first on."""
        return np.array(self._row(head, kind)["positions"] or [None] * len(POSITIONS), dtype=np.float64)

    def relations(self, head: Head, kind: Kind | None = None) -> list[Relation]:
        """How much of each relation a head finds, frequent relations first; empty where the texts had no labels."""
        return [Relation(**row) for row in self._row(head, kind)["relations"] or ()]

    def token_pairs(self, head: Head, kind: Kind | None = None) -> list[Pair]:
        """The tokens that a head links beyond what their frequencies predict, largest excess first."""
        return [Pair(**row) for row in self._row(head, kind)["token_pairs"] or ()]

    def part_pairs(self, head: Head, kind: Kind | None = None) -> list[Pair]:
        """The parts of speech that a head links beyond what their frequencies predict; empty where the texts had no labels."""
        return [Pair(**row) for row in self._row(head, kind)["part_pairs"] or ()]

    def examples(self, head: Head, kind: Kind | None = None) -> list[Example]:
        """The examples of a head: the largest activations, then three of each decile from the lowest on."""
        wanted = {"kind": kind or self.kinds[0], "layer": head.layer, "head": head.head}
        is_of_head = np.ones(len(self.example_table), dtype=bool)
        for name, value in wanted.items():
            is_of_head &= self.example_table[name].to_numpy() == value
        rows = self.example_table.filter(pa.array(is_of_head))
        return [
            Example(
                **{
                    name: row[name]
                    for name in ("decile", "rank", "activation", "text", "query", "query_label")
                },
                labels=tuple(row["labels"]),
                weights=tuple(row["weights"]),
            )
            for row in rows.to_pylist()
        ]

    def _row(self, head: Head, kind: Kind | None) -> dict[str, Any]:
        wanted = (kind or self.kinds[0], head.layer, head.head)
        if wanted not in self.places:
            raise SelectionError(
                f"{head.title} was asked for; this profile has no such head. Select another."
            )
        row: dict[str, Any] = self.table.slice(self.places.index(wanted), 1).to_pylist()[0]
        return row


@overload
def read_profile(folder: str | Path) -> Profile: ...
@overload
def read_profile(folder: str | Path, *, missing_ok: bool) -> Profile | None: ...


@typed
def read_profile(folder: str | Path, *, missing_ok: bool = False) -> Profile | None:
    """The profile in a folder.

    Args:
        missing_ok: return None, not an error, where there is no heads.parquet.

    Raises:
        CorpusError: no profile is there, or one that this version cannot read.
    """
    folder = Path(folder)
    path = folder / HEADS
    if not path.exists():
        if missing_ok:
            return None
        raise CorpusError(
            f"A profile was to be read from {folder}; there is no {HEADS}. Make one with attnviz corpus profile."
        )
    table, examples = _table(path, HEADS_SCHEMA), _table(folder / EXAMPLES, EXAMPLES_SCHEMA)
    metadata = _metadata(table.schema, path)
    places = tuple(zip(*(table[name].to_pylist() for name in ("kind", "layer", "head")), strict=True))
    if not places or len(set(places)) < len(places) or not all(_is_place(*place) for place in places):
        raise CorpusError(
            f"The rows of {path} are not one for each head of a model. Make the profile anew with attnviz corpus profile."
        )
    try:
        checks, probes = metadata["checks"], metadata.get("probes")
        return Profile(
            about=MappingProxyType(metadata["about"]),
            n_text=int(metadata["n_text"]),
            n_token=int(metadata["n_token"]),
            n_failed=int(metadata["n_failed"]),
            n_sample=int(metadata["n_sample"]),
            n_verified=int(checks["n_text"]),
            n_passed=int(checks["n_passed"]),
            worst_error=float(checks["worst_error"]),
            worst_difference=float(checks["worst_difference"]),
            edges=tuple(int(sentence) for sentence in metadata["distance_edges"]),
            probed=None if probes is None else (int(probes["n_token"]), int(probes["n_text"])),
            table=table,
            example_table=examples,
            places=places,
        )
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise _not_ours(path) from error


def read_about(folder: Path) -> Mapping[str, Any]:
    """The `Profile.about` of the profile in a folder, without its numbers.

    Raises:
        CorpusError: as `read_profile`.
    """
    path = folder / HEADS
    try:
        return MappingProxyType(_metadata(pq.read_schema(path), path)["about"])
    except (pa.ArrowException, OSError) as error:
        raise _unreadable(path) from error


def _metadata(schema: pa.Schema, path: Path) -> dict[str, Any]:
    """The metadata of heads.parquet."""
    try:
        metadata: dict[str, Any] = json.loads(schema.metadata[METADATA])
        version, about = metadata["schema"], metadata["about"]
        is_known = isinstance(about["model"], str) and all(
            isinstance(about[name], dict) for name in ("weights", "versions")
        )
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise _not_ours(path) from error
    if version != SCHEMA:
        raise CorpusError(
            f"{path} has the columns of version {version}; this attnviz reads version {SCHEMA}. Make the profile anew."
        )
    if not is_known:
        raise _not_ours(path)
    return metadata


def _is_place(kind: object, layer: object, head: object) -> bool:
    return kind in KINDS and all(isinstance(value, int) and value >= 0 for value in (layer, head))


def _table(path: Path, columns: pa.Schema) -> pa.Table:
    try:
        table = pq.read_table(path)
    except (pa.ArrowException, OSError) as error:
        raise _unreadable(path) from error
    if METADATA in (table.schema.metadata or {}):
        _metadata(
            table.schema, path
        )  # a profile of another version is reported as such, not as lacking columns
        check_columns(table.schema, columns, path)
        return table
    raise _not_ours(path)


def _unreadable(path: Path) -> CorpusError:
    return CorpusError(f"{path} cannot be read as Parquet. Make the profile anew.")


def _not_ours(path: Path) -> CorpusError:
    return CorpusError(f"{path} is not a profile that attnviz wrote. Make one with attnviz corpus profile.")
