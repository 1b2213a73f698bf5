"""The attention of a layer, and of one head on the rows and columns that are shown."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from jaxtyping import Bool, Float
from numpy.typing import DTypeLike

from attnviz.errors import ShapeError
from attnviz.records.record import Kind, Measure, Mixing, Provenance, Record
from attnviz.records.result import MOST_COLUMNS, Result, frame_of
from attnviz.records.table import Table, entry_names, table_csv
from attnviz.records.tokens import Axis, Tokens, arrange

if TYPE_CHECKING:
    import pandas as pd  # type: ignore[import-untyped]

_ROUNDING = 1e-2
"""How far a row of weights may be from 1: bfloat16 rounds each weight by 0.4%."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LayerAttention(Record):
    """The inputs of one layer's attention, after everything that its model family does to them.

    Rotary positions are applied; keys and values that heads share are stored once.
    """

    kind: Kind
    layer: int
    query: Float[np.ndarray, "head query d_head"]
    key: Float[np.ndarray, "kv_head key d_head"]
    value: Float[np.ndarray, "kv_head key d_value"]
    scale: float
    """Factor on q . k before the softmax, 1 / sqrt(d_head) for most families."""
    softcap: float | None = None
    """c where scaled scores s become c tanh(s / c), as in Gemma 2; None for most families."""
    allowed: Bool[np.ndarray, "#head #query key"] | None = None
    """True where a query may see a key; None where every query sees every key."""
    bias: Float[np.ndarray, "#head #query key"] | None = None
    """Added to the scaled scores: T5's and MPNet's relative positions, DeBERTa's terms of a content and a position. None
    for most families."""
    output_weight: Float[np.ndarray, "head d_value d_model"] | None = None
    """W_O, which joins the heads' outputs: the model's own parameter, not a copy; None where it is not known."""
    output_bias: Float[np.ndarray, " d_model"] | None = None
    """The bias of W_O, which belongs to no head. None where W_O is not known, or has no bias."""
    weights: Float[np.ndarray, "head query key"] | None = None
    """Weights that were given, in place of the softmax of the scores; queries and keys may then be without axes (d_head 0)."""
    value_products: Float[np.ndarray, "head head key"] | None = None
    """In a trace from a bundle, the result of `attnviz.maths.attribution.value_products`, in place of W_O."""

    def __post_init__(self) -> None:
        Record.__post_init__(self)
        n_head, n_query, d_head = self.query.shape
        n_kv_head, n_key, d_key = self.key.shape
        if d_head != d_key:
            raise self._unfit(f"queries have d_head {d_head}, keys {d_key}")
        if self.value.shape[:2] != (n_kv_head, n_key):
            raise self._unfit(
                f"keys are {n_kv_head} kv_head x {n_key} key, values {self.value.shape[0]} x {self.value.shape[1]}"
            )
        if n_head % n_kv_head:
            raise self._unfit(f"{n_head} heads cannot share {n_kv_head} key-value heads evenly")
        if not np.isfinite(self.scale):
            raise self._unfit(f"scale is {self.scale}, no finite number")
        if self.softcap is not None and not self.softcap > 0:
            raise self._unfit(f"softcap is {self.softcap}, not above 0")
        if self.weights is not None and self.weights.shape != (n_head, n_query, n_key):
            raise self._unfit(
                f"weights are {self.weights.shape}, head query key are {(n_head, n_query, n_key)}"
            )
        for name in ("allowed", "bias"):
            matrix = getattr(self, name)
            if matrix is not None:
                fits = all(
                    size in (1, wanted)
                    for size, wanted in zip(matrix.shape, (n_head, n_query, n_key), strict=True)
                )
                if not fits:
                    raise self._unfit(
                        f"{name} is {matrix.shape}, head query key are {(n_head, n_query, n_key)}"
                    )

    def of_head(self, head: int) -> "LayerAttention":
        """The same layer with one head alone, and the keys and values that it reads."""
        shared = head // (len(self.query) // len(self.key))

        def part(matrix: np.ndarray | None, at: int = head) -> np.ndarray | None:
            return matrix if matrix is None or len(matrix) == 1 else matrix[at : at + 1]

        return replace(
            self,
            query=self.query[head : head + 1],
            key=self.key[shared : shared + 1],
            value=self.value[shared : shared + 1],
            allowed=part(self.allowed),
            bias=part(self.bias),
            weights=part(self.weights),
            output_weight=part(self.output_weight),
            value_products=None,
        )

    @property
    def shares_keys(self) -> bool:
        """Whether several heads read the same keys and values."""
        return len(self.key) < len(self.query)

    @property
    def is_biased(self) -> bool:
        """Whether scores contain something besides q . k; a softcap does not count, since it keeps their order."""
        return self.bias is not None and bool(self.bias.any())


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AttentionPattern(Result):
    """The attention of one head, or of all heads of a layer together, as a matrix with its two axes."""

    _IS_MATRIX: ClassVar[bool] = True
    _MOST_ROWS: ClassVar[int] = MOST_COLUMNS

    kind: Kind
    layer: int
    head: int | None
    """None for all heads of the layer together."""
    measure: Measure | Mixing = "weights"
    scores: Float[np.ndarray, "query key"] | None
    """The softmax's input: scaled, softcapped, biased and masked, minus infinity where a key is not allowed; None where
    cells have no score: several heads or tokens together, and measures other than weights."""
    weights: Float[np.ndarray, "query key"]
    """Values of the measure; for all but ``norms`` rows sum to 1 while no key is hidden."""
    allowed: Bool[np.ndarray, "query key"]
    """True where the query may see the key."""
    queries: Axis
    keys: Axis
    hidden_weight: Float[np.ndarray, " query"]
    """Sum of each row over the keys that are not shown; 0 while all keys are shown."""
    is_renormalised: bool = False
    """Whether each row is divided by its sum over the keys that are shown."""
    is_changed: bool = False
    """Whether the trace has interventions, which may put any numbers in place of weights."""
    provenance: Provenance

    def __post_init__(self) -> None:
        Record.__post_init__(self)
        shape = (len(self.queries), len(self.keys))
        for name in ("weights", "scores", "allowed"):
            matrix = getattr(self, name)
            if matrix is not None and matrix.shape != shape:
                raise self._unfit(f"query key are {shape}, {name} {matrix.shape}")
        if len(self.hidden_weight) != shape[0]:
            raise self._unfit(f"{shape[0]} queries, but {len(self.hidden_weight)} hidden weights")
        if not self.is_changed:
            self._check_numbers()

    def _check_numbers(self) -> None:
        """Refuses numbers that are no attention: a row without an allowed key is zeros, and a mean with such a row less than 1."""
        if not (np.isfinite(self.weights).all() and (self.weights >= 0).all()):
            raise self._unfit(
                f"{self.measure} are numbers of 0 or more; some here are negative, NaN or infinite"
            )
        if self.scores is not None and not (self.scores < np.inf).all():
            raise self._unfit(
                "scores are numbers, or minus infinity where a key is not allowed; some here are NaN or infinite"
            )
        if self.measure == "norms":
            return
        sums = self.weights.sum(axis=1, dtype=np.float64)
        if not self.is_renormalised:
            sums += self.hidden_weight
        if (wrong := np.flatnonzero(sums > 1 + _ROUNDING)).size:
            raise self._unfit(
                f"rows of {self.measure} sum to at most 1, with what is hidden; row {wrong[0]} sums to {sums[wrong[0]]:.4g}"
            )

    @classmethod
    def from_array(
        cls,
        weights: Any,
        tokens: Sequence[str] | Tokens,
        *,
        key_tokens: Sequence[str] | Tokens | None = None,
        kind: Kind | None = None,
    ) -> "AttentionPattern":
        """The matrix [query, key] of weights that were computed elsewhere; see `attnviz.Trace.from_arrays`.

        Raises:
            ArgumentError: no array of numbers.
            ShapeError: its shape is not that of the tokens, or its numbers are no weights.
        """
        arrays = import_module("attnviz.model.arrays")  # stands above the records
        trace = arrays.trace_of(tokens, weights=weights, key_tokens=key_tokens, kind=kind)
        pattern: AttentionPattern = trace.pattern(0, 0)
        return pattern

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> np.ndarray:
        """The weights [query key], so that numpy takes a pattern for its matrix."""
        return np.array(self.weights, dtype=dtype, copy=copy)

    def _table(self, *, scores: bool = False) -> Table:
        cells = self.scores if scores and self.scores is not None else self.weights
        rows = [
            [name, *(cell if is_allowed else "" for cell, is_allowed in zip(row, seen, strict=True))]
            for name, row, seen in zip(entry_names(self.queries), cells, self.allowed, strict=True)
        ]
        return ["query \\ key", *entry_names(self.keys)], rows

    def csv(self, *, scores: bool = False) -> bytes:
        """The matrix with queries down and keys across; cells that a query may not see are empty.

        Args:
            scores: whether to write the scores before the softmax instead of the weights, where the pattern has them.
        """
        return table_csv(*self._table(scores=scores))

    def frame(self, *, scores: bool = False) -> "pd.DataFrame":
        """The same as a DataFrame: the index has the queries, the columns are the keys, and NaN is what a query may not see.

        Raises:
            ArgumentError: pandas is not installed.
        """
        return frame_of(self._table(scores=scores), is_matrix=True)

    @property
    def is_resting_place(self) -> Bool[np.ndarray, " key"]:
        """The keys that are `resting_places`."""
        return resting_places(self.keys, self.kind)

    def arranged(self, queries: Axis, keys: Axis, *, renormalise: bool = False) -> "AttentionPattern":
        """The same matrix with other entries on its axes: words for tokens, or only some entries; itself where they are the same.

        The sum of a row over hidden keys is kept as ``hidden_weight``. With ``renormalise`` a row is divided
        by the remaining sum, so that it sums to 1 again; a row without remaining weight stays zero. Scores
        are not changed; words have none. Sums are rounded once, at the end: attnviz/viewer/cells.js has the same numbers.

        Raises:
            ShapeError: this matrix does not have all single tokens on both axes.
        """
        sides = (self.queries, queries), (self.keys, keys)
        if not all(
            len(axis.spans) == len(axis.tokens)
            and (axis.tokens is wanted.tokens or axis.tokens.equal(wanted.tokens))
            for axis, wanted in sides
        ):
            raise self._unfit("only a matrix of all single tokens can be rearranged")
        if not renormalise and all(np.array_equal(axis.spans, wanted.spans) for axis, wanted in sides):
            return self
        exact = self.weights.astype(np.float64)
        weights = arrange(exact, queries, keys)
        is_hidden = np.ones(len(self.keys), dtype=bool)
        for first, stop in keys.spans:
            is_hidden[first:stop] = False
        lost = exact[:, is_hidden].sum(axis=1, keepdims=True)
        if renormalise:
            kept = weights.sum(axis=1, keepdims=True)
            weights = np.divide(weights, kept, out=np.zeros_like(weights), where=kept != 0)
        merged = queries.is_merged or keys.is_merged
        scores = None if self.scores is None or merged else arrange(self.scores, queries, keys)
        return replace(
            self,
            scores=scores,
            weights=weights.astype(np.float32),
            allowed=arrange(self.allowed.astype(np.float32), queries, keys) > 0,
            queries=queries,
            keys=keys,
            hidden_weight=arrange(lost, queries, _COLUMN)[:, 0].astype(np.float32),
            is_renormalised=renormalise,
        )


def check_weights(weights: Float[np.ndarray, "head query key"], where: str) -> None:
    """Refuses numbers that are no attention weights of heads; a row that may see no key is zeros.

    Raises:
        ShapeError: which row is none, and what it sums to.
    """
    if (weights < 0).any():
        raise ShapeError(
            f"The weights of {where} are numbers of 0 or more; {int((weights < 0).sum()):,} are negative. Pass the softmax's output."
        )
    sums = weights.sum(axis=2, dtype=np.float64)
    wrong = np.argwhere((np.abs(sums - 1) > _ROUNDING) & (sums != 0))
    if len(wrong):
        head, row = wrong[0].tolist()
        raise ShapeError(
            f"Rows of weights sum to 1; row {row} of {where}, head {head} sums to {sums[head, row]:.4g}. Pass the softmax's output, "
            "[head, query, key]."
        )


def resting_places(keys: Axis, kind: Kind) -> Bool[np.ndarray, " key"]:
    """Keys where heads rest: special tokens, and the first token of a decoder's text (Xiao et al. 2023, arXiv:2309.17453)."""
    special: Bool[np.ndarray, " key"] = keys.is_special
    return special | (keys.positions == 0) if kind == "decoder" else special


_COLUMN = Axis.of(
    Tokens(
        text="",
        ids=np.zeros(1, dtype=np.int64),
        labels=("",),
        is_special=np.zeros(1, dtype=bool),
        segment=np.zeros(1, dtype=np.int64),
        word=np.zeros(1, dtype=np.int64),
    )
)
"""The axis of a single column."""
