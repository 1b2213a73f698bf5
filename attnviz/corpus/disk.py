"""Writing into a folder: what a full disk, or one that may not be written to, says.

One concept: the error of a disk in one sentence.
"""

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from attnviz.errors import CorpusError, cause


@contextmanager
def no_room_on(folder: Path) -> Iterator[None]:
    """A context in which CorpusError stands for what a disk refuses."""
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
