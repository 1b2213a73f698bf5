"""What attnviz hands around: frozen records of read-only float32 numpy arrays.

One concept: the data, and the checks that span its fields. numpy only; imports nothing else of
attnviz but the errors. Axes are named ``layer head query key d_head token point``.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import partial
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

Role = Literal["query", "key", "value"]

Measure = Literal["weights", "norms", "rollout"]
"""What a cell holds: ``weights``, the attention weight; ``norms``, the weight times the length of what it brings
(Kobayashi et al. 2020); ``rollout``, an estimate through all layers (Abnar and Zuidema 2020). See
`attnviz.attribution`."""

MEASURES: tuple[Measure, ...] = get_args(Measure)

WEIGHTS = "attention weights"
"""The check of the weights, whose differences are absolute."""

Unit = Literal["tokens", "words"]
"""What a row or column stands for."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Record:
    """Base of the records: every array in one is made read-only."""

    def __post_init__(self) -> None:
        for one in fields(self):
            value = getattr(self, one.name)
            if isinstance(value, np.ndarray):
                value.flags.writeable = False

    def __reduce__(self) -> tuple[Callable[[], "Record"], tuple[()]]:
        """A record on its way to or from another process; a read-only mapping cannot go there as it is."""
        values = {one.name: getattr(self, one.name) for one in fields(self)}
        plain = {
            name: dict(value) if isinstance(value, MappingProxyType) else value
            for name, value in values.items()
        }
        return partial(type(self), **plain), ()

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
    masked: Mapping[int, str] = field(default_factory=dict)
    """Positions whose token was replaced by the model's mask token, with the label that stood there."""

    def __post_init__(self) -> None:
        Record.__post_init__(self)
        object.__setattr__(self, "masked", MappingProxyType(dict(self.masked)))
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

    @property
    def continues_word(self) -> Bool[np.ndarray, " token"]:
        """True where a token is a further piece of the word that the token before it belongs to."""
        same = (self.word[1:] == self.word[:-1]) & (self.segment[1:] == self.segment[:-1])
        return np.concatenate([[False], same & (self.word[1:] >= 0)])

    def label(self, first: int, stop: int) -> str:
        """The tokens from one position up to another as they would be written: pieces of a word joined."""
        continued = self.continues_word
        written = self.labels[first]
        for position in range(first + 1, stop):
            label = self.labels[position]
            written += label.removeprefix("##") if continued[position] else f" {label}"
        return written


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Axis(Record):
    """One side of a matrix: what its entries stand for, a token each or a group of neighbours each."""

    tokens: Tokens
    spans: Int[np.ndarray, "entry 2"]
    """Position of the first token of each entry, and the position after its last; in order, without overlap."""

    def __post_init__(self) -> None:
        Record.__post_init__(self)
        edges = self.spans.ravel()
        fits = len(edges) == 0 or (edges[0] >= 0 and edges[-1] <= len(self.tokens))
        fits = fits and bool((np.diff(edges)[::2] > 0).all() and (np.diff(edges)[1::2] >= 0).all())
        if not fits:  # the message is as long as the text
            self._require(
                False, f"spans {self.spans.tolist()} are not groups of {len(self.tokens)} tokens in order"
            )

    @classmethod
    def of(cls, tokens: Tokens, unit: Unit = "tokens") -> "Axis":
        """All tokens of a text, or all its words; a special token is a word of its own."""
        starts = np.flatnonzero(~tokens.continues_word) if unit == "words" else np.arange(len(tokens))
        stops = np.append(starts[1:], len(tokens))
        return cls(tokens=tokens, spans=np.column_stack([starts, stops]))

    def __len__(self) -> int:
        return len(self.spans)

    @property
    def positions(self) -> Int[np.ndarray, " entry"]:
        """Position of the first token of each entry."""
        return self.spans[:, 0]

    @property
    def labels(self) -> tuple[str, ...]:
        """What is written for each entry, literally."""
        return tuple(self.tokens.label(int(first), int(stop)) for first, stop in self.spans)

    @property
    def is_special(self) -> Bool[np.ndarray, " entry"]:
        """True for entries that the tokenizer added, such as [CLS] and [SEP]."""
        return np.asarray(self.tokens.is_special[self.positions])

    @property
    def segment(self) -> Int[np.ndarray, " entry"]:
        """0 for entries of the first text and 1 for those of the second."""
        return np.asarray(self.tokens.segment[self.positions])

    @property
    def is_merged(self) -> bool:
        """Whether an entry stands for more than one token."""
        return bool((np.diff(self.spans, axis=1) > 1).any())

    def index(self, position: int) -> int | None:
        """The entry that the token at a position belongs to; None where it is not shown."""
        found = np.flatnonzero((self.spans[:, 0] <= position) & (position < self.spans[:, 1]))
        return int(found[0]) if len(found) else None

    def where(self, keep: Bool[np.ndarray, " entry"]) -> "Axis":
        """The axis with these entries only."""
        return replace(self, spans=self.spans[keep])

    def without_special(self) -> "Axis":
        """The axis without special tokens such as [CLS] and [SEP]."""
        return self.where(~self.is_special)

    def of_segment(self, segment: int) -> "Axis":
        """The entries of the first text (0) or of the second (1) only."""
        return self.where(self.segment == segment)


def arrange(
    cells: Float[np.ndarray, "*batch query key"], queries: Axis, keys: Axis
) -> Float[np.ndarray, "*batch row column"]:
    """Cells of single tokens as cells of the entries of two axes: columns summed, rows averaged.

    So a row of weights whose columns are all kept still sums to 1.

    Source: Clark et al. 2019, "What Does BERT Look At?" (arXiv:1906.04341), section 4.1.
    """
    if queries.is_merged:
        lengths = np.diff(queries.spans, axis=1)
        cells = _summed(cells, queries, axis=-2) / lengths.astype(cells.dtype)
    else:
        cells = cells[..., queries.positions, :]
    return _summed(cells, keys, axis=-1) if keys.is_merged else cells[..., keys.positions]


def _summed(cells: np.ndarray, entries: Axis, axis: int) -> np.ndarray:
    """Sums over the tokens of each entry."""
    ahead = [(0, 0)] * cells.ndim
    ahead[axis] = (0, 1)  # so that the position after the last token is one too
    sums: np.ndarray = np.add.reduceat(np.pad(cells, ahead), entries.spans.ravel(), axis=axis)
    return np.take(sums, np.arange(0, 2 * len(entries), 2), axis=axis)


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
    output_weight: Float[np.ndarray, "head d_value d_model"] | None = None
    """W_O, which joins the heads' outputs: the model's own parameter, not a copy; None where it is not known."""
    output_bias: Float[np.ndarray, " d_model"] | None = None
    """What is added after W_O; it belongs to no head. None where W_O is not known, or has none."""
    value_products: Float[np.ndarray, "head head key"] | None = None
    """In place of W_O, what `attnviz.attribution.value_products` makes of it; in a trace from a bundle."""

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
    """The attention of one head, or of all heads of a layer together, as a matrix with its two axes."""

    kind: Kind
    layer: int
    head: int | None
    """None for all heads of the layer together."""
    measure: Measure = "weights"
    scores: Float[np.ndarray, "query key"] | None
    """Scaled, biased and masked, minus infinity where a key is not allowed; None where cells have no score:
    several heads or tokens together, and measures other than weights."""
    weights: Float[np.ndarray, "query key"]
    """What the measure says; for ``weights`` and ``rollout`` rows sum to 1 while no key is hidden."""
    allowed: Bool[np.ndarray, "query key"]
    """True where the query may see the key."""
    queries: Axis
    keys: Axis
    hidden_weight: Float[np.ndarray, " query"]
    """What each row has on keys that are not shown; 0 while all are."""
    provenance: Provenance

    def __post_init__(self) -> None:
        Record.__post_init__(self)
        shape = (len(self.queries), len(self.keys))
        for name in ("weights", "scores", "allowed"):
            matrix = getattr(self, name)
            self._require(
                matrix is None or matrix.shape == shape,
                f"query key are {shape}, {name} {None if matrix is None else matrix.shape}",
            )
        self._require(
            len(self.hidden_weight) == shape[0],
            f"{shape[0]} queries, but {len(self.hidden_weight)} hidden weights",
        )

    def arranged(self, queries: Axis, keys: Axis, *, renormalise: bool = False) -> "AttentionPattern":
        """The same matrix with other entries on its axes: words for tokens, or fewer of either.

        What a row had on keys that are not shown is kept as ``hidden_weight``. With ``renormalise`` a row
        is divided by what remains, so that it sums to 1 again; a row that lost everything stays zero.
        Scores are left as they are; words have none.

        Raises:
            ShapeError: this matrix is not one of single tokens, all of them.
        """
        for axis, wanted in ((self.queries, queries), (self.keys, keys)):
            whole = len(axis) == len(axis.tokens) and axis.tokens is wanted.tokens
            self._require(whole, "only a matrix of all single tokens can be arranged anew")
        weights = arrange(self.weights, queries, keys)
        is_hidden = np.ones(len(self.keys), dtype=bool)
        for first, stop in keys.spans:
            is_hidden[first:stop] = False
        lost = self.weights[:, is_hidden].sum(axis=1, keepdims=True, dtype=np.float32)
        if renormalise:
            kept = weights.sum(axis=1, keepdims=True)
            weights = np.divide(weights, kept, out=np.zeros_like(weights), where=kept > 0)
        merged = queries.is_merged or keys.is_merged
        scores = None if self.scores is None or merged else arrange(self.scores, queries, keys)
        return replace(
            self,
            scores=scores,
            weights=weights,
            allowed=arrange(self.allowed.astype(np.float32), queries, keys) > 0,
            queries=queries,
            keys=keys,
            hidden_weight=arrange(lost, queries, _COLUMN)[:, 0],
        )


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


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Check(Record):
    """One thing that is shown compared with the model's own: how far apart, and how far they may be."""

    name: str
    """What is compared, such as "attention weights"."""
    differences: Mapping[Kind, Float[np.ndarray, "layer #head"]]
    """Largest difference by kind of attention, of each layer, and of each head where heads are compared; in ``unit``.
    NaN counts as failed. What is compared once for a text is a single number of its first kind."""
    tolerances: Mapping[Kind, Float[np.ndarray, "layer #head"]]
    """Largest difference that rounding explains, on the same axes."""
    unit: str
    """What a difference is measured in, such as "share of the largest value"."""
    reason: str
    """Why the tolerances are what they are, with the dtype and the source of the bound."""

    def __post_init__(self) -> None:
        for name in ("differences", "tolerances"):
            tables = {kind: np.asarray(one, dtype=np.float32) for kind, one in getattr(self, name).items()}
            for table in tables.values():
                table.flags.writeable = False
            object.__setattr__(self, name, MappingProxyType(tables))
        shapes = [{kind: one.shape for kind, one in of.items()} for of in (self.differences, self.tolerances)]
        self._require(
            shapes[0] == shapes[1] and len(shapes[0]) > 0,
            f"{self.name}: differences {shapes[0]}, tolerances {shapes[1]}",
        )

    @property
    def passed(self) -> bool:
        """Whether every difference is at most its tolerance; False for NaN."""
        return all(bool((self.differences[kind] <= self.tolerances[kind]).all()) for kind in self.differences)

    @property
    def worst(self) -> tuple[Kind, int, int]:
        """Kind, layer and head of the difference that is largest beside its tolerance; a NaN before any other."""
        shares: dict[tuple[Kind, int, int], float] = {}
        for kind, found in self.differences.items():
            allowed = self.tolerances[kind]
            smallest = np.where(allowed > 0, allowed, np.finfo(np.float32).tiny)
            with np.errstate(over="ignore"):  # infinitely far from a tolerance of 0
                share = np.where(found == 0, 0.0, found / smallest)
            share = np.nan_to_num(share, nan=np.inf, posinf=np.inf)
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
class VerificationReport(Record):
    """What is shown against the model's own numbers, for one text: every layer and head."""

    checks: tuple[Check, ...]
    """One for each thing that is compared, in the order in which a forward pass computes them."""
    not_compared: Mapping[str, str] = field(default_factory=dict)
    """What could not be compared, by its name, and why; it is not shown either."""
    provenance: Provenance

    def __post_init__(self) -> None:
        object.__setattr__(self, "not_compared", MappingProxyType(dict(self.not_compared)))

    def check(self, name: str) -> Check:
        """The check of this name.

        Raises:
            KeyError: there is none.
        """
        for one in self.checks:
            if one.name == name:
                return one
        raise KeyError(name)

    @property
    def failed(self) -> tuple[Check, ...]:
        """The checks that did not pass."""
        return tuple(one for one in self.checks if not one.passed)

    @property
    def passed(self) -> bool:
        """Whether every check passed."""
        return not self.failed

    @property
    def max_abs_error(self) -> float:
        """Largest absolute difference of any attention weight of any kind, layer and head; NaN if any is."""
        return float(max(np.max(one) for one in self.check(WEIGHTS).differences.values()))

    @property
    def weight_error(self) -> Float[np.ndarray, "layer head"]:
        """Largest absolute difference of attention weights per layer and head, of the model's first kind."""
        return next(iter(self.check(WEIGHTS).differences.values()))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Faithfulness(Record):
    """How far distances from queries to keys keep the order of the scores. NaN where no query sees two keys."""

    order_correlation: float
    """Spearman correlation of score and distance, mean over the queries; -1 is a perfect map, 0 says nothing."""
    worst_correlation: float
    """The same for the query that is served worst."""
    worst_query: int | None = None
    """Position of that query; None where there is none, and for several texts together."""
    nearest_agreement: float
    """Share of queries (0 to 1) whose nearest key is the one with the highest score."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Placement(Record):
    """Vectors of one head as points in the plane or in space: queries first, then keys, then values."""

    points: Float[np.ndarray, "point axis"]
    """Two axes or three."""
    method: str
    """What placed the points: one of `attnviz.projection.METHODS`; "pca" where there were too few for it."""
    space: str
    """What the method was fed with: one of `attnviz.spaces.SPACES`. The attention map is fed with the weights
    alone; its trustworthiness is measured against the lifted vectors."""
    parameters: Mapping[str, Any]
    """What the method was run with, after it was fitted to the number of points; empty for "pca"."""
    remark: str = ""
    """What had to be changed to draw the map, in one sentence; empty when nothing was."""
    in_map: Faithfulness
    """How far the map keeps the order of the scores."""
    in_space: Faithfulness | None
    """How far the vectors that were fed in keep it, by the distance that the method was given; None for the
    attention map."""
    trustworthiness: float
    """Whether neighbours in the map are neighbours among the vectors fed in, from 0 to 1; NaN with too few points."""
    divergence: float | None = None
    """For the attention map, what it lost: the mean over the queries of the Kullback-Leibler divergence of the
    weights from those that the map implies, in nats; None for other methods."""

    def __post_init__(self) -> None:
        Record.__post_init__(self)
        object.__setattr__(self, "parameters", MappingProxyType(dict(self.parameters)))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Projection(Placement):
    """A placement with the tokens that its points belong to."""

    role: tuple[Role, ...]
    position: Int[np.ndarray, " point"]
    """Position of the token that a point belongs to, among the queries' or the keys' tokens."""
    query_tokens: Tokens
    key_tokens: Tokens
    kind: Kind
    layer: int
    head: int
    provenance: Provenance

    def __post_init__(self) -> None:
        Placement.__post_init__(self)
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
