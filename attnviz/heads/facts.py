"""What a sentence about attention states, as positions and numbers, before it is put into words.

Tokens are named by their position, a group of tokens by that of its first. Where several share a largest number, all
are named: ``written`` is how the sentence writes a number, and numbers that it writes alike count as equal; by default
only equal ones do. numpy only.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from attnviz.heads.frequent_words import REFERRING, says_little
from attnviz.records import AttentionPattern, Axis, Head, Tokens, bare

Written = Callable[[float], str]
"""How a sentence writes a number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """The weight of a query on one key, and where its row is largest."""

    amount: float
    largest: float
    """The largest number of the row, among the keys that are shown."""
    strongest: tuple[int, ...]
    """The keys that have that number; none where the whole row is 0."""
    is_strongest: bool
    """Whether this key is one of these, or the whole row is 0."""
    hides_keys: bool
    """Whether keys are hidden."""
    hidden: float
    """Sum of the query's row over the hidden keys."""
    of_shown: bool
    """Whether the row is divided by its sum over the shown keys."""


def given(pattern: AttentionPattern, row: int, column: int, written: Written = repr) -> Given:
    """The weight of one query on one key, both given by their entry on the axes."""
    weights = pattern.weights[row]
    strongest = _with_largest(weights, pattern.keys, written)
    return Given(
        amount=float(weights[column]),
        largest=float(weights.max()),
        strongest=strongest,
        is_strongest=not strongest or int(pattern.keys.positions[column]) in strongest,
        hides_keys=not _is_whole(pattern.keys),
        hidden=float(pattern.hidden_weight[row]),
        of_shown=pattern.is_renormalised,
    )


NOTABLE = 2.0
"""A key is in a headline if its weight is at least this multiple of the mean weight of the keys that are not: with less, any
key could have come first. A multiple of an equal share would not do: of two keys, neither can have twice a half."""
_ROUNDING = 1e-9
"""Sums and means that differ by less than this share are equal: the order of a sum, which differs between numpy and
attnviz/viewer/words.js, decides nothing."""
MOST_NAMED = 3
"""Most keys in a headline; a line has no room for more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Headline:
    """The few keys that hold more than half of a query's attention, if there are such keys."""

    named: tuple[int, ...]
    """At most `MOST_NAMED` keys, the strongest first; none where more would be needed, or these are not `NOTABLE`."""
    n_seen: int
    """Shown keys that the query may see."""
    equal: float
    """Weight of each of those keys if they shared theirs equally."""


def headline(pattern: AttentionPattern, row: int, written: Written = repr) -> Headline:
    """The most important fact about one query, given by its entry on the axis, whatever key is selected.

    The keys are the fewest that hold more than half of the row, hidden keys included; of equal keys, all or none.
    """
    seen = np.flatnonzero(pattern.allowed[row])
    weights = pattern.weights[row, seen].astype(np.float64)
    order = np.argsort(-weights, kind="stable")
    half = (weights.sum() + (0 if pattern.is_renormalised else pattern.hidden_weight[row])) / 2 + _ROUNDING
    sums = weights[order].cumsum()
    named: tuple[int, ...] = ()
    if seen.size and sums[-1] > half:
        least = weights[order[np.argmax(sums > half)]]
        is_named = (weights >= least) | alike(weights, least, written)
        others = weights[~is_named]
        notable = NOTABLE * others.mean() * (1 - _ROUNDING) if others.size else 0.0
        is_notable = weights[is_named].min() >= notable if others.size else len(seen) == 1
        if is_named.sum() <= MOST_NAMED and is_notable:
            named = tuple(pattern.keys.positions[seen[row]].item() for row in order[: is_named.sum()])
    return Headline(
        named=named,
        n_seen=len(seen),
        equal=float(np.float32(weights.sum() / len(seen))) if seen.size else 0.0,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A query and a key, by their positions."""

    query: int
    key: int


def strongest_link(pattern: AttentionPattern, row: int | None = None) -> Link:
    """The largest number of a matrix, or of one row, that says something about the words of the text.

    Special tokens are set aside, since heads rest on them (Clark et al. 2019, arXiv:1906.04341), and so are a token's weight
    on itself and that on the first token of a decoder's text, another resting place (Xiao et al. 2023,
    arXiv:2309.17453). What is set aside counts only if there is nothing else.

    Args:
        row: the query, by its entry on the axis; None for any.
    """
    aside = _set_aside(pattern)
    if row is not None:
        aside[np.arange(len(pattern.queries)) != row] += 32
    numbers = np.where(aside == aside.min(), pattern.weights, -np.inf)
    query, key = np.unravel_index(numbers.argmax(), numbers.shape)
    return Link(query=int(pattern.queries.positions[query]), key=int(pattern.keys.positions[key]))


def _set_aside(pattern: AttentionPattern) -> Int[np.ndarray, "query key"]:
    """The reasons against each cell as a strongest link, summed so that each outweighs all lesser ones."""
    queries, keys = pattern.queries, pattern.keys
    is_itself = queries.positions[:, None] == keys.positions
    if pattern.kind == "cross":  # the keys are of another text
        is_itself = np.zeros_like(is_itself)
    is_rest = pattern.is_resting_place & ~keys.is_special
    reasons: np.ndarray = (
        8 * queries.is_special[:, None]
        + 4 * keys.is_special
        + 2 * is_itself
        + is_rest
        + 16 * ~pattern.allowed
    )
    return reasons


STRONG = 0.1
"""Least weight of a pronoun's strongest key for the pronoun to come first."""


def first_link(pattern: AttentionPattern) -> Link:
    """Where a reader begins: a link that shows something of the text, before anything is selected.

    Each query stands with the key of its own `strongest_link`. First comes a pronoun such as "it" with at least `STRONG` on a key
    that says something and is not next to it; then the strongest link of two words that say something; then of such a query; then
    any. Words that say little are those of `attnviz.heads.frequent_words`, punctuation among them.

    Args:
        pattern: of single tokens.
    """
    queries, keys = pattern.queries.tokens, pattern.keys.tokens
    aside = _set_aside(pattern)
    own = aside == aside.min(axis=1, keepdims=True)
    at = np.where(own, pattern.weights, -np.inf).argmax(axis=1)
    rows = np.arange(len(at))
    weights = pattern.weights[rows, at]
    says, to_word = _says_something(queries), _says_something(keys)[at] & (aside[rows, at] == 0)
    refers = np.array([word.casefold() in REFERRING for word in _words(queries)])
    is_far, is_other_word = abs(rows - at) > 1, (queries.word < 0) | (queries.word != keys.word[at])
    if pattern.kind == "cross":
        is_far = is_other_word = np.ones(len(rows), dtype=bool)
    for begins in (refers & is_far & (weights >= STRONG) & to_word, says & is_other_word & to_word, says):
        if begins.any():
            query = int(np.where(begins, weights, -np.inf).argmax())
            return Link(query=query, key=int(at[query]))
    return strongest_link(pattern)


def _says_something(tokens: Tokens) -> Bool[np.ndarray, " token"]:
    return ~tokens.is_special & [not says_little(word) for word in _words(tokens)]


def _words(tokens: Tokens) -> list[str]:
    """The word that each token belongs to, the token itself where that is not known."""
    axis = Axis.of(tokens, "words")
    spans = axis.spans.tolist()
    return [
        bare(label)
        for label, (first, stop) in zip(axis.labels, spans, strict=True)
        for _ in range(first, stop)
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """The largest weight of any query on a key."""

    amount: float
    givers: tuple[int, ...]
    """The queries with this weight on the key; none where no shown query has any weight on it."""
    hides_queries: bool
    """Whether queries are hidden."""
    of_shown: bool
    """Whether rows are divided by their sum over the shown keys."""


def taken(pattern: AttentionPattern, column: int, written: Written = repr) -> Taken:
    """The largest weight of any shown query on one key, given by its entry on the axis."""
    weights = pattern.weights[:, column]
    return Taken(
        amount=float(weights.max()),
        givers=_with_largest(weights, pattern.queries, written),
        hides_queries=not _is_whole(pattern.queries),
        of_shown=pattern.is_renormalised,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """Which key has a query's largest weight, and which adds the longest vector to its output; the two often differ."""

    weight: float
    """The largest weight of the row."""
    heaviest: tuple[int, ...]
    """The keys that have this weight; none where the query sees no key."""
    norm: float | None
    """The largest norm-based weight of the row; None where W_O is not known."""
    longest: tuple[int, ...]
    """The keys that have this norm-based weight."""
    norm_of_heaviest: float | None
    """The norm-based weight of the first of the heaviest keys."""


def received(
    weights: AttentionPattern,
    norms: AttentionPattern | None,
    row: int,
    written: Written = repr,
    norm_written: Written = repr,
) -> Received:
    """What a query, given by its entry on the axis, receives from its keys, by weight and by norm-based weight.

    Args:
        norms: the norm-based weights of the same head, rows and columns; None where they are not known.
    """
    by_weight, heaviest = weights.weights[row], _with_largest(weights.weights[row], weights.keys, written)
    by_norm = None if norms is None or not heaviest else norms.weights[row]
    return Received(
        weight=float(by_weight.max()),
        heaviest=heaviest,
        norm=None if by_norm is None else float(by_norm.max()),
        longest=() if by_norm is None else _with_largest(by_norm, weights.keys, norm_written),
        norm_of_heaviest=None if by_norm is None else float(by_norm[by_weight.argmax()]),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SmallAddition:
    """A special token that has a query's largest weight, but adds less to its output than another key."""

    special: int
    key: int
    share: float
    """Norm-based weight of the special token divided by that of the other key: below 1."""


def small_addition(
    weights: AttentionPattern, norms: AttentionPattern, row: int, column: int
) -> SmallAddition | None:
    """Whether the resting place with a query's largest weight adds less than a key; query and key are given by their entries.

    If the key is the resting place itself, it is compared with the word that adds most. The length of what a key adds to the
    query's output is its norm-based weight (Kobayashi et al. 2020, arXiv:2004.10102).

    Args:
        weights: of the head.
        norms: the norm-based weights of the same head, rows and columns.

    Returns:
        None where no resting place has the largest weight, or where it adds as much.
    """
    most = int(weights.weights[row].argmax())
    resting = weights.is_resting_place
    if not resting[most]:
        return None
    added = norms.weights[row]
    other = int(np.where(resting, -1, added).argmax()) if column == most else column
    if added[most] >= added[other]:
        return None
    positions = weights.keys.positions
    return SmallAddition(
        special=int(positions[most]), key=int(positions[other]), share=float(added[most] / added[other])
    )


def colour_end(pattern: AttentionPattern) -> float | None:
    """Upper end of a linear colour scale that resting places do not flatten; None where none of their cells is larger.

    It is the largest cell of the other rows and columns, or the mean of all cells if that is larger, so that a matrix whose
    weights are all on special tokens looks empty elsewhere.
    """
    ordinary = pattern.weights[np.ix_(~pattern.queries.is_special, ~pattern.is_resting_place)]
    if not ordinary.size:
        return None
    end = max(float(ordinary.max()), float(np.float32(pattern.weights.mean(dtype=np.float64))))
    return end if end < pattern.weights.max() else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rank:
    """The rank of one head among all, by a number that every head has."""

    number: float
    n_more: int
    """Heads with a larger number."""
    n_equal: int
    """Other heads with the same number."""
    n_heads: int
    largest: float
    leading: tuple[Head, ...]
    """The heads with the largest number, from the lowest layer up; none where every number is 0."""


def rank(numbers: Float[np.ndarray, "layer head"], picked: tuple[int, int], written: Written = repr) -> Rank:
    """The rank of one head; NaN marks places without a head, and heads without a number."""
    number, largest = numbers[picked], np.nanmax(numbers)
    equal = alike(numbers, number, written)
    return Rank(
        number=float(number),
        n_more=int(((numbers > number) & ~equal).sum()),
        n_equal=int(equal.sum()) - 1,
        n_heads=int(np.isfinite(numbers).sum()),
        largest=float(largest),
        leading=_heads(alike(numbers, largest, written)) if largest else (),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Extremes:
    """The largest and the smallest number of any head, and the heads that have them, from the lowest layer up."""

    largest: float
    most: tuple[Head, ...]
    smallest: float
    least: tuple[Head, ...]


def extremes(numbers: Float[np.ndarray, "layer head"], written: Written = repr) -> Extremes:
    """The extremes of a number that every head has; heads without one (NaN) are left out."""
    largest, smallest = np.nanmax(numbers), np.nanmin(numbers)
    return Extremes(
        largest=float(largest),
        most=_heads(alike(numbers, largest, written)),
        smallest=float(smallest),
        least=_heads(alike(numbers, smallest, written)),
    )


def _heads(marked: Bool[np.ndarray, "layer head"]) -> tuple[Head, ...]:
    return tuple(Head(int(layer), int(head)) for layer, head in np.argwhere(marked))


def _with_largest(numbers: Float[np.ndarray, " entry"], axis: Axis, written: Written) -> tuple[int, ...]:
    """Positions of the entries with the largest number; none where all are 0."""
    largest = numbers.max()
    return tuple(axis.positions[alike(numbers, largest, written)].tolist()) if largest else ()


def alike(
    numbers: Float[np.ndarray, "..."], number: float | np.floating, written: Written
) -> Bool[np.ndarray, "..."]:
    """Where a number is written like this one; NaN is like none."""
    as_written = written(float(number))
    each = [not np.isnan(other) and written(other) == as_written for other in numbers.ravel().tolist()]
    return np.array(each, dtype=bool).reshape(numbers.shape)


def _is_whole(axis: Axis) -> bool:
    """Whether every token belongs to an entry."""
    return int(np.diff(axis.spans, axis=1).sum()) == len(axis.tokens)
