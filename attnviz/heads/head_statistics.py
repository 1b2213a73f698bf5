"""Statistics of every head of a model at once: where each head attends."""

import unicodedata
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
from jaxtyping import Bool, Float, Real
from scipy.special import xlogy

from attnviz.arguments import typed
from attnviz.heads.cells import allowed_cells, distances, layer_cells, on_both_axes, places, whole_axis
from attnviz.records import Axis, Kind, Measure, bare, head_table

if TYPE_CHECKING:
    from attnviz.model.trace import Trace

CLARK = "Clark et al. 2019 (arXiv:1906.04341)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Statistic:
    """A number that every head has: its name, its meaning, and its source."""

    name: str
    title: str
    help: str
    """One sentence that explains the number to readers of a figure."""
    unit: Literal["share", "distance"]
    """``share``: 0 to 1; ``distance``: in tokens, or in words where rows are words."""
    source: str


STATISTICS: Mapping[str, Statistic] = {
    statistic.name: statistic
    for statistic in (
        Statistic(
            name="entropy",
            title="Entropy (share of ln n)",
            help="How evenly a query spreads its weight over the n keys it may see, as a share of ln n: 0 if all weight is "
            "on one key, 1 if all keys have the same weight; mean over the queries.",
            unit="share",
            source=f"{CLARK}, section 3.3; divided by ln n here",
        ),
        Statistic(
            name="distance",
            title="Distance",
            help="How far away a head attends: the mean distance of query and key, weighted by attention.",
            unit="distance",
            source="Vig and Belinkov 2019 (arXiv:1906.04284), mean distance spanned by attention",
        ),
        Statistic(
            name="self",
            title="Weight on itself",
            help="The share of its weight that a query gives to its own token, mean over the queries.",
            unit="share",
            source=f"{CLARK}, section 3.1",
        ),
        Statistic(
            name="previous",
            title="Weight on the previous token",
            help="The share of its weight that a query gives to the token before it, mean over the queries "
            "that have one.",
            unit="share",
            source=f"{CLARK}, section 3.1",
        ),
        Statistic(
            name="next",
            title="Weight on the next token",
            help="The share of its weight that a query gives to the token after it, mean over the queries that "
            "have one.",
            unit="share",
            source=f"{CLARK}, section 3.1",
        ),
        Statistic(
            name="cls",
            title="Weight on [CLS]",
            help="The share of the weight on the special token that the text begins with, [CLS] in BERT and "
            "<s> in RoBERTa.",
            unit="share",
            source=f"{CLARK}, section 3.2",
        ),
        Statistic(
            name="sep",
            title="Weight on [SEP]",
            help="The share of the weight on the special tokens after that, such as those that end the texts, [SEP] in BERT "
            "and </s> in RoBERTa.",
            unit="share",
            source=f"{CLARK}, section 3.2",
        ),
        Statistic(
            name="punctuation",
            title="Weight on punctuation",
            help="The share of the weight on tokens that are nothing but punctuation (Unicode category P).",
            unit="share",
            source=f"{CLARK}, section 3.2, for full stops and commas",
        ),
        Statistic(
            name="same_token",
            title="Weight on the same token elsewhere",
            help="The share of its weight that a query gives to other occurrences of the same token, mean "
            "over the queries whose token occurs more than once; a token with a space is another than one without.",
            unit="share",
            source="Wang et al. 2022 (arXiv:2211.00593), duplicate token heads",
        ),
        Statistic(
            name="induction",
            title="Weight on what followed the same token",
            help="The share of its weight that a query gives to tokens right after an earlier occurrence of its own token, "
            "mean over the queries whose token came before: what an induction head attends to.",
            unit="share",
            source="Olsson et al. 2022 (arXiv:2209.11895), prefix matching",
        ),
        Statistic(
            name="first",
            title="Weight on the first token",
            help="The share of its weight that a query gives to the first token of the text, mean over the queries: where "
            "heads rest in models without [CLS].",
            unit="share",
            source="Gu et al. 2024 (arXiv:2410.10781), the importance score of the first token",
        ),
        Statistic(
            name="asymmetry",
            title="Asymmetry",
            help="Whether tokens attend to each other: 0 if any two tokens give each other the same weight, 1 if no "
            "token attends back (sum of |W − Wᵀ| divided by the sum of W + Wᵀ).",
            unit="share",
            source="defined here",
        ),
        Statistic(
            name="top_tenth",
            title="Weight in the strongest tenth",
            help="The share of all weight that is in the strongest 10% of the cells: 1 if a few cells have "
            "all weight, near 0.1 for uniform weights.",
            unit="share",
            source="defined here",
        ),
    )
}
"""The statistics of a head by name, in the order in which they are offered."""


@typed
def statistics(
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
    statistic: dict[str, list[np.ndarray]] = {}  # by name, the numbers of each layer's heads
    one_text = trace.query_tokens(kind) is trace.key_tokens(kind)
    targets = {name: of for name, of in _targets(queries, keys, one_text).items() if name in names}
    apart = distances(queries, keys) if one_text and "distance" in names else None
    is_mutual = one_text and (kind or trace.kinds[0]) == "encoder" and "asymmetry" in names
    mutual = on_both_axes(queries, keys) if is_mutual else None
    if cells is None:
        cells = layer_cells(trace, kind, queries, keys, measure, as_shares=True)
    for call, weights in zip(trace.layers[kind or trace.kinds[0]], cells, strict=True):
        allowed = allowed_cells(call, queries, keys)
        of_layer: dict[str, np.ndarray] = {}
        if "entropy" in names:
            of_layer["entropy"] = _entropy(weights, allowed)
        if "top_tenth" in names:
            of_layer["top_tenth"] = _top_tenth(weights, allowed)
        for name, target in targets.items():
            counts = (allowed & target).any(axis=-1)  # [#head, query]
            of_layer[name] = _mean(np.einsum("hqk,qk->hq", weights, target.astype(np.float32)), counts)
        if apart is not None:
            spanned = np.einsum("hqk,qk->h", weights, apart)
            of_layer["distance"] = _ratio(spanned, weights.sum(axis=(1, 2)))
        if mutual is not None:
            of_layer["asymmetry"] = asymmetry(weights[:, mutual[0][:, None], mutual[1]])
        for name, numbers in of_layer.items():
            statistic.setdefault(name, []).append(numbers)
    tables = {name: head_table(statistic[name]) for name in STATISTICS if name in statistic}
    there = {name: table for name, table in tables.items() if np.isfinite(table).any()}
    for table in there.values():
        table.flags.writeable = False
    return there


def _targets(queries: Axis, keys: Axis, one_text: bool) -> dict[str, Bool[np.ndarray, "query key"]]:
    """For each statistic that is a weight, the cells that are summed."""
    shape = (len(queries), len(keys))
    targets = {name: np.broadcast_to(marked, shape) for name, marked in marked_keys(keys).items()}
    targets["same_token"] = same_tokens(queries, keys)
    if one_text:
        rows, columns_of_keys = places(queries, keys)
        step = columns_of_keys - rows[:, None]
        targets |= {"self": step == 0, "previous": step == -1, "next": step == 1}
        targets["same_token"] &= step != 0
        targets["induction"] = after_earlier_twins(whole_axis(queries, keys))[rows[:, None], columns_of_keys]
    return targets


def marked_keys(keys: Axis) -> dict[str, Bool[np.ndarray, " key"]]:
    """For each statistic that is a weight on the same keys for every query, these keys."""
    leads = keys.is_special & (keys.positions == 0)
    return {
        "cls": leads,
        "sep": keys.is_special & ~leads,
        "punctuation": np.array([_is_punctuation(label) for label in keys.labels], dtype=bool),
        "first": keys.positions == 0,
    }


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


def _entropy(
    cells: Float[np.ndarray, "head query key"], allowed: Bool[np.ndarray, "#head query key"]
) -> Float[np.ndarray, " head"]:
    """Entropy of the rows as a share of its maximum; a row that sees a single key is left out."""
    total = cells.sum(axis=-1)
    largest = np.log(np.maximum(allowed.sum(axis=-1), 1))  # [#head, query]
    # With p = w / t the entropy -sum p ln p is ln t - sum w ln w / t.
    nats = np.log(total, where=total > 0, out=np.zeros_like(total)) - _ratio(
        xlogy(cells, cells).sum(axis=-1), total
    )
    counts = (total > 0) & (largest > 0)
    return _mean(_ratio(nats, np.broadcast_to(largest, nats.shape)), counts)


def _top_tenth(
    cells: Float[np.ndarray, "head query key"], allowed: Bool[np.ndarray, "#head query key"]
) -> Float[np.ndarray, " head"]:
    """Share of the weight in the strongest tenth of the allowed cells, at least one cell."""
    n_allowed = np.broadcast_to(allowed.sum(axis=(1, 2)), len(cells))
    strongest = []
    for row, n_cell in zip(cells, n_allowed, strict=True):
        count = -(-int(n_cell) // 10)  # rounded up
        strongest.append(
            np.partition(row, row.size - count, axis=None)[row.size - count :].sum() if count else 0
        )
    return _ratio(np.array(strongest, dtype=np.float32), cells.sum(axis=(1, 2)))


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
