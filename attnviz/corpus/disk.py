"""Writing into a folder whose disk may be full or read-only."""

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from attnviz.errors import CorpusError, cause


@contextmanager
def no_room_on(folder: Path) -> Iterator[None]:
    """A context that raises CorpusError for an OSError."""
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
