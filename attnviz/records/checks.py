"""Numbers of a trace compared with the model's own, and the differences."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from html import escape
from types import MappingProxyType

import numpy as np
from jaxtyping import Bool, Float

from attnviz.records.record import Kind, Provenance
from attnviz.records.result import Result
from attnviz.records.table import Table

WEIGHTS = "attention weights"
"""The check of the weights, whose differences are absolute."""
FILE = "weights of the file"
"""The check that the model has the weights of its file; a comparison with the reference cannot tell."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Check(Result):
    """One kind of number compared with the model's own: its differences and its tolerances."""

    name: str
    """What is compared, such as "attention weights"."""
    differences: Mapping[Kind, Float[np.ndarray, " layer #head"]]
    """Largest difference by kind of attention, for each layer, and for each head where heads are compared; in ``unit``.
    NaN counts as failed. A comparison made once for a text is a single number, under the model's first kind."""
    tolerances: Mapping[Kind, Float[np.ndarray, " layer #head"]]
    """Largest difference that rounding explains, on the same axes. Where it is NaN the layer has no such head (see
    `attnviz.records.head_table`), and nothing is compared."""
    unit: str
    """Unit of the differences, such as "share of the largest value"."""
    reason: str
    """Reason for the size of the tolerances, with the dtype and the source of the bound."""

    def __post_init__(self) -> None:
        for name in ("differences", "tolerances"):
            tables = {
                kind: np.asarray(table, dtype=np.float32) for kind, table in getattr(self, name).items()
            }
            for table in tables.values():
                table.flags.writeable = False
            object.__setattr__(self, name, MappingProxyType(tables))
        shapes = [
            {kind: table.shape for kind, table in of.items()} for of in (self.differences, self.tolerances)
        ]
        if shapes[0] != shapes[1] or not shapes[0]:
            raise self._unfit(f"{self.name}: differences {shapes[0]}, tolerances {shapes[1]}")
        for kind, differences in self.differences.items():
            there = self.compared(kind)
            if not there.any(axis=1).all() or not np.isnan(differences[~there]).all():
                raise self._unfit(
                    f"{self.name}: a layer of {kind} attention without a tolerance, or a difference without one"
                )

    def _table(self) -> Table:
        """A row for each layer, and for each head where heads are compared."""
        rows = [
            [kind, place[0], place[1] if differences.shape[1] > 1 else "", differences[place], tolerance]
            for kind, differences in self.differences.items()
            for place, tolerance in np.ndenumerate(self.tolerances[kind])
            if not np.isnan(tolerance)
        ]
        return ["kind", "layer", "head", "difference", "tolerance"], rows

    def compared(self, kind: Kind) -> Bool[np.ndarray, " layer #head"]:
        """True where there was something to compare: everywhere except at heads that a layer does not have."""
        return np.asarray(~np.isnan(self.tolerances[kind]))

    @property
    def passed(self) -> bool:
        """Whether every difference is at most its tolerance; False for NaN."""
        return all(
            bool((differences <= self.tolerances[kind])[self.compared(kind)].all())
            for kind, differences in self.differences.items()
        )

    @property
    def worst(self) -> tuple[Kind, int, int]:
        """Kind, layer and head of the largest difference relative to its tolerance; NaN before all others."""
        shares: dict[tuple[Kind, int, int], float] = {}
        for kind, differences in self.differences.items():
            allowed = self.tolerances[kind]
            smallest = np.where(allowed > 0, allowed, np.finfo(np.float32).tiny)
            with np.errstate(over="ignore"):  # infinitely far from a tolerance of 0
                share = np.where(differences == 0, 0.0, differences / smallest)
            share = np.where(self.compared(kind), np.nan_to_num(share, nan=np.inf, posinf=np.inf), -1.0)
            layer, head = np.unravel_index(int(share.argmax()), share.shape)
            shares[kind, int(layer), int(head)] = float(share[layer, head])
        return max(shares, key=shares.__getitem__)

    @property
    def difference(self) -> float:
        """The difference at the worst place."""
        kind, layer, head = self.worst
        return float(self.differences[kind][layer, head])

    @property
    def tolerance(self) -> float:
        """The tolerance at the worst place."""
        kind, layer, head = self.worst
        return float(self.tolerances[kind][layer, head])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class VerificationReport(Result):
    """The numbers of a trace compared with the model's own, in every layer and head; see `attnviz.verify`."""

    checks: tuple[Check, ...]
    """The checks, in the order in which a forward pass computes the numbers."""
    not_compared: Mapping[str, str] = field(default_factory=dict)
    """Checks that could not be made, by name, with the reason; their numbers are not shown either."""
    provenance: Provenance

    def __post_init__(self) -> None:
        object.__setattr__(self, "not_compared", MappingProxyType(dict(self.not_compared)))

    def _table(self) -> Table:
        """A row for each check, with the difference that is the largest beside its tolerance."""
        names = ["check", "unit", "largest difference", "tolerance", "passed"]
        return names, [
            [check.name, check.unit, check.difference, check.tolerance, check.passed] for check in self.checks
        ]

    def __repr__(self) -> str:
        return f"VerificationReport({self.provenance.model}: {self._verdict()})"

    def __str__(self) -> str:
        """The verdict, and a line for each check."""
        lines = [
            f"  {'passed' if check.passed else 'FAILED'}  {check.name}: {check.difference:.2g} of at most {check.tolerance:.2g} "
            f"({check.unit})"
            for check in self.checks
        ]
        return "\n".join([f"{self.provenance.model}: {self._verdict()}", *lines])

    def _verdict(self) -> str:
        failed = ", ".join(check.name for check in self.failed)
        verdict = f"failed: {failed}" if failed else f"all {len(self.checks)} checks passed"
        missing = [f"{name} not compared: {reason}" for name, reason in self.not_compared.items()]
        return ". ".join([verdict, *missing])

    def _headline(self) -> str:
        return f"<b>{escape(self.provenance.model)}</b>: {escape(self._verdict())}"

    def check(self, name: str) -> Check:
        """The check of this name.

        Raises:
            KeyError: there is none.
        """
        for check in self.checks:
            if check.name == name:
                return check
        raise KeyError(name)

    @property
    def failed(self) -> tuple[Check, ...]:
        """The checks that did not pass."""
        return tuple(check for check in self.checks if not check.passed)

    @property
    def passed(self) -> bool:
        """Whether every check passed."""
        return not self.failed

    @property
    def max_abs_error(self) -> float:
        """Largest absolute difference of any attention weight of any kind, layer and head; NaN if any is."""
        check = self.check(WEIGHTS)
        return float(
            max(np.max(differences[check.compared(kind)]) for kind, differences in check.differences.items())
        )

    @property
    def weight_error(self) -> Float[np.ndarray, "layer head"]:
        """Largest absolute difference of attention weights per layer and head, of the model's first kind.

        NaN where a layer has no such head, and where a weight is not a number, which is a check that failed.
        """
        return next(iter(self.check(WEIGHTS).differences.values()))
