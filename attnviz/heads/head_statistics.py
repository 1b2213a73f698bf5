"""Statistics of every head of a model at once: where each head attends.

A statistic is one decorated function: its name in code is the function's, everything else about it stands in the decorator. The
list of all heads, profiles of many texts, their columns, links and labels follow from `STATISTICS`.
"""

import unicodedata
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int, Real

from attnviz.arguments import typed
from attnviz.heads.cells import on_both_axes
from attnviz.heads.layer_cells import AxisPair, Cells, LayerCells, layer_cells
from attnviz.heads.strongest_tenth import StrongestTenth
from attnviz.maths.quotients import quotients
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
_TINY = np.finfo(np.float32).tiny


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
    on: Literal["cells", "layer", "rows", "keys", "pairs"] = "cells"
    """What ``of`` takes and returns: some rows as `Cells` and their `Quotient`; all of them as `LayerCells` and a number for each
    head, or what is shown all rows once and then has these (`StrongestTenth`); the keys, and those whose weight is meant; or an
    `AxisPair`, and for each query and key whether its weight is meant. None for nothing."""
    of: Callable[[Any], Any]
    in_profiles: bool = True
    """Whether profiles of many texts measure it: a batch of texts gives sums over cells at once."""


class Quotient(NamedTuple):
    """What a number of a head is the quotient of, once both are summed over all rows."""

    above: Float[np.ndarray, "head row"]
    below: Real[np.ndarray, "#head row"] | Bool[np.ndarray, "#head row"]


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
def entropy(cells: Cells) -> Quotient:
    """Entropy of the rows as a share of its maximum; a row that sees a single key is left out."""
    total = cells.totals
    largest = np.log(np.maximum(cells.n_allowed, 1))  # [#head, row]
    # With p = w / t the entropy -sum p ln p is (t ln t - sum w ln w) / t.
    products = np.stack(
        [np.einsum("rk,rk->r", weights, np.log(np.maximum(weights, _TINY))) for weights in cells.weights]
    )
    nats = total * np.log(total, where=total > 0, out=np.zeros_like(total)) - products
    most = total * largest
    counts, shares = most > 0, quotients(nats, most)
    return Quotient(np.where(counts, shares, 0), counts)


@_statistic(
    title="Distance",
    help="How far away a head attends: the mean distance of query and key, weighted by attention.",
    unit="distance",
    source="Vig and Belinkov 2019 (arXiv:1906.04284), mean distance spanned by attention",
)
def distance(cells: Cells) -> Quotient | None:
    """Mean distance in entries of the text; None for two texts."""
    if cells.axes.step is None:
        return None
    apart = np.abs(cells.axes.step).astype(np.float32)
    return Quotient(np.einsum("hrk,rk->hr", cells.weights, apart), cells.totals)


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
    same = axes.query_ids[:, None] == axes.key_ids
    return np.asarray(same if axes.step is None else same & (axes.step != 0))


@_statistic(
    title="Weight on what followed the same token",
    help="The share of its weight that a query gives to tokens right after an earlier occurrence of its own token, "
    "mean over the queries whose token came before: what an induction head attends to.",
    source="Olsson et al. 2022 (arXiv:2209.11895), prefix matching",
    on="pairs",
)
def induction(axes: AxisPair) -> Bool[np.ndarray, "query key"] | None:
    """Entries right after an earlier one equal to the query's."""
    if axes.step is None:
        return None
    return np.asarray((axes.whole_ids[:, None] == axes.ids_before) & (axes.step <= 0))


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
    on="layer",
    in_profiles=False,
)
def _asymmetry(layer: LayerCells) -> Float[np.ndarray, " head"] | None:
    """`asymmetry` of the entries on both axes; None where a mask allows one direction only."""
    if not layer.axes.is_one_text or layer.kind != "encoder":
        return None
    if layer.is_held:
        return _one_way(layer, slice(0, layer.n_head))
    return np.concatenate([_one_way(layer, slice(head, head + 1)) for head in range(layer.n_head)])


def _one_way(layer: LayerCells, heads: slice) -> Float[np.ndarray, " head"]:
    """`_asymmetry` of some heads: as many rows as may be held are compared with the columns of the rows after them."""
    rows, columns = on_both_axes(layer.axes.queries, layer.axes.keys)
    are_all = len(rows) == len(layer.axes.queries) and len(columns) == len(layer.axes.keys)
    n_head = heads.stop - heads.start
    apart, total = np.zeros(n_head), np.zeros(n_head)
    n_held = layer.rows_held(n_head, len(rows))
    for first in range(0, len(rows), n_held):
        stop = min(first + n_held, len(rows))
        held = np.zeros((n_head, stop - first, len(rows)), dtype=np.float32)
        for place, weights in layer.weights(int(rows[first]), heads):
            begin, end = np.searchsorted(rows, (place.start, place.stop)).tolist()
            block = weights if are_all else weights[:, rows[begin:end] - place.start][:, :, columns]
            n_in = max(0, min(end, stop) - begin)
            held[:, begin - first : begin - first + n_in] = block[:, :n_in]
            back = held[:, :, begin + n_in : end].swapaxes(1, 2)
            apart += 2 * np.abs(block[:, n_in:, first:stop] - back).sum(axis=(1, 2))
        among = held[:, :, first:stop]
        apart += np.abs(among - among.swapaxes(1, 2)).sum(axis=(1, 2))
        total += 2 * np.abs(held).sum(axis=(1, 2))
    return quotients(apart, total)


@_statistic(
    title="Weight in the strongest tenth",
    help="The share of all weight that is in the strongest 10% of the cells: 1 if a few cells have "
    "all weight, near 0.1 for uniform weights.",
    source="defined here",
    on="rows",
    in_profiles=False,
)
def top_tenth(layer: LayerCells) -> StrongestTenth:
    """Share of the weight in the strongest tenth of the allowed cells, at least one cell."""
    return StrongestTenth(layer)


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
    axes = AxisPair(queries, keys, is_one_text=trace.query_tokens(kind) is trace.key_tokens(kind))
    marked = {statistic.name: statistic.of(keys) for statistic in asked if statistic.on == "keys"}
    given = iter(()) if cells is None else iter(cells)
    found: dict[str, list[np.ndarray]] = {}  # by name, the numbers of each layer's heads
    for layer in range(trace.n_layers(kind)):
        of_layer = layer_cells(trace, layer, kind, axes, measure, next(given, None))
        for name, numbers in _numbers(of_layer, asked, marked).items():
            found.setdefault(name, []).append(numbers)
    tables = {name: head_table(found[name]) for name in STATISTICS if name in found}
    there = {name: table for name, table in tables.items() if np.isfinite(table).any()}
    for table in there.values():
        table.flags.writeable = False
    return there


def _numbers(
    layer: LayerCells, asked: Iterable[Statistic], marked: Mapping[str, Bool[np.ndarray, " key"]]
) -> dict[str, Float[np.ndarray, " head"]]:
    """The statistics of a layer's heads.

    Args:
        marked: the keys whose weight is meant, of the statistics of keys.
    """
    sums: dict[str, np.ndarray] = {}  # by name, those above and those below
    of_rows = {statistic.name: statistic.of(layer) for statistic in asked if statistic.on == "rows"}
    of_cells, of_keys, of_pairs = (
        {statistic.name: statistic.of for statistic in asked if statistic.on == on}
        for on in ("cells", "keys", "pairs")
    )
    for cells in layer.blocks() if of_rows or of_cells or of_keys or of_pairs else ():
        for seen in of_rows.values():
            seen.add(cells)
        by_row: dict[str, Quotient | None] = {name: of(cells) for name, of in of_cells.items()}
        for name in of_keys:
            is_meant = np.flatnonzero(marked[name][: cells.weights.shape[-1]])
            by_row[name] = _of_row(
                cells.weights[:, :, is_meant].sum(axis=-1),
                np.asarray(cells.allowed[:, :, is_meant].any(axis=-1)),
            )
        by_row |= {name: _weight_on(*meant, cells) for name, meant in cells.axes.meant(of_pairs).items()}
        for name, quotient in by_row.items():
            if quotient is not None:
                summed = np.stack(
                    [
                        quotient.above.sum(axis=-1, dtype=np.float64),
                        np.broadcast_to(quotient.below, quotient.above.shape).sum(axis=-1, dtype=np.float64),
                    ]
                )
                sums[name] = sums.get(name, 0.0) + summed
    both = np.stack([*sums.values()], axis=1) if sums else np.zeros((2, 0, layer.n_head))
    numbers = dict(zip(sums, quotients(*both), strict=True))
    numbers |= {name: seen.numbers() for name, seen in of_rows.items()}
    of_layer = {statistic.name: statistic.of(layer) for statistic in asked if statistic.on == "layer"}
    return numbers | {name: number for name, number in of_layer.items() if number is not None}


def _weight_on(rows: Int[np.ndarray, " cell"], columns: Int[np.ndarray, " cell"], cells: Cells) -> Quotient:
    """The weight on some cells of each row; a row counts if it may see one of them. There are few such cells, so that they are picked out."""

    def summed(numbers: np.ndarray) -> np.ndarray:
        return np.stack(
            [np.bincount(rows, of_head[rows, columns], minlength=numbers.shape[1]) for of_head in numbers]
        )

    return _of_row(summed(cells.weights), summed(cells.allowed) > 0)


def _of_row(weights: Float[np.ndarray, "head row"], counts: Bool[np.ndarray, "#head row"]) -> Quotient:
    """The mean over the rows that count."""
    return Quotient(np.where(counts, weights, 0), counts)


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


def _is_punctuation(label: str) -> bool:
    written = bare(label.removeprefix("##"))
    return bool(written) and all(unicodedata.category(character).startswith("P") for character in written)


@typed
def asymmetry(cells: Float[np.ndarray, "*batch token token"]) -> Float[np.ndarray, "*batch"]:
    """Sum of |M - M^T| divided by the sum of |M| + |M^T|: 0 if symmetric, 1 if attention is never mutual.

    NaN for a matrix of zeros.
    """
    apart = np.abs(cells - cells.swapaxes(-1, -2)).sum(axis=(-1, -2))
    return quotients(np.asarray(apart), np.asarray(2 * np.abs(cells).sum(axis=(-1, -2))))
