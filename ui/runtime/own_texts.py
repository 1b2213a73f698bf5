"""The texts of a visitor's own file, read by a worker process, since only that process suffers if the file is broken."""

import tempfile
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from attnviz.errors import CorpusError
from ui.limits import TEXTS_MB

if TYPE_CHECKING:
    from attnviz.corpus.texts import Entry, Failure

MOST_TEXTS = 20_000
"""Texts of a file: on two cores these take a minute with all-MiniLM-L6-v2, ten with SmolLM2-135M-Instruct."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadFile:
    """The contents of a file."""

    entries: "tuple[Entry | Failure, ...]" = ()
    columns: tuple[str, ...] = ()
    """Columns of a table to choose from, if it is not obvious which holds the texts; there are no entries then."""
    n_bytes: int = 0
    """Memory that the texts take."""


def read_file(name: str, data: bytes, column: str | None) -> ReadFile:
    """The texts of a file, as `attnviz corpus profile` reads it.

    Args:
        name: of the file; its ending gives the format.
        column: of a table; None for the column "text", or the only one.

    Raises:
        CorpusError: nothing in it can be read, or it has more texts than allowed.
    """
    from attnviz.corpus.texts import (
        COLUMN,
        SUFFIXES,
        Failure,
        columns,
        read_entries,
    )  # as `ui.runtime.with_model.profile`

    suffix = PurePath(name).suffix.lower()
    if suffix not in SUFFIXES:
        raise CorpusError(
            f"A file of texts was to be read; its name ends in {suffix or 'nothing'}, and attnviz reads {', '.join(SUFFIXES)}. Save it in one of these."
        )
    entries, n_bytes = [], 0
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, f"texts{suffix}")
        file.write_bytes(data)
        if column is None and COLUMN not in (there := columns(file)):
            if len(there) > 1:
                return ReadFile(columns=there)
            column = there[0] if there else None
        for entry in read_entries(file, column):
            entries.append(entry)
            n_bytes += 0 if isinstance(entry, Failure) else len(entry.text.encode())
            if n_bytes > TEXTS_MB * 1e6 or len(entries) > MOST_TEXTS:
                raise CorpusError(
                    f"The file holds more than {MOST_TEXTS:,} texts, or more than {TEXTS_MB} MB of them, which is what this page "
                    "measures. Use attnviz corpus profile, which measures any number."
                )
    if not entries:
        raise CorpusError("The file holds no text. Choose one that does.")
    first = entries[0]
    if all(isinstance(entry, Failure) for entry in entries) and isinstance(first, Failure):
        raise CorpusError(first.reason)
    return ReadFile(entries=tuple(entries), n_bytes=n_bytes)
