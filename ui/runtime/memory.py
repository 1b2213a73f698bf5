"""Memory accounting and trimming: the bytes that a value keeps alive, which limit every store, and those of a process."""

import ctypes
import gc
import os
import sys
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

_PLAIN = frozenset({str, bytes, int, float, bool, type(None)})
"""Most of what is counted, so it is looked for first."""


@cache
def _field_names(kind: type) -> tuple[str, ...] | None:
    """The fields of a record of this class; None for what is no record."""
    return tuple(field.name for field in fields(kind)) if is_dataclass(kind) else None


def n_bytes(value: Any, *, without: tuple[str, ...] = ()) -> int:
    """Bytes of memory that a value keeps alive; for arrays and tensors the buffers behind them, each counted once.

    Maps of files count nothing: the system takes their memory back when it is short.

    Args:
        without: fields of records that are not counted.
    """
    seen: set[int] = set()
    total, left = 0, [value]
    while left:
        value = left.pop()
        kind = type(value)
        parts: Iterable[Any] = ()
        known = id(value)
        if kind in _PLAIN:
            size = sys.getsizeof(value)
        elif isinstance(value, np.ndarray):
            while isinstance(value.base, np.ndarray):
                value = value.base
            known, size = id(value), 0 if isinstance(value, np.memmap) else int(value.nbytes)
        elif (names := _field_names(kind)) is not None:  # type: ignore[arg-type]
            size = sys.getsizeof(value)
            parts = [getattr(value, name) for name in names if name not in without]
        elif isinstance(value, Mapping):
            size = sys.getsizeof(value)
            parts = chain(value, value.values())
        elif isinstance(value, list | tuple | set | frozenset):
            size, parts = sys.getsizeof(value), value
        elif callable(of_tensor := getattr(value, "untyped_storage", None)):
            buffer = of_tensor()  # of a torch tensor; torch is not imported for this
            known, size = buffer.data_ptr(), int(buffer.nbytes())
        elif callable(of_network := getattr(value, "parameters", None)):
            size = sys.getsizeof(value)
            parts = of_network()  # of a torch network; networks may share them
        else:
            size = sys.getsizeof(value)
        if known not in seen:
            seen.add(known)
            total += size
            left.extend(parts)
    return total


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


def collect_all() -> None:
    """Has the collector look also at what it passes over otherwise, if anything: a model may have been left since."""
    if gc.get_freeze_count():
        gc.unfreeze()
        collect_only_what_comes()


def give_back() -> None:
    """Gives memory back to the system: Python's garbage, and free blocks if the C library is glibc."""
    gc.collect()
    if hasattr(library := ctypes.CDLL(None), "malloc_trim"):
        library.malloc_trim(0)
