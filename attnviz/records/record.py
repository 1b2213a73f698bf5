"""The base of every record, frozen and with read-only arrays; and the types and checks that records share."""

import reprlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import partial
from types import MappingProxyType
from typing import Any, Literal, get_args

import numpy as np

from attnviz.errors import ArgumentError, SelectionError, ShapeError

Kind = Literal["encoder", "decoder", "cross"]
"""``encoder``: every token sees every token; ``decoder``: causal self-attention; ``cross``: a decoder's
queries on an encoder's keys."""

KINDS: tuple[Kind, ...] = get_args(Kind)

Role = Literal["query", "key", "value"]

ROLE_NAMES: Mapping[Role, str] = MappingProxyType({"query": "queries", "key": "keys", "value": "values"})

Progress = Callable[[float], None]
"""How a long computation reports its progress: called with the share that is done, 0 to 1."""


def progress_within(progress: Progress | None, start: float, share: float) -> Progress:
    """How a part of a computation reports its progress.

    Args:
        progress: that of the whole; None where it is not reported.
        start: the share of the whole that is done before the part.
        share: the share of the whole that the part makes up.
    """
    return (lambda _: None) if progress is None else (lambda done: progress(start + share * done))


Measure = Literal["weights", "norms", "rollout"]
"""Measure of a cell: ``weights``, the attention weight; ``norms``, the norm-based weight ‖w·v·W_O‖ (Kobayashi et al.
2020); ``rollout``, an estimate through all layers (Abnar and Zuidema 2020). See `attnviz.maths.attribution`."""

MEASURES: tuple[Measure, ...] = get_args(Measure)

Mixing = Literal["alti", "value_zeroing"]
"""Measure of a cell that takes the model and not the trace alone: ``alti``, how close the key's part is to the vector after the
attention (Ferrando et al. 2022); ``value_zeroing``, how much the query's vector turns without the key's value (Mohebbi et al. 2023).
See `attnviz.effects.context_mixing`."""


class _Brief(reprlib.Repr):
    """A value in a few words: of an array its dtype and shape, of a record its name."""

    def __init__(self) -> None:
        super().__init__()
        self.maxstring = self.maxother = 40
        self.maxtuple = self.maxlist = self.maxdict = 3
        self.maxlevel = 2

    def repr_ndarray(self, array: np.ndarray, level: int) -> str:
        return f"{array.dtype}{list(array.shape)}"

    def repr_mappingproxy(self, mapping: Mapping[Any, Any], level: int) -> str:
        return self.repr_dict(dict(mapping), level)

    def repr_instance(self, value: object, level: int) -> str:
        return (
            f"<{type(value).__name__}>" if isinstance(value, Record) else super().repr_instance(value, level)
        )


brief = _Brief().repr


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Record:
    """Base of the records: all its arrays are made read-only, and its repr is short, whatever it holds."""

    def __init_subclass__(cls) -> None:
        if "__repr__" not in cls.__dict__:  # dataclass keeps a __repr__ that is there
            cls.__repr__ = Record.__repr__  # type: ignore[method-assign]

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, np.ndarray):
                value.flags.writeable = False

    def __repr__(self) -> str:
        values = ((field, getattr(self, field.name)) for field in fields(self))
        shown = (f"{field.name}={brief(value)}" for field, value in values if value is not field.default)
        return f"{type(self).__name__}({', '.join(shown)})"

    def __reduce__(self) -> tuple[Callable[[], "Record"], tuple[()]]:
        """The pickled form of a record, for another process; read-only mappings cannot be pickled directly."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        plain = {
            name: dict(value) if isinstance(value, MappingProxyType) else value
            for name, value in values.items()
        }
        return partial(type(self), **plain), ()

    def _unfit(self, message: str) -> ShapeError:
        """The error of a record whose arrays do not fit each other."""
        return ShapeError(f"{type(self).__name__}: {message}")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Provenance(Record):
    """Where numbers come from: the model, its revision, the arithmetic, the libraries."""

    model: str
    """Name of the model: a Hub id, or the folder's name."""
    revision: str
    """Commit on the Hub, version of the package, "local folder", "local file", "live model", or `GIVEN`."""
    dtype: str
    """Arithmetic of the forward pass, such as "float32"."""
    versions: Mapping[str, str]
    """Library name to version."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "versions", MappingProxyType(dict(self.versions)))


GIVEN = "arrays"
"""Revision of numbers that were given as arrays, which no model here has computed."""


def check_index(name: str, index: int, count: int, what: str) -> int:
    """The index, if it is one of 0 to count - 1.

    Raises:
        ArgumentError: it is no whole number.
        SelectionError: it is not in that range, which the message gives.
    """
    if isinstance(index, bool) or not isinstance(index, int | np.integer):
        raise ArgumentError(
            f"{name.capitalize()} {index!r} was asked for; a {name} is a whole number, and {what} has {name}s 0 to {count - 1}. "
            f"Pass one of those, as an int."
        )
    if not 0 <= index < count:
        raise SelectionError(
            f"{name.capitalize()} {index} was asked for; {what} has {name}s 0 to {count - 1}. Select one of those."
        )
    return int(index)
