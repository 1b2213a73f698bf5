"""How much memory a value keeps alive, which is what every store of this package is limited in."""

import sys
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np


def n_bytes(value: Any) -> int:
    """Bytes of memory that a value keeps alive: of arrays the buffers behind them, each once."""
    return _n_bytes(value, set())


def _n_bytes(value: Any, seen: set[int]) -> int:
    if isinstance(value, np.ndarray):
        while isinstance(value.base, np.ndarray):
            value = value.base
        known, size = id(value), int(value.nbytes)
    else:
        known, size = id(value), sys.getsizeof(value)
    if known in seen:
        return 0
    seen.add(known)
    if is_dataclass(value) and not isinstance(value, type):
        return size + sum(_n_bytes(getattr(value, one.name), seen) for one in fields(value))
    if callable(
        of_network := getattr(value, "parameters", None)
    ):  # a network of torch, which is not imported for this
        parameters = [one for one in of_network() if id(one) not in seen]  # which networks may share
        seen.update(map(id, parameters))
        return size + sum(int(one.nbytes) for one in parameters)
    if isinstance(value, Mapping):
        return size + sum(_n_bytes(one, seen) for pair in value.items() for one in pair)
    if isinstance(value, list | tuple | set | frozenset):
        return size + sum(_n_bytes(one, seen) for one in value)
    return size
