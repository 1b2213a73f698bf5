"""A profile: what every head of a model does over a corpus, read from the folder that it was written into.

Nothing but pyarrow is needed to read one.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from jaxtyping import Bool, Float

from attnviz.arguments import typed
from attnviz.corpus.columns import DISTANCES, MEANS, POSITIONS
from attnviz.corpus.files import DAMAGED, OfTexts, Parquet, check_version, of_texts
from attnviz.errors import CorpusError, SelectionError
from attnviz.heads.probes import PROBES, HeadProbes
from attnviz.records import KINDS, Head, Kind

if TYPE_CHECKING:
    import pandas as pd  # type: ignore[import-untyped]

N_DECILE = 10
_T_OF_8 = 2.365
"""97.5% quantile of Student's t with 7 degrees of freedom, for the interval of a probe's mean over its eight texts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Relation:
    """How much of a grammatical relation a head finds, in one direction; see `attnviz.corpus.measuring.Words`."""

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


def _struct(record: type) -> pa.StructType:
    """A column of records of texts and numbers."""
    types: dict[Any, pa.DataType] = {str: pa.string(), int: pa.int64(), float: pa.float64()}
    return pa.struct([(of_record.name, types[of_record.type]) for of_record in fields(record)])


HEADS, EXAMPLES = "heads.parquet", "examples.parquet"
HEADS_SCHEMA = pa.schema(
    [
        ("kind", pa.string()),
        ("layer", pa.int32()),
        ("head", pa.int32()),
        ("texts", pa.int64()),
        *((name + end, pa.float64()) for name in (*MEANS, *PROBES) for end in ("", "_low", "_high")),
        ("copying", pa.float64()),
        ("distances", pa.list_(pa.float64())),
        ("positions", pa.list_(pa.float64())),
        ("relations", pa.list_(_struct(Relation))),
        ("token_pairs", pa.list_(_struct(Pair))),
        ("part_pairs", pa.list_(_struct(Pair))),
    ]
)
EXAMPLES_SCHEMA = pa.schema(
    [
        ("kind", pa.string()),
        ("layer", pa.int32()),
        ("head", pa.int32()),
        ("decile", pa.int8()),
        ("rank", pa.int8()),
        ("activation", pa.float64()),
        ("text", pa.string()),
        ("query", pa.int32()),
        ("query_label", pa.string()),
        ("labels", pa.list_(pa.string())),
        ("weights", pa.list_(pa.float32())),
    ]
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Profile(OfTexts):
    """What every head of a model does over a corpus."""

    n_sample: int
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

    def frame(self) -> "pd.DataFrame":
        """A row for each head, with all its numbers, as a DataFrame of pandas, which must be installed."""
        return self.table.to_pandas()

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


@typed
def read_profile(folder: str | Path) -> Profile:
    """The profile in a folder.

    Raises:
        CorpusError: no profile is there, or one that this version cannot read.
    """
    path = Path(folder) / HEADS
    if not path.exists():
        raise CorpusError(
            f"A profile was to be read from {folder}; there is no {HEADS}. Make one with attnviz corpus profile."
        )
    table, metadata = _table(path, HEADS_SCHEMA)
    examples, _ = _table(path.with_name(EXAMPLES), EXAMPLES_SCHEMA)
    places = tuple(zip(*(table[name].to_pylist() for name in ("kind", "layer", "head")), strict=True))
    if not places or len(set(places)) < len(places) or not all(_is_place(*place) for place in places):
        raise CorpusError(
            f"The rows of {path} are not one for each head of a model. Make the profile anew with attnviz corpus profile."
        )
    try:
        probes = metadata.get("probes")
        return Profile(
            **of_texts(metadata),
            n_sample=int(metadata["n_sample"]),
            edges=tuple(int(edge) for edge in metadata["distance_edges"]),
            probed=None if probes is None else (int(probes["n_token"]), int(probes["n_text"])),
            table=table,
            example_table=examples,
            places=places,
        )
    except DAMAGED as error:
        raise _not_ours(path) from error


def read_about(folder: Path) -> Mapping[str, Any]:
    """The `Profile.about` of the profile in a folder, without its numbers.

    Raises:
        CorpusError: as `read_profile`.
    """
    return MappingProxyType(_opened(folder / HEADS)[1]["about"])


def _opened(path: Path) -> tuple[Parquet, dict[str, Any]]:
    """A file of a profile, and its metadata."""
    try:
        opened = Parquet(path)
    except DAMAGED as error:
        raise _unreadable(path) from error
    try:
        metadata = opened.metadata
        about, _ = metadata["about"], metadata["schema"]
        is_ours = isinstance(about["model"], str)
        is_ours = is_ours and all(isinstance(about[name], dict) for name in ("weights", "versions"))
    except DAMAGED as error:
        raise _not_ours(path) from error
    check_version(metadata, path, "profile")
    if not is_ours:
        raise _not_ours(path)
    return opened, metadata


def _is_place(kind: object, layer: object, head: object) -> bool:
    return kind in KINDS and all(isinstance(value, int) and value >= 0 for value in (layer, head))


def _table(path: Path, columns: pa.Schema) -> tuple[pa.Table, dict[str, Any]]:
    opened, metadata = _opened(path)
    check_columns(opened.schema, columns, path)
    try:
        return opened.table(), metadata
    except DAMAGED as error:
        raise _unreadable(path) from error


def check_columns(there: pa.Schema, wanted: pa.Schema, path: Path) -> None:
    """Checks that a table has the columns that its file should have; others are ignored.

    Raises:
        CorpusError: a column is missing, or has another type.
    """
    for field in wanted:
        at = there.get_field_index(field.name)
        if at < 0 or there.field(at).type != field.type:
            has = "is missing" if at < 0 else f"holds {there.field(at).type}"
            raise CorpusError(
                f"The column {field.name} of {path} should hold {field.type} and {has}. Make the profile anew with attnviz corpus "
                "profile."
            )


def _unreadable(path: Path) -> CorpusError:
    return CorpusError(f"{path} cannot be read as Parquet. Make the profile anew.")


def _not_ours(path: Path) -> CorpusError:
    return CorpusError(f"{path} is not a profile that attnviz wrote. Make one with attnviz corpus profile.")


def probe_columns(probes: HeadProbes, head: Head) -> dict[str, float]:
    """The mean of each probe of a head, and both ends of its interval."""
    columns: dict[str, float] = {}
    for name in PROBES:
        mean, spread = (float(table[name][head]) for table in (probes.means, probes.spreads))
        half = _T_OF_8 * spread / np.sqrt(probes.n_text - 1)  # the spread is that of the texts themselves
        columns |= {name: mean, f"{name}_low": mean - half, f"{name}_high": mean + half}
    return columns


def probes_of(profile: Profile, kind: Kind) -> HeadProbes | None:
    """The probes of a kind of attention; None where the profile lacks them or their number of tokens."""
    if kind == "cross" or kind not in profile.kinds or profile.probed is None:
        return None
    n_token, n_text = profile.probed
    heads = profile.heads(kind)
    shape = 1 + max(head.layer for head in heads), 1 + max(head.head for head in heads)
    means, spreads = {}, {}
    for name in PROBES:
        mean, high = profile.numbers(name, kind), profile.numbers(f"{name}_high", kind)
        means[name], spreads[name] = (np.full(shape, np.nan, dtype=np.float32) for _ in range(2))
        for head, of_mean, of_high in zip(heads, mean, high, strict=True):
            means[name][head] = of_mean
            spreads[name][head] = (of_high - of_mean) * np.sqrt(n_text - 1) / _T_OF_8
    return HeadProbes(
        kind=kind, means=means, spreads=spreads, n_token=n_token, n_text=n_text, provenance=profile.provenance
    )
