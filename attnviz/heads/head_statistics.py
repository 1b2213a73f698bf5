"""Statistics of every head of a model at once: where each head attends.

A statistic is one decorated function: its name in code is the function's, everything else about it stands in the decorator. The
list of all heads, profiles of many texts, their columns, links and labels follow from `STATISTICS`.
"""

import unicodedata
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from jaxtyping import Bool, Float, Int, Real
from scipy.special import xlogy

from attnviz.arguments import typed
from attnviz.heads.cells import allowed_cells, distances, layer_cells, on_both_axes, places, whole_axis
from attnviz.records import Axis, Kind, Measure, bare, head_table

if TYPE_CHECKING:
    from attnviz.model.trace import Trace

CLARK = "Clark et al. 2019 (arXiv:1906.04341)"
NEAR = 0.5
"""A head attends to the previous token, the next token or the token itself if more than this share of its weight is there:
the >50% of Clark et al. 2019 (arXiv:1906.04341), section 3.1."""
DELIMITER = 0.6
"""The same for [CLS], [SEP] and punctuation; from the code that drew figure 6 of Clark et al. 2019, not stated in their
text: General_Analysis.ipynb of github.com/clarkkev/attention-analysis, commit 4e3f959."""
BROAD = 0.8
"""A head attends broadly when its entropy is more than this share of the maximum, ln n.

The same code uses 3.8 nats, on texts of at most 128 tokens: that is 0.78 of ln 128, and more than ln n for n under 45.
With 0.8, 8 to 20 of the bundled model's 72 heads are broad on texts of 6 to 202 tokens, among them about the same eight
of layer 0 each time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadNumber:
    """A number that every head has: its name, its meaning, and its source."""

    name: str
    title: str
    help: str
    """One sentence that explains the number to readers of a figure."""
    unit: Literal["share", "distance"] = "share"
    """``share``: 0 to 1; ``distance``: in tokens, or in words where rows are words."""
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Statistic(HeadNumber):
    """A number of every head on a text, and what it is computed from."""

    label: str = ""
    """What a head is called whose number is above `limit`; empty for nothing."""
    limit: float = np.inf
    on: Literal["cells", "keys", "pairs"] = "cells"
    """What ``of`` takes and returns: a layer's `Cells` and a number for each head; the keys, and those whose weight is meant; or
    an `AxisPair`, and for each query and key whether its weight is meant, None for nothing."""
    of: Callable[[Any], Any]
    in_profiles: bool = True
    """Whether profiles of many texts measure it: a batch of texts gives sums over cells at once."""


class AxisPair:
    """Rows and columns of a matrix, and how far they are apart if they are of one text."""

    def __init__(self, queries: Axis, keys: Axis, *, is_one_text: bool) -> None:
        self.queries, self.keys, self.is_one_text = queries, keys, is_one_text

    @cached_property
    def step(self) -> Int[np.ndarray, "query key"] | None:
        """Place of the key minus that of the query, in entries of the whole text; None for two texts."""
        if not self.is_one_text:
            return None
        rows, columns = places(self.queries, self.keys)
        return np.asarray(columns - rows[:, None])

    def at_step(self, step: int) -> Bool[np.ndarray, "query key"] | None:
        """True for keys so many entries after the query; None for two texts."""
        return None if self.step is None else self.step == step


@dataclass(frozen=True, slots=True, kw_only=True)
class Cells:
    """The cells of a layer's heads."""

    weights: Float[np.ndarray, "head query key"]
    allowed: Bool[np.ndarray, "#head query key"]
    axes: AxisPair
    kind: Kind


STATISTICS: dict[str, Statistic] = {}
"""The statistics of a head by name, in the order in which they are offered."""


def _statistic(**declared: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Declares a function as a statistic, which is called as the function."""

    def declare(function: Callable[..., Any]) -> Callable[..., Any]:
        name = function.__name__.strip("_")
        STATISTICS[name] = Statistic(name=name, of=function, **declared)
        return function

    return declare


@_statistic(
    title="Entropy (share of ln n)",
    help="How evenly a query spreads its weight over the n keys it may see, as a share of ln n: 0 if all weight is "
    "on one key, 1 if all keys have the same weight; mean over the queries.",
    source=f"{CLARK}, section 3.3; divided by ln n here",
    label="broad",
    limit=BROAD,
)
def entropy(cells: Cells) -> Float[np.ndarray, " head"]:
    """Entropy of the rows as a share of its maximum; a row that sees a single key is left out."""
    total = cells.weights.sum(axis=-1)
    largest = np.log(np.maximum(cells.allowed.sum(axis=-1), 1))  # [#head, query]
    # With p = w / t the entropy -sum p ln p is ln t - sum w ln w / t.
    nats = np.log(total, where=total > 0, out=np.zeros_like(total)) - _ratio(
        xlogy(cells.weights, cells.weights).sum(axis=-1), total
    )
    counts = (total > 0) & (largest > 0)
    return _mean(_ratio(nats, np.broadcast_to(largest, nats.shape)), counts)


@_statistic(
    title="Distance",
    help="How far away a head attends: the mean distance of query and key, weighted by attention.",
    unit="distance",
    source="Vig and Belinkov 2019 (arXiv:1906.04284), mean distance spanned by attention",
)
def distance(cells: Cells) -> Float[np.ndarray, " head"] | None:
    """Mean distance in entries of the text; None for two texts."""
    axes = cells.axes
    if not axes.is_one_text:
        return None
    spanned = np.einsum("hqk,qk->h", cells.weights, distances(axes.queries, axes.keys))
    return _ratio(spanned, cells.weights.sum(axis=(1, 2)))


@_statistic(
    title="Weight on itself",
    help="The share of its weight that a query gives to its own token, mean over the queries.",
    source=f"{CLARK}, section 3.1",
    label="self",
    limit=NEAR,
    on="pairs",
)
def self_(axes: AxisPair) -> Bool[np.ndarray, "query key"] | None:
    """The query's own entry."""
    return axes.at_step(0)


@_statistic(
    title="Weight on the previous token",
    help="The share of its weight that a query gives to the token before it, mean over the queries "
    "that have one.",
    source=f"{CLARK}, section 3.1",
    label="previous",
    limit=NEAR,
    on="pairs",
)
def previous(axes: AxisPair) -> Bool[np.ndarray, "query key"] | None:
    """The entry before the query."""
    return axes.at_step(-1)


@_statistic(
    title="Weight on the next token",
    help="The share of its weight that a query gives to the token after it, mean over the queries that have one.",
    source=f"{CLARK}, section 3.1",
    label="next",
    limit=NEAR,
    on="pairs",
)
def next_(axes: AxisPair) -> Bool[np.ndarray, "query key"] | None:
    """The entry after the query."""
    return axes.at_step(1)


@_statistic(
    title="Weight on [CLS]",
    help="The share of the weight on the special token that the text begins with, [CLS] in BERT and <s> in RoBERTa.",
    source=f"{CLARK}, section 3.2",
    label="[CLS]",
    limit=DELIMITER,
    on="keys",
)
def cls(keys: Axis) -> Bool[np.ndarray, " key"]:
    """The special token at the beginning."""
    return np.asarray(keys.is_special & (keys.positions == 0))


@_statistic(
    title="Weight on [SEP]",
    help="The share of the weight on the special tokens after that, such as those that end the texts, [SEP] in BERT "
    "and </s> in RoBERTa.",
    source=f"{CLARK}, section 3.2",
    label="[SEP]",
    limit=DELIMITER,
    on="keys",
)
def sep(keys: Axis) -> Bool[np.ndarray, " key"]:
    """The other special tokens."""
    return np.asarray(keys.is_special & (keys.positions != 0))


@_statistic(
    title="Weight on punctuation",
    help="The share of the weight on tokens that are nothing but punctuation (Unicode category P).",
    source=f"{CLARK}, section 3.2, for full stops and commas",
    label="punctuation",
    limit=DELIMITER,
    on="keys",
)
def punctuation(keys: Axis) -> Bool[np.ndarray, " key"]:
    """Entries of punctuation alone."""
    return np.array([_is_punctuation(label) for label in keys.labels], dtype=bool)


@_statistic(
    title="Weight on the same token elsewhere",
    help="The share of its weight that a query gives to other occurrences of the same token, mean "
    "over the queries whose token occurs more than once; a token with a space is another than one without.",
    source="Wang et al. 2022 (arXiv:2211.00593), duplicate token heads",
    on="pairs",
)
def same_token(axes: AxisPair) -> Bool[np.ndarray, "query key"]:
    """Entries equal to the query's, except the query's own."""
    same = same_tokens(axes.queries, axes.keys)
    return same if axes.step is None else same & (axes.step != 0)


@_statistic(
    title="Weight on what followed the same token",
    help="The share of its weight that a query gives to tokens right after an earlier occurrence of its own token, "
    "mean over the queries whose token came before: what an induction head attends to.",
    source="Olsson et al. 2022 (arXiv:2209.11895), prefix matching",
    on="pairs",
)
def induction(axes: AxisPair) -> Bool[np.ndarray, "query key"] | None:
    """Entries right after an earlier one equal to the query's."""
    if not axes.is_one_text:
        return None
    rows, columns = places(axes.queries, axes.keys)
    of_whole = after_earlier_twins(whole_axis(axes.queries, axes.keys))
    return np.asarray(of_whole[rows[:, None], columns])


@_statistic(
    title="Weight on the first token",
    help="The share of its weight that a query gives to the first token of the text, mean over the queries: where "
    "heads rest in models without [CLS].",
    source="Gu et al. 2024 (arXiv:2410.10781), the importance score of the first token",
    on="keys",
)
def first(keys: Axis) -> Bool[np.ndarray, " key"]:
    """The entry at the beginning."""
    return np.asarray(keys.positions == 0)


@_statistic(
    title="Asymmetry",
    help="Whether tokens attend to each other: 0 if any two tokens give each other the same weight, 1 if no "
    "token attends back (sum of |W − Wᵀ| divided by the sum of W + Wᵀ).",
    source="defined here",
    in_profiles=False,
)
def _asymmetry(cells: Cells) -> Float[np.ndarray, " head"] | None:
    """`asymmetry` of the entries on both axes; None where a mask allows one direction only."""
    if not cells.axes.is_one_text or cells.kind != "encoder":
        return None
    rows, columns = on_both_axes(cells.axes.queries, cells.axes.keys)
    return asymmetry(cells.weights[:, rows[:, None], columns])


@_statistic(
    title="Weight in the strongest tenth",
    help="The share of all weight that is in the strongest 10% of the cells: 1 if a few cells have "
    "all weight, near 0.1 for uniform weights.",
    source="defined here",
    in_profiles=False,
)
def top_tenth(cells: Cells) -> Float[np.ndarray, " head"]:
    """Share of the weight in the strongest tenth of the allowed cells, at least one cell."""
    n_allowed = np.broadcast_to(cells.allowed.sum(axis=(1, 2)), len(cells.weights))
    strongest = []
    for row, n_cell in zip(cells.weights, n_allowed, strict=True):
        count = -(-int(n_cell) // 10)  # rounded up
        strongest.append(
            np.partition(row, row.size - count, axis=None)[row.size - count :].sum() if count else 0
        )
    return _ratio(np.array(strongest, dtype=np.float32), cells.weights.sum(axis=(1, 2)))


LABELS: Mapping[str, str] = {
    statistic.name: statistic.label
    for statistic in sorted(STATISTICS.values(), key=lambda statistic: statistic.limit)
    if statistic.label
}
"""By name of a statistic, the label of a head for which it is above its limit."""


@typed
def statistics_on(
    trace: "Trace",
    kind: Kind | None,
    queries: Axis,
    keys: Axis,
    *,
    measure: Measure = "weights",
    names: Collection[str] = STATISTICS,
    cells: Iterable[Float[np.ndarray, "head query key"]] | None = None,
) -> dict[str, Float[np.ndarray, "layer head"]]:
    """Numbers of `STATISTICS` for every head, where they are defined; NaN for a head that has none or does not exist.

    Undefined numbers are left out: the weight on [CLS] for a model without special tokens, the weight on the same
    token for a text that repeats no token, distance and induction for cross-attention, and the asymmetry for decoders, whose
    mask allows one direction only. A query counts towards a weight if it may see such a key. Weights on hidden keys count too,
    except for ``entropy``, ``distance``, ``asymmetry`` and ``top_tenth``, which take the shown cells only.

    Args:
        queries: rows, all or some tokens or words, which are the unit of distances and neighbours.
        measure: ``weights``, or ``norms``, whose rows are first divided by their sums to be shares.
        names: the numbers that are asked for, all of them by default.
        cells: those of each layer, arranged by the axes, each row adding up to 1; computed where they are not given.

    Raises:
        SelectionError: no such kind or measure, or rollout, which has no number for a head.
    """
    asked = [statistic for statistic in STATISTICS.values() if statistic.name in names]
    of_kind = kind or trace.kinds[0]
    axes = AxisPair(queries, keys, is_one_text=trace.query_tokens(kind) is trace.key_tokens(kind))
    targets = {
        name: target.astype(np.float32) for name, target in targets_of(axes, asked).items()
    }  # [query, key]
    if cells is None:
        cells = layer_cells(trace, kind, queries, keys, measure, as_shares=True)
    found: dict[str, list[np.ndarray]] = {}  # by name, the numbers of each layer's heads
    for call, weights in zip(trace.layers[of_kind], cells, strict=True):
        of_layer = Cells(weights=weights, allowed=allowed_cells(call, queries, keys), axes=axes, kind=of_kind)
        for statistic in asked:
            numbers = None
            if statistic.on == "cells":
                numbers = statistic.of(of_layer)
            elif (target := targets.get(statistic.name)) is not None:
                counts = np.any(of_layer.allowed & (target > 0), axis=-1)  # [#head, query]
                numbers = _mean(np.einsum("hqk,qk->hq", weights, target), counts)
            if numbers is not None:
                found.setdefault(statistic.name, []).append(numbers)
    tables = {name: head_table(numbers) for name, numbers in found.items()}
    there = {name: table for name, table in tables.items() if np.isfinite(table).any()}
    for table in there.values():
        table.flags.writeable = False
    return there


def targets_of(
    axes: AxisPair, asked: Iterable[Statistic] = STATISTICS.values()
) -> dict[str, Bool[np.ndarray, "query key"]]:
    """For each statistic that is a weight on some keys, the cells that are summed."""
    shape = (len(axes.queries), len(axes.keys))
    of = {
        statistic.name: statistic.of(axes.keys if statistic.on == "keys" else axes)
        for statistic in asked
        if statistic.on != "cells"
    }
    return {name: np.broadcast_to(target, shape) for name, target in of.items() if target is not None}


@typed
def labels(
    numbers: Mapping[str, Float[np.ndarray, "layer head"]],
    *,
    near: float = NEAR,
    delimiter: float = DELIMITER,
    broad: float = BROAD,
) -> dict[str, Bool[np.ndarray, "layer head"]]:
    """For each label of `LABELS`, which heads match its pattern; a head may match several patterns, or none.

    False where the statistic is NaN, for a head without that number or a place without a head.

    Args:
        numbers: result of `statistics`; a label whose statistic is missing is left out.
        near: weight that previous, next and self must exceed.
        delimiter: the same for [CLS], [SEP] and punctuation.
        broad: entropy that must be exceeded, as a share of the maximum.

    Source: the kinds of heads in figure 6 of Clark et al. 2019 (arXiv:1906.04341), which has no "self". The code of that
    figure (see `DELIMITER`) calls a head broad from an entropy of 3.8 nats on, which a text of fewer than 45 tokens cannot
    reach (e^3.8 = 44.7); here entropy is therefore measured as a share of ln n.
    """
    asked = {NEAR: near, DELIMITER: delimiter, BROAD: broad}
    return {
        label: numbers[name] > asked[STATISTICS[name].limit]
        for name, label in LABELS.items()
        if name in numbers
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Matched:
    """How many heads match a known pattern, and how many match each."""

    n_matched: int
    """Heads that match one pattern or more."""
    counts: tuple[tuple[str, int], ...]
    """Label and number of heads of each pattern that any head matches, most heads first; ties in the order of `LABELS`."""


def matched(borne: Mapping[str, Bool[np.ndarray, "layer head"]]) -> Matched:
    """Counts of what `labels` found."""
    counts = [(label, int(bears.sum())) for label, bears in borne.items()]
    return Matched(
        n_matched=int(np.any(list(borne.values()), axis=0).sum()),
        counts=tuple(sorted(((label, n) for label, n in counts if n), key=lambda match: -match[1])),
    )


def after_earlier_twins(axis: Axis) -> Bool[np.ndarray, "query key"]:
    """True where a key comes right after an earlier entry equal to the query, for all entries of one text."""
    follows = np.zeros((len(axis), len(axis)), dtype=bool)
    follows[:, 1:] = np.tril(same_tokens(axis, axis), k=-1)[:, :-1]
    return follows


def same_tokens(queries: Axis, keys: Axis) -> Bool[np.ndarray, "query key"]:
    """True where a query's and a key's entry have the same ids, so that "Mary" and "␣Mary" differ; False for special tokens."""
    sides = queries.ids, keys.ids
    numbers = {entry: number for number, entry in enumerate({*sides[0], *sides[1]})}
    rows, columns = (np.array([numbers[entry] for entry in ids], dtype=np.int64) for ids in sides)
    same = rows[:, None] == columns
    return np.asarray(same & ~queries.is_special[:, None] & ~keys.is_special)


def _is_punctuation(label: str) -> bool:
    written = bare(label.removeprefix("##"))
    return bool(written) and all(unicodedata.category(character).startswith("P") for character in written)


def _mean(
    numbers: Float[np.ndarray, "head query"], counts: Bool[np.ndarray, "#head query"]
) -> Float[np.ndarray, " head"]:
    """Mean over the queries that count; NaN where none does."""
    n_counting = np.broadcast_to(counts, numbers.shape).sum(axis=-1)
    return _ratio(np.where(counts, numbers, 0).sum(axis=-1), n_counting)


@typed
def asymmetry(cells: Float[np.ndarray, "*batch token token"]) -> Float[np.ndarray, "*batch"]:
    """Sum of |M - M^T| divided by the sum of |M| + |M^T|: 0 if symmetric, 1 if attention is never mutual.

    NaN for a matrix of zeros.
    """
    apart = np.abs(cells - cells.swapaxes(-1, -2)).sum(axis=(-1, -2))
    return _ratio(np.asarray(apart), np.asarray(2 * np.abs(cells).sum(axis=(-1, -2))))


def _ratio(above: Real[np.ndarray, "*axes"], below: Real[np.ndarray, "*#axes"]) -> Float[np.ndarray, "*axes"]:
    """The quotient; NaN where the divisor is 0."""
    full = np.full(above.shape, np.nan, dtype=np.float32)
    quotient: np.ndarray = np.divide(above, below, out=full, where=below > 0, casting="same_kind")
    return quotient
