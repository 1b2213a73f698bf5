"""Vectors as points of a map, and how reliable the map is."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
from jaxtyping import Float, Int
from numpy.typing import DTypeLike, NDArray

from attnviz.records.record import Kind, Provenance, Record, Role
from attnviz.records.result import Result
from attnviz.records.table import Table
from attnviz.records.tokens import Tokens


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Reliability(Record):
    """How well distances from queries to keys keep the order of the scores. NaN where no query sees two keys."""

    n_query: int
    """Number of queries that see two keys or more: the figures are over these."""
    order_correlation: float
    """Spearman correlation of score and distance, mean over the queries; -1 is a perfect map."""
    worst_correlation: float
    """The same correlation for the query with the worst correlation."""
    worst_query: int | None = None
    """Position of the worst query; None where there is none, and for several texts together."""
    nearest_agreement: float
    """Share of queries (0 to 1) whose nearest key has the highest score; of equally near keys, the share that has it."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Chance(Record):
    """The figures of a map whose key points are permuted among the keys; see `attnviz.maps.chance`."""

    n_permutations: int
    """Permutations besides the map's own order; 0 where no query sees two keys."""
    correlation: float
    """At most one permuted map in twenty has an order correlation below this. NaN where there are too few permutations:
    then no map is better than chance."""
    correlation_p: float
    """Share of permuted maps, the map itself among them, whose order correlation is no higher than the map's."""
    nearest: float
    """At most one permuted map in twenty has a nearest agreement above this; NaN as for the correlation."""
    nearest_p: float
    """Share of permuted maps, the map itself among them, whose nearest agreement is no lower than the map's."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Placement(Record):
    """Vectors of one head as points in the plane or in space: queries first, then keys, then values."""

    points: Float[np.ndarray, "point axis"]
    """Two axes or three."""
    method: str
    """Method that placed the points: one of `attnviz.maps.projection.METHODS`; "pca" where the chosen method needs more points."""
    space: str
    """Vectors that were fed to the method: one of `attnviz.maps.spaces.SPACES`. The attention map is made from the
    weights only; its trustworthiness is measured against the lifted vectors."""
    parameters: Mapping[str, Any]
    """Parameters of the method, adjusted to the number of points; empty for "pca"."""
    remark: str = ""
    """What had to be changed to draw the map, in one sentence; empty when nothing was."""
    in_map: Reliability
    """How well the map keeps the order of the scores."""
    chance: Chance
    """How well it would do so by chance."""
    in_space: Reliability | None
    """How well the vectors that were fed in keep this order, by the method's own metric; None for the attention
    map."""
    trustworthiness: float
    """Whether neighbours in the map are neighbours among the vectors fed in, from 0 to 1; NaN with too few points."""
    divergence: float | None = None
    """Loss of the attention map: the mean over the queries of the Kullback-Leibler divergence of the weights from
    those that the map implies, in nats; None for other methods."""

    def __post_init__(self) -> None:
        Record.__post_init__(self)
        object.__setattr__(self, "parameters", MappingProxyType(dict(self.parameters)))
        if self.points.ndim != 2 or self.points.shape[1] not in (2, 3):
            raise self._unfit(f"points are {self.points.shape}, not [point, 2] or [point, 3]")
        if not np.isfinite(self.points).all():
            raise self._unfit("some points are NaN or infinite")

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> np.ndarray:
        """The points [point axis], so that numpy takes a placement for its points."""
        return np.array(self.points, dtype=dtype, copy=copy)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Projection(Placement, Result):
    """A placement with the tokens that its points belong to."""

    role: tuple[Role, ...]
    position: Int[np.ndarray, " point"]
    """Position of the token that a point belongs to, among the queries' or the keys' tokens."""
    query_tokens: Tokens
    key_tokens: Tokens
    weights: Float[np.ndarray, "query key"]
    """Attention weights of the head, which a figure draws as lines."""
    kind: Kind
    layer: int
    head: int
    provenance: Provenance

    def __post_init__(self) -> None:
        Placement.__post_init__(self)
        n_point = len(self.points)
        if not len(self.role) == n_point == len(self.position):
            raise self._unfit(f"{n_point} points, {len(self.role)} roles, {len(self.position)} positions")
        n_query, n_key = len(self.query_tokens), len(self.key_tokens)
        if self.weights.shape != (n_query, n_key):
            raise self._unfit(f"weights are {self.weights.shape}, query key are {(n_query, n_key)}")
        sizes = {"query": n_query, "key": n_key, "value": n_key}
        for role, position in zip(self.role, self.position.tolist(), strict=True):
            if not 0 <= position < sizes[role]:
                raise self._unfit(f"a {role} at token {position} of {sizes[role]} tokens")

    def _table(self) -> Table:
        """A row for each point; every row repeats method, vectors and settings, so that it can be read alone."""
        settings = [f"{name}={value}" for name, value in self.parameters.items()]
        made = [self.method, self.space, " ".join(settings)]
        rows = []
        for role, position, point in zip(self.role, self.position, self.points, strict=True):
            tokens = self.query_tokens if role == "query" else self.key_tokens
            rows.append([role, f"{position} {tokens.labels[position]}", *point, *made])
        return ["role", "token", *"xyz"[: self.points.shape[1]], "method", "vectors", "settings"], rows

    def rows(self, role: Role) -> NDArray[np.intp]:
        """Indices of the points with this role, in the order of their tokens."""
        return np.flatnonzero(np.array(self.role) == role)
