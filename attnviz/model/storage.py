"""Where the recorded arrays of a trace are: in memory, or beyond a budget in a file that is mapped into memory.

The system reads the parts of such a file that are looked at, and takes their memory back when it is short. A file has no
name and goes with the trace, unless it is to be read by another process: see `files_in` and `dumps`.
"""

import io
import os
import pickle
import tempfile
import weakref
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np

from attnviz.errors import OutOfMemoryError
from attnviz.records import Record

IN_MEMORY = 256 * 2**20
"""Bytes of a trace that stay in memory: BERT's at 512 tokens are 57 MB, those of SmolLM2 944 MB at 8,192."""

_FILE_BYTES = 2**30
"""Bytes that a file is mapped for, of which only what is written takes room; one map for many arrays, since each keeps a file open."""
_ALIGNED = 64
"""An array's first byte is at a multiple of this, as torch's are."""

_folder: ContextVar[Path | None] = ContextVar("attnviz_folder", default=None)
_maps: "weakref.WeakValueDictionary[str, np.memmap]" = weakref.WeakValueDictionary()
"""The maps of named files in this process, by path."""


@contextmanager
def files_in(folder: Path) -> Iterator[None]:
    """A context in which the file of a trace gets a name in a folder, and stays until it is deleted: see `delete_with`."""
    token = _folder.set(folder)
    try:
        yield
    finally:
        _folder.reset(token)


class Storage:
    """Keeps arrays that are recorded one after the other.

    Args:
        n_bytes: what all of them are expected to take; over `IN_MEMORY` they go to a file, each as soon as it is kept.
    """

    def __init__(self, n_bytes: int) -> None:
        self._is_file = n_bytes > IN_MEMORY
        self._file: Any = None
        self._map: np.memmap | None = None
        self._used = 0
        self._paths: list[str] = []

    def keep(self, array: np.ndarray) -> np.ndarray:
        """The array as it is, or a read-only map of its numbers in the file.

        Raises:
            OutOfMemoryError: the file does not fit into its folder.
        """
        if not self._is_file or not array.size:
            return array
        try:
            if self._map is None or self._used + array.nbytes > len(self._map):
                self._begin(array.nbytes)
            assert self._map is not None
            self._file.seek(self._used)
            self._file.write(np.ascontiguousarray(array).tobytes())
            self._file.flush()
        except OSError as error:
            raise OutOfMemoryError(
                "The layers of this text do not fit into the folder for temporary files. Shorten the text, free space there, or name "
                "another folder in the environment variable TMPDIR."
            ) from error
        kept = np.ndarray(array.shape, array.dtype, buffer=self._map, offset=self._used)
        self._used += -(-array.nbytes // _ALIGNED) * _ALIGNED
        return kept

    def end(self) -> None:
        """Gives back the room that was not used; nothing is kept after this."""
        if self._file is not None:
            if os.name == "posix":  # elsewhere a mapped file keeps its length
                self._file.truncate(self._used)
            self._file.close()
        self._file = self._map = None

    def delete(self) -> None:
        """Deletes the named files, as of a pass that failed."""
        for path in self._paths:
            Path(path).unlink(missing_ok=True)

    def _begin(self, n_bytes: int) -> None:
        """Goes on in a new file, with room for so many bytes at least."""
        self.end()
        folder = _folder.get()
        if folder is None:
            self._file = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `end`
        else:
            number, path = tempfile.mkstemp(dir=folder, prefix="trace-")
            self._file = os.fdopen(number, "w+b")
            self._paths.append(path)
        self._used = 0
        self._file.truncate(max(_FILE_BYTES, n_bytes))
        self._map = np.memmap(self._file, dtype=np.uint8, mode="r")
        if folder is not None:
            self._map.filename = path
            _maps[path] = self._map


def file_of(array: np.ndarray) -> np.memmap | None:
    """The map that an array is a part of; None for an array in memory."""
    base: Any = array
    while isinstance(base, np.ndarray):
        if isinstance(base, np.memmap) and not isinstance(base.base, np.ndarray):
            return base
        base = base.base
    return None


def dumps(value: object) -> bytes:
    """A value as pickle writes it, for another process; arrays in named files are references, which `pickle.loads` maps there."""
    written = io.BytesIO()
    _Pickler(written, pickle.HIGHEST_PROTOCOL).dump(value)
    return written.getvalue()


class _Pickler(pickle.Pickler):
    def reducer_override(self, value: Any) -> Any:
        if not isinstance(value, np.ndarray) or (whole := file_of(value)) is None:
            return NotImplemented
        path = str(whole.filename)
        if _maps.get(path) is not whole:  # a file without a name
            return NotImplemented
        offset = value.__array_interface__["data"][0] - whole.__array_interface__["data"][0]
        return _part_of, (path, value.dtype.str, value.shape, value.strides, offset)


def _part_of(
    path: str, dtype: str, shape: tuple[int, ...], strides: tuple[int, ...], offset: int
) -> np.ndarray:
    """An array in a named file; all those of a file share one map."""
    whole = _maps.get(path)
    if whole is None:
        whole = _maps[path] = np.memmap(path, dtype=np.uint8, mode="r")
    return np.ndarray(shape, np.dtype(dtype), buffer=whole, offset=offset, strides=strides)


def delete_with(value: object) -> None:
    """Has the named files of a trace deleted when nothing in this process reads them any more; for the process that it is handed to."""
    for whole in {
        id(whole): whole for array in _arrays(value) if (whole := file_of(array)) is not None
    }.values():
        if _maps.get(path := str(whole.filename)) is whole:
            weakref.finalize(whole, _delete, path)


def _delete(path: str) -> None:
    with suppress(OSError):
        os.unlink(path)


def _arrays(value: object) -> Iterator[np.ndarray]:
    if isinstance(value, np.ndarray):
        yield value
    elif isinstance(value, Record):
        for field in fields(value):
            yield from _arrays(getattr(value, field.name))
    elif isinstance(value, Mapping):
        yield from _arrays(list(value.values()))
    elif isinstance(value, Iterable) and not isinstance(value, str | bytes):
        for each in value:
            yield from _arrays(each)
