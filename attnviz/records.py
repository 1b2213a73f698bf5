"""What attnviz hands around: frozen records of read-only float32 numpy arrays.

One concept: the data, and the checks that span its fields. numpy only; imports nothing else of
attnviz but the errors. Axes are named ``layer head query key d_head token point``.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from types import MappingProxyType
from typing import Any, Literal, get_args

import numpy as np
from jaxtyping import Bool, Float, Int
from numpy.typing import NDArray

from attnviz.errors import SelectionError, ShapeError

Kind = Literal["encoder", "decoder", "cross"]
"""``encoder``: every token sees every token; ``decoder``: causal self-attention; ``cross``: a decoder's
queries on an encoder's keys."""

KINDS: tuple[Kind, ...] = get_args(Kind)

Role = Literal["query", "key"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Record:
    """Base of the records: every array in one is made read-only."""

    def __post_init__(self) -> None:
        for one in fields(self):
            value = getattr(self, one.name)
            if isinstance(value, np.ndarray):
                value.flags.writeable = False

    def _require(self, holds: bool, message: str) -> None:
        if not holds:
            raise ShapeError(f"{type(self).__name__}: {message}")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Provenance(Record):
    """Where numbers come from: the model, its revision, the arithmetic, the libraries."""

    model: str
    """Name as it was asked for: a Hub id, or the folder's name."""
    revision: str
    """Commit on the Hub, version of the package, or "local folder"."""
    dtype: str
    """Arithmetic of the forward pass, such as "float32"."""
    versions: Mapping[str, str]
    """Library name to version."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "versions", MappingProxyType(dict(self.versions)))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Tokens(Record):
    """A text as a model reads it: one entry a token, special tokens included."""

    text: str
    text_pair: str | None = None
    ids: Int[np.ndarray, " token"]
    labels: tuple[str, ...]
    """What is shown for each token, literally: ``"##ing"``, ``"[CLS]"``."""
    is_special: Bool[np.ndarray, " token"]
    """True for tokens that the tokenizer added around the text, such as [CLS] and [SEP]."""
    segment: Int[np.ndarray, " token"]
    """0 for the first text and 1 for the second."""
    word: Int[np.ndarray, " token"]
    """Number of the word within its text that a token is part of; -1 for special tokens."""
    unknown_id: int | None = None
    """Id that stands for any piece of text the vocabulary has no entry for, if the vocabulary needs one."""
    n_cut: tuple[int, ...] = (0,)
    """Tokens left out at the end of each text because the model reads no more."""

    def __post_init__(self) -> None:
        Record.__post_init__(self)
        n_token = len(self.ids)
        for name in ("labels", "is_special", "segment", "word"):
            length = len(getattr(self, name))
            self._require(length == n_token, f"{n_token} ids, but {length} entries in {name}")

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def is_unknown(self) -> Bool[np.ndarray, " token"]:
        """True where the vocabulary had no entry for a piece of text."""
        if self.unknown_id is None:
            return np.zeros(len(self), dtype=bool)
        return np.asarray(self.ids == self.unknown_id)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LayerAttention(Record):
    """What went into the attention of one layer, after all that the family does to it.

    Rotary positions are applied; keys and values that heads share are stored once.
    """

    kind: Kind
    layer: int
    query: Float[np.ndarray, "head query d_head"]
    key: Float[np.ndarray, "kv_head key d_head"]
    value: Float[np.ndarray, "kv_head key d_value"]
    scale: float
    """Factor on q . k before the softmax, 1 / sqrt(d_head) for most families."""
    allowed: Bool[np.ndarray, "#head #query key"] | None = None
    """True where a query may see a key; None where every query sees every key."""
    bias: Float[np.ndarray, "#head #query key"] | None = None
    """Added to the scaled scores, such as T5's relative positions; None for most families."""

    def __post_init__(self) -> None:
        Record.__post_init__(self)
        n_head, n_query, d_head = self.query.shape
        n_kv_head, n_key, d_key = self.key.shape
        self._require(d_head == d_key, f"queries have d_head {d_head}, keys {d_key}")
        self._require(
            self.value.shape[:2] == (n_kv_head, n_key),
            f"keys are {n_kv_head} kv_head x {n_key} key, values {self.value.shape[0]} x {self.value.shape[1]}",
        )
        self._require(
            n_head % n_kv_head == 0, f"{n_head} heads cannot share {n_kv_head} key-value heads evenly"
        )
        for name in ("allowed", "bias"):
            matrix = getattr(self, name)
            if matrix is not None:
                fits = all(
                    found in (1, wanted)
                    for found, wanted in zip(matrix.shape, (n_head, n_query, n_key), strict=True)
                )
                self._require(
                    fits, f"{name} is {matrix.shape}, head query key are {(n_head, n_query, n_key)}"
                )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AttentionPattern(Record):
    """The attention of one head: scores before the softmax and weights after it."""

    kind: Kind
    layer: int
    head: int
    scores: Float[np.ndarray, "query key"]
    """Scaled, biased and masked; minus infinity where a key is not allowed."""
    weights: Float[np.ndarray, "query key"]
    query_tokens: Tokens
    key_tokens: Tokens
    query_position: Int[np.ndarray, " query"]
    """Position of each row's token in ``query_tokens``."""
    key_position: Int[np.ndarray, " key"]
    hidden_weight: Float[np.ndarray, " query"]
    """Weight of each row that lies on keys which are not shown; 0 while all are."""
    provenance: Provenance

    def __post_init__(self) -> None:
        Record.__post_init__(self)
        shape = (len(self.query_position), len(self.key_position))
        self._require(
            self.weights.shape == shape == self.scores.shape,
            f"query key are {shape}, weights {self.weights.shape}, scores {self.scores.shape}",
        )
        self._require(
            len(self.hidden_weight) == shape[0],
            f"{shape[0]} queries, but {len(self.hidden_weight)} hidden weights",
        )

    def without_special(self, *, renormalise: bool) -> "AttentionPattern":
        """The same pattern without the rows and columns of special tokens such as [CLS] and [SEP].

        Each remaining row loses the weight it had on them, kept as ``hidden_weight``. With
        ``renormalise`` a row is divided by what remains, so that it sums to 1 again; a row that lost
        everything stays zero. Scores are left as they are.
        """
        rows = ~self.query_tokens.is_special[self.query_position]
        columns = ~self.key_tokens.is_special[self.key_position]
        weights = self.weights[np.ix_(rows, columns)]
        kept = weights.sum(axis=1, keepdims=True)
        if renormalise:
            weights = np.divide(weights, kept, out=np.zeros_like(weights), where=kept > 0)
        return replace(
            self,
            scores=self.scores[np.ix_(rows, columns)],
            weights=weights,
            query_position=self.query_position[rows],
            key_position=self.key_position[columns],
            hidden_weight=self.weights[np.ix_(rows, ~columns)].sum(axis=1),
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Rung(Record):
    """One comparison of ours with the model's: the largest difference, and what is allowed."""

    name: str
    difference: float
    """Largest difference: absolute for weights, a share of the largest number compared for the other rungs.
    NaN counts as failed."""
    tolerance: float
    reason: str
    """Why the tolerance is what it is, with the dtype."""

    @property
    def passed(self) -> bool:
        """Whether the difference is at most the tolerance; False for NaN."""
        return self.difference <= self.tolerance


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class VerificationReport(Record):
    """attnviz's attention against the model's own, for one text: every layer and head."""

    weight_errors: Mapping[Kind, Float[np.ndarray, "layer head"]]
    """Largest absolute difference of attention weights, by kind of attention."""
    output_errors: Mapping[Kind, Float[np.ndarray, "layer head"]]
    """Largest absolute difference of a head's output, as a share of the head's largest value, by kind."""
    weight_rung: Rung
    output_rung: Rung
    hidden_rung: Rung
    provenance: Provenance

    def __post_init__(self) -> None:
        for name in ("weight_errors", "output_errors"):
            errors = getattr(self, name)
            for array in errors.values():
                array.flags.writeable = False
            object.__setattr__(self, name, MappingProxyType(dict(errors)))

    @property
    def rungs(self) -> tuple[Rung, Rung, Rung]:
        """The ladder: weights, head output, last hidden state."""
        return self.weight_rung, self.output_rung, self.hidden_rung

    @property
    def passed(self) -> bool:
        """Whether all three rungs hold."""
        return all(rung.passed for rung in self.rungs)

    @property
    def max_abs_error(self) -> float:
        """Largest absolute difference of any attention weight of any kind, layer and head."""
        return self.weight_rung.difference

    @property
    def weight_error(self) -> Float[np.ndarray, "layer head"]:
        """Largest weight difference per layer and head, of the model's first kind of attention."""
        return next(iter(self.weight_errors.values()))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Projection(Record):
    """Query and key vectors of one head as points in the plane: all queries first, then all keys."""

    points: Float[np.ndarray, "point 2"]
    role: tuple[Role, ...]
    position: Int[np.ndarray, " point"]
    """Position of the token that a point belongs to, among the queries' or the keys' tokens."""
    query_tokens: Tokens
    key_tokens: Tokens
    kind: Kind
    layer: int
    head: int
    method: str
    """What placed the points: "tsne", or "pca" where there were too few for it."""
    parameters: Mapping[str, Any]
    """What the method was run with, after it was fitted to the number of points; empty for "pca"."""
    remark: str = ""
    """What had to be changed to draw the map, in one sentence; empty when nothing was."""
    neighbour_agreement: float
    """Share of queries (0 to 1) whose nearest key in the plane is the key with the largest weight."""
    order_correlation: float
    """Spearman correlation of score and distance in the plane, mean over the queries; -1 is a perfect
    map, 0 says nothing. NaN with fewer than two keys."""
    provenance: Provenance

    def __post_init__(self) -> None:
        Record.__post_init__(self)
        object.__setattr__(self, "parameters", MappingProxyType(dict(self.parameters)))
        n_point = len(self.points)
        self._require(
            len(self.role) == n_point == len(self.position),
            f"{n_point} points, {len(self.role)} roles, {len(self.position)} positions",
        )

    def rows(self, role: Role) -> NDArray[np.intp]:
        """Indices of the points with this role, in the order of their tokens."""
        return np.flatnonzero(np.array(self.role) == role)


def check_index(name: str, found: int, count: int, what: str) -> int:
    """The index, when it is one of 0 to count - 1.

    Raises:
        SelectionError: when it is not; the message gives the range.
    """
    if isinstance(found, bool) or not isinstance(found, int | np.integer) or not 0 <= found < count:
        raise SelectionError(
            f"{name.capitalize()} {found} was asked for; {what} has {name}s 0 to {count - 1}. Pick one of those."
        )
    return int(found)
