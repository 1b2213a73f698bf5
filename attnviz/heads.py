"""Numbers for every head of a model at once: what a head looks at, how alike two heads are, and who links a pair.

One concept: from the patterns of all heads to a few numbers each. The layers are gone through one by one, so
that the weights of one layer at a time are held, however many there are.
"""

import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.special import xlogy

from attnviz.errors import ShapeError
from attnviz.records import AttentionPattern, Axis, Kind, Measure, Record, arrange, check_index

if TYPE_CHECKING:
    from attnviz.trace import Trace

_CLARK = "Clark et al. 2019 (arXiv:1906.04341)"

NEAR = 0.5
"""A head attends to the token before, the next or itself when more than this share of its weight lies there;
the >50% of Clark et al. 2019 (arXiv:1906.04341), section 3.1."""
DELIMITER = 0.6
"""The same for [CLS], [SEP] and punctuation; a threshold of the code that drew figure 6 of Clark et al. 2019, which their
text does not state: General_Analysis.ipynb of github.com/clarkkev/attention-analysis, commit 4e3f959."""
BROAD = 0.8
"""A head attends broadly when its entropy is more than this share of the largest there could be, ln n.

The same code takes 3.8 nats, on texts of at most 128 tokens: there it is .78 of ln n, while under 45 tokens ln n itself
is less. Of the embedded model's 72 heads .8 keeps 8 to 20 on texts of 6 to 202 tokens, and the same eight of layer 0 or
so on each."""

MOST_COMPARED = 150_000_000
"""Weights that `divergences` compares at most: pairs of heads x rows x keys; takes about a second."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Statistic:
    """A number that every head has: what it is called, what it means, and where it comes from."""

    name: str
    title: str
    help: str
    """One sentence for people who look at a picture of it."""
    unit: Literal["share", "distance"]
    """``share``: 0 to 1; ``distance``: in tokens, or in words where a row stands for a word."""
    source: str


STATISTICS: Mapping[str, Statistic] = {
    one.name: one
    for one in (
        Statistic(
            name="entropy",
            title="Entropy (share of ln n)",
            help="How evenly a query spreads its weight over the n keys it may see, as a share of ln n: 0 all on one key, 1 the "
            "same on each; mean over the queries.",
            unit="share",
            source=f"{_CLARK}, section 3.3; divided by ln n here",
        ),
        Statistic(
            name="distance",
            title="Distance",
            help="How far a head looks: the mean distance of query and key, counted by weight.",
            unit="distance",
            source="Vig and Belinkov 2019 (arXiv:1906.04284), mean distance spanned by attention",
        ),
        Statistic(
            name="self",
            title="Weight on itself",
            help="The share of its weight that a query gives to its own token, mean over the queries.",
            unit="share",
            source=f"{_CLARK}, section 3.1",
        ),
        Statistic(
            name="previous",
            title="Weight on the previous token",
            help="The share of its weight that a query gives to the token before it, mean over the queries "
            "that have one.",
            unit="share",
            source=f"{_CLARK}, section 3.1",
        ),
        Statistic(
            name="next",
            title="Weight on the next token",
            help="The share of its weight that a query gives to the token after it, mean over the queries that "
            "have one.",
            unit="share",
            source=f"{_CLARK}, section 3.1",
        ),
        Statistic(
            name="cls",
            title="Weight on [CLS]",
            help="The share of the weight on the special token that the text begins with, [CLS] in BERT and "
            "<s> in RoBERTa.",
            unit="share",
            source=f"{_CLARK}, section 3.2",
        ),
        Statistic(
            name="sep",
            title="Weight on [SEP]",
            help="The share of the weight on the special tokens that end the texts, [SEP] in BERT and </s> in "
            "RoBERTa.",
            unit="share",
            source=f"{_CLARK}, section 3.2",
        ),
        Statistic(
            name="punctuation",
            title="Weight on punctuation",
            help="The share of the weight on tokens that are nothing but punctuation (Unicode category P).",
            unit="share",
            source=f"{_CLARK}, section 3.2, for full stops and commas",
        ),
        Statistic(
            name="same_token",
            title="Weight on the same token elsewhere",
            help="The share of its weight that a query gives to other places where the same token stands, mean "
            "over the queries whose token stands elsewhere too.",
            unit="share",
            source="Wang et al. 2022 (arXiv:2211.00593), duplicate token heads",
        ),
        Statistic(
            name="asymmetry",
            title="Asymmetry",
            help="Whether two tokens look at each other: 0 when each gives the other the same weight, 1 when one "
            "looks and the other never looks back (sum of |W − Wᵀ| divided by the sum of W + Wᵀ).",
            unit="share",
            source="defined here",
        ),
        Statistic(
            name="top_tenth",
            title="Weight in the strongest tenth",
            help="The share of all weight that lies in the strongest 10 % of the cells: 1 for a few bright "
            "cells, near 0.1 for an even matrix.",
            unit="share",
            source="defined here",
        ),
    )
}
"""The numbers of a head by name, in the order they are offered."""

LABELS: Mapping[str, str] = {
    "previous": "previous",
    "next": "next",
    "self": "self",
    "cls": "[CLS]",
    "sep": "[SEP]",
    "punctuation": "punctuation",
    "entropy": "broad",
}
"""What a head is called whose number of this name is large."""


def statistics(
    trace: "Trace",
    kind: Kind | None,
    queries: Axis,
    keys: Axis,
    *,
    measure: Measure = "weights",
) -> dict[str, Float[np.ndarray, "layer head"]]:
    """Every number of `STATISTICS` for every head, as far as there is one; NaN for a head that has none.

    Left out are numbers of what is not there: a model without special tokens has no weight on [CLS], a text
    that repeats no token none on the same token, cross-attention no distance, decoders no asymmetry, since
    their mask lets one direction only. A query counts for a weight if it may see such a key. Weights on
    hidden keys count as weight, except for ``entropy``, ``distance``, ``asymmetry`` and ``top_tenth``, which
    are about the cells that are shown.

    Args:
        queries: rows, all or some tokens or words; distances and neighbours are counted in them.
        measure: ``weights``, or ``norms``, whose rows are first divided by their sums to be shares too.

    Raises:
        SelectionError: no such kind or measure, or rollout, which has no number for a head.
    """
    shape = (trace.n_layers(kind), trace.n_heads(kind))
    found = {name: np.full(shape, np.nan, dtype=np.float32) for name in STATISTICS}
    one_text = trace.query_tokens(kind) is trace.key_tokens(kind)
    targets = _targets(queries, keys, one_text)
    away = _away(queries, keys) if one_text else None
    mutual = _mutual(queries, keys) if one_text and (kind or trace.kinds[0]) == "encoder" else None
    for layer, cells in enumerate(_layers(trace, kind, queries, keys, measure, as_shares=True)):
        allowed = _allowed(trace, layer, kind, queries, keys)
        found["entropy"][layer] = _entropy(cells, allowed)
        found["top_tenth"][layer] = _top_tenth(cells, allowed)
        for name, target in targets.items():
            counts = (allowed & target).any(axis=-1)  # [#head, query]
            found[name][layer] = _mean(np.einsum("hqk,qk->hq", cells, target.astype(np.float32)), counts)
        if away is not None:
            spanned = np.einsum("hqk,qk->h", cells, away)
            found["distance"][layer] = _ratio(spanned, cells.sum(axis=(1, 2)))
        if mutual is not None:
            found["asymmetry"][layer] = asymmetry(cells[:, mutual[0][:, None], mutual[1]])
    there = {name: numbers for name, numbers in found.items() if np.isfinite(numbers).any()}
    for numbers in there.values():
        numbers.flags.writeable = False
    return there


def asymmetry(cells: Float[np.ndarray, "*batch token token"]) -> Float[np.ndarray, "*batch"]:
    """Sum of |M - M^T| divided by the sum of |M| + |M^T|: 0 if symmetric, 1 if attention is never mutual.

    NaN for a matrix of zeros, which looks at nothing.
    """
    apart = np.abs(cells - cells.swapaxes(-1, -2)).sum(axis=(-1, -2))
    return _ratio(np.asarray(apart), np.asarray(2 * np.abs(cells).sum(axis=(-1, -2))))


def labels(
    found: Mapping[str, Float[np.ndarray, "layer head"]],
    *,
    near: float = NEAR,
    delimiter: float = DELIMITER,
    broad: float = BROAD,
) -> dict[str, Bool[np.ndarray, "layer head"]]:
    """For each label of `LABELS` which heads bear it; a head may bear several, or none.

    Args:
        found: what `statistics` found; a label whose number is not there is left out.
        near: least weight, exclusive, for previous, next and self.
        delimiter: the same for [CLS], [SEP] and punctuation.
        broad: least entropy as a share of the largest there could be.

    Source: the kinds of heads in figure 6 of Clark et al. 2019 (arXiv:1906.04341), without "self", which is not among
    them. The code of that figure (see `DELIMITER`) calls a head broad from an entropy of 3.8 nats on, which a text of
    fewer than 45 tokens cannot reach (e^3.8 = 44.7); so it is measured by its share of ln n here.
    """
    limits = dict.fromkeys(("previous", "next", "self"), near)
    limits |= dict.fromkeys(("cls", "sep", "punctuation"), delimiter) | {"entropy": broad}
    return {label: found[name] > limits[name] for name, label in LABELS.items() if name in found}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Divergences(Record):
    """How unlike any two heads are: the Jensen-Shannon divergence of their rows, in bits, mean over the rows.

    0 for two heads that do the same, 1 for two that never look at the same key. Heads are numbered
    ``layer x n_heads + head``.
    """

    divergence: Float[np.ndarray, "head head"]
    n_heads: int
    """Heads of a layer."""
    n_rows: int
    """Queries whose rows were compared."""
    n_queries: int
    """Queries there are."""

    def nearest(self, layer: int, head: int, count: int) -> list[tuple[int, int, float]]:
        """The heads most like this one, nearest first: layer, head and divergence."""
        check_index("head", head, self.n_heads, "a layer")
        check_index("layer", layer, len(self.divergence) // self.n_heads, "this model")
        this = layer * self.n_heads + head
        row = self.divergence[this]
        order = [int(one) for one in np.argsort(row, kind="stable") if one != this]
        return [(*divmod(one, self.n_heads), float(row[one])) for one in order[:count]]

    def map(self) -> Float[np.ndarray, "head 2"]:
        """Heads as points in the plane, near when their rows are alike; the same for the same numbers.

        Metric multidimensional scaling of the divergences (SMACOF, scikit-learn 1.9.1, MDS), started from
        classical scaling, so that nothing is random.

        Source: Clark et al. 2019 (arXiv:1906.04341), section 6 and figure 6.
        """
        if not self.divergence.any():  # one head, or all alike
            return np.zeros((len(self.divergence), 2), dtype=np.float32)
        from sklearn.manifold import MDS, ClassicalMDS  # slow to import
        from threadpoolctl import threadpool_limits

        distances = self.divergence.astype(np.float64)
        start = np.zeros((len(distances), 2))
        with np.errstate(invalid="ignore"):  # an eigenvalue of few heads may be a hair below 0
            axes = ClassicalMDS(metric="precomputed").fit_transform(distances)
        start[:, : axes.shape[1]] = np.nan_to_num(axes)
        scaling = MDS(metric="precomputed", init="random", n_init=1, max_iter=300, eps=1e-6)
        with threadpool_limits(1, user_api="openmp"):  # for the reason given in attnviz.projection
            points: np.ndarray = scaling.fit_transform(distances, init=start)
        return points.astype(np.float32)


def divergences(
    trace: "Trace", kind: Kind | None, queries: Axis, keys: Axis, *, most_compared: int = MOST_COMPARED
) -> Divergences:
    """How unlike any two heads of all layers are on this text.

    Rows are divided by what they have on the keys that are shown. Of a long text evenly spaced rows are
    compared, as many as ``most_compared`` weights allow; rows that see no shown key in some head are left out.

    Source: Clark et al. 2019 (arXiv:1906.04341), section 6: the sum over the tokens of JS(H_i(x), H_j(x));
    here their mean, so that texts of any length compare.
    """
    n_heads = trace.n_layers(kind) * trace.n_heads(kind)
    n_pairs = n_heads * (n_heads - 1) // 2
    n_rows = min(len(queries), max(1, most_compared // max(1, n_pairs * len(keys))))
    chosen = np.zeros(len(queries), dtype=bool)
    chosen[np.linspace(0, len(queries) - 1, n_rows).round().astype(int)] = True
    rows = np.concatenate(list(_layers(trace, kind, queries.where(chosen), keys, "weights")))
    total = rows.sum(axis=-1, keepdims=True)  # [head, query, 1]
    compared = (total > 0).all(axis=(0, 2))
    if not compared.any():
        raise ShapeError("No query sees a key that is shown in every head; show more keys to compare heads.")
    rows = rows[:, compared] / total[:, compared]
    entropy = _bits(rows)  # [head]
    divergence = np.zeros((n_heads, n_heads), dtype=np.float32)
    for one in range(n_heads - 1):
        mixed = _bits(0.5 * (rows[one] + rows[one + 1 :]))
        divergence[one, one + 1 :] = mixed - 0.5 * (entropy[one] + entropy[one + 1 :])
    divergence = np.maximum(divergence + divergence.T, 0)  # rounding leaves a hair below 0
    return Divergences(
        divergence=divergence,
        n_heads=trace.n_heads(kind),
        n_rows=int(compared.sum()),
        n_queries=len(queries),
    )


def pair_weights(
    trace: "Trace",
    kind: Kind | None,
    query: tuple[int, int],
    key: tuple[int, int],
    *,
    measure: Measure = "weights",
) -> Float[np.ndarray, "layer head"]:
    """What every head gives from one group of tokens to another: mean over its queries of the sum over its keys.

    Args:
        query: position of the group's first token, and the position after its last; (7, 8) for token 7.
        key: the same, of the keys.

    Raises:
        ShapeError: a group that is empty or not within the text.
        SelectionError: no such kind or measure, or rollout, which has no number for a head.

    Source: Clark et al. 2019, "What Does BERT Look At?" (arXiv:1906.04341), section 4.1.
    """
    queries = Axis(tokens=trace.query_tokens(kind), spans=np.array([query]))
    keys = Axis(tokens=trace.key_tokens(kind), spans=np.array([key]))
    weights: np.ndarray = np.stack([cells[:, 0, 0] for cells in _layers(trace, kind, queries, keys, measure)])
    weights.flags.writeable = False
    return weights


def ranked(
    numbers: Float[np.ndarray, "layer head"], *, largest_first: bool = True
) -> Int[np.ndarray, "rank 2"]:
    """Layer and head of every head in the order of its number; equal ones from the text upwards, NaN last."""
    flat = -numbers.ravel() if largest_first else numbers.ravel()
    order = np.argsort(flat, kind="stable")  # NaN is sorted to the end
    return np.column_stack(np.unravel_index(order, numbers.shape))


class Pair(NamedTuple):
    """A cell of a pattern: its row, its column and what it holds."""

    row: int
    column: int
    weight: float


def strongest_pairs(
    pattern: AttentionPattern, count: int, *, special: bool = True, itself: bool = True
) -> list[Pair]:
    """The cells of a pattern that hold most, strongest first; cells that hold nothing are no pairs.

    Args:
        special: whether special tokens such as [CLS] and [SEP] count, on either side.
        itself: whether a token's or word's weight on itself counts.
    """
    weights = pattern.weights.copy()
    if not special:
        weights[pattern.queries.is_special] = 0
        weights[:, pattern.keys.is_special] = 0
    if not itself and pattern.queries.tokens is pattern.keys.tokens:
        weights[_away(pattern.queries, pattern.keys) == 0] = 0
    order = np.argsort(-weights, axis=None, kind="stable")[:count]
    cells = zip(*np.unravel_index(order, weights.shape), strict=True)
    return [
        Pair(int(row), int(column), float(weights[row, column]))
        for row, column in cells
        if weights[row, column] > 0
    ]


def _layers(
    trace: "Trace", kind: Kind | None, queries: Axis, keys: Axis, measure: Measure, *, as_shares: bool = False
) -> Iterator[Float[np.ndarray, "head query key"]]:
    """Cells of each layer, arranged; with ``as_shares`` each row is divided by all that it holds."""
    for layer in range(trace.n_layers(kind)):
        cells = trace.layer_weights(layer, kind, measure=measure)
        if as_shares and measure != "weights":  # weights are shares already
            cells = _ratio(cells, cells.sum(axis=-1, keepdims=True), otherwise=0.0)
        yield arrange(cells, queries, keys)


def _allowed(
    trace: "Trace", layer: int, kind: Kind | None, queries: Axis, keys: Axis
) -> Bool[np.ndarray, "#head query key"]:
    """Which keys a query may see, any token of the one any token of the other."""
    allowed = trace.attention(layer, kind).allowed
    if allowed is None:
        return np.ones((1, len(queries), len(keys)), dtype=bool)
    n_query = len(trace.query_tokens(kind))
    whole = np.broadcast_to(allowed, (len(allowed), n_query, allowed.shape[-1]))
    seen: np.ndarray = arrange(whole.astype(np.float32), queries, keys) > 0
    return seen


def _places(queries: Axis, keys: Axis) -> tuple[Int[np.ndarray, " query"], Int[np.ndarray, " key"]]:
    """Where the entries of two axes of one text stand, counted in entries: hidden ones count too."""
    begins = np.ones(len(queries.tokens), dtype=np.int64)
    for first, stop in np.concatenate([queries.spans, keys.spans]):
        begins[first + 1 : stop] = 0
    places = begins.cumsum() - 1
    return places[queries.positions], places[keys.positions]


def _away(queries: Axis, keys: Axis) -> Float[np.ndarray, "query key"]:
    """Distance of each query from each key of the same text, in entries."""
    rows, columns = _places(queries, keys)
    away: np.ndarray = np.abs(rows[:, None] - columns).astype(np.float32)
    return away


def _mutual(queries: Axis, keys: Axis) -> tuple[Int[np.ndarray, " entry"], Int[np.ndarray, " entry"]]:
    """Rows and columns of the entries that stand on both axes."""
    _, rows, columns = np.intersect1d(*_places(queries, keys), return_indices=True)
    return rows, columns


def _targets(queries: Axis, keys: Axis, one_text: bool) -> dict[str, Bool[np.ndarray, "query key"]]:
    """For each weight among `STATISTICS` the cells that it sums."""
    leads = keys.is_special & (keys.positions == 0)
    punctuation = np.array([_is_punctuation(label) for label in keys.labels], dtype=bool)
    columns = {
        "cls": leads,
        "sep": keys.is_special & ~leads,
        "punctuation": punctuation,
    }
    shape = (len(queries), len(keys))
    targets = {name: np.broadcast_to(marked, shape) for name, marked in columns.items()}
    same = np.array(queries.labels)[:, None] == np.array(keys.labels)
    targets["same_token"] = same & ~queries.is_special[:, None] & ~keys.is_special
    if one_text:
        rows, columns_of_keys = _places(queries, keys)
        step = columns_of_keys - rows[:, None]
        targets |= {"self": step == 0, "previous": step == -1, "next": step == 1}
        targets["same_token"] &= step != 0
    return targets


def _is_punctuation(label: str) -> bool:
    written = label.removeprefix("##")
    return bool(written) and all(unicodedata.category(one).startswith("P") for one in written)


def _entropy(
    cells: Float[np.ndarray, "head query key"], allowed: Bool[np.ndarray, "#head query key"]
) -> Float[np.ndarray, " head"]:
    """Entropy of the rows as a share of the largest there could be; a row that sees one key has none."""
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
    """Share of the weight in the strongest tenth of the cells that are allowed, at least one cell."""
    n_allowed = np.broadcast_to(allowed.sum(axis=(1, 2)), len(cells))
    strongest = []
    for one, n_cell in zip(cells, n_allowed, strict=True):
        count = -(-int(n_cell) // 10)  # rounded up
        strongest.append(
            np.partition(one, one.size - count, axis=None)[one.size - count :].sum() if count else 0
        )
    return _ratio(np.array(strongest, dtype=np.float32), cells.sum(axis=(1, 2)))


def _mean(
    numbers: Float[np.ndarray, "head query"], counts: Bool[np.ndarray, "#head query"]
) -> Float[np.ndarray, " head"]:
    """Mean over the queries that count; NaN where none does."""
    n_counting = np.broadcast_to(counts, numbers.shape).sum(axis=-1)
    return _ratio(np.where(counts, numbers, 0).sum(axis=-1), n_counting)


def _ratio(above: np.ndarray, below: np.ndarray, *, otherwise: float = np.nan) -> np.ndarray:
    """A quotient, or something else where the divisor is 0."""
    full = np.full(above.shape, otherwise, dtype=np.float32)
    quotient: np.ndarray = np.divide(above, below, out=full, where=below > 0, casting="same_kind")
    return quotient


def _bits(rows: Float[np.ndarray, "*head query key"]) -> Float[np.ndarray, "*head"]:
    """Entropy of rows that sum to 1, in bits, mean over the rows."""
    logarithms = np.log2(np.maximum(rows, np.finfo(np.float32).tiny))
    means: np.ndarray = -np.einsum("...qk,...qk->...", rows, logarithms) / rows.shape[-2]
    return means
