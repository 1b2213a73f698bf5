"""What attnviz writes of many texts: Parquet files that say what they are, each there whole or not at all."""

import errno
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from attnviz.errors import CorpusError, cause
from attnviz.records import Provenance, Record

METADATA = b"attnviz"
"""Key of the metadata of each file, JSON."""
SCHEMA = 1
"""Version of the columns that is read; adding a column does not change it."""
DAMAGED = (pa.ArrowException, OSError, AttributeError, KeyError, TypeError, ValueError, RecursionError)
"""What reading a file raises that is not as attnviz wrote it."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OfTexts(Record):
    """What a run over many texts made, as far as it does not matter what."""

    about: Mapping[str, Any]
    """The texts' digest, the model, its revision, the arithmetic, the versions, the SHA-256 of its weights, and what was asked for."""
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
    """Largest difference from the text's own trace: of a statistic, of a weight, or of a vector as a share of its largest number."""

    @property
    def provenance(self) -> Provenance:
        """The model, revision and versions to cite with numbers of it."""
        names = ("model", "revision", "dtype", "versions")
        return Provenance(**{name: self.about[name] for name in names})


def of_texts(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of `OfTexts` from a file's metadata."""
    checks = metadata["checks"]
    return {
        "about": MappingProxyType(metadata["about"]),
        **{name: int(metadata[name]) for name in ("n_text", "n_token", "n_failed")},
        "n_verified": int(checks["n_text"]),
        "n_passed": int(checks["n_passed"]),
        **{name: float(checks[name]) for name in ("worst_error", "worst_difference")},
    }


def check_version(metadata: Mapping[str, Any], path: Path, what: str) -> None:
    """Raises CorpusError for a file of a profile or an index that another version wrote."""
    if metadata["schema"] != SCHEMA:
        raise CorpusError(
            f"{path} has the columns of version {metadata['schema']}; this attnviz reads version {SCHEMA}. Make the {what} anew."
        )


class Parquet:
    """A Parquet file, on disk or in memory, of which only what is asked for is read."""

    def __init__(self, source: Path | bytes) -> None:
        self._source = source
        self._file = pq.ParquetFile(source if isinstance(source, Path) else pa.BufferReader(source))
        self.schema: pa.Schema = self._file.schema_arrow
        groups = range(self._file.metadata.num_row_groups)
        self._starts = np.cumsum([0, *(self._file.metadata.row_group(group).num_rows for group in groups)])

    def __reduce__(self) -> tuple[type["Parquet"], tuple[Path | bytes]]:
        """The pickled form, for another process."""
        return Parquet, (self._source,)

    def __len__(self) -> int:
        return int(self._starts[-1])

    @property
    def n_bytes(self) -> int:
        """Bytes of the file where it is in memory."""
        return len(self._source) if isinstance(self._source, bytes) else 0

    @property
    def is_ours(self) -> bool:
        """Whether attnviz wrote it; failures that an earlier version wrote have no metadata."""
        return METADATA in (self.schema.metadata or {}) or self.schema.names == ["source", "place", "reason"]

    @property
    def metadata(self) -> Any:
        """What it says of itself."""
        return json.loads(self.schema.metadata[METADATA])

    def table(self) -> pa.Table:
        """All of it."""
        return self._file.read()

    def take(self, numbers: Sequence[int]) -> list[dict[str, Any]]:
        """The rows of these numbers, in their order."""
        groups = np.searchsorted(self._starts, numbers, side="right") - 1
        read = {group: self._file.read_row_group(group) for group in np.unique(groups).tolist()}
        rows = []
        for number, group in zip(numbers, groups.tolist(), strict=True):
            rows += read[group].slice(int(number - self._starts[group]), 1).to_pylist()
        return rows


def write(
    path: Path, tables: Iterable[pa.Table], schema: pa.Schema, about: Any, *, n_row: int | None = None
) -> None:
    """Writes tables, one after the other, as one file.

    Args:
        about: what it says of itself; see `METADATA`.
        n_row: rows of a row group, the least that is read at once.

    Raises:
        CorpusError: no room on the disk.
    """
    schema = schema.with_metadata({METADATA: json.dumps(about).encode()})
    with replacing(path) as part, pq.ParquetWriter(part, schema, compression="zstd") as writer:
        for table in tables:
            writer.write_table(table, row_group_size=n_row)


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A context in which a file is written under another name, and then put into its place.

    Raises:
        CorpusError: as `no_room_on`.
    """
    part = path.with_name(f"{path.name}.part")
    with no_room_on(path.parent):
        yield part
        os.replace(part, path)


@contextmanager
def no_room_on(folder: Path) -> Iterator[None]:
    """A context that raises CorpusError for an OSError, as a disk raises that is full or read-only."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise CorpusError(
                f"There is no room left on the disk of {folder}. What was counted so far is kept: make room, and run the same "
                "command again."
            ) from error
        raise CorpusError(
            f"{folder} cannot be written to: {cause(error)} Name another folder with --out, or change its permissions."
        ) from error
