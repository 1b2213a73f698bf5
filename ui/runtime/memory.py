"""Memory accounting and trimming: the bytes that a value keeps alive, which limit every store, and those of a process."""

import ctypes
import gc
import os
import sys
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np


def n_bytes(value: Any, *, without: tuple[str, ...] = ()) -> int:
    """Bytes of memory that a value keeps alive; for arrays and tensors the buffers behind them, each counted once.

    Args:
        without: fields of records that are not counted.
    """
    return _n_bytes(value, set(), without)


@cache
def _field_names(kind: type) -> tuple[str, ...] | None:
    """The fields of a record of this class; None for what is no record."""
    return tuple(field.name for field in fields(kind)) if is_dataclass(kind) else None


_PLAIN = frozenset({str, bytes, int, float, bool, type(None)})
"""Most of what is counted, so it is looked for first."""


def _n_bytes(value: Any, seen: set[int], without: tuple[str, ...]) -> int:
    if type(value) in _PLAIN:
        if id(value) in seen:
            return 0
        seen.add(id(value))
        return sys.getsizeof(value)
    if isinstance(value, np.ndarray):
        while isinstance(value.base, np.ndarray):
            value = value.base
        known, size = id(value), int(value.nbytes)
    elif callable(
        of_tensor := getattr(value, "untyped_storage", None)
    ):  # a torch tensor; torch is not imported for this
        buffer = of_tensor()
        known, size = buffer.data_ptr(), int(buffer.nbytes())
    else:
        known, size = id(value), sys.getsizeof(value)
    if known in seen:
        return 0
    seen.add(known)
    if (names := _field_names(type(value))) is not None:  # type: ignore[arg-type]
        return size + sum(
            _n_bytes(getattr(value, name), seen, without) for name in names if name not in without
        )
    if callable(
        of_network := getattr(value, "parameters", None)
    ):  # a torch network; torch is not imported for this
        parameters = [thing for thing in of_network() if id(thing) not in seen]  # networks may share them
        seen.update(map(id, parameters))
        return size + sum(int(parameter.nbytes) for parameter in parameters)
    if isinstance(value, Mapping):
        return size + sum(_n_bytes(item, seen, without) for pair in value.items() for item in pair)
    if isinstance(value, list | tuple | set | frozenset):
        return size + sum(_n_bytes(item, seen, without) for item in value)
    return size


def resident(process: int | None = None) -> int:
    """Resident bytes of a process, this one by default; 0 if the system does not tell or the process has ended."""
    try:
        pages = Path(f"/proc/{process or os.getpid()}/statm").read_text().split()[1]
    except OSError:
        return 0
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


def use_few_heaps() -> None:
    """Has threads share two heaps if the C library is glibc, which by default makes up to eight for each core.

    Free blocks in one heap are of no use to threads of another: with two heaps, twelve visitors with 150 tokens each
    take 770 MB instead of 870. Source: M_ARENA_MAX in mallopt(3).
    """
    if hasattr(library := ctypes.CDLL(None), "mallopt"):
        library.mallopt(-8, 2)


def collect_only_what_comes() -> None:
    """Has Python's garbage collector pass over what is there now, modules and models, until memory is given back.

    With ten visitors a whole collection holds everybody up for 0.1 s; it would take 0.4 s with these.
    """
    gc.collect()
    gc.freeze()


def give_back() -> None:
    """Gives memory back to the system: Python's garbage, and free blocks if the C library is glibc.

    That includes what the collector passes over otherwise: a model may have been left since.
    """
    if gc.get_freeze_count():
        gc.unfreeze()
        collect_only_what_comes()
    else:
        gc.collect()
    if hasattr(library := ctypes.CDLL(None), "malloc_trim"):
        library.malloc_trim(0)
