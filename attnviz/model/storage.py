"""Arrays of a long trace in a file, mapped into memory, so that processes share them and only what is read is held."""

import os
import pickle
import tempfile
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

import numpy as np

if TYPE_CHECKING:
    from attnviz.model.trace import Trace

_ALIGNMENT = 64
_folder: ContextVar[Path | None] = ContextVar("attnviz_folder", default=None)
_maps: "WeakValueDictionary[str, np.memmap]" = WeakValueDictionary()


@contextmanager
def files_in(folder: str | Path) -> Iterator[None]:
    """A context whose traces keep their arrays in files in a folder, until somebody deletes them."""
    token = _folder.set(Path(folder))
    try:
        yield
    finally:
        _folder.reset(token)


def stored(array: np.ndarray) -> np.ndarray:
    """The array, in a file of its own where `files_in` names a folder; read-only then."""
    folder = _folder.get()
    if folder is None:
        return array
    number, name = tempfile.mkstemp(dir=folder)
    with os.fdopen(number, "wb") as file:
        array.tofile(file)
    return _opened(name, array.dtype.str, array.shape)


def _opened(name: str, dtype: str, shape: tuple[int, ...]) -> np.ndarray:
    map = _maps.get(name)
    if map is None:
        map = _maps[name] = np.memmap(name, mode="r", dtype=np.uint8)
    return np.asarray(map).view(dtype).reshape(shape)


def file_of(array: np.ndarray) -> "np.memmap | None":
    """The map of a file that an array is part of; None for an array in memory."""
    base: Any = array
    while base is not None and not isinstance(base, np.memmap):
        base = base.base if isinstance(base, np.ndarray) else None
    return base


class _Pickler(pickle.Pickler):
    def reducer_override(self, value: Any) -> Any:
        if (
            isinstance(value, np.ndarray)
            and (map := file_of(value)) is not None
            and value.nbytes == map.nbytes
        ):
            return _opened, (str(map.filename), value.dtype.str, value.shape)
        return NotImplemented


def dumps(value: object) -> bytes:
    """The value pickled, with arrays in files as references to these."""
    written = BytesIO()
    _Pickler(written, pickle.HIGHEST_PROTOCOL).dump(value)
    return written.getvalue()


def delete_with(trace: "Trace") -> None:
    """Has the files of a trace deleted once nothing in this process maps them."""
    for of_kind in trace.layers.values():
        for layer in of_kind:
            for array in (layer.query, layer.key, layer.value, layer.allowed, layer.bias):
                if array is not None and (map := file_of(array)) is not None:
                    weakref.finalize(map, Path(str(map.filename)).unlink, missing_ok=True)
